"""Invariants of a classic group coordinator's ids: member ids are unique, and only the newest one of a static member
is valid."""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact, steps_of
from kipcheck.conformance.protocols.group.invariants import group_invariant
from kipcheck.conformance.protocols.group.invariants.requests import at, breach, error_of, granted, in_force, named
from kipcheck.conformance.protocols.group.invariants.view import GroupTrace, JoinResult, group_trace
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.trace import TracedRequest

PLACE = 30

of_static = partial(group_invariant, checks=("group/static",))


@impact(
    "Two members get the same id, or a member loses its own",
    "double processing",
    "identity",
    "double-processing",
    links=("KAFKA-8715",),
)
@of_static("group/fresh-ids", "grp-33", needs=steps_of("join"))
def fresh_ids(history: History) -> Iterator[Violation]:
    """A member that joins without an id gets an unused one, and a member that joins with an id keeps it."""
    group = group_trace(history)
    had: dict[str, TracedRequest] = {}
    answers = [
        each
        for each in group.trace.asked
        if isinstance(each.request, messages.Join) and isinstance(each.answer, messages.Joined)
    ]
    for each in sorted(answers, key=lambda exchange: (exchange.by or 0, exchange.index)):
        assert (
            isinstance(each.request, messages.Join) and isinstance(each.answer, messages.Joined) and each.by is not None
        )
        if each.answer.error not in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            continue
        sent, result = each.request.member, each.answer.member
        if sent and result != sent:
            why = f"{each.actor} joined as {sent} at {at(each.index)}, and {at(each.by)} answers with the id {result!r}"
            yield breach(why, (each.index, each.by), sent, result or "no id", "id", "changes")
        elif not result:
            why = f"{each.actor} joined without an id at {at(each.index)}, and {at(each.by)} gives it none"
            yield breach(why, (each.index, each.by), "a member id", "none", "id", "missing")
        elif not sent and result in had:
            first = had[result]
            why = f"{at(first.by or 0)} gave {first.actor} the id {result}, and {at(each.by)} gives it to {each.actor}"
            steps = (first.index, first.by or 0, each.index, each.by)
            yield breach(why, steps, "an id of its own", result, "id", "taken")
        had.setdefault(result, each)


@impact(
    "Members join without an id of their own", "stuck group", "identity", "stuck-group", "memory", links=("KIP-394",)
)
@of_static("group/ids-before-members", "grp-33", needs=steps_of("join"))
def ids_before_members(history: History) -> Iterator[Violation]:
    """From JoinGroup version 4 on a dynamic member joins only with an id that it was given."""
    group = group_trace(history)
    for each in group.served_requests:
        request = each.request
        if (
            not isinstance(request, messages.Join)
            or request.member
            or request.instance is not None
            or request.version < 4
        ):
            continue
        if each.parked or error_of(each) == Error.NONE:
            observed = "parked" if each.parked else "granted"
            why = f"the JoinGroup of {at(each.index)}, of version {request.version}, has no id, and is {observed}"
            yield breach(why, (each.index,), "MEMBER_ID_REQUIRED", observed, "id", "not asked for")


@impact("A group grows beyond its limit", "crash or hang", "guards", "memory", links=("KIP-389", "KAFKA-9885"))
@group_invariant("group/size-limit", "grp-43", checks=("group/errors",), needs=steps_of("join"), after=("join",))
def size_limit(history: History) -> Iterator[Violation]:
    """The group never has more members than group.max.size."""
    group = group_trace(history)
    max_size = group.settings.max_size
    for result in group.join_results if in_force("grp-43", group.edition) else ():
        # Static members that did not rejoin stay in the list, and are not counted.
        here = {each.answer.member for each in group.join_results if each.by == result.by}
        ids = [id for id, *_ in result.answer.members if id in here or group.identity(id) == id]
        if len(ids) > max_size:
            why = f"group.max.size is {max_size}, and {at(result.by)} lists {len(ids)} members: {', '.join(ids)}"
            steps = (result.exchange.index, result.by)
            yield breach(why, steps, f"at most {max_size} members", f"{len(ids)} members", "members", "too many")


@impact(
    "Two members share an instance id",
    "double processing",
    "identity",
    "double-processing",
    links=("KIP-345", "KAFKA-8500"),
)
@of_static("group/one-id-per-instance", "grp-08", needs=steps_of("join"), after=("join",))
def one_id_per_instance(history: History) -> Iterator[Violation]:
    """No two members of a group have the same instance id."""
    for each in group_trace(history).trace.asked:
        if not isinstance(each.answer, messages.Joined | messages.Described) or each.by is None:
            continue
        holders: dict[str, str] = {}
        for id, instance, *_ in each.answer.members:
            if instance is not None and holders.setdefault(instance, id) != id:
                why = f"{at(each.by)} lists {holders[instance]} and {id}, both as instance {instance}"
                yield breach(why, (each.index, each.by), "one member", "two", "instance", "two ids")


