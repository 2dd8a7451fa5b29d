"""A product machine of consumers, their coordinator, and a network that delays and loses messages.

Each member has one connection, on which requests arrive in order; receiving an answer is a move of its own. After an
event, a member polls until nothing is left to do. Processes crash and restart. A timer of the coordinator expires
without cost if it does not wait for a live member; otherwise it takes from a budget, since a network is faster than a
session timeout. A heartbeat is sent only if its answer carries an error: other heartbeats change nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.machines.product import COORDINATOR_INDEX, Did, Law, Sent, StepLaw
from kipcheck.conformance.protocols.cluster.components import (
    CRASHES,
    IDS,
    LATE,
    LOSSES,
    MANY,
    NO_SCOPE,
    POLLS,
    REPEATS,
    ROUNDS,
    Centre,
    Does,
    From,
    Message,
    Move,
    Node,
    Part,
    Rolls,
    Scope,
    Told,
    aged_blob,
    aged_node,
)
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.coordinator_node import (
    NUMBERS,
    Aged,
    Answer,
    Ask,
    CoordinatorComponent,
    CoordinatorNode,
    Fire,
    Store,
    describe,
    number,
)
from kipcheck.conformance.protocols.group.model.state_bounds import ids
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.messages import HEARTBEAT, RETRY, Event, UserEvent
from kipcheck.conformance.protocols.member.model.state import Pause, Phase, State
from kipcheck.conformance.protocols.member.ops import Close, Disconnected, Poll, Raised, Subscribe

MemberOutcome: TypeAlias = tuple[Node, tuple[Sent[Message], ...], list[UserEvent]]


class Cluster:
    """The product machine. ``consumers``: kind of member -> its consumer."""

    max_rounds = ROUNDS
    """Up to which number generations are counted since the last disturbance."""

    def __init__(
        self,
        coordinator: Coordinator,
        consumers: Mapping[str, Consumer],
        members: tuple[str, ...],
        scope: Scope = NO_SCOPE,
        kinds: tuple[str, ...] = (),
        laws: "tuple[Law[Any] | StepLaw[Any, Any, Any], ...]" = (),
        adapted: Callable[[messages.Request], messages.Request] = lambda request: request,
    ) -> None:
        """``kinds``: of the members that start, in order. ``adapted``: converts a request to a version that the
        brokers support."""
        self.coordinator = coordinator
        self.consumers = consumers
        self.names = ("coordinator", *members)
        self.scope = scope
        self.kinds = kinds
        self.laws = laws
        self.adapted = adapted
        budgets = {CRASHES: scope.crashes, LOSSES: scope.losses, LATE: scope.late, REPEATS: scope.repeats}
        self._last: tuple[tuple[int, Move | None], Node, MemberOutcome] = (-1, None), Node(), (Node(), (), [])
        self.hub = CoordinatorComponent(
            coordinator, coordinator.rules.sync_deadline, len(members), budgets, newest=scope.newest, blob=aged_blob
        )

    @property
    def is_bounded(self) -> bool:
        """Whether generations and counters are bounded, for a search."""
        return self.scope.newest < MANY

    def initial(self) -> tuple[Part, ...]:
        count = len(self.names) - 1
        nodes = [Node(kind, starts=True) for kind in self.kinds]
        nodes += [Node()] * (count - len(nodes))
        return (Centre(self.hub.initial(), (frozenset(),) * count), *nodes)

    # Moves

    def moves(self, index: int, part: Part, /) -> Iterator[Move]:
        if isinstance(part, Centre):
            for move in self.hub.moves(part.hub):
                if self.cost(part, move) == "" or part.hub.spent(LATE) is not None:
                    yield move
            if part.rolled < len(self.scope.script) and self.is_stable(part):
                yield Rolls()
            return
        for verb in (*self.ordinary_moves(part), *self.fault_moves(part)):
            yield Does(verb)

    def ordinary_moves(self, node: Node) -> Iterator[str]:
        """Moves without a fault."""
        if node.state is None:
            if node.starts:
                yield "starts"
            return
        if node.inbox is not None:
            yield "hears"
        elif node.out and not node.waits:
            yield "arrives"
        elif self.has_pending_news(node):
            yield "beats"
        if node.state.pause is not Pause.NO:
            yield "retries"

    def has_pending_news(self, node: Node) -> bool:
        """Whether a heartbeat could carry news: not for a member that is about to rejoin anyway."""
        state = node.state
        if node.busy or state is None or state.rejoin or state.pause is Pause.SEARCH:
            return False
        return self.consumers[node.kind].is_beating(state)

    def fault_moves(self, node: Node) -> Iterator[str]:
        if node.state is not None:
            yield "crashes"
            if node.busy:
                yield "breaks"
            if node.out and not node.waits and node.inbox is None:
                yield "repeats"

    def cost(self, centre: Centre, move: Fire | Store) -> str:
        """The budget that a move takes from: ``late`` for a timer that waits for a live member, else none."""
        if isinstance(move, Store):
            return ""
        group, (kind, member) = centre.group, (move.timer.kind, move.timer.member)
        match kind:
            case "rebalance" if group.initial:
                return ""
            case "rebalance":
                awaited = [*(each.id for each in group.members if each.join is None), *group.pending]
            case "sync":
                awaited = [*group.owing]
            case _:
                awaited = [member]
        return LATE if any(map(centre.has_process, awaited)) else ""

    def is_stable(self, centre: Centre) -> bool:
        """Whether the group is stable and has all running members, which is when the operator continues.

        With ``scope.patient`` the group must have all members.
        """
        group = centre.group
        all_joined = all(
            any(map(group.member, known_ids)) for known_ids in centre.held if known_ids or self.scope.patient
        )
        present = group.phase is messages.Phase.STABLE and not group.owing and not group.pending
        return present and all_joined and all(centre.has_process(each.id) for each in group.members)

    # The coordinator

    def act(self, index: int, part: Part, move: Move, /) -> Did[Part, Message]:
        if isinstance(part, Centre):
            return self.acted(part, move)
        after, sends, _ = self.member_outcome(index, part, move)
        return Did(after, sends)

    def acted(self, centre: Centre, move: Move) -> Did[Part, Message]:
        if isinstance(move, Rolls):
            member, kind = self.scope.script[centre.rolled]
            return Did(self.after_stop(centre, member)._replace(rolled=centre.rolled + 1), (Sent(member, Told(kind)),))
        assert isinstance(move, Fire | Store)
        cost = self.cost(centre, move)
        hub = centre.hub.spent(cost)
        assert hub is not None, "moves are enabled only within the budget"
        did = self.hub.act(hub, move)
        return self.done(centre, did, disturbed=not (isinstance(move, Fire) and centre.group.initial))

    def after_stop(self, centre: Centre, index: int) -> Centre:
        """The state after a process was stopped: the coordinator's timers need not wait for it any more."""
        known_ids = tuple([frozenset() if at == index else each for at, each in enumerate(centre.held, 1)])
        return centre._replace(held=known_ids, rounds=0)

    def done(self, centre: Centre, did: Did[CoordinatorNode, Any], disturbed: bool) -> Did[Part, Message]:
        """Updates ids, kinds and rounds after the coordinator's transition."""
        known_ids = list(centre.held)
        before = set(ids(centre.group))
        for to, message in did.sends:
            if (
                isinstance(message, Answer)
                and isinstance(message.reply, messages.Joined)
                and message.reply.member not in before
            ):
                # Ids that existed before have an owner already; their answer may be for a process that is gone.
                known_ids[to - 1] = known_ids[to - 1] | ({message.reply.member} - {""})
        group = did.part.group
        known = frozenset(ids(group))
        has_aged = any(isinstance(sent.message, Aged) for sent in did.sends)
        formed = group.generation != centre.group.generation or has_aged
        rounds = min((0 if disturbed else centre.rounds) + formed, self.max_rounds)
        kinds = tuple([each for each in centre.kinds if each[0] in known])
        return Did(centre._replace(hub=did.part, held=tuple(known_ids), kinds=kinds, rounds=rounds), did.sends)

    def take(self, index: int, part: Part, message: Message, /) -> Did[Part, Message] | None:
        if isinstance(part, Centre):
            assert isinstance(message, From)
            return self.handle_request(part, message)
        return Did(self.reached(index, part, message))

    def handle_request(self, centre: Centre, message: From) -> Did[Part, Message] | None:
        by, request = message.by, message.ask.request
        did = self.hub.take(centre.hub, message.ask)
        if did is None or (message.only_news and _has_no_news(did)):
            return None
        known_ids = list(centre.held)
        if request is None:
            known_ids[by - 1] = frozenset({message.keeps} if message.keeps else ())
        elif isinstance(request, messages.Join):
            known_ids[by - 1] = frozenset({request.member} - {""})
        after = self.done(centre._replace(held=tuple(known_ids)), did, self.restarts_count(centre, message))
        assert isinstance(after.part, Centre)
        if not isinstance(request, messages.Join):
            return after
        # A member with a new id does not know it yet while the join phase goes on, but counts as alive.
        before, now = set(ids(centre.group)), set(ids(after.part.group))
        here = (after.part.held[by - 1] | (now - before)) & now
        known_ids = list(after.part.held)
        known_ids[by - 1] = known_ids[by - 1] | here
        kinds = {**dict(after.part.kinds), **dict.fromkeys(here, message.kind)}
        return Did(after.part._replace(held=tuple(known_ids), kinds=tuple(sorted(kinds.items()))), after.sends)

    def restarts_count(self, centre: Centre, message: From) -> bool:
        """Whether the message is a disturbance, after which the group may rebalance again."""
        request = message.ask.request
        if isinstance(request, messages.Join):
            return bool(message.ask.cost) or centre.group.member(request.member) is None
        return request is None or bool(message.ask.cost) or isinstance(request, messages.Leave)

    # Members

    def reached(self, index: int, node: Node, message: Message) -> Node:
        match message:
            case Aged(by):
                return aged_node(node, by)
            case Answer(reply):
                if message.serial != node.serial or not node.waits:
                    return node
                node = node._replace(waits=False, inbox=reply)
                closed = node.state is not None and node.state.phase is Phase.CLOSED
                return self.after_exit(node._replace(inbox=None)) if closed else node
            case Told(kind, topics):
                return self.restarted_as(node, kind, topics)[0]
            case From():
                raise AssertionError("only the coordinator receives requests")

    def restarted_as(self, node: Node, kind: str, topics: tuple[str, ...]) -> tuple[Node, list[UserEvent]]:
        """The member stops, and starts again as ``kind``; not, if ``kind`` is empty."""
        node = node._replace(then=(kind, topics))
        if node.state is None:
            return self.after_exit(node), []
        after, seen = self.run(node, Close())
        return self.after_exit(after), seen

    def after_exit(self, node: Node) -> Node:
        """A closed process without requests in flight ends, and its successor, if any, starts."""
        if node.state is not None and (node.state.phase is not Phase.CLOSED or node.busy):
            return node
        if node.then is None:
            return node._replace(state=None)
        kind, topics = node.then
        started = bool(kind)
        return Node(kind or node.kind, topics, starts=started, serial=node.serial)

    def member_outcome(self, index: int, node: Node, move: Move) -> MemberOutcome:
        """The member's next state, its messages, and the events that its user observes."""
        # An observer of a move requests its outcome a second time.
        asked, before, answer = self._last
        if asked != (index, move) or before is not node:
            answer = self._member_outcome(index, node, move)
            self._last = (index, move), node, answer
        return answer

    def _member_outcome(self, index: int, node: Node, move: Move) -> MemberOutcome:
        assert isinstance(move, Does)
        match move.verb:
            case "starts":
                return *self.started(node), []
            case "crashes":
                after = Node(
                    node.kind, node.topics, serial=self.next(node), starts=not self.scope.stays_away, then=node.then
                )
                if node.then is not None:
                    after = self.after_exit(after)
                return after, self.fault_message(index, node, CRASHES, ""), []
            case "breaks":
                lost = node._replace(out=(), waits=False, inbox=None, serial=self.next(node))
                after, seen = self.run(lost, Disconnected())
                return self.after_exit(after), self.fault_message(index, node, LOSSES, node.id), seen
            case "retries":
                after, seen = self.run(node, messages.Fired(RETRY))
                return after, (), seen
            case "hears":
                assert node.inbox is not None
                after, seen = self.run(node._replace(inbox=None), self.answer_event(node.inbox))
                return self.after_exit(after), self.fault_message(index, node, "", "") if after.failed else (), seen
            case "beats":
                assert node.state is not None
                state, actions = self.consumers[node.kind].step(node.state, messages.Fired(HEARTBEAT))
                (beat,) = [each for each in actions if isinstance(each, messages.Heartbeat)]
                return (
                    node._replace(state=state, waits=True),
                    self.request_message(index, node, beat, only_news=True),
                    [],
                )
        request = node.out[0]
        if move.verb == "repeats":
            return node, self.request_message(index, node, request, REPEATS), []
        return node._replace(out=node.out[1:], waits=True), self.request_message(index, node, request), []

    def answer_event(self, reply: messages.Reply) -> Event:
        assert isinstance(reply, messages.Joined | messages.Synced | messages.Beat | messages.Left), (
            "members send no other requests"
        )
        return reply

    def started(self, node: Node) -> tuple[Node, tuple[Sent[Message], ...]]:
        consumer = self.consumers[node.kind]
        state, _ = consumer.step(consumer.initial(), Subscribe(node.topics))
        after, _ = self.run(node._replace(state=state, starts=False, failed="", then=None), Poll())
        return after, ()

    def next(self, node: Node) -> int:
        return (node.serial + 1) % NUMBERS if node.busy else node.serial

    def fault_message(self, index: int, node: Node, cost: str, keeps: str) -> tuple[Sent[Message], ...]:
        return (Sent(COORDINATOR_INDEX, From(index, Ask(None, (), cost), node.kind, keeps)),)

    def request_message(
        self, index: int, node: Node, request: messages.Request, cost: str = "", only_news: bool = False
    ) -> tuple[Sent[Message], ...]:
        joins = isinstance(request, messages.Join)
        pool = tuple([each for each in pools(self.names[index]) if joins and each != node.id])
        numbered = replace(self.adapted(request), request=number(index, node.serial))
        return (Sent(COORDINATOR_INDEX, From(index, Ask(numbered, pool, cost), node.kind, only_news=only_news)),)

    def run(self, node: Node, event: Event) -> tuple[Node, list[UserEvent]]:
        """Applies an event to the consumer, then polls until nothing is left to do."""
        assert node.state is not None
        consumer = self.consumers[node.kind]
        state, actions = consumer.step(node.state, event)
        found = [*actions]
        polls = 0
        while consumer.wants_poll(state) and polls < POLLS:
            polls += 1
            state, actions = consumer.step(state, Poll())
            found += actions
            if any(isinstance(each, Raised) for each in actions):
                break
        seen = [each for each in found if isinstance(each, UserEvent)]
        raised = [each.error for each in seen if isinstance(each, Raised)]
        if raised:
            return Node(node.kind, node.topics, serial=self.next(node), failed=raised[0]), seen
        requests = tuple([each for each in found if isinstance(each, messages.Join | messages.Sync | messages.Leave)])
        return node._replace(state=self.trimmed(state), out=(*node.out, *requests)), seen

    def trimmed(self, state: State) -> State:
        """The consumer's state without fields that do not affect this model."""
        state = replace(state, given=(), given_in=-1)
        return replace(state, incompatible=state.incompatible % 2) if self.is_bounded else state

    def describe(self, value: Move | Message, /) -> str:
        match value:
            case Does(verb):
                return "" if verb in ("hears", "arrives") else verb
            case Rolls():
                return ""
            case Told(kind, _):
                return f"stop, and start as {kind}" if kind else "stop"
            case From(_, ask):
                return describe(ask)
            case _:
                return describe(value)


def _has_no_news(did: Did[CoordinatorNode, Any]) -> bool:
    replies = [sent.message.reply for sent in did.sends if isinstance(sent.message, Answer)]
    return all(isinstance(each, messages.Beat) and each.error is messages.Error.NONE for each in replies)


def pools(name: str) -> Iterable[str]:
    return (f"{name}{number}" for number in range(1, IDS + 1))
