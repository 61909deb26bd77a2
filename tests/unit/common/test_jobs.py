from __future__ import annotations

import pickle
from concurrent.futures import CancelledError, Future
from datetime import timedelta

import pytest

from penstock.common import (
    CompletableFuture,
    Duration,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
    RestartStrategies,
)
from penstock.common.exceptions import (
    ConfigurationError,
    InvalidProgramError,
    JobExecutionError,
    PenstockError,
    UnsupportedFeatureError,
    UserFunctionError,
)


def test_generated_job_ids_are_32_hex_digits_and_differ():
    one, other = JobID.generate(), JobID.generate()
    assert one != other and len(str(one)) == 32 and JobID(str(one)) == one
    assert JobID.from_hex_string(str(one).upper()).to_hex_string() == str(one)
    with pytest.raises(ValueError, match=r"32 hexadecimal digits .* got 'abc'"):
        JobID("abc")


def test_only_suspended_is_terminal_without_being_so_globally():
    over = {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}
    assert {s for s in JobStatus if s.is_globally_terminal_state()} == over
    assert {s for s in JobStatus if s.is_terminal_state()} == over | {JobStatus.SUSPENDED}


def test_result_reports_id_run_time_and_accumulators():
    result = JobExecutionResult(JobID("0" * 32), 12, {"lines": 3})
    assert (result.get_job_id(), result.get_net_runtime()) == (JobID("0" * 32), 12)
    assert (result.get_accumulator_result("lines"), result.get_accumulator_result("none")) == (3, None)
    assert result.get_all_accumulator_results() == {"lines": 3}
    assert f"Job with JobID {'0' * 32} has finished." in str(result) and "- lines: 3" in str(result)
    assert "Accumulator" not in str(JobExecutionResult(JobID("0" * 32), 12))


def test_future_gives_its_result_once():
    future = CompletableFuture[int]()
    assert not future.done() and future.exception() is None and str(future) == "CompletableFuture(not completed)"
    assert future.complete(1) and not future.complete(2) and not future.complete_exceptionally(ValueError())
    assert future.result() == 1 and future.done() and str(future) == "CompletableFuture(1)"
    assert CompletableFuture.completed("x").result() == "x"


def test_failed_future_raises_and_shows_its_error():
    future = CompletableFuture[int]()
    assert future.complete_exceptionally(ValueError("no"))
    assert isinstance(future.exception(), ValueError) and "failed: ValueError('no')" in str(future)
    with pytest.raises(ValueError, match="no"):
        future.result()


def test_cancelled_future_has_no_result():
    future = CompletableFuture(Future[int]())
    assert future.cancel() and future.cancelled() and future.done() and future.exception() is None
    assert str(future) == "CompletableFuture(cancelled)" and not future.complete(1)
    with pytest.raises(CancelledError):
        future.result()


def test_job_client_is_an_interface():
    with pytest.raises(TypeError, match="abstract"):
        JobClient()


def test_restart_strategies_are_values_that_say_their_configuration():
    fixed = RestartStrategies.fixed_delay_restart(3, 2000)
    assert fixed == RestartStrategies.fixed_delay_restart(3, 2000) and pickle.loads(pickle.dumps(fixed)) == fixed
    assert fixed.get_restart_attempts() == 3
    assert fixed.get_delay_between_attempts_interval() == timedelta(seconds=2)
    assert fixed.get_description() == "Restart with fixed delay (2000 ms). #3 restart attempts."
    assert fixed.to_configuration() == {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "2000 ms",
    }
    assert RestartStrategies.no_restart().to_configuration() == {"restart-strategy.type": "none"}
    assert RestartStrategies.no_restart().get_description() == "Restart deactivated."
    assert RestartStrategies.fall_back_restart().to_configuration() == {}
    assert "default" in RestartStrategies.fall_back_restart().get_description()


def test_failure_rate_and_exponential_delay_take_any_form_of_time():
    rate = RestartStrategies.failure_rate_restart(2, timedelta(minutes=1), Duration.of_seconds(1))
    assert (rate.get_max_failure_rate(), rate.get_failure_interval()) == (2, timedelta(minutes=1))
    assert rate.get_delay_between_attempts_interval() == timedelta(seconds=1)
    assert "2 failures within interval 60000 ms and fixed delay 1000 ms" in rate.get_description()
    assert rate.to_configuration()["restart-strategy.failure-rate.failure-rate-interval"] == "60000 ms"
    growing = RestartStrategies.exponential_delay_restart(10, 1000, 2.0, 5000, 0.2)
    assert growing.to_configuration()["restart-strategy.exponential-delay.backoff-multiplier"] == "2.0"
    assert "starting at 10 ms" in growing.get_description()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RestartStrategies.fixed_delay_restart(-1, 0), "restart_attempts cannot be negative"),
        (lambda: RestartStrategies.fixed_delay_restart(1, -5), "interval cannot be negative, got -5 ms"),
        (lambda: RestartStrategies.fixed_delay_restart(1, "1 s"), "takes milliseconds, a timedelta"),
        (lambda: RestartStrategies.failure_rate_restart(0, 1, 1), "max_failure_rate must be positive"),
        (lambda: RestartStrategies.failure_rate_restart(1, 0, 1), "failure_interval must be positive"),
        (lambda: RestartStrategies.exponential_delay_restart(10, 5, 2, 1, 0), "delays must grow"),
        (lambda: RestartStrategies.exponential_delay_restart(1, 5, 1, 1, 0), "multiplier must be greater than 1"),
        (lambda: RestartStrategies.exponential_delay_restart(1, 5, 2, 1, 2), "jitter_factor must be between"),
    ],
)
def test_impossible_restart_strategies_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_errors_keep_what_they_know_across_processes():
    error = UserFunctionError("boom", "map", 2, "('a', 1)", "File ...", job_id="1" * 32, job_name="job")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is UserFunctionError and str(back) == "boom" and vars(back) == vars(error)
    assert (back.operator, back.subtask, back.record, back.job_name) == ("map", 2, "('a', 1)", "job")
    plain = pickle.loads(pickle.dumps(JobExecutionError("failed", job_id="1")))
    assert (str(plain), plain.job_id, plain.job_name) == ("failed", "1", None)


def test_errors_are_of_the_kinds_users_catch():
    assert issubclass(InvalidProgramError, ValueError) and issubclass(ConfigurationError, ValueError)
    assert issubclass(UnsupportedFeatureError, NotImplementedError) and issubclass(UserFunctionError, PenstockError)
