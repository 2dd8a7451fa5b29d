"""A cluster and a group without defects, for what their invariants are tried on: no clock, no nodes, and all members do
what they do in steps of 100 ms."""

from dataclasses import dataclass, field, replace
from typing import Final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.failover import ops

TICK_MS: Final = 100
LATER_MS: Final = 10_000
"""Between two looks at the offsets when another node has taken over."""
ROUNDS: Final = 3
"""Of beats in a step in which time passes."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The offsets of a group, as rows of partition and offset."""

    offsets: tuple[tuple[int, int], ...] = ()

    def after(self, partitions: tuple[int, ...], offset: int) -> "Committed":
        rows = dict(self.offsets) | dict.fromkeys(partitions, offset)
        return Committed(tuple(sorted(rows.items())))


@dataclass(frozen=True, slots=True)
class State:
    """``before``: the offsets without the last commit."""

    now_ms: int = 0
    node: int = 1
    """That coordinates the group."""
    away: int = 0
    """The node that is paused or down; 0: none."""
    epoch: int = 0
    members: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    """Name, protocol and partitions."""
    committed: Committed = field(default_factory=Committed)
    before: Committed = field(default_factory=Committed)
    last: int = 0
    moved: bool = False
    """Whether another node has coordinated the group."""


class Group:
    """Overridable: what a coordinator that takes over knows, what members are given, and whether it ever answers."""

    def initial(self) -> State:
        return State()

    def loaded(self, state: State) -> State:
        """What the next coordinator has read."""
        return state

    def first_look(self, state: State) -> Committed:
        """The offsets that the next coordinator answers with at first."""
        return state.committed

    def shares(self, state: State, names: list[str]) -> dict[str, tuple[int, ...]]:
        return {name: tuple(range(ops.PARTITIONS))[at :: len(names)] for at, name in enumerate(names)}

    def answers(self, state: State) -> bool:
        return True

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        seen: list[ops.Action] = []
        before, state = state.node, self._changed(state, event, seen)
        if state.node != before and self.answers(state):
            state = self._read(state, seen, self.first_look(state))
            state = self._read(replace(state, now_ms=state.now_ms + LATER_MS), seen, state.committed)
        for _ in range(ROUNDS if isinstance(event, ops.Pass | ops.Settle) else 1):
            if self.answers(state):
                state = self._beaten(state, seen)
        if isinstance(event, ops.Settle):
            state = self._settled(state, seen)
        return Transition(state, tuple(seen))

    def _changed(self, state: State, event: ops.Event, seen: list[ops.Action]) -> State:
        names = [name for name, _, _ in state.members]
        match event:
            case ops.Join(name, protocol) if name not in names:
                return self._rebalanced(state, (*state.members, (name, protocol, ())), seen)
            case ops.Leave(name) | ops.Crash(name) if name in names:
                kept = tuple(each for each in state.members if each[0] != name)
                seen += [ops.Gave(name, each[2], state.now_ms) for each in state.members if each[0] == name]
                return self._rebalanced(state, kept, seen)
            case ops.Kill(which) | ops.Stop(which) | ops.Pause(which) if not state.away:
                hit = state.node if which == "coordinator" else state.node % len(ops.NODES) + 1
                seen.append(ops.Hit("fails", hit, "", state.now_ms))
                return replace(self._moved(state) if hit == state.node else state, away=hit)
            case ops.Resume() | ops.Start() if state.away:
                seen.append(ops.Hit("resumes", state.away, "", state.now_ms))
                return replace(state, away=0)
            case ops.Elect() | ops.Roll() if not state.away:
                seen.append(ops.Hit("elected", state.node % len(ops.NODES) + 1, "", state.now_ms))
                return self._moved(state)
            case _:
                return state

    def _moved(self, state: State) -> State:
        node = state.node % len(ops.NODES) + 1
        return replace(self.loaded(state), node=node % len(ops.NODES) + 1 if node == state.away else node, moved=True)

    def _rebalanced(
        self, state: State, members: tuple[tuple[str, str, tuple[int, ...]], ...], seen: list[ops.Action]
    ) -> State:
        seen += [ops.Gave(name, partitions, state.now_ms) for name, _, partitions in members if partitions]
        state = replace(state, epoch=state.epoch + 1, now_ms=state.now_ms + TICK_MS)
        shares = self.shares(state, [name for name, _, _ in members]) if members else {}
        for name, protocol, _ in members:
            api = "SyncGroup" if protocol == "classic" else "ConsumerGroupHeartbeat"
            seen.append(self._accepted(state, name, protocol, api, ()))
            seen.append(ops.Assigned(name, state.node, state.epoch, shares[name], state.now_ms + TICK_MS))
        members = tuple((name, protocol, shares[name]) for name, protocol, _ in members)
        return replace(state, members=members, now_ms=state.now_ms + 2 * TICK_MS)

    def _accepted(
        self, state: State, name: str, protocol: str, api: str, had: tuple[int, ...], offset: int | None = None
    ) -> ops.Accepted:
        sent_ms = state.now_ms
        return ops.Accepted(name, protocol, api, state.node, state.epoch, had, sent_ms, sent_ms + TICK_MS, offset)

    def _beaten(self, state: State, seen: list[ops.Action]) -> State:
        """Each member commits in turn."""
        for name, protocol, partitions in state.members:
            offset = state.last + 1
            seen.append(self._accepted(state, name, protocol, "OffsetCommit", partitions, offset))
            committed = state.committed.after(partitions, offset)
            state = replace(
                state, committed=committed, before=state.committed, last=offset, now_ms=state.now_ms + 2 * TICK_MS
            )
        return state

    def _settled(self, state: State, seen: list[ops.Action]) -> State:
        now_ms = state.now_ms
        if not self.answers(state):
            seen.append(ops.Restless("no heartbeat is accepted", ops.STABLE_MS, 0, now_ms + ops.STABLE_MS))
            return replace(state, now_ms=now_ms + ops.STABLE_MS)
        seen.append(ops.Rests(len(state.members), 0, now_ms))
        return self._read(state, seen, state.committed)

    def _read(self, state: State, seen: list[ops.Action], committed: Committed) -> State:
        sent_ms = state.now_ms
        seen.append(ops.Fetched("reader", state.node, committed.offsets, sent_ms, sent_ms + TICK_MS))
        return replace(state, now_ms=sent_ms + 2 * TICK_MS)
