"""Invariants of a classic group coordinator: generations, leaders, protocols and assignments.

Each invariant reads the responses that were received; none compares them with the answers of a model.
"""

from collections.abc import Iterator, Mapping

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.group_requests import at, breach, metadata_of
from kipcheck.conformance.invariants.group_view import Given, Reading, Told, Where, reading
from kipcheck.conformance.invariants.registry import invariant
from kipcheck.conformance.models.group.messages import EMPTY, Blob, Commit, Error, Heartbeat, Join, Sync
from kipcheck.conformance.models.group.rules import INSTANCE_SINCE

# Generations


@invariant("group/generation-grows", "grp-01", role=Role.COORDINATOR)
def generation_grows(history: History) -> Iterator[Violation]:
    """The generation rises by one with each join phase that ends, and never falls."""
    talk = reading(history)
    before: Told | None = None
    for told in talk.told:
        if before is not None and talk.reign(before.by) != talk.reign(told.by):
            before = None
        yield from _falls(talk, told, before)
        yield from _leaps(talk, told)
        yield from _stays(talk, told)
        if before is None or told.generation >= before.generation:
            before = told


def _falls(talk: Reading, told: Told, before: Told | None) -> Iterator[Violation]:
    """The generation is below the newest one since the last memory loss, or below the one in the log."""
    low, since = (before.generation, before.by) if before is not None else talk.in_the_log(told.by)
    if told.generation >= low or since is None:
        return
    if not talk.rules.keeps_empty_groups and talk.chances_to_empty(since, told.by):
        return
    known = f"{at(since)} gave {_who(before)}" if before is not None else f"{at(since)} handed out the assignment of"
    why = f"{known} generation {low}, and {at(told.by)} gives {_who(told)} the older generation {told.generation}"
    steps = (since, told.by)
    yield breach(why, steps, f"generation {low} or later", f"generation {told.generation}", "generation", "falls")


def _leaps(talk: Reading, told: Told) -> Iterator[Violation]:
    """The generation exceeds the newest known one by more than the join phases that may have ended without members."""
    deletions = (each for each in talk.deletions if each <= told.by and not talk.unwritten(each))
    deleted = max(deletions, default=-1)
    earlier = [each for each in talk.told if deleted < each.by < told.by]
    newest = max(earlier, key=lambda each: each.generation, default=None)
    high, since = (0, deleted) if newest is None else (newest.generation, newest.by)
    emptied = talk.chances_to_empty(since, told.by)
    if told.generation > high + 1 + emptied:
        known = "the group is new" if newest is None else f"{at(since)} gave {_who(newest)} generation {high}"
        ways = f"{emptied} steps that may have emptied the group" if emptied else "no step that may have emptied it"
        why = f"{known}, and {at(told.by)} gives {_who(told)} generation {told.generation}, with {ways} between them"
        steps = (told.by,) if newest is None else (since, told.by)
        yield breach(why, steps, f"generation {high + 1}", f"generation {told.generation}", "generation", "leaps")


def _stays(talk: Reading, told: Told) -> Iterator[Violation]:
    """A JoinGroup is answered with a generation that ended before.

    The JoinGroup waited for the end of a join phase, or the leader of a stable group started one with it.
    """
    asked, generation = told.asked, told.generation
    first = talk.first_told(generation, talk.reign(told.by))
    if first is None or first.by >= asked.index:
        return
    handed = next((each for each in talk.given if each.request.generation == generation), None)
    member = asked.request.member if isinstance(asked.request, Join) else ""
    if asked.parked:
        how = f"waited for the end of another join phase, and {at(told.by)} answers it"
    elif handed is not None and first.by < handed.by < asked.index and member and member == told.answer.leader:
        how = f"comes from the leader {member}, after {at(handed.by)} had handed out the assignment, and is answered"
    else:
        return
    why = (
        f"{at(first.by)} gave {_who(first)} generation {generation}; the JoinGroup of {at(asked.index)} {how} with the"
        " same generation"
    )
    yield breach(why, (first.by, asked.index, told.by), f"generation {generation + 1}", f"generation {generation}",
                 "generation", "stays")  # fmt: skip


def _who(told: Told) -> str:
    return told.answer.member or f"client {told.asked.actor}"


# Leaders


@invariant("group/one-leader", "grp-02", role=Role.COORDINATOR)
def one_leader(history: History) -> Iterator[Violation]:
    """All members of a generation get the same leader."""
    talk = reading(history)
    first: dict[tuple[int, int], Told] = {}
    for told in talk.told:
        before = first.setdefault((talk.reign(told.by), told.generation), told)
        if talk.person(before.answer.leader) != talk.person(told.answer.leader):
            why = (
                f"{at(before.by)} names {before.answer.leader or 'no member'} to {_who(before)} as leader of generation"
                f" {told.generation}, and {at(told.by)} names {told.answer.leader or 'no member'} to {_who(told)}"
            )
            yield breach(why, (before.by, told.by), f"leader {before.answer.leader}",
                         f"leader {told.answer.leader}", "leader", "changes")  # fmt: skip