@impact(
    "A request of a fenced static member succeeds",
    "double processing",
    "identity",
    "double-processing",
    "lost-offsets",
    links=("KIP-345", "KAFKA-10284"),
)
@of_static("group/fenced-never-wins", "grp-08", "grp-48", after=("join",))
def fenced_never_wins(history: History) -> Iterator[Violation]:
    """Once another member has the instance id, no request with the old member id succeeds."""
    group = group_trace(history)
    for result in group.join_results:
        exchange = result.exchange
        if (
            not isinstance(exchange.request, messages.Join)
            or exchange.request.instance is None
            or exchange.request.member
        ):
            continue
        instance, new = exchange.request.instance, result.answer.member
        old = {
            id for id, joins in group.joins.items()
            if id != new and group.identity(id) == f"instance {instance}" and joins[0].index < exchange.index
        }  # fmt: skip
        for each in group.served_requests:
            if each.index <= result.by or not old & named(each) or not _succeeds(each, old):
                continue
            if isinstance(each.request, messages.Commit) and each.request.generation < 0:
                continue  # a group without members accepts it from any client
            if not _is_logged(group, result, each):
                continue
            old_id, kind = min(old & named(each)), type(each.request).__name__
            why = (
                f"{at(result.by)} gave instance {instance} to {new}, and {at(each.by or each.index)} accepts the {kind}"
                f" of {old_id}, which had it before"
            )
            yield breach(why, (result.by, each.index), "FENCED_INSTANCE_ID", "NONE", kind, "fenced")


def _succeeds(exchange: TracedRequest, old: set[str]) -> bool:
    if (
        isinstance(exchange.request, messages.Leave)
        and isinstance(exchange.answer, messages.Left)
        and exchange.answer.members
    ):
        return any(id in old and error == Error.NONE for id, _, error in exchange.answer.members)
    return granted(exchange)


def _is_logged(group: GroupTrace, result: JoinResult, now: TracedRequest) -> bool:
    """If the group moved since: is the new id in the log? If it is not, the old one is valid again."""
    if group.incarnation(result.by) == group.incarnation(now.index):
        return True
    moved = next(each for each in group.memory_losses if each > result.by)
    if not result.exchange.parked:
        return group.was_assigned_before(result.generation, result.by)
    written = (each.request.generation for each in group.sync_results if result.by < each.by < moved)
    return any(each >= result.generation for each in written)


@impact("A fenced static member waits indefinitely", "stuck group", "identity", "stuck-group", links=("KIP-345",))
@of_static("group/fenced-let-go", "grp-08", "grp-48", needs=steps_of("join", "sync"))
def fenced_let_go(history: History) -> Iterator[Violation]:
    """When the new process of an instance joins, parked requests of the old one are answered FENCED_INSTANCE_ID."""
    group = group_trace(history)
    for new in group.served_requests:
        request = new.request
        if not isinstance(request, messages.Join) or request.instance is None or request.member:
            continue
        if not (new.parked or error_of(new) == Error.NONE):
            continue
        for old in group.served_requests:
            if old.index >= new.index or not isinstance(old.request, messages.Join | messages.Sync) or not old.parked:
                continue
            if old.request.instance != request.instance or (old.by is not None and old.by < new.index):
                continue
            error = error_of(old) if old.by == new.index else None
            gone = group.dropped(old, new.index - 1)
            if error != Error.FENCED_INSTANCE_ID and not gone and not _replaced(group, old, new):
                kind, observed = type(old.request).__name__, "no answer" if error is None else error.name
                why = (
                    f"{at(old.index)} parked the {kind} of instance {request.instance}, {at(new.index)} joins again as"
                    f" that instance, and the old process gets {observed}"
                )
                yield breach(why, (old.index, new.index), "FENCED_INSTANCE_ID", observed, kind, "not let go")


def _replaced(group: GroupTrace, old: TracedRequest, new: TracedRequest) -> bool:
    """Was the parked request replaced by a newer one of the same member before? Older releases drop it."""
    return any(
        old.index < each.index < new.index
        and type(each.request) is type(old.request)
        and bool(named(each) & named(old))
        for each in group.served_requests
    )
