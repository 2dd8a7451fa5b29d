"""A scripted broker for any number of clients, which a test starts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.client.other_members import clients, is_other
from kipcheck.conformance.live.client.scripted import HEARTBEAT_MS, ScriptedBroker
from kipcheck.conformance.live.client.scripted_machines import LedCoordinator
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.consumer_group import LiveMachine
from kipcheck.conformance.live.server.groups import Answer, Handler
from kipcheck.conformance.protocols.consumer_group import model as consumer_group
from kipcheck.conformance.protocols.consumer_group.rules import Config
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import Phase

TOPICS: Final = (("t", 3),)


class SharedBroker(ScriptedBroker):
    """Sessions and rebalances end as on a broker of the release, topics have the records that are written to them, and
    clients share the partitions as their group decides, until a step assigns some. Steps are about the group that a
    client joined last."""

    is_alone = False

    def __init__(
        self, edition: Edition, topics: Sequence[tuple[str, int]] = TOPICS, config: Iterable[str] = ()
    ) -> None:
        super().__init__(edition, HEARTBEAT_MS, topics, config)
        self.has_assigned = False
        """Whether a step chose the partitions of the client."""
        self.others.subscribed = tuple(name for name, _ in topics)

    def directed(self, machine: Coordinator) -> Coordinator:
        return LedCoordinator(machine, self.is_to_lead)

    def targeted(self, topics: Mapping[str, int], config: Config) -> LiveMachine:
        return _SharedConsumerGroup(self, config)

    def assign(self, partitions: tuple[int, ...], more: tuple[int, ...]) -> None:
        super().assign(partitions, more)
        self.has_assigned = True

    def _handlers(self) -> dict[str, Handler]:
        handlers = super()._handlers()
        listed = handlers["ListGroupsRequest"]

        def list_groups(request: Received, answer: Answer) -> None:
            """Each node lists the groups that it coordinates."""
            if self.nodes and request.reached != self.nodes[self.home]:
                return answer({"errorCode": 0, "groups": []})
            listed(request, answer)

        return {**handlers, "ListGroupsRequest": list_groups}

    def topics_changed(self) -> None:
        self.groups.know(self.topics.sizes)
        self.others.subscribed = tuple(self.topics.by_name)
        super().topics_changed()
        self.log.grew()

    @property
    def has_settled(self) -> bool:
        """Whether the group that a client joined last is stable, and its members have shown that they know it."""
        state = self.group.state
        return self.stable and (self.is_modern or (state.phase is Phase.STABLE and not state.owing))

    @property
    def members(self) -> int:
        """Of the group that a client joined last, without those of the script."""
        if (consumers := self.consumers) is not None:
            return sum(not is_other(each.id) for each in consumers.state.members)
        return len(clients(self.group.state))


class _SharedConsumerGroup(LiveMachine):
    """The machine of consumer groups, with the target assignment of a script."""

    def __init__(self, broker: SharedBroker, config: Config) -> None:
        super().__init__(broker.topics.sizes, config)
        self.broker = broker

    def shares(self, state: consumer_group.State) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
        """The first member has what a step assigns, the next one the rest."""
        if not self.broker.has_assigned:
            return super().shares(state)
        target = self.broker.target()
        parts = iter((target, self.broker.others.everything() - target))
        return ((each.id, tuple(sorted(next(parts, ()))) if not is_other(each.id) else ()) for each in state.members)
