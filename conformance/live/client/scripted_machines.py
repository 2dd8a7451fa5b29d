"""The machines of groups, but for what a script decides: leaders, target assignments, and ends of sessions."""

from collections.abc import Callable, Iterator

from kipcheck.conformance.live.client.other_members import SESSION_MS, Partitions, is_other
from kipcheck.conformance.live.server.consumer_group import LiveMachine
from kipcheck.conformance.protocols.consumer_group import model as consumer_group
from kipcheck.conformance.protocols.consumer_group.ops import Beat
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.rounds import Out
from kipcheck.conformance.protocols.group.model.state import Member as GroupMember, State


class LedCoordinator(Coordinator):
    """The coordinator of a release, but that a script chooses the leader: Kafka takes the first in the order of a hash
    map, and then the former one."""

    def __init__(self, machine: Coordinator, is_to_lead: Callable[[str], bool]) -> None:
        super().__init__(machine.rules, machine.config)
        self.is_to_lead = is_to_lead

    def keeps_leader(self, state: State, leader: GroupMember) -> bool:
        return super().keeps_leader(state, leader) and self.is_to_lead(leader.id)

    def choose_leader(self, state: State, candidates: tuple[GroupMember, ...]) -> GroupMember:
        return next((member for member in candidates if self.is_to_lead(member.id)), candidates[0])


class ScriptedCoordinator(LedCoordinator):
    """The same for a client that laws judge."""

    def unsupported(self, request: messages.Request) -> messages.Error | None:
        """The listener has refused versions that are not served, and the edition of all releases serves them all."""
        return None

    def protocol_missing(self, sync: messages.Sync) -> bool:
        return False

    def names_the_protocol(self, state: State, sync: messages.Sync) -> bool:
        """A law judges what a client names; it is not shut out of its group, where nothing else could be observed."""
        return True

    def newcomer(self, join: messages.Join, id: str) -> GroupMember:
        """No session ends by itself, also on a busy machine: a script says when a member is removed."""
        return super().newcomer(join, id)._replace(session_ms=SESSION_MS)

    def timeouts(self, member: GroupMember, join: messages.Join) -> tuple[int, int]:
        return SESSION_MS, super().timeouts(member, join)[1]

    def on_rebalance_timeout(self, state: State, out: Out) -> State:
        """Nor does a rebalance go on without the client."""
        return super().on_rebalance_timeout(state, out) if state.initial else state


class ScriptedConsumerGroup(LiveMachine):
    """The machine of consumer groups, in which a script chooses the target assignment of the client."""

    target: Callable[[], Partitions]

    def invalid(self, beat: Beat, epoch: int, owned: tuple[tuple[str, int], ...] | None) -> str | None:
        """A law judges heartbeats that brokers refuse; the client is not shut out for them."""
        return None

    def left_ms(self, member: consumer_group.Member) -> int:
        """No member is fenced by itself."""
        return SESSION_MS

    def shares(self, state: consumer_group.State) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
        target = tuple(sorted(self.target()))
        return ((member.id, () if is_other(member.id) else target) for member in state.members)
