"""Invariants of a classic group coordinator's records: they survive a move of the group, and requests that failed or
were refused leave no trace."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, steps_of
from kipcheck.conformance.protocols.declare.list_difference import list_difference
from kipcheck.conformance.protocols.group.invariants import group_invariant
from kipcheck.conformance.protocols.group.invariants.requests import at, breach, error_of
from kipcheck.conformance.protocols.group.invariants.view import GroupTrace, group_trace
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.service import By, FailWrite
from kipcheck.conformance.protocols.group.ops import NO_MORE, Offset, as_of
from kipcheck.conformance.protocols.group.trace import TracedRequest, TracedStep

PLACE = 40

of_errors = partial(group_invariant, checks=("group/errors",))
of_records = partial(group_invariant, checks=("group/records",))

KEPT_MS = 24 * 3_600_000
"""Offsets of an unused group are not removed before: the least ``offsets.retention.minutes`` of a default broker."""


_WHOLE = "leader epoch", "metadata"
_OWN_FAULTS = (
    Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION, Error.INCONSISTENT_GROUP_PROTOCOL,
    Error.INVALID_SESSION_TIMEOUT, Error.INVALID_GROUP_ID, Error.REBALANCE_IN_PROGRESS,
)  # fmt: skip
"""Errors caused by the request itself; other errors of a join or a sync come from the log or the broker."""


class Description(NamedTuple):
    """The group in a DescribeGroups response."""

    exchange: TracedRequest
    state: str
    protocol: tuple[str | None, ...]
    """Of a stable group; else empty."""
    members: tuple[tuple[str, object, object], ...]
    """Id, metadata and assignment, in the order of the ids."""

    def __str__(self) -> str:
        return f"{self.state} with {', '.join(map(str, (*self.protocol, *self.members))) or 'no members'}"

    def unlike(self, after: "Description") -> str:
        """What is different in a later description, in words for a shape."""
        before, now = ([id for id, *_ in each.members] for each in (self, after))
        if before != now:
            return list_difference(before, now, "members")
        if self.state != after.state:
            return "state"
        if self.protocol != after.protocol:
            return "protocol"
        pairs = zip(self.members, after.members, strict=True)
        return "metadata" if any(one[1] != two[1] for one, two in pairs) else "assignment"


def _described(group: GroupTrace) -> Iterator[Description]:
    for each in group.served_requests:
        answer = each.answer
        if isinstance(answer, messages.Described) and answer.error in (
            Error.NONE,
            Error.GROUP_ID_NOT_FOUND,
        ):
            state = answer.state if answer.members else ""  # a group without members is Empty, Dead or unknown
            protocol = (answer.protocol,) if answer.state == messages.Phase.STABLE.called else ()
            members = ((id, sent, given) for id, _, sent, given in answer.members)  # older answers lack the instances
            yield Description(each, state, protocol, tuple(sorted(members, key=str)))


def _pairs(group: GroupTrace) -> Iterator[tuple[Description, Description, list[TracedStep]]]:
    """Two consecutive descriptions, and the steps between them."""
    observed = list(_described(group))
    for before, after in pairwise(observed):
        yield before, after, list(group.between(before.exchange.index, after.exchange.index))


# Refused


@impact("A refused request changes the group", "stuck group", "atomicity", "needless-move", "stuck-group")
@of_errors("group/refused-changes-nothing", "grp-49", "grp-08", grade=Grade.SHOULD)
def refused_changes_nothing(history: History) -> Iterator[Violation]:
    """A refused request leaves the group unchanged."""
    group = group_trace(history)
    for before, after, between in _pairs(group):
        if not all(_is_refused(group, each) for each in between) or before[1:] == after[1:]:
            continue
        named = ", ".join(f"{type(_request(each)).__name__} at {at(each.index)}" for each in between) or "nothing"
        why = (
            f"{at(before.exchange.index)} describes the group as {before}, {named} was refused after that, and"
            f" {at(after.exchange.index)} describes it as {after}"
        )
        steps = (before.exchange.index, *(each.index for each in between), after.exchange.index)
        yield breach(why, steps, str(before), str(after), "group", "changed by what was refused",
                     before.unlike(after))  # fmt: skip


def _request(step: TracedStep) -> object:
    return step.event.request if isinstance(step.event, By) else None


def _is_refused(group: GroupTrace, step: TracedStep) -> bool:
    """Was the request refused, or did it only read?

    A join or sync that failed because of a write does not count: it may have started a join phase.
    """
    if not isinstance(step.event, By):
        return False
    exchange = group.trace.request(step.index)
    error = error_of(exchange)
    match exchange.request:
        case messages.Describe() | messages.ListGroups() | messages.Fetch():
            return True
        case messages.Leave():
            left = exchange.answer
            each = [error for _, _, error in left.members] if isinstance(left, messages.Left) else []
            return error not in (None, Error.NONE) or (bool(each) and Error.NONE not in each)
        case messages.Heartbeat() | messages.Commit():
            return error not in (None, Error.NONE)
        case messages.Join() | messages.Sync():
            return not exchange.parked and error in _OWN_FAULTS
    return False


@impact("A refused request of one member disturbs another one", "stuck group", "atomicity", "needless-move")
@of_errors("group/refused-disturbs-nobody", "grp-49", grade=Grade.SHOULD, after=("join",))
def refused_disturbs_no_member(history: History) -> Iterator[Violation]:
    """Refused requests of others do not disturb a member of a stable group."""
    group = group_trace(history)
    for each in group.served_requests:
        request = each.request
        if (
            not isinstance(request, messages.Heartbeat)
            or error_of(each) == Error.NONE
            or not group.names_own_instance(each)
        ):
            continue
        last = group.last_grant(request.member, request.generation, each.index)
        if last is None or last.by is None:
            continue
        between = list(group.between(last.by, each.index))
        if between and all(_is_refused(group, step) for step in between):
            refused = ", ".join(f"{type(_request(step)).__name__} at {at(step.index)}" for step in between)
            observed = "no answer" if each.answer is None else each.answer.error.name
            why = (
                f"{at(last.by)} granted {request.member} its {type(last.request).__name__}, every request since then"
                f" was refused ({refused}), and {at(each.index)} answers its heartbeat with {observed}"
            )
            steps = (last.index, *(step.index for step in between), each.index)
            yield breach(why, steps, "NONE", observed, "heartbeat", "disturbed")


# Moves


@impact(
    "A group changes when its coordinator moves",
    "double processing",
    "durability",
    "needless-move",
    "double-processing",
    links=("KAFKA-10284",),
)
@of_records(
    "group/outlives-moves", "grp-45", grade=Grade.SHOULD, needs=steps_of("join", "sync", "heartbeat"), after=("join",)
)
def outlives_moves(history: History) -> Iterator[Violation]:
    """A stable or empty group is unchanged after a move."""
    group = group_trace(history)
    for before, after, between in _pairs(group):
        moved = [each for each in between if isinstance(each.event, messages.Unload)]
        if not moved or not all(
            isinstance(each.event, messages.Unload | messages.Load | messages.Loaded) for each in between
        ):
            continue
        if before.state not in ("", messages.Phase.STABLE.called) or before[1:] == after[1:]:
            continue
        why = (
            f"{at(before.exchange.index)} describes the group as {before}, it moved at {at(moved[0].index)}, and"
            f" {at(after.exchange.index)} describes it as {after}"
        )
        yield breach(why, (before.exchange.index, moved[0].index, after.exchange.index), str(before), str(after),
                     "group", "changed by a move", before.unlike(after))  # fmt: skip


@impact(
    "A group rebalances because its coordinator moved", "stuck group", "durability", "needless-move", "unread-partition"
)
@of_records("group/goes-on-after-moves", "grp-45", grade=Grade.SHOULD, needs=steps_of("join", "sync", "heartbeat"))
def goes_on_after_moves(history: History) -> Iterator[Violation]:
    """After a move a member of a stable group continues in the same generation, with the same assignment."""
    group = group_trace(history)
    for each in group.served_requests:
        request = each.request
        if not isinstance(request, messages.Heartbeat | messages.Sync) or not request.member:
            continue
        last = group.last_grant(request.member, request.generation, each.index)
        if last is None or not _only_moved(group, last, each):
            continue
        handed = (g for g in reversed(group.sync_results) if g.request.member == request.member)
        given = next((g for g in handed if g.by <= (last.by or 0)), None)
        if given is None or not _repeats(request, given.request):
            continue
        error = error_of(each)
        if error != Error.NONE:
            observed = "no answer" if error is None else error.name
            shape = "forgotten"
        elif isinstance(each.answer, messages.Synced) and each.answer.assignment != given.answer.assignment:
            observed, shape = f"the assignment {each.answer.assignment!r}", "another assignment"
        else:
            continue
        kind = type(request).__name__
        why = (
            f"{at(given.by)} handed {request.member} {given.answer.assignment!r} in generation {request.generation},"
            f" the group moved, and {at(each.index)} answers its {kind} with {observed}"
        )
        wanted = "NONE" if isinstance(request, messages.Heartbeat) else repr(given.answer.assignment)
        yield breach(why, (given.by, last.index, each.index), wanted, observed, kind, shape)


def _repeats(now: messages.Heartbeat | messages.Sync, then: messages.Sync) -> bool:
    """Does the request name the same instance and protocol as the SyncGroup, as far as it names them?"""
    returned = [(now.instance, then.instance)]
    if isinstance(now, messages.Sync):
        returned += [(now.protocol_type, then.protocol_type), (now.protocol, then.protocol)]
    return all(sent is None or sent == before for sent, before in returned)


def _only_moved(group: GroupTrace, last: TracedRequest, now: TracedRequest) -> bool:
    """Was there a move between the two requests, and otherwise only steps that change nothing?"""
    moved = False
    for each in group.between(last.by if last.by is not None else last.index, now.index):
        match each.event:
            case messages.Unload():
                moved = True
            case messages.Load() | messages.Loaded():
                pass
            case By(request=messages.Describe() | messages.ListGroups() | messages.Fetch() | messages.Heartbeat()):
                pass
            case _:
                return False
    return moved


# Offsets


@impact("Committed offsets are lost or changed", "double processing", "durability", "lost-offsets")
@of_records("group/commits-kept", "grp-38", "grp-45", "grp-49", needs=steps_of("commit", "fetch"), after=("commit",))
def commits_kept(history: History) -> Iterator[Violation]:
    """OffsetFetch returns the last accepted offset of each partition, and no other."""
    group = group_trace(history)
    kept: dict[bool, dict[tuple[str, int], tuple[int, int]]] = {False: {}, True: {}}
    for each in group.trace.asked:
        if each.at_ms >= KEPT_MS:
            return
        accepted = kept[each.nameless]
        if isinstance(each.request, messages.Delete) and error_of(each) == Error.NONE:
            accepted.clear()
        if isinstance(each.request, messages.Commit) and error_of(each) == Error.NONE:
            accepted.update(
                {(topic, number): (offset, each.index) for topic, number, offset, *_ in each.request.offsets}
            )
        served = each.nameless or each in group.served_requests
        if not isinstance(each.answer, messages.Fetched) or error_of(each) != Error.NONE or not served:
            continue
        returned = {(topic, number): offset for topic, number, offset, *_ in each.answer.offsets}
        for topic, number in sorted(accepted.keys() | returned.keys()):
            wanted, got = accepted.get((topic, number)), returned.get((topic, number))
            if wanted is None:
                why = f"no offset was accepted for {topic}-{number}, and {at(each.index)} returns offset {got}"
                yield breach(why, (each.index,), "no offset", f"offset {got}", "offset", "from nowhere")
            elif got != wanted[0]:
                observed = "none" if got is None else f"offset {got}"
                first = f"{at(wanted[1])} accepted offset {wanted[0]} for {topic}-{number}"
                why = f"{first}, and {at(each.index)} returns {observed}"
                shape = "lost" if got is None else "other"
                yield breach(why, (wanted[1], each.index), f"offset {wanted[0]}", observed, "offset", shape)


@impact("What was committed with an offset is lost or changed", "double processing", "durability", "lost-offsets",
        links=("KIP-320",))  # fmt: skip
@of_records("group/commits-kept-whole", "grp-360", needs=steps_of("commit", "fetch"), after=("commit",))
def commits_kept_whole(history: History) -> Iterator[Violation]:
    """OffsetFetch returns the leader epoch and the metadata of the last accepted commit of each partition.

    Leader epochs are in OffsetCommit since version 6, and in OffsetFetch since version 5.
    """
    group = group_trace(history)
    kept: dict[bool, dict[tuple[str, int], tuple[Offset, int]]] = {False: {}, True: {}}
    for each in group.trace.asked:
        if each.at_ms >= KEPT_MS:
            return
        accepted = kept[each.nameless]
        if isinstance(each.request, messages.Commit):
            if error_of(each) == Error.NONE:
                accepted.update({row[:2]: (as_of(row, each.request), each.index) for row in each.request.offsets})
            elif error_of(each) not in _OWN_FAULTS:
                accepted.clear()  # it may have been written nevertheless
        if not isinstance(each.request, messages.Fetch) or not isinstance(each.answer, messages.Fetched):
            continue
        for row in each.answer.offsets:
            wanted, at_step = accepted.get(row[:2], (None, 0))
            if wanted is None or wanted[2] != row[2]:
                continue  # another offset is a matter of commits-kept
            for name, sent, got in zip(_WHOLE, as_of(wanted, each.request)[3:], row[3:], strict=True):
                if sent != got:
                    place = f"{row[0]}-{row[1]} with {name} {sent!r}"
                    why = f"{at(at_step)} commits {place}, and {at(each.index)} returns {got!r}"
                    shape = "none" if got in NO_MORE else "other"
                    yield breach(why, (at_step, each.index), f"{name} {sent!r}", repr(got), name, shape)


# Writes that failed


@impact(
    "A commit or an assignment is reported although it was not stored",
    "double processing",
    "durability",
    "double-processing",
    "lost-offsets",
)
@of_records("group/failed-writes-count-nothing", "grp-46", grade=Grade.SHOULD, needs=steps_of("sync", "commit"))
def failed_writes_count_nothing(history: History) -> Iterator[Violation]:
    """If a write fails, neither the commit is granted nor the leader's assignment handed out to any member."""
    group = group_trace(history)
    for step in group.trace.steps:
        if not isinstance(step.event, FailWrite):
            continue
        exchange = _next_write(group, step)
        if exchange is None:
            continue
        error = step.event.error.name
        if error_of(exchange) == Error.NONE:
            kind = type(exchange.request).__name__
            why = (
                f"{at(step.index)} makes the next write fail, and {at(exchange.index)} grants the {kind} that needs it"
            )
            yield breach(why, (step.index, exchange.index), error, "NONE", kind, "not written")
        if not isinstance(exchange.request, messages.Sync) or error_of(exchange) in _OWN_FAULTS:
            continue
        for given in group.sync_results:
            if (
                given.by >= exchange.index
                and given.exchange.index != exchange.index
                and given.request.generation == exchange.request.generation
                and group.incarnation(given.by) == group.incarnation(exchange.index)
            ):
                why = (
                    f"the assignment of {at(exchange.index)} could not be written, and {at(given.by)} hands"
                    f" {given.request.member} {given.answer.assignment!r} in generation {given.request.generation}"
                )
                yield breach(why, (step.index, exchange.index, given.by), "an error, and another join phase",
                             f"{given.answer.assignment!r}", "assignment", "not written")  # fmt: skip
                return


def _next_write(group: GroupTrace, failing: TracedStep) -> TracedRequest | None:
    """The next request that has to write: a commit, or the leader's SyncGroup that sets the assignment."""
    for each in group.trace.steps:
        if each.index <= failing.index:
            continue
        if not isinstance(each.event, By):
            return None
        exchange = group.trace.request(each.index)
        match exchange.request:
            case messages.Describe() | messages.ListGroups() | messages.Fetch() | messages.Heartbeat():
                continue
            case messages.Commit(offsets=offsets) if offsets and exchange in group.served_requests:
                # A commit without offsets, or one that is refused anyway, needs no write.
                return exchange
            case messages.Sync(generation=generation, member=member) if exchange in group.served_requests:
                known = (
                    group.current(exchange.index)[0] == generation
                    and group.leader(generation, exchange.index) == member
                )
                set_before = group.was_assigned_before(generation, exchange.index)
                return exchange if known and not set_before else None
        return None
    return None
