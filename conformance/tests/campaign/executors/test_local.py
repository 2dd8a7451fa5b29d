"""Shards in one process after the other or in several at once: the same rows, and nothing left when it is cut off."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from kipcheck.conformance.campaign.executors.local import Executor, Progress, inline, pool
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.process.child_outcome import RETRY_FACTOR
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.tests.support.shards import little, shard, undisturbed

CHECKS = ("group/generations",)


def silent(progress: Progress) -> None:
    """To say nothing."""


@pytest.fixture(scope="module")
def two() -> Iterator[Executor]:
    """A pool whose zygotes begin under another seed of hashes than this process has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", "5")
        with pool(2, bounds=little) as executor:
            assert (executor.name, executor.slots) == ("pool", 2)
            yield executor


def digests(rows: Sequence[Row]) -> dict[int, str]:
    found = {row.shard: row.digest for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.integration
def test_a_pool_gives_the_rows_of_this_very_process_whatever_ran_before_in_the_same_zygote(two: Executor) -> None:
    """One of its zygotes holds two of them, the second one warm; here they are held in another order."""
    shards = [shard(number=number, cases=15, checks=CHECKS) for number in range(3)]
    reported: list[Progress] = []
    rows = list(two.run(shards, b"", reported.append))
    assert all(row.status == "done" and row.cases == 15 for row in rows)
    assert digests(rows) == digests([undisturbed(each)[0] for each in reversed(shards)])
    assert len({row.digest for row in rows}) == 3
    assert {each.total for each in reported} == {3}
    assert [each.done for each in reported] == sorted(each.done for each in reported)
    assert reported[0] == Progress(0, 2, 3)
    assert reported[-1] == Progress(3, 0, 3)


@pytest.mark.faults
def test_inline_gives_the_same_rows_one_after_the_other() -> None:
    shards = [shard(number=number) for number in range(2)]
    reported: list[Progress] = []
    with inline(bounds=little) as one:
        assert (one.name, one.slots) == ("inline", 1)
        rows = list(one.run(shards, b"", reported.append))
    assert [row.digest for row in rows] == [undisturbed(each)[0].digest for each in shards]
    assert max(each.running for each in reported) == 1


def test_bad_shards_stop_nothing_and_doubtful_ones_are_run_again_at_the_end(two: Executor, tmp_path: Path) -> None:
    shards = [
        shard(f"drill:allocate@2,once={tmp_path / 'done'}", number=0),
        shard("drill:allocate@2", number=1),
        shard("drill:segfault@2", number=2),
        shard(number=3),
    ]
    reported: list[Progress] = []
    rows = list(two.run(shards, b"", reported.append))
    assert {row.shard: (row.status, row.at_case) for row in rows} == {
        0: ("done", None), 1: ("memory", 1), 2: ("crashed", 1), 3: ("done", None),
    }  # fmt: skip
    assert {row.shard: row.attempt for row in rows} == {0: 1, 1: 1, 2: 0, 3: 0}
    assert {row.shard for row in rows[:2]} == {2, 3}
    assert max(each.running for each in reported if each.done < 2) == 2
    assert {each.running for each in reported if each.done >= 3} == {0, 1}


def processes(below: int) -> set[int]:
    """All descendants."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = process_tree.parent_of(int(name))
        except OSError:
            continue
    found: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in found | {below}} - found:
        found |= more
    return found


SLEEPING: list[Shard] = [
    shard(number=0), *(shard("drill:sleep@1", number=number) for number in (1, 2, 3)),
]  # fmt: skip


@pytest.mark.skipif(not process_tree.LINUX, reason="there is no /proc")
def test_ctrl_c_leaves_the_rows_so_far_and_no_process(two: Executor) -> None:
    before = processes(os.getpid())
    rows: list[Row] = []

    def interrupt(progress: Progress) -> None:
        if progress.done and progress.running == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        rows.extend(two.run(SLEEPING, b"", interrupt))
    assert [row.shard for row in rows] == [0]
    assert not processes(os.getpid()) - before


@pytest.mark.faults
def test_closing_the_rows_stops_what_runs_and_the_executor_goes_on(two: Executor) -> None:
    with closing(two.run(SLEEPING, b"", silent)) as rows:
        assert next(rows).shard == 0
    assert not processes(os.getpid())
    assert [row.status for row in two.run([shard()], b"", silent)] == ["done"]


DRIVER = """
import signal, sys
from kipcheck.conformance.campaign.executors.local import pool
from kipcheck.conformance.tests.support.shards import little
from kipcheck.conformance.tests.campaign.executors.test_local import SLEEPING
with pool(2, bounds=little) as executor:
    for row in executor.run(SLEEPING, b"", lambda progress: print(progress.done, progress.running, flush=True)):
        pass
"""


@pytest.mark.faults
@pytest.mark.skipif(not process_tree.LINUX, reason="there is no /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_a_driver_however_it_ends(number: signal.Signals) -> None:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert driver.stdout is not None
    while driver.stdout.readline().split() != [b"1", b"2"]:
        assert driver.poll() is None
    until = time.monotonic() + 20
    while len(left := processes(driver.pid)) < 4 and time.monotonic() < until:  # two zygotes and their children
        time.sleep(0.05)
    assert len(left) == 4
    driver.send_signal(number)
    driver.wait(20)
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in left) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in left if Path(f"/proc/{pid}").exists()]


@pytest.mark.faults
def test_a_hang_is_waited_for_ten_times_as_long_before_it_counts(two: Executor) -> None:
    (row,) = two.run([shard("drill:hang@1")], b"", silent)
    assert (row.status, row.at_case, row.attempt) == ("timeout", 0, 1)
    assert row.detail.startswith(f"more than {0.3 * RETRY_FACTOR:g} s of processor time in one place")
