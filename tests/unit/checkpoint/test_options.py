"""What the configuration says about checkpoints."""

from __future__ import annotations

import pytest

from penstock.checkpoint.options import CheckpointOptions
from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError


def options(**settings: str) -> CheckpointOptions:
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    return CheckpointOptions.of(Configuration.from_dict({f"execution.{key}": value for key, value in keys.items()}))


def test_defaults_are_those_of_flink():
    assert options() == CheckpointOptions()
    assert options().interval_ms is None and options().timeout_ms == 600_000


def test_durations_are_milliseconds():
    read = options(checkpointing__interval="2 s", checkpointing__min_pause="1 min", checkpointing__timeout="5 s")
    assert (read.interval_ms, read.min_pause_ms, read.timeout_ms) == (2000, 60_000, 5000)


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        ("NO_EXTERNALIZED_CHECKPOINTS", []),
        ("DELETE_ON_CANCELLATION", ["FAILED"]),
        ("RETAIN_ON_CANCELLATION", ["FAILED", "CANCELED"]),
        ("retain-on-cancellation", ["FAILED", "CANCELED"]),
    ],
)
def test_retention_says_after_which_ends_checkpoints_stay(retention, kept):
    read = options(checkpointing__externalized_checkpoint_retention=retention)
    assert [status for status in ("FAILED", "CANCELED", "FINISHED") if read.keeps_after(status)] == kept
    assert read.keeps_after("SUSPENDED")


def test_claim_mode():
    assert not options().claims
    assert options(state_recovery__claim_mode="CLAIM").claims
    assert not options(state_recovery__claim_mode="no_claim").claims


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"state_recovery__claim_mode": "LEGACY"}, r"claim-mode: 'LEGACY' is not known; use one of NO_CLAIM, CLAIM"),
        ({"checkpointing__externalized_checkpoint_retention": "x"}, r"retention: 'x' is not known"),
        ({"checkpointing__num_retained": "0"}, r"num-retained must be at least 1, got 0"),
        ({"checkpointing__storage": "filesystem"}, r"storage is filesystem, but .*dir is not set; name a folder"),
    ],
)
def test_nonsense_is_explained(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        options(**settings)


def test_storage_in_the_job_manager_needs_no_folder():
    assert options(checkpointing__storage="jobmanager", checkpointing__dir="/ignored").directory is None
