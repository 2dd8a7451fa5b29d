"""What a classic group coordinator owes to ids: nobody has another's, and of a static member only the newest counts."""

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
    """Whoever joins without an id gets one that nobody had, and whoever joins with one keeps it."""
    talk = reading(history)
    had: dict[str, Asked] = {}
    answers = [each for each in talk.trace.asked if isinstance(each.request, Join) and isinstance(each.answer, Joined)]
    for each in sorted(answers, key=lambda asked: (asked.by or 0, asked.index)):
        assert isinstance(each.request, Join) and isinstance(each.answer, Joined) and each.by is not None
        if each.answer.error not in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            continue
        sent, told = each.request.member, each.answer.member
        if sent and told != sent:
            why = f"{each.actor} joined as {sent} at {at(each.index)}, and {at(each.by)} tells it that it is {told}"
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
    """From JoinGroup version 4 on a dynamic member joins with an id that it was given, and not without one."""
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
    """The group never has more members than the limit."""
    talk = reading(history)
    for told in talk.told if talk.rules.size_by_waiting else ():
        # Static members stay where they did not join again, and then are not counted.
        here = {each.answer.member for each in talk.told if each.by == told.by}
        ids = [id for id, *_ in told.answer.members if id in here or talk.person(id) == id]
        if len(ids) > MAX_SIZE:
            why = f"the group may have {MAX_SIZE} members, and {at(told.by)} lists {len(ids)}: {', '.join(ids)}"
            steps = (told.asked.index, told.by)
            yield breach(why, steps, f"at most {MAX_SIZE} members", f"{len(ids)} members", "members", "too many")


@invariant("group/one-id-per-instance", "grp-08", role=Role.COORDINATOR)
def one_id_per_instance(history: History) -> Iterator[Violation]:
    """No two members of a group have one instance id."""
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
    """Once another member has the instance id, nothing succeeds that names the old member id."""
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
    """Is the new id in the log, where the group moved since? If it is not, the old one is in force again."""
    if talk.reign(told.by) == talk.reign(now.index):
        return True
    moved = next(each for each in talk.breaks if each > told.by)
    if not told.asked.parked and talk.rules.replacement_written:
        return talk.settled_before(told.generation, told.by)
    written = (each.request.generation for each in talk.given if told.by < each.by < moved)
    return any(each > told.generation or (each == told.generation and told.asked.parked) for each in written)


@invariant("group/fenced-let-go", "grp-08", "grp-48", role=Role.COORDINATOR)
def fenced_let_go(history: History) -> Iterator[Violation]:
    """What the old process of an instance has parked is answered FENCED_INSTANCE_ID as soon as the new one joins."""
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
                    f"{at(old.index)} parked the {kind} of instance {request.instance}, {at(new.index)} joins anew as"
                    f" that instance, and the old process has {seen}"
                )
                yield breach(why, (old.index, new.index), "FENCED_INSTANCE_ID", seen, kind, "not let go")


def _replaced(talk: Reading, old: Asked, new: Asked) -> bool:
    """Was it taken over by a newer request of the same member before? Older releases forget it."""
    return any(
        old.index < each.index < new.index
        and type(each.request) is type(old.request)
        and bool(named(each) & named(old))
        for each in talk.served
    )
