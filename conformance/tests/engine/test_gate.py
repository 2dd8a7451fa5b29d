"""What a run has to show before its exit code is 0, and what the deaths of a target cost."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from kipcheck import reports
from kipcheck.conformance.core.ledger import Ledger, read
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Died, History, Op
from kipcheck.conformance.engine.execution import run as engine_run
from kipcheck.conformance.engine.execution.deaths import MOST, Deaths
from kipcheck.conformance.engine.execution.run import Options, Outcome, run
from kipcheck.conformance.engine.known.edit import updated
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Claims, Target

SMALL = Options(
    targets=("reference",), messages=("HeartbeatResponse",), checks=("wire/two-readings", "wire/round-trip"),
    cases=8, workers=1,
)  # fmt: skip


class Planted(Reference):
    """The reference with another answer to some operations."""

    name = "planted"

    def __init__(self, answer: Mapping[str, Any], *ops: str, versions: tuple[int, ...] = (), message: str = "") -> None:
        """``ops``: those that get the answer; all, if there are none. ``versions`` and ``message``: the same."""
        super().__init__()
        self._instead, self._ops, self._versions, self._message = answer, ops, versions, message

    def claims(self) -> Claims:
        found = super().claims()
        return Claims(found.messages, found.missing, found.assignors, found.machines, {"all": "it can do nothing"})

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        mine = not self._ops or op["op"] in self._ops
        mine = mine and (not self._versions or op["version"] in self._versions)
        if not mine or (self._message and op["message"] != self._message):
            return super().answer(op)
        return dict(self._instead)


CANNOT = {"status": "unsupported", "capability": "all"}
DIES = {"status": "died", "cause": "crashed", "message": "killed by SIGSEGV"}


@pytest.fixture
def small(tmp_path: Path) -> Options:
    return replace(SMALL, out=tmp_path / "out")


def executed(options: Options, monkeypatch: pytest.MonkeyPatch, **targets: Planted) -> tuple[Outcome, Ledger]:
    known = registry.target

    def target_of(name: str) -> Target:
        return InProcess(targets[name]) if name in targets else known(name)

    monkeypatch.setattr(engine_run, "target_of", target_of)
    outcome = run(options if not targets else replace(options, targets=tuple(targets)))
    assert outcome.ledger is not None
    return outcome, read(outcome.ledger)


# ---- inconclusive


def test_exit_codes_have_an_order() -> None:
    every = [70, 2, 3, 1, 5, 4, 7, 6, 0]
    for number, code in enumerate(every):
        assert exits.first(every[number:]) == code
        assert exits.MEANINGS[code]


def test_a_target_that_takes_no_operation_is_inconclusive(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, ledger = executed(small, monkeypatch, planted=Planted(CANNOT))
    assert (outcome.exit_code, outcome.failures) == (7, 0)
    assert {result for counts in ledger.cases.values() for result in counts} == {"SKIP"}
    whys = [(each.target, each.why) for each in ledger.inconclusive]
    assert ("*", "none of 120 cases passed") in whys
    assert ("planted", "120 of 120 cases in the role codec were skipped, more than a tenth") in whys
    assert {each.check for each in ledger.skips} == set(small.checks), "each check without a verdict is named"
    for name in ("summary.md", "report.html", "results.sarif", "results.json", "junit.xml"):
        assert "more than a tenth" in (small.out / name).read_text(), name
    assert "exit 7, inconclusive" in outcome.text and "every case was skipped" in outcome.text


def test_more_than_a_tenth_of_the_cases_in_a_role_is_too_much(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    one_in_five, ledger = executed(small, monkeypatch, planted=Planted(CANNOT, versions=(0,)))
    assert one_in_five.exit_code == 7
    assert [each.why for each in ledger.inconclusive] == [
        "24 of 120 cases in the role codec were skipped, more than a tenth"
    ]
    wider = replace(small, messages=("Heartbeat*", "SyncGroup*", "LeaveGroup*"))
    few = Planted(CANNOT, "decode", versions=(5,))  # a round trip also encodes
    enough, ledger = executed(wider, monkeypatch, planted=few)
    skipped = sum(counts["SKIP"] for counts in ledger.cases.values())
    cases = sum(counts.total() for counts in ledger.cases.values())
    assert 0 < skipped <= cases / 10
    assert (enough.exit_code, ledger.inconclusive) == (0, ())


def test_a_required_check_must_pass_or_fail(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    met, ledger = executed(replace(small, require=("wire/two*", "wire/round-trip")), monkeypatch)
    assert (met.exit_code, ledger.inconclusive) == (0, ())
    unmet, ledger = executed(replace(small, require=("wire/two*", "group/*")), monkeypatch)
    assert unmet.exit_code == 7
    assert [each.check for each in ledger.inconclusive][:2] == ["group/generations", "group/parked"]
    assert "--require group/*" in unmet.text
    typo = run(replace(small, require=("wire/tow",)))
    assert (typo.exit_code, typo.ledger) == (2, None)


def test_a_part_of_a_run_is_not_judged_alone(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    from kipcheck.conformance.core.values.part import Part
    from kipcheck.conformance.engine.ledger.merge import merge

    both = replace(small, messages=("HeartbeatRe*",), require=("wire/two-readings",))
    folders = []
    for number in (1, 2):
        folders.append(small.out.with_name(f"part{number}"))
        outcome, ledger = executed(
            replace(both, part=Part(number, 2), out=folders[-1]), monkeypatch, planted=Planted(CANNOT)
        )
        assert outcome.exit_code == (0 if ledger.cases else 7)
    merged = merge(folders, small.out)
    assert merged.exit_code == 7
    assert {each.target for each in read(merged.ledger).inconclusive} == {"*", "planted"}


def test_a_part_without_a_subject_and_parts_without_any_have_no_verdict(
    small: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kipcheck.conformance.core.values.part import Part
    from kipcheck.conformance.engine.ledger.merge import merge

    one = replace(small, messages=("HeartbeatRequest",))
    codes, folders = [], []
    for number in (1, 2):
        folders.append(small.out.with_name(f"part{number}"))
        outcome, ledger = executed(replace(one, part=Part(number, 2), out=folders[-1]), monkeypatch)
        codes.append(outcome.exit_code)
        if outcome.exit_code:
            why = f"part {number}/2 has none of the selected subjects, so nothing was tested here"
            assert [each.why for each in ledger.inconclusive] == [why] and ledger.footer is not None
            assert "conformant" not in ledger.footer.meaning and "nothing was tested" in outcome.text
            empty = folders[-1]
    assert sorted(codes) == [0, 7]
    assert merge(folders, small.out).exit_code == 0, "all parts together tested something"
    assert merge([empty], small.out.with_name("alone")).exit_code in (6, 7), "the other part is missing"


# ---- what is selected


def test_a_check_named_in_full_that_meets_nothing_is_wrong_usage(
    small: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    for beside in ((), ("wire/two-readings",)):
        for named in ("wire/later-versions", "group/static"):
            outcome = run(replace(small, checks=(*beside, named)))
            assert (outcome.exit_code, outcome.ledger) == (2, None), named
            # Alone, a check of groups makes the message the mistake.
            alone = not beside and named == "group/static"
            assert outcome.why.startswith("--message " if alone else f"--check {named}: "), outcome.why
    assert executed(replace(small, checks=("wire/two-readings", "wire/later*")), monkeypatch)[0].exit_code == 0


@pytest.mark.parametrize("name", ["kip-384", "kip-258"])
def test_an_edition_without_a_case_of_its_own_says_so(small: Options, name: str) -> None:
    outcome = run(replace(small, edition=name))
    assert (outcome.exit_code, outcome.ledger) == (2, None)
    assert outcome.why.startswith(f"edition {name} has nothing for the selected checks")


def test_an_edition_with_other_checks_names_them(small: Options) -> None:
    outcome = run(replace(small, edition="kip-268", checks=("assign/*",), messages=("*",)))
    assert outcome.exit_code == 2
    assert "streams/upgrade" in outcome.why


# ---- deaths


def test_a_death_uses_up_three_cases_of_a_check_and_subject(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, ledger = executed(replace(small, checks=("wire/two-readings",)), monkeypatch, planted=Planted(DIES))
    assert outcome.exit_code == 1
    assert ledger.footer is not None and not ledger.complete
    (failure,) = (each for each in ledger.failures if each.invariant == "survives")
    assert {each.result for each in ledger.held_back} == {"UNKNOWN"}
    assert {each.failure for each in ledger.held_back} == {failure.id}
    for place, counts in ledger.cases.items():
        assert counts == {"FAIL": 3, "UNKNOWN": 5}, place
    assert ledger.footer.exits == (1, 6, 7)
    assert f"held back: they look like failure {failure.id}" in outcome.text


def test_behind_a_listed_death_cases_are_skipped_and_the_run_is_complete(
    small: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "known.toml"
    listed.write_text(
        'target = "planted"\n[[deviation]]\nchecks = ["wire/two-readings"]\ninvariant = "survives"\n'
        f'versions = "{Planted(DIES).version}"\n'
        'shape = ["died", "decode", "crashed", "killed by SIGSEGV", "legal"]\n'
        'reason = "It dies of every body of version 4."\n'
        'link = "https://issues.apache.org/jira/browse/KAFKA-1"\n[deviation.where]\nHeartbeatResponse = "4"\n'
    )
    options = replace(small, known=(str(listed),), messages=("HeartbeatRe*",), checks=("wire/two-readings",))
    outcome, ledger = executed(options, monkeypatch, planted=Planted(DIES, message="HeartbeatResponse", versions=(4,)))
    assert (outcome.exit_code, outcome.known, ledger.complete) == (0, 1, True)
    assert [(each.result, each.cases, each.version) for each in ledger.held_back] == [("SKIP", 5, 4)]
    (died,) = (counts for place, counts in ledger.cases.items() if (place.subject, place.version) == PLACE)
    assert died == {"KNOWN": 3, "SKIP": 5}
    assert "exit 0, as expected" in outcome.text
    assert outcome.ledger is not None
    line = "planted: 5 cases were held back behind a known deviation: wire/two-readings on HeartbeatResponse"
    assert [each for each in outcome.text.splitlines() if "held back" in each] == [line]
    assert json.loads(reports.render(outcome.ledger, "json"))["footer"]["totals"]["held_back_cases"] == 5
    assert all(line in reports.render(outcome.ledger, form).replace("\\", "") for form in ("html", "markdown"))
    in_full = reports.render(outcome.ledger, "text")
    (row,) = (line for line in in_full.splitlines() if "wire/two-readings " in line and "72" in line)
    assert row.split() == ["wire/two-readings", "72", "0", "0", "0", "3", "0", "5"]
    unlisted, ledger = executed(
        replace(options, known=()), monkeypatch, planted=Planted(DIES, message="HeartbeatResponse", versions=(4,))
    )
    assert unlisted.exit_code == 1
    assert not ledger.complete and ledger.footer is not None and ledger.footer.stopped_by is None
    assert "INCOMPLETE (5 cases undecided)" in unlisted.text
    listing = updated("", str(listed), [ledger], None, date(2026, 11, 1))
    assert [line.split(":")[0] for line in listing.added] == ["survives"], "such a run can be listed"


PLACE = "HeartbeatResponse", 4


def test_groups_of_another_kind_do_not_look_like_those_of_a_death() -> None:
    """Shapes of deaths do not say what the group was, and looks do."""
    mixed, alike = (
        [{"id": "a", "subscription": ["t"], "owned": []}, {"id": "b", "subscription": [other], "owned": []}]
        for other in ("u", "t")
    )
    deaths = Deaths()
    for _ in range(MOST):
        deaths.note(died(assigns(mixed)))
    assert deaths.alike(assigns(mixed)) is not None
    assert deaths.alike(assigns(alike)) is None


def assigns(members: Sequence[Mapping[str, object]]) -> Case:
    asked = step("leader", "assign", assignor="sticky", topics=[], members=members)
    return Case("assign/one-round", "apache", Role.LEADER, (asked,))


def died(case: Case) -> History:
    return History(case, "planted", (Op(0, case.steps[0], Died("timeout", "")),))


def test_what_does_not_look_like_a_death_is_run(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    options = replace(small, checks=("wire/damage", "wire/prefixes", "wire/round-trip"))
    _, ledger = executed(options, monkeypatch, planted=Planted(DIES, "encode"))
    by_check = {each.check for each in ledger.held_back}
    assert by_check == {"wire/round-trip"}, "the others encode nothing"
    assert {each.cases for each in ledger.held_back} == {8 * 2 - 3}
