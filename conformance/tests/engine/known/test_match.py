"""Runs with lists of known deviations: what is expected does not fail, and whatever changes does."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.apis.reference import Reference
from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.core.ledger import Header, KnownEntry, Ledger, read
from kipcheck.conformance.engine import run as engine_run
from kipcheck.conformance.engine.known import lists, match
from kipcheck.conformance.engine.known.edit import updated
from kipcheck.conformance.engine.known.files import InvalidKnownFile
from kipcheck.conformance.engine.known.lists import file_names, load
from kipcheck.conformance.engine.run import Options, Outcome, run
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused

TODAY = date(2026, 11, 21)
LINK = "https://github.com/odd/client/issues/7"
REASON = "It counts generations from one on, as its first release did."
Defect = Callable[[dict[str, Any]], dict[str, Any]]


def off_by_one(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "generationId": (value["generationId"] + 1) % 2**31}


def refused(value: dict[str, Any]) -> dict[str, Any]:
    raise Refused("text", "it takes no generation", message="HeartbeatRequest", version=0)


class Odd(Reference):
    """A client that reads the heartbeats of some versions wrongly."""

    name, version = "odd", "1.2.3"

    def __init__(self, defects: Mapping[int, Defect], message: str = "HeartbeatRequest") -> None:
        super().__init__()
        self.version = "1.2.3"
        self.defects = defects
        self.message = message

    def read(self, layout: Layout, data: bytes) -> dict[str, Any]:
        value = super().read(layout, data)
        if layout.message == self.message and layout.version in self.defects:
            return self.defects[layout.version](value)
        return value


SOME = {version: off_by_one for version in (1, 2, 3)}
ENTRY = f"""
[[deviation]]
checks = ["wire/two-readings"]
invariant = "wire/decodes"
versions = "1.0.0-1.9.9"
shape = ["misread", "int32", "int", "int"]
reason = "{REASON}"
link = "{LINK}"
[deviation.where]
HeartbeatRequest = "1-3"
"""


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "odd.toml"
    path.write_text('target = "odd"\n' + ENTRY)
    return path


@pytest.fixture
def options(tmp_path: Path, listed: Path) -> Options:
    return Options(
        targets=("odd",), messages=("HeartbeatRe*",), checks=("wire/two-readings",), workers=1,
        known=(str(listed),), out=tmp_path / "out",
    )  # fmt: skip


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Outcome, Ledger]]:
    def held(options: Options, defects: Mapping[int, Defect] = SOME, **made: Any) -> tuple[Outcome, Ledger]:
        target = made.get("target") or Odd(defects)
        monkeypatch.setattr(engine_run, "target_of", lambda name: InProcess(target))
        outcome = run(options)
        if outcome.exit_code == 2:
            return outcome, Ledger(options.out, Header())
        assert outcome.ledger is not None, outcome.why
        return outcome, read(outcome.ledger)

    return held


Held = Callable[..., tuple[Outcome, Ledger]]


def stale(ledger: Ledger) -> list[tuple[str, str]]:
    return [(each.kind, each.entry.rpartition(":")[2]) for each in ledger.stale]


def test_what_is_known_does_not_fail_and_is_told(options: Options, held: Held, listed: Path) -> None:
    outcome, ledger = held(options)
    assert (outcome.exit_code, outcome.failures, outcome.known) == (0, 0, 1)
    (failure,) = ledger.failures
    assert failure.known == KnownEntry(file=str(listed), line=3, reason=REASON, link=LINK, expires=None)
    assert failure.where == {"HeartbeatRequest": "1-3"}
    assert ledger.footer is not None
    assert ledger.footer.known == {
        "entries": 1, "shown": 1, "not_looked_at": 0, "other_releases": 0, "stale": 0, "failures": 1,
    }  # fmt: skip
    assert any(line.result == "FAIL" for line in ledger.verdicts()), "known failures are still run"


def test_without_the_list_the_same_failures_appear(options: Options, held: Held) -> None:
    _, known = held(options)
    outcome, ledger = held(replace(options, known=()))
    assert (outcome.exit_code, outcome.failures, outcome.known) == (1, 1, 0)
    assert [each.id for each in ledger.failures] == [each.id for each in known.failures]
    assert ledger.footer is not None and ledger.footer.known is None


@pytest.mark.parametrize("worse", [{0: off_by_one}, {4: off_by_one}])
def test_a_known_failure_that_spreads_is_a_failure(options: Options, held: Held, worse: dict[int, Defect]) -> None:
    outcome, ledger = held(options, {**SOME, **worse})
    assert (outcome.exit_code, outcome.failures, outcome.known) == (1, 1, 0)
    (failure,) = ledger.failures
    assert failure.beyond is not None and failure.beyond.where == {"HeartbeatRequest": str(*worse)}
    assert failure.beyond.reason == REASON
    assert stale(ledger) == []


def test_a_new_failure_beside_a_known_one_is_a_failure(options: Options, held: Held) -> None:
    outcome, ledger = held(options, {**SOME, 0: refused})
    assert (outcome.exit_code, outcome.failures, outcome.known) == (1, 1, 1)
    assert [each.known is not None for each in ledger.failures].count(True) == 1


def test_an_unexpected_pass_is_a_stale_expectation(options: Options, held: Held) -> None:
    outcome, ledger = held(options, {})
    assert (outcome.exit_code, outcome.failures) == (5, 0)
    (line,) = ledger.stale
    assert (line.kind, line.where) == ("passes", {"HeartbeatRequest": "1-3"})
    assert (line.reason, line.link, line.target) == (REASON, LINK, "odd")


def test_a_version_that_passes_unexpectedly_is_a_stale_expectation(options: Options, held: Held) -> None:
    outcome, ledger = held(options, {1: off_by_one, 3: off_by_one})
    assert (outcome.exit_code, outcome.known) == (5, 1)
    (line,) = ledger.stale
    assert (line.kind, line.where) == ("passes", {"HeartbeatRequest": "2"})


def test_another_reason_is_a_stale_expectation(options: Options, held: Held) -> None:
    outcome, ledger = held(options, dict.fromkeys((1, 2, 3), refused))
    assert (outcome.exit_code, outcome.known) == (5, 0)
    (line,), (failure,) = ledger.stale, ledger.failures
    assert line.kind == "changed" and failure.id in line.why
    assert failure.changed is not None and failure.changed.reason == REASON and failure.known is None


def test_another_reason_in_one_version_is_told_of_that_one(options: Options, held: Held) -> None:
    outcome, ledger = held(options, {**SOME, 2: refused})
    assert (outcome.exit_code, outcome.known) == (5, 1)
    assert [(each.kind, each.where) for each in ledger.stale] == [("changed", {"HeartbeatRequest": "2"})]


def test_of_several_entries_about_a_place_each_is_told_that_its_reason_changed(
    options: Options, held: Held, listed: Path
) -> None:
    listed.write_text(listed.read_text() + ENTRY.replace('"int32", "int", "int"', '"string", "str", "str"'))
    outcome, ledger = held(options, dict.fromkeys((1, 2, 3), refused))
    assert (outcome.exit_code, stale(ledger)) == (5, [("changed", "3"), ("changed", "13")])


def test_the_pattern_of_why_has_to_match(options: Options, held: Held, listed: Path) -> None:
    text = listed.read_text()
    listed.write_text(text.replace("reason =", 'why = "generationId is read as"\nreason ='))
    assert held(options)[0].exit_code == 0
    listed.write_text(text.replace("reason =", 'why = "^nothing of the kind"\nreason ='))
    outcome, ledger = held(options)
    assert (outcome.exit_code, [kind for kind, _ in stale(ledger)]) == (5, ["changed"])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('target = "odd"', 'target = "even"', "unknown target 'even'"),
        ("wire/two-readings", "wire/three-readings", "unknown check 'wire/three-readings'"),
        ('"wire/decodes"', '"wire/dekodes"', "does not check an invariant 'wire/dekodes'"),
        ('"wire/decodes"', '"wire/encodes"', "wire/two-readings does not check"),
        ('HeartbeatRequest = "1-3"', 'HeartbeatRequest = "1-3"\nHartbeat = "1"', "no subject 'Hartbeat'"),
        ('HeartbeatRequest = "1-3"', 'HeartbeatRequest = "1-3, 9"', None),
        ('HeartbeatRequest = "1-3"', 'HeartbeatRequest = "1-3"\nHeartbeatResponse = "77"', "of these versions"),
    ],
)
def test_an_entry_that_matches_nothing_is_stale(
    options: Options, held: Held, listed: Path, old: str, new: str, why: str | None
) -> None:
    assert old in listed.read_text()
    listed.write_text(listed.read_text().replace(old, new))
    outcome, ledger = held(options, {} if "even" in new or "dekodes" in new else SOME)
    assert outcome.exit_code in (1, 5) and outcome.failures == (outcome.exit_code == 1)
    assert "nothing" in [kind for kind, _ in stale(ledger)]
    assert why is None or any(why in each.why for each in ledger.stale), ledger.stale


def test_an_entry_about_what_the_target_does_not_claim_matches_nothing(options: Options, held: Held) -> None:
    class Less(Odd):
        def claims(self) -> Any:
            claims = super().claims()
            return replace(claims, messages={**claims.messages, "HeartbeatRequest": (0, 2)})

    outcome, ledger = held(options, target=Less(SOME))
    assert (outcome.exit_code, outcome.known) == (5, 1)
    assert [(each.kind, each.where) for each in ledger.stale] == [("nothing", {"HeartbeatRequest": "3"})]


@pytest.mark.parametrize(("days", "code"), [(1, 0), (0, 0), (-1, 5)])
def test_an_entry_expires(options: Options, held: Held, listed: Path, days: int, code: int) -> None:
    until = date.today() + timedelta(days)
    listed.write_text(listed.read_text().replace("[deviation.where]", f"expires = {until}\n[deviation.where]"))
    outcome, ledger = held(options)
    assert (outcome.exit_code, outcome.known) == (code, 1)
    assert stale(ledger) == ([("expired", "3")] if code else [])
    assert ledger.failures[0].known is not None and ledger.failures[0].known.expires == str(until)


def test_an_entry_of_another_release_says_nothing(options: Options, held: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace("1.0.0-1.9.9", "1.0.0-1.2.2"))
    assert held(options)[0].exit_code == 1
    outcome, ledger = held(options, {})
    assert outcome.exit_code == 0 and ledger.footer is not None and ledger.footer.known is not None
    assert (ledger.footer.known["other_releases"], ledger.footer.known["not_looked_at"]) == (1, 0)


# ---- wildcards


def test_an_entry_may_stand_for_few_subjects_only(options: Options, held: Held, listed: Path) -> None:
    class Everywhere(Odd):
        def read(self, layout: Layout, data: bytes) -> dict[str, Any]:
            value = Reference.read(self, layout, data)
            if "throttleTimeMs" in value:
                value = {**value, "throttleTimeMs": (value["throttleTimeMs"] + 1) % 2**31}
            return value

    listed.write_text(listed.read_text().replace('HeartbeatRequest = "1-3"', '"*Response" = "*"'))
    outcome, ledger = held(replace(options, messages=("Heartbeat*",)), target=Everywhere({}))
    assert (outcome.exit_code, outcome.known) == (0, 1)
    outcome, ledger = held(replace(options, messages=("*Response",), cases=2), target=Everywhere({}))
    assert (outcome.exit_code, [kind for kind, _ in stale(ledger)]) == (5, ["wide"])


def test_an_entry_may_stand_for_few_failures_only(
    options: Options, held: Held, listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed.write_text(listed.read_text().replace('["misread", "int32", "int", "int"]', '["*", "*", "*", "*"]'))

    def nameless(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "memberId": value["memberId"] + "!"}

    assert held(options, {**SOME, 3: nameless})[0].exit_code == 0
    monkeypatch.setattr(match, "MOST_FAILURES", 1)
    outcome, ledger = held(options, {**SOME, 3: nameless})
    assert (outcome.exit_code, stale(ledger), outcome.known) == (5, [("wide", "3")], 2)


def test_a_wildcard_that_holds_nothing_is_stale(options: Options, held: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace('HeartbeatRequest = "1-3"', '"HeartbeatReq*" = "1+"'))
    assert held(options)[0].exit_code == 0
    outcome, ledger = held(options, {})
    assert (outcome.exit_code, stale(ledger)) == (5, [("passes", "3")])
    listed.write_text(listed.read_text().replace('"1+"', '"8+"'))
    outcome, ledger = held(options, {})
    assert (outcome.exit_code, stale(ledger)) == (5, [("nothing", "3")])


# ---- what was not looked at


@pytest.mark.parametrize(
    "change", [{"checks": ("wire/prefixes",)}, {"messages": ("SyncGroupRequest",)}, {"edition": "kip-584"}]
)
def test_what_is_left_out_is_no_unexpected_pass(options: Options, held: Held, change: dict[str, Any]) -> None:
    if "edition" in change:
        change["messages"] = ("ApiVersions*",)
    outcome, ledger = held(replace(options, **change), {})
    assert (outcome.exit_code, stale(ledger)) == (0, [])
    assert ledger.footer is not None and (ledger.footer.known or {})["not_looked_at"] == 1


def test_what_no_time_was_left_for_is_no_unexpected_pass(options: Options, held: Held) -> None:
    outcome, ledger = held(replace(options, budget=0.0), {})
    assert (outcome.exit_code, stale(ledger)) == (6, [])


def test_what_cannot_be_had_is_neither_known_nor_a_pass(
    options: Options, monkeypatch: pytest.MonkeyPatch, held: Held
) -> None:
    def missing(name: str) -> Any:
        raise Unavailable("odd is not installed")

    monkeypatch.setattr(engine_run, "target_of", missing)
    outcome = run(options)
    assert outcome.exit_code == 3 and outcome.ledger is not None
    assert stale(read(outcome.ledger)) == []


def test_a_run_that_is_cut_short_still_knows_what_is_known(options: Options, held: Held, listed: Path) -> None:
    def interrupted(value: dict[str, Any]) -> dict[str, Any]:
        raise KeyboardInterrupt

    words = '["refused", "text", "it takes no generation"]'
    listed.write_text(listed.read_text().replace('["misread", "int32", "int", "int"]', words[:-1] + ', "int32"]'))
    outcome, ledger = held(options, {1: refused, 4: interrupted})
    assert (outcome.exit_code, outcome.known, stale(ledger)) == (6, 1, [])


def test_a_check_that_was_left_out_may_be_the_one_that_shows_it(options: Options, held: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace('["wire/two-readings"]', '["wire/two-readings", "wire/vectors"]'))
    assert held(options, {})[0].exit_code == 0
    both = ("wire/two-readings", "wire/vectors")
    assert held(replace(options, checks=both), {})[0].exit_code == 5


def test_with_other_cases_a_part_that_does_not_show_says_nothing(options: Options, held: Held, listed: Path) -> None:
    other = replace(options, seed=3)
    assert held(other, {1: off_by_one})[0].exit_code == 0
    outcome, ledger = held(other, {})
    assert (outcome.exit_code, stale(ledger)) == (5, [("passes", "3")])
    assert held(replace(options, cases=2), {})[0].exit_code == 0
    listed.write_text(listed.read_text().replace("[deviation.where]", "seldom = true\n[deviation.where]"))
    assert held(other, {})[0].exit_code == 0
    assert held(options, {})[0].exit_code == 5, "with its own cases it is held to the letter"


def test_a_file_may_be_about_other_cases(options: Options, held: Held, listed: Path) -> None:
    listed.write_text("seed = 3\ncases = 4\n" + listed.read_text())
    assert held(replace(options, seed=3, cases=4), {1: off_by_one})[0].exit_code == 5
    assert held(options, {1: off_by_one})[0].exit_code == 0


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
    options: Options, held: Held, listed: Path, alone: str
) -> None:
    listed.write_text('target = "odd"\n' + FLAKY)
    outcome, ledger = held(options, target=Wavering(alone))
    assert (outcome.exit_code, outcome.failures, ledger.failures) == (0, 0, ())
    (flaky,) = ledger.flaky
    assert flaky.entry == f"{listed}:3" and flaky.subject == "HeartbeatRequest" and "of 5 times" in flaky.alone


def test_what_comes_and_goes_and_is_not_listed_makes_the_target_unstable(options: Options, held: Held) -> None:
    outcome, ledger = held(replace(options, known=()), target=Wavering("+"))
    assert (outcome.exit_code, len(ledger.troubles)) == (4, 1)


def test_what_comes_and_goes_where_it_is_not_listed_makes_the_target_unstable_too(
    options: Options, held: Held, listed: Path
) -> None:
    listed.write_text('target = "odd"\n' + FLAKY)
    outcome, ledger = held(options, target=Wavering("+", 3, 4))
    assert (outcome.exit_code, len(ledger.flaky), len(ledger.troubles)) == (4, 1, 1)
    assert "HeartbeatRequest v4" in ledger.troubles[0].why


def test_what_always_fails_is_no_flake(options: Options, held: Held, listed: Path) -> None:
    listed.write_text('target = "odd"\n' + FLAKY)
    outcome, ledger = held(options, target=Wavering("-"))
    assert (outcome.exit_code, stale(ledger)) == (5, [("steady", "3")])
    assert ledger.failures[0].changed is not None and not ledger.flaky


def test_a_flaky_one_that_does_not_show_is_no_unexpected_pass_and_expires(
    options: Options, held: Held, listed: Path
) -> None:
    listed.write_text('target = "odd"\n' + FLAKY)
    assert held(options, {})[0].exit_code == 0
    listed.write_text(listed.read_text().replace("2999", "2001"))
    outcome, ledger = held(options, {})
    assert (outcome.exit_code, stale(ledger)) == (5, [("expired", "3")])


# ---- files


def test_a_list_that_is_wrong_is_wrong_usage_and_nothing_is_run(options: Options, held: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace(REASON, "TODO"))
    outcome, _ = held(options)
    assert (outcome.exit_code, f"{listed}:8: reason must be written" in outcome.why) == (2, True)
    assert not options.out.exists()
    assert held(replace(options, known=(str(listed.parent / "absent.toml"),)))[0].exit_code == 2


def test_several_lists_may_not_mean_the_same_failure(options: Options, held: Held, listed: Path) -> None:
    other = listed.with_name("more.toml")
    other.write_text(listed.read_text().replace('"1-3"', '"4"'))
    both = replace(options, known=(str(listed), str(other)))
    assert held(both, {**SOME, 4: off_by_one})[0].exit_code == 0
    other.write_text(listed.read_text())
    outcome, _ = held(both)
    assert outcome.exit_code == 2 and f"{other}:3: it may match the same failure as {listed}:3" in outcome.why


def test_a_page_that_is_linked_has_to_be_there(options: Options, held: Held, listed: Path) -> None:
    listed.write_text(listed.read_text().replace(LINK, "pages/odd.md"))
    outcome, _ = held(options)
    assert outcome.exit_code == 2 and "the page 'pages/odd.md' does not exist" in outcome.why
    (listed.parent / "pages").mkdir()
    (listed.parent / "pages" / "odd.md").touch()
    assert held(options)[0].exit_code == 0


def test_an_edition_that_is_none_is_told(options: Options, held: Held, listed: Path) -> None:
    listed.write_text('edition = "apache@9"\n' + listed.read_text())
    assert held(options)[0].exit_code == 2


def test_default_is_the_list_of_each_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert file_names("kafka-python@2.3.0") == ["kafka-python"]
    assert file_names("java:kafka-clients:3.9.2") == ["java-kafka-clients", "java-kafka-clients-3.9.2"]
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "odd.toml").write_text('target = "odd"\n' + ENTRY)
    monkeypatch.setattr(lists, "files", lambda package: tmp_path)
    assert [len(known.entries) for known in load(["default"], ["odd@1.2.3", "other"])] == [1]
    assert load(["default"], ["other"]) == ()


def test_the_lists_that_come_with_kipcheck_are_well_formed_and_about_what_there_is() -> None:
    assert command(["known", "check", "default"]) == 0


# ---- the rewrite tool


def rewritten(text: str, ledger: Ledger, today: date = TODAY) -> Any:
    return updated(text, "odd.toml", ledger, None, today)


def with_everything(ledger: Ledger) -> Ledger:
    """With a header that leaves nothing out."""
    options = ledger.header.options.update(checks=("*",), messages=("*",))
    return replace(ledger, header=ledger.header.update(options=options))


def whole(options: Options, held: Held, defects: Mapping[int, Defect]) -> Ledger:
    """Of a run that left nothing out, as far as its header tells."""
    _, ledger = held(replace(options, known=()), defects)
    return with_everything(ledger)


def test_a_list_is_begun_from_a_run_and_refused_until_it_is_filled_in(options: Options, held: Held) -> None:
    made = rewritten("", whole(options, held, SOME))
    assert (len(made.added), made.removed, made.narrowed) == (1, [], [])
    listed = Path(options.known[0])
    listed.write_text(made.text)
    assert held(options)[0].exit_code == 2
    filled = made.text.replace('link = "TODO"', f'link = "{LINK}"')
    assert "TODO: HeartbeatRequest v" in filled
    listed.write_text("\n".join(f'reason = "{REASON}"' if "TODO" in line else line for line in filled.splitlines()))
    outcome, _ = held(options)
    assert (outcome.exit_code, outcome.known) == (0, 1)
    assert rewritten(listed.read_text(), whole(options, held, SOME)).text == listed.read_text()


COMMENTED = f"""\
# What odd does otherwise.
target = "odd"   # the one in our cellar

