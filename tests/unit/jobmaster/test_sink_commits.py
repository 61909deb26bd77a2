"""Committing in the driver: retries, failures, and which sinks commit."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from penstock.common.exceptions import JobExecutionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.sink_v2 import Committer, Sink, SupportsCommitter
from penstock.datastream.functions import TwoPhaseCommitSinkFunction
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.sinks.sink_commits import MOST_RETRIES, SinkCommits


class ScriptedCommitter(Committer):
    """Answers each request as `answer(request)` says, and remembers what it was asked."""

    def __init__(self, answer, context):
        self._answer = answer
        self.context = context
        self.asked = []
        self.is_closed = False

    def commit(self, requests):
        self.asked.append([(request.get_committable(), request.get_number_of_retries()) for request in requests])
        for request in requests:
            self._answer(request)

    def close(self):
        self.is_closed = True


class ScriptedSink(Sink, SupportsCommitter):
    def __init__(self, answer=lambda request: None):
        self._answer = answer
        self.committers = []

    def create_writer(self, context):
        raise AssertionError("no writer is needed in the driver")

    def create_committer(self, context):
        self.committers.append(ScriptedCommitter(self._answer, context))
        return self.committers[-1]


class Transactions(TwoPhaseCommitSinkFunction):
    def _do_nothing(self, *args: Any) -> Any:
        """Nobody looks at what is written."""

    begin_transaction = invoke = pre_commit = commit = abort = _do_nothing  # type: ignore[assignment]


def commits_of(*sinks):
    """The commits of a job with these sinks, their operator ids, and the pauses that were made."""
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([1])
    for at, sink in enumerate(sinks):
        stream.sink_to(sink).name(f"table {at}")
    graph = build_job_graph(env.get_stream_graph(job_name="the job"))
    ids = [node.operator_id for vertex in graph.vertices for node in vertex.nodes if node.is_sink]
    pauses = []
    return SinkCommits(graph, "job-id", pauses.append), ids, pauses


def test_committables_go_to_the_committer_of_their_sink():
    first, second = ScriptedSink(), ScriptedSink()
    commits, ids, pauses = commits_of(first, second)
    commits.commit({ids[0]: ["a", "b"], ids[1]: []})
    commits.commit({ids[0]: ["c"]})
    [committer] = first.committers
    assert committer.asked == [[("a", 0), ("b", 0)], [("c", 0)]]
    assert second.committers == [] and pauses == []  # A committer is made when it is first needed.
    job = committer.context.get_job_info()
    assert (job.get_job_id(), job.get_job_name()) == ("job-id", "the job")
    commits.close()
    assert committer.is_closed


def test_only_what_asks_for_it_is_tried_again_with_growing_pauses():
    def answer(request):
        if request.get_committable() == "slow" and request.get_number_of_retries() < 3:
            request.retry_later()

    sink = ScriptedSink(answer)
    commits, [sink_id], pauses = commits_of(sink)
    commits.commit({sink_id: ["quick", "slow"]})
    assert sink.committers[0].asked == [
        [("quick", 0), ("slow", 0)],
        [("slow", 1)],
        [("slow", 2)],
        [("slow", 3)],
    ]
    assert len(pauses) == 3 and pauses == sorted(set(pauses))


def test_what_is_left_of_a_committable_is_tried_again():
    def answer(request):
        if len(request.get_committable()) > 1:
            request.update_and_retry_later(request.get_committable()[1:])

    sink = ScriptedSink(answer)
    commits, [sink_id], _ = commits_of(sink)
    commits.commit({sink_id: ["abc"]})
    assert sink.committers[0].asked == [[("abc", 0)], [("bc", 1)], [("c", 2)]]


def test_job_fails_after_the_last_retry():
    sink = ScriptedSink(lambda request: request.retry_later())
    commits, [sink_id], pauses = commits_of(sink)
    with pytest.raises(JobExecutionError, match=r"sink 'Sink: table 0': 1 committables.*'a'.* in 11 attempts"):
        commits.commit({sink_id: ["a"]})
    assert len(pauses) == MOST_RETRIES and sum(pauses) < 20


def test_failure_of_unknown_reason_fails_the_job():
    reason = OSError("disk full")
    commits, [sink_id], _ = commits_of(ScriptedSink(lambda r: r.signal_failed_with_unknown_reason(reason)))
    with pytest.raises(
        JobExecutionError, match=r"'Sink: table 0': 'a' could not be committed: OSError: disk full"
    ) as e:
        commits.commit({sink_id: ["a"]})
    assert e.value.__cause__ is reason


def test_failure_of_known_reason_is_logged_and_given_up(caplog):
    sink = ScriptedSink(lambda request: request.signal_failed_with_known_reason(OSError("too old")))
    commits, [sink_id], _ = commits_of(sink)
    with caplog.at_level(logging.ERROR):
        commits.commit({sink_id: ["a"]})
    assert "sink 'Sink: table 0': gave up 'a': too old" in caplog.text and len(sink.committers[0].asked) == 1


def test_committed_before_is_committed():
    sink = ScriptedSink(lambda request: request.signal_already_committed())
    commits, [sink_id], pauses = commits_of(sink)
    commits.commit({sink_id: ["a"]})
    commits.commit({sink_id: ["a"]})
    assert sink.committers[0].asked == [[("a", 0)], [("a", 0)]] and pauses == []


def test_exception_of_a_committer_fails_the_job_with_the_sinks_name():
    def raises(request):
        raise ValueError("no table")

    commits, [sink_id], _ = commits_of(ScriptedSink(raises))
    with pytest.raises(JobExecutionError, match=r"sink 'Sink: table 0': commit\(\) raised ValueError: no table"):
        commits.commit({sink_id: ["a"]})


def test_committables_of_a_sink_that_is_gone_are_reported():
    commits, _, _ = commits_of(ScriptedSink())
    with pytest.raises(JobExecutionError, match="2 committables of operator other, but the job has no such"):
        commits.commit({"other": [1, 2]})


def test_all_committers_are_closed_also_if_one_fails_to():
    class Stuck(ScriptedSink):
        def create_committer(self, context):
            committer = super().create_committer(context)
            committer.close = lambda: 1 / 0
            return committer

    stuck, fine = Stuck(), ScriptedSink()
    commits, ids, _ = commits_of(stuck, fine)
    commits.commit({each: ["a"] for each in ids})
    with pytest.raises(JobExecutionError, match="'Sink: table 0': its committer cannot be closed: ZeroDivisionError"):
        commits.close()
    assert fine.committers[0].is_closed
    commits.close()


def test_job_has_committers_if_a_sink_commits_with_checkpoints():
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([1])
    stream.print()
    assert not SinkCommits(build_job_graph(env.get_stream_graph())).has_committers
    stream.add_sink(Transactions())
    assert SinkCommits(build_job_graph(env.get_stream_graph())).has_committers


# --- several sinks ---------------------------------------------------------------------------------------------------

PATIENCE_S = 60


class NotesThreads(ScriptedCommitter):
    """Waits in its first commit until the other sinks are there as well, and notes which threads call it."""

    def __init__(self, together, context):
        super().__init__(lambda request: None, context)
        self._together = together
        self.threads = set()

    def commit(self, requests):
        self.threads.add(threading.get_ident())
        if not self.asked:
            self._together.wait(PATIENCE_S)
        super().commit(requests)

    def close(self):
        self.threads.add(threading.get_ident())
        super().close()


class NotesThreadsSink(ScriptedSink):
    def __init__(self, together):
        super().__init__()
        self._together = together

    def create_committer(self, context):
        self.committers.append(NotesThreads(self._together, context))
        return self.committers[-1]


def test_sinks_do_not_wait_for_each_other_and_each_keeps_its_thread_and_its_order():
    together = threading.Barrier(3)
    sinks = [NotesThreadsSink(together) for _ in range(3)]
    commits, ids, _ = commits_of(*sinks)
    for number in range(10):
        commits.commit({each: [f"first {number}", f"second {number}"] for each in ids})
    commits.close()
    for sink in sinks:
        [committer] = sink.committers
        assert committer.is_closed and len(committer.threads) == 1
        assert committer.asked == [[(f"first {number}", 0), (f"second {number}", 0)] for number in range(10)]


def test_more_sinks_than_lanes_share_them():
    sinks = [ScriptedSink() for _ in range(20)]
    commits, ids, _ = commits_of(*sinks)
    commits.commit({each: [each] for each in ids})
    commits.close()
    assert [sink.committers[0].asked for sink in sinks] == [[[(each, 0)]] for each in ids]


def test_sink_that_fails_keeps_no_other_from_committing(caplog):
    def refuse(request):
        raise OSError("disk full")

    bad, worse, good = ScriptedSink(refuse), ScriptedSink(refuse), ScriptedSink()
    commits, ids, _ = commits_of(bad, worse, good)
    with pytest.raises(JobExecutionError, match=r"'Sink: table 0': commit.. raised OSError: disk full"):
        commits.commit({each: ["a"] for each in ids})
    assert good.committers[0].asked == [[("a", 0)]]
    assert "failed as well: sink 'Sink: table 1'" in caplog.text
    commits.close()
