"""Groups the distinct failures of a target by cause: one defect breaks several invariants, in several ways.

Two failures have one cause if

* they come from the same place in the library, with the same exception;
* the least case of one shows the other too, not before it, and is not larger, unless the lists of known deviations
  separate them; that the least case of the later one shows the first one says nothing if most cases do;
* these lists link the same page of a finding, or have the same reason without such a page;
* no list has them, they break the same invariant with the same effect, come from no known place, and follow from none
  of the others.

A NOTE has a cause in common only with other NOTEs of its invariant: it breaks nothing, so it explains no failure.

A cause decides no id, no entry of a known list and no exit code.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.ledger import Cause, Failure, KnownEntry
from kipcheck.conformance.core.values.failure_group import FailureGroup, grouped, severity as grade_rank
from kipcheck.conformance.core.values.impacts import Effect, Severity
from kipcheck.conformance.core.values.plain import short_digest
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import Finding, Shape
from kipcheck.conformance.engine.findings.failure_records import least
from kipcheck.conformance.engine.findings.finding_pages import FindingPage, cause_page, shown_effect
from kipcheck.conformance.engine.known.shipped import kafka_clients_like, shipped_entry
from kipcheck.conformance.engine.search.unshrunk_groups import NOWHERE, Place
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants, effect_of

ENOUGH: Final = 10
MOST: Final = 0.5
"""Of the cases in which something fails."""


@dataclass(frozen=True, slots=True)
class Context:
    """What groups a failure with others by cause, of its least case."""

    size: tuple[int, str] = (0, "")
    """Orders failures by their least cases."""
    place: Place = NOWHERE
    answered: int | None = None
    """As ``Violation`` has it."""
    also: Mapping[tuple[str, Shape], int] = field(default_factory=dict)
    """All violations of the case, of any invariant: invariant and shape -> the first step that shows it."""

    @classmethod
    def of(cls, finding: Finding, invariants: frozenset[str] | None = None) -> "Context":
        """``invariants``: those that are broken in this run; None: it may be any."""
        also = _violations(finding, invariants)
        return cls(finding.case.size, Place.of(finding), finding.violation.answered, also)

    @property
    def plain(self) -> list[Any]:
        """JSON. ``read`` reads it back."""
        return [*self.size, *self.place, self.answered, [[*key, step] for key, step in self.also.items()]]

    @classmethod
    def read(cls, plain: Sequence[Any]) -> "Context":
        """Errors: ValueError or TypeError."""
        length, id, exception, at, answered, also = plain
        return cls((length, id), Place(exception, at), answered, {(who, tuple(how)): step for who, how, step in also})


@dataclass(frozen=True, slots=True)
class Shown:
    """A distinct failure, with what groups it."""

    line: Failure
    case_ids: frozenset[str] | None
    """Of all cases that show it; None: only their number is known."""
    entry: KnownEntry | None
    """The known deviation that it is, by the lists of the run or by those that are shipped."""
    context: Context = field(default_factory=Context)

    @property
    def page(self) -> FindingPage | None:
        return None if self.entry is None else cause_page(self.entry.link)

    @property
    def link(self) -> str:
        """The findings page or the address of an issue; empty if the entry links a page about the target as a whole."""
        if self.page is not None:
            return self.page.link
        return self.entry.link if self.entry is not None and "://" in self.entry.link else ""

    @property
    def shown_effect(self) -> tuple[str, Severity]:
        """Title and severity."""
        return shown_effect(self.page, self.effect, self.line.sentence)

    @property
    def effect(self) -> Effect | None:
        return effect_of(self.line.invariant, self.line.shape, self.line.subject, self.context.answered)

    @property
    def family(self) -> str:
        return self.line.check.partition("/")[0]


def causes_of(lines: Sequence[Failure], groups: Mapping[str, FailureGroup[Finding]]) -> list[Cause]:
    """The causes of the failures of one target, the gravest first. ``groups``: the findings, by id of the failure;
    a failure without findings, such as a claim that a profile requires, is a cause of its own.
    """
    invariants = frozenset(each.invariant for each in lines)
    return causes([_shown(line, groups.get(line.id), invariants) for line in lines])


def causes_by_number(lines: Sequence[Failure], contexts: Mapping[str, Context]) -> list[Cause]:
    """As ``causes_of`` for failures of which only the number of cases is known, not the cases. ``contexts``: of the
    least cases, by id of the failure; a failure without one has a cause in common only by lists and effects.
    """
    return causes([Shown(line, None, _entry(line), contexts.get(line.id, Context())) for line in lines])


def _entry(line: Failure) -> KnownEntry | None:
    return line.known or line.beyond or line.changed or shipped_entry(line)


def _shown(line: Failure, group: FailureGroup[Finding] | None, invariants: frozenset[str]) -> Shown:
    if group is None:
        return Shown(line, frozenset(), _entry(line))
    cases = frozenset(each.case.id for each in group.members)
    return Shown(line, cases, _entry(line), Context.of(least(group.members), invariants))


def _violations(least: Finding, invariants: frozenset[str] | None) -> Mapping[tuple[str, Shape], int]:
    """Of its family, and of those that bind every target: others read no steps of its kind."""
    found: dict[tuple[str, Shape], int] = {}
    family = least.case.check.partition("/")[0]
    own = {id for each in CHECKS.values() if each.id.partition("/")[0] == family for id in each.invariants}
    judges = (
        each for each in all_invariants(least.case.role)
        if (each.id in own or "/" not in each.id) and (invariants is None or each.id in invariants)
    )  # fmt: skip
    for verdict in judge(least.history, judges):
        for each in verdict.violations:
            key = verdict.invariant, each.shape
            found[key] = min(each.at[-1], found.get(key, each.at[-1]))
    return found


def causes(failures: Sequence[Shown]) -> list[Cause]:
    """The causes, the gravest first. ``failures``: of one target."""
    return sorted((each for part in grouped(failures, _noted) for each in _causes(part.members)), key=rank)


def _noted(failure: Shown) -> str:
    """The invariant of a NOTE; empty for what breaks a MUST or a SHOULD."""
    return failure.line.invariant if failure.line.grade == Grade.INFO.value else ""


def _causes(failures: Sequence[Shown]) -> Iterator[Cause]:
    groups = _Groups(len(failures))
    roots = [_root(each, failures) for each in failures]
    for one, this in enumerate(failures):
        for other, that in enumerate(failures[:one]):
            follows = (roots[one], roots[other]) != (None, None)  # a client may be slow to come back for many reasons
            if _same_place(this, that) or _same_entry(this, that) or (_same_effect(this, that) and not follows):
                groups.unite(one, other)
        if (root := roots[one]) is not None:
            groups.unite(one, root)
    for members in groups.members():
        yield _cause([failures[number] for number in members])


def united_causes(ledgers: Iterable[Sequence[Cause]]) -> list[Cause]:
    """The causes of several runs together: those with a failure in common are one, with the cases of all."""
    every = [cause for causes in ledgers for cause in causes]
    groups = _Groups(len(every))
    for one, this in enumerate(every):
        for other, that in enumerate(every[:one]):
            if this.target == that.target and {*this.failures} & {*that.failures}:
                groups.unite(one, other)
    united = [_united([every[number] for number in members]) for members in groups.members()]
    return sorted(united, key=lambda each: (each.target, rank(each)))


def _united(members: Sequence[Cause]) -> Cause:
    gravest = min(members, key=rank)
    failures = tuple(dict.fromkeys(id for each in members for id in each.failures))
    return gravest.update(cases=sum(each.cases for each in members), failures=failures)


def rank(cause: Cause) -> tuple[int, int]:
    """Orders causes: by severity, then by the number of cases."""
    return Severity(cause.severity).rank, -cause.cases


def _same_place(one: Shown, other: Shown) -> bool:
    return one.context.place != NOWHERE and one.context.place == other.context.place


def _same_effect(one: Shown, other: Shown) -> bool:
    """For failures that no list has."""
    listed, placed = one.entry or other.entry, {one.context.place, other.context.place} != {NOWHERE}
    return not listed and not placed and one.line.invariant == other.line.invariant and one.effect == other.effect


def _same_entry(one: Shown, other: Shown) -> bool:
    """Whether one page describes both; where there is no page of a finding, whether they are listed for one reason."""
    if one.entry is None or other.entry is None:
        return False
    if one.link or other.link:
        return one.link == other.link
    reasons = (one.entry.link, one.entry.reason) == (other.entry.link, other.entry.reason)
    return reasons and one.family == other.family


def _different_entries(one: Shown, other: Shown) -> bool:
    return one.entry is not None and other.entry is not None and not _same_entry(one, other)


def _root(this: Shown, failures: Sequence[Shown]) -> int | None:
    """The failure that this one follows from: of those whose least case shows this one too, and not before itself,
    the one with the smallest case, if that is not larger than the least case of this one.
    """
    found = [
        (each.context.size, number)
        for number, each in enumerate(failures)
        if each is not this
        and each.context.size < this.context.size
        and not _different_entries(this, each)
        and (_is_in_least_case(this, each) or (_needs(this, each) and not _is_everywhere(each, failures)))
    ]
    return min(found)[1] if found else None


def _is_in_least_case(this: Shown, root: Shown) -> bool:
    """Whether the least case of ``root`` shows this one too, not before itself."""
    step = _first_step(this, root)
    return step is not None and step >= root.line.guilty_step


def _needs(this: Shown, root: Shown) -> bool:
    """Whether the least case of this one shows ``root``, not after itself."""
    step = _first_step(root, this)
    return step is not None and step <= this.line.guilty_step


def _is_everywhere(root: Shown, failures: Sequence[Shown]) -> bool:
    """Whether most cases of its family in which something fails show it, whatever else they show: a client that
    writes damaged subscriptions, or misreads records, does so in nearly each script, and the rest of what it does wrong
    has other causes."""
    every = _cases_of([each for each in failures if each.family == root.family])
    return every >= ENOUGH and _cases_of([root]) >= MOST * every


def _cases_of(failures: Sequence[Shown]) -> int:
    """The number of cases that show one of them; where the cases are not known, those that show several count several
    times.
    """
    unknown = sum(each.line.cases for each in failures if each.case_ids is None)
    return unknown + len(frozenset().union(*(each.case_ids or () for each in failures)))


def _first_step(failure: Shown, case: Shown) -> int | None:
    """The first step that shows the failure in the least case of another one."""
    return min(
        (
            step
            for (invariant, shape), step in case.context.also.items()
            if invariant == failure.line.invariant and failure.line.shape[: len(shape)] == shape
        ),
        default=None,
    )


class _Groups:
    """Disjoint sets of numbers."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def unite(self, one: int, other: int) -> None:
        first, second = sorted((self._top(one), self._top(other)))
        self._parents[second] = first

    def _top(self, number: int) -> int:
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def members(self) -> Iterator[list[int]]:
        found: dict[int, list[int]] = {}
        for number in range(len(self._parents)):
            found.setdefault(self._top(number), []).append(number)
        return iter(found.values())


# ---- one cause


def _cause(members: Sequence[Shown]) -> Cause:
    effects = {each.line.id: each.shown_effect for each in members}
    order = sorted(
        members, key=lambda each: (effects[each.line.id][1].rank, grade_rank(each.line.grade), -each.line.cases)
    )
    gravest = order[0].line
    title, severity = effects[gravest.id]
    titled = (each for each in members if effects[each.line.id] == effects[gravest.id])
    shortest = min(titled, key=lambda each: each.context.size).line
    listed = next((each for each in order if each.link), order[0])
    places = {each.context.place for each in members}
    return Cause(
        id=short_digest([gravest.target, gravest.id]),
        target=gravest.target,
        title=title,
        severity=severity.value,
        cases=_cases_of(members),
        failures=tuple(each.line.id for each in order),
        least=shortest.id,
        kafka=tuple(dict.fromkeys(name for each in members for name in kafka_clients_like(each.line))),
        at=(next(iter(places)).at or None) if len(places) == 1 else None,
        reason=listed.entry.reason if listed.entry is not None else None,
        page=listed.link or None,
        status=(listed.page.status or None) if listed.page is not None else None,
    )
