"""Invariants of a classic group coordinator's timing: parked requests, join phases and session timeouts."""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.values.history import History, Refused, Replied, Unsupported
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, steps_of
from kipcheck.conformance.protocols.group.invariants import REBALANCES, REMOVALS, group_invariant, view as group_view
from kipcheck.conformance.protocols.group.invariants.observer import longest_wait_ms
from kipcheck.conformance.protocols.group.invariants.requests import (
    at,
    breach,
    error_of,
    granted,
    in_force,
    instances,
    named,
)
from kipcheck.conformance.protocols.group.model.messages import Error, Heartbeat, Join, Leave, ListGroups, Sync
from kipcheck.conformance.protocols.group.ops import ANSWERS
from kipcheck.conformance.protocols.group.trace import TracedRequest

PLACE = 20

of_parked = partial(group_invariant, checks=("group/parked",))
of_removals = partial(group_invariant, checks=(REMOVALS,))

NOT_LET_IN = (
    Error.UNSUPPORTED_VERSION, Error.INVALID_SESSION_TIMEOUT, Error.UNKNOWN_MEMBER_ID,
    Error.INCONSISTENT_GROUP_PROTOCOL, Error.MEMBER_ID_REQUIRED, Error.GROUP_MAX_SIZE_REACHED,
)  # fmt: skip
"""After another error the member may be in the group nevertheless: a write has failed."""

# Answers


@impact("A request is answered twice, or with another kind of answer", "wrong data", "waiting", "wrong-data")
@of_parked("group/answered-once", "grp-50")
def answered_once(history: History) -> Iterator[Violation]:
    """Every request gets at most one answer, of its own kind, and every answer belongs to a request."""
    group = group_view.group_trace(history)
    exchange = {each.index: each for each in group.trace.asked}
    other_kind = False
    for by, reply in group.trace.strays:
        first, observed = exchange.get(reply.to), type(reply).__name__
        if first is None:
            why = f"{at(by)} answers {at(reply.to)}, which is no request"
            yield breach(why, (by,), "an answer to a request", observed, "answer", "to nobody")
        elif first.by is not None:
            why = f"{at(first.by)} answered {at(reply.to)}, and {at(by)} answers it again"
            yield breach(why, (reply.to, first.by, by), "one answer", observed, "answer", "again")
        else:
            kind, other_kind = ANSWERS[type(first.request)].__name__, True
            why = f"{at(reply.to)} sent {type(first.request).__name__}, and {at(by)} answers it with {observed}"
            yield breach(why, (reply.to, by), kind, observed, "answer", "of another kind")
    answered = group.end.index + 1 if group.end is not None else 0
    unanswered = (op for op in history.ops[answered:] if not isinstance(op.observation, Unsupported))
    op = None if group.trace.whole or other_kind else next(unanswered, None)
    if op is not None and isinstance(op.observation, Replied | Refused):
        observed = f"refused: {op.observation.error}" if isinstance(op.observation, Refused) else "no list of answers"
        why = f"{at(op.index)} is the next step of the conversation, and its result is {observed}"
        yield breach(why, (op.index,), "answers", observed, "answer", "none of the protocol")


@impact("A request that must not wait is not answered at once", "stuck group", "waiting", "stuck-group")
@of_parked("group/answers-at-once", "grp-56", grade=Grade.SHOULD)
def answers_at_once(history: History) -> Iterator[Violation]:
    """Only JoinGroup and SyncGroup are parked; every other request is answered at once."""
    group = group_view.group_trace(history)
    for each in group.trace.asked:
        if each.parked and not isinstance(each.request, Join | Sync):
            kind = type(each.request).__name__
            why = f"{at(each.index)} sent {kind}, which is never parked, and had no answer at the end of the step"
            yield breach(why, (each.index,), "an answer at once", "none", kind, "parked")


