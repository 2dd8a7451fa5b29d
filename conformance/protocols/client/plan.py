"""Chooses the scripts of a run, so that few of them show what a client does in each cell of the table of ``cells``.

A script has one kind of group and several disturbances with rest between them. Its cells are those that add most: pairs
of values that were not played yet, most of all where clients have had defects. The same seed gives the same scripts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from random import Random
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.client import log_ops, model, ops
from kipcheck.conformance.protocols.client.cells import (
    COOPERATIVE,
    DISTURBANCES,
    NOW_ONLY,
    RESETS,
    Cell,
    Group,
    Pair,
    Phase,
    Script,
    cells,
    placed,
)
from kipcheck.conformance.protocols.client.terms import MISSING, UNREAD_MS
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.operations import nodes

GROUPS: Final[tuple[Group, ...]] = (
    "eager", "cooperative", "eager", "static", "eager", "KIP-848", "eager", "eager", "cooperative", "KIP-848", "eager",
    "static", "eager", "KIP-848", "eager", "eager",
)  # fmt: skip
"""The kinds of groups of the scripts, in turns: most programs are of the first kind."""
PLACES: Final = ("follow", "", "follow", "lead")
"""What the client does in groups with other members, in turns; empty: its group has none."""
ENDS: Final = ("refusal", "restart", "closing", "refusal", "restart, refusal")
"""How scripts end, in turns. A refusal can only come last, and there are 25 of them in classic groups alone."""
BUDGET_MS: Final = 7500
"""About how long the steps of a script take."""
SHORT_MS, LONG_MS = 200, 1200
"""Rests between two disturbances."""
ACTS: Final = ("request", "rebalance", "request", "other", "request", "request", "other", "rebalance")
"""What the parts of a script are about, in turns: a request, several in one rebalance, something else."""
TIMES: Final = (6, 2, 3)
SLOW_MS, ALL_THE_WHILE = 600, 8
"""How long a rebalance lasts in which a client reads on, and how often that fails: the last attempt, after a pause,
meets the new assignment."""
SETTINGS: Final = tuple(
    made
    for made in ops.SETTINGS
    if made not in (ops.Static, ops.Assignors, ops.GroupProtocol, ops.Subscribe, ops.Intervals)
)
"""The settings of which most scripts have one. The others say what kind of group it has, and so on."""
AT_ONCE: Final = (
    *ops.SETTINGS, *log_ops.EVENTS, ops.Others, ops.Assign, ops.Pass, ops.Committed,
)  # fmt: skip
"""Steps that wait for nothing."""
EVENTS: Final = tuple(
    made for made in ops.EVENTS
    if made not in (
        ops.Others, ops.Assign, ops.Answer, ops.Refuse, ops.Pass, ops.Fence, ops.Restart, ops.Stop,
        ops.Committed,
        *ops.SETTINGS, *DISTURBANCES.values(),
    )
)  # fmt: skip
"""What else may happen."""
NODES: Final = nodes(*SETTINGS, *EVENTS, ops.Assign)
OFFERS: Final = (
    ops.Offer("Metadata", 0, 4), ops.Offer("SyncGroup", 0, 2), ops.Offer("JoinGroup", 2, 5),
    ops.Offer("Heartbeat", 0, 3), ops.Offer("OffsetCommit", 2, 7), ops.Offer("OffsetFetch", 1, 5),
    ops.Offer("FindCoordinator", 0, 1), ops.Offer("LeaveGroup", 0, 1), ops.Offer("Fetch", 4, 10),
)  # fmt: skip
"""Ranges of brokers that are of no release: Metadata as of old ones and Fetch as of new ones, and so on."""
WEIGHTS: Final = {
    "client-rebalance": 2.0, "client-move": 2.0, "client-commit": 3.0, "client-pause": 3.0, "client-older": 0.5,
    "client-newer": 0.5,
}  # fmt: skip
"""Of settings and events; others: 1."""
GROUP_REQUESTS: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "ConsumerGroupHeartbeat"})
IN_A_REBALANCE: Final = frozenset({"JoinGroup", "SyncGroup", "OffsetFetch"})
FENCING: Final = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_MEMBER_EPOCH", "NOT_COORDINATOR"})


def likelihood(cell: Cell) -> float:
    """How often clients had defects there, roughly: released ones, and the mistakes of ``recall/mistakes.toml``."""
    found, is_error = 1.0, cell.happens not in DISTURBANCES
    if cell.request in GROUP_REQUESTS and is_error:
        found *= 3 if cell.often == "several times" else 1.5
    is_in_one = cell.request in IN_A_REBALANCE or (cell.request == "Fetch" and cell.phase in ("leading", "following"))
    if is_in_one and not is_error and cell.happens not in NOW_ONLY:
        found *= 3  # an answer later than a poll, a connection that is lost in the middle of a rebalance
    if cell.happens in FENCING:
        found *= 1.5
    if cell.phase == "closing" and cell.request == "OffsetCommit":
        found *= 2
    return found * (0.3 if cell.happens in NOW_ONLY else 1)


LIKELIHOODS: Final[Mapping[Cell, float]] = {cell: likelihood(cell) ** 0.6 for cell in cells()}
WORTH: Final = 30
"""A pair that was played n times is worth 1 / (1 + 30 n) of a new one."""
OF_AN_ERROR: Final = 6.0
"""So much more than another pair is one of a request and what happens to it worth: each has code of its own in a
client, while most of that code is the same in each phase and each kind of group."""
OPTIONAL: Final = frozenset({"cooperative", "KIP-848"})
"""The kinds of groups that a client may lack: what scripts play in them is not played for the others."""


def planned(seed: int, first: Iterable[Sequence[Step]], limits: Collection[str] = ()) -> Iterator[tuple[Step, ...]]:
    """The scripts of a seed, without end. ``first``: how the first ones begin. ``limits``: of the target: no script has
    a setting whose placeholder is among them."""
    plan = _Plan(seed, limits)
    possible = [steps for steps in first if not any(f"{{{name}}}" in plan.limits for name in model.needs(steps))]
    beginnings = [tuple(map(ops.OPERATIONS.event_of, steps)) for steps in possible]
    scripts = (plan.script(number, each) for number, each in enumerate(chain(beginnings, repeat(()))))
    return (tuple(map(ops.OPERATIONS.step_of, events)) for events in scripts)


class _Plan:
    def __init__(self, seed: int, limits: Collection[str]) -> None:
        self.seed, self.limits = seed, limits
        self.played: Counter[Pair] = Counter()
        """How often the scripts so far play each pair."""
        self.certain: Counter[Pair] = Counter()
        """The same of scripts whose kind of group every client has."""
        self.used: Counter[tuple[str, str]] = Counter()
        """How often they have each setting and event, by verb, in each kind of group."""
        self.turns: Counter[str] = Counter()
        self.calm: set[str] = set()
        """The kinds of groups that a script has left after a rest, without any disturbance."""

    def can_have(self, setting: type) -> bool:
        return f"{{{model.PLACEHOLDERS.get(setting)}}}" not in self.limits

    def turn(self, of: str, choices: Sequence[str]) -> str:
        """The next of the choices."""
        self.turns[of] += 1
        return choices[(self.turns[of] + self.seed) % len(choices)]

    def script(self, number: int, beginning: tuple[ops.Event, ...]) -> tuple[ops.Event, ...]:
        draft = _Draft(self, Random(f"{self.seed}/client/groups/plan/{number}"))
        if beginning:
            draft.begin(beginning)
        else:
            draft.set_up(self._group(number), has_first_join=bool(number % 2))
        return draft.whole()

    def _group(self, number: int) -> Group:
        group = GROUPS[(number + 5 * self.seed) % len(GROUPS)]
        needed = {"cooperative": ops.Assignors, "static": ops.Static, "KIP-848": ops.GroupProtocol}
        if group in needed and not self.can_have(needed[group]):
            return "eager"
        return group


class _Draft:
    """A script while it is put together."""

    def __init__(self, plan: _Plan, random: Random) -> None:
        self.plan, self.random = plan, random
        self.events: list[ops.Event] = []
        self.script = Script()
        self.cells: set[Cell] = set()
        self.ms = 0

    @property
    def group(self) -> Group:
        return self.script.group

    def begin(self, events: Sequence[ops.Event]) -> None:
        self._add(*events, *([] if isinstance(events[-1], ops.Pass) else [ops.Pass(SHORT_MS)]))
        for each in placed([*map(ops.OPERATIONS.step_of, events)]):
            self._take(each.cell)

    def whole(self) -> tuple[ops.Event, ...]:
        """With further parts up to its time, and an end."""
        while self.ms < BUDGET_MS and not self.script.state.shut_out:
            match self.plan.turn(f"act {self.group}", ACTS):
                case "request":
                    self._request()
                case "rebalance":
                    self._rebalance()
                case _:
                    self._event(EVENTS)
            self._add(ops.Pass(LONG_MS if self.random.random() < 0.25 else SHORT_MS))
        self._end()
        return tuple(self.events)

    # Parts

    def set_up(self, group: Group, has_first_join: bool) -> None:
        match group:
            case "cooperative":
                self._add(ops.Assignors(COOPERATIVE))
            case "static":
                self._add(ops.Static())
            case "KIP-848":
                if self.plan.can_have(ops.Static) and self.plan.turn("modern", ("", "", "static")):
                    self._add(ops.Static())
                self._add(ops.GroupProtocol("consumer"))
        if self.plan.turn("topics", ("", "", "", "", "two")):
            self._add(ops.Subscribe(2))
        if self.random.random() < 0.7:
            self._event([made for made in SETTINGS if self.plan.can_have(made)])
        if self.plan.turn("intervals", ("", "", "", "long")):
            self._add(ops.Intervals(1000, 10_000))
        place = self.plan.turn(f"place {self.group}", PLACES)
        if place and self.group != "KIP-848":
            self._add(ops.Others(self.random.choice((1, 2)), "lead" if place == "lead" else "follow"))
        if place == "follow" or self.group == "KIP-848":
            self._assign()
        if self.random.random() < 0.1:
            self._add(ops.Committed(self.random.choice((0, 4))))
        if has_first_join:
            self._change("start", "first join", 2)
            self._add(ops.Pass(SHORT_MS))

    def _request(self) -> None:
        found = self._best(cell for cell in self._cells() if cell.phase == self.script.phase(cell.request) != "closing")
        if found is not None:
            if found.phase == "following":
                self._assign()
            self._add(self._changes(found, "now"))

    def _rebalance(self) -> None:
        """Several changed answers in one rebalance."""
        if self.script.rebalances == "following":
            self._assign()
        requests = self._change("next", self.script.rebalances, self.random.choice((1, 2, 2)))
        self._add(ops.Rebalance())
        if "Fetch" in requests:
            self._add(ops.Pass(UNREAD_MS + LONG_MS))

    def _change(self, at: ops.Phase, phase: Phase, number: int) -> set[str]:
        """Changes the answers to different requests of that phase, which it returns."""
        requests: set[str] = set()
        for _ in range(number):
            found = self._best(
                cell for cell in self._cells()
                if cell.phase == phase and cell.request not in requests and cell.happens not in NOW_ONLY
            )  # fmt: skip
            if found is not None:
                requests.add(found.request)
                self._add(self._changes(found, at))
        if at == "next" and "Fetch" in requests and "JoinGroup" not in requests and self.group != "KIP-848":
            self._add(ops.Late("JoinGroup", SLOW_MS, at=at))  # a rebalance of 20 ms meets no Fetch
        return requests

    def _event(self, choices: Sequence[type[ops.Event]]) -> None:
        """A setting or an event of those, the least used one."""
        by_use = sorted(choices, key=self._use)
        for made in by_use:
            verb = ops.OPERATIONS.verb_of[made]
            event = ops.OPERATIONS.event_of(Step(**compiled(NODES[verb])(self.random)))
            if isinstance(event, ops.Offer):
                event = self.random.choice(OFFERS)
            if not model.is_worth(self.script.state, event) or not self._is_fit(event):
                continue
            self.plan.used[verb, self.group] += 1
            self._add(event)
            if isinstance(event, ops.Member | ops.Grow | log_ops.Create | log_ops.Delete):
                self._add(ops.Rebalance())
            if isinstance(event, log_ops.Lags):
                self._add(log_ops.Elect())  # after which a client asks for metadata
            return

    def _use(self, made: type[ops.Event]) -> float:
        verb = ops.OPERATIONS.verb_of[made]
        return (self.plan.used[verb, self.group] + self.random.random()) / WEIGHTS.get(verb, 1)

    def _is_fit(self, event: ops.Event) -> bool:
        """What keeps a client from its group comes last, and no old broker has what only some kinds of groups use."""
        is_late = self.ms > 0.6 * BUDGET_MS
        match event:
            case ops.Member(topics, damage=damage):
                return is_late or not (damage in ops.MALFORMED or MISSING in topics)
            case log_ops.Delete(topic):
                has_it = any(isinstance(each, ops.Subscribe) for each in self.events)
                return is_late and topic == "u" and has_it and self.script.state.started
            case ops.Older() | ops.Offer():
                return self.group == "eager"
            case ops.Rebalance("stop"):
                return False  # it ends the script, in beginnings alone
        return True

    def _assign(self) -> None:
        """Mostly other partitions than before."""
        if self.random.random() < 0.7:
            drawn = Step(**compiled(NODES[ops.OPERATIONS.verb_of[ops.Assign]])(self.random))
            self._add(ops.OPERATIONS.event_of(drawn))

    def _end(self) -> None:
        if self.script.state.shut_out or ops.Rebalance("stop") in self.events:
            return self._add(ops.Stop())
        kind = f"{self.group}, static" if self.script.state.static else self.group
        if kind not in self.plan.calm:
            self.plan.calm.add(kind)
            return self._add(ops.Pass(LONG_MS), ops.Stop())
        if self.group == "static" and self.plan.turn("fence", ("fence", "", "")):
            return self._add(ops.Fence(), ops.Stop())
        end = self.plan.turn(f"end {self.group}", ENDS)
        if "restart" in end:
            self._change("stop", "closing", 2)
            self._change("start", "first join", 1)
            self._add(ops.Restart(), ops.Pass(LONG_MS))
        if "refusal" in end:
            self._refuse()
        elif end == "closing" and self.random.random() < 0.8:
            self._change("stop", "closing", 2)
        elif end == "closing":
            self._later(self._best(cell for cell in self._cells() if cell.request == "LeaveGroup"))
        self._add(ops.Stop())

    def _refuse(self) -> None:
        found = self._best(
            cell for cell in self._cells("for good")
            if self.script.state.static or (cell.request, cell.happens) not in model.STATIC_ONLY
        )  # fmt: skip
        if found is not None:
            at: ops.Phase = "start" if found.phase == "first join" else "stop" if found.phase == "closing" else "now"
            self._add(self._changes(found, at), *([ops.Restart()] if at == "start" else []))

    def _later(self, found: Cell | None) -> None:
        if found is not None:
            self._add(self._changes(found, "now"))

    # Choices

    def _cells(self, often: str = "") -> Iterator[Cell]:
        """Those of this kind of group that it does not have yet: those that last for good, or the others."""
        return (
            cell for cell in cells()
            if cell.group == self.group and (cell.often == "for good") is (often == "for good")
            and cell not in self.cells
            and (cell.phase in ("closing", "first join", "stable") or cell.phase == self.script.rebalances)
        )  # fmt: skip

    def _best(self, found: Iterable[Cell]) -> Cell | None:
        """The cell that adds most, which then is one of this script."""
        best = max(found, key=self._gain, default=None)
        if best is not None:
            self._take(best)
        return best

    def _take(self, cell: Cell) -> None:
        self.cells.add(cell)
        self.plan.played.update(cell.pairs)
        if cell.group not in OPTIONAL:
            self.plan.certain.update(cell.pairs)

    def _gain(self, cell: Cell) -> float:
        played = self.plan.played if cell.group in OPTIONAL else self.plan.certain
        first, *others = (1 / (1 + WORTH * played[pair]) for pair in cell.pairs)
        new = OF_AN_ERROR * first + sum(others)
        is_slow = cell.request in IN_A_REBALANCE and cell.happens in ("late", "silent")
        fits = 4 if is_slow and any(isinstance(event, ops.Works) for event in self.events) else 1  # slower than a poll
        return LIKELIHOODS[cell] * new * fits * (0.8 + 0.4 * self.random.random())

    def _changes(self, cell: Cell, at: ops.Phase) -> ops.Event:
        made: Any = DISTURBANCES.get(cell.happens)
        fields: dict[str, Any] = {"kind": cell.request}
        if made is None:
            made = ops.Refuse if cell.often == "for good" else ops.Answer
            fields["error"] = cell.happens
        if made is ops.Reset:
            fields["when"] = RESETS[cell.happens]
        if made in (ops.Late, ops.Silent):
            is_long = cell.often == "once" and self.random.random() < (0.7 if cell.request in IN_A_REBALANCE else 0.3)
            fields["ms"] = 1500 if is_long else 400
        if cell.often == "several times":
            is_in_one = (cell.request, at) == ("Fetch", "next")
            fields["times"] = ALL_THE_WHILE if is_in_one else self.random.choice(TIMES)
        if at != "now":
            fields["at"] = at
        event: ops.Event = made(**fields)
        return event

    def _add(self, *events: ops.Event) -> None:
        for event in events:
            self.events.append(event)
            self.script.take(event)
            self.ms += lasts_ms(event) * (2 if any(isinstance(each, ops.Intervals) for each in self.events) else 1)
            if isinstance(event, ops.Rebalance):  # which a program that works notices when it polls
                self.ms += sum(each.ms for each in self.events if isinstance(each, ops.Works))


def lasts_ms(event: ops.Event) -> int:
    """About how long a step takes."""
    own_ms = getattr(event, "ms", 0) if not isinstance(event, ops.SETTINGS) else 0
    times = getattr(event, "times", 1)
    waits = getattr(event, "at", "now") == "now" and not isinstance(event, AT_ONCE)
    return (own_ms + 250) * times + (250 if waits else 0)
