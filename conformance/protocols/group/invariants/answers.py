"""Invariants of a classic group coordinator's answers: each request gets the answer that its requirement owes.

What is owed follows from what clients can know (``observer``), and not from the answers of a model. Where clients
cannot know the state of the group there is no verdict.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, steps_of
from kipcheck.conformance.protocols.declare.list_difference import list_difference
from kipcheck.conformance.protocols.group.invariants import ANSWERS, group_invariant
from kipcheck.conformance.protocols.group.invariants.known import KnownGroup
from kipcheck.conformance.protocols.group.invariants.observer import known_before
from kipcheck.conformance.protocols.group.invariants.requests import at, breach, error_of, metadata_of
from kipcheck.conformance.protocols.group.invariants.required_errors import OF_THE_LOG, Owed, leave_errors, owed
from kipcheck.conformance.protocols.group.invariants.view import GroupTrace, Location, group_trace
from kipcheck.conformance.protocols.group.model.answers import BATCH_SINCE, STATES_LISTED_SINCE
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.messages import (
    Commit,
    Delete,
    Describe,
    Described,
    Error,
    Fetch,
    Fetched,
    Heartbeat,
    Join,
    Leave,
    Left,
    Listed,
    ListGroups,
    Phase,
    Request,
    Sync,
)
from kipcheck.conformance.protocols.group.trace import TracedRequest

PLACE = 50

of_answers = partial(group_invariant, checks=(ANSWERS,))

PARKED = "parked"
LOST = {Location.GONE: Error.NOT_COORDINATOR, Location.LOADING: Error.COORDINATOR_LOAD_IN_PROGRESS}
"""The error of requests while the partition is not here."""


def answered(history: History, *kinds: type[Request]) -> Iterator[tuple[TracedRequest, KnownGroup, GroupTrace]]:
    """The requests of these kinds in versions of the edition, and what was known of the group before each."""
    group, known = group_trace(history), known_before(history)
    machine = coordinator(edition(group.edition))
    for each in group.trace.asked:
        supported = machine is None or machine.unsupported(each.request) is None
        if isinstance(each.request, kinds) and each.index in known and supported:
            yield each, known[each.index], group


def _wrong_errors(history: History, *kinds: type[Request]) -> Iterator[Violation]:
    for each, known, group in answered(history, *kinds):
        found = owed(each, known, group)
        error = error_of(each) if each.by == each.index else None
        if found is None or found.allows(error) or (error is None and not isinstance(each.request, Join | Sync)):
            continue  # ``group/answers-at-once`` judges other requests without an answer
        yield _wrong_error(each, found, error, known, group.locations[each.index])


def _wrong_error(
    each: TracedRequest, found: Owed, error: Error | None, known: KnownGroup, where: Location
) -> Violation:
    kind = type(each.request).__name__
    observed = PARKED if error is None else error.name
    how = "is parked" if error is None else f"is answered {observed}"
    instance = each.request.instance if isinstance(each.request, Join | Sync | Heartbeat | Commit) else None
    sender = kind if instance is None else f"{kind} with instance {instance}"
    why = f"{at(each.index)}, a {sender}, {how}; {_state(each, known, where)}, so {found} is owed"
    state = _state(each, known, where)
    return breach(why, (each.index,), str(found), observed, kind, state, found.first, observed)


def _state(each: TracedRequest, known: KnownGroup, where: Location) -> str:
    """What is known of the group, in words for a shape."""
    if each.nameless:
        return "the group id is empty"
    if where is not Location.HERE:
        return f"the group is {where.value}"
    join = each.request
    if isinstance(join, Join) and join.instance is not None and known.was_given_to_dynamic(join.member):
        return "an unused id has an instance id"
    if known.phase is None:
        return "the phase of the group is not known"
    if known.phase is Phase.EMPTY:
        return "the group has no members"
    return f"the group is in {known.phase.called}"


# Errors


@impact(
    "A JoinGroup request gets an unexpected answer", "stuck group", "error-codes", "stuck-group", links=("KAFKA-6005",)
)
@of_answers("group/answers-join", "grp-34", "grp-33", "grp-43", "grp-47", needs=steps_of("join"))
def answers_join(history: History) -> Iterator[Violation]:
    """A JoinGroup with a fault gets the error of that fault at once, and one without a fault gets no error."""
    yield from _wrong_errors(history, Join)


@impact("A SyncGroup request gets an unexpected answer", "stuck group", "error-codes", "stuck-group")
@of_answers("group/answers-sync", "grp-35", "grp-47", needs=steps_of("sync"))
def answers_sync(history: History) -> Iterator[Violation]:
    """A SyncGroup with a fault gets the error of that fault at once, and one without a fault gets no error."""
    yield from _wrong_errors(history, Sync)


@impact("A heartbeat gets an unexpected answer", "stuck group", "error-codes", "stuck-group", "needless-move")
@of_answers("group/answers-heartbeat", "grp-36", "grp-47", needs=steps_of("heartbeat"))
def answers_heartbeat(history: History) -> Iterator[Violation]:
    """A heartbeat gets the error of its fault or of the join phase, and no error otherwise."""
    yield from _wrong_errors(history, Heartbeat)


@impact(
    "Members join again although nothing requires it", "trivia", "error-codes", "needless-move", links=("KAFKA-10134",)
)
@group_invariant(
    "group/beats-before-assignment",
    "grp-51",
    checks=("group/errors",),
    grade=Grade.SHOULD,
    needs=steps_of("heartbeat"),
    after=("join",),
)
def beats_before_assignment(history: History) -> Iterator[Violation]:
    """A heartbeat while only the assignment is pending gets no error, since the member need not join again."""
    for each, known, group in answered(history, Heartbeat):
        if group.locations[each.index] is not Location.HERE or each.nameless or known.phase is not Phase.COMPLETING:
            continue
        found = owed(each, known, group)
        others = found is not None and found.possible - {Error.REBALANCE_IN_PROGRESS}
        if error_of(each) is Error.REBALANCE_IN_PROGRESS and found is not None and not found.certain and not others:
            why = f"the assignment is pending, no member has to join again, and {at(each.index)} is answered so"
            yield breach(why, (each.index,), "NONE", "REBALANCE_IN_PROGRESS", "Heartbeat", "the assignment is pending")


@impact(
    "A LeaveGroup request gets an unexpected answer", "stuck group", "error-codes", "stuck-group", links=("KIP-345",)
)
@of_answers("group/answers-leave", "grp-37", "grp-47", needs=steps_of("leave"))
def answers_leave(history: History) -> Iterator[Violation]:
    """LeaveGroup answers for each member whether it has left, and names the members as the request does."""
    for each, known, group in answered(history, Leave):
        where, answer = group.locations[each.index], each.answer
        if not isinstance(each.request, Leave) or not isinstance(answer, Left) or each.by != each.index:
            continue
        if each.nameless:
            top = Owed(frozenset({Error.INVALID_GROUP_ID}), frozenset())
        elif where is not Location.HERE:
            top = Owed(frozenset({LOST[where]}), frozenset())
        else:
            yield from _wrong_leave(each, each.request, answer, known)
            continue
        if not top.allows(answer.error):
            yield _wrong_error(each, top, answer.error, known, where)


def _wrong_leave(each: TracedRequest, leave: Leave, answer: Left, known: KnownGroup) -> Iterator[Violation]:
    failing = OF_THE_LOG if known.failing else frozenset[Error]()
    granted = frozenset(position for position, (*_, error) in enumerate(answer.members) if error is Error.NONE)
    found = leave_errors(leave.members, known, granted)
    internal = any(Error.UNKNOWN_SERVER_ERROR in one.possible for one in found)
    if leave.version < BATCH_SINCE:
        if not found[0].allows(answer.error) and answer.error not in failing:
            yield _wrong_error(each, found[0], answer.error, known, Location.HERE)
        return
    if answer.error is not Error.NONE:
        if answer.error not in failing and not (internal and answer.error is Error.UNKNOWN_SERVER_ERROR):
            yield _wrong_error(each, Owed(frozenset(), frozenset()), answer.error, known, Location.HERE)
        return
    named = [(id, instance) for id, instance, _ in answer.members]
    if named != [*leave.members]:
        why = f"{at(each.index)} names {list(leave.members)}, and is answered for {named}"
        yield breach(why, (each.index,), str([*leave.members]), str(named), "Leave", _unlike(leave.members, named))
        return
    for one, (id, instance, error) in zip(found, answer.members, strict=True):
        if not one.allows(error):
            who = " ".join(text for text in (id, f"instance {instance}" if instance is not None else "") if text)
            by = "by its instance id alone" if not id else "with an instance id" if instance is not None else "by id"
            why = f"at {at(each.index)} {who or 'a member without ids'} is answered {error.name}; {one} is owed"
            yield breach(why, (each.index,), str(one), error.name, "Leave", by, one.first, error.name)


def _unlike(wanted: Sequence[tuple[str, str | None]], named: Sequence[tuple[str, str | None]]) -> str:
    """How the ids and instance ids of an answer differ from those of its request."""
    shape = list_difference(wanted, named, "members")
    if shape == "members in another order":
        return "in another order"
    pairs = [*zip(wanted, named, strict=False)]
    for what, same in (("another id", 1), ("another instance", 0)):
        if len(wanted) == len(named) and all(one[same] == other[same] for one, other in pairs):
            return what
    return shape


@impact(
    "A request for offsets gets an unexpected answer",
    "double processing",
    "error-codes",
    "lost-offsets",
    links=("KAFKA-8487",),
)
@of_answers("group/answers-offsets", "grp-38", "grp-47", needs=steps_of("commit", "fetch"))
def answers_offsets(history: History) -> Iterator[Violation]:
    """An OffsetCommit with a fault gets the error of that fault; OffsetFetch returns each partition once."""
    yield from _wrong_errors(history, Commit, Fetch)
    for each, _, _ in answered(history, Fetch):
        if isinstance(each.answer, Fetched):
            names = [row[:2] for row in each.answer.offsets]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                why = f"{at(each.index)} returns {twice[0]}-{twice[1]} {names.count(twice)} times"
                yield breach(why, (each.index,), "each partition once", str(names.count(twice)), "Fetch", "repeats")


@impact(
    "A request to describe, list or delete groups gets an unexpected answer", "trivia", "error-codes", "misled-operator"
)
@of_answers("group/answers-groups", "grp-39", "grp-47", needs=steps_of("describe-group", "list-groups", "delete-group"))
def answers_groups(history: History) -> Iterator[Violation]:
    """DescribeGroups and ListGroups return the group as it is; DeleteGroups deletes only a group without members."""
    yield from _wrong_errors(history, Describe, ListGroups, Delete)
    for each, known, group in answered(history, Describe, ListGroups):
        if group.locations[each.index] is not Location.HERE or error_of(each) is not Error.NONE or each.nameless:
            continue
        if isinstance(each.answer, Described):
            yield from _wrong_description(each, each.answer, known)
        elif isinstance(each.answer, Listed):
            yield from _wrong_list(each, each.answer, known)


def _wrong_description(each: TracedRequest, answer: Described, known: KnownGroup) -> Iterator[Violation]:
    def wrong(what: str, wanted: str, got: str, shape: str = "") -> Violation:
        why = f"{at(each.index)} describes the group with {what} {got or 'none'}; it is {wanted}"
        return breach(why, (each.index,), wanted, got, "Describe", shape or what)

    names = {each.called for each in _states(known)}
    if names and answer.state not in names:
        yield wrong("state", " or ".join(sorted(names)), answer.state)
    ids = sorted(id for id, *_ in answer.members)
    if known.complete and not known.newcomers and ids != sorted(known.members):
        shape = list_difference(sorted(known.members), ids, "members")
        yield wrong("members", ", ".join(sorted(known.members)) or "empty", ", ".join(ids), shape)
    elif known.phase is Phase.STABLE and known.protocol is not None:
        for id, _, metadata, _ in answer.members:
            member = known.members.get(id)
            if member is not None and member.join is not None:
                sent = metadata_of(member.join, known.protocol)
                if metadata != sent:
                    yield wrong("metadata", repr(sent), repr(metadata))


def _states(known: KnownGroup) -> tuple[Phase, ...]:
    if known.phase is None:
        return ()
    return (Phase.EMPTY, Phase.DEAD) if known.phase is Phase.EMPTY else (known.phase,)


def _wrong_list(each: TracedRequest, answer: Listed, known: KnownGroup) -> Iterator[Violation]:
    count = len(answer.groups)
    wanted = "once" if known.exists else "not at all" if known.exists is False else "at most once"
    if count > 1 or (known.exists is not None and count != int(known.exists)):
        why = f"{at(each.index)} lists the group {count} times; it is owed {wanted}"
        yield breach(why, (each.index,), wanted, f"{count} times", "ListGroups", "repeats" if count > 1 else wanted)
        return
    assert isinstance(each.request, ListGroups)
    if count and each.request.version >= STATES_LISTED_SINCE and _states(known):
        state = answer.groups[0][1]
        names = {phase.called for phase in _states(known)}
        if state not in names:
            why = f"{at(each.index)} lists the group with state {state}; it is {' or '.join(sorted(names))}"
            yield breach(why, (each.index,), " or ".join(sorted(names)), state, "ListGroups", "state")
