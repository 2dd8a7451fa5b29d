"""Invariants of rolling upgrades of a consumer group: KIP-429's two rolling bounces, as drafted and as released."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from kipcheck.conformance.apis.upgrade_script import Moment, event_of
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.edition import KIP_429
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Grade, Violation
from kipcheck.conformance.invariants.ownership import Books, every_step, is_mixed, told
from kipcheck.conformance.invariants.registry import invariant
from kipcheck.conformance.models.assignment import Partition, listed
from kipcheck.conformance.models.membership import V0
from kipcheck.conformance.models.observed_events import (
    Assigned,
    Counted,
    Ended,
    Failed,
    Formed,
    Gave,
    Joining,
    Restless,
    Rests,
    SteppedDown,
)
from kipcheck.conformance.models.operations import KINDS, Crash, Event, Revive, Roll, Stop

GENERATIONS = 3
"""The generations that a group may need per step until it is at rest: one to notice the change, one to give up
partitions, one to assign them."""


def in_draft(history: History) -> bool:
    return history.case.edition == KIP_429.name


def at_a_glance(formed: Formed) -> str:
    members = ", ".join(f"{each.member} version {each.version}" for each in formed.members)
    return f"generation {formed.generation} ({members}; {formed.leader} leads)"


@dataclass(slots=True)
class Script:
    """The state that the operator's steps ask for, updated with each step."""

    kinds: dict[str, str] = field(default_factory=dict)
    """The kinds of the members that should run."""
    stopped: dict[str, str] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    """Members that were stopped or restarted, and have not ended yet."""
    failed: set[str] = field(default_factory=set)
    lately: set[str] = field(default_factory=set)
    """The kinds of all members that ran since the group was last at rest, and may still be in it."""
    steps: int = 0
    """The number of steps that were processed."""

    def until(self, history: History, index: int) -> None:
        """Processes the steps up to that one, inclusive."""
        while self.steps <= index:
            self._tell(event_of(history.ops[self.steps].step))
            self.steps += 1

    def _tell(self, event: Event) -> None:
        match event:
            case Roll(member, kind):
                if member in self.kinds:
                    self.leaving.add(member)
                self.kinds[member] = kind
                self.lately.add(kind)
                self.failed.discard(member)
            case Stop(member):
                if member in self.kinds:
                    self.leaving.add(member)
                    self.stopped[member] = self.kinds.pop(member)
            case Crash(member):
                if member in self.kinds:
                    self.stopped[member] = self.kinds.pop(member)
            case Revive(member):
                if member in self.stopped and member not in self.kinds:
                    self.kinds[member] = self.stopped.pop(member)
                    self.lately.add(self.kinds[member])
                self.failed.discard(member)

    def hear(self, moment: Moment) -> None:
        if isinstance(moment.seen, Ended):
            self.leaving.discard(moment.seen.member)
        if isinstance(moment.seen, Failed):
            self.failed.add(moment.seen.member)
        if isinstance(moment.seen, Rests):
            self.lately = set(self.kinds.values())


def scripted(history: History, undefined: bool = False) -> Iterator[tuple[Moment, Books, Script]]:
    script = Script()
    for moment, books in told(history, undefined):
        script.until(history, moment.step)
        yield moment, books, script
        script.hear(moment)


# Eager and incremental


@invariant("bounce/eager-gives-up", "429-17", "429-19", role=Role.OPERATOR_TOOL, concerns=every_step)
def eager_gives_up(history: History) -> Iterator[Violation]:
    """An eager member has given up everything before it joins."""
    for moment, books in told(history):
        if isinstance(moment.seen, Formed):
            for each in moment.seen.members:
                kept = sorted(books.of(each.member)) if each.version == V0 else []
                if kept:
                    why = f"{each.member} is eager, joined {at_a_glance(moment.seen)}, and still reads {listed(kept)}"
                    since = books.held[each.member][kept[0]].since
                    yield Violation(why, (since, moment.step), "no partition", listed(kept), shape=("eager", "keeps"))


