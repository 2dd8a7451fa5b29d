"""Invariants of rolling upgrades of a consumer group: KIP-429's two rolling bounces, as drafted and as released."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from kipcheck.conformance.core.values.edition import KIP_429
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_names
from kipcheck.conformance.protocols.assignment.model.membership import V0
from kipcheck.conformance.protocols.cluster.kinds import KINDS
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.upgrade import ops
from kipcheck.conformance.protocols.upgrade.invariants import ownership, upgrade_invariant

PLACE = 20

GENERATIONS = 3
"""The generations that a group may need per step until it is at rest: one to notice the change, one to give up
partitions, one to assign them."""


def in_draft(history: History) -> bool:
    return history.case.edition == KIP_429.name


def summary(formed: ops.Formed) -> str:
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

    def until(self, events: Sequence[ops.Event | None], index: int) -> None:
        """Processes the steps up to that one, inclusive."""
        while self.steps <= index:
            self._apply(events[self.steps])
            self.steps += 1

    def _apply(self, event: ops.Event | None) -> None:
        match event:
            case ops.Roll(member, kind):
                if member in self.kinds:
                    self.leaving.add(member)
                self.kinds[member] = kind
                self.lately.add(kind)
                self.failed.discard(member)
            case ops.Stop(member):
                if member in self.kinds:
                    self.leaving.add(member)
                    self.stopped[member] = self.kinds.pop(member)
            case ops.Crash(member):
                if member in self.kinds:
                    self.stopped[member] = self.kinds.pop(member)
            case ops.Restart(member):
                if member in self.stopped and member not in self.kinds:
                    self.kinds[member] = self.stopped.pop(member)
                    self.lately.add(self.kinds[member])
                self.failed.discard(member)

    def observe(self, observation: ownership.ObservedAt) -> None:
        if isinstance(observation.seen, ops.Ended):
            self.leaving.discard(observation.seen.member)
        if isinstance(observation.seen, ops.Failed):
            self.failed.add(observation.seen.member)
        if isinstance(observation.seen, ops.Rests):
            self.lately = set(self.kinds.values())


def scripted(
    history: History, undefined: bool = False
) -> Iterator[tuple[ownership.ObservedAt, ownership.Owners, Script]]:
    script, events = Script(), ownership.trace(history).events
    for observation, owners in ownership.observed_events(history, undefined):
        script.until(events, observation.step)
        yield observation, owners, script
        script.observe(observation)


# Eager and incremental


@impact(
    "An eager member joins while it still reads",
    "double processing",
    "callbacks",
    "double-processing",
    links=("KIP-429",),
)
@upgrade_invariant("bounce/eager-gives-up", "429-17", "429-19", checks=("bounce/upgrade",))
def eager_gives_up(history: History) -> Iterator[Violation]:
    """An eager member has given up everything before it joins."""
    for observation, owners in ownership.observed_events(history):
        if isinstance(observation.seen, ops.Formed):
            for each in observation.seen.members:
                kept = sorted(owners.of(each.member)) if each.version == V0 else []
                if kept:
                    why = (
                        f"{each.member} is eager, joined {summary(observation.seen)}, and still reads "
                        f"{partition_names(kept)}"
                    )
                    since = owners.owned[each.member][kept[0]].since
                    yield Violation(
                        why, (since, observation.step), "no partition", partition_names(kept), shape=("eager", "keeps")
                    )


@impact(
    "A cooperative member revokes partitions without need", "trivia", "stickiness", "needless-move", links=("KIP-429",)
)
@upgrade_invariant("bounce/incremental", "429-04", "429-15", "429-19", checks=("bounce/upgrade",))
def incremental(history: History) -> Iterator[Violation]:
    """A cooperative member revokes only partitions that an assignment took from it."""
    last: dict[str, tuple[int, ops.Assigned]] = {}
    versions: dict[str, int] = {}
    for observation, _, script in scripted(history):
        match observation.seen:
            case ops.Formed(members=members):
                versions.update((each.member, each.version) for each in members)
            case ops.Assigned(member):
                last[member] = observation.step, observation.seen
            case ops.Ended(member):
                last.pop(member, None)
            case ops.Gave(member, partitions, lost=False) if member not in script.leaving and versions.get(member, V0):
                at, assigned = last.get(member, (observation.step, None))
                kept = [each for each in partitions if assigned is not None and each in assigned.partitions]
                if assigned is not None and kept:
                    why = (
                        f"{member} is cooperative, was assigned {partition_names(kept)} in generation "
                        f"{assigned.generation} "
                        f"and revokes it in step {observation.step + 1}, although no assignment took it away"
                    )
                    yield Violation(
                        why,
                        (at, observation.step),
                        f"{partition_names(kept)} kept",
                        f"{partition_names(kept)} revoked",
                        shape=("cooperative", "revokes all"),
                    )


# A group in which both are mixed


@impact(
    "A mixed group hands out partitions that are still read",
    "double processing",
    "gating",
    "double-processing",
    "misled-operator",
    links=("KIP-429",),
)
@upgrade_invariant("bounce/mixed", "429-02", "429-10", "429-11", "429-13", "429-26", checks=("bounce/mixed",))
def mixed(history: History) -> Iterator[Violation]:
    """In a mixed group members that have revoked get only an error, and the others keep exactly what they own.

    In any other group no assignment has an error.
    """
    if not in_draft(history):
        return
    joined: dict[str, tuple[int, frozenset[Partition]]] = {}
    for observation, owners in ownership.observed_events(history):
        match observation.seen:
            case ops.Formed(members=members):
                joined = {}
                if ownership.is_mixed([each.version for each in members]):
                    joined = {each.member: (each.version, frozenset(owners.of(each.member))) for each in members}
            case ops.Assigned(member, _, _, error) if error and not joined and owners.generation is not None:
                why = f"{summary(owners.generation)}: {member} gets error {error}, although the group is not mixed"
                yield Violation(why, (owners.formed_at, observation.step), "no error", f"error {error}",
                                shape=("mixed", "needless error"))  # fmt: skip
            case ops.Assigned(member, _, partitions, error) if member in joined and owners.generation is not None:
                version, had = joined[member]
                where = f"{summary(owners.generation)}: {member}"
                at = (owners.formed_at, observation.step)
                if version == V0 and (partitions or not error):
                    what = f"gets {partition_names(partitions)}" + ("" if error else " and no error")
                    yield Violation(f"{where}, which uses version 0, {what}", at, "no partition, and an error", what,
                                    shape=("mixed", "partitions" if partitions else "no error"))  # fmt: skip
                if version > V0 and set(partitions) != had:
                    more, less = sorted(set(partitions) - had), sorted(had - set(partitions))
                    what = f"gets {partition_names(more)}" if more else f"loses {partition_names(less)}"
                    yield Violation(f"{where}, which owned {partition_names(had)}, {what}", at,
                                    "what it owned", what, shape=("mixed", "given" if more else "taken"))  # fmt: skip


@impact(
    "The number of incompatible rebalances is reported incorrectly",
    "trivia",
    "callbacks",
    "misled-operator",
    links=("KIP-429",),
)
@upgrade_invariant("bounce/metric", "429-03", "429-11", "429-13", "429-26", checks=("bounce/mixed",))
def metric(history: History) -> Iterator[Violation]:
    """Each assignment with an error raises num.incompatible.rebalance by one, and nothing else raises it.

    Members that do not know the error are exempt: an old binary cannot read it.
    """
    due: dict[str, tuple[int, int]] = {}
    totals: dict[str, int] = {}
    knows: dict[str, int] = {}
    for observation, _ in ownership.observed_events(history):
        match observation.seen:
            case ops.Formed(members=members):
                knows.update((each.member, each.knows) for each in members)
            case ops.Assigned(member) if not knows.get(member):
                continue  # It cannot read the error.
            case ops.Assigned(member, generation, _, error) if error and member in due:
                yield _uncounted(member, *due[member], observation.step)
            case ops.Assigned(member, generation, _, error) if error:
                due[member] = observation.step, generation
            case ops.Counted(member, total):
                before = totals.get(member, 0)
                if member not in due or total != before + 1:
                    why = f"the metric of {member} goes from {before} to {total} in step {observation.step + 1}"
                    why += "" if member in due else ", without an assignment with an error"
                    shape = ("metric", "miscounted")
                    yield Violation(why, (observation.step,), "one more for each error", str(total), shape=shape)
                due.pop(member, None)
                totals[member] = total
            case ops.Ended(member):
                due.pop(member, None)
                totals.pop(member, None)
            case ops.Rests() | ops.Restless():
                for member, (at, generation) in due.items():
                    yield _uncounted(member, at, generation, observation.step)
                due.clear()


def _uncounted(member: str, at: int, generation: int, now: int) -> Violation:
    why = f"{member} got an assignment with an error in generation {generation}, and its metric did not rise"
    return Violation(why, (at, now), "num.incompatible.rebalance + 1", "unchanged", shape=("metric", "not raised"))


# Leaders


@impact(
    "An old member leads newer ones",
    "stuck group",
    "versions",
    "stuck-upgrade",
    "double-processing",
    links=("KIP-429",),
)
@upgrade_invariant("bounce/newest-leads", "429-08", "429-09", "429-12", checks=("bounce/leaders",))
def newest_leads(history: History) -> Iterator[Violation]:
    """If brokers choose the leader by version, a member with the highest version leads."""
    if not in_draft(history) or any(op.step.verb == "old-brokers" for op in history.ops):
        return
    for observation, _ in ownership.observed_events(history, undefined=True):
        if isinstance(observation.seen, ops.Formed) and observation.seen.members:
            newest = max(map(_joined_version, observation.seen.members))
            leads = [
                _joined_version(each) for each in observation.seen.members if each.member == observation.seen.leader
            ]
            if leads != [newest]:
                knowing = " or ".join(
                    each.member for each in observation.seen.members if _joined_version(each) == newest
                )
                why = (
                    f"{observation.seen.leader} leads generation {observation.seen.generation}, and {knowing} is newer"
                )
                yield Violation(
                    why, (observation.step,), knowing, observation.seen.leader, shape=("leader", "not the newest")
                )


def _joined_version(joining: ops.Joining) -> tuple[int, bool]:
    """The version in JoinGroup, for comparison; a member that knows only version 0 sends none and comes last."""
    return joining.version, joining.knows > V0


@impact(
    "A Streams group probes versions without need",
    "trivia",
    "negotiation",
    "stuck-upgrade",
    links=("KIP-268", "KIP-429"),
)
@upgrade_invariant("bounce/no-probing", "429-18", checks=("bounce/streams",), grade=Grade.SHOULD,
           applies_to=lambda case, step: step.verb == "roll-streams")  # fmt: skip
def no_probing(history: History) -> Iterator[Violation]:
    """In a Streams group whose newest member leads, no member is asked to use an older version."""
    if not in_draft(history) or any(op.step.verb == "old-brokers" for op in history.ops):
        return
    for observation, _ in ownership.observed_events(history, undefined=True):
        if isinstance(observation.seen, ops.SteppedDown):
            member, version = observation.seen.member, observation.seen.version
            why = f"{member} has to use metadata version {version}, and joins once more"
            yield Violation(why, (observation.step,), "one round", "a probing round", shape=("probing",))


# Results


@impact("A group never comes to rest after a restart", "stuck group", "waiting", "stuck-group", links=("KAFKA-13891",))
@upgrade_invariant("bounce/rests", "grp-19", "429-04", checks=("bounce/upgrade",),
           applies_to=lambda case, step: step.verb == "settle")  # fmt: skip
def rests(history: History) -> Iterator[Violation]:
    """A group comes to rest after a limited number of generations for each step."""
    formed: list[int] = []
    since = 0
    for observation, _ in ownership.observed_events(history, undefined=True):
        match observation.seen:
            case ops.Formed(generation):
                formed.append(generation)
            case ops.Restless(turns):
                why = f"after {turns} turns of its members, and generations {_few(formed)}, the group is not at rest"
                yield Violation(why, (observation.step,), "rest", "no rest", shape=("restless",))
                return
            case ops.Rests():
                steps = observation.step + 1 - since
                if len(formed) > GENERATIONS * steps:
                    why = f"{steps} steps cost the group {len(formed)} generations, {_few(formed)}"
                    most = f"at most {GENERATIONS * steps}"
                    yield Violation(why, (observation.step,), most, str(len(formed)), shape=("generations",))
                formed, since = [], observation.step + 1


def _few(generations: Collection[int]) -> str:
    shown = [str(each) for each in generations]
    return ", ".join(shown if len(shown) < 6 else [*shown[:3], "...", shown[-1]])


@impact(
    "A member stays outside of the group, or in its old version, after an upgrade",
    "stuck group",
    "guards",
    "stuck-upgrade",
    links=("KIP-429",),
)
@upgrade_invariant("bounce/upgraded", "429-04", "429-14", "429-19", checks=("bounce/upgrade",))
def upgraded(history: History) -> Iterator[Violation]:
    """When a group is at rest, all members that run are in it and use their configured version.

    Members that have no assignor in common with the group, and were refused, are exempt.
    """
    for observation, _, script in scripted(history, undefined=True):
        match observation.seen:
            case ops.Failed(member, error):
                common = not in_draft(history) and _has_nothing_in_common(script, member)
                if not common:
                    why = f"{member}, a {script.kinds.get(member, 'stopped')} member, gives up with {error}"
                    yield Violation(why, (observation.step,), "in the group", error, shape=("gives up", error))
            case ops.Rests(generation, members):
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
                    yield Violation(why, (observation.step,), f"{member} in the group, with version {wanted}", what,
                                    shape=("upgrade", shape))  # fmt: skip


def _has_nothing_in_common(script: Script, member: str) -> bool:
    """May the group have had a member without any of this one's assignors?"""
    if member not in script.kinds:
        return True  # the member was stopped, so its kind is not known any more
    mine = set(KINDS[script.kinds[member]].assignors)
    return any(mine.isdisjoint(KINDS[kind].assignors) for kind in script.lately)
