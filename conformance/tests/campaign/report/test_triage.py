"""What is new, known, fixed or flaky, beside nothing and beside an earlier campaign or run."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.campaign.report.triage import Unread, lines, triage
from kipcheck.conformance.cli.main import run
from kipcheck.conformance.engine.execution.replay import ReplayResult
from kipcheck.conformance.tests.support.ledgers import (
    FAILURE,
    FLAKY,
    FOOTER,
    REASON,
    SEEN,
    TALLY,
    TARGETS,
    campaign,
    campaigned,
    met,
    verdicts,
    write,
)

Line = dict[str, Any]
PLACES = [("HeartbeatResponse", version) for version in range(5)] + [("SyncGroupResponse", 0)]
"""All in which ``FAILURE`` was seen."""


def executed(result: str = "PASS", places: list[tuple[str, int]] = PLACES, **about: Any) -> list[tuple[str, Line]]:
    """Tallies that say that the failure was looked for there."""
    counted = {"results": {result: 9}, "by": {"wire/decodes": {result: 9}}}
    return [("tally", {**TALLY, "subject": name, "version": number, **counted, **about}) for name, number in places]


def reported(folder: Path, *lines: tuple[str, Line], **more: Any) -> Path:
    """A campaign with these lines; each failure with its file."""
    write(folder, ("target", TARGETS[0]), *lines, header=campaigned(), **more)
    for kind, line in lines:
        if kind in ("failure", "flaky"):
            below = folder / "failures" / ("flaky" if kind == "flaky" else "")
            below.mkdir(parents=True, exist_ok=True)
            (below / f"{line['id']}.json").write_text("{}")
    return folder


def stands(folder: Path, against: Path | None = None) -> list[tuple[str, str]]:
    return [(each.status, each.id) for each in triage(folder, against).failures]


def test_alone_it_is_new_unless_a_list_names_it_or_it_comes_and_goes(tmp_path: Path) -> None:
    found = triage(reported(tmp_path, *campaign()))
    assert [(each.status, each.id) for each in found.failures] == [
        ("new", FAILURE["id"]),
        ("flaky", FLAKY["id"]),
        ("known", SEEN["id"]),
    ]
    assert found.complete
    assert [each.case for each in found.failures] == [
        tmp_path / "failures" / f"{FAILURE['id']}.json",
        tmp_path / "failures" / "flaky" / f"{FLAKY['id']}.json",
        tmp_path / "failures" / f"{SEEN['id']}.json",
    ]


def test_a_run_is_read_like_a_campaign(tmp_path: Path) -> None:
    write(tmp_path, *verdicts("FAIL", 12), ("failure", FAILURE), ("failure", {**SEEN, "known": REASON}))
    assert stands(tmp_path) == [("new", FAILURE["id"]), ("known", SEEN["id"])]


def test_what_was_there_before_is_known(tmp_path: Path) -> None:
    before = reported(tmp_path / "before", ("failure", met(FAILURE)))
    now = reported(tmp_path / "now", ("failure", met(FAILURE)), ("failure", met(SEEN)))
    assert stands(now, before) == [("new", SEEN["id"]), ("known", FAILURE["id"])]


def test_what_was_not_shrunk_is_known_by_as_much_as_it_tells(tmp_path: Path) -> None:
    whole = met({**FAILURE, "shape": ["misread", "int16"]})
    part = met({**FAILURE, "id": "777777777777", "shrunk": False})
    other = met({**FAILURE, "id": "888888888888", "shrunk": False, "shape": ["died"]})
    before = reported(tmp_path / "before", ("failure", whole))
    now = reported(tmp_path / "now", ("failure", part), ("failure", other))
    assert stands(now, before) == [("new", "888888888888"), ("known", "777777777777")]
    assert stands(before, now) == [("known", FAILURE["id"])]


@pytest.mark.parametrize(
    ("now", "fixed", "unseen"),
    [
        (executed(), True, 0),
        (executed(places=PLACES[1:]), False, 1),
        ([*executed(places=PLACES[1:]), *executed("FAIL", PLACES[:1])], False, 1),
        (executed("UNKNOWN"), False, 1),
        (executed(check="wire/damage"), False, 1),
        (executed(target="another"), False, 1),
        (executed(by={"survives": {"PASS": 9}}), False, 1),
        ([], False, 1),
    ],
    ids=[
        "passed",
        "a place left out",
        "one fails",
        "undecided",
        "other check",
        "other target",
        "not judged",
        "nothing",
    ],
)
def test_fixed_is_what_was_there_and_was_looked_for_everywhere(
    tmp_path: Path, now: list[tuple[str, Line]], fixed: bool, unseen: int
) -> None:
    before = reported(tmp_path / "before", ("failure", met(FAILURE)))
    path = before / "failures" / f"{FAILURE['id']}.json"
    found = triage(reported(tmp_path / "now", *now), before, {path: ReplayResult(0, "gone")}.__getitem__)
    assert [(each.status, each.case) for each in found.failures] == ([("fixed", path)] if fixed else [])
    assert found.unseen == unseen
    assert all("; last found " in each.since for each in found.failures)


@pytest.mark.parametrize(
    ("code", "status"), [(0, ["fixed"]), (1, ["known"]), (4, ["flaky"]), (2, []), (3, []), (6, []), (70, [])]
)
def test_what_is_not_found_is_replayed_before_it_is_said_to_be_fixed(
    tmp_path: Path, code: int, status: list[str]
) -> None:
    before = reported(tmp_path / "before", ("failure", met(FAILURE)))
    now = reported(tmp_path / "now", *executed())
    found = triage(now, before, lambda path: ReplayResult(code, "in words"))
    assert [each.status for each in found.failures] == status
    assert found.unreplayed == (() if status else (f"{FAILURE['id']}: in words",))
    text = "\n".join(lines(found))
    assert ("its case passes now; not found since " in text) == (code == 0)
    assert ("its earlier one still fails; kipcheck replay " in text) == (code in (1, 4))
    assert ("not replayed: " in text) == (not status)


def test_without_its_case_nothing_is_fixed(tmp_path: Path) -> None:
    before = reported(tmp_path / "before", ("failure", met(FAILURE)))
    (before / "failures" / f"{FAILURE['id']}.json").unlink()
    found = triage(reported(tmp_path / "now", *executed()), before)
    assert not found.failures
    assert found.unreplayed == (f"{FAILURE['id']}: there is no {before}/failures/{FAILURE['id']}.json",)


def test_what_fails_here_and_went_there_comes_and_goes(tmp_path: Path) -> None:
    went = {**FLAKY, "id": FAILURE["id"]}
    before = reported(tmp_path / "before", ("flaky", went))
    now = reported(tmp_path / "now", ("failure", met(FAILURE)))
    assert stands(now, before) == [("flaky", FAILURE["id"])]
    both = reported(tmp_path / "both", ("failure", met(FAILURE)), ("flaky", went))
    assert stands(both) == [("flaky", FAILURE["id"])]
    assert stands(before, now) == [("flaky", FAILURE["id"])]  # and not fixed


# ---- the command


def outcome(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run(["triage", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_its_json_is_what_scripts_expect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reported(tmp_path, *campaign())
    code, out, err = outcome(capsys, tmp_path, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert list(found) == ["failures", "complete", "untested"]
    assert found["complete"] is True and found["untested"] == ""
    assert found["failures"][0] == {
        "id": FAILURE["id"], "target": "somebody", "check": "wire/two-readings", "requirements": ["grp-05"],
        "status": "new", "count": 12, "case": str(tmp_path / "failures" / f"{FAILURE['id']}.json"),
    }  # fmt: skip
    assert found["failures"][1]["requirements"] == ["429-07"]
    assert Counter(each["status"] for each in found["failures"]) == {"new": 1, "flaky": 1, "known": 1}


def test_a_failure_without_a_case_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, ("failure", FAILURE))
    assert json.loads(outcome(capsys, tmp_path, "--json")[1])["failures"][0]["case"] is None


def test_people_are_told_how_to_see_each_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = reported(tmp_path / "a folder", ("failure", met({**FAILURE, "why": "two\nlines \x1b[31m"})))
    assert outcome(capsys, folder)[1].splitlines() == [
        f"new   {FAILURE['id']}  somebody  wire/two-readings  (MUST grp-05)",
        "      two lines \\x1b[31m",
        f"      12 cases; kipcheck replay {FAILURE['id']} --out '{folder}'",
        "1 new, 0 flaky, 0 known, 0 fixed; complete",
    ]


def test_what_was_not_looked_for_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = reported(tmp_path / "before", ("failure", met(FAILURE)))
    now = reported(tmp_path / "now")
    assert outcome(capsys, now, "--against", before)[1] == (
        "0 new, 0 flaky, 0 known, 0 fixed; 1 of the earlier ones were not searched for in all their places; "
        "inconclusive: nothing was tested\n"
    )


def test_a_ledger_that_shows_too_little_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = reported(tmp_path / "before", ("failure", met(FAILURE)))
    few = ("inconclusive", {"target": "*", "check": "*", "why": "none of 9 cases passed"})
    assert outcome(capsys, reported(tmp_path / "now", *executed(), few), "--against", before)[0] == 7
    assert outcome(capsys, reported(tmp_path / "well", *executed()), "--against", before)[0] == 0
    failed = reported(tmp_path / "failed", *executed(), few, ("failure", met(SEEN)))
    code, out, _ = outcome(capsys, failed, "--against", before)
    assert code == 1 and out.endswith("; inconclusive: none of 9 cases passed\n")


CUT_SHORT = {**FOOTER, "complete": False, "stopped_by": "interrupted", "exit": 6, "exits": [6]}


@pytest.mark.parametrize(
    ("failures", "footer", "code"),
    [
        ([], FOOTER, 7),
        ([FAILURE], FOOTER, 0),
        ([FAILURE, SEEN], FOOTER, 1),
        ([FAILURE, {**SEEN, "grade": "SHOULD"}], FOOTER, 1),
        ([FAILURE, {**SEEN, "grade": "INFO"}], FOOTER, 0),
        ([FAILURE, SEEN], CUT_SHORT, 1),
        ([FAILURE], CUT_SHORT, 6),
        ([FAILURE], None, 6),
    ],
)
def test_beside_another_the_code_says_whether_something_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], failures: list[Line], footer: Line | None, code: int
) -> None:
    before = reported(tmp_path / "before", ("failure", met(FAILURE)))
    now = reported(tmp_path / "now", *(("failure", met(each)) for each in failures), footer=footer)
    assert outcome(capsys, now, "--against", before)[0] == code
    assert outcome(capsys, now)[0] == 0


def test_where_there_is_no_ledger_it_says_what_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outcome(capsys, tmp_path / "nothing")
    assert (code, out) == (2, "")
    assert "contains no ledger.jsonl: name a folder that kipcheck run or kipcheck campaign wrote with --out" in err
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "manifest.json").write_text("{}")
    assert f"resume it with kipcheck campaign --resume {tmp_path}/begun" in outcome(capsys, tmp_path / "begun")[2]
    reported(tmp_path)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "ledger.jsonl").write_text("nonsense\n")
    assert outcome(capsys, tmp_path, "--against", tmp_path / "damaged")[0] == 2
    with pytest.raises(Unread, match="is not a ledger"):
        triage(tmp_path / "damaged")