@invariant("bounce/incremental", "429-04", "429-15", "429-19", role=Role.OPERATOR_TOOL, concerns=every_step)
def incremental(history: History) -> Iterator[Violation]:
    """A cooperative member revokes only partitions that an assignment took from it."""
    last: dict[str, tuple[int, Assigned]] = {}
    versions: dict[str, int] = {}
    for moment, _, script in scripted(history):
        match moment.seen:
            case Formed(members=members):
                versions.update((each.member, each.version) for each in members)
            case Assigned(member):
                last[member] = moment.step, moment.seen
            case Ended(member):
                last.pop(member, None)
            case Gave(member, partitions, lost=False) if member not in script.leaving and versions.get(member, V0):
                at, assigned = last.get(member, (moment.step, None))
                kept = [each for each in partitions if assigned is not None and each in assigned.partitions]
                if assigned is not None and kept:
                    why = (
                        f"{member} is cooperative, was assigned {listed(kept)} in generation {assigned.generation} "
                        f"and revokes it in step {moment.step + 1}, although no assignment took it away"
                    )
                    yield Violation(why, (at, moment.step), f"{listed(kept)} kept", f"{listed(kept)} revoked",
                                    shape=("cooperative", "revokes all"))  # fmt: skip


# A group in which both are mixed


@invariant("bounce/mixed", "429-02", "429-10", "429-11", "429-13", role=Role.OPERATOR_TOOL, concerns=every_step)
def mixed(history: History) -> Iterator[Violation]:
    """In a mixed group members that have revoked get only an error, and the others keep exactly what they own."""
    if not in_draft(history):
        return
    joined: dict[str, tuple[int, frozenset[Partition]]] = {}
    for moment, books in told(history):
        match moment.seen:
            case Formed(members=members):
                joined = {}
                if is_mixed([each.version for each in members]):
                    joined = {each.member: (each.version, frozenset(books.of(each.member))) for each in members}
            case Assigned(member, _, partitions, error) if member in joined and books.generation is not None:
                version, had = joined[member]
                where = f"{at_a_glance(books.generation)}: {member}"
                at = (books.formed_at, moment.step)
                if version == V0 and (partitions or not error):
                    what = f"gets {listed(partitions)}" + ("" if error else " and no error")
                    yield Violation(f"{where}, which uses version 0, {what}", at, "no partition, and an error", what,
                                    shape=("mixed", "partitions" if partitions else "no error"))  # fmt: skip
                if version > V0 and set(partitions) != had:
                    more, less = sorted(set(partitions) - had), sorted(had - set(partitions))
                    what = f"gets {listed(more)}" if more else f"loses {listed(less)}"
                    yield Violation(f"{where}, which owned {listed(had)}, {what}", at,
                                    "what it owned", what, shape=("mixed", "given" if more else "taken"))  # fmt: skip


@invariant("bounce/metric", "429-03", "429-11", "429-13", role=Role.OPERATOR_TOOL, concerns=every_step)
def metric(history: History) -> Iterator[Violation]:
    """Each assignment with an error raises num.incompatible.rebalance by one, and nothing else raises it.

    Members that do not know the error are exempt: an old binary cannot read it.
    """
    due: dict[str, tuple[int, int]] = {}
    totals: dict[str, int] = {}
    knows: dict[str, int] = {}
    for moment, _ in told(history):
        match moment.seen:
            case Formed(members=members):
                knows.update((each.member, each.knows) for each in members)
            case Assigned(member) if not knows.get(member):
                continue  # It cannot read the error.
            case Assigned(member, generation, _, error) if error and member in due:
                yield _uncounted(member, *due[member], moment.step)
            case Assigned(member, generation, _, error) if error:
                due[member] = moment.step, generation
            case Counted(member, total):
                before = totals.get(member, 0)
                if member not in due or total != before + 1:
                    why = f"the metric of {member} goes from {before} to {total} in step {moment.step + 1}"
                    why += "" if member in due else ", without an assignment with an error"
                    shape = ("metric", "miscounted")
                    yield Violation(why, (moment.step,), "one more for each error", str(total), shape=shape)
                due.pop(member, None)
                totals[member] = total
            case Ended(member):
                due.pop(member, None)
                totals.pop(member, None)
            case Rests() | Restless():
                for member, (at, generation) in due.items():
                    yield _uncounted(member, at, generation, moment.step)
                due.clear()


def _uncounted(member: str, at: int, generation: int, now: int) -> Violation:
    why = f"{member} got an assignment with an error in generation {generation}, and its metric did not rise"
    return Violation(why, (at, now), "num.incompatible.rebalance + 1", "unchanged", shape=("metric", "not raised"))


# Leaders