@impact(
    "A waiting request is never answered", "stuck group", "waiting", "stuck-group", links=("KAFKA-9752", "KAFKA-12890")
)
@of_parked("group/parked-answered", "grp-07", "grp-41", needs=steps_of("join", "sync"))
def parked_answered(history: History) -> Iterator[Violation]:
    """A parked JoinGroup is answered within the join phase, a parked SyncGroup before its leader's session ends."""
    group = group_view.group_trace(history)
    for each in group.served_requests:
        if not each.parked or group_view.superseded_by(group, each) is not None:
            continue
        if isinstance(each.request, Join):
            yield from _too_late(history, each, each.at_ms, "the join phase")
        elif isinstance(each.request, Sync):
            yield from _waits_for_leader(group, each)


@impact(
    "Members wait without end for the assignment of their leader",
    "stuck group",
    "waiting",
    "stuck-group",
    links=("KAFKA-12890",),
)
@of_parked("group/assignments-in-time", "grp-44", grade=Grade.SHOULD, needs=steps_of("sync"), after=("join",))
def assignments_in_time(history: History) -> Iterator[Violation]:
    """A parked SyncGroup is answered within the largest rebalance timeout, also if the leader only sends heartbeats."""
    group = group_view.group_trace(history)
    for each in group.served_requests:
        if not each.parked or not isinstance(each.request, Sync) or group_view.superseded_by(group, each) is not None:
            continue
        later = (step.index for step in group.trace.steps if step.index >= each.index)
        if not any(group.dropped(each, index) for index in later):
            first = group.first_join_result(each.request.generation, group.incarnation(each.index))
            formed_ms = None if first is None else first.exchange.to_ms
            since = each.at_ms if formed_ms is None else formed_ms
            yield from _too_late(history, each, since, "the time for the assignment")
    yield from _never_synced(history)


def _never_synced(history: History) -> Iterator[Violation]:
    """Granted requests of members that should have been removed, since they have sent no SyncGroup in time."""
    group = group_view.group_trace(history)
    synced: set[tuple[str, int]] = set()
    for each in group.served_requests:
        request = each.request
        if not isinstance(request, Heartbeat | Sync):
            continue  # An OffsetCommit is granted in the next join phase too, which may have begun before.
        person = group.identity(request.member), request.generation
        formed = group.first_join_result(request.generation, group.incarnation(each.index))
        late = formed is not None and formed.exchange.parked and person not in synced
        if formed is not None and not _was_in(group, formed, request.member):
            continue  # It took over the instance id of a member since, and no time is set for it.
        is_granted = error_of(each) == Error.NONE or (each.parked and isinstance(request, Sync))
        if is_granted and late and formed is not None and formed.exchange.to_ms is not None:
            lasted, most = each.at_ms - formed.exchange.to_ms, longest_wait_ms(history, formed.by, each.index)
            if lasted >= most:
                kind = type(request).__name__
                why = (
                    f"{at(formed.by)} formed generation {request.generation}, {request.member} sent no SyncGroup for"
                    f" {lasted} ms, the time for that ends after {most} ms, and {at(each.index)} grants its {kind}"
                )
                yield breach(why, (formed.by, each.index), "UNKNOWN_MEMBER_ID", "NONE", kind, "no SyncGroup")
        if is_granted and isinstance(request, Sync):
            synced.add(person)


def _was_in(group: group_view.GroupTrace, formed: group_view.JoinResult, member: str) -> bool:
    """Whether the end of the join phase gave the member the generation."""
    return any(each.by == formed.by and each.answer.member == member for each in group.join_results)


def _too_late(history: History, parked: TracedRequest, since: int, what: str) -> Iterator[Violation]:
    for step in group_view.group_trace(history).trace.steps:
        if step.index <= parked.index or (parked.by is not None and step.index >= parked.by):
            continue
        if group_view.group_trace(history).dropped(parked, step.index):
            return  # ``group/removed-let-go`` judges it
        most, waited = longest_wait_ms(history, parked.index, step.index), step.to_ms - since
        if waited >= most:
            yield _unanswered(parked, step.index, waited, f"{what} ends after {most} ms", what)
            return


