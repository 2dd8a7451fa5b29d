"""Plays a conversation of ``kraft-features`` with the controller of a running cluster, over the wire."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Refused, Replied, Unsupported
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.model.kraft import NONE
from kipcheck.conformance.protocols.features.ops import kraft
from kipcheck.conformance.protocols.features.ops.cluster import Outcome
from kipcheck.conformance.targets.protocol import observed
from kipcheck.conformance.targets.toolchains.kafka_nodes import NotFormatted
from kipcheck.conformance.wire.errors import Refused as Inexpressible

VERSIONS, QUORUM, NODES, CHANGES = "versions", "quorum", "nodes", "changes"
LIMITS: Final = {
    VERSIONS: "the broker does not announce the version, or the version cannot express the request",
    QUORUM: "kipcheck cannot start this quorum",
    NODES: "no client can make this node known, or gone",
    CHANGES: "kipcheck did not start the broker, and sends it only updates that it validates: add --allow-changes",
}
LOST: Final = Lost("the broker did not answer an earlier step")
UNREGISTERED: Final = "BROKER_ID_NOT_REGISTERED"
OWN: Final = 0
"""The number of a node that kipcheck started: broker and controller."""
Versions = dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster, as a client reaches it."""

    broker: Connections
    versions: Versions
    """By API key, of the broker."""
    controller: Connections | None = None
    """To the listener of controllers, where nodes register; None: it is not known."""
    controller_versions: Versions = field(default_factory=dict)
    may_change: bool = True
    """Whether updates may be applied."""
    id: str = ""


class Formats(Protocol):
    """Makes new clusters, one after the other."""

    @abstractmethod
    async def formatted(self, event: kraft.Format) -> Cluster:
        """Errors: ``Unplayable``, ``NotFormatted``, ``Broken``, ``Closed``, ``Garbled``."""
        ...

    @abstractmethod
    async def started(self, event: kraft.DeclareNode) -> bool:
        """Starts a controller of the quorum whose release supports exactly these levels. False: there is none.

        Errors: ``Unplayable``, ``Broken``, ``Closed``, ``Garbled``.
        """
        ...

    @abstractmethod
    async def failed_over(self) -> tuple[Cluster, int]:
        """Stops the leading controller, and starts it again; gives the cluster, and the controller that leads then.

        Errors: as ``started``.
        """
        ...

    @abstractmethod
    async def updated(self) -> None:
        """After an update: waits for controllers that register at the new level of metadata.version.

        Errors: as ``started``; ``Unplayable`` if a controller of another release leads, whose rules are others.
        """
        ...


class Unplayable(Exception):
    """The step cannot be sent; what follows it in its conversation would mean something else."""

    def __init__(self, limit: str, why: str = "") -> None:
        super().__init__(why or LIMITS[limit])
        self.limit = limit