@invariant("bounce/newest-leads", "429-08", "429-09", "429-12", role=Role.OPERATOR_TOOL, concerns=every_step)
def newest_leads(history: History) -> Iterator[Violation]:
    """If brokers choose the leader by version, a member with the highest version leads."""
    if not in_draft(history) or any(op.step.verb == "old-brokers" for op in history.ops):
        return
    for moment, _ in told(history, undefined=True):
        if isinstance(moment.seen, Formed) and moment.seen.members:
            newest = max(map(_told, moment.seen.members))
            leads = [_told(each) for each in moment.seen.members if each.member == moment.seen.leader]
            if leads != [newest]:
                knowing = " or ".join(each.member for each in moment.seen.members if _told(each) == newest)
                why = f"{moment.seen.leader} leads generation {moment.seen.generation}, and {knowing} is newer"
                yield Violation(why, (moment.step,), knowing, moment.seen.leader, shape=("leader", "not the newest"))


def _told(joining: Joining) -> tuple[int, bool]:
    """The version in JoinGroup, for comparison; a member that knows only version 0 sends none and comes last."""
    return joining.version, joining.knows > V0


@invariant("bounce/no-probing", "429-18", role=Role.OPERATOR_TOOL, grade=Grade.SHOULD,
           concerns=lambda case, step: step.verb == "roll-streams")  # fmt: skip
def no_probing(history: History) -> Iterator[Violation]:
    """In a Streams group whose newest member leads, no member is asked to use an older version."""
    if not in_draft(history) or any(op.step.verb == "old-brokers" for op in history.ops):
        return
    for moment, _ in told(history, undefined=True):
        if isinstance(moment.seen, SteppedDown):
            member, version = moment.seen.member, moment.seen.version
            why = f"{member} has to use metadata version {version}, and joins once more"
            yield Violation(why, (moment.step,), "one round", "a probing round", shape=("probing",))


# Results


@invariant("bounce/rests", "grp-19", "429-04", role=Role.OPERATOR_TOOL,
           concerns=lambda case, step: step.verb == "settle")  # fmt: skip
def rests(history: History) -> Iterator[Violation]:
    """A group comes to rest after a limited number of generations for each step."""
    formed: list[int] = []
    since = 0
    for moment, _ in told(history, undefined=True):
        match moment.seen:
            case Formed(generation):
                formed.append(generation)
            case Restless(turns):
                why = f"after {turns} turns of its members, and generations {_few(formed)}, the group is not at rest"
                yield Violation(why, (moment.step,), "rest", "no rest", shape=("restless",))
                return
            case Rests():
                befell = moment.step + 1 - since
                if len(formed) > GENERATIONS * befell:
                    why = f"{befell} steps cost the group {len(formed)} generations, {_few(formed)}"
                    most = f"at most {GENERATIONS * befell}"
                    yield Violation(why, (moment.step,), most, str(len(formed)), shape=("generations",))
                formed, since = [], moment.step + 1


def _few(generations: Collection[int]) -> str:
    told = [str(each) for each in generations]
    return ", ".join(told if len(told) < 6 else [*told[:3], "...", told[-1]])


@invariant("bounce/upgraded", "429-04", "429-14", "429-19", role=Role.OPERATOR_TOOL, concerns=every_step)
def upgraded(history: History) -> Iterator[Violation]:
    """When a group is at rest, all members that run are in it and use their configured version.

    Members that have no assignor in common with the group, and were refused, are exempt.
    """
    for moment, _, script in scripted(history, undefined=True):
        match moment.seen:
            case Failed(member, error):
                common = not in_draft(history) and _has_nothing_in_common(script, member)
                if not common:
                    why = f"{member}, a {script.kinds.get(member, 'stopped')} member, gives up with {error}"
                    yield Violation(why, (moment.step,), "in the group", error, shape=("gives up", error))
            case Rests(generation, members):
                there = {each.member: each.version for each in members}
                for member, kind in sorted(script.kinds.items()):
                    wanted = KINDS[kind].version if in_draft(history) else min(KINDS[kind].version, 1)
                    if member in script.failed:
                        continue
                    if member not in there:
                        what, shape = "is not in the group", "missing"
                    elif there[member] != wanted:
                        what, shape = f"uses version {there[member]}", "other version"
                    else:
                        continue
                    why = f"the group is at rest in generation {generation}, and {member}, a {kind} member, {what}"
                    yield Violation(why, (moment.step,), f"{member} in the group, with version {wanted}", what,
                                    shape=("upgrade", shape))  # fmt: skip


def _has_nothing_in_common(script: Script, member: str) -> bool:
    """May the group have had a member without any of this one's assignors?"""
    if member not in script.kinds:
        return True  # the member was stopped, so its kind is not known any more
    mine = set(KINDS[script.kinds[member]].assignors)
    return any(mine.isdisjoint(KINDS[kind].assignors) for kind in script.lately)
