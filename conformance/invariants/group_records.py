"""Invariants of a classic group coordinator's records: they survive a move of the group, and requests that failed or
were refused leave no trace."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from kipcheck.conformance.apis.group_trace import Asked, Moment
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.group_requests import at, breach, error_of
from kipcheck.conformance.invariants.group_view import Reading, reading
from kipcheck.conformance.invariants.registry import invariant
from kipcheck.conformance.models.group.messages import (
    Commit,
    Describe,
    Described,
    Error,
    Fetch,
    Fetched,
    Heartbeat,
    Join,
    Leave,
    Left,
    ListGroups,
    Load,
    Loaded,
    Phase,
    Sync,
    Synced,
    Unload,
)
from kipcheck.conformance.models.group.service import By, FailWrite

KEPT_MS = 24 * 3_600_000
"""Every release keeps the offsets of an unused group for at least this long."""


_OWN_FAULTS = (
    Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION, Error.INCONSISTENT_GROUP_PROTOCOL,
    Error.INVALID_SESSION_TIMEOUT, Error.INVALID_GROUP_ID, Error.REBALANCE_IN_PROGRESS,
)  # fmt: skip
"""Errors caused by the request itself; other errors of a join or a sync come from the log or the broker."""


class Seen(NamedTuple):
    """The group in a DescribeGroups response."""

    asked: Asked
    state: str
    rest: tuple[object, ...]

    def __str__(self) -> str:
        return f"{self.state} with {', '.join(map(str, self.rest)) or 'no members'}"


def _described(talk: Reading) -> Iterator[Seen]:
    for each in talk.served:
        answer = each.answer
        if isinstance(answer, Described) and answer.error in (Error.NONE, Error.GROUP_ID_NOT_FOUND):
            state = answer.state if answer.members else ""  # a group without members is Empty, Dead or unknown
            protocol = (answer.protocol,) if answer.state == Phase.STABLE.called else ()
            members = ((id, said, given) for id, _, said, given in answer.members)  # older answers lack the instances
            yield Seen(each, state, (*protocol, *sorted(members, key=str)))


def _pairs(talk: Reading) -> Iterator[tuple[Seen, Seen, list[Moment]]]:
    """Two consecutive descriptions, and the steps between them."""
    seen = list(_described(talk))
    for before, after in pairwise(seen):
        yield before, after, list(talk.between(before.asked.index, after.asked.index))


# Refused


@invariant("group/refused-changes-nothing", "grp-49", "grp-08", role=Role.COORDINATOR)
def refused_changes_nothing(history: History) -> Iterator[Violation]:
    """A refused request leaves the group unchanged."""
    talk = reading(history)
    for before, after, between in _pairs(talk):
        if not all(_is_refused(talk, each) for each in between) or before[1:] == after[1:]:
            continue
        named = ", ".join(f"{type(_request(each)).__name__} at {at(each.index)}" for each in between) or "nothing"
        why = (
            f"{at(before.asked.index)} describes the group as {before}, {named} was refused after that, and"
            f" {at(after.asked.index)} describes it as {after}"
        )
        steps = (before.asked.index, *(each.index for each in between), after.asked.index)
        yield breach(why, steps, str(before), str(after), "group", "changed by what was refused")


def _request(moment: Moment) -> object:
    return moment.event.request if isinstance(moment.event, By) else None


def _is_refused(talk: Reading, moment: Moment) -> bool:
    """Was the request refused, or did it only read?

    A join or sync that failed because of a write does not count: it may have started a join phase.
    """
    if not isinstance(moment.event, By):
        return False
    asked = talk.trace.request(moment.index)
    error = error_of(asked)
    match asked.request:
        case Describe() | ListGroups() | Fetch():
            return True
        case Leave():
            left = asked.answer
            each = [error for _, _, error in left.members] if isinstance(left, Left) else []
            return error not in (None, Error.NONE) or (bool(each) and Error.NONE not in each)
        case Heartbeat() | Commit():
            return error not in (None, Error.NONE)
        case Join() | Sync():
            return not asked.parked and error in _OWN_FAULTS
    return False


@invariant("group/refused-disturbs-nobody", "grp-49", role=Role.COORDINATOR)
def refused_disturbs_nobody(history: History) -> Iterator[Violation]:
    """Refused requests of others do not disturb a member of a stable group."""
    talk = reading(history)
    for each in talk.served:
        request = each.request
        if not isinstance(request, Heartbeat) or error_of(each) == Error.NONE or not talk.as_itself(each):
            continue
        last = talk.settled(request.member, request.generation, each.index)
        if last is None or last.by is None:
            continue
        between = list(talk.between(last.by, each.index))
        if between and all(_is_refused(talk, moment) for moment in between):
            refused = ", ".join(f"{type(_request(moment)).__name__} at {at(moment.index)}" for moment in between)
            seen = "no answer" if each.answer is None else each.answer.error.name
            why = (
                f"{at(last.by)} granted {request.member} its {type(last.request).__name__}, every request since then"
                f" was refused ({refused}), and {at(each.index)} answers its heartbeat with {seen}"
            )
            steps = (last.index, *(moment.index for moment in between), each.index)
            yield breach(why, steps, "NONE", seen, "heartbeat", "disturbed")


# Moves


@invariant("group/outlives-moves", "grp-45", role=Role.COORDINATOR)
def outlives_moves(history: History) -> Iterator[Violation]:
    """A stable or empty group is unchanged after a move."""
    talk = reading(history)
    for before, after, between in _pairs(talk):
        moved = [each for each in between if isinstance(each.event, Unload)]
        if not moved or not all(isinstance(each.event, Unload | Load | Loaded) for each in between):
            continue
        if before.state not in ("", Phase.STABLE.called) or before[1:] == after[1:] or _unwritten(talk, moved[0]):
            continue
        why = (
            f"{at(before.asked.index)} describes the group as {before}, it moved at {at(moved[0].index)}, and"
            f" {at(after.asked.index)} describes it as {after}"
        )
        yield breach(why, (before.asked.index, moved[0].index, after.asked.index), str(before), str(after),
                     "group", "changed by a move")  # fmt: skip


def _unwritten(talk: Reading, moved: Moment) -> bool:
    """Did a static member rejoin before the move, in a release that does not write its new id?"""
    return not talk.rules.replacement_written and any(
        isinstance(each.request, Join) and each.request.instance is not None and each.index < moved.index
        for each in talk.trace.asked
    )


@invariant("group/goes-on-after-moves", "grp-45", role=Role.COORDINATOR)
def goes_on_after_moves(history: History) -> Iterator[Violation]:
    """After a move a member of a stable group continues in the same generation, with the same assignment."""
    talk = reading(history)
    for each in talk.served:
        request = each.request
        if not isinstance(request, Heartbeat | Sync) or not request.member:
            continue
        last = talk.settled(request.member, request.generation, each.index)
        if last is None or not _only_moved(talk, last, each):
            continue
        given = next(g for g in reversed(talk.given) if g.request.member == request.member and g.by <= (last.by or 0))
        if not _says_as_before(request, given.request):
            continue
        error = error_of(each)
        if error != Error.NONE:
            seen = "no answer" if error is None else error.name
            shape = "forgotten"
        elif isinstance(each.answer, Synced) and each.answer.assignment != given.answer.assignment:
            seen, shape = f"the assignment {each.answer.assignment!r}", "another assignment"
        else:
            continue
        kind = type(request).__name__
        why = (
            f"{at(given.by)} handed {request.member} {given.answer.assignment!r} in generation {request.generation},"
            f" the group moved, and {at(each.index)} answers its {kind} with {seen}"
        )
        wanted = "NONE" if isinstance(request, Heartbeat) else repr(given.answer.assignment)
        yield breach(why, (given.by, last.index, each.index), wanted, seen, kind, shape)


def _says_as_before(now: Heartbeat | Sync, then: Sync) -> bool:
    """Does the request name the same instance and protocol as the SyncGroup, as far as it names them?"""
    told = [(now.instance, then.instance)]
    if isinstance(now, Sync):
        told += [(now.protocol_type, then.protocol_type), (now.protocol, then.protocol)]
    return all(said is None or said == before for said, before in told)


def _only_moved(talk: Reading, last: Asked, now: Asked) -> bool:
    """Was there a move between the two requests, and otherwise only steps that change nothing?"""
    if talk.person(_member(now)) != _member(now) and not talk.rules.replacement_written:
        return False
    moved = False
    for each in talk.between(last.by if last.by is not None else last.index, now.index):
        match each.event:
            case Unload():
                moved = True
            case Load() | Loaded():
                pass
            case By(request=Describe() | ListGroups() | Fetch() | Heartbeat()):
                pass
            case _:
                return False
    return moved


def _member(asked: Asked) -> str:
    return asked.request.member if isinstance(asked.request, Heartbeat | Sync) else ""


# Offsets


@invariant("group/commits-kept", "grp-38", "grp-45", "grp-49", role=Role.COORDINATOR)
def commits_kept(history: History) -> Iterator[Violation]:
    """OffsetFetch returns the last accepted offset of each partition, and no other."""
    talk = reading(history)
    held: dict[tuple[str, int], tuple[int, int]] = {}
    for each in talk.trace.asked:
        if each.at_ms >= KEPT_MS:
            return
        if each.index in talk.deletions:
            if talk.unwritten(each.index):
                return
            held.clear()
        if isinstance(each.request, Commit) and error_of(each) == Error.NONE and not each.nameless:
            held.update({(topic, number): (offset, each.index) for topic, number, offset in each.request.offsets})
        if not isinstance(each.answer, Fetched) or error_of(each) != Error.NONE or each not in talk.served:
            continue
        told = {(topic, number): offset for topic, number, offset in each.answer.offsets}
        for topic, number in sorted(held.keys() | told.keys()):
            wanted, got = held.get((topic, number)), told.get((topic, number))
            if wanted is None:
                why = f"no offset was accepted for {topic}-{number}, and {at(each.index)} returns offset {got}"
                yield breach(why, (each.index,), "no offset", f"offset {got}", "offset", "from nowhere")
            elif got != wanted[0]:
                seen = "none" if got is None else f"offset {got}"
                first = f"{at(wanted[1])} accepted offset {wanted[0]} for {topic}-{number}"
                why = f"{first}, and {at(each.index)} returns {seen}"
                shape = "lost" if got is None else "other"
                yield breach(why, (wanted[1], each.index), f"offset {wanted[0]}", seen, "offset", shape)


# Writes that failed


@invariant("group/failed-writes-count-nothing", "grp-46", role=Role.COORDINATOR)
def failed_writes_count_nothing(history: History) -> Iterator[Violation]:
    """If a write fails, neither the commit is granted nor the leader's assignment handed out to any member."""
    talk = reading(history)
    for moment in talk.trace.moments:
        if not isinstance(moment.event, FailWrite):
            continue
        asked = _next_write(talk, moment)
        if asked is None:
            continue
        error = moment.event.error.name
        if error_of(asked) == Error.NONE:
            kind = type(asked.request).__name__
            why = f"{at(moment.index)} makes the next write fail, and {at(asked.index)} grants the {kind} that needs it"
            yield breach(why, (moment.index, asked.index), error, "NONE", kind, "not written")
        if not isinstance(asked.request, Sync) or error_of(asked) in _OWN_FAULTS:
            continue
        for given in talk.given:
            if (
                given.by >= asked.index
                and given.asked.index != asked.index
                and given.request.generation == asked.request.generation
                and talk.reign(given.by) == talk.reign(asked.index)
            ):
                why = (
                    f"the assignment of {at(asked.index)} could not be written, and {at(given.by)} hands"
                    f" {given.request.member} {given.answer.assignment!r} in generation {given.request.generation}"
                )
                yield breach(why, (moment.index, asked.index, given.by), "an error, and another join phase",
                             f"{given.answer.assignment!r}", "assignment", "not written")  # fmt: skip
                return


def _next_write(talk: Reading, failing: Moment) -> Asked | None:
    """The next request that has to write: a commit, or the leader's SyncGroup that sets the assignment."""
    for each in talk.trace.moments:
        if each.index <= failing.index:
            continue
        if not isinstance(each.event, By):
            return None
        asked = talk.trace.request(each.index)
        match asked.request:
            case Describe() | ListGroups() | Fetch() | Heartbeat():
                continue
            case Commit(offsets=offsets) if offsets and asked in talk.served:
                # A commit without offsets, or one that is refused anyway, needs no write.
                return asked
            case Sync(generation=generation, member=member) if asked in talk.served:
                known = talk.current(asked.index)[0] == generation and talk.leader(generation, asked.index) == member
                set_before = talk.settled_before(generation, asked.index)
                return asked if known and not set_before else None
        return None
    return None