@dataclass(slots=True)
class Conversation:
    cluster: Cluster | None
    """None: there is none until it is formatted."""
    formats: Formats | None = None
    """None: the cluster is there, and is not formatted."""
    registered: set[int] = field(default_factory=set)
    """Brokers that this conversation registered."""
    tainted: bool = False
    """Whether it left something that no request takes back."""

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step. After one that cannot be sent, none is sent."""
        found: list[Observation] = []
        for step in steps:
            if found and isinstance(found[-1], Unsupported | Died | Lost):
                found.append(found[-1] if isinstance(found[-1], Unsupported) else LOST)
                continue
            try:
                found.append(await self._step(step))
            except Unplayable as limit:
                found.append(Unsupported(str(limit), limit.limit))
            except Inexpressible as why:
                found.append(Unsupported(f"{LIMITS[VERSIONS]}: {why}", VERSIONS))
            except Closed as why:
                found.append(Died("crashed", str(why)))
            except Garbled as why:
                found.append(Died("garbled", str(why)))
        return tuple(found)

    async def _step(self, step: Step) -> Observation:
        event = kraft.OPERATIONS.event_of(step)
        if isinstance(event, kraft.Format):
            return await self._format(event)
        if self.cluster is None:
            raise Unplayable(QUORUM, "there is no cluster, as it was not formatted")
        match event:
            case kraft.DeclareNode():
                return await self._node(event, self.cluster)
            case kraft.KraftUpdate():
                return await self._update(event, self.cluster)
            case kraft.FailOver():
                return await self._fail_over()
            case kraft.ReadLevels():
                return _replied(levels_of(await requests.settled(self.cluster.broker, self.cluster.versions)))
            case _:
                assert_never(event)

    async def _format(self, event: kraft.Format) -> Observation:
        if self.formats is None:
            raise Unplayable(NODES, "the broker runs already, and is not formatted")
        try:
            self.cluster = await self.formats.formatted(event)
        except NotFormatted as why:
            self.cluster = None
            return Refused("NOT_FORMATTED", str(why))
        self.registered, self.tainted = set(), True
        return Replied(())

    async def _update(self, event: kraft.KraftUpdate, cluster: Cluster) -> Observation:
        low, high = cluster.versions.get(requests.UPDATE_FEATURES, (0, -1))
        if not low <= event.version <= high:
            raise Unplayable(VERSIONS, f"the broker announces versions {low} to {high} of UpdateFeatures")
        if not cluster.may_change and not (event.validate_only and event.version):
            raise Unplayable(CHANGES)
        found = await requests.update(cluster.broker, event.version, event.updates, event.validate_only)
        if self.formats is not None:
            await self.formats.updated()
        if found.error != NONE:
            return Refused(found.error, found.why)
        rows = sorted(found.results, key=lambda each: each.feature)
        return _replied(kraft.Results(tuple(Outcome(each.feature, each.error) for each in rows)))

    async def _node(self, event: kraft.DeclareNode, cluster: Cluster) -> Observation:
        if cluster.controller is None:
            raise Unplayable(NODES)
        if event.kind == "controller":
            return await self._controller(event, cluster, cluster.controller)
        if event.node == OWN:
            raise Unplayable(NODES, f"broker {OWN} is the one that runs")
        if event.node in self.registered or event.supported is None:
            gone = await requests.unregister_broker(cluster.broker, event.node)
            if gone.error not in (NONE, UNREGISTERED):
                return Refused(gone.error, gone.why)
            self.registered.discard(event.node)
        if event.supported is None:
            return Replied(())
        version = cluster.controller_versions[requests.BROKER_REGISTRATION][1]
        found = await requests.register_broker(cluster.controller, version, cluster.id, event.node, event.supported)
        if found.error != NONE:
            return Refused(found.error, found.why)
        self.registered.add(event.node)
        return Replied(())

    async def _controller(self, event: kraft.DeclareNode, cluster: Cluster, controller: Connections) -> Observation:
        if self.formats is not None and await self.formats.started(event):
            self.tainted = True
            return Replied(())
        if event.supported is None or event.node == OWN:
            raise Unplayable(NODES, "a controller that has registered stays registered")
        if requests.CONTROLLER_REGISTRATION not in cluster.controller_versions:
            raise Unplayable(VERSIONS, "the controllers of this release do not register")
        found = await requests.register_controller(controller, event.node, event.supported)
        if found.error != NONE:
            return Refused(found.error, found.why)
        self.tainted = True
        return Replied(())

    async def _fail_over(self) -> Observation:
        if self.formats is None:
            raise Unplayable(CHANGES, "kipcheck did not start the cluster, and stops no controller of it")
        self.cluster, leader = await self.formats.failed_over()
        return _replied(kraft.Leads(leader))


def levels_of(picture: Picture) -> kraft.Levels:
    found = {name: high for name, (_, high) in picture.finalized.items() if high}
    return kraft.Levels(picture.epoch, tuple(kraft.Level(*each) for each in sorted(found.items())))


def _replied(answer: kraft.Results | kraft.Levels | kraft.Leads) -> Observation:
    return observed(kraft.OPERATIONS.answer_of([answer]))