@impact("A member that left waits without end for an answer", "stuck group", "waiting", "stuck-group")
@of_removals("group/removed-let-go", "grp-07", needs=steps_of("join", "sync"), after=("join",))
def removed_let_go(history: History) -> Iterator[Violation]:
    """A parked JoinGroup or SyncGroup of a member that leaves is answered: it is no longer waited for."""
    group = group_view.group_trace(history)
    for each in group.served_requests:
        asked = isinstance(each.request, Join | Sync)
        if not each.parked or not asked or group_view.superseded_by(group, each) is not None:
            continue
        for step in group.trace.steps:
            late = step.index > each.index and (each.by is None or step.index < each.by)
            if late and group.dropped(each, step.index):
                waited = step.to_ms - each.at_ms
                yield _unanswered(each, step.index, waited, "its member has left the group", "its member left")
                break


def _waits_for_leader(group: group_view.GroupTrace, parked: TracedRequest) -> Iterator[Violation]:
    """A leader that falls silent is removed when its session ends, and its members have to join again."""
    assert isinstance(parked.request, Sync)
    leader = group.leader(parked.request.generation, parked.index)
    join = group.joined(leader, parked.index) if leader is not None else None
    if leader is None or join is None:
        return
    for step in group.trace.steps:
        if step.index <= parked.index or (parked.by is not None and step.index >= parked.by):
            continue
        if group.dropped(parked, step.index):
            return
        silent = step.to_ms - max(parked.at_ms, group.last_sign_of(leader, step.index))
        if silent >= group.longest_session_ms(leader, step.index):
            bound = f"the leader {leader} was silent for {silent} ms, and its session timeout is {join.session_ms} ms"
            yield _unanswered(parked, step.index, step.to_ms - parked.at_ms, bound, "the leader is silent")
            return


def _unanswered(parked: TracedRequest, index: int, waited: int, bound: str, cause: str) -> Violation:
    kind = type(parked.request).__name__
    why = f"the {kind} of {at(parked.index)} is parked, {bound}, and at the end of {at(index)} it waited {waited} ms"
    return breach(why, (parked.index, index), "an answer", "none", kind, "left waiting", cause)


@impact(
    "A request that was replaced is answered unexpectedly, or never",
    "stuck group",
    "waiting",
    "stuck-group",
    links=("KAFKA-20938",),
)
@of_removals("group/superseded-let-go", "grp-07", needs=steps_of("join", "sync"))
def superseded_let_go(history: History) -> Iterator[Violation]:
    """A parked request that a newer one of its member replaces is answered, with NOT_COORDINATOR."""
    group = group_view.group_trace(history)
    for each in group.served_requests:
        newer = group_view.superseded_by(group, each) if each.parked and isinstance(each.request, Join | Sync) else None
        if newer is None:
            continue
        kind, member = type(each.request).__name__, ", ".join(named(each))
        why = f"{at(each.index)} parked the {kind} of {member}, {at(newer.index)} replaced it"
        error = error_of(each)
        steps: tuple[int, ...]
        if error is None:
            steps, observed = (each.index, newer.index), "and the old one has no answer"
        elif error is not None and error != Error.NOT_COORDINATOR and each.by is not None:
            steps, observed = (each.index, newer.index, each.by), f"and {at(each.by)} answers the old one {error.name}"
        else:
            continue
        got = error_name(each)
        yield breach(f"{why}, {observed}", steps, "NOT_COORDINATOR", got, kind, "replaced", got)


