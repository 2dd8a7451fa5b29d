"""What the answers of an application say about its stores, step by step."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps
from kipcheck.conformance.protocols.store_upgrade.ops import IN_MEMORY, NEW, OLD

Stamped: TypeAlias = tuple[str, int]
Write: TypeAlias = tuple[str, str | None, int]
"""Key, value and timestamp."""
READS = ("query-store", "process-if-absent")
SERVICES = (*READS, "process-record")


@dataclass(frozen=True, slots=True)
class Had:
    """What a key has, and since which step."""

    contents: Stamped | None
    at: int
    by: str = ""
    """``put``, ``kept`` (by a put that expects an absent key), or the operator that put it."""


@dataclass(frozen=True, slots=True)
class Member:
    """An instance that runs, and what it got in the last rebalance."""

    code: str
    mode: str | None
    metadata: int
    active: frozenset[int] = frozenset()
    standby: frozenset[int] = frozenset()
    upgrade: frozenset[int] = frozenset()
    mirrored: bool = False
    """Whether it restores for the roll-over only."""

    @property
    def marked(self) -> bool:
        return self.code != "old" and self.mode == "roll_over"


@dataclass(frozen=True, slots=True)
class KnownStores:
    live: Mapping[str, Member] = field(default_factory=dict)
    stores: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Instance and task -> ``old``; ``prepared``: only the beginning of a new one; ``new``."""
    swapping: Mapping[str, int] = field(default_factory=dict)
    """Instances that were killed while they swapped the directories of this task."""
    has: Mapping[tuple[int, str], Had] = field(default_factory=dict)
    writes: Mapping[int, tuple[Write, ...]] = field(default_factory=dict)
    """Task -> what was written to its changelog, in order."""
    positions: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Instance and task -> how far its prepared store got."""
    unreadable: frozenset[int] = frozenset()
    """Tasks whose changelog has a record of an unknown version."""
    left: frozenset[str] = frozenset()
    """Instances that stopped since the last rebalance."""

    def owner(self, task: int) -> str | None:
        return next((name for name, each in self.live.items() if task in each.active), None)

    def waits(self, name: str, task: int) -> bool:
        """Whether an instance has to finish its store before it serves the task."""
        each = self.live[name]
        if each.code != "builder" or each.mode == "in_place" or task == IN_MEMORY:
            return False
        return self.stores.get((name, task)) in ("old", "prepared")


@dataclass(frozen=True, slots=True)
class AppStep(AnsweredStep[Step, Mapping[str, Any], KnownStores]):
    @property
    def owner(self) -> tuple[str, Member] | None:
        """The instance that has the task of this step."""
        name = self.before.owner(self.request["task"])
        return None if name is None else (name, self.before.live[name])

    @property
    def had(self) -> Had | None:
        return self.before.has.get((self.request["task"], self.request["key"]))

    def known_after(self) -> KnownStores:
        return _after(self)


@cached_on_history
def trace(history: History) -> tuple[AppStep, ...]:
    return plain_steps(history, KnownStores(), AppStep)


def _after(each: AppStep) -> KnownStores:
    known, step = each.before, each.request
    if not each.accepted:
        if step.verb == "start-instance":
            return _without(known, step["instance"])
        return known
    match step.verb:
        case "start-instance":
            return _started(known, step)
        case "stop-instance" | "kill-instance":
            after = _without(known, step["instance"])
            after = replace(after, left=after.left | {step["instance"]})
            if step.verb == "kill-instance" and step["swapping"] is not None:
                return replace(after, swapping={**after.swapping, step["instance"]: step["swapping"]})
            return after
        case "lose-directory":
            kept = {place: had for place, had in known.stores.items() if place[0] != step["instance"]}
            reached = {place: at for place, at in known.positions.items() if place[0] != step["instance"]}
            swapping = {name: task for name, task in known.swapping.items() if name != step["instance"]}
            return replace(known, stores=kept, positions=reached, swapping=swapping)
        case "rebalance-tasks":
            return _rebalanced(known, each.answer["shares"])
        case "replay-changelog":
            place = step["instance"], step["task"]
            return replace(known, positions={**known.positions, place: each.answer["position"]})
        case "swap-directories":
            return _stored(known, step["instance"], step["task"], "new")
        case "append-record" if step["version"] not in (OLD, NEW):
            after = replace(known, unreadable=known.unreadable | {step["task"]})
            return _logged(after, step["task"], (step["key"], step["value"], step["timestamp"]))
    return _written(each) if step.verb in (*SERVICES, "append-record") else known


def _without(known: KnownStores, name: str) -> KnownStores:
    stores = {place: had for place, had in known.stores.items() if place != (name, IN_MEMORY)}
    return replace(known, live={each: had for each, had in known.live.items() if each != name}, stores=stores)


def _started(known: KnownStores, step: Step) -> KnownStores:
    after = _without(known, step["instance"])
    live = dict(sorted({**after.live, step["instance"]: Member(step["code"], step["mode"], step["metadata"])}.items()))
    after = replace(after, live=live)
    task = after.swapping.get(step["instance"])
    if task is None:
        return after
    rest = {name: each for name, each in after.swapping.items() if name != step["instance"]}
    return replace(_stored(after, step["instance"], task, "new"), swapping=rest)


def _rebalanced(known: KnownStores, shares: list[Mapping[str, Any]]) -> KnownStores:
    found = {each["instance"]: each for each in shares}
    plain = any(name in found and not each.marked for name, each in known.live.items())
    after, live = known, dict(known.live)
    for name, each in known.live.items():
        share = found.get(name, {"active": (), "standby": (), "upgrade": ()})
        got = replace(
            each, active=frozenset(share["active"]), standby=frozenset(share["standby"]),
            upgrade=frozenset(share["upgrade"]), mirrored=plain and each.marked,
        )  # fmt: skip
        live[name] = got
        for task in got.active | got.standby:
            after = _created(after, name, task, got)
    return replace(after, live=live, left=frozenset())


def _created(known: KnownStores, name: str, task: int, member: Member) -> KnownStores:
    """The stores that an instance has of a task once it got it."""
    had = known.stores.get((name, task))
    if member.code in ("old", "plain"):
        return _stored(known, name, task, "old")
    if member.code == "timestamped" or task == IN_MEMORY:
        return _stored(known, name, task, "new")
    if had == "new":
        return known
    if member.mode == "in_place":
        return _stored(known, name, task, "old")
    if member.mirrored:
        return known if had == "old" else _stored(known, name, task, "prepared")
    return known if had in ("old", "prepared") else _stored(known, name, task, "new")


def _stored(known: KnownStores, name: str, task: int, store: str) -> KnownStores:
    return replace(known, stores={**known.stores, (name, task): store})


def _written(each: AppStep) -> KnownStores:
    known, step = each.before, each.request
    if step.verb in READS:
        shown = each.answer["value"]
        had = each.had
        if step.verb == "query-store" or shown is not None:
            # A wrong answer counts for the following steps: it is reported once.
            found = None if shown is None else (shown, each.answer["timestamp"])
            right = had is not None and each.answer["store"] == "old" and _value(had.contents) == shown
            at = each.op.index if had is None else had.at
            kept = had if right and had is not None else Had(found, at, "" if had is None else had.by)
            if step.verb == "process-if-absent":
                kept = replace(kept, by="kept")
            return replace(known, has={**known.has, (step["task"], step["key"]): kept})
    value = step["value"]
    contents = None if value is None else (value, step["timestamp"])
    by = step["operator"] if step.verb == "process-record" else "put"
    after = replace(known, has={**known.has, (step["task"], step["key"]): Had(contents, each.op.index, by)})
    return _logged(after, step["task"], (step["key"], value, step["timestamp"]))


def _logged(known: KnownStores, task: int, write: Write) -> KnownStores:
    return replace(known, writes={**known.writes, task: (*known.writes.get(task, ()), write)})


def _value(contents: Stamped | None) -> str | None:
    return None if contents is None else contents[0]


def shown(each: AppStep) -> Stamped | None:
    """What a reading found."""
    value = each.answer["value"]
    return None if value is None else (value, each.answer["timestamp"])


def text(contents: Stamped | None) -> str:
    return "absent" if contents is None else f"{contents[0] or 'the empty value'} at {contents[1]}"


def breach(each: AppStep, why: str, expected: str, *shape: str, at: int | None = None) -> Violation:
    first = () if at is None or at == each.op.index else (at,)
    if each.error:
        observed = f"refused: {each.error}"
    else:
        fields = (f"{name} {value}" for name, value in each.answer.items() if name not in ("shares", "records"))
        observed = ", ".join(fields) or "accepted"
    return Violation(why, (*first, each.op.index), expected, observed, shape=shape)
