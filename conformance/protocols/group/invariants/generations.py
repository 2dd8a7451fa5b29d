"""Invariants of a classic group coordinator: generations, leaders, protocols and assignments.

Each invariant reads the responses that were received; none compares them with the answers of a model.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, steps_of
from kipcheck.conformance.protocols.group.invariants import group_invariant, view as group_view
from kipcheck.conformance.protocols.group.invariants.requests import at, breach, metadata_of
from kipcheck.conformance.protocols.group.model.messages import EMPTY, Blob, Commit, Error, Heartbeat, Join, Sync
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE

PLACE = 10

of_generations = partial(group_invariant, checks=("group/generations",))

# Generations


@impact(
    "The generation of a group does not grow, so that stale members are not recognised",
    "double processing",
    "epochs",
    "double-processing",
    "stuck-group",
)
@of_generations("group/generation-grows", "grp-01", needs=steps_of("join"), after=("join",))
def generation_grows(history: History) -> Iterator[Violation]:
    """The generation rises by one with each join phase that ends, and never falls."""
    group = group_view.group_trace(history)
    before: group_view.JoinResult | None = None
    for result in group.join_results:
        if before is not None and group.incarnation(before.by) != group.incarnation(result.by):
            before = None
        yield from _falls(group, result, before)
        yield from _leaps(group, result)
        yield from _stays(group, result)
        if before is None or result.generation >= before.generation:
            before = result


def _falls(
    group: group_view.GroupTrace, result: group_view.JoinResult, before: group_view.JoinResult | None
) -> Iterator[Violation]:
    """The generation is below the newest one since the last memory loss, or below the one in the log."""
    low, since = (before.generation, before.by) if before is not None else group.logged_generation(result.by)
    if result.generation >= low or since is None:
        return
    if not group.rules.keeps_empty_groups and group.emptying_steps(since, result.by):
        return
    known = (
        f"{at(since)} gave {_member_name(before)}"
        if before is not None
        else f"{at(since)} handed out the assignment of"
    )
    why = (
        f"{known} generation {low}, and {at(result.by)} gives {_member_name(result)} the older generation "
        f"{result.generation}"
    )
    steps = (since, result.by)
    yield breach(why, steps, f"generation {low} or later", f"generation {result.generation}", "generation", "falls")


def _leaps(group: group_view.GroupTrace, result: group_view.JoinResult) -> Iterator[Violation]:
    """The generation exceeds the newest known one by more than the join phases that may have ended without members."""
    deleted = max((each for each in group.deletions if each <= result.by), default=-1)
    earlier = [each for each in group.join_results if deleted < each.by < result.by]
    newest = max(earlier, key=lambda each: each.generation, default=None)
    high, since = (0, deleted) if newest is None else (newest.generation, newest.by)
    emptied = group.emptying_steps(since, result.by)
    if result.generation > high + 1 + emptied:
        known = "the group is new" if newest is None else f"{at(since)} gave {_member_name(newest)} generation {high}"
        ways = f"{emptied} steps that may have emptied the group" if emptied else "no step that may have emptied it"
        why = (
            f"{known}, and {at(result.by)} gives {_member_name(result)} generation {result.generation}, with {ways} "
            "between them"
        )
        steps = (result.by,) if newest is None else (since, result.by)
        yield breach(why, steps, f"generation {high + 1}", f"generation {result.generation}", "generation", "leaps")


def _stays(group: group_view.GroupTrace, result: group_view.JoinResult) -> Iterator[Violation]:
    """A JoinGroup is answered with a generation that ended before.

    The JoinGroup waited for the end of a join phase, or the leader of a stable group started one with it.
    """
    exchange, generation = result.exchange, result.generation
    first = group.first_join_result(generation, group.incarnation(result.by))
    if first is None or first.by >= exchange.index:
        return
    handed = next((each for each in group.sync_results if each.request.generation == generation), None)
    member = exchange.request.member if isinstance(exchange.request, Join) else ""
    if exchange.parked:
        how = f"waited for the end of another join phase, and {at(result.by)} answers it"
    elif handed is not None and first.by < handed.by < exchange.index and member and member == result.answer.leader:
        how = f"comes from the leader {member}, after {at(handed.by)} had handed out the assignment, and is answered"
    else:
        return
    why = (
        f"{at(first.by)} gave {_member_name(first)} generation {generation}; the JoinGroup of {at(exchange.index)} "
        f"{how} with the"
        " same generation"
    )
    yield breach(why, (first.by, exchange.index, result.by), f"generation {generation + 1}", f"generation {generation}",
                 "generation", "stays")  # fmt: skip


def _member_name(result: group_view.JoinResult) -> str:
    return result.answer.member or f"client {result.exchange.actor}"


# Leaders


@impact("A generation has two leaders", "double processing", "epochs", "double-processing", "unread-partition")
@of_generations("group/one-leader", "grp-02", needs=steps_of("join"), after=("join",))
def one_leader(history: History) -> Iterator[Violation]:
    """All members of a generation get the same leader."""
    group = group_view.group_trace(history)
    first: dict[tuple[int, int], group_view.JoinResult] = {}
    for result in group.join_results:
        before = first.setdefault((group.incarnation(result.by), result.generation), result)
        if group.identity(before.answer.leader) != group.identity(result.answer.leader):
            why = (
                f"{at(before.by)} names {before.answer.leader or 'no member'} to {_member_name(before)} as leader "
                "of generation"
                f" {result.generation}, and {at(result.by)} names {result.answer.leader or 'no member'} to "
                f"{_member_name(result)}"
            )
            yield breach(why, (before.by, result.by), f"leader {before.answer.leader}",
                         f"leader {result.answer.leader}", "leader", "changes")  # fmt: skip


@impact("The leader gets no list of members, or a follower gets one", "stuck group", "gating", "stuck-group")
@of_generations("group/list-only-to-leader", "grp-31", needs=steps_of("join"), after=("join",))
def list_only_to_leader(history: History) -> Iterator[Violation]:
    """The leader gets the list of members, and no other member gets it."""
    for result in group_view.group_trace(history).join_results:
        leads = result.answer.leader == result.answer.member
        if leads and not result.answer.members:
            why = (
                f"{at(result.by)} makes {_member_name(result)} leader of generation {result.generation}, and lists "
                "no members to it"
            )
            yield breach(
                why, (result.exchange.index, result.by), "the list of members", "an empty list", "list", "missing"
            )
        elif result.answer.members and not leads:
            why = (
                f"{result.answer.leader or 'no member'} leads generation {result.generation}, and {at(result.by)} "
                "lists its"
                f" members to {_member_name(result)}"
            )
            yield breach(why, (result.exchange.index, result.by), "an empty list",
                         f"{len(result.answer.members)} members", "list", "to a follower")  # fmt: skip


@impact("The leader's list of members is wrong", "stuck group", "shared-state", "unread-partition", "stuck-group")
@of_generations("group/leader-hears-all", "grp-02", "grp-31", needs=steps_of("join"), after=("join",))
def leader_lists_all(history: History) -> Iterator[Violation]:
    """The leader's list has every member of the generation once, as it joined, and no other member."""
    group = group_view.group_trace(history)
    for result in group.join_results:
        if not result.answer.members:
            continue
        ids = [id for id, _, _ in result.answer.members]
        steps = (result.exchange.index, result.by)
        if len(set(ids)) < len(ids):
            twice = next(id for id in ids if ids.count(id) > 1)
            why = f"{at(result.by)} lists {twice} twice to the leader {_member_name(result)}"
            yield breach(why, steps, f"{twice} once", "twice", "list", "repeats")
        for other in group.join_results:
            if other.by == result.by and other.generation == result.generation and other.answer.member not in ids:
                why = (
                    f"{at(result.by)} puts {_member_name(other)} into generation {result.generation}, and the list "
                    "of the leader"
                    f" {_member_name(result)} lacks it"
                )
                yield breach(why, (other.exchange.index, *steps), f"{_member_name(other)} in the list",
                             f"members {', '.join(ids)}", "list", "lacks a member")  # fmt: skip
        yield from _as_they_joined(group, result)


