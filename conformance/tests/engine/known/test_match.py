"""Runs with lists of known deviations: what is expected does not fail, and whatever changes does."""

from dataclasses import replace
from datetime import date, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.core.ledger import KnownEntry, read
from kipcheck.conformance.engine.execution import run as engine_run
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.engine.known import lists, match
from kipcheck.conformance.engine.known.lists import file_names, load
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.tests.support.odd_client import (
    ENTRY,
    LINK,
    REASON,
    SOME,
    Defect,
    Held,
    Odd,
    off_by_one,
    refused,
    stale,
)
from kipcheck.conformance.wire import Layout


def test_what_is_known_does_not_fail_and_is_told(options: Options, executed: Held, listed: Path) -> None:
    outcome, ledger = executed(options)
    assert (outcome.exit_code, outcome.failures, outcome.known) == (0, 0, 1)
    (failure,) = ledger.failures
    assert failure.known == KnownEntry(file=str(listed), line=3, reason=REASON, link=LINK, expires=None)
    assert failure.where == {"HeartbeatRequest": "1-3"}
    assert ledger.footer is not None
    assert ledger.footer.known == {
        "entries": 1, "shown": 1, "not_looked_at": 0, "other_releases": 0, "stale": 0, "failures": 1,
    }  # fmt: skip
    assert any(line.result == "FAIL" for line in ledger.verdicts()), "known failures are still run"


def test_without_the_list_the_same_failures_appear(options: Options, executed: Held) -> None:
    _, known = executed(options)
    outcome, ledger = executed(replace(options, known=()))
    assert (outcome.exit_code, outcome.failures, outcome.known) == (1, 1, 0)
    assert [each.id for each in ledger.failures] == [each.id for each in known.failures]
    assert ledger.footer is not None and ledger.footer.known is None


@pytest.mark.parametrize("worse", [{0: off_by_one}, {4: off_by_one}])
def test_a_known_failure_that_spreads_is_a_failure(options: Options, executed: Held, worse: dict[int, Defect]) -> None:
    outcome, ledger = executed(options, {**SOME, **worse})
    assert (outcome.exit_code, outcome.failures, outcome.known) == (1, 1, 0)
    (failure,) = ledger.failures
    assert failure.beyond is not None and failure.beyond.where == {"HeartbeatRequest": str(*worse)}
    assert failure.beyond.reason == REASON
    assert stale(ledger) == []


def test_a_new_failure_beside_a_known_one_is_a_failure(options: Options, executed: Held) -> None:
    outcome, ledger = executed(options, {**SOME, 0: refused})
    assert (outcome.exit_code, outcome.failures, outcome.known) == (1, 1, 1)
    assert [each.known is not None for each in ledger.failures].count(True) == 1


def test_an_unexpected_pass_is_a_stale_expectation(options: Options, executed: Held) -> None:
    outcome, ledger = executed(options, {})
    assert (outcome.exit_code, outcome.failures) == (5, 0)
    (line,) = ledger.stale
    assert (line.kind, line.where) == ("passes", {"HeartbeatRequest": "1-3"})
    assert (line.reason, line.link, line.target) == (REASON, LINK, "odd")


def test_a_version_that_passes_unexpectedly_is_a_stale_expectation(options: Options, executed: Held) -> None:
    outcome, ledger = executed(options, {1: off_by_one, 3: off_by_one})
    assert (outcome.exit_code, outcome.known) == (5, 1)
    (line,) = ledger.stale
    assert (line.kind, line.where) == ("passes", {"HeartbeatRequest": "2"})


def test_another_reason_is_a_stale_expectation(options: Options, executed: Held) -> None:
    outcome, ledger = executed(options, dict.fromkeys((1, 2, 3), refused))
    assert (outcome.exit_code, outcome.known) == (5, 0)
    (line,), (failure,) = ledger.stale, ledger.failures
    assert line.kind == "changed" and failure.id in line.why
    assert failure.changed is not None and failure.changed.reason == REASON and failure.known is None


