"""Savepoints that Spark's tasks write: another process reads state that is made of the script's classes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import make_dataclass
from functools import partial

from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.state.codec import decode_state, encode_state, use_script_classes
from penstock.spark.dependencies import ShippedDependencies
from penstock.spark.spark_executor import _CopyInWorker

CHILD = """
import pickle, sys
carry_out, copy = pickle.load(sys.stdin.buffer)
print(carry_out(copy))
"""


def test_copy_knows_the_classes_of_the_script():
    event = make_dataclass("Event", ["number"])
    event.__module__ = "__main__"
    use_script_classes([event])
    copy = partial(decode_state, encode_state(event(3)))
    use_script_classes(())
    carry_out = _CopyInWorker(ShippedDependencies(), encode_in_driver((event,)))
    answer = subprocess.run(
        [sys.executable, "-c", CHILD], input=pickle.dumps((carry_out, copy)), capture_output=True, check=True
    )
    assert answer.stdout == b"Event(number=3)\n"