def _as_they_joined(group: group_view.GroupTrace, result: group_view.JoinResult) -> Iterator[Violation]:
    for id, instance, metadata in result.answer.members:
        join = group.joined(id, result.by)
        if join is None:
            why = f"{at(result.by)} lists {id} to the leader {_member_name(result)}, and no member joined under that id"
            yield breach(why, (result.by,), "members that joined", id, "list", "a stranger")
        elif instance not in group.instances_as(id) and not (instance is None and _lacks_instances(result)):
            why = f"{id} joined as instance {join.instance}, and {at(result.by)} lists it as instance {instance}"
            yield breach(why, (result.by,), f"instance {join.instance}", f"instance {instance}", "list", "instance")
        else:
            sent = metadata_of(join, result.answer.protocol)
            if metadata != sent and not group.failed_to_join(id, result.by):
                why = (
                    f"{id} joined last with {sent!r} for protocol {result.answer.protocol}, and {at(result.by)} "
                    "lists it"
                    f" to the leader {_member_name(result)} with {metadata!r}"
                )
                yield breach(why, (result.by,), f"metadata {sent!r}", f"{metadata!r}", "list", "metadata")


def _lacks_instances(result: group_view.JoinResult) -> bool:
    """Is the answer of a version without instance ids?"""
    return isinstance(result.exchange.request, Join) and result.exchange.request.version < INSTANCE_SINCE[Join]


