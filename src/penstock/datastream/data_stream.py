"""All kinds of streams under the names that PyFlink's users know."""

from __future__ import annotations

from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.streams.closeable_iterator import CloseableIterator
from penstock.datastream.streams.connected_streams import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from penstock.datastream.streams.data_stream import CachedDataStream, DataStream
from penstock.datastream.streams.data_stream_sink import DataStreamSink
from penstock.datastream.streams.keyed_stream import KeyedStream
from penstock.datastream.streams.windowed_stream import AllWindowedStream, WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "Types",
    "WatermarkStrategy",
    "WindowedStream",
]
