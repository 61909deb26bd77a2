"""Where streams come from and go to."""

from __future__ import annotations

from penstock.datastream.connectors.bad_records import (
    BadRecord,
    BadRecords,
)
from penstock.datastream.connectors.base import (
    DeliveryGuarantee,
    Sink,
    Source,
)
from penstock.datastream.connectors.data_generator import (
    DataGeneratorSource,
    GeneratorFunction,
    RateLimiterStrategy,
)
from penstock.datastream.connectors.discarding_sink import (
    DiscardingSink,
)
from penstock.datastream.connectors.dynamic_kafka import (
    DynamicKafkaSource,
    DynamicKafkaSourceBuilder,
    KafkaMetadataService,
    KafkaRecordDeserializationSchema,
    KafkaStreamSetSubscriber,
    KafkaStreamSubscriber,
    SingleClusterTopicMetadataService,
    StreamPatternSubscriber,
)
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from penstock.datastream.connectors.file_system.line_encoder import LineEncoder
from penstock.datastream.connectors.jdbc.sink import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from penstock.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaSink,
    KafkaSource,
    Semantic,
)
from penstock.datastream.connectors.number_seq import (
    NumberSequenceSource,
)
from penstock.datastream.connectors.pulsar import (
    PulsarSource,
    PulsarSourceBuilder,
    StartCursor,
    StopCursor,
)
from penstock.datastream.connectors.rabbitmq import (
    RMQConnectionConfig,
    RMQSink,
    RMQSource,
)
from penstock.datastream.connectors.simple_source import (
    SimpleSource,
)
from penstock.datastream.connectors.sink_v2 import (
    CommitRequest,
    Committer,
    CommitterInitContext,
    CommittingSinkWriter,
    SinkWriter,
    StatefulSinkWriter,
    SupportsCommitter,
    SupportsWriterState,
    WriterInitContext,
)
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    InputStatus,
    ReaderOutput,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from penstock.datastream.connectors.support.refused_records import (
    DeadLetters,
    OnRefused,
)

__all__ = [
    "BadRecord",
    "BadRecords",
    "Boundedness",
    "BucketAssigner",
    "CommitRequest",
    "Committer",
    "CommitterInitContext",
    "CommittingSinkWriter",
    "DataGeneratorSource",
    "DeadLetters",
    "DeliveryGuarantee",
    "DiscardingSink",
    "DynamicKafkaSource",
    "DynamicKafkaSourceBuilder",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "GeneratorFunction",
    "InputStatus",
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "KafkaMetadataService",
    "KafkaRecordDeserializationSchema",
    "KafkaSink",
    "KafkaSource",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "LineEncoder",
    "NumberSequenceSource",
    "OnRefused",
    "OutputFileConfig",
    "PulsarSource",
    "PulsarSourceBuilder",
    "RMQConnectionConfig",
    "RMQSink",
    "RMQSource",
    "RateLimiterStrategy",
    "ReaderOutput",
    "RollingPolicy",
    "Semantic",
    "SimpleSource",
    "SingleClusterTopicMetadataService",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SourceReaderContext",
    "SourceSplit",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "StartCursor",
    "StatefulSinkWriter",
    "StopCursor",
    "StreamFormat",
    "StreamPatternSubscriber",
    "StreamingFileSink",
    "SupportsCommitter",
    "SupportsWriterState",
    "WriterInitContext",
]