def test_another_reason_in_one_version_is_told_of_that_one(options: Options, executed: Held) -> None:
    outcome, ledger = executed(options, {**SOME, 2: refused})
    assert (outcome.exit_code, outcome.known) == (5, 1)
    assert [(each.kind, each.where) for each in ledger.stale] == [("changed", {"HeartbeatRequest": "2"})]


def test_of_several_entries_about_a_place_each_is_told_that_its_reason_changed(
    options: Options, executed: Held, listed: Path
) -> None:
    listed.write_text(listed.read_text() + ENTRY.replace('"int32", "int", "int"', '"string", "str", "str"'))
    outcome, ledger = executed(options, dict.fromkeys((1, 2, 3), refused))
    assert (outcome.exit_code, stale(ledger)) == (5, [("changed", "3"), ("changed", "13")])


def test_the_pattern_of_why_has_to_match(options: Options, executed: Held, listed: Path) -> None:
    text = listed.read_text()
    listed.write_text(text.replace("reason =", 'why = "generationId is read as"\nreason ='))
    assert executed(options)[0].exit_code == 0
    listed.write_text(text.replace("reason =", 'why = "^nothing of the kind"\nreason ='))
    outcome, ledger = executed(options)
    assert (outcome.exit_code, [kind for kind, _ in stale(ledger)]) == (5, ["changed"])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('target = "odd"', 'target = "kafka-pyhton"', "unknown target 'kafka-pyhton': did you mean 'kafka-python'"),
        ("wire/two-readings", "wire/three-readings", "unknown check 'wire/three-readings'"),
        ('"wire/decodes"', '"wire/dekodes"', "does not check an invariant 'wire/dekodes'"),
        ('"wire/decodes"', '"wire/encodes"', "wire/two-readings does not check"),
        ('HeartbeatRequest = "1-3"', 'HeartbeatRequest = "1-3"\nHartbeat = "1"', "no subject 'Hartbeat'"),
        ('HeartbeatRequest = "1-3"', 'HeartbeatRequest = "1-3, 9"', None),
        ('HeartbeatRequest = "1-3"', 'HeartbeatRequest = "1-3"\nHeartbeatResponse = "77"', "of these versions"),
    ],
)
def test_an_entry_that_matches_nothing_is_stale(
    options: Options, executed: Held, listed: Path, old: str, new: str, why: str | None
) -> None:
    assert old in listed.read_text()
    listed.write_text(listed.read_text().replace(old, new))
    outcome, ledger = executed(options, {} if "pyhton" in new or "dekodes" in new else SOME)
    assert outcome.exit_code in (1, 5) and outcome.failures == (outcome.exit_code == 1)
    assert "nothing" in [kind for kind, _ in stale(ledger)]
    assert why is None or any(why in each.why for each in ledger.stale), ledger.stale


def test_an_entry_about_what_the_target_does_not_claim_matches_nothing(options: Options, executed: Held) -> None:
    class Less(Odd):
        def claims(self) -> Any:
            claims = super().claims()
            return replace(claims, messages={**claims.messages, "HeartbeatRequest": (0, 2)})

    outcome, ledger = executed(options, target=Less(SOME))
    assert (outcome.exit_code, outcome.known) == (5, 1)
    assert [(each.kind, each.where) for each in ledger.stale] == [("nothing", {"HeartbeatRequest": "3"})]


@pytest.mark.parametrize(("days", "code"), [(1, 0), (0, 0), (-1, 5)])
def test_an_entry_expires(options: Options, executed: Held, listed: Path, days: int, code: int) -> None:
    until = date.today() + timedelta(days)
    listed.write_text(listed.read_text().replace("[deviation.where]", f"expires = {until}\n[deviation.where]"))
    outcome, ledger = executed(options)
    assert (outcome.exit_code, outcome.known) == (code, 1)
    assert stale(ledger) == ([("expired", "3")] if code else [])
    assert ledger.failures[0].known is not None and ledger.failures[0].known.expires == str(until)


