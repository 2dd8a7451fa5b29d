"""Failures are grouped by cause: by place, by least case, by page, and by effect where nothing else is known."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.ledger import Cause, Failure, KnownEntry, read
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.failure_group import FailureGroup
from kipcheck.conformance.core.values.history import History, Op, Refused
from kipcheck.conformance.core.values.impacts import Severity, severity_rank
from kipcheck.conformance.core.values.verdict import Result, Verdict, Violation
from kipcheck.conformance.engine.execution import worker
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.engine.execution.worker import Finding, Unit, judged
from kipcheck.conformance.engine.findings.causes import (
    Context,
    Shown,
    causes,
    causes_by_number,
    causes_of,
    united_causes,
)
from kipcheck.conformance.engine.findings.early_causes import EarlyCauses
from kipcheck.conformance.engine.findings.finding_pages import page_at
from kipcheck.conformance.engine.known.lists import load
from kipcheck.conformance.engine.known.match import KnownDeviations
from kipcheck.conformance.engine.known.shipped import kafka_clients_like
from kipcheck.conformance.engine.search.unshrunk_groups import NOWHERE, Place, ShrunkGroup, by_kind, selected
from kipcheck.conformance.protocols.declare.check import Sample
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.targets.protocol import TargetInfo
from kipcheck.conformance.tests.support.ledgers import FAILURE

TABLE = tomllib.loads((Path(__file__).parents[2] / "support" / "kafka_python_causes.toml").read_text("utf-8"))["cause"]
PAGES = "conformance/docs/findings/"
MOST = 25
"""Causes of the failures of kafka-python."""


def line(invariant: str = "member/beats", *shape: str, id: str = "a" * 12, **about: Any) -> Failure:
    return Failure.of(
        {**FAILURE, "check": "member/duties", "invariant": invariant, "shape": list(shape), "id": id, **about}
    )


def listed(link: str, reason: str = "It is so.") -> KnownEntry:
    return KnownEntry(file="known.toml", line=1, reason=reason, link=link, expires=None)


def shown(failure: Failure, size: int = 1, **about: Any) -> Shown:
    return changed(Shown(failure, frozenset({failure.id}), None), size=(size, failure.id), **about)


def changed(failure: Shown, **about: Any) -> Shown:
    context = {name: about.pop(name) for name in ("size", "place", "also") if name in about}
    return replace(failure, context=replace(failure.context, **context), **about)


def grouped(*failures: Shown) -> set[frozenset[str]]:
    return {frozenset(each.failures) for each in causes(failures)}


ONE, OTHER = "a" * 12, "b" * 12
TOGETHER, APART = {frozenset({ONE, OTHER})}, {frozenset({ONE}), frozenset({OTHER})}


def test_failures_of_one_place_have_one_cause() -> None:
    this, that = shown(line("wire/decodes", id=ONE)), shown(line("wire/skips-unknown-tags", id=OTHER))
    here = Place("KeyError", "x.py:1")
    assert grouped(this, that) == APART
    assert grouped(changed(this, place=here), changed(that, place=here)) == TOGETHER
    assert grouped(changed(this, place=here), changed(that, place=Place("ValueError", "x.py:1"))) == APART


def test_causes_of_a_campaign_have_contexts_from_rows_and_numbers_of_cases() -> None:
    """In place of the ids of all cases, and of findings."""
    root = shown(line("member/syncs", "none", id=ONE, guilty_step=2), 10, also={("member/beats", ("late",)): 3})
    later = shown(line("member/beats", "late", "more", id=OTHER, guilty_step=4, cases=7), 20)
    contexts = {each.line.id: Context.read(json.loads(json.dumps(each.context.plain))) for each in (root, later)}
    assert contexts == {ONE: root.context, OTHER: later.context}
    lines = [root.line.update(cases=2), later.line]
    (cause,) = causes_by_number(lines, contexts)
    assert (frozenset(cause.failures), cause.cases) == (frozenset({ONE, OTHER}), 9)
    apart = causes_by_number(lines, {})
    assert {frozenset(each.failures) for each in apart} == APART


def test_what_follows_in_a_least_case_has_the_cause_of_what_comes_first() -> None:
    root = shown(line("member/syncs", "none", id=ONE, guilty_step=2), 10, also={("member/beats", ("late",)): 3})
    later = shown(line("member/beats", "late", "more", id=OTHER, guilty_step=4), 20)
    assert grouped(root, later) == TOGETHER
    assert grouped(root, changed(later, size=(5, OTHER))) == APART, "the least case of the root is larger"
    assert grouped(changed(root, also={("member/beats", ("late",)): 1}), later) == APART, "it comes before the root"
    assert grouped(changed(root, also={("member/beats", ("early",)): 3}), later) == APART, "another shape"


def test_a_failure_that_cannot_be_shown_without_another_follows_from_it() -> None:
    root = shown(line("member/syncs", "none", id=ONE, guilty_step=2), 10)
    own = {("member/syncs", ("none",)): 2}
    later = shown(line("member/beats", "late", id=OTHER, guilty_step=4), 20, also=own)
    assert grouped(root, later) == TOGETHER
    assert grouped(root, replace(later, line=line("member/beats", "late", id=OTHER, guilty_step=1))) == APART


def test_a_failure_of_most_cases_explains_no_other_that_its_least_case_does_not_show() -> None:
    cases = frozenset(map(str, range(20)))
    root = shown(line("member/syncs", "none", id=ONE, guilty_step=2), 10, case_ids=cases)
    own = {("member/syncs", ("none",)): 2}
    later = shown(line("member/beats", "late", id=OTHER, guilty_step=4), 20, also=own, case_ids=frozenset("7"))
    assert grouped(root, later) == APART
    assert grouped(changed(root, also={("member/beats", ("late",)): 3}), later) == TOGETHER
    assert (
        grouped(replace(root, case_ids=frozenset(sorted(cases)[:8]) | {"x"}), replace(later, case_ids=cases))
        == TOGETHER
    )


def test_what_follows_from_two_failures_does_not_unite_them() -> None:
    """pykafka 2.8.0: it is slow to come back for several reasons, each of which is a failure of its own."""
    late = {("member/beats", ("late",)): 3}
    first = shown(line("member/syncs", "none", id=ONE, guilty_step=2), 10, also=late)
    second = shown(line("member/leaves", "none", id=OTHER, guilty_step=2), 11, also={("member/beats", ("early",)): 3})
    third, fourth = "c" * 12, "d" * 12
    after_first = shown(line("member/beats", "late", id=third, guilty_step=4), 20)
    after_second = shown(line("member/beats", "early", id=fourth, guilty_step=4), 20)
    apart = {frozenset({ONE, third}), frozenset({OTHER, fourth})}
    assert grouped(first, second, after_first, after_second) == apart
    assert grouped(after_first, after_second) == {frozenset({third, fourth})}, "one effect, and nothing before it"


def test_lists_decide_before_least_cases() -> None:
    root = shown(line("member/syncs", "none", id=ONE, guilty_step=2), 10, also={("member/beats", ("late",)): 3})
    later = shown(line("member/beats", "late", id=OTHER), 20)
    page, another = (
        listed(f"{PAGES}kafka-python-endless-varint.md"),
        listed(f"{PAGES}kafka-python-claims-what-it-lost.md"),
    )
    assert grouped(replace(root, entry=page), replace(later, entry=another)) == APART
    assert grouped(replace(root, entry=page), replace(later, entry=page)) == TOGETHER


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (
            listed(f"{PAGES}kafka-python-endless-varint.md", "x"),
            listed(f"{PAGES}kafka-python-endless-varint.md", "y"),
            True,
        ),
        (listed(f"{PAGES}kafka-python-cut-off-text.md"), listed(f"{PAGES}kafka-python-cut-off-bytes.md"), True),
        (listed("https://example.org/1"), listed("https://example.org/1", "y"), True),
        (listed("https://example.org/1"), listed("https://example.org/2"), False),
        (listed("conformance/docs/targets.md", "x"), listed("conformance/docs/targets.md", "y"), False),
        (listed("conformance/docs/targets.md", "x"), listed("conformance/docs/targets.md", "x"), True),
    ],
)
def test_a_page_of_a_finding_or_one_reason_is_one_cause(one: KnownEntry, other: KnownEntry, together: bool) -> None:
    this, that = shown(line("member/beats", id=ONE), entry=one), shown(line("member/leads", id=OTHER), entry=other)
    assert grouped(this, that) == (TOGETHER if together else APART)
    elsewhere = replace(that, line=that.line.update(check="wire/damage"))
    by_page = together and not one.link.startswith("conformance/docs/targets")
    assert grouped(this, elsewhere) == (TOGETHER if by_page else APART), "a reason is of one family of checks"


def test_what_no_list_has_is_grouped_by_its_effect() -> None:
    this = shown(line("member/finds-a-protocol", "refused", "one", id=ONE))
    that = shown(line("member/finds-a-protocol", "refused", "other", id=OTHER))
    assert grouped(this, that) == TOGETHER
    assert grouped(this, replace(that, entry=listed("https://example.org/1"))) == APART
    assert grouped(this, changed(that, place=Place("KeyError", "x.py:1"))) == APART
    assert grouped(this, shown(line("member/finds-a-protocol", "created", id=OTHER))) == APART, "another effect"


def test_a_cause_has_title_severity_and_page_of_its_gravest_failure() -> None:
    page = f"{PAGES}kafka-python-drops-a-join-between-polls.md"
    trivial = shown(line("member/backs-off", "joins", id=ONE, cases=90), entry=listed(page, "It is dropped."))
    grave = shown(line("member/reads-what-it-owns", "too little", id=OTHER), 2, entry=listed(page))
    (cause,) = causes([trivial, grave])
    described = page_at(page)
    assert described is not None
    assert cause.title == (described.effect or described.title)
    assert (cause.page, cause.status) == (page, "new")
    assert cause.severity == (described.severity or Severity.DOUBLE_PROCESSING).value
    assert ({*cause.failures}, cause.least, cause.cases) == ({ONE, OTHER}, ONE, 2)
    assert cause.kafka == ()


def test_the_case_that_is_shown_has_the_effect_of_the_title() -> None:
    """afkak 21.5.0: a cause was titled by a commit that was missing, and its row led to a missing heartbeat."""
    here = Place("KeyError", "x.py:1")
    smaller = shown(line("member/backs-off", "joins", id=ONE), 1, place=here)
    graver = shown(line("member/reads-what-it-owns", "too little", id=OTHER), 2, place=here)
    (cause,) = causes([smaller, graver])
    assert ({*cause.failures}, cause.least) == ({ONE, OTHER}, OTHER)


def test_causes_are_ordered_by_severity_and_cases() -> None:
    found = causes([
        shown(line("member/backs-off", id=ONE)),
        shown(line("member/gives-up-first", id=OTHER)),
        shown(line("survives", "died", "decode", "timeout", id="c" * 12)),
    ])  # fmt: skip
    ranks = [severity_rank(each.severity) for each in found]
    assert ranks == sorted(ranks) and len(ranks) == 3


def test_kafkas_own_clients_are_compared_by_the_lists_that_are_shipped() -> None:
    key_error = line(
        "assign/answers", "refused", "assign", "KeyError", "sticky", subject="sticky", target="kafka-python"
    )
    assert [each.partition(" ")[0] for each in kafka_clients_like(key_error)] == ["kafka-clients"]
    round_robin = line("assign/answers", "refused", "assign", "KeyError", "roundrobin", target="kafka-python")
    assert [*kafka_clients_like(round_robin)] == []
    assert [*kafka_clients_like(key_error.update(target="java:kafka-clients:4.4.0"))] == []


NOTED: dict[str, Any] = {"grade": "INFO"}


def test_a_note_is_no_part_of_the_cause_of_a_failure() -> None:
    """A NOTE came before the failure in its least case, has the graver effect and more cases, and headed the cause."""
    note = line("group/session-kept", "none", id=ONE, guilty_step=2, cases=12, **NOTED)
    root = shown(note, 10, also={("member/beats", ("late",)): 3}, case_ids=frozenset("abc"))
    failure = shown(line("member/beats", "late", id=OTHER, guilty_step=4), 20)
    assert grouped(root, failure) == APART
    here = Place("KeyError", "x.py:1")
    assert grouped(changed(root, place=here), changed(failure, place=here)) == APART
    again = shown(line("group/session-kept", "other", id=OTHER, **NOTED), 20, place=here)
    assert grouped(changed(root, place=here), again) == TOGETHER, "NOTEs of one invariant"
    another = replace(again, line=line("group/one-leader", id=OTHER, **NOTED))
    assert grouped(changed(root, place=here), another) == APART, "NOTEs of two invariants"


def test_notes_change_nothing_of_the_causes_of_failures() -> None:
    invariants = "member/beats", "member/syncs", "member/leads", "survives", "group/session-kept"
    grades = dict(zip(invariants, ("MUST", "SHOULD", "INFO", "MUST", "INFO"), strict=True))
    for seed in range(200):
        random = Random(seed)

        def drawn(number: int, random: Random = random) -> Shown:
            invariant, step = random.choice(invariants), random.randrange(4)
            made = line(invariant, "x", id=f"{number:012x}", guilty_step=step, grade=grades[invariant])
            also = {(each, ("x",)): random.randrange(4) for each in random.sample(invariants, 2)}
            place = random.choice([NOWHERE, Place("KeyError", "x.py:1")])
            entry = random.choice([None, None, listed("https://example.org/1")])
            cases = frozenset(random.sample("abcdefgh", 3))
            return shown(made, random.randrange(9), also=also, place=place, entry=entry, case_ids=cases)

        every = [drawn(number) for number in range(8)]
        notes = {each.line.id for each in every if each.line.grade == "INFO"}
        made = causes(every)
        assert all(not notes & {*each.failures} or notes >= {*each.failures} for each in made), seed
        of_failures = [each for each in made if not notes & {*each.failures}]
        assert of_failures == causes([each for each in every if each.line.id not in notes]), seed
        kinds = [{each.line.invariant for each in every if each.line.id in cause.failures} for cause in made]
        assert all(len(kinds[at]) == 1 for at, each in enumerate(made) if notes & {*each.failures}), seed


def test_a_note_is_named_early_beside_a_failure_with_its_title() -> None:
    noted = replace(found("wire/round-trip", "A", 1), invariant="wire/refuses-other-forms")
    early = EarlyCauses(TargetInfo("t", "", "", "", frozenset()), KnownDeviations())
    (cause,) = [each for each, _ in early.add([noted])]
    assert (cause.word, cause.noted) == ("NOTE", "wire/refuses-other-forms")
    (cause,) = [each for each, _ in early.add([found("wire/round-trip", "A", 1)])]
    assert cause.word == "refused peer"


def test_ledgers_are_merged_with_their_causes() -> None:
    (one,), (other,) = causes([shown(line(id=ONE))]), causes([shown(line("member/leads", id=OTHER))])
    both = other.update(failures=(OTHER, ONE), cases=4)
    (united,) = united_causes([[one], [both]])
    assert {*united.failures} == {ONE, OTHER} and united.cases == 5
    assert len(united_causes([[one], [other]])) == 2
    assert len(united_causes([[one], [both.update(target="another")]])) == 2


# ---- before failures are shrunk


def found(check: str, subject: str, size: int) -> Finding:
    case = Case(check, "apache", Role.CODEC, (step("t", "decode", hex="00" * size, message=subject),))
    history = History(case, "t", (Op(0, case.steps[0], Refused("E", at=f"{subject}.py:1"), 1),))
    unit = Unit("t", "apache", check, subject, 0, 0, None)
    return Finding(unit, history, None, size, "", "wire/decodes", Violation("why", (0,), shape=("refused", "E")))


def test_findings_of_one_place_and_shape_are_one_group_and_three_are_shrunk() -> None:
    here = [found(check, "A", size) for check in ("wire/two-readings", "wire/round-trip") for size in (3, 2, 1)]
    there = found("wire/round-trip", "B", 9)
    groups = by_kind([*here, there])
    assert [len(each.members) for each in groups] == [6, 1], "another place in the library"
    (chosen,) = selected(groups[0])  # the same case found by another check is shrunk once
    assert chosen.number == 1
    (group,) = by_kind([in_one_place(found("wire/round-trip", name, 5)) for name in "CDEFG"])
    assert len({each.unit.subject for each in selected(group)}) == len(selected(group)) == 3


def in_one_place(finding: Finding) -> Finding:
    return replace(finding, history=replace(finding.history, ops=found("wire/round-trip", "X", 1).history.ops))


def test_findings_that_are_not_shrunk_are_counted_with_the_nearest() -> None:
    (group,) = by_kind([in_one_place(found("wire/round-trip", name, size)) for name in "AB" for size in (1, 2)])
    members = group.members
    least = [(members[0], replace(members[0], shape=("one",))), (members[2], replace(members[2], shape=("two",)))]
    parts = ShrunkGroup(group, least).parts()
    assert [[each.unit.subject for each in part.members] for part in parts] == [["A", "A"], ["B", "B"]]
    assert [part.first.shape for part in parts] == [("one",), ("two",)]


def test_a_case_has_a_finding_for_each_way_in_which_it_breaks_an_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = tuple(Violation(f"{n}", (0,), shape=(shape,)) for n, shape in enumerate(["a", "b", "a", "c"]))
    monkeypatch.setattr(
        worker, "judge", lambda history, _: [Verdict(history.case.id, "t", "wire/decodes", Result.FAIL, ways)]
    )
    one = found("wire/round-trip", "HeartbeatRequest", 1)
    result = judged(one.unit, [Sample(one.case, {}, 0, "")], [one.history])
    assert [(each.violation.why, each.violation.shape) for each in result.findings] == [
        ("0", ("a",)), ("1", ("b",)), ("3", ("c",)),
    ]  # fmt: skip


# ---- kafka-python


def named(entry: KnownEntry) -> list[str]:
    page = Path(entry.link).stem
    return [each["name"] for each in TABLE if page in each["pages"]]


def check_table(
    by_id: Mapping[str, tuple[str, KnownEntry]], found: Iterable[Cause], rare: frozenset[str] = frozenset()
) -> None:
    """Each cause of the table is one cause, with no failure of another one. ``rare``: those that may be absent."""
    by_name: dict[str, set[str]] = {}
    for cause in found:
        names = {name for id in cause.failures if id in by_id for name in named(by_id[id][1])}
        assert len(names) <= 1, names
        for name in names:
            by_name.setdefault(name, set()).add(cause.id)
    absent = rare - by_name.keys()
    wanted = [each["name"] for each in TABLE if each["name"] not in absent]
    assert {name: len(ids) for name, ids in by_name.items()} == dict.fromkeys(wanted, 1)


def test_the_listed_failures_of_kafka_python_are_the_reviewed_causes() -> None:
    entries = [each for known in load(["default"], ["kafka-python"]) for each in known.entries]
    made: list[Shown] = []
    by_id: dict[str, tuple[str, KnownEntry]] = {}
    for number, entry in enumerate(entries):
        known = listed(entry.link, entry.reason)
        id = f"{number:012x}"
        failure = line(entry.invariant, *(entry.shape or ()), id=id, check=entry.checks[0], target="kafka-python")
        made.append(shown(failure, entry=known))
        by_id[id] = entry.invariant, known
    check_table(by_id, causes(made))
    for entry in entries:
        for row in TABLE:
            if row["name"] in named(listed(entry.link, entry.reason)) and "invariants" in row:
                assert entry.invariant in row["invariants"], entry.at


def rare_causes() -> frozenset[str]:
    """The causes of which every failure is listed as seldom: a run with seed 0 does not show them."""
    entries = [each for known in load(["default"], ["kafka-python"]) for each in known.entries]
    usual = {name for each in entries if not each.seldom for name in named(listed(each.link, each.reason))}
    return frozenset(each["name"] for each in TABLE) - usual


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_failures_of_kafka_python_have_the_reviewed_causes(tmp_path: Path) -> None:
    outcome = run(Options(("kafka-python",), out=tmp_path, known=("default",)))
    assert outcome.ledger is not None, outcome.why
    ledger = read(outcome.ledger)
    by_id = {each.id: (each.invariant, entry) for each in ledger.failures if (entry := each.known or each.beyond)}
    check_table(by_id, ledger.causes, rare_causes())
    notes = {each.id for each in ledger.failures if each.grade == "INFO"}
    counted = [each for each in ledger.causes if not {*each.failures} <= notes]
    assert len(counted) <= MOST


def test_a_least_case_is_judged_by_the_laws_of_its_own_family() -> None:
    text = "join a on t none as i; classic-join x on t as i"
    case = Case("migration/members", "apache", Role.COORDINATOR, OPERATIONS.parse_shorthand(text))
    ops = tuple(Op(at, each, Refused("UNKNOWN_SERVER_ERROR", ""), at + 1) for at, each in enumerate(case.steps))
    unit = Unit("t", "apache", case.check, "migration", None, 0, None)
    violation = Violation("it is refused", (1,))
    finding = Finding(unit, History(case, "t", ops), None, 0, "", "migration/takes-over", violation)
    group = FailureGroup((finding,))
    failures = [line("migration/takes-over"), line("streams-group/one-type", id="b" * 12)]
    assert len(causes_of(failures, {failures[0].id: group})) == 2