@impact(
    "Requests stay unanswered, or are granted, while the group moves",
    "stuck group",
    "waiting",
    "stuck-group",
    "lost-offsets",
)
@of_removals("group/unload-answers-all", "grp-47", "grp-07")
def unload_answers_all(history: History) -> Iterator[Violation]:
    """When the group moves away parked requests get NOT_COORDINATOR, and no request is granted until it is loaded."""
    group = group_view.group_trace(history)
    for step in group.trace.steps:
        if step.index not in group.moves:
            continue
        for each in group.served_requests:
            if each.index < step.index and (each.by is None or each.by >= step.index):
                if group_view.superseded_by(group, each) is not None or not isinstance(each.request, Join | Sync):
                    continue
                if isinstance(each.request, Sync) and group.dropped(each, step.index):
                    continue
                error = error_of(each) if each.by == step.index else None
                if error != Error.NOT_COORDINATOR:
                    observed = "no answer" if error is None else error.name
                    kind = type(each.request).__name__
                    why = (
                        f"{at(each.index)} parked a {kind}, the group moved at {at(step.index)}, and it got {observed}"
                    )
                    yield breach(why, (each.index, step.index), "NOT_COORDINATOR", observed, kind, "at the move")
    for each in group.trace.asked:
        where = group.locations[each.index]
        if where is group_view.Location.HERE or not granted(each) or each.by != each.index:
            continue
        if each.nameless or isinstance(each.request, ListGroups):
            continue
        if where is group_view.Location.LOADING and isinstance(each.request, Heartbeat):
            continue
        kind = type(each.request).__name__
        why = f"the group is {where.value} at {at(each.index)}, and the {kind} is granted nevertheless"
        yield breach(why, (each.index,), "an error", "NONE", kind, where.value)


# Time


@impact("A rebalance does not end in time", "stuck group", "waiting", "stuck-group", links=("KAFKA-7610", "KAFKA-9752"))
@group_invariant("group/join-phase-ends", "grp-41", checks=(REBALANCES,), needs=steps_of("join"))
def join_phase_ends(history: History) -> Iterator[Violation]:
    """A join phase ends within the largest rebalance timeout, and removes dynamic members that did not join in it."""
    group = group_view.group_trace(history)
    yield from _absent(group)
    since: dict[tuple[str, int, int], TracedRequest] = {}
    for each in group.served_requests:
        request = each.request
        if not isinstance(request, Heartbeat) or error_of(each) != Error.REBALANCE_IN_PROGRESS:
            continue
        if group.identity(request.member) != request.member:
            continue  # a static member stays in the group
        if not group.was_assigned_before(request.generation, each.index):
            continue  # the assignment may be pending
        first = since.setdefault((request.member, request.generation, group.incarnation(each.index)), each)
        lasted, bound = each.at_ms - first.at_ms, group.largest_wait_ms(each.index)
        if lasted >= bound:
            why = (
                f"{at(first.index)} answered {request.member} in generation {request.generation} that a rebalance is"
                f" in progress, {at(each.index)} still does {lasted} ms later, and a join phase ends after {bound} ms"
            )
            yield breach(why, (first.index, each.index), "the next generation, or no member any more",
                         "REBALANCE_IN_PROGRESS", "join phase", "goes on")  # fmt: skip


def _absent(group: group_view.GroupTrace) -> Iterator[Violation]:
    """Dynamic members in a list that have not joined since the previous generation was answered."""
    for result in group.join_results:
        before = [each for each in group.join_results if each.by < result.by and each.generation < result.generation]
        if not result.answer.members or not before:
            continue
        former = max(before, key=lambda each: (each.generation, -each.by))
        for id, instance, _ in result.answer.members:
            joining = group.joining(id, result.by)
            if instance is not None or group.identity(id) != id or joining is None:
                continue
            if joining.index <= former.by:
                why = (
                    f"{at(former.by)} gave generation {former.generation}, {id} has not joined again since"
                    f" {at(joining.index)}, and {at(result.by)} lists it in generation {result.generation}"
                )
                steps = (joining.index, former.by, result.by)
                yield breach(why, steps, "members that joined again", id, "join phase", "absent")