def test_an_entry_of_another_release_says_nothing(options: Options, executed: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace("1.0.0-1.9.9", "1.0.0-1.2.2"))
    assert executed(options)[0].exit_code == 1
    outcome, ledger = executed(options, {})
    assert outcome.exit_code == 0 and ledger.footer is not None and ledger.footer.known is not None
    assert (ledger.footer.known["other_releases"], ledger.footer.known["not_looked_at"]) == (1, 0)


# ---- wildcards


def test_an_entry_may_stand_for_few_subjects_only(options: Options, executed: Held, listed: Path) -> None:
    class Everywhere(Odd):
        def read(self, layout: Layout, data: bytes) -> dict[str, Any]:
            value = Reference.read(self, layout, data)
            if "throttleTimeMs" in value:
                value = {**value, "throttleTimeMs": (value["throttleTimeMs"] + 1) % 2**31}
            return value

    listed.write_text(listed.read_text().replace('HeartbeatRequest = "1-3"', '"*Response" = "*"'))
    outcome, ledger = executed(replace(options, messages=("Heartbeat*",)), target=Everywhere({}))
    assert (outcome.exit_code, outcome.known) == (0, 1)
    outcome, ledger = executed(replace(options, messages=("*Response",), cases=2), target=Everywhere({}))
    assert (outcome.exit_code, [kind for kind, _ in stale(ledger)]) == (5, ["wide"])


