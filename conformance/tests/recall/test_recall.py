"""The command ``recall``: real runs of mutants and releases, what it prints and records, and its errors."""

import json
import os
import tomllib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.recall import bugs as entries, floor, power, record, runs
from kipcheck.conformance.recall.runs import Job, Run
from kipcheck.conformance.targets.toolchains import environments
from kipcheck.conformance.tests.recall.test_measure import CLEAN, NEW, OLD, failed, failing
from kipcheck.conformance.tests.support.loops import for_each

ENTRIES: Final = f"""\
# Bugs of a client.

[[bug]]
id = "client-1"
link = "https://issues.example/1"
observed = "A member that waits sends no heartbeat."
affected = "{OLD}"
fixed = "{NEW}"
role = "client"
kind = "live"
requirements = ["grp-69"]
counts = [{{ invariant = "client/beats" }}]  # not client/leaves

# ---- coordinators

[[bug]]
id = "broker-2"
link = "https://issues.example/2"
observed = "A member id is given to two members."
affected = "kafka:2.3.0"
fixed = "kafka:2.3.1"
edition = ""
role = "coordinator"
kind = "coordinator"
requirements = []
counts = [{{ invariant = "group/fresh-ids" }}]
"""
FLOOR: Final = "# Totals.\n[found]\n\n[found-with-budget]\n\n[killed]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of entries in place of the real ones."""
    made = tmp_path / "entries"
    made.mkdir()
    (made / "some.toml").write_text(ENTRIES, "utf-8")
    (made / floor.FLOOR).write_text(FLOOR, "utf-8")
    for module in (entries, record, floor):
        monkeypatch.setattr(module, "folder", lambda: made)
    monkeypatch.setattr(runs, "default_folder", lambda: tmp_path / "kept")
    entries.bugs.cache_clear()
    yield made
    entries.bugs.cache_clear()


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[Any, Run]:
    """How runs end, by target; a clean one for others. Each command runs all again."""
    by: dict[Any, Run] = {}
    number = count()
    monkeypatch.setattr(runs, "default_folder", lambda: tmp_path / f"kept-{next(number)}")
    monkeypatch.setattr(runs, "execute", lambda job: by.get(job.target, CLEAN))
    return by


# ---- real runs


def put(folder: Path, affected: str, fixed: str, role: str, invariant: str) -> None:
    """Another first entry."""
    words = {OLD: affected, NEW: fixed, '"client"': f'"{role}"', "client/beats": invariant}
    text = ENTRIES
    for word, other in words.items():
        text = text.replace(word, other)
    (folder / "some.toml").write_text(text, "utf-8")


def test_the_ordinary_checks_find_a_planted_bug_by_a_run_in_another_process(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder, "miniature/ignores-checksums", "reference", "codec", "log-files/refuses")
    kept = tmp_path / "kept"
    asked = ["recall", "--id", "client-1", "--seeds", "1", "--json", "--out", str(kept)]
    assert command(asked) == 0
    (shown,) = json.loads(capsys.readouterr().out)["bugs"]
    assert (shown["result"], shown["shape"]) == ("found", ["accepted", "checksum"])
    assert shown["least"] == ["decode ProducerSnapshot v1: 000149674bc700000000"]
    (affected,) = kept.glob("miniature-*")
    found = Run.of(json.loads(affected.read_text("utf-8"))["run"])
    assert found.judged["log-files/refuses"] == 63 and found.exits == (1,) and not found.doubts
    assert shown["cases"] == [2] and 0 < shown["cpu_s"][0] < found.cpu_s, "only the check that judges it was run"
    assert len([*kept.iterdir()]) == 2 and command(asked) == 0
    assert "kipcheck run" not in capsys.readouterr().err, "kept runs are not run again"


