"""Invariants of a classic group coordinator's ids: member ids are unique, and only the newest one of a static member
is valid."""

from collections.abc import Iterator

from kipcheck.conformance.apis.group_trace import Asked
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.group_requests import at, breach, error_of, granted, named
from kipcheck.conformance.invariants.group_view import MAX_SIZE, Reading, Told, reading
from kipcheck.conformance.invariants.registry import invariant
from kipcheck.conformance.models.group.messages import Described, Error, Join, Joined, Leave, Left, Sync


@invariant("group/fresh-ids", "grp-33", role=Role.COORDINATOR)
def fresh_ids(history: History) -> Iterator[Violation]:
    """A member that joins without an id gets an unused one, and a member that joins with an id keeps it."""
    talk = reading(history)
    had: dict[str, Asked] = {}
    answers = [each for each in talk.trace.asked if isinstance(each.request, Join) and isinstance(each.answer, Joined)]
    for each in sorted(answers, key=lambda asked: (asked.by or 0, asked.index)):
        assert isinstance(each.request, Join) and isinstance(each.answer, Joined) and each.by is not None
        if each.answer.error not in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            continue
        sent, told = each.request.member, each.answer.member
        if sent and told != sent:
            why = f"{each.actor} joined as {sent} at {at(each.index)}, and {at(each.by)} answers with the id {told!r}"
            yield breach(why, (each.index, each.by), sent, told or "no id", "id", "changes")
        elif not told:
            why = f"{each.actor} joined without an id at {at(each.index)}, and {at(each.by)} gives it none"
            yield breach(why, (each.index, each.by), "a member id", "none", "id", "missing")
        elif not sent and told in had:
            first = had[told]
            why = f"{at(first.by or 0)} gave {first.actor} the id {told}, and {at(each.by)} gives it to {each.actor}"
            steps = (first.index, first.by or 0, each.index, each.by)
            yield breach(why, steps, "an id of its own", told, "id", "taken")
        had.setdefault(told, each)


@invariant("group/ids-before-members", "grp-33", role=Role.COORDINATOR)
def ids_before_members(history: History) -> Iterator[Violation]:
    """From JoinGroup version 4 on a dynamic member joins only with an id that it was given."""
    talk = reading(history)
    for each in talk.served if talk.rules.ids_required else ():
        request = each.request
        if not isinstance(request, Join) or request.member or request.instance is not None or request.version < 4:
            continue
        if each.parked or error_of(each) == Error.NONE:
            seen = "parked" if each.parked else "granted"
            why = f"the JoinGroup of {at(each.index)}, of version {request.version}, has no id, and is {seen}"
            yield breach(why, (each.index,), "MEMBER_ID_REQUIRED", seen, "id", "not asked for")


@invariant("group/size-limit", "grp-43", role=Role.COORDINATOR)
def size_limit(history: History) -> Iterator[Violation]:
    """The group never has more members than group.max.size."""
    talk = reading(history)
    for told in talk.told if talk.rules.size_by_waiting else ():
        # Static members that did not rejoin stay in the list, and are not counted.
        here = {each.answer.member for each in talk.told if each.by == told.by}
        ids = [id for id, *_ in told.answer.members if id in here or talk.person(id) == id]
        if len(ids) > MAX_SIZE:
            why = f"group.max.size is {MAX_SIZE}, and {at(told.by)} lists {len(ids)} members: {', '.join(ids)}"
            steps = (told.asked.index, told.by)
            yield breach(why, steps, f"at most {MAX_SIZE} members", f"{len(ids)} members", "members", "too many")


@invariant("group/one-id-per-instance", "grp-08", role=Role.COORDINATOR)
def one_id_per_instance(history: History) -> Iterator[Violation]:
    """No two members of a group have the same instance id."""
    for each in reading(history).trace.asked:
        if not isinstance(each.answer, Joined | Described) or each.by is None:
            continue
        holders: dict[str, str] = {}
        for id, instance, *_ in each.answer.members:
            if instance is not None and holders.setdefault(instance, id) != id:
                why = f"{at(each.by)} lists {holders[instance]} and {id}, both as instance {instance}"
                yield breach(why, (each.index, each.by), "one member", "two", "instance", "two ids")