# The first of them,
# in two lines.
[[deviation]]
checks = ["wire/two-readings"]
invariant = "wire/decodes"   # and nothing else
versions = "1.0.0-1.9.9"
shape = ["misread", "int32", "int", "int"]
reason = '''{REASON}
[[deviation]] is no heading here.'''
link = "{LINK}"
[deviation.where]
# Both of these:
HeartbeatRequest = "1-3"  # since 0.9
HeartbeatResponse = '0'

# About another one.
[[deviation]]
checks=["wire/two-readings"]
invariant="wire/decodes"
versions="1.0.0-1.9.9"
shape=["refused", "text", "it takes no generation"]
reason="{REASON}"
link="{LINK}"
where = {{ HeartbeatRequest = "0, 4" }}  # inline

# The end.
"""


def test_the_rest_of_a_list_is_left_to_the_letter(options: Options, held: Held) -> None:
    text = COMMENTED.replace("HeartbeatResponse = '0'\n", "").replace('"0, 4"', '"0"')
    unchanged = rewritten(text, whole(options, held, {**SOME, 0: refused}))
    assert unchanged.text == text
    fewer = rewritten(text, whole(options, held, {1: off_by_one, 3: off_by_one, 0: refused}))
    assert fewer.text == text.replace('"1-3"  # since', '"1, 3"  # since')
    assert (fewer.added, fewer.removed, len(fewer.narrowed)) == ([], [], 1)


def test_entries_and_places_that_are_gone_are_struck_off(options: Options, held: Held) -> None:
    made = rewritten(COMMENTED, whole(options, held, {**SOME, 4: refused}))
    assert made.text == COMMENTED.replace("HeartbeatResponse = '0'\n", "").replace('"0, 4"', '"4"')
    made = rewritten(COMMENTED, whole(options, held, SOME))
    begin, end = COMMENTED.index("# About another one."), COMMENTED.index("# The end.")
    assert made.text.startswith(COMMENTED[:begin].replace("HeartbeatResponse = '0'\n", ""))
    assert "another one" not in made.text and "inline" not in made.text and len(made.removed) == 1
    assert end > begin


def test_what_never_decides_is_not_added(options: Options, held: Held) -> None:
    ledger = whole(options, held, SOME)
    noted = ledger.failures[0].update(grade="INFO")
    assert rewritten("", replace(ledger, lines={**ledger.lines, "failure": [noted]})).added == []


def test_a_failure_that_spreads_is_added_where_it_is_new(options: Options, held: Held) -> None:
    text = 'target = "odd"\n' + ENTRY
    made = rewritten(text, whole(options, held, {**SOME, 4: off_by_one}))
    assert made.text.startswith(text) and len(made.added) == 1
    assert made.text.endswith('[deviation.where]\nHeartbeatRequest = "4"\n')


def test_a_changed_reason_is_struck_off_and_added(options: Options, held: Held) -> None:
    made = rewritten('target = "odd"\n' + ENTRY, whole(options, held, {**SOME, 2: refused}))
    assert 'HeartbeatRequest = "1, 3"' in made.text and 'HeartbeatRequest = "2"' in made.text
    assert (len(made.narrowed), len(made.added)) == (1, 1)


def test_what_the_lists_of_the_run_itself_said_does_not_count(options: Options, held: Held) -> None:
    _, ledger = held(options)
    assert ledger.failures[0].known is not None
    assert len(rewritten("", with_everything(ledger)).added) == 1


def test_what_the_run_left_out_is_left(options: Options, held: Held) -> None:
    text = 'target = "odd"\n' + ENTRY.replace("HeartbeatRequest", "SyncGroupRequest")
    _, ledger = held(replace(options, known=()), {})
    assert rewritten(text, ledger).text == text


def test_what_a_person_has_to_decide_is_left_and_told(options: Options, held: Held) -> None:
    text = 'target = "odd"\n' + ENTRY.replace("[deviation.where]", "expires = 2020-01-01\n[deviation.where]")
    made = rewritten(text, whole(options, held, SOME))
    assert made.text == text and made.left == ["odd.toml:3: expired: it expired on 2020-01-01: review it"]


def test_other_cases_and_runs_that_were_cut_short_are_refused(options: Options, held: Held) -> None:
    text = 'target = "odd"\n' + ENTRY
    with pytest.raises(InvalidKnownFile, match="seed 0, but the run used edition apache, seed 5"):
        rewritten(text, whole(replace(options, seed=5), held, SOME))
    assert rewritten("", whole(replace(options, seed=5), held, SOME)).text.startswith('target = "odd"\nseed = 5\n')
    with pytest.raises(InvalidKnownFile, match="use --target with one of its targets: odd"):
        updated(text, "odd.toml", whole(options, held, SOME), "even", TODAY)
    cut = replace(whole(options, held, SOME), lines={"target": whole(options, held, SOME).targets})
    with pytest.raises(InvalidKnownFile, match="cut short"):
        rewritten(text, cut)


def test_the_commands(
    options: Options, held: Held, listed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held(replace(options, known=()))
    fresh = listed.with_name("fresh.toml")
    assert command(["known", "update", str(fresh), "--from", str(options.out)]) == 1
    assert "added     wire/decodes: HeartbeatRequest" in capsys.readouterr().out
    assert command(["known", "check", str(fresh)]) == 1
    assert "fresh.toml:8: reason must be written" in capsys.readouterr().err
    assert command(["known", "check", str(listed)]) == 1, "odd is no target of kipcheck's"
    assert command(["known", "update", str(listed), "--from", str(options.out)]) == 0
    capsys.readouterr()
    assert command(["known", "list", str(listed), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["known"]
    assert (row["where"], row["reason"], row["entry"]) == ({"HeartbeatRequest": "1-3"}, REASON, f"{listed}:3")
    assert command(["known", "list", str(listed)]) == 0
    assert LINK in capsys.readouterr().out
    assert command(["known", "update", str(listed), "--from", str(listed.parent / "absent")]) == 2