@pytest.mark.integration
def test_a_released_bug_is_found_in_its_release_and_not_in_the_next(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    releases = ("2.0.2", "2.3.0")
    made = environments.made()
    required = "index" in os.environ.get("KIPCHECK_REQUIRE", "").split(",")
    if not required and not all(("kafka-python", each) in made for each in releases):
        pytest.skip("no environments of kafka-python 2 were made yet (KIPCHECK_REQUIRE=index makes them)")
    affected, fixed = (f"kafka-python@{each}" for each in releases)
    put(folder, affected, fixed, "leader", "assign/answers")
    assert command(["recall", "--id", "client-1", "--seeds", "1", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["bugs"]
    assert (shown["result"], shown["shape"]) == ("found", ["refused", "assign", "TypeError", "sticky"])
    assert all("KeyError" in each for each in shown["alarms"]), "another defect of both"


@pytest.mark.integration
def test_runs_that_come_to_nothing_have_the_reason_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    none = runs.execute(Job("no-such-client@1.0", "apache", "assign/claims", 0))
    assert none.exits == (2,) and none.why.startswith("unknown target 'no-such-client'")
    other = runs.execute(Job("reference", "apache", "client/groups", 0))
    assert other.is_about_nothing and not other.is_unavailable
    gone = runs.execute(Job("cmd:/no/such/testee", "apache", "nodes/round-trip", 0))
    assert gone.is_unavailable and "there is no program 'testee'" in gone.why and not gone.can_be_kept


def test_reasons_name_no_folder_of_a_machine() -> None:
    why = "it ended:\n  File '/home/me/x.py'\nImportError: /home/me/y.py, see https://docs.example/a/b"
    assert runs._brief(why) == "it ended: ... ImportError: y.py, see https://docs.example/a/b"


def test_a_run_without_a_ledger_is_a_bug_of_ours(tmp_path: Path) -> None:
    killed = runs._without_ledger(-9, "")
    assert killed.exits == (70,) and killed.why.startswith("it ended with exit code -9")
    assert runs._without_ledger(3, "kipcheck: no Java\n").why == "no Java"


# ---- what is printed


def test_the_worst_results_come_first(folder: Path, ends: dict[Any, Run], capsys: pytest.CaptureFixture[str]) -> None:
    ends[OLD] = failed(failing("client/beats", "late"))
    assert command(["recall", "--budget", "1x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads == [
        "MISSED       broker-2  kafka:2.3.0 -> kafka:2.3.1  (coordinator, guard)",
        f"FOUND        client-1  {OLD} -> {NEW}  (live, guard)",
        "2 bugs: 1 found, 1 missed",
    ]
    assert "    why missed: not counted" in lines and "    https://issues.example/2" in lines
    assert "    MUST client/beats (late) on client, by 3 of 3 seeds; seed 0: 12 cases, 3 s" in "\n".join(lines)
    assert "      0. step" in lines


def test_why_bugs_are_missed_is_counted_on_demand(
    folder: Path, ends: dict[Any, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["recall", "--why", "--budget", "1x"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("    why missed: not counted\n") == 2
    assert printed.count("    why it was missed is not counted: the entry names no function\n") == 2


def test_a_false_alarm_fails_the_command_until_it_is_explained(
    folder: Path, ends: dict[Any, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    ends[OLD] = ends[NEW] = failed(failing())
    assert command(["recall", "--id", "client-*"]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("FALSE ALARM  client-1")
    assert f"client-1: {NEW} fails in each way in which {OLD} fails" in printed.err
    (folder / "some.toml").write_text(ENTRIES.replace('"live"', '"live"\nexplained = "Both do."', 1), "utf-8")
    entries.bugs.cache_clear()
    assert command(["recall", "--id", "client-*", "--budget", "1x"]) == 0
    assert "the fixed release fails: client/beats on client, explained: Both do." in capsys.readouterr().out


def test_a_skip_has_its_reason_and_nothing_installed_has_its_exit_code(
    folder: Path, ends: dict[Any, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    ends[OLD] = Run(exits=(3,), why="there is no release 0.10.0")
    assert command(["recall", "--id", "client-1"]) == 3
    printed = capsys.readouterr()
    assert f"    why skipped: {OLD}: there is no release 0.10.0" in printed.out
    assert "no release could be installed" in printed.err
    assert command(["recall", "--budget", "1x"]) == 0, "others were measured"


def test_an_interrupt_says_that_the_same_command_continues(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(job: Job) -> Run:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "execute", interrupted)
    assert command(["recall", "--id", "client-1"]) == 130
    assert "interrupted: the same command continues with what is missing" in capsys.readouterr().err


def test_entries_are_listed_without_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["recall", "--list", "--kind", "live"]) == 0
    head, first, last = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["bug", "kind", "releases"]
    assert first.split() == ["client-1", "live", *f"{OLD} -> {NEW}".split(), "client", "guard", "-", "-"]
    assert last == "1 bugs; nothing was run"
    assert command(["recall", "--list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["bugs"]
    assert [each["id"] for each in found] == ["client-1", "broker-2"] and found[1]["edition"] == ""


@for_each([
    (["--id", "client-2"], "--id: no bug matches 'client-2'; the nearest: client-1"),
    (["--kind", "life"], "--kind: unknown kind life: use live, codec"),
    (["--id", "client-1", "--kind", "codec"], "no bug is selected"),
])  # fmt: skip
def test_wrong_usage(asked: list[str], why: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["recall", *asked]) == 2
    assert why in capsys.readouterr().err


def test_a_wrong_budget_is_an_error_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(["recall", "--budget", "x5"])
    assert ended.value.code == 2 and "invalid budget 'x5': use 5x, 90s, 5m or 8h" in capsys.readouterr().err


@for_each([
    ("[[bug]", "some.toml: "),
    (ENTRIES.replace('kind = "live"', 'kind = "life"'), "the entry client-1: kind: must be one of live, codec"),
    (ENTRIES.replace('link = "https://issues.example/1"\n', ""), "the entry client-1: the field link is missing"),
    (ENTRIES.replace("broker-2", "client-1"), "the bug client-1 is entered twice"),
    (ENTRIES.replace('["grp-69"]', '"grp-69"'), "the entry client-1: requirements: must be a list, got 'grp-69'"),
    (ENTRIES.replace("{ invariant =", "{ law ="), "the entry client-1: counts[0]: unknown field law: the fields are"),
    (ENTRIES.replace("client/beats", "group/fresh-ids"), "the entry client-1: no check of role client judges"),
])  # fmt: skip
def test_an_invalid_entry_is_named_with_its_file(
    text: str, why: str, folder: Path, ends: dict[Any, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "some.toml").write_text(text, "utf-8")
    entries.bugs.cache_clear()
    assert command(["recall"]) == 2
    error = capsys.readouterr().err
    assert str(folder / "some.toml") in error and why in error


# ---- what is recorded


def test_first_is_written_once_and_today_each_time(folder: Path, ends: dict[Any, Run]) -> None:
    assert command(["recall", "--record"]) == 0
    assert _words(folder) == {"client-1": ("missed", "missed"), "broker-2": ("missed", "missed")}
    ends[OLD] = failed(failing())
    ends["kafka:2.3.0"] = Run(exits=(3,), why="no Java")
    assert command(["recall", "--record"]) == 0
    assert _words(folder) == {"client-1": ("missed", "found"), "broker-2": ("missed", "skipped")}
    text = (folder / "some.toml").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith(("first", "today"))]
    assert lines == ENTRIES.splitlines(), "all else, with its comments, is as it was"
    assert text.index('today = "found"') < text.index("# ---- coordinators")


def test_a_release_that_is_not_there_is_no_first_result(folder: Path, ends: dict[Any, Run]) -> None:
    ends[OLD] = Run(exits=(3,), why="no network")
    assert command(["recall", "--record"]) == 0
    assert _words(folder)["client-1"] == ("", "skipped")
    del ends[OLD]
    assert command(["recall", "--record", "--id", "client-1"]) == 0
    assert _words(folder)["client-1"] == ("missed", "missed")


def test_a_smaller_measurement_does_not_replace_a_larger_one(folder: Path, ends: dict[Any, Run]) -> None:
    assert command(["recall", "--record", "--seeds", "1", "--budget", "1x"]) == 0
    assert record.results()["client-1"].of_seeds == 1 and _words(folder)["client-1"] == ("missed", "missed")
    assert command(["recall", "--record"]) == 0
    ends[OLD] = failed(failing())
    assert command(["recall", "--record", "--seeds", "1"]) == 0
    assert record.results()["client-1"].of_seeds == 3 and _words(folder)["client-1"] == ("missed", "missed")


def test_results_are_a_line_each_and_those_of_other_bugs_stay(folder: Path, ends: dict[Any, Run]) -> None:
    ends[OLD] = failed(failing())
    assert command(["recall", "--record"]) == 0
    before = (folder / record.RESULTS).read_text("utf-8")
    assert [line[:16] for line in before.splitlines()] == ["[", '{"id": "broker-2', '{"id": "client-1', "]"]
    assert command(["recall", "--record", "--id", "client-1"]) == 0
    assert (folder / record.RESULTS).read_text("utf-8") == before
    assert {id: each.result for id, each in record.results().items()} == {"broker-2": "missed", "client-1": "found"}


def test_totals_rise_with_records_and_a_fall_fails_the_command(
    folder: Path, ends: dict[Any, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    ends[OLD] = failed(failing())
    assert command(["recall", "--record"]) == 0
    assert floor.floor()["found"] == {"live": 1, "coordinator": 0} and floor.floor()["killed"] == {}
    assert (folder / floor.FLOOR).read_text("utf-8").startswith("# Totals.\n[found]\n")
    del ends[OLD]
    assert command(["recall", "--id", "broker-2"]) == 0, "the recorded results of other bugs count"
    assert command(["recall"]) == 1
    assert "floor.toml: found, live: 0, the floor is 1" in capsys.readouterr().err
    ends[OLD] = Run(exits=(3,), why="no network")
    assert command(["recall"]) == 0, "what cannot be installed has not fallen"
    assert floor.floor()["found"]["live"] == 1


def test_the_floor_is_compared_for_what_was_counted(folder: Path) -> None:
    (folder / floor.FLOOR).write_text('[found]\nlive = 1\n[killed]\n"aiokafka wire random" = 8\n', "utf-8")
    row = {"target": "aiokafka", "part": "wire", "kind": "random", "killed": 7}
    assert floor.below(floor.killed([row])) == ["killed, aiokafka wire random: 7, the floor is 8"]
    floor.raise_floor({"killed": {"aiokafka wire random": 9, "sarama": 2}})
    assert floor.floor() == {"found": {"live": 1}, "killed": {"aiokafka wire random": 9, "sarama": 2}}


# ---- the page


def test_the_tables_of_the_page(folder: Path, ends: dict[Any, Run]) -> None:
    ends[OLD] = failed(failing(), at=1200)
    command(["recall", "--record"])
    about = {"target": "client:aiokafka", "release": "0.14.0", "part": "client", "kind": "random"}
    rows = [{**about, "killed": 6, "survived": 2, "why": {"no law": 2}}]
    (folder / floor.MUTATION).write_text(json.dumps(rows), "utf-8")
    tables = dict(power.sections(entries.bugs().values(), record.results()))
    assert tables[power.BUGS][2:] == [
        "| live | [client-1](https://issues.example/1)* | |",
        "| coordinator | | [broker-2](https://issues.example/2)* |",
    ]
    assert tables[power.TOTALS] == [
        "| kind | bugs | found | missed | not measured |", "|---|---|---|---|---|",
        "| live | 1 | 1 | 0 | 0 |", "| coordinator | 1 | 0 | 1 | 0 |", "| all | 2 | 1 | 1 | 0 |",
    ]  # fmt: skip
    assert "| no law | 0 | 2 |" in tables[power.WHY] and "| not counted | 1 | 0 |" in tables[power.WHY]
    assert tables[power.MUTANTS][2:] == ["| client:aiokafka | 0.14.0 | client | random | 8 | 6 | 0 | 2 | 0 | 0 | 0 |"]


def _words(folder: Path) -> dict[str, tuple[str, str]]:
    """The recorded ``first`` and ``today`` by id."""
    found = tomllib.loads((folder / "some.toml").read_text("utf-8"))["bug"]
    return {each["id"]: (each.get("first", ""), each.get("today", "")) for each in found}
