"""A quorum of three KRaft controllers, which applies an update once a majority has it in the log (KIP-595, KIP-631).

The first node that runs leads, with a majority. An update that is sent without one stays pending, in the log of the
leader alone: it is applied when the majority is back, and lost when the leader is killed before. Real quorums elect any
node that has all that is committed, and may keep such an update.
"""

from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.model.kraft import KraftController, State as KraftState
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.ops import quorum as ops
from kipcheck.conformance.protocols.features.ops.kraft import Declared, DeclareNode, Failed, Format, KraftUpdate, Level

MAJORITY: Final = 2
LAST: Final = ops.NODES[-1]


@final
@dataclass(frozen=True, slots=True)
class State:
    cluster: KraftState
    """What is committed."""
    leader: int = 0
    """-1: none leads."""
    paused: frozenset[int] = frozenset()
    killed: frozenset[int] = frozenset()
    pending: KraftUpdate | None = None
    """The request without an answer."""
    logged: bool = False
    """Whether the leader has it in its log, where it can still be committed."""
    outcome: str = ""
    """Of the pending request: applied, lost, or an error."""
    beside: str = ""
    """The release of the last node; empty: the same."""

    @property
    def active(self) -> tuple[int, ...]:
        return tuple(each for each in ops.NODES if each not in self.paused | self.killed)

    @property
    def has_majority(self) -> bool:
        return len(self.active) >= MAJORITY


class KraftQuorum:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.controller = KraftController(rules)

    def initial(self) -> State:
        """Other controllers have the numbers from 1 on, and support what the leader does."""
        return self.formed(ops.QuorumFormat(self.rules.newest))

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.QuorumFormat():
                return Transition(self.formed(event))
            case ops.QuorumPause(which):
                hit = self.chosen(state, which)
                return Transition(self.elected(replace(state, paused=state.paused | {*hit})), (ops.QuorumHit(hit),))
            case ops.QuorumKill(which):
                hit = self.chosen(state, which)
                return Transition(self.killed(state, hit), (ops.QuorumHit(hit),))
            case ops.QuorumResume():
                return Transition(self.elected(replace(state, paused=frozenset())))
            case ops.QuorumStart():
                return Transition(self.started(state))
            case ops.QuorumSend(updates):
                return self.sent(state, KraftUpdate(1, updates))
            case ops.QuorumAwait():
                return self.awaited(state)
            case ops.QuorumRead():
                return Transition(state, (self.views(state),))
            case ops.QuorumSnapshot():
                return Transition(state)
            case _:
                assert_never(event)

    def formed(self, event: ops.QuorumFormat) -> State:
        formed = self.controller.formatted(Format(event.level, event.levels, ops.NODES[1:]))
        for node in ops.NODES:
            supported = self.declares(node, event.beside)
            if node != 0:
                formed = self.controller.declared(formed, DeclareNode("controller", node, supported))
            if node != LAST or event.beside is None:
                formed = self.controller.declared(formed, DeclareNode("broker", node, supported))
        return State(formed, beside=event.beside or "")

    def declares(self, node: int, beside: str | None) -> tuple[Declared, ...]:
        rules = Rules.of(beside) if beside and node == LAST else self.rules
        return tuple(Declared(name, *span) for name, span in rules.declares())

    def chosen(self, state: State, which: str) -> tuple[int, ...]:
        """The nodes; a killed one is not hit again, and a paused one can be killed."""
        alive = [each for each in ops.NODES if each not in state.killed]
        followers = [each for each in alive if each != state.leader]
        match which:
            case "leader":
                return (state.leader,) if state.leader in alive else ()
            case "follower":
                return tuple(followers[-1:])
            case "followers":
                return tuple(followers)
            case _:
                return tuple(alive)

    def killed(self, state: State, hit: tuple[int, ...]) -> State:
        found = replace(state, killed=state.killed | {*hit}, paused=state.paused - {*hit})
        if state.leader in hit and found.pending is not None and not found.outcome:
            found = replace(found, outcome=ops.LOST, logged=False)
        return self.elected(found)

    def started(self, state: State) -> State:
        return self.elected(replace(state, killed=frozenset()))

    def elected(self, state: State) -> State:
        """With a majority one leads, and commits what its log has."""
        if not state.has_majority:
            return state if state.leader in state.active else replace(state, leader=-1)
        if state.leader not in state.active:
            state = replace(state, leader=next(each for each in state.active if not (state.beside and each == LAST)))
        return self.committed(state)

    def committed(self, state: State) -> State:
        if state.pending is None or not state.logged or state.outcome:
            return state
        after, (answer,) = self.controller.step(state.cluster, state.pending)
        outcome = self.refusal(state, state.pending, answer) or ops.APPLIED
        return replace(state, cluster=after, outcome=outcome, logged=False)

    def sent(self, state: State, request: KraftUpdate) -> Transition[State, ops.Action]:
        if state.leader < 0 or state.leader not in state.active:
            return Transition(replace(state, pending=request, outcome=ops.LOST), (ops.QuorumSent(ops.LOST, False),))
        after, (answer,) = self.controller.step(state.cluster, request)
        error = self.refusal(state, request, answer)
        if state.has_majority:
            if error:
                return Transition(state, (ops.QuorumRefused(error),))
            return Transition(
                replace(state, cluster=after, pending=None, outcome=""), (ops.QuorumSent(ops.APPLIED, True),)
            )
        if error:
            return Transition(replace(state, pending=request, outcome=error), (ops.QuorumSent(ops.PENDING, False),))
        return Transition(
            replace(state, pending=request, outcome="", logged=True), (ops.QuorumSent(ops.PENDING, True),)
        )

    def refusal(self, state: State, request: KraftUpdate, answer: object) -> str:
        """The first error of an answer; empty: the updates are applied."""
        if isinstance(answer, Failed):
            return answer.error
        errors = [each.error for each in getattr(answer, "results", ()) if each.error != "NONE"]
        return errors[0] if errors else ""

    def awaited(self, state: State) -> Transition[State, ops.Action]:
        if state.pending is None or not state.outcome:
            return Transition(state, (ops.QuorumSent(ops.PENDING, state.logged),))
        after = replace(state, pending=None, outcome="")
        if state.outcome in (ops.APPLIED, ops.LOST):
            return Transition(after, (ops.QuorumSent(state.outcome, state.outcome == ops.APPLIED),))
        return Transition(after, (ops.QuorumRefused(state.outcome),))

    # What is shown

    def views(self, state: State) -> ops.QuorumViews:
        nodes = tuple(
            ops.NodeView(
                node,
                self.epoch(state, node),
                None if state.beside and node == LAST else self.levels(state, node),
                self.declares(node, state.beside),
            )
            for node in self.shown(state)
        )
        return ops.QuorumViews(state.leader, state.has_majority, nodes)

    def shown(self, state: State) -> tuple[int, ...]:
        return state.active

    def epoch(self, state: State, node: int) -> int:
        return state.cluster.epoch

    def levels(self, state: State, node: int) -> tuple[Level, ...]:
        return tuple(Level(*each) for each in state.cluster.shown())
