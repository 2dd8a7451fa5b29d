"""One consumer group (KIP-848) in real time: the machine of consumer groups, with time from the event loop."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.server.classic_group import ENTRY
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup, Member, State
from kipcheck.conformance.protocols.consumer_group.ops import REBALANCE_MS, Answered, Beat
from kipcheck.conformance.protocols.consumer_group.rules import Config
from kipcheck.conformance.protocols.reconciled.terms import Partitions, Rejected, Says


class LiveMachine(ConsumerGroup):
    """The machine with the rebalance timeout of each member."""

    def __init__(self, topics: Mapping[str, int], config: Config) -> None:
        super().__init__(topics, config=config)
        self.rebalance_ms: dict[str, int] = {}

    def is_late(self, member: Member) -> bool:
        return self.left_ms(member) <= 0

    def left_ms(self, member: Member) -> int:
        """Time until the member is fenced, if it does nothing."""
        silent = self.config.session_ms - member.silent_ms
        revoking = self.rebalance_ms.get(member.id, REBALANCE_MS) - member.revoking_ms
        return min(silent, revoking) if member.pending else silent


class LiveConsumerGroup:
    def __init__(self, machine: LiveMachine, weighed: Callable[[int], None] = lambda weight: None) -> None:
        """``weighed`` is called with ``bytes`` when they may have changed."""
        self.machine = machine
        self.state: State = self.machine.initial()
        self.offsets: dict[tuple[str, int], tuple[int, int, str]] = {}
        """Offset, leader epoch and metadata by topic and partition."""
        self._weighed = weighed
        self._loop = asyncio.get_running_loop()
        self._at_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def heartbeat(
        self,
        member: str,
        epoch: int,
        topics: Iterable[str] | None,
        owned: Partitions | None,
        rebalance_ms: int = -1,
    ) -> Answered | Rejected:
        """``topics``, ``owned``: None if omitted; ``rebalance_ms``: -1 if omitted."""
        self._pass()
        if rebalance_ms > 0:
            known = self.machine.rebalance_ms
            kept = {each.id: known[each.id] for each in self.state.members if each.id in known}
            self.machine.rebalance_ms = {**kept, member: rebalance_ms}
        says = Says.JOIN if epoch == 0 else Says.LEAVE if epoch == -1 else Says.STAY
        beat = Beat(member, says, 0, None if topics is None else tuple(sorted(topics)))
        state, (answer,) = self.machine.heartbeat(self.state, beat, epoch, owned)
        self.state = state._replace(clients=())  # what clients know does not concern a broker
        self._watch()
        self._weighed(self.bytes)
        return answer

    def commit(self, offsets: Mapping[tuple[str, int], tuple[int, int, str]]) -> None:
        self.offsets.update(offsets)
        self._weighed(self.bytes)

    @property
    def bytes(self) -> int:
        """That the group keeps, about."""
        members = sum(
            ENTRY * (2 + len(each.topics) + len(each.assigned)) + len(each.id) + sum(map(len, each.topics))
            for each in self.state.members
        )
        return members + sum(ENTRY + len(metadata) for _, _, metadata in self.offsets.values())

    def commit_error(self, member: str, epoch: int) -> int:
        """The error of a commit or fetch of offsets by a member, or by a client without a member id and epoch.

        Source: ``ConsumerGroup.validateOffsetCommit``.
        """
        self._pass()
        if epoch < 0 and not self.state.members:
            return 0
        found = self.state.member(member)
        if found is None:
            return KafkaError.UNKNOWN_MEMBER_ID
        return 0 if epoch == found.epoch else KafkaError.STALE_MEMBER_EPOCH

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _pass(self) -> None:
        """Applies the time since the last event."""
        now = self._loop.time()
        ms = int((now - self._at_s) * 1000)
        self._at_s += ms / 1000
        if ms:
            self.state = self.machine.passed(self.state, ms)

    def _watch(self) -> None:
        """Sets the timer to the next moment at which a member may be late."""
        self.close()
        left = [self.machine.left_ms(each) for each in self.state.members]
        self._timer = self._loop.call_later((min(left) + 1) / 1000, self._fire) if left else None

    def _fire(self) -> None:
        self._pass()
        self._watch()
        self._weighed(self.bytes)
