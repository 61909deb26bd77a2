"""The same window programs on Flink, on PyFlink and on Penstock, value by value.

`window_results_flink.json` holds what Flink 2.3 gave (Java, by `WindowCases.java`), `window_results_pyflink.json` what
PyFlink 2.3 gave (by `run_window_cases.py`); Penstock is always compared with both. With PENSTOCK_PYFLINK_PYTHON set to
a Python that has apache-flink installed, the cases run on PyFlink again and must give the recorded results.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from window_program import late_tag, load, windowed  # noqa: E402

from penstock.testing import OperatorHarness  # noqa: E402

CASES = json.loads((HERE / "window_cases.json").read_text())
ON_FLINK = json.loads((HERE / "window_results_flink.json").read_text())
ON_PYFLINK = json.loads((HERE / "window_results_pyflink.json").read_text())
PYFLINK = os.environ.get("PENSTOCK_PYFLINK_PYTHON")

API = load("penstock")


def run_on_penstock(case):
    h = OperatorHarness.of(lambda stream: windowed(stream, case, API))
    for key, number, text, timestamp, watermark in case["events"]:
        h.element((key, number, text), at=timestamp)
        if watermark is not None and watermark > h.current_watermark:
            h.watermark(watermark)
    h.end_input()
    return {"main": as_json(h.output_with_timestamps), "late": as_json(h.recorded.side.get(late_tag(API).tag_id, []))}


def as_json(records):
    return json.loads(json.dumps(records))


PYFLINK_DIFFERS = {
    "a count trigger over sessions adds up": "PyFlink fires one element later than Flink",
    "a continuous trigger": "PyFlink leaves out firings when the watermark jumps over several intervals",
    "a continuous trigger over sessions": "the same",
    "a continuous trigger with lateness": "PyFlink fires once more than Flink",
}
"""Cases in which PyFlink does otherwise than Flink; Penstock does as Flink does."""


def comparable(results, case, with_timestamps=True):
    """Results in an order of their own: keys that fire at the same time come in any order, and so do the elements of
    sessions that were merged."""
    main = results["main"] if with_timestamps else [value for value, _ in results["main"]]
    if case["assigner"][0] in ("session", "dynamic"):
        main = [_with_sorted_lists(result) for result in main]
    return sorted(map(repr, main)), sorted(map(repr, results["late"]))


def comparable_with_pyflink(results, case):
    """PyFlink gives the result of an early or late firing the time of the timer or element that caused it; Flink itself
    and Penstock the last timestamp of the window. So timestamps are compared only where windows fire at their end."""
    fires_at_end_only = "trigger" not in case and "lateness" not in case and not case["assigner"][0].startswith("count")
    return comparable(results, case, fires_at_end_only)


def _with_sorted_lists(result):
    if not isinstance(result, list):
        return result
    inner = [_with_sorted_lists(each) for each in result]
    return sorted(inner, key=repr) if inner and all(isinstance(each, list) for each in inner) else inner


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["name"])


@named([case for case in CASES if case["name"] in ON_FLINK])
def test_penstock_gives_what_flink_gave(case):
    assert comparable(run_on_penstock(case), case) == comparable(ON_FLINK[case["name"]], case)


@named([case for case in CASES if case["name"] in ON_PYFLINK and case["name"] not in PYFLINK_DIFFERS])
def test_penstock_gives_what_pyflink_gave(case):
    given, recorded = run_on_penstock(case), ON_PYFLINK[case["name"]]
    assert comparable_with_pyflink(given, case) == comparable_with_pyflink(recorded, case)


@named([case for case in CASES if case["name"] in PYFLINK_DIFFERS])
def test_pyflink_itself_differs_from_flink_where_it_is_not_followed(case):
    flink, pyflink = ON_FLINK[case["name"]], ON_PYFLINK[case["name"]]
    assert comparable_with_pyflink(flink, case) != comparable_with_pyflink(pyflink, case)


def test_every_case_was_recorded():
    assert {case["name"] for case in CASES} == set(ON_FLINK) | set(ON_PYFLINK)
    assert set(ON_PYFLINK) == {case["name"] for case in CASES if case.get("on") != "flink"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    PYFLINK is None, reason="needs PyFlink: set PENSTOCK_PYFLINK_PYTHON to a Python that has apache-flink"
)
def test_pyflink_still_gives_what_was_recorded(tmp_path):
    results = tmp_path / "results.json"
    command = [PYFLINK, str(HERE / "run_window_cases.py"), str(HERE / "window_cases.json"), str(results)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = json.loads(results.read_text())
    cases = [case for case in CASES if case["name"] in ON_PYFLINK and case["name"] not in PYFLINK_DIFFERS]
    assert {case["name"]: comparable(again[case["name"]], case) for case in cases} == {
        case["name"]: comparable(ON_PYFLINK[case["name"]], case) for case in cases
    }
