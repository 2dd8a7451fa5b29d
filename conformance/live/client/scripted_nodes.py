"""The nodes of a cluster for one client alone: which of them coordinates, is down, or answers nothing for a while."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.groups import Answer
from kipcheck.conformance.live.server.topics import NODE, Topics
from kipcheck.conformance.protocols.client.terms import HEARTBEATS

COORDINATED: Final = frozenset({
    "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", *HEARTBEATS,
})  # fmt: skip
"""The requests that only the coordinator answers."""
QUEUED: Final = 1000
"""Requests on a connection whose node answers nothing for a while."""


class Nodes(Broker):
    """The first node leads all partitions."""

    def __init__(self, edition: Edition, topics: Topics, config: Iterable[str]) -> None:
        super().__init__(edition, topics, config)
        self.stable = False
        """Whether the client has shown that it is a stable member, since the last that was done to it."""
        self.nodes: Sequence[tuple[str, int]] = ()
        """The addresses of the nodes; none: one, that which a client connected to."""
        self.down: frozenset[int] = frozenset()
        """The nodes that are down."""
        self.silent_until: dict[tuple[str, int], float] = {}
        """Until when nodes answer nothing, in the time of the event loop."""
        self.home = 0
        """The node that coordinates the group."""

    def load(self) -> None:
        """Another node loads the groups, or the same one anew."""
        raise NotImplementedError

    def move(self) -> None:
        """The group is loaded by the other node."""
        if self.nodes:
            self.home = (self.home + 1) % len(self.nodes)
            self.load()

    def lose(self, nodes: Collection[tuple[str, int]]) -> None:
        """These nodes are down. The others, if there are any, take over what they coordinated and led; none: all are
        up again, and the groups are loaded if there was no other node."""
        was_all, self.down = len(self.down) == len(self.nodes), frozenset(map(self.nodes.index, nodes))
        left = [node for node in range(len(self.nodes)) if node not in self.down]
        if was_all or (left and self.home in self.down):
            self.home = self.home if was_all else left[0]
            self.load()
        self.stable = False
        for topic in self.topics.by_name.values() if left else ():
            for number in range(topic.partitions):
                if topic.leader_of(number).node in self.down:
                    topic.elect(number, left[0])
        self.log.grew()

    def fall_silent(self, nodes: Iterable[tuple[str, int]], seconds: float) -> None:
        """These nodes answer nothing for a while."""
        self.silent_until.update(dict.fromkeys(nodes, asyncio.get_running_loop().time() + seconds))
        self.stable = False

    def is_silent(self, request: Received, connection: Connection) -> bool:
        """Whether its node answers nothing at present; then the request is handled as soon as it does."""
        loop, until_s = asyncio.get_running_loop(), self.silent_until.get(request.reached, 0)
        if until_s <= loop.time():
            return False
        connection.window = QUEUED  # what follows is seen when it comes, and is answered in its order

        def handle() -> None:
            connection.window = 1
            self.received(request, connection)

        loop.call_at(until_s, connection.front.guard, connection, handle)
        return True

    def is_elsewhere(self, request: Received) -> bool:
        """Whether it is for the coordinator, and was sent to another node."""
        return bool(self.nodes) and request.reached != self.nodes[self.home] and request.api in COORDINATED

    def up(self, brokers: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those of an answer to Metadata that are up."""
        return [node for node in brokers if node["nodeId"] - NODE not in self.down]

    def addresses(self, request: Received) -> Sequence[tuple[str, int]]:
        return self.nodes or super().addresses(request)

    def find_coordinator(self, request: Received, answer: Answer) -> None:
        host, port = self.nodes[self.home] if self.nodes else request.reached
        at = {"nodeId": NODE + self.home, "host": host, "port": port}

        def placed(found: Mapping[str, Any]) -> dict[str, Any]:
            return {**found, **({} if found["errorCode"] else at)}

        def done(body: Mapping[str, Any]) -> None:
            if "coordinators" in body:
                return answer({**body, "coordinators": [placed(each) for each in body["coordinators"]]})
            answer(placed(body))

        super().find_coordinator(request, done)
