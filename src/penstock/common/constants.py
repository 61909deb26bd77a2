"""Limits of Flink's 64-bit times and of its key groups, and the name of the main output."""

from __future__ import annotations

#: The largest timestamp or watermark: end of event time.
MAX_LONG_VALUE = 0x7FFFFFFFFFFFFFFF

#: The smallest timestamp: what an element without event time carries.
MIN_LONG_VALUE = -MAX_LONG_VALUE - 1

#: Flink's upper limit of the max parallelism: key groups are numbered in 15 bits.
UPPER_BOUND_MAX_PARALLELISM = 1 << 15

#: The tag of an operator's main output.
DEFAULT_OUTPUT_TAG = ""
