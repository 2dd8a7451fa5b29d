"""The number of cases of an entry: another one behind a known failure is a change, where numbers can be compared."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.ledger import Failure
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.engine.execution.run import Options
from kipcheck.conformance.engine.known import match
from kipcheck.conformance.engine.known.edit import updated
from kipcheck.conformance.engine.known.files import InvalidKnownFile, parse
from kipcheck.conformance.engine.known.match import KnownDeviations
from kipcheck.conformance.engine.known.rules import Draw
from kipcheck.conformance.targets.protocol import TargetInfo
from kipcheck.conformance.tests.support.ledgers import FAILURE
from kipcheck.conformance.tests.support.odd_client import Held, off_by_one, stale

VERSION = metadata.version("kipcheck")
Rare = Callable[[dict[str, Any]], dict[str, Any]]


def sometimes(most: int) -> Rare:
    """The defect in the first cases only, so that the failures and their places are the same for each number."""
    shown: set[str] = set()

    def defect(value: dict[str, Any]) -> dict[str, Any]:
        if len(shown | {repr(value)}) <= most:
            shown.add(repr(value))
        return off_by_one(value) if repr(value) in shown else value

    return defect


def defects(cases: int) -> dict[int, Rare]:
    return {1: sometimes(cases), 2: off_by_one, 3: off_by_one}


@pytest.fixture
def counted(options: Options, executed: Held, listed: Path) -> Path:
    """The list, with the number of cases of a client of which the first 3 cases of version 1 fail."""
    _, ledger = executed(replace(options, known=()), defects(3))
    whole = replace(
        ledger, header=ledger.header.update(options=ledger.header.options.update(checks=("*",), messages=("*",)))
    )
    listed.write_text(updated(listed.read_text(), str(listed), [whole], None, date.today()).text)
    assert f"cases = {ledger.failures[0].cases}\n" in listed.read_text()
    return listed


@pytest.mark.parametrize("cases", [2, 4])
def test_one_more_failing_case_behind_a_known_failure_is_a_change(
    options: Options, executed: Held, counted: Path, cases: int
) -> None:
    outcome, ledger = executed(options, defects(3))
    assert (outcome.exit_code, outcome.known, stale(ledger)) == (0, 1, [])
    before = ledger.failures[0].cases
    outcome, ledger = executed(options, defects(cases))
    assert (outcome.exit_code, outcome.known, outcome.failures) == (5, 1, 0)
    (line,) = ledger.stale
    assert (line.kind, ledger.failures[0].cases) == ("changed", before + cases - 3)
    assert f"{before + cases - 3} cases fail in this way, and the entry says {before}" in line.why
    assert ledger.failures[0].id in line.why


def test_another_number_is_rewritten(options: Options, executed: Held, counted: Path) -> None:
    text = counted.read_text()
    _, ledger = executed(options, defects(5))
    whole = replace(ledger, header=ledger.header.update(options=ledger.header.options.update(checks=("*",))))
    made = updated(text, "odd.toml", [whole], None, date.today())
    number = ledger.failures[0].cases
    assert made.text == text.replace(f"cases = {number - 2}\n", f"cases = {number}\n")
    assert made.counted == [f"odd.toml:4: wire/decodes: {number} cases, before {number - 2}"]
    part = updated(text, "odd.toml", [ledger], None, date.today())
    assert part.text == text, "a run that left checks out does not count all cases"


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"cases": 40}, {"checks": ("wire/vectors",)}, {"messages": ("HeartbeatResponse",)}, {"budget": 0.0}],
    ids=str,
)
def test_with_other_cases_or_with_a_part_of_them_the_number_is_not_compared(
    options: Options, executed: Held, counted: Path, change: dict[str, Any]
) -> None:
    _, ledger = executed(replace(options, **change), defects(9))
    assert stale(ledger) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f'"kipcheck {VERSION}"', '"kipcheck 0.0.9"'),
        (f'made_by = "kipcheck {VERSION}"\n', ""),
        ('["wire/two-readings"]', '["wire/two-readings", "wire/vectors"]'),
    ],
)
def test_the_number_of_another_kipcheck_or_of_further_checks_is_not_compared(
    options: Options, executed: Held, counted: Path, old: str, new: str
) -> None:
    assert old in counted.read_text()
    counted.write_text(counted.read_text().replace(old, new))
    outcome, ledger = executed(options, defects(9))
    assert (outcome.exit_code, stale(ledger)) == (0, [])


def test_the_number_of_a_target_that_is_not_steady_is_not_compared(
    options: Options, executed: Held, counted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match, "is_steady", lambda name: name != "odd")
    assert executed(options, defects(9))[0].exit_code == 0


# ---- what a run can count

LIST = f"""\
target = "somebody"
made_by = "kipcheck {VERSION}"
[[deviation]]
checks = ["wire/two-readings"]
invariant = "wire/decodes"
versions = "1.0"
shape = {[*FAILURE["shape"]]!r}
reason = "It counts generations from one on, as its first release did."
link = "https://github.com/odd/client/issues/7"
cases = 11
[deviation.where]
HeartbeatResponse = "0-4"
SyncGroupResponse = "0"
"""


def why(*failures: dict[str, Any], places: str = "01234", text: str = LIST, died: str = "") -> list[str]:
    """The stale entries after a run that looked at these versions of the heartbeat."""
    account = KnownDeviations([parse(text, "a.toml")], Draw(), date(2026, 1, 1), ["somebody"], version=VERSION)
    account.begin(TargetInfo("somebody", "1.0", "", "", frozenset()), "looked at")
    for place in [*(("HeartbeatResponse", int(each)) for each in places), ("SyncGroupResponse", 0)]:
        account.add_verdicts("wire/two-readings", place, [{"wire/decodes": "FAIL"}])
    for each in died:
        account.add_verdicts("wire/two-readings", ("HeartbeatResponse", int(each)), [{"survives": "FAIL"}])
    account.match_failures([Failure.of(each) for each in failures])
    return [each.why for each in account.stale()]


LATE = {**FAILURE, "id": "0" * 12, "invariant": "survives", "shape": ["died", "decode", "timeout", ""]}


def test_a_failure_is_counted_if_all_its_places_were_looked_at() -> None:
    assert FAILURE["cases"] == 12
    (reported,) = why(FAILURE)
    assert "12 cases fail in this way, and the entry says 11" in reported
    assert why({**FAILURE, "cases": 11}) == []
    assert why(FAILURE, places="0123") == []


def test_where_cases_ran_into_their_time_limit_nothing_is_counted() -> None:
    assert why(FAILURE, {**LATE, "where": {"HeartbeatResponse": "3"}}) == []
    assert len(why(FAILURE, {**LATE, "where": {"HeartbeatResponse": "7"}})) == 1
    assert len(why(FAILURE, {**LATE, "checks": ["wire/damage"]})) == 1
    crashed = {**LATE, "shape": ["died", "decode", "crashed", "killed by SIGABRT"]}
    assert len(why(FAILURE, crashed, died="1")) == 1
    assert why(FAILURE, died="3") == [], "it died of its time only in company"


def test_a_failure_that_several_entries_share_is_not_counted() -> None:
    apart = LIST.replace('SyncGroupResponse = "0"', "")
    rest = LIST[LIST.index("[[") :].replace('HeartbeatResponse = "0-4"', "").replace("cases = 11\n", "")
    assert why(FAILURE, text=apart + rest) == []


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (LIST.replace("cases = 11", "cases = 0"), "a.toml:10: cases must be a positive integer"),
        (LIST.replace("cases = 11", "cases = true"), "a.toml:10: cases must be an integer, got True"),
        (LIST.replace("cases = 11", "cases = 1\nseldom = true"), "a.toml:10: cases are counted for a"),
        (LIST.replace("deviation", "flaky").replace("cases", "expires = 2999-01-01\ncases"), "a.toml:11: cases are"),
        (LIST.replace("made_by", "made_in"), "a.toml:2: unknown key 'made_in' at the top of the file"),
    ],
)
def test_a_number_that_cannot_be_is_refused(text: str, trouble: str) -> None:
    with pytest.raises(InvalidKnownFile) as wrong:
        parse(text, "a.toml")
    assert trouble in str(wrong.value)


OF_CONTROLLERS = """\
target = "somebody"
[[deviation]]
checks = ["kraft-features/updates"]
invariant = "kraft-features/error-changes-nothing"
versions = "1.0"
shape = ["applied"]
reason = "It applies an update, and refuses the request."
link = "https://github.com/odd/client/issues/7"
where = { kraft-features = "" }
"""


@pytest.mark.parametrize(("roles", "kinds"), [({Role.CODEC, Role.CONTROLLER}, []), ({Role.CODEC}, ["nothing"])])
def test_an_entry_about_a_role_that_was_not_played_says_nothing(roles: set[Role], kinds: list[str]) -> None:
    """Where the target has that role: its claims in it are not known then. Else the entry can never match."""
    account = KnownDeviations([parse(OF_CONTROLLERS, "a.toml")], Draw(), date(2026, 1, 1), ["somebody"])
    account.begin(TargetInfo("somebody", "1.0", "", "", frozenset(roles)))
    account.add_verdicts("wire/two-readings", ("HeartbeatResponse", 0), [{"wire/decodes": "PASS"}])
    assert [each.kind for each in account.stale()] == kinds
    assert account.counts["not_looked_at"] == (not kinds)
