"""Worker processes: their results in order, what they raise, and what is left when one is lost."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kipcheck.conformance.engine.execution.pool import Pool, WorkerLost, pool


def half(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    if number == 666:
        os.kill(os.getpid(), signal.SIGKILL)
    return number // 2


def same(data: bytes) -> bytes:
    return data


def sleeps(number: int) -> None:
    time.sleep(600)


class Wordy(Exception):
    """Pickle cannot make it again from its text."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def wordy(number: int) -> int:
    raise Wordy("no", "way")


def test_results_come_in_the_order_of_items_and_none_is_begun_once_it_is_too_late() -> None:
    with pool(2, half) as processes:
        assert [*processes.map(range(0, 100, 2))] == [(each, each // 2) for each in range(0, 100, 2)]
        turns = iter([True, True, False, False])
        assert [*processes.map([2, 4, 6, 8], lambda: next(turns))] == [(2, 1), (4, 2), (6, None), (8, None)]
        assert [*processes.map([])] == []


def test_items_and_results_may_be_larger_than_a_pipe_holds() -> None:
    """Traffic of a live client is: this process waited for workers, which waited for it."""
    items = [bytes([each]) * size for each in range(6) for size in (10, 300_000)]
    with pool(2, same) as processes:
        assert [*processes.map(items)] == [(each, each) for each in items]


def test_what_a_worker_raises_is_raised_where_its_result_is_taken() -> None:
    with pool(1, half) as processes, pytest.raises(ValueError, match="3 is odd"):
        [*processes.map([2, 3])]
    with pool(1, wordy) as processes, pytest.raises(RuntimeError, match="Wordy: no way"):
        [*processes.map([2])]


@contextmanager
def refused() -> Iterator[None]:
    raise LookupError("there is no jar")
    yield


def test_a_worker_that_cannot_begin_says_why() -> None:
    with pool(1, half, refused) as processes, pytest.raises(LookupError, match="there is no jar"):
        [*processes.map([2])]


def test_the_loss_of_a_worker_is_an_error_and_ends_the_others() -> None:
    made: list[Pool[int, int]] = []
    with pytest.raises(WorkerLost, match="signal 9"), pool(2, half) as processes:
        made.append(processes)
        [*processes.map([666, *range(0, 100, 2)])]
    for worker in made[0].workers.values():
        assert worker.exitcode is not None


def test_a_pool_that_is_left_in_the_middle_leaves_no_worker() -> None:
    with pytest.raises(KeyboardInterrupt), pool(2, sleeps) as processes:
        for number in range(6):
            processes.give(number)
        assert not processes.takes_more
        raise KeyboardInterrupt
    assert {worker.exitcode for worker in processes.workers.values()} <= {1, -signal.SIGTERM}
