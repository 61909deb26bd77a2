from __future__ import annotations

import random

import pytest
from benchmarks.soak import SAMPLES, Sample, main, sample_times_s, slopes_of, table_of
from hypothesis import given, settings
from hypothesis import strategies as st


def samples(growth: float, noise: float = 0.0) -> list[Sample]:
    """An hour: memory of 100 that grows by so much after a warm-up in which it doubles."""
    return [
        Sample(
            minutes=number,
            memory_mib=(100 if number >= 12 else 50) + growth * max(0, number - 12) / 60 + noise * (-1) ** number,
            descriptors=40,
            processes=3,
            files=7,
            epoch_ms=2,
        )
        for number in range(1, SAMPLES + 1)
    ]


@pytest.mark.parametrize(
    ("growth", "noise", "grows"), [(0, 0, False), (5, 0, False), (30, 0, True), (30, 50, False), (-50, 0, False)]
)
def test_what_grows_is_told_from_what_varies(growth, noise, grows):
    slopes = {each.what: each for each in slopes_of(samples(growth, noise))}
    assert slopes["memory_mib"].grows is grows and not slopes["files"].grows
    assert slopes["memory_mib"].per_hour == pytest.approx(growth, abs=3 if noise else 0.01)


@settings(derandomize=True)  # Chance is part of it: once in ten thousand times it looks like growth.
@given(period_s=st.floats(10, 130), phase=st.floats(0, 1), seed=st.integers(0, 100))
def test_what_goes_up_and_down_is_not_taken_for_growth(period_s, phase, seed):
    """Deltas are written and gathered, again and again, perhaps at the pace of the looks: one in 30 s."""
    looks = sample_times_s(30, random.Random(seed))
    found = [Sample(at_s / 60, 1, 1, 1, 20 + 100 * ((at_s / period_s + phase) % 1), 1) for at_s in looks]
    assert not [each.what for each in slopes_of(found) if each.grows]


def test_table_has_a_row_for_each_value():
    lines = table_of(slopes_of(samples(30))).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["memory_mib", "descriptors", "processes", "files", "epoch_ms"]
    assert [line.endswith("GROWS") for line in lines[1:]] == [True, False, False, False, False]


def test_short_run_gives_a_table(capsys):
    main(["--minutes", "0.1", "--target", "inline", "--rate", "100", "--parallelism", "1"])
    said = capsys.readouterr()
    assert "soak: 0.1 min, parallelism 1, 100 records/s, inline" in said.out, said.err
