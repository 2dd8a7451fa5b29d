"""What the heartbeats of a share group and their answers say of its members, step by step."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.protocols.declare.real_time import stated_settings
from kipcheck.conformance.protocols.declare.trace import answered_steps, payload
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.reconciled.log_laws import served
from kipcheck.conformance.protocols.reconciled.log_ops import Reload
from kipcheck.conformance.protocols.reconciled.trace import HeartbeatStep, KnownClient
from kipcheck.conformance.protocols.share_group import ops
from kipcheck.conformance.protocols.share_group.rules import DEFAULT, Config


@dataclass(frozen=True, slots=True)
class Client(KnownClient):
    topics: tuple[str, ...] = ()
    """Those that it subscribes to."""


@dataclass(frozen=True, slots=True)
class Group:
    """What is known of the group from the answers so far."""

    clients: Mapping[str, Client] = field(default_factory=dict)
    quiet_rounds: Mapping[str, int] = field(default_factory=dict)
    """Client -> its accepted heartbeats since the last change, and since time for a target assignment passed."""
    waited: bool = False
    """That time has passed since the last change."""
    config: Config = DEFAULT

    def having(self, client: Client) -> Self:
        return replace(self, clients={**self.clients, client.name: client})


@dataclass(frozen=True, slots=True)
class Heartbeat(HeartbeatStep[ops.Event, Group]):
    @property
    def beat(self) -> ops.Beat:
        assert isinstance(self.request, ops.Beat)
        return self.request

    @property
    def client(self) -> Client:
        name = self.beat.client
        return self.before.clients.get(name) or Client(name, terms.Memory(name))

    @property
    def answered_epoch(self) -> int | None:
        """None if the answer has none."""
        epoch = self.answer.get("epoch")
        return epoch if type(epoch) is int else None

    @property
    def given(self) -> terms.Partitions | None:
        return self.assigned("assignment")

    def known_after(self) -> Group:
        known = self.before
        if isinstance(self.request, Reload):
            clients = {name: client.renewed() for name, client in known.clients.items()}
            return replace(known, clients=clients, quiet_rounds={}, waited=False)
        if isinstance(self.request, ops.Pass):
            clients = {name: self._older(client, self.request.ms) for name, client in known.clients.items()}
            lost = any(clients[name].expired != client.expired for name, client in known.clients.items())
            waits = self.request.ms >= known.config.interval_ms
            return replace(known, clients=clients, waited=waits and not lost, quiet_rounds={})
        if not self.accepted:
            if self.error == terms.FENCED_MEMBER_EPOCH:
                return known.having(replace(self.client, fenced=True))
            gone = self.epoch > 0 and self.error == terms.UNKNOWN_MEMBER_ID
            removed = known.having(Client(self.beat.client, self.client.memory))
            return replace(removed, quiet_rounds={}, waited=False) if gone else known
        after = self._client_after()
        changes = self.epoch <= 0 or after.topics != self.client.topics
        if changes or not known.waited:
            return replace(known.having(after), quiet_rounds={}, waited=False)
        rounds = known.quiet_rounds.get(after.name, 0) + 1
        return replace(known.having(after), quiet_rounds={**known.quiet_rounds, after.name: rounds})

    def _older(self, client: Client, ms: int) -> Client:
        return client.older(ms, self.before.config.session_ms, self.before.config.session_ms)

    def _client_after(self) -> Client:
        before = self.client
        if self.epoch == terms.LEAVING:
            return Client(before.name, before.memory.after(self.epoch, None))
        memory = before.memory.after(self.epoch if self.answered_epoch is None else self.answered_epoch, self.given)
        newer = memory.epoch != before.memory.epoch
        topics = before.topics if self.beat.topics is None else self.beat.topics
        return Client(
            before.name, memory, True, previous=before.memory.epoch if newer else before.previous, topics=topics
        )  # fmt: skip


@cached_on_history
def heartbeats(history: History) -> tuple[Heartbeat, ...]:
    """The heartbeats up to the first step without an answer: after that the state of the group is not known."""

    def read(op: Op, known: Group) -> Heartbeat:
        return Heartbeat(op, ops.OPERATIONS.event_of(op.step), payload(op), known)

    begun = Group(config=replace(DEFAULT, **stated_settings(history)))
    return tuple(step for step in answered_steps(served(history), begun, read) if isinstance(step.request, ops.Beat))
