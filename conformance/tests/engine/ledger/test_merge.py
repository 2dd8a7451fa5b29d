"""What is merged has to be alike; what is missing is told; a defect in several ledgers is one."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.files.output_folder import LIST
from kipcheck.conformance.core.ledger import Ledger, read
from kipcheck.conformance.engine.ledger.merge import Merged, Unlike, merge
from kipcheck.conformance.tests.support.ledgers import FAILURE, FOOTER, HEADER, REASON, TARGETS, verdicts, write

Line = dict[str, Any]
GREEN: Line = {**FOOTER, "exit": 0, "exits": [], "meaning": "conformant"}
STEP = {"actor": "codec", "verb": "decode", "body": {"message": "HeartbeatResponse", "version": 1, "hex": "00"}}


def header(part: Sequence[int] | None = None, **options: Any) -> Line:
    return {**HEADER, "part": part, "options": {**HEADER["options"], **options}}


def filed(folder: Path, failure: Line, steps: int = 1) -> tuple[str, Line]:
    """The line, and its file."""
    (folder / "failures").mkdir(parents=True, exist_ok=True)
    case = {"check": failure["check"], "edition": "apache", "role": "codec", "steps": [STEP] * steps}
    (folder / "failures" / f"{failure['id']}.json").write_text(json.dumps({"format": 2, **failure, "case": case}))
    return "failure", failure


def part(folder: Path, number: int, *lines: tuple[str, Line], of: int = 2, footer: Line | None = GREEN) -> Path:
    target = ("target", TARGETS[0])
    subject = verdicts("PASS", 2, subject=f"Message{number}")
    write(folder, target, *subject, *lines, footer=footer, header=header([number, of]))
    return folder


def together(tmp_path: Path, *folders: Path) -> tuple[Merged, Ledger]:
    merged = merge(folders, tmp_path / "together")
    return merged, read(merged.ledger)


def test_a_defect_in_two_parts_is_one_with_the_least_case_of_both(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    other = {**FAILURE, "cases": 30, "where": {"HeartbeatResponse": "3, 6"}, "why": "the least", "case_id": "bb"}
    part(one, 1, filed(one, FAILURE, steps=3), footer=FOOTER)
    part(two, 2, filed(two, other, steps=2), footer=FOOTER)
    merged, ledger = together(tmp_path, one, two)
    (found,) = ledger.failures
    assert (found.cases, found.why, found.case_id) == (42, "the least", "bb")
    assert found.where == {"HeartbeatResponse": "0-4, 6", "SyncGroupResponse": "0"}
    assert found.reproduce == f"kipcheck replay {FAILURE['id']} --out {tmp_path}/together"
    kept = json.loads((tmp_path / "together" / "failures" / f"{FAILURE['id']}.json").read_text())
    assert len(kept["case"]["steps"]) == 2
    assert (merged.exit_code, merged.missing) == (1, ())


def test_what_was_not_shrunk_goes_to_what_was(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    longer = {**FAILURE, "shape": ["misread", "int16"]}
    brief = {**FAILURE, "id": "666666666666", "check": "wire/vectors", "checks": ["wire/vectors"], "shrunk": False}
    strange = {**brief, "id": "777777777777", "shape": ["died"]}
    part(one, 1, filed(one, longer), footer=FOOTER)
    part(two, 2, filed(two, brief), filed(two, strange), footer=FOOTER)
    _, ledger = together(tmp_path, one, two)
    assert [(each.id, each.cases) for each in ledger.failures] == [(FAILURE["id"], 24), ("777777777777", 12)]
    assert ledger.failures[0].checks == ("wire/two-readings", "wire/vectors")
    assert not (tmp_path / "together" / "failures" / "666666666666.json").exists()


def test_what_one_expects_and_another_does_not_is_expected_in_part(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    part(one, 1, filed(one, {**FAILURE, "known": REASON, "where": {"HeartbeatResponse": "1"}}))
    part(two, 2, filed(two, {**FAILURE, "where": {"SyncGroupResponse": "0"}}), footer=FOOTER)
    merged, ledger = together(tmp_path, one, two)
    (found,) = ledger.failures
    assert not found.known and found.beyond is not None
    assert found.beyond.plain == {**REASON, "where": {"SyncGroupResponse": "0"}}
    assert merged.exit_code == 1


def test_a_warning_fails_the_whole_if_the_list_of_its_run_lacks_it(tmp_path: Path) -> None:
    for unlisted, code in (({}, 0), ({"unlisted": True}, 1)):
        out = tmp_path / str(code)
        one, two = out / "1", out / "2"
        part(one, 1, filed(one, {**FAILURE, "grade": "SHOULD"}))
        part(two, 2, filed(two, {**FAILURE, "grade": "SHOULD", **unlisted}))
        merged, ledger = together(out, one, two)
        assert (merged.exit_code, ledger.failures[0].unlisted) == (code, unlisted.get("unlisted"))


def test_what_all_expect_stays_expected(tmp_path: Path) -> None:
    folders = [tmp_path / "1", tmp_path / "2"]
    for number, folder in enumerate(folders, 1):
        part(folder, number, filed(folder, {**FAILURE, "known": REASON}))
    merged, ledger = together(tmp_path, *folders)
    assert ledger.failures[0].plain["known"] == REASON
    assert merged.exit_code == 0


@pytest.mark.parametrize(
    ("codes", "wins"), [(([], [4]), 4), (([6], [4]), 4), (([5], [4]), 5), (([3], [5, 6]), 3), (([70], [2]), 70)]
)
def test_where_parts_end_otherwise_the_first_code_wins(
    tmp_path: Path, codes: tuple[list[int], list[int]], wins: int
) -> None:
    folders = [
        part(tmp_path / str(number), number, footer={**GREEN, "exits": outcome, "exit": max(outcome, default=0)})
        for number, outcome in enumerate(codes, 1)
    ]
    merged, ledger = together(tmp_path, *folders)
    assert merged.exit_code == wins
    assert ledger.footer is not None
    assert list(ledger.footer.exits) == sorted({*codes[0], *codes[1]})


def test_a_part_that_is_missing_makes_it_incomplete(tmp_path: Path) -> None:
    merged, ledger = together(tmp_path, part(tmp_path / "1", 1, of=3), part(tmp_path / "3", 3, of=3))
    assert merged.missing == ("part 2/3 of somebody, another is missing",)
    assert (merged.exit_code, ledger.complete) == (6, False)


@pytest.mark.parametrize("footer", [None, {**GREEN, "complete": False, "stopped_by": "interrupted", "exit": 6}])
def test_a_part_that_was_cut_off_makes_it_incomplete(tmp_path: Path, footer: Line | None) -> None:
    merged, ledger = together(tmp_path, part(tmp_path / "1", 1), part(tmp_path / "2", 2, footer=footer))
    assert len(merged.missing) == 1
    assert str(tmp_path / "2") in merged.missing[0]
    assert (merged.exit_code, ledger.complete) == (6, False)


def test_parts_of_several_runs_are_each_asked_for(tmp_path: Path) -> None:
    for number in (1, 2):
        part(tmp_path / str(number), number)
    about = {"target": "another"}
    path = tmp_path / "other"
    write(path, *verdicts("PASS", 1, **about), footer=GREEN, header=header([1, 2], targets=["another"]))
    merged, _ = together(tmp_path, tmp_path / "1", tmp_path / "2", path)
    assert merged.missing == ("part 2/2 of another is missing",)


def test_runs_of_different_targets_are_one_table(tmp_path: Path) -> None:
    for name, line in (("somebody", TARGETS[0]), ("another", TARGETS[1])):
        lines = verdicts("PASS", 3, target=name)
        write(tmp_path / name, ("target", line), *lines, footer=GREEN, header=header(targets=[name]))
    merged, ledger = together(tmp_path, tmp_path / "somebody", tmp_path / "another")
    assert (merged.exit_code, merged.missing) == (0, ())
    assert ledger.header.options.targets == ("somebody", "another")
    assert ledger.counts == {name: {"wire/two-readings": {"PASS": 3}} for name in ("somebody", "another")}
    assert [each.folder for each in ledger.header.merged or ()] == [
        str(tmp_path / "somebody"),
        str(tmp_path / "another"),
    ]


def test_of_targets_that_were_run_apart_it_is_told_where_they_differ(tmp_path: Path) -> None:
    for name, line, result in (("somebody", TARGETS[0], "FAIL"), ("another", TARGETS[1], "PASS")):
        alike = verdicts("PASS", 3, target=name, subject="SyncGroupResponse")
        lines = [
            ("target", line),
            *alike,
            *verdicts(result, 2, target=name),
            *verdicts(result, 1, target=name, version=2),
        ]
        write(tmp_path / name, *lines, header=header(targets=[name]))
    _, ledger = together(tmp_path, tmp_path / "somebody", tmp_path / "another")
    (found,) = ledger.differences
    assert found.cells == {"somebody": "FAIL", "another": "PASS"}
    assert (found.check, found.subject, found.versions) == ("wire/two-readings", "HeartbeatResponse", "1-2")
    assert (found.cases, found.case) == (3, "0")


def test_what_one_skipped_and_another_held_was_held(tmp_path: Path) -> None:
    skip = ("skip", {"target": "somebody", "check": "wire/two-readings", "why": "there are no cases"})
    other = ("skip", {"target": "somebody", "check": "wire/claims", "why": "there are no cases"})
    only = write(tmp_path / "1", skip, other, footer=GREEN, header=header([1, 2])).parent
    _, ledger = together(tmp_path, only, part(tmp_path / "2", 2, other))
    assert [each.check for each in ledger.skips] == ["wire/claims"]


# ---- what may not be merged


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (header([2, 2], seed=8), "--seed is 7 in .* and 8 in .*: run them with equal options"),
        (header([2, 2], edition="apache@3.9.2"), "--edition is apache in "),
        (header([2, 2], cases=9), "--cases is None in .* and 9 in "),
        ({**header([2, 2]), "kipcheck": "0.2.0"}, "kipcheck is 0.1.0 in .* and 0.2.0 in "),
        (header([1, 2]), "part 1/2 is in .* and in .*: leave one out"),
    ],
)
def test_what_is_not_alike_is_refused(tmp_path: Path, changed: Line, says: str) -> None:
    other = write(tmp_path / "2", footer=GREEN, header=changed).parent
    with pytest.raises(Unlike, match=says):
        together(tmp_path, part(tmp_path / "1", 1), other)
    assert not (tmp_path / "together").exists()


def test_two_versions_of_a_target_are_refused(tmp_path: Path) -> None:
    other = ("target", {**TARGETS[0], "version": "1.1"})
    folder = write(tmp_path / "2", other, footer=GREEN, header=header([2, 2])).parent
    with pytest.raises(Unlike, match=r"somebody is 1\.0 in .* and 1\.1 in "):
        together(tmp_path, part(tmp_path / "1", 1), folder)


def test_the_same_cases_twice_are_refused(tmp_path: Path) -> None:
    folders = [write(tmp_path / name, *verdicts("PASS", 1), footer=GREEN).parent for name in "ab"]
    with pytest.raises(Unlike, match=r"wire/two-readings on HeartbeatResponse with somebody is in .*/a and in .*/b"):
        together(tmp_path, *folders)


def test_a_folder_of_what_is_merged_is_no_place_for_the_whole(tmp_path: Path) -> None:
    one, two = part(tmp_path / "1", 1), part(tmp_path / "2", 2)
    before = (one / "ledger.jsonl").read_bytes()
    with pytest.raises(Unlike, match="is one of the folders to be merged"):
        merge([one, two], two)
    assert (one / "ledger.jsonl").read_bytes() == before
    (two / "report.html").write_text("of part 2")
    assert kipcheck("merge", one, two, "--out", two).returncode == 2
    assert (two / "report.html").read_text() == "of part 2"


# ---- on the command line


def kipcheck(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "kipcheck", *map(str, arguments)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.integration
def test_merge_writes_all_reports_and_exits_as_what_it_merged(tmp_path: Path) -> None:
    one = tmp_path / "1"
    part(one, 1, filed(one, FAILURE), footer=FOOTER)
    done = kipcheck("merge", one, part(tmp_path / "2", 2), "--out", tmp_path / "all")
    assert done.returncode == 1
    assert "complete: 1 distinct failure, 0 warnings; exit 1" in done.stdout
    reported = {
        "ledger.jsonl",
        "report.html",
        "junit.xml",
        "results.json",
        "results.sarif",
        "summary.md",
        "failures",
        LIST,
    }
    assert {each.name for each in (tmp_path / "all").iterdir()} == reported


@pytest.mark.parametrize("what", ["merge", "report"])
@pytest.mark.integration
def test_a_folder_without_a_ledger_is_wrong_usage(tmp_path: Path, what: str) -> None:
    done = kipcheck(what, tmp_path / "none", *(("--out", tmp_path / "all") if what == "merge" else ()))
    assert done.returncode == 2
    assert done.stdout == ""
    wanted = "name a folder that kipcheck run or kipcheck campaign wrote"
    assert f"{tmp_path}/none contains no ledger.jsonl: {wanted}" in done.stderr
    assert not (tmp_path / "all").exists()


@pytest.mark.integration
def test_report_renders_again_and_exits_as_the_run_did(tmp_path: Path) -> None:
    write(tmp_path, *verdicts("FAIL", 12), ("failure", FAILURE))
    text = kipcheck("report", tmp_path)
    assert (text.returncode, "FAIL 12 0123456789ab" in text.stdout) == (1, True)
    details = kipcheck("report", tmp_path, "--details")
    assert (details.returncode, "FAIL 0123456789ab" in details.stdout) == (1, True)
    page = kipcheck("report", tmp_path / "ledger.jsonl", "--form", "html")
    assert (page.returncode, page.stdout[:15]) == (1, "<!DOCTYPE html>")
    assert [each.name for each in tmp_path.iterdir()] == ["ledger.jsonl"]
    whole = kipcheck("report", tmp_path, "--form", "all")
    assert whole.stdout == text.stdout.replace("ledger.jsonl", "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == page.stdout


def test_report_of_a_run_that_was_killed_says_incomplete_and_is_undecided(tmp_path: Path) -> None:
    write(tmp_path, *verdicts("FAIL", 12), footer=None)
    done = kipcheck("report", tmp_path)
    assert done.returncode == 6
    assert done.stdout.splitlines()[-1].startswith("INCOMPLETE: the ledger ends before its footer")