@impact("A new group rebalances once for each member", "trivia", "gating", "needless-move", links=("KIP-134",))
@group_invariant(
    "group/initial-delay", "grp-42", checks=("group/generations",), needs=steps_of("join"), after=("join",)
)
def initial_delay(history: History) -> Iterator[Violation]:
    """The first join phase of a group waits for more members."""
    group = group_view.group_trace(history)
    results = [each for each in group.join_results if not each.exchange.nameless]
    if not in_force("grp-42", group.edition) or not results:
        return
    result = results[0]
    begun = next(  # a parked JoinGroup began it, whatever error it gets when its member leaves
        (
            each for each in group.served_requests
            if isinstance(each.request, Join) and (each.parked or error_of(each) not in NOT_LET_IN)
        ),
        result.exchange,
    )  # fmt: skip
    assert result.exchange.to_ms is not None
    waited = result.exchange.to_ms - begun.at_ms
    delay_ms = group.settings.initial_delay_ms
    if waited < delay_ms:
        member_name = result.answer.member or result.exchange.actor
        why = (
            f"the first member joined at {at(begun.index)}, and {at(result.by)} gives {member_name} generation"
            f" {result.generation} after {waited} ms"
        )
        steps = (begun.index, result.by)
        yield breach(why, steps, f"{delay_ms} ms for others to join", f"{waited} ms", "initial delay", "short")


@impact("A silent member keeps its partitions", "stuck group", "waiting", "unread-partition")
@of_removals("group/sessions-end", "grp-40", "grp-49", needs=steps_of("join", "heartbeat"), after=("join",))
def sessions_end(history: History) -> Iterator[Violation]:
    """A member without an accepted request for its session timeout is removed."""
    group = group_view.group_trace(history)
    for each in group.served_requests:
        request = each.request
        if not isinstance(request, Heartbeat | Sync) or not request.member or each.by is None:
            continue
        if error_of(each) not in (Error.NONE, Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION):
            continue
        if group.joined(request.member, each.index) is None or group.has_parked_request(request.member, each.index):
            continue
        last = group.last_sign_of(request.member, each.index)
        session = group.longest_session_ms(request.member, each.index)
        silent = each.at_ms - last
        if silent >= session:
            why = (
                f"no request of {request.member} was accepted for {silent} ms, its session timeout is {session} ms,"
                f" and {at(each.by)} still knows it"
            )
            yield breach(why, (each.index, each.by), "UNKNOWN_MEMBER_ID", error_name(each), "session", "too long")


@impact("A member is removed although it sends heartbeats", "stuck group", "waiting", "needless-move")
@of_removals("group/sessions-kept", "grp-40", "grp-41", needs=steps_of("heartbeat"), after=("join",))
def sessions_kept(history: History) -> Iterator[Violation]:
    """A member of a stable group that heartbeats within its session timeout stays a member."""
    group = group_view.group_trace(history)
    for each in group.served_requests:
        request = each.request
        if not isinstance(request, Heartbeat) or error_of(each) != Error.UNKNOWN_MEMBER_ID:
            continue
        if not group.names_own_instance(each):
            continue
        last = group.last_grant(request.member, request.generation, each.index)
        if last is None or last.by is None or last.to_ms is None or _may_be_removed(group, request.member, last, each):
            continue
        if isinstance(last.request, Sync) and group.was_assigned_before(request.generation, last.by):
            continue  # no document says that a repeated SyncGroup extends the session
        silent = each.at_ms - last.to_ms
        least_ms = group.shortest_wait_ms(request.member, each.index)
        if silent < least_ms:
            why = (
                f"{at(last.by)} granted {request.member} its {type(last.request).__name__} in generation"
                f" {request.generation}, no LeaveGroup followed, and {at(each.index)}, {silent} ms later, does not"
                f" know it; its session and rebalance timeouts are {least_ms} ms or more"
            )
            yield breach(why, (last.by, each.index), "NONE or REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID",
                         "session", "too short")  # fmt: skip


def _may_be_removed(group: group_view.GroupTrace, member: str, last: TracedRequest, now: TracedRequest) -> bool:
    """May the member have left, been replaced or been lost in a move since then?"""
    if group.incarnation(last.index) != group.incarnation(now.index):
        return True
    instance = group.identity(member).removeprefix("instance ")
    for each in group.trace.asked:
        between = last.index < each.index < now.index and isinstance(each.request, Join | Leave)
        if between and (member in named(each) or instance in instances(each)):
            return True
    return False


def error_name(exchange: TracedRequest) -> str:
    error = error_of(exchange)
    return "none" if error is None else error.name
