"""What the configuration says about high availability."""

from __future__ import annotations

import pytest

from penstock.cluster.high_availability.options import HighAvailabilityOptions
from penstock.cluster.high_availability.services import HighAvailability
from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError


def options(**settings: str) -> HighAvailabilityOptions | None:
    names = {"kind": "high-availability.type", "storage": "high-availability.storageDir"}
    return HighAvailabilityOptions.of(
        Configuration.from_dict({names.get(key, key.replace("__", ".")): value for key, value in settings.items()})
    )


@pytest.mark.parametrize("kind", ["NONE", "none", None])
def test_it_is_off_unless_asked_for(kind):
    assert options(**({} if kind is None else {"kind": kind})) is None


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("filesystem", "filesystem"),
        ("FILESYSTEM", "filesystem"),
        ("org.apache.flink.runtime.highavailability.FileSystemHaServicesFactory", "filesystem"),
        ("zookeeper", "zookeeper"),
        ("org.apache.flink.runtime.highavailability.zookeeper.ZooKeeperHaServicesFactory", "zookeeper"),
    ],
)
def test_kind_may_be_written_in_several_ways(kind, meant):
    quorum = {"high-availability.zookeeper.quorum": "localhost:2181"}
    config = {"high-availability.type": kind, "high-availability.storageDir": "/ha", **quorum}
    found = HighAvailabilityOptions.of(Configuration.from_dict(config))
    assert (found.kind, found.directory, found.node) == (meant, "/ha/default", "/flink/default/leader")


def test_clusters_that_share_a_folder_have_their_own_parts_of_it():
    config = {"high-availability.type": "filesystem", "high-availability.storageDir": "/ha/"}
    named = Configuration.from_dict({**config, "high-availability.cluster-id": "/orders/"})
    assert HighAvailabilityOptions.of(named).directory == "/ha/orders"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"high-availability.type": "etcd"}, "'etcd' is not known; use none, filesystem or zookeeper"),
        ({"high-availability.type": "filesystem"}, "storageDir is not set; name a folder that all job managers reach"),
        (
            {"high-availability.type": "zookeeper", "high-availability.storageDir": "/ha"},
            "quorum is not set; name ZooKeeper's servers",
        ),
        (
            {
                "high-availability.type": "filesystem",
                "high-availability.storageDir": "/ha",
                "penstock.high-availability.lease-duration": "5 s",
            },
            "must be at least three times the second",
        ),
    ],
)
def test_what_does_not_fit_is_reported(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        HighAvailabilityOptions.of(Configuration.from_dict(settings))


def test_lease_needs_a_file_system_that_is_mounted():
    settings = {"high-availability.type": "filesystem", "high-availability.storageDir": "mock:///river"}
    with pytest.raises(ConfigurationError, match="is not on a mounted file system"):
        HighAvailability.of(Configuration.from_dict(settings)).election()


def test_next_leader_finds_checkpoints_and_ended_jobs_unless_told_where_else_they_are(tmp_path):
    settings = {"high-availability.type": "filesystem", "high-availability.storageDir": str(tmp_path)}
    given = Configuration.from_dict({**settings, "jobmanager.archive.fs.dir": "/archive"})
    completed = HighAvailability.of(given).with_defaults(given).to_dict()
    assert completed["execution.checkpointing.dir"] == str(tmp_path / "default" / "checkpoints")
    assert completed["jobmanager.archive.fs.dir"] == "/archive"