@invariant("group/list-only-to-leader", "grp-31", role=Role.COORDINATOR)
def list_only_to_leader(history: History) -> Iterator[Violation]:
    """The leader gets the list of members, and no other member gets it."""
    for told in reading(history).told:
        leads = told.answer.leader == told.answer.member
        if leads and not told.answer.members:
            why = f"{at(told.by)} makes {_who(told)} leader of generation {told.generation}, and lists no members to it"
            yield breach(why, (told.asked.index, told.by), "the list of members", "an empty list", "list", "missing")
        elif told.answer.members and not leads:
            why = (
                f"{told.answer.leader or 'no member'} leads generation {told.generation}, and {at(told.by)} lists its"
                f" members to {_who(told)}"
            )
            yield breach(why, (told.asked.index, told.by), "an empty list",
                         f"{len(told.answer.members)} members", "list", "to a follower")  # fmt: skip


@invariant("group/leader-hears-all", "grp-02", "grp-31", role=Role.COORDINATOR)
def leader_hears_all(history: History) -> Iterator[Violation]:
    """The leader's list has every member of the generation once, as it joined, and no other member."""
    talk = reading(history)
    for told in talk.told:
        if not told.answer.members:
            continue
        ids = [id for id, _, _ in told.answer.members]
        steps = (told.asked.index, told.by)
        if len(set(ids)) < len(ids):
            twice = next(id for id in ids if ids.count(id) > 1)
            why = f"{at(told.by)} lists {twice} twice to the leader {_who(told)}"
            yield breach(why, steps, f"{twice} once", "twice", "list", "repeats")
        for other in talk.told:
            if other.by == told.by and other.generation == told.generation and other.answer.member not in ids:
                why = (
                    f"{at(told.by)} puts {_who(other)} into generation {told.generation}, and the list of the leader"
                    f" {_who(told)} lacks it"
                )
                yield breach(why, (other.asked.index, *steps), f"{_who(other)} in the list",
                             f"members {', '.join(ids)}", "list", "lacks a member")  # fmt: skip
        yield from _as_they_joined(talk, told)


def _as_they_joined(talk: Reading, told: Told) -> Iterator[Violation]:
    for id, instance, metadata in told.answer.members:
        join = talk.joined(id, told.by)
        if join is None:
            why = f"{at(told.by)} lists {id} to the leader {_who(told)}, and no member joined under that id"
            yield breach(why, (told.by,), "members that joined", id, "list", "a stranger")
        elif instance not in talk.instances_as(id) and not (instance is None and _tells_no_instances(told)):
            why = f"{id} joined as instance {join.instance}, and {at(told.by)} lists it as instance {instance}"
            yield breach(why, (told.by,), f"instance {join.instance}", f"instance {instance}", "list", "instance")
        else:
            sent = metadata_of(join, told.answer.protocol)
            if metadata != sent and not talk.failed_to_join(id, told.by):
                why = (
                    f"{id} joined last with {sent!r} for protocol {told.answer.protocol}, and {at(told.by)} lists it"
                    f" to the leader {_who(told)} with {metadata!r}"
                )
                yield breach(why, (told.by,), f"metadata {sent!r}", f"{metadata!r}", "list", "metadata")


def _tells_no_instances(told: Told) -> bool:
    """Is the answer of a version without instance ids?"""
    return isinstance(told.asked.request, Join) and told.asked.request.version < INSTANCE_SINCE[Join]


@invariant("group/common-protocol", "grp-32", role=Role.COORDINATOR)
def common_protocol(history: History) -> Iterator[Violation]:
    """The protocol of a generation is one that all its members listed, with the most votes among those."""
    talk = reading(history)
    for told in talk.told:
        if not told.answer.members:
            continue
        lists: dict[str, list[str]] = {}
        for id, _, _ in told.answer.members:
            join = talk.joined(id, told.by)
            if join is not None and not talk.failed_to_join(id, told.by):
                lists[id] = [name for name, _ in join.protocols]
        first = talk.first_told(told.generation, talk.reign(told.by))
        if first is not None and first.by < told.by:
            continue  # an earlier answer gave this generation, so no protocol was chosen again
        chosen = told.answer.protocol or ""
        without = next((id for id, names in lists.items() if chosen not in names), None)
        steps = (told.asked.index, told.by)
        if without is not None:
            why = f"{at(told.by)} chooses protocol {chosen}, and {without} listed {', '.join(lists[without])}"
            yield breach(why, steps, "a protocol that all listed", chosen, "protocol", "not common")
        elif len(lists) == len(told.answer.members) and not _across_a_break(talk, told):
            votes = _votes(lists)
            if votes and votes.get(chosen, 0) < max(votes.values()):
                best = [name for name, count in votes.items() if count == max(votes.values())]
                why = (
                    f"{at(told.by)} chooses protocol {chosen} with {votes.get(chosen, 0)} votes, and"
                    f" {' and '.join(best)} had {max(votes.values())}"
                )
                yield breach(why, steps, f"protocol {' or '.join(best)}", chosen, "protocol", "outvoted")