def test_an_entry_may_stand_for_few_failures_only(
    options: Options, executed: Held, listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed.write_text(listed.read_text().replace('["misread", "int32", "int", "int"]', '["*", "*", "*", "*"]'))

    def nameless(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "memberId": value["memberId"] + "!"}

    assert executed(options, {**SOME, 3: nameless})[0].exit_code == 0
    monkeypatch.setattr(match, "MOST_FAILURES", 1)
    outcome, ledger = executed(options, {**SOME, 3: nameless})
    assert (outcome.exit_code, stale(ledger), outcome.known) == (5, [("wide", "3")], 2)


def test_a_wildcard_that_holds_nothing_is_stale(options: Options, executed: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace('HeartbeatRequest = "1-3"', '"HeartbeatReq*" = "1+"'))
    assert executed(options)[0].exit_code == 0
    outcome, ledger = executed(options, {})
    assert (outcome.exit_code, stale(ledger)) == (5, [("passes", "3")])
    listed.write_text(listed.read_text().replace('"1+"', '"8+"'))
    outcome, ledger = executed(options, {})
    assert (outcome.exit_code, stale(ledger)) == (5, [("nothing", "3")])


# ---- what was not looked at


@pytest.mark.parametrize(
    "change", [{"checks": ("wire/prefixes",)}, {"messages": ("SyncGroupRequest",)}, {"edition": "kip-584"}]
)
def test_what_is_left_out_is_no_unexpected_pass(options: Options, executed: Held, change: dict[str, Any]) -> None:
    if "edition" in change:
        change["messages"] = ("ApiVersions*",)
    outcome, ledger = executed(replace(options, **change), {})
    assert (outcome.exit_code, stale(ledger)) == (0, [])
    assert ledger.footer is not None and (ledger.footer.known or {})["not_looked_at"] == 1


def test_what_no_time_was_left_for_is_no_unexpected_pass(options: Options, executed: Held) -> None:
    outcome, ledger = executed(replace(options, budget=0.0), {})
    assert (outcome.exit_code, stale(ledger)) == (7, []), "nothing passed"


def test_what_cannot_be_had_is_neither_known_nor_a_pass(
    options: Options, monkeypatch: pytest.MonkeyPatch, executed: Held
) -> None:
    def missing(name: str) -> Any:
        raise Unavailable("odd is not installed")

    monkeypatch.setattr(engine_run, "target_of", missing)
    outcome = run(options)
    assert outcome.exit_code == 3 and outcome.ledger is not None
    assert stale(read(outcome.ledger)) == []


def test_a_run_that_is_cut_short_still_knows_what_is_known(options: Options, executed: Held, listed: Path) -> None:
    def interrupted(value: dict[str, Any]) -> dict[str, Any]:
        raise KeyboardInterrupt

    words = '["refused", "text", "it takes no generation"]'
    listed.write_text(listed.read_text().replace('["misread", "int32", "int", "int"]', words[:-1] + ', "int32"]'))
    outcome, ledger = executed(options, {1: refused, 2: interrupted})
    assert (outcome.exit_code, outcome.known, stale(ledger)) == (6, 1, [])


def test_a_check_that_was_left_out_may_be_the_one_that_shows_it(options: Options, executed: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace('["wire/two-readings"]', '["wire/two-readings", "wire/vectors"]'))
    assert executed(options, {})[0].exit_code == 0
    both = ("wire/two-readings", "wire/vectors")
    assert executed(replace(options, checks=both), {})[0].exit_code == 5


@pytest.mark.integration
def test_with_other_cases_what_does_not_show_says_nothing(options: Options, executed: Held, listed: Path) -> None:
    for other in (replace(options, seed=3), replace(options, cases=2), replace(options, cases=200)):
        assert executed(other, {1: off_by_one})[0].exit_code == 0
        outcome, ledger = executed(other, {})
        assert (outcome.exit_code, stale(ledger)) == (0, [])
    assert executed(options, {1: off_by_one})[0].exit_code == 5, "with its own cases it is held to the letter"
    listed.write_text(listed.read_text().replace("[deviation.where]", "seldom = true\n[deviation.where]"))
    assert executed(options, {})[0].exit_code == 0
    assert executed(options)[0].exit_code == 0


def test_with_other_cases_a_new_place_or_shape_is_a_failure(options: Options, executed: Held, listed: Path) -> None:
    other = replace(options, seed=3)
    assert executed(other, {**SOME, 4: off_by_one})[0].exit_code == 1
    outcome, ledger = executed(other, {**SOME, 2: refused})
    assert (outcome.exit_code, stale(ledger)) == (1, []), "the list may not have shown with this seed"
    assert [each.changed for each in ledger.failures] == [None, None]
    listed.write_text(listed.read_text().replace("[deviation.where]", "seldom = true\n[deviation.where]"))
    assert executed(options, {**SOME, 2: refused})[0].exit_code == 1


def test_a_file_may_be_about_other_cases(options: Options, executed: Held, listed: Path) -> None:
    listed.write_text("seed = 3\ncases = 4\n" + listed.read_text())
    assert executed(replace(options, seed=3, cases=4), {1: off_by_one})[0].exit_code == 5
    assert executed(options, {1: off_by_one})[0].exit_code == 0


# ---- flaky ones


FLAKY = f"""
[[flaky]]
checks = ["wire/two-readings"]
invariant = "wire/decodes"
versions = "1.2.3"
reason = "It comes and goes with what the machine does beside."
link = "{LINK}"
expires = 2999-01-01
[flaky.where]
HeartbeatRequest = "1-3"
"""


class Wavering(Odd):
    """Fails in company, and of the times that it is asked alone as the pattern says."""

    def __init__(self, alone: str, *versions: int) -> None:
        super().__init__(dict.fromkeys(versions or (2,), off_by_one))
        self.pattern = cycle(alone)
        self.asked = 0

    def read(self, layout: Layout, data: bytes) -> dict[str, Any]:
        if layout.message != "HeartbeatRequest" or layout.version not in self.defects:
            return super().read(layout, data)
        self.asked += 1
        if self.asked > 16 * len(self.defects) and next(self.pattern) == "+":
            return Reference.read(self, layout, data)
        return super().read(layout, data)


@pytest.mark.parametrize("alone", ["+", "--+", "----+"])
def test_what_is_listed_as_flaky_and_comes_and_goes_is_told(
    options: Options, executed: Held, listed: Path, alone: str
) -> None:
    listed.write_text('target = "odd"\n' + FLAKY)
    outcome, ledger = executed(options, target=Wavering(alone))
    assert (outcome.exit_code, outcome.failures, ledger.failures) == (0, 0, ())
    (flaky,) = ledger.flaky
    assert flaky.entry == f"{listed}:3" and flaky.subject == "HeartbeatRequest" and "of 5 times" in flaky.alone


def test_what_comes_and_goes_and_is_not_listed_makes_the_target_unstable(options: Options, executed: Held) -> None:
    outcome, ledger = executed(replace(options, known=()), target=Wavering("+"))
    assert (outcome.exit_code, len(ledger.troubles)) == (4, 1)


def test_what_comes_and_goes_where_it_is_not_listed_makes_the_target_unstable_too(
    options: Options, executed: Held, listed: Path
) -> None:
    listed.write_text('target = "odd"\n' + FLAKY)
    outcome, ledger = executed(options, target=Wavering("+", 3, 4))
    assert (outcome.exit_code, len(ledger.flaky), len(ledger.troubles)) == (4, 1, 1)
    assert "HeartbeatRequest v4" in ledger.troubles[0].why


def test_what_always_fails_is_no_flake(options: Options, executed: Held, listed: Path) -> None:
    listed.write_text('target = "odd"\n' + FLAKY)
    outcome, ledger = executed(options, target=Wavering("-"))
    assert (outcome.exit_code, stale(ledger)) == (5, [("steady", "3")])
    assert ledger.failures[0].changed is not None and not ledger.flaky


def test_a_flaky_one_that_does_not_show_is_no_unexpected_pass_and_expires(
    options: Options, executed: Held, listed: Path
) -> None:
    listed.write_text('target = "odd"\n' + FLAKY)
    assert executed(options, {})[0].exit_code == 0
    listed.write_text(listed.read_text().replace("2999", "2001"))
    outcome, ledger = executed(options, {})
    assert (outcome.exit_code, stale(ledger)) == (5, [("expired", "3")])


# ---- files


def test_a_list_that_is_wrong_is_wrong_usage_and_nothing_is_run(options: Options, executed: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace(REASON, "TODO"))
    outcome, _ = executed(options)
    assert (outcome.exit_code, f"{listed}:8: reason must be written" in outcome.why) == (2, True)
    assert not options.out.exists()
    assert executed(replace(options, known=(str(listed.parent / "absent.toml"),)))[0].exit_code == 2


def test_several_lists_may_not_mean_the_same_failure(options: Options, executed: Held, listed: Path) -> None:
    other = listed.with_name("more.toml")
    other.write_text(listed.read_text().replace('"1-3"', '"4"'))
    both = replace(options, known=(str(listed), str(other)))
    assert executed(both, {**SOME, 4: off_by_one})[0].exit_code == 0
    other.write_text(listed.read_text())
    outcome, _ = executed(both)
    assert outcome.exit_code == 2 and f"{other}:3: it may match the same failure as {listed}:3" in outcome.why


def test_a_page_that_is_linked_has_to_be_there(options: Options, executed: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace(LINK, "pages/odd.md"))
    outcome, _ = executed(options)
    assert outcome.exit_code == 2 and "the page 'pages/odd.md' does not exist" in outcome.why
    (listed.parent / "pages").mkdir()
    (listed.parent / "pages" / "odd.md").touch()
    assert executed(options)[0].exit_code == 0


def test_an_edition_that_is_none_is_told(options: Options, executed: Held, listed: Path) -> None:
    listed.write_text('edition = "apache@9"\n' + listed.read_text())
    assert executed(options)[0].exit_code == 2


def test_default_is_the_list_of_each_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert file_names("kafka-python@2.3.0") == ["kafka-python"]
    assert file_names("java:kafka-clients:3.9.2") == ["java-kafka-clients", "java-kafka-clients-3.9.2"]
    assert file_names("kafka:4.3.1") == ["kafka", "kafka-4.3.1"]
    assert file_names("client:java@2.3.1") == ["client-java"] and file_names("client:franz-go") == ["client-franz-go"]
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "odd.toml").write_text('target = "odd"\n' + ENTRY)
    monkeypatch.setattr(lists, "files", lambda package: tmp_path)
    assert [len(known.entries) for known in load(["default"], ["odd@1.2.3", "other"])] == [1]
    assert load(["default"], ["other"]) == ()


def test_the_lists_that_come_with_kipcheck_are_well_formed_and_about_what_there_is() -> None:
    assert command(["known", "check", "default"]) == 0
