"""The table of what a live client can meet in a script: a request, what happens to it, when, how often, in which group.

A cell is one combination of the five. A run cannot play all of them: its scripts are chosen so that any two values that
go together meet in one script at least. ``plan`` chooses them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import History, Op, Replied, Unsupported
from kipcheck.conformance.protocols.client import events, model, ops
from kipcheck.conformance.protocols.client.trace import parsed
from kipcheck.conformance.protocols.declare.check import Table

Phase: TypeAlias = Literal["first join", "leading", "following", "stable", "closing"]
"""Of the client: it joins for the first time, is in a rebalance that it leads or not, is a stable member, or ends."""
Often: TypeAlias = Literal["once", "several times", "for good"]
Group: TypeAlias = Literal["eager", "cooperative", "static", "KIP-848"]
"""A client of the first kind has the assignor of its own choice, or one that is not cooperative."""
PHASES: Final[Mapping[ops.Kind, tuple[Phase, ...]]] = {
    "JoinGroup": ("first join", "leading", "following"),
    "SyncGroup": ("first join", "leading", "following"),
    "Heartbeat": ("stable", "leading", "following"),
    "OffsetCommit": ("stable", "leading", "following", "closing"),
    "FindCoordinator": ("first join", "stable"),
    "Metadata": ("first join", "stable"),
    "OffsetFetch": ("first join", "leading", "following"),
    "ListOffsets": ("first join", "stable"),
    "Fetch": ("first join", "stable", "leading", "following"),
    "LeaveGroup": ("closing",),
    "ConsumerGroupHeartbeat": ("first join", "following", "stable", "closing"),
}
"""When a client sends each request. In a group of KIP-848 no member leads. Not OffsetForLeaderEpoch, which few send."""
BY_ITSELF: Final[Mapping[ops.Kind, Phase]] = {
    kind: "closing" if kind == "LeaveGroup" else "stable" if "stable" in phases else "following"
    for kind, phases in PHASES.items()
} | {"OffsetForLeaderEpoch": "stable"}
"""When a step that is not prepared meets the request: a script lets a stable member send it, in a rebalance if it has
to; ``following`` stands for ``leading`` too."""
DISTURBANCES: Final[Mapping[str, type[ops.Event]]] = {
    "late": ops.Late, "silent": ops.Silent, "reset": ops.Reset, "cut off": ops.Reset, "reset after": ops.Reset,
    "in pieces": ops.Pieces, "together": ops.Together, "tags": ops.Tags,
}  # fmt: skip
"""What may happen to each request, besides errors: ``reset`` without an answer, ``cut off`` in the middle of it."""
RESETS: Final = {"reset": "before", "cut off": "amid", "reset after": "after"}
LOSES: Final = frozenset({"silent", "reset", "cut off", "reset after"})
"""Those by which the client loses its connection."""
NOW_ONLY: Final = frozenset({"in pieces", "together", "tags"})
"""Those that only come where the script lets the client send the request."""
REPEATED: Final = frozenset({"late", "silent", "reset", "cut off"})
"""Those that come several times in a row, too."""
DIMENSIONS: Final = ("request", "event", "phase", "repetition", "group")
COOPERATIVE: Final[tuple[ops.Assignor, ...]] = ("cooperative-sticky",)
Changed: TypeAlias = ops.Answer | ops.Refuse | ops.Disturbed
CHANGED: Final = (ops.Answer, ops.Refuse, ops.Late, ops.Pieces, ops.Reset, ops.Silent, ops.Together, ops.Tags)
STARTS: Final = (events.Launched, events.Restarted, events.Ended, events.Killed)
NEEDS: Final[Mapping[str, str]] = {
    "cooperative": "{assignors}", "static": "{instance}", "KIP-848": "{protocol}",
    "ConsumerGroupHeartbeat": "{protocol}",
}  # fmt: skip
"""The limit of a target that lacks what these values need."""
NO_ANSWER: Final = "the script ended before"
HAD_ENDED: Final = "the program had ended before"
UNSENT: Final = "the client sent no such request then"
IN_NO_SCRIPT: Final = "in no script of this run"


class Cell(NamedTuple):
    """A request, what happens to it, and so on: the five of the table."""

    request: ops.Kind
    happens: str
    """An error, or a word of ``DISTURBANCES``."""
    phase: Phase
    often: Often
    group: Group

    @property
    def pairs(self) -> tuple["Pair", ...]:
        """Any two of its values."""
        return tuple(combinations(enumerate(self), 2))


Pair: TypeAlias = tuple[tuple[int, str], tuple[int, str]]
"""Two values, each with its place in a cell."""


class Placed(NamedTuple):
    """A cell in a script."""

    cell: Cell
    step: int
    until: int
    """The step in which the client sends the request."""


@cache
def cells() -> tuple[Cell, ...]:
    """Each cell that there is."""
    return tuple(
        Cell(request, happens, phase, often, group)
        for request, phases in PHASES.items()
        for group in get_args(Group)
        if request not in (model.CLASSIC_ONLY if group == "KIP-848" else model.CONSUMER_ONLY)
        for phase in phases
        if not (phase == "leading" and group == "KIP-848") and not (request == "LeaveGroup" and group == "static")
        for happens, often in _happening(request, phase, group)
    )


def _happening(request: ops.Kind, phase: Phase, group: Group) -> Iterator[tuple[str, Often]]:
    by_itself = BY_ITSELF[request] in (phase, "following" if phase == "leading" else phase)
    for happens in (*model.ERRORS[request], *DISTURBANCES):
        # A program may end if the only address that it has does not answer.
        is_at_start = phase == "first join" and happens in LOSES
        if (is_at_start and request == "Metadata") or not (by_itself or happens not in NOW_ONLY):
            continue
        if (request, happens) in (model.OF_CLASSIC if group == "KIP-848" else model.OF_KIP_848):
            continue
        yield happens, "once"
        if is_at_start and request == "FindCoordinator":
            continue
        if request != "LeaveGroup" and (happens not in DISTURBANCES or happens in REPEATED):
            yield happens, "several times"
    if by_itself or phase in ("first join", "closing"):
        for refusal in model.REFUSALS[request]:
            if group in ("static", "KIP-848") or (request, refusal) not in model.STATIC_ONLY:
                yield refusal, "for good"


@cache
def pairs() -> frozenset[Pair]:
    """Each pair that there is."""
    return frozenset(pair for cell in cells() for pair in cell.pairs)


# ---- the cells of a script


class Script:
    """Where a script stands."""

    def __init__(self) -> None:
        self.state = model.Scripts().initial()
        self.leads = True
        self.cooperates = False

    @property
    def group(self) -> Group:
        if self.state.by_heartbeats:
            return "KIP-848"
        return "static" if self.state.static else "cooperative" if self.cooperates else "eager"

    @property
    def rebalances(self) -> Phase:
        return "leading" if self.leads and not self.state.by_heartbeats else "following"

    def take(self, event: ops.Event) -> None:
        self.state = model.Scripts().step(self.state, event).state
        match event:
            case ops.Assignors(names):
                self.cooperates = names == COOPERATIVE
            case ops.Others(number, place):
                self.leads = place == "lead" or not number

    def phase(self, request: ops.Kind, at: ops.Phase = "now", meets: ops.Event | None = None) -> Phase:
        """When the client sends the request, whose answer is changed at that time. ``meets``: the step in which it is
        sent, if it is sent later."""
        if at in ("start", "stop"):
            return "first join" if at == "start" else "closing"
        if at == "now" or meets is None:
            return self.rebalances if BY_ITSELF[request] == "following" else BY_ITSELF[request]
        if not self.state.started:
            return "first join"
        if isinstance(meets, ops.Stop | ops.Restart):
            return "closing"
        rebalances = isinstance(meets, ops.Rebalance) and self.rebalances in PHASES.get(request, ())
        return self.rebalances if rebalances else "stable"


def placed(steps: Sequence[Step]) -> Iterator[Placed]:
    """The cells that a script plays."""
    script = Script()
    waiting: list[tuple[int, ops.Timed]] = []
    for at, step in enumerate(steps):
        event = ops.OPERATIONS.event_of(step)
        if isinstance(event, ops.TIMED) and event.at != "now":
            waiting.append((at, event))
            continue
        was_started = script.state.started
        script.take(event)
        starts = isinstance(event, ops.Restart) or script.state.started > was_started
        stops = isinstance(event, ops.Restart | ops.Stop)
        script.state = script.state._replace(started=was_started)
        met = {"start": starts, "stop": stops, "next": script.state.started or starts}
        found: list[tuple[int, Changed, Phase]] = [
            (begun, each, script.phase(each.kind, each.at, event)) for begun, each in waiting if met[each.at]
        ]
        waiting = [each for each in waiting if not met[each[1].at]]
        if isinstance(event, CHANGED):
            found.append((at, event, script.phase(event.kind)))
        for begun, each, phase in found:
            cell = cell_of(each, phase, script.group)
            if cell in _every():
                yield Placed(cell, begun, at)
        script.state = script.state._replace(started=was_started or starts)


def cell_of(event: Changed, phase: Phase, group: Group) -> Cell:
    match event:
        case ops.Answer(kind, error):
            happens: str = error
        case ops.Refuse(kind, refusal):
            return Cell(kind, refusal, phase, "for good", group)
        case ops.Reset(kind, when):
            happens = next(name for name, each in RESETS.items() if each == when)
        case _:
            kind, happens = event.kind, next((name for name, made in DISTURBANCES.items() if type(event) is made), "")
    return Cell(kind, happens, phase, "several times" if getattr(event, "times", 1) > 1 else "once", group)


@cache
def _every() -> frozenset[Cell]:
    return frozenset(cells())


# ---- what was played


def played(history: History) -> Iterator[tuple[Cell, str]]:
    """The cells of a script, each with the reason why it was not played; empty: it was."""
    traffic = [_events(op) for op in history.ops]
    for cell, step, until in placed(history.case.steps):
        ops_until = history.ops[: until + 1]
        lacking = next((op.observation for op in ops_until if not isinstance(op.observation, Replied)), None)
        if lacking is not None or len(ops_until) <= until:
            yield cell, lacking.reason.partition(": ")[0] if isinstance(lacking, Unsupported) else NO_ANSWER
        elif _is_sent(cell.request, [event for each in traffic[step : until + 1] for event in each]):
            yield cell, ""
        else:
            yield cell, HAD_ENDED if _has_ended(event for each in traffic[: until + 1] for event in each) else UNSENT


def _events(op: Op) -> list[events.Event]:
    actions = dict(op.observation.payload).get("actions", ()) if isinstance(op.observation, Replied) else ()
    return [parsed(action) for action in actions]


def _is_sent(request: ops.Kind, traffic: Sequence[events.Event]) -> bool:
    waited = (event for event in traffic if isinstance(event, events.Settled | events.Unsettled))
    if any(request in event.unsent for event in waited):
        return False
    return any(isinstance(event, events.RequestSeen) and event.api == request for event in traffic)


def _has_ended(traffic: Iterable[events.Event]) -> bool:
    last = [event for event in traffic if isinstance(event, STARTS)]
    return bool(last) and isinstance(last[-1], events.Ended | events.Killed)


# ---- the table of a run


def table(found: Mapping[Cell, str], limits: Mapping[str, str]) -> Table:
    """What a run played. ``found``: the cells of its scripts, as ``played`` has them; ``limits``: of the target."""
    done = {pair for cell, why in found.items() if not why for pair in cell.pairs}
    reasons: dict[Pair, str] = {}
    for cell, why in found.items():
        if why:
            reasons |= dict.fromkeys(cell.pairs, why)
    missing: dict[str, int] = {}
    for pair in sorted(pairs() - done):
        why = _lacks(pair, limits) or reasons.get(pair, IN_NO_SCRIPT)
        missing[why] = missing.get(why, 0) + 1
    counted: dict[tuple[str, Group], tuple[set[str], set[str]]] = {}
    for cell in cells():
        every, some = counted.setdefault((f"{cell.request}, {cell.phase}", cell.group), (set(), set()))
        every.add(cell.happens)
        some |= {cell.happens} if found.get(cell, UNSENT) == "" else set()
    rows: dict[str, dict[str, tuple[int, int]]] = {}
    for (row, group), (every, some) in counted.items():
        rows.setdefault(row, {})[group] = len(some), len(every)
    return Table(DIMENSIONS, len(done & pairs()), len(pairs()), missing, rows)


def _lacks(pair: Pair, limits: Mapping[str, str]) -> str:
    """Why no script for this target has the pair."""
    values = [value for _, value in pair]
    needed = next((NEEDS[value] for value in values if value in NEEDS), "")
    return limits.get(needed, "")
