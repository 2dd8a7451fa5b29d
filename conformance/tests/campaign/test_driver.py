"""A whole campaign, as the command line drives it: planned, interrupted, resumed, told."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kipcheck.conformance.campaign import driver
from kipcheck.conformance.campaign.directory import starting_corpus
from kipcheck.conformance.campaign.driver import CampaignRequest, Outcome, Ready, campaign
from kipcheck.conformance.campaign.executors import local
from kipcheck.conformance.campaign.executors.choice import EXECUTORS, Chosen
from kipcheck.conformance.campaign.executors.local import Progress, Tick
from kipcheck.conformance.campaign.files import Full
from kipcheck.conformance.campaign.manifest import Manifest
from kipcheck.conformance.campaign.plan import MOST_SHARD, Aim, Plan, Shard, shard_size
from kipcheck.conformance.campaign.report import campaign_report, row_files
from kipcheck.conformance.campaign.report.campaign_report import CampaignReport
from kipcheck.conformance.campaign.rows import Count, Found, Kept, Row
from kipcheck.conformance.cli import campaign as command, main
from kipcheck.conformance.core import ledger as core_ledger
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.tests.support import broken_testees
from kipcheck.conformance.tests.support.without_arrow import without_arrow

MUTANT = "miniature/stuck-epoch"
SMALL = CampaignRequest(
    targets=(MUTANT,), checks=("features/epochs", "features/gating"), cases=120, rounds=2,
    executor="inline", workers=1,
)  # fmt: skip


def plan(cases: int | None = 100, rounds: int | None = 2, seed: int = 0, aims: int = 1) -> Plan:
    names = tuple(Aim(f"target-{number}", "1") for number in range(aims))
    size = shard_size(cases or 1, rounds or 1)
    return Plan("c", names, "apache", ("wire/damage",), "mixed", seed, cases, rounds, size)


@given(st.integers(1, 10**6), st.integers(1, 9), st.integers(1, 3))
def test_the_shards_of_a_plan_hold_its_cases_and_no_more(cases: int, rounds: int, aims: int) -> None:
    made = plan(cases, rounds, aims=aims)
    shards = [shard for round_ in range(rounds) for shard in made.shards(round_, "")]
    for aim in made.aims:
        assert sum(shard.cases for shard in shards if shard.target == aim.name) == cases
    assert all(0 < shard.cases <= MOST_SHARD for shard in shards)
    assert len({shard.key for shard in shards}) == len(shards)


def test_what_is_drawn_in_a_shard_depends_on_campaign_seed_round_shard_and_target_alone() -> None:
    one = next(plan().shards(0, ""))
    others = [
        replace(one, campaign="d"), replace(one, seed=1), replace(one, round=1), replace(one, shard=1),
        replace(one, target="another"),
    ]  # fmt: skip
    assert len({each.own_seed for each in (one, *others)}) == 6
    alike = [replace(one, cases=7), replace(one, corpus="x"), replace(one, stage="reduce"), replace(one, checks=())]
    assert {each.own_seed for each in alike} == {one.own_seed}


def row() -> Row:
    found = Found(
        "a", "b", "apache", "M", ("x", "y"), "why", "id", "{}", ("M", 3), "", 1, 2, "k", 4, 5,
        (("M", 3), ("M", None)), "",
    )  # fmt: skip
    return Row(
        "c", 1, 2, "hold", "t", "1.0", "mixed", 3, 100, "", "done", cases=9, steps=10,
        counts=(Count("a", "M", None, "", "PASS", 9),), coverage=(1, 2), found=(found,),
        kept=(Kept("a", "apache", "M", 3, "{}", (1, 2), 4),),
    )  # fmt: skip


def test_a_row_is_read_back_from_json_as_it_was() -> None:
    one = row().sealed()
    assert Row.of(json.loads(json.dumps(one.plain))) == one
    with pytest.raises(TypeError, match="unknown field colour: the fields are campaign"):
        Row.of({**one.plain, "colour": "red"})


def test_the_digest_of_a_row_minds_what_came_of_cases_and_neither_words_nor_clocks() -> None:
    one = row().sealed()
    assert replace(one, host="h", wall_ms=5, attempt=2, troubles=("t",)).sealed().digest == one.digest
    (found,) = one.found
    assert replace(one, found=(replace(found, why="otherwise said"),)).sealed().digest == one.digest
    others = [
        replace(one, status="crashed"), replace(one, cases=8), replace(one, coverage=(1,)), replace(one, found=()),
        replace(one, counts=()), replace(one, kept=()), replace(one, found=(replace(found, case_id="other"),)),
    ]  # fmt: skip
    assert one.digest not in {each.sealed().digest for each in others}


# ---- whole campaigns


@pytest.fixture(scope="module")
def inline() -> Iterator[Ready]:
    """One executor for all of them: to begin it takes longer than such a campaign."""
    with local.inline() as executor:

        @contextmanager
        def ready(*arguments: Any) -> Iterator[Chosen]:
            yield Chosen(executor, "for a test")

        yield ready


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, inline: Ready) -> Path:
    """One that was not disturbed."""
    out = tmp_path_factory.mktemp("whole")
    outcome = campaign(replace(SMALL, out=out), inline)
    assert (outcome.exit_code, outcome.why) == (exits.FAILED, "")
    return out


@pytest.mark.integration
def test_a_planted_defect_is_found_and_shrunk_and_its_replay_reproduces_it(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filed = [json.loads(path.read_text()) for path in (whole / "failures").glob("*.json")]
    (one,) = [each for each in filed if each["invariant"] == "features/epoch-grows"]
    assert one["target"] == MUTANT
    assert len(one["case"]["steps"]) <= 4
    assert main.run(["replay", one["id"], "--out", str(whole)]) == exits.FAILED
    assert "fails again" in capsys.readouterr().out


@pytest.mark.integration
def test_results_of_a_command_have_the_name_that_it_is_given(
    tmp_path: Path, inline: Ready, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = f"cmd:{sys.executable} -I -S {broken_testees.__file__} forgets-a-field"
    asked = replace(
        SMALL, targets=(argv,), names=("mine",), checks=("wire/two-readings",), cases=30, rounds=1, out=tmp_path
    )
    assert campaign(asked, inline).exit_code == exits.FAILED
    ledger = core_ledger.read(tmp_path / core_ledger.NAME)
    assert {each.target for each in ledger.failures} == {"mine"}
    assert campaign(replace(asked, targets=(MUTANT,)), inline).exit_code == exits.USAGE  # it is no command
    assert main.run(["campaign", "--resume", str(tmp_path), "--name", "other"]) == exits.USAGE
    assert "--name is fixed by the manifest" in capsys.readouterr().err


@pytest.mark.integration
def test_on_a_terminal_a_campaign_ends_with_colours(
    whole: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kipcheck.conformance.campaign.driver.campaign", lambda asked: Outcome(exits.FAILED, "plain"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main.run(["campaign", "--out", str(whole)]) == exits.FAILED
    assert capsys.readouterr().out == "plain\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    main.run(["campaign", "--out", str(whole)])
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main.run(["campaign", "--out", str(whole)])
    assert "\x1b" not in (text := capsys.readouterr().out) and "exit 1" in text


@pytest.mark.integration
def test_the_folder_holds_what_others_read(whole: Path) -> None:
    assert {each.name for each in whole.iterdir()} >= {
        "report.html", "manifest.json", "ledger", "corpus", "failures", "ledger.jsonl", "results.json", "junit.xml",
    }  # fmt: skip
    assert sorted(each.name for each in (whole / "ledger").iterdir()) == ["round=0", "round=1"]
    manifest = Manifest.read(whole)
    assert manifest.complete
    assert manifest.hash == row_files.read(whole).hash
    result = [each for each in row_files.read(whole).rows.values() if each.stage == "hold"]
    assert sum(each.cases for each in result) == 120


class _Stub:
    def fold(self, campaign: str, round_: int, parts: Sequence[row_files.Part]) -> Iterator[row_files.Part]:
        yield from parts


class _Faulty(_Stub):
    """Runs so many shards, and then something happens."""

    name, slots = "faulty", 1

    def __init__(self, inner: local.Executor, shards: int, what: BaseException) -> None:
        self.inner, self.left, self.what = inner, shards, what

    def run(self, shards: Sequence[Shard], snapshot: bytes, tick: Tick) -> Generator[Row, None, None]:
        for each in self.inner.run(shards, snapshot, tick):
            if not self.left:
                raise self.what
            self.left -= 1
            yield each


def disturbed(asked: CampaignRequest, inline: Ready, shards: int, what: BaseException) -> Outcome:
    @contextmanager
    def faulty(*arguments: Any) -> Iterator[Chosen]:
        with inline("inline", 1, None, None, False) as chosen:
            yield Chosen(_Faulty(chosen.executor, shards, what), "for a test")

    return campaign(asked, faulty)


@pytest.mark.parametrize("shards", [2])
@pytest.mark.integration
def test_one_that_is_interrupted_tells_what_it_did_and_goes_on_to_the_same_end(
    tmp_path: Path, whole: Path, inline: Ready, shards: int
) -> None:
    stopped = disturbed(replace(SMALL, out=tmp_path), inline, shards, KeyboardInterrupt())
    assert (stopped.exit_code, stopped.why) == (exits.FAILED, "interrupted")
    assert "INCOMPLETE" in stopped.text
    assert not Manifest.read(tmp_path).complete
    assert len(row_files.read(tmp_path).rows) == shards
    again = campaign(replace(SMALL, out=tmp_path))
    assert again.exit_code == exits.USAGE, "it would be lost"
    assert f"--resume {tmp_path}" in again.why
    assert campaign(CampaignRequest(out=tmp_path, resume=True), inline).exit_code == exits.FAILED
    assert Manifest.read(tmp_path).hash == Manifest.read(whole).hash
    assert failures(tmp_path) == failures(whole)


def failures(folder: Path) -> set[str]:
    return {path.stem for path in (folder / "failures").glob("*.json")}


def test_time_that_runs_out_leaves_a_number_of_cases_undecided(tmp_path: Path) -> None:
    outcome = campaign(replace(SMALL, out=tmp_path, budget=0.0))
    assert outcome.exit_code == exits.UNDECIDED
    assert outcome.why == "the budget ran out in round 1"
    assert not row_files.read(tmp_path).rows


class _Watched(_Stub):
    """Counts the rows in the ledger whenever it is asked for the next one."""

    name, slots = "watched", 1

    def __init__(self, inner: Any, out: Path) -> None:
        self.inner, self.out, self.stored = inner, out, list[int]()

    def run(self, shards: Sequence[Shard], snapshot: bytes, tick: Tick) -> Generator[Row, None, None]:
        for row in self.inner.run(shards, snapshot, tick):
            yield row
            self.stored.append(len(row_files.read(self.out).rows))


def test_a_row_is_written_when_its_shard_ends(tmp_path: Path, inline: Ready) -> None:
    """So a driver that is killed loses the shards that are running, and no others."""
    watched: list[_Watched] = []

    @contextmanager
    def ready(*arguments: Any) -> Iterator[Chosen]:
        with inline(*arguments) as chosen:
            watched.append(_Watched(chosen.executor, tmp_path))
            yield Chosen(watched[0], "for a test")

    campaign(replace(SMALL, out=tmp_path, cases=500, rounds=1), ready)
    assert watched[0].stored == [*range(1, len(watched[0].stored) + 1)]


@pytest.mark.parametrize(("interval_s", "reports"), [(driver.REPORT_INTERVAL_S, [True]), (0.0, [False, False, True])])
def test_a_short_campaign_is_reported_once(
    tmp_path: Path, inline: Ready, monkeypatch: pytest.MonkeyPatch, interval_s: float, reports: list[bool]
) -> None:
    """After its last round, there is the report at the end only."""
    written: list[bool] = []

    def report(out: Path, manifest: Any, summary: Any, complete: bool, *more: Any) -> CampaignReport:
        written.append(complete)
        return CampaignReport(0, 0, 0, 0, "")

    monkeypatch.setattr(campaign_report, "report", report)
    monkeypatch.setattr(driver, "REPORT_INTERVAL_S", interval_s)
    campaign(replace(SMALL, out=tmp_path, cases=6, rounds=3), inline)
    assert written == reports


class _Endless(_Stub):
    """Its shards do not end."""

    name, slots = "endless", 1

    def run(self, shards: Sequence[Shard], snapshot: bytes, tick: Tick) -> Generator[Row, None, None]:
        while True:
            time.sleep(0.02)
            tick(Progress(0, 1, len(shards)))
            yield from ()


@contextmanager
def endless(*arguments: Any) -> Iterator[Chosen]:
    yield Chosen(_Endless(), "for a test")


def test_shards_that_run_when_the_budget_ends_are_stopped(tmp_path: Path) -> None:
    outcome = campaign(replace(SMALL, out=tmp_path, budget=1.0), endless)
    assert (outcome.exit_code, outcome.why) == (exits.UNDECIDED, "the budget ran out in round 1")


def test_what_the_budget_left_unreduced_is_named_and_reduced_by_resume(
    tmp_path: Path, inline: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(driver._CampaignRun, "_is_out_of_time_to_reduce", lambda run: True)
        outcome = campaign(replace(SMALL, rounds=1, cases=40, out=tmp_path, budget=600.0), inline)
    assert outcome.exit_code == exits.FAILED
    number = len(failures(tmp_path))
    assert number
    assert outcome.why.startswith("the budget ran out in round 1; ")
    assert outcome.why.endswith(f" not reduced: --resume {tmp_path} reduces more")
    assert not any(json.loads(each.read_text())["shrunk"] for each in (tmp_path / "failures").glob("*.json"))
    assert campaign(CampaignRequest(out=tmp_path, resume=True), inline).why == ""
    assert any(json.loads(each.read_text())["shrunk"] for each in (tmp_path / "failures").glob("*.json"))


@pytest.mark.integration
def test_what_cannot_be_gone_on_with_is_said(tmp_path: Path, whole: Path) -> None:
    nothing = campaign(CampaignRequest(out=tmp_path, resume=True, executor="inline"))
    assert nothing.exit_code == exits.USAGE
    assert "contains no manifest.json" in nothing.why
    reported = json.loads((whole / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**reported, "kipcheck": "0.0.1"}))
    older = campaign(CampaignRequest(out=tmp_path, resume=True, executor="inline"))
    assert older.exit_code == exits.USAGE
    assert "started by kipcheck 0.0.1" in older.why


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        ({"targets": ("nobody",)}, exits.USAGE, "unknown target 'nobody'"),
        ({"checks": ("wire/nothing",)}, exits.USAGE, "no check matches 'wire/nothing'"),
        ({"targets": ("kafka-python",)}, exits.USAGE, "nothing is selected"),
        ({"master": "local[2]"}, exits.USAGE, "--master is for Spark: omit it, or use --executor spark"),
        ({"corpus": Path("nowhere")}, exits.USAGE, "no corpus to start with"),
    ],
)
def test_what_cannot_be_begun_is_said_in_a_line(tmp_path: Path, change: Any, code: int, why: str) -> None:
    outcome = campaign(replace(SMALL, out=tmp_path, **change))
    assert outcome.exit_code == code
    assert why in outcome.why
    assert "\n" not in outcome.why


@pytest.mark.integration
def test_the_next_campaign_begins_with_the_corpus_of_the_last(tmp_path: Path, whole: Path, inline: Ready) -> None:
    campaign(replace(SMALL, out=tmp_path, corpus=whole, cases=20, rounds=1, seed=1), inline)
    (first, *_) = row_files.read(tmp_path).rows.values()
    assert first.corpus == Manifest.read(tmp_path).plan.corpus != ""
    assert not starting_corpus(whole).keys.intersection(first.coverage), "what was seen is not new"
    assert len(first.coverage) < 5, "and in so few cases there is little else"


def test_the_command_line_names_what_there_is() -> None:
    assert command.EXECUTORS == EXECUTORS


@pytest.mark.integration
def test_a_campaign_that_is_resumed_brings_its_options_along(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["campaign", "--resume", str(whole), "--seed", "3"]) == exits.USAGE
    assert "--seed is fixed by the manifest" in capsys.readouterr().err


def copied(whole: Path, to: Path) -> Path:
    shutil.copytree(whole, to, dirs_exist_ok=True)
    return to


@pytest.mark.integration
def test_a_damaged_file_costs_its_shards_which_are_held_again(tmp_path: Path, whole: Path, inline: Ready) -> None:
    out = copied(whole, tmp_path)
    (wave,) = (out / "ledger" / "round=1").iterdir()
    wave.write_bytes(wave.read_bytes()[:100])
    for each in (out / "corpus").iterdir():
        each.write_bytes(b"not a corpus")
    outcome = campaign(CampaignRequest(out=out, resume=True), inline)
    assert outcome.exit_code == exits.FAILED
    assert f"{wave.name} is damaged" in outcome.text
    assert Manifest.read(out).hash == Manifest.read(whole).hash
    assert failures(out) == failures(whole)


@pytest.mark.integration
def test_where_the_disk_is_full_it_ends_and_goes_on_when_there_is_room(
    tmp_path: Path, whole: Path, inline: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = copied(whole, tmp_path)
    shutil.rmtree(out / "ledger" / "round=1")

    def full(folder: Path, round_: int, wave: int, rows: Any, *more: Any) -> Path:
        raise Full(28, folder / "ledger" / "wave", 4000)

    with monkeypatch.context() as patched:
        patched.setattr(row_files, "write", full)
        outcome = campaign(CampaignRequest(out=out, resume=True), inline)
    assert "No space left on device" in outcome.why
    footer = core_ledger.read(out / "ledger.jsonl").footer
    assert footer is not None
    assert footer.exits == (exits.FAILED, exits.UNDECIDED)
    assert f"--resume {out}" in outcome.why
    assert not Manifest.read(out).complete
    campaign(CampaignRequest(out=out, resume=True), inline)
    assert Manifest.read(out).hash == Manifest.read(whole).hash


@pytest.mark.faults
@pytest.mark.parametrize("share", [0.15, 0.5, 0.8])
@pytest.mark.integration
def test_on_a_disk_that_is_really_full_it_says_what_to_do_and_goes_on_to_the_same_end(
    tmp_path: Path, whole: Path, share: float
) -> None:
    """A file system with room for a share of what there is to write, mounted for this campaign alone."""
    pages = sum(-(-path.stat().st_size // 4096) for path in whole.rglob("*") if path.is_file())
    out, kipcheck = tmp_path / "disk" / "out", f"{sys.executable} -m kipcheck campaign --executor inline"
    out.parent.mkdir()
    asked = f"--target {MUTANT} --check features/epochs --check features/gating --cases 120 --rounds 2"
    script = f"""