def _across_a_break(talk: Reading, told: Told) -> bool:
    """Did a member join before the last break? Of the protocols it listed, the log keeps only the chosen one."""
    joins = (talk.joining(id, told.by) for id, _, _ in told.answer.members)
    return any(each is not None and talk.reign(each.index) != talk.reign(told.by) for each in joins)


def _votes(lists: Mapping[str, list[str]]) -> dict[str, int]:
    common = set.intersection(*map(set, lists.values())) if lists else set()
    votes: dict[str, int] = {}
    for names in lists.values():
        vote = next((name for name in names if name in common), None)
        if vote is not None:
            votes[vote] = votes.get(vote, 0) + 1
    return votes


# Assignments


@invariant("group/assignment-from-leader", "grp-02", role=Role.COORDINATOR)
def assignment_from_leader(history: History) -> Iterator[Violation]:
    """Only the leader's SyncGroup sets the assignment of a generation, and each member gets its own part of it."""
    talk = reading(history)
    meant: dict[int, Given] = {}
    for given in talk.given:
        generation, member = given.request.generation, given.request.member
        if generation not in meant or talk.forgotten(meant[generation], given):
            word = _word_of_the_leader(talk, given)
            if word is None:
                leader = talk.leader(generation, given.by)
                if leader is None:
                    continue
                why = (
                    f"{leader} leads generation {generation} and has sent no assignment, and {at(given.by)} hands"
                    f" {member} {given.answer.assignment!r}"
                )
                yield breach(why, (given.asked.index, given.by), "no answer before the leader's",
                             f"{given.answer.assignment!r}", "assignment", "without the leader")  # fmt: skip
                continue
            meant[generation] = word
        yield from _other_bytes(talk, meant[generation], given)


def _word_of_the_leader(talk: Reading, given: Given) -> Given | None:
    """The leader's SyncGroup that set the assignment: the one that was answered in the same step."""
    leader = talk.leader(given.request.generation, given.by)
    if leader is None:
        return None
    return next(
        (
            each for each in talk.given
            if each.by == given.by and each.request.generation == given.request.generation
            and talk.person(each.request.member) == talk.person(leader)
        ),
        None,
    )  # fmt: skip


def _other_bytes(talk: Reading, word: Given, given: Given) -> Iterator[Violation]:
    member, got = given.request.member, given.answer.assignment
    allowed = _meant_for(talk, word, member)
    if got not in allowed:
        meant = " or ".join(map(repr, sorted(map(str, allowed))))
        why = (
            f"{at(word.asked.index)}, of the leader {word.request.member}, assigned {meant} to {member} in generation"
            f" {given.request.generation}, and {at(given.by)} hands it {got!r}"
        )
        shape = "of another" if got in dict(word.request.assignments).values() else "empty" if not got else "other"
        yield breach(why, (word.asked.index, given.asked.index, given.by), meant, f"{got!r}", "assignment", shape)


def _meant_for(talk: Reading, word: Given, member: str) -> set[Blob]:
    """The leader's assignments for the member, by its id or the id that it replaced since; empty if there are none."""
    told = [each for each in talk.told if talk.person(each.answer.member) == talk.person(member)]
    if all(each.by > word.by for each in told if each.answer.member == member):
        holders = [each.answer.member for each in told if each.by <= word.by]
        member = holders[-1] if holders else member
    return {blob for id, blob in word.request.assignments if id == member} or {EMPTY}


# Old generations


@invariant("group/stale-never-wins", "grp-01", "grp-35", "grp-36", "grp-38", role=Role.COORDINATOR)
def stale_never_wins(history: History) -> Iterator[Violation]:
    """Heartbeat, SyncGroup and OffsetCommit of a member succeed only in the current generation."""
    talk = reading(history)
    for asked in talk.served:
        request = asked.request
        if not isinstance(request, Heartbeat | Sync | Commit) or not request.member or request.generation < 0:
            continue
        if asked.answer is None or asked.by is None or asked.answer.error != Error.NONE:
            continue
        if talk.where[asked.by] is not Where.HERE:
            continue
        current, since = talk.current(asked.by)
        emptied = talk.chances_to_empty(-1 if since is None else since, asked.by)
        newer = any(each < asked.by and talk.unwritten(each) for each in talk.deletions)
        if request.generation < current or (request.generation > current + emptied and not newer):
            known = "there was no generation yet" if since is None else f"{at(since)} gave generation {current}"
            age = "older" if request.generation < current else "unknown"
            why = (
                f"{known}, and {at(asked.by)} accepts the {type(request).__name__.lower()} of {request.member} with"
                f" the {age} generation {request.generation}"
            )
            steps = (asked.index, asked.by) if since is None else (since, asked.index, asked.by)
            yield breach(why, steps, "ILLEGAL_GENERATION", "NONE", type(request).__name__, age)
