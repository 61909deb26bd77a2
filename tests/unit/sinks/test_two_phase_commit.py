"""TwoPhaseCommitSinkFunction: one transaction for each checkpoint."""

from __future__ import annotations

import tempfile

import pytest
from file_transactions import FileTransactions
from hypothesis import given
from hypothesis import strategies as st
from sink_job import CHECKPOINT_STEPS, SinkJob, hidden_files, visible_files

from penstock.datastream.functions import TwoPhaseCommitSinkFunction


class Ledger(TwoPhaseCommitSinkFunction):
    """Writes down what it is asked to do."""

    calls: list = []

    def __init__(self):
        self._begun = 0

    def open(self, runtime_context):
        self.note("open")

    def close(self):
        self.note("close")

    def begin_transaction(self):
        self._begun += 1
        self.note("begin", self._begun)
        return self._begun

    def invoke(self, transaction, value, context):
        self.note("invoke", transaction, value, context.timestamp(), context.current_watermark())

    def write_watermark(self, watermark):
        self.note("watermark", watermark)

    def pre_commit(self, transaction):
        self.note("pre_commit", transaction)

    def commit(self, transaction):
        self.note("commit", transaction)

    def abort(self, transaction):
        self.note("abort", transaction)

    def finish(self):
        self.note("finish")

    def note(self, *call):
        Ledger.calls.append(call if len(call) > 1 else call[0])


class RecoveringLedger(Ledger):
    def recover_and_commit(self, transaction):
        self.note("recover_and_commit", transaction)

    def recover_and_abort(self, transaction):
        self.note("recover_and_abort", transaction)


@pytest.fixture
def calls():
    """The calls since they were last taken."""
    Ledger.calls.clear()

    def take():
        taken = list(Ledger.calls)
        Ledger.calls.clear()
        return taken

    return take


def test_transaction_is_pre_committed_with_the_checkpoint_and_committed_when_it_is_complete(calls, tmp_path):
    job = SinkJob(Ledger(), tmp_path)
    job.operators[0].process_watermark(7)
    job.write()
    assert calls() == ["open", ("begin", 1), ("watermark", 7), ("invoke", 1, "0", 0, 7)]
    job.checkpoint("commit")
    assert calls() == [("pre_commit", 1), ("begin", 2)]
    job.operators[0].notify_checkpoint_complete(1)
    assert calls() == [("commit", 1)]


def test_completed_checkpoint_commits_the_transactions_of_failed_ones_before_it(calls, tmp_path):
    job = SinkJob(Ledger(), tmp_path).write().aborted_checkpoint().write()
    calls()
    job.checkpoint()
    assert calls() == [("pre_commit", 2), ("begin", 3), ("commit", 1), ("commit", 2)]


def test_restart_commits_what_was_pending_and_aborts_what_was_open(calls, tmp_path):
    job = SinkJob(RecoveringLedger(), tmp_path).write().checkpoint("metadata").write()
    calls()
    job.fail()
    assert calls() == [
        ("abort", 2),
        "close",
        "open",
        ("recover_and_commit", 1),
        ("recover_and_abort", 2),
        ("begin", 1),
    ]


def test_last_checkpoint_commits_and_begins_nothing_new(calls, tmp_path):
    job = SinkJob(Ledger(), tmp_path).write()
    calls()
    job.end()
    assert calls() == ["finish", ("pre_commit", 1), ("commit", 1), "close"]


def test_failure_leaves_nothing_of_an_open_transaction(tmp_path):
    SinkJob(FileTransactions(str(tmp_path)), tmp_path).write(3).fail().write(2).end()
    assert b"".join(visible_files(tmp_path).values()) == b"0\n1\n" and hidden_files(tmp_path) == []


def test_sink_waits_for_the_checkpoint_that_commits_it(tmp_path):
    job = SinkJob(Ledger(), tmp_path)
    assert job.operators[0].waits_for_checkpoint() and job.commits.has_committers


def test_transactions_of_all_subtasks_survive_a_change_of_parallelism(tmp_path):
    job = SinkJob(FileTransactions(str(tmp_path)), tmp_path, parallelism=3).write(9).checkpoint("metadata").write(4)
    job.crash(parallelism=2).write(3).end()
    assert sorted(map(int, b"".join(visible_files(tmp_path).values()).split())) == list(range(12))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 4)),
        st.tuples(st.sampled_from(["fail", "crash"]), st.sampled_from([None, *CHECKPOINT_STEPS])),
        st.just(("checkpoint", None)),
        st.just(("abort", None)),
    ),
    max_size=20,
)


@given(steps=steps, parallelism=st.integers(1, 2))
def test_every_element_is_written_exactly_once_whatever_fails(steps, parallelism):
    with tempfile.TemporaryDirectory() as folder:
        job = SinkJob(FileTransactions(folder), folder, parallelism=parallelism)
        for kind, what in steps:
            if kind == "write":
                job.write(what)
            elif kind == "checkpoint":
                job.checkpoint()
            elif kind == "abort":
                job.aborted_checkpoint()
            else:
                if what is not None:
                    job.checkpoint(last_step=what)
                getattr(job, kind)()
        expected = job.position
        job.end()
        assert sorted(map(int, b"".join(visible_files(folder).values()).split())) == list(range(expected))
