"""The driver: every way in which a run can end keeps what was reached, and says how it ended."""

from __future__ import annotations

import os
import signal
import threading
import time

import hand_built
import pytest

from spdsl.diagnostics import SolverError
from spdsl.solution import Status
from spdsl.solvers.driver import run
from spdsl.solvers.protocol import CommonOptions


@pytest.fixture
def bound():
    return hand_built.bound(paced=False)


def interrupt(when: int, times: int = 1):
    def during(count: int) -> None:
        if count == when:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)  # signals are handled between two instructions of Python

    return during


def test_a_run_goes_on_until_the_back_end_is_done(bound):
    result = run(hand_built.Fake(), bound, hand_built.FakeOptions(steps=7))
    assert result.status is Status.SOLVED
    assert result["b"] == 7.0


def test_the_result_knows_its_options_and_its_seconds(bound):
    result = run(hand_built.Fake(), bound, hand_built.FakeOptions(seed=4))
    assert result.options["seed"] == 4
    assert result.options["steps"] == 5
    assert result.statistics["seconds"] >= 0
    assert result.statistics["steps"] == 5


def test_progress_is_told_after_each_step_in_order(bound):
    told = []
    run(hand_built.Fake(), bound, hand_built.FakeOptions(), progress=lambda share, text: told.append((share, text)))
    assert told == [(k / 5, f"step {k}") for k in range(1, 6)]


def test_ctrl_c_lets_the_step_end_and_keeps_it(bound):
    result = run(hand_built.Fake(during=interrupt(2)), bound, hand_built.FakeOptions())
    assert result.status is Status.INTERRUPTED
    assert result["b"] == 3.0, "the step in which Ctrl-C came was completed"
    assert not result.status.ok


def test_ctrl_c_in_the_last_step_leaves_a_solved_problem_solved(bound):
    result = run(hand_built.Fake(during=interrupt(4)), bound, hand_built.FakeOptions())
    assert result.status is Status.SOLVED


def test_a_second_ctrl_c_raises_at_once(bound):
    with pytest.raises(KeyboardInterrupt):
        run(hand_built.Fake(during=interrupt(1, times=2)), bound, hand_built.FakeOptions())


def test_ctrl_c_before_there_is_anything_to_keep_raises(bound):
    def starting() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        run(hand_built.Fake(starting=starting), bound, hand_built.FakeOptions())


def test_the_users_own_handler_of_ctrl_c_is_left_alone_and_its_exception_kept(bound):
    def own(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, own)
    try:
        result = run(hand_built.Fake(during=interrupt(2)), bound, hand_built.FakeOptions())
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.status is Status.INTERRUPTED
    assert result["b"] == 2.0, "the step in which the exception came is lost, those before it are not"


def test_the_default_handler_is_back_after_a_run_also_after_a_failing_one(bound):
    run(hand_built.Fake(), bound, hand_built.FakeOptions())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def fail(count: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(hand_built.Fake(during=fail), bound, hand_built.FakeOptions())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_in_another_thread_works(bound):
    found = []
    thread = threading.Thread(target=lambda: found.append(run(hand_built.Fake(), bound, hand_built.FakeOptions())))
    thread.start()
    thread.join()
    assert found[0].status is Status.SOLVED


def test_a_time_limit_keeps_what_was_reached(bound):
    result = run(hand_built.Fake(during=lambda _: time.sleep(0.02)), bound, hand_built.FakeOptions(time_limit=0.01))
    assert result.status is Status.TIME_LIMIT
    assert result["b"] == 1.0


def test_a_callback_stops_the_run_by_returning_true(bound):
    result = run(hand_built.Fake(), bound, hand_built.FakeOptions(), callback=lambda state: state.count == 3)
    assert result.status is Status.INTERRUPTED
    assert result["b"] == 3.0


def test_a_callback_that_returns_nothing_sees_every_state(bound):
    seen = []
    run(hand_built.Fake(), bound, hand_built.FakeOptions(), callback=lambda state: seen.append(state.count))
    assert seen == [1, 2, 3, 4, 5]


def test_a_run_goes_on_from_a_state(bound):
    result = run(hand_built.Fake(), bound, hand_built.FakeOptions(), state=hand_built.FakeState(4))
    assert result.statistics["steps"] == 5


def test_what_a_back_end_refuses_of_the_data_is_an_error_before_it_starts(bound):
    class Picky(hand_built.Fake):
        def refuses_data(self, problem, options: CommonOptions):
            return ["it needs more samples than features"]

    with pytest.raises(SolverError, match="more samples than features") as caught:
        run(Picky(), bound, hand_built.FakeOptions())
    assert caught.value.diagnostics[0].code == "SPL506"