@invariant("group/fenced-never-wins", "grp-08", "grp-48", role=Role.COORDINATOR)
def fenced_never_wins(history: History) -> Iterator[Violation]:
    """Once another member has the instance id, no request with the old member id succeeds."""
    talk = reading(history)
    for told in talk.told:
        asked = told.asked
        if not isinstance(asked.request, Join) or asked.request.instance is None or asked.request.member:
            continue
        instance, new = asked.request.instance, told.answer.member
        old = {
            id for id, joins in talk.joins.items()
            if id != new and talk.person(id) == f"instance {instance}" and joins[0].index < asked.index
        }  # fmt: skip
        for each in talk.served:
            if each.index <= told.by or not old & named(each) or not _wins(each, old):
                continue
            if not _outlasts(talk, told, each):
                continue
            who, kind = min(old & named(each)), type(each.request).__name__
            why = (
                f"{at(told.by)} gave instance {instance} to {new}, and {at(each.by or each.index)} accepts the {kind}"
                f" of {who}, which had it before"
            )
            yield breach(why, (told.by, each.index), "FENCED_INSTANCE_ID", "NONE", kind, "fenced")


def _wins(asked: Asked, old: set[str]) -> bool:
    if isinstance(asked.request, Leave) and isinstance(asked.answer, Left) and asked.answer.members:
        return any(id in old and error == Error.NONE for id, _, error in asked.answer.members)
    return granted(asked)


def _outlasts(talk: Reading, told: Told, now: Asked) -> bool:
    """If the group moved since: is the new id in the log? If it is not, the old one is valid again."""
    if talk.reign(told.by) == talk.reign(now.index):
        return True
    moved = next(each for each in talk.breaks if each > told.by)
    if not told.asked.parked and talk.rules.replacement_written:
        return talk.settled_before(told.generation, told.by)
    written = (each.request.generation for each in talk.given if told.by < each.by < moved)
    return any(each > told.generation or (each == told.generation and told.asked.parked) for each in written)


@invariant("group/fenced-let-go", "grp-08", "grp-48", role=Role.COORDINATOR)
def fenced_let_go(history: History) -> Iterator[Violation]:
    """When the new process of an instance joins, parked requests of the old one are answered FENCED_INSTANCE_ID."""
    talk = reading(history)
    for new in talk.served:
        request = new.request
        if not isinstance(request, Join) or request.instance is None or request.member:
            continue
        if not (new.parked or error_of(new) == Error.NONE):
            continue
        for old in talk.served:
            if old.index >= new.index or not isinstance(old.request, Join | Sync) or not old.parked:
                continue
            if old.request.instance != request.instance or (old.by is not None and old.by < new.index):
                continue
            error = error_of(old) if old.by == new.index else None
            gone = talk.dropped(old, new.index - 1)
            if error != Error.FENCED_INSTANCE_ID and not gone and not _replaced(talk, old, new):
                kind, seen = type(old.request).__name__, "no answer" if error is None else error.name
                why = (
                    f"{at(old.index)} parked the {kind} of instance {request.instance}, {at(new.index)} joins again as"
                    f" that instance, and the old process gets {seen}"
                )
                yield breach(why, (old.index, new.index), "FENCED_INSTANCE_ID", seen, kind, "not let go")


def _replaced(talk: Reading, old: Asked, new: Asked) -> bool:
    """Was the parked request replaced by a newer one of the same member before? Older releases drop it."""
    return any(
        old.index < each.index < new.index
        and type(each.request) is type(old.request)
        and bool(named(each) & named(old))
        for each in talk.served
    )