@impact("The group uses a protocol that a member does not support", "stuck group", "negotiation", "stuck-group")
@of_generations("group/common-protocol", "grp-32", needs=steps_of("join"), after=("join",))
def common_protocol(history: History) -> Iterator[Violation]:
    """The protocol of a generation is one that all its members listed."""
    for result, lists, _ in _choices(group_view.group_trace(history)):
        chosen = result.answer.protocol or ""
        without = next((id for id, names in lists.items() if chosen not in names), None)
        if without is not None:
            why = f"{at(result.by)} chooses protocol {chosen}, and {without} listed {', '.join(lists[without])}"
            steps = (result.exchange.index, result.by)
            yield breach(why, steps, "a protocol that all listed", chosen, "protocol", "not common")


@impact("A group uses a protocol that fewer members prefer", "trivia", "order", "needless-move")
@of_generations("group/most-votes", "grp-54", grade=Grade.SHOULD, needs=steps_of("join"), after=("join",))
def most_votes(history: History) -> Iterator[Violation]:
    """No protocol that all members listed has more votes than the protocol of the generation."""
    for result, lists, complete in _choices(group_view.group_trace(history)):
        chosen, votes = result.answer.protocol or "", _votes(lists)
        common = all(chosen in names for names in lists.values())
        if complete and common and votes and votes.get(chosen, 0) < max(votes.values()):
            best = [name for name, count in votes.items() if count == max(votes.values())]
            why = (
                f"{at(result.by)} chooses protocol {chosen} with {votes.get(chosen, 0)} votes, and"
                f" {' and '.join(best)} had {max(votes.values())}"
            )
            steps = (result.exchange.index, result.by)
            yield breach(why, steps, f"protocol {' or '.join(best)}", chosen, "protocol", "outvoted")


def _choices(group: group_view.GroupTrace) -> Iterator[tuple[group_view.JoinResult, dict[str, list[str]], bool]]:
    """Choices of a protocol, with the protocols that each member listed, and whether these lists are all known."""
    for result in group.join_results:
        if not result.answer.members:
            continue
        first = group.first_join_result(result.generation, group.incarnation(result.by))
        if first is not None and first.by < result.by:
            continue  # an earlier answer gave this generation, so no protocol was chosen again
        lists: dict[str, list[str]] = {}
        for id, _, _ in result.answer.members:
            join = group.joined(id, result.by)
            if join is not None and not group.failed_to_join(id, result.by):
                lists[id] = [name for name, _ in join.protocols]
        complete = len(lists) == len(result.answer.members) and not _across_a_break(group, result)
        yield result, lists, complete


def _across_a_break(group: group_view.GroupTrace, result: group_view.JoinResult) -> bool:
    """Did a member join before the last break? Of the protocols it listed, the log keeps only the chosen one."""
    joins = (group.joining(id, result.by) for id, _, _ in result.answer.members)
    return any(each is not None and group.incarnation(each.index) != group.incarnation(result.by) for each in joins)


def _votes(lists: Mapping[str, list[str]]) -> dict[str, int]:
    common = set.intersection(*map(set, lists.values())) if lists else set()
    votes: dict[str, int] = {}
    for names in lists.values():
        vote = next((name for name in names if name in common), None)
        if vote is not None:
            votes[vote] = votes.get(vote, 0) + 1
    return votes


# Assignments


