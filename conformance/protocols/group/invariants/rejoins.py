"""Invariants of a classic group coordinator: which JoinGroups start a join phase, who stays, and when it ends.

They follow from what clients can know (``observer``); where that is not certain there is no verdict.
"""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, steps_of
from kipcheck.conformance.protocols.group.invariants import REBALANCES, group_invariant
from kipcheck.conformance.protocols.group.invariants.answers import answered
from kipcheck.conformance.protocols.group.invariants.known import KnownGroup
from kipcheck.conformance.protocols.group.invariants.observer import known_before
from kipcheck.conformance.protocols.group.invariants.requests import at, breach, instances, named
from kipcheck.conformance.protocols.group.invariants.required_errors import owed
from kipcheck.conformance.protocols.group.invariants.view import GroupTrace, Location, group_trace
from kipcheck.conformance.protocols.group.model.messages import Join, Joined, Leave, Phase
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE
from kipcheck.conformance.protocols.group.model.static import SKIP_SINCE
from kipcheck.conformance.protocols.group.trace import TracedRequest

PLACE = 60

of_static = partial(group_invariant, checks=("group/static",))

SETTLED = (Phase.COMPLETING, Phase.STABLE)


def _faultless(history: History) -> Iterator[tuple[TracedRequest, Join, KnownGroup, GroupTrace]]:
    """JoinGroups that certainly have no fault, in a generation that is known."""
    for each, known, group in answered(history, Join):
        join, where = each.request, group.locations[each.index]
        found = owed(each, known, group)
        sure = found is not None and not found.certain and not found.possible and not each.nameless
        if sure and where is Location.HERE and known.generation is not None and isinstance(join, Join):
            yield each, join, known, group


def _in_generation(each: TracedRequest, known: KnownGroup) -> bool:
    """Is the JoinGroup answered at once, with the current generation?"""
    return each.by == each.index and isinstance(each.answer, Joined) and each.answer.generation == known.generation


@impact(
    "A group does not rebalance when a member changes its protocols, or rebalances without a reason",
    "stuck group",
    "waiting",
    "needless-move",
)
@group_invariant(
    "group/rejoins", "grp-52", checks=(REBALANCES,), grade=Grade.SHOULD, needs=steps_of("join"), after=("join",)
)
def rejoins(history: History) -> Iterator[Violation]:
    """A member that joins again with other protocols starts a join phase; a follower that changes nothing does not."""
    for each, join, known, _ in _faultless(history):
        starts, same = _starts_join_phase(known, join), _in_generation(each, known)
        if starts is None or starts is not same or known.phase is None:
            continue
        changed = "other protocols" if starts else "the same protocols"
        observed = "the current generation" if same else "no answer in the current generation"
        expected = "a new join phase" if starts else "the current generation"
        why = (
            f"the group is in {known.phase.called}, {join.member} joins again at {at(each.index)} with {changed}, and"
            f" gets {observed}"
        )
        yield breach(why, (each.index,), expected, observed, "Join", known.phase.called, changed)


def _starts_join_phase(known: KnownGroup, join: Join) -> bool | None:
    """Does the JoinGroup of a member start a join phase? None: not known, or left open."""
    member = known.members.get(join.member)
    if member is None or member.join is None or known.phase not in SETTLED:
        return None
    if member.join.protocols != join.protocols:
        return True
    return None if known.leader is None or known.leader == join.member else False


@impact(
    "A restart of a static member rebalances its group",
    "trivia",
    "identity",
    "needless-move",
    links=("KIP-345", "KIP-814"),
)
@of_static("group/replaced-at-once", "grp-48", needs=steps_of("join"), after=("join",))
def replaced_at_once(history: History) -> Iterator[Violation]:
    """In a stable group the new process of an instance gets the current generation, and is not made to assign."""
    for each, join, known, _ in _faultless(history):
        held, holder = (False, None) if join.instance is None or join.member else known.holders(join.instance)
        former = known.members[holder].join if held and holder is not None else None
        if known.phase is not Phase.STABLE or former is None or former.protocols != join.protocols:
            continue
        leads = known.leader is not None and known.leader == holder
        if not _in_generation(each, known):
            why = f"{holder} is instance {join.instance} of a stable group, and {at(each.index)} does not get its place"
            yield breach(why, (each.index,), "the current generation", "another join phase", "Join", "replaced")
        elif isinstance(each.answer, Joined) and leads and _assigns(each.answer):
            way = "the flag to skip the assignment" if join.version >= SKIP_SINCE else "another leader id"
            why = f"{holder} led a stable group, {at(each.index)} replaces it, and makes {each.answer.leader} assign"
            yield breach(why, (each.index,), way, "an order to assign", "Join", "replaced", "made to assign")


def _assigns(answer: Joined) -> bool:
    return answer.leader == answer.member and not answer.skip_assignment


@impact(
    "A static member loses its partitions in a rebalance that it misses",
    "stuck group",
    "identity",
    "needless-move",
    links=("KIP-345",),
)
@of_static("group/static-stay", "grp-41", needs=steps_of("join"), after=("join",))
def static_stay(history: History) -> Iterator[Violation]:
    """A join phase removes no static member whose session has not ended."""
    group = group_trace(history)
    known = known_before(history)
    for result in group.join_results:
        before = known.get(result.by)
        if not result.answer.members or before is None or not result.exchange.parked or before.failing:
            continue
        listed = {instance for _, instance, _ in result.answer.members} - {None}
        asked = result.exchange.request
        lacks = not isinstance(asked, Join) or asked.version < INSTANCE_SINCE[Join]
        for id, member in before.members.items():
            instance = member.instance
            if instance is None or instance in listed or lacks or _leaves(group, result.by, id, instance):
                continue
            silent = (result.exchange.to_ms or 0) - member.since_ms
            if silent < group.shortest_session_ms(id, result.by):
                why = (
                    f"{id} is instance {instance} of the group, its session has not ended, and {at(result.by)} gives"
                    f" generation {result.generation} without it"
                )
                steps = (result.exchange.index, result.by)
                yield breach(why, steps, f"instance {instance} in the list", "not there", "list", "lacks an instance")


def _leaves(group: GroupTrace, index: int, id: str, instance: str) -> bool:
    """Does the member leave, or another process take its place, in that step?"""
    return any(
        each.index == index
        and isinstance(each.request, Leave | Join)
        and (id in named(each) or instance in instances(each))
        for each in group.trace.asked
    )


@impact("A rebalance lasts longer than its members need", "trivia", "waiting", "stuck-group", links=("KAFKA-9752",))
@group_invariant(
    "group/ends-when-all-joined",
    "grp-55",
    checks=("group/parked",),
    grade=Grade.SHOULD,
    needs=steps_of("join"),
    after=("join",),
)
def ends_when_all_joined(history: History) -> Iterator[Violation]:
    """Once all members have joined again and no id is reserved, the join phase ends at once."""
    group = group_trace(history)
    known = known_before(history)
    for step in group.trace.steps:
        before = known[step.index]
        if not before.joining or before.failing or not before.complete or before.generation is None:
            continue
        joined = {id for each in before.joining for id in named(each)}
        if before.reserved or before.unsure or not before.members.keys() <= joined:
            continue
        first = before.joining[0]
        why = (
            f"before {at(step.index)} all members have joined, no id is reserved, and {at(first.index)} is still parked"
        )
        yield breach(why, (first.index, step.index), "the next generation", "no answer", "join phase", "all joined")
        return
