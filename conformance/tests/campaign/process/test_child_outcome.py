"""Whatever the child of a shard does becomes a row that keeps its case, and nothing outlives it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kipcheck.conformance.campaign.corpus.entries import Snapshot, grown
from kipcheck.conformance.campaign.plan import Bounds, Shard
from kipcheck.conformance.campaign.process.child_outcome import (
    OUTPUT_LIMIT,
    ROW,
    ChildOutcome,
    is_doubtful,
    packed,
    row_of,
    stretched,
)
from kipcheck.conformance.campaign.process.journal import ROOM, Entry, Journal
from kipcheck.conformance.campaign.process.shard_pool import CannotRunShards, ShardRunner
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.targets.fault_injection import KINDS
from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.targets.registry import target as target_of
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.targets.transport.pipe import Command, Pipe, half_of_memory
from kipcheck.conformance.tests.support.shards import EMPTY, little, shard, undisturbed

SOON_S = 20.0


@pytest.fixture(scope="module")
def nursery() -> Iterator[ShardRunner]:
    with ShardRunner(
        bounds=lambda shard: replace(little(shard), wall_s=3 if "sleep" in shard.target else 30)
    ) as nursery:
        yield nursery


@pytest.fixture(scope="module")
def stubs() -> Iterator[ShardRunner]:
    with ShardRunner(f"{__name__}:stub", bounds=little) as nursery:
        yield nursery


def test_a_child_holds_a_shard_as_this_process_does(nursery: ShardRunner) -> None:
    row = nursery.run_shard(shard(), b"")
    assert row.status == "done"
    assert row.cases == 12
    assert row == replace(
        row.sealed(), **{name: getattr(row, name) for name in ("host", "python", "wall_ms", "cpu_ms", "started")}
    )
    assert row.digest == undisturbed(shard())[0].digest
    assert row.host and row.python and row.started
    assert row.cpu_ms > 0


@pytest.mark.parametrize(
    ("drill", "status", "why"),
    [
        ("segfault", "crashed", "killed by SIGSEGV"),
        ("exit", "crashed", "left with exit code 0 without a result"),
        ("raise", "crashed", "raised RuntimeError: a drill"),
        ("hang", "timeout", "more than 0.3 s of processor time in one place"),
        ("allocate", "memory", "more than 1024 MiB"),
    ],
)
def test_what_a_child_does_becomes_a_row_with_its_case(drill: str, status: str, why: str, nursery: ShardRunner) -> None:
    found = shard(f"drill:{drill}@6")
    row = nursery.run_once(found, b"")
    assert (row.status, row.at_case) == (status, 5)
    assert row.detail.startswith(why)
    assert Case.of(json.loads(row.case)) == undisturbed(found)[1][5]
    assert (row.cases, row.counts, row.found) == (0, (), ())
    assert row.digest == row.sealed().digest
    assert is_doubtful(row) == (status in ("timeout", "memory"))
    assert drill in ("exit", "raise") or f" in _{drill}\n" in row.detail


def test_garbage_is_not_believed_though_a_row_follows_it(nursery: ShardRunner) -> None:
    row = nursery.run_once(shard("drill:garbage@6"), b"")
    assert (row.status, row.at_case) == ("garbled", 6)
    assert "bytes that are not a row" in row.detail


@pytest.mark.integration
def test_what_sleeps_is_stopped_and_has_its_case(nursery: ShardRunner) -> None:
    row = nursery.run_once(shard("drill:sleep@1"), b"")
    assert (row.status, row.at_case) == ("timeout", 0)
    assert " in _sleep\n" in row.detail


def test_what_was_only_slow_is_held_once_more_and_then_counts(nursery: ShardRunner, tmp_path: Path) -> None:
    found = shard(f"drill:allocate@3,once={tmp_path / 'done'}")
    row = nursery.run_shard(found, b"")
    assert (row.status, row.attempt) == ("done", 1)
    assert row.digest == undisturbed(found)[0].digest


@pytest.mark.faults
def test_a_zygote_that_is_killed_once_costs_nothing(nursery: ShardRunner, tmp_path: Path) -> None:
    found = shard(f"drill:parent@3,once={tmp_path / 'done'}")
    assert nursery.run_shard(found, b"").digest == undisturbed(found)[0].digest


@pytest.mark.faults
def test_a_zygote_that_is_killed_again_and_again_costs_the_shard_and_nothing_else(nursery: ShardRunner) -> None:
    found = shard("drill:parent@3")
    row = nursery.run_shard(found, b"")
    assert (row.status, row.at_case) == ("crashed", 2)
    assert Case.of(json.loads(row.case)) == undisturbed(found)[1][2]
    assert nursery.run_shard(shard(), b"").digest == undisturbed(shard())[0].digest


@pytest.mark.faults
def test_what_hangs_again_with_ten_times_as_much_counts(nursery: ShardRunner) -> None:
    row = nursery.run_shard(shard("drill:hang@3"), b"")
    assert (row.status, row.at_case, row.attempt) == ("timeout", 2, 1)
    assert row.detail.startswith("more than 3 s")


# ---- what a child leaves behind

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def stub(shard: Shard, snapshot: Snapshot, note: Any, find: Any) -> NoReturn:
    """Does what ``target_version`` says. It leaves processes behind, whose ids go into the file ``target``."""
    if shard.target_version == "limits":
        testee = Pipe(Command(("sh", "-c", "ulimit -v; ulimit -t")))
        while not testee.gone():
            time.sleep(0.01)
        raise RuntimeError(repr(os.read(testee._ends.read_fd, 100)))
    stubborn = (sys.executable, "-c", STUBBORN)
    pids = [Pipe(Command(stubborn)).pid]
    if shard.target_version != "conversing":
        pids += [subprocess.Popen(stubborn).pid, subprocess.Popen(stubborn, start_new_session=True).pid]
    whole = Path(shard.target).with_suffix(".part")
    whole.write_text(" ".join(map(str, (*pids, os.getpid()))))
    whole.rename(shard.target)
    if shard.target_version == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
    raise AssertionError


def counts(shard: Shard, snapshot: Snapshot, note: Any, find: Any) -> Row:
    """Says in which process it runs, or ends it."""
    if shard.target == "ends":
        os._exit(3)
    return replace(shard.empty_row(), detail=str(os.getpid())).sealed()


def stubbed(what: str, tmp_path: Path) -> tuple[Shard, Path]:
    return shard(str(tmp_path / what), target_version=what, stage="reduce", cases=0), tmp_path / what


def gone(pids: Sequence[int]) -> bool:
    until = time.monotonic() + SOON_S
    while time.monotonic() < until:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


def eventually(file: Path) -> list[int]:
    until = time.monotonic() + SOON_S
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    return list(map(int, file.read_text().split()))


@pytest.mark.skipif(not process_tree.LINUX, reason="orphans are handed to an ancestor on Linux only")
@pytest.mark.integration
def test_what_a_child_started_goes_with_it(stubs: ShardRunner, tmp_path: Path) -> None:
    found, pids = stubbed("killed", tmp_path)
    row = stubs.run_once(found, b"")
    assert (row.status, row.detail) == ("crashed", "killed by SIGKILL")
    assert is_doubtful(row)
    assert gone(eventually(pids))
    found, pids = stubbed("stays", tmp_path)
    stubs.begin(found, b"")
    left = eventually(pids)
    stubs.stop()
    assert gone(left)


@pytest.mark.faults
@pytest.mark.skipif(not process_tree.LINUX, reason="a signal at the death of a parent is there on Linux only")
def test_a_child_goes_with_its_zygote_and_a_testee_with_its_child(stubs: ShardRunner, tmp_path: Path) -> None:
    found, pids = stubbed("conversing", tmp_path)
    stubs.begin(found, b"")
    testee, child = eventually(pids)
    os.kill(process_tree.parent_of(child), signal.SIGKILL)
    assert gone([testee, child])
    stubs.stop()


def test_a_child_runs_shards_until_one_of_them_ends_it_or_somebody_does() -> None:
    with ShardRunner(f"{__name__}:counts", bounds=little) as runner:
        first, second = (int(runner.run_once(shard(number=number), b"").detail) for number in range(2))
        assert first == second
        assert runner.run_once(shard("ends"), b"").status == "crashed"
        third = int(runner.run_once(shard(), b"").detail)
        assert third != first
        os.kill(third, signal.SIGKILL)
        row = runner.run_shard(shard(), b"")
        assert (row.status, row.detail == str(third)) == ("done", False)


def test_a_child_whose_target_ran_in_its_own_process_ends_after_the_shard(nursery: ShardRunner) -> None:
    """A drill is not what a new process is: it counts its cases."""
    rows = [nursery.run_once(shard("drill:raise@13"), b"") for _ in range(2)]
    assert [row.status for row in rows] == ["done", "done"]


def test_where_no_signal_tells_of_it_the_end_of_a_pipe_does() -> None:
    code = (
        "import time; from kipcheck.conformance.targets.transport import process_tree; "
        "process_tree.die_with_pipe(0); print(flush=True); time.sleep(600)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(SOON_S) == -signal.SIGKILL


def test_testees_are_not_bound_by_the_limits_of_the_child(stubs: ShardRunner, tmp_path: Path) -> None:
    assert "unlimited\\nunlimited" in stubs.run_once(stubbed("limits", tmp_path)[0], b"").detail


# ---- zygotes that cannot be


def test_it_is_said_why_no_zygote_can_be_begun() -> None:
    with (
        ShardRunner("kipcheck.conformance.nowhere:run") as nursery,
        pytest.raises(CannotRunShards, match=r"No module named 'kipcheck\.conformance\.no"),
    ):
        nursery.run_shard(shard(), b"")


def test_a_corpus_that_is_none_is_no_fault_of_a_shard(nursery: ShardRunner) -> None:
    with pytest.raises(CannotRunShards, match="cannot be read"):
        nursery.run_shard(shard(), b"no corpus")
    assert nursery.run_shard(shard(), b"").status == "done"


def test_each_shard_has_the_corpus_that_it_is_given_and_no_other(nursery: ShardRunner) -> None:
    found = shard()
    corpus = grown(EMPTY, [undisturbed(found)[0]])
    assert corpus.entries
    digests = [nursery.run_shard(found, each).digest for each in (corpus.dump(), b"", corpus.dump())]
    began = undisturbed(found, corpus)[0].digest
    assert digests == [began, undisturbed(found)[0].digest, began]
    assert began != undisturbed(found)[0].digest


# ---- ends and rows

BOUNDS = Bounds(wall_s=10, cpu_s=20, case_cpu_s=2)
ENTRY = Entry(3, 0.0, True, "{}")


def end(**others: Any) -> ChildOutcome:
    about: dict[str, Any] = {
        "code": 0, "stopped": "", "result": b"", "noise": b"", "wall_ms": 1, "cpu_ms": 1, "started": ""
    }  # fmt: skip
    return ChildOutcome(**{**about, **others})


def test_the_row_of_another_shard_or_half_a_row_is_garbage() -> None:
    row = packed(shard().empty_row().sealed())
    assert row_of(shard(), BOUNDS, end(result=row), None).status == "done"
    for wrong in (
        packed(shard(number=1).empty_row().sealed()),
        packed(shard().empty_row()),
        row[:-1],
        ROW,
        row + row,
        ROW + b"[]",
        ROW + b'{"status": 1}',
    ):
        assert row_of(shard(), BOUNDS, end(result=wrong), ENTRY).status == "garbled"


def test_a_row_is_not_believed_of_a_child_that_did_not_leave_in_peace() -> None:
    row = packed(shard().empty_row().sealed())
    assert row_of(shard(), BOUNDS, end(result=row, code=-signal.SIGSEGV), ENTRY).status == "crashed"
    assert row_of(shard(), BOUNDS, end(result=row, code=3), ENTRY).status == "crashed"


def test_no_case_is_blamed_for_the_time_that_a_shard_took_as_a_whole() -> None:
    late = end(code=-signal.SIGXCPU)
    assert row_of(shard(), BOUNDS, late, ENTRY).at_case == 3
    assert row_of(shard(), BOUNDS, late, replace(ENTRY, watched=False)).at_case is None
    stopped = end(code=-signal.SIGKILL, stopped="it did not come to an end")
    assert row_of(shard(), BOUNDS, stopped, replace(ENTRY, since=time.monotonic() - 6)).at_case == 3
    assert row_of(shard(), BOUNDS, stopped, replace(ENTRY, since=time.monotonic())).at_case is None


def test_the_words_of_a_child_are_kept_and_have_no_say_in_the_digest() -> None:
    crash = end(code=3, noise=b"x" * 2 * OUTPUT_LIMIT + b"the end\xff")
    row = row_of(shard(), BOUNDS, crash, ENTRY)
    assert row.detail.endswith("the end\N{REPLACEMENT CHARACTER}")
    assert len(row.detail) < OUTPUT_LIMIT + 100
    assert row.digest == row_of(shard(), BOUNDS, end(code=3), ENTRY).digest


def test_bounds_are_stretched_but_memory_not_beyond_half_of_the_machine() -> None:
    far = stretched(BOUNDS, 10)
    assert (far.wall_s, far.cpu_s, far.case_cpu_s) == (100, 200, 20)
    assert far.memory == max(BOUNDS.memory, min(BOUNDS.memory * 10, half_of_memory()))
    assert stretched(BOUNDS, 0.1).memory == BOUNDS.memory


def test_a_journal_outlives_who_wrote_it_and_names_what_it_has_no_room_for(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w+b") as file:
        os.ftruncate(file.fileno(), ROOM)
        here, there = Journal(file.fileno()), Journal(file.fileno())
        here.clear()
        assert there.read() is None
        for entry in (Entry(7, 1.5, True, "{\N{SNOWMAN}}"), Entry(8, 2.5, False, "")):
            here.write(entry)
            assert there.read() == entry
        here.write(Entry(9, 3.5, False, "x" * ROOM))
        assert there.read() == Entry(9, 3.5, False, "")


# ---- drills


@pytest.mark.parametrize("name", ["drill:", "drill:leap@3", "drill:exit", "drill:exit@0", "drill:exit@3,twice=x"])
def test_what_is_no_drill_is_said_with_what_would_be_one(name: str) -> None:
    with pytest.raises(LookupError, match=r"drill:KIND@N.*hang.*worker"):
        target_of(name)


@pytest.mark.integration
@pytest.mark.parametrize("kind", KINDS)
def test_a_drill_does_nothing_outside_of_a_campaign(kind: str) -> None:
    cases = undisturbed(shard())[1]
    with target_of(f"drill:{kind}@2").open("apache", Role.CODEC) as session:
        assert session.info.name == f"drill:{kind}@2"
        assert len(session.run(cases[:1])) == 1
        with pytest.raises(Broken, match="only into a shard of a campaign"):
            session.run(cases[1:2])