@impact(
    "A member gets an assignment that its leader did not make",
    "double processing",
    "gating",
    "double-processing",
    "unread-partition",
    links=("KAFKA-9801",),
)
@of_generations("group/assignment-from-leader", "grp-02", needs=steps_of("sync"), after=("sync",))
def assignment_from_leader(history: History) -> Iterator[Violation]:
    """Only the leader's SyncGroup sets the assignment of a generation, and each member gets its own part of it."""
    group = group_view.group_trace(history)
    meant: dict[int, group_view.SyncResult] = {}
    for given in group.sync_results:
        generation, member = given.request.generation, given.request.member
        if generation not in meant or group.started_again(meant[generation], given):
            leader_sync = _leader_sync(group, given)
            if leader_sync is None:
                leader = group.leader(generation, given.by)
                if leader is None:
                    continue
                why = (
                    f"{leader} leads generation {generation} and has sent no assignment, and {at(given.by)} hands"
                    f" {member} {given.answer.assignment!r}"
                )
                yield breach(why, (given.exchange.index, given.by), "no answer before the leader's",
                             f"{given.answer.assignment!r}", "assignment", "without the leader")  # fmt: skip
                continue
            meant[generation] = leader_sync
        yield from _wrong_assignment(group, meant[generation], given)


def _leader_sync(group: group_view.GroupTrace, given: group_view.SyncResult) -> group_view.SyncResult | None:
    """The leader's SyncGroup that set the assignment: the one that was answered in the same step."""
    leader = group.leader(given.request.generation, given.by)
    if leader is None:
        return None
    return next(
        (
            each for each in group.sync_results
            if each.by == given.by and each.request.generation == given.request.generation
            and group.identity(each.request.member) == group.identity(leader)
        ),
        None,
    )  # fmt: skip


def _wrong_assignment(
    group: group_view.GroupTrace, leader_sync: group_view.SyncResult, given: group_view.SyncResult
) -> Iterator[Violation]:
    member, got = given.request.member, given.answer.assignment
    allowed = _meant_for(group, leader_sync, member)
    if got not in allowed:
        meant = " or ".join(map(repr, sorted(map(str, allowed))))
        why = (
            f"{at(leader_sync.exchange.index)}, of the leader {leader_sync.request.member}, assigned {meant} to "
            f"{member} in generation"
            f" {given.request.generation}, and {at(given.by)} hands it {got!r}"
        )
        shape = (
            "of another" if got in dict(leader_sync.request.assignments).values() else "empty" if not got else "other"
        )
        yield breach(
            why, (leader_sync.exchange.index, given.exchange.index, given.by), meant, f"{got!r}", "assignment", shape
        )


def _meant_for(group: group_view.GroupTrace, leader_sync: group_view.SyncResult, member: str) -> set[Blob]:
    """The leader's assignments for the member, by its id or the id that it replaced since; empty if there are none."""
    result = [each for each in group.join_results if group.identity(each.answer.member) == group.identity(member)]
    if all(each.by > leader_sync.by for each in result if each.answer.member == member):
        holders = [each.answer.member for each in result if each.by <= leader_sync.by]
        member = holders[-1] if holders else member
    return {blob for id, blob in leader_sync.request.assignments if id == member} or {EMPTY}


# Old generations


@impact("A request of an old generation succeeds", "double processing", "epochs", "double-processing", "lost-offsets")
@group_invariant(
    "group/stale-never-wins",
    "grp-01",
    "grp-35",
    "grp-36",
    "grp-38",
    checks=("group/errors",),
    needs=steps_of("heartbeat", "sync", "commit"),
    after=("join",),
)
def stale_never_wins(history: History) -> Iterator[Violation]:
    """Heartbeat, SyncGroup and OffsetCommit of a member succeed only in the current generation."""
    group = group_view.group_trace(history)
    for exchange in group.served_requests:
        request = exchange.request
        if not isinstance(request, Heartbeat | Sync | Commit) or not request.member or request.generation < 0:
            continue
        if exchange.answer is None or exchange.by is None or exchange.answer.error != Error.NONE:
            continue
        if group.locations[exchange.by] is not group_view.Location.HERE:
            continue
        current, since = group.current(exchange.by)
        emptied = group.emptying_steps(-1 if since is None else since, exchange.by)
        if request.generation < current or request.generation > current + emptied:
            known = "there was no generation yet" if since is None else f"{at(since)} gave generation {current}"
            age = "older" if request.generation < current else "unknown"
            why = (
                f"{known}, and {at(exchange.by)} accepts the {type(request).__name__.lower()} of {request.member} with"
                f" the {age} generation {request.generation}"
            )
            steps = (exchange.index, exchange.by) if since is None else (since, exchange.index, exchange.by)
            yield breach(why, steps, "ILLEGAL_GENERATION", "NONE", type(request).__name__, age)