mount -t tmpfs -o size={int(pages * share) * 4}k tmpfs {out.parent} || exit 77
{kipcheck} {asked} --out {out} 2>&1 >/dev/null | tail -1; echo ${{PIPESTATUS[0]}}
mount -o remount,size=64m {out.parent} && {kipcheck} --resume {out} >/dev/null 2>&1; echo $?
cp {out}/manifest.json {tmp_path}
"""
    made = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, check=False)
    if made.returncode == 77 or "unshare:" in made.stderr:
        pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    why, full, resumed = made.stdout.splitlines()
    assert "No space left on device; free some space, and continue with --resume" in why
    assert (int(full), int(resumed)) == (exits.UNDECIDED, exits.FAILED)
    assert Manifest.read(tmp_path).hash == Manifest.read(whole).hash


@pytest.mark.faults
def test_a_driver_that_is_killed_is_followed_by_another_to_the_same_end(tmp_path: Path) -> None:
    """kill -9, wherever it is: what was written whole counts, and nothing else."""
    asked = replace(SMALL, cases=1500, rounds=2, workers=2, executor="pool")
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "killed"
    campaign(replace(asked, out=undisturbed))
    arguments: tuple[str, ...] = (
        "campaign", "--target", MUTANT, "--check", "features/epochs", "--check", "features/gating", "--cases", "1500",
        "--rounds", "2", "--executor", "pool", "--workers", "2",
    )  # fmt: skip
    more = ("--out", str(out))
    for seconds in (0.0, 1.0, 2.0):
        driver = subprocess.Popen(
            [sys.executable, "-m", "kipcheck", *arguments, *more], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        while driver.poll() is None and not list(out.glob("ledger/round=*/wave-*")):
            time.sleep(0.05)
        time.sleep(seconds)
        if driver.poll() is None:
            os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        arguments, more = ("campaign", "--executor", "pool", "--workers", "2"), ("--resume", str(out))
    campaign(CampaignRequest(out=out, resume=True, executor="pool", workers=2))
    assert Manifest.read(out).hash == Manifest.read(undisturbed).hash
    assert failures(out) == failures(undisturbed)


@pytest.mark.integration
def test_what_only_pyarrow_can_read_is_told_in_one_line(whole: Path, inline: Ready) -> None:
    with without_arrow():
        outcome = campaign(replace(SMALL, out=whole, resume=True), inline)
    assert outcome.exit_code == exits.USAGE
    assert "is Parquet: to read it, pip install pyarrow " in outcome.why
