"""The operations of a controller of feature versions with ZooKeeper, as released, and its answers."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, named, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.features.ops.cluster import SUPPORTED, Finalized, Outcome, Supported
from kipcheck.conformance.protocols.features.ops.kraft import UPDATE, TypedUpdate

PLACE = 40

InterBroker: TypeAlias = Literal["2.6", "2.7", "3.3"]
"""inter.broker.protocol.version: below the migration version; at it; from the second form of the node on."""


@answer()
@dataclass(frozen=True, slots=True)
class ZkResults:
    results: tuple[Outcome, ...]


@answer("rejected")
@dataclass(frozen=True, slots=True)
class ZkTopLevel:
    """A response with a top-level error."""

    error: Annotated[str, named("class")]


@answer("rejected", class_="FEATURE_CACHE_UPDATE", message="broker {broker} has to stop")
@dataclass(frozen=True, slots=True)
class ZkStops:
    """A broker exits, because of what it read. It is not an error code of Kafka: the broker gets no response."""

    broker: int


@answer()
@dataclass(frozen=True, slots=True)
class ZkNode:
    """/feature."""

    exists: bool
    version: int
    """Of its JSON; 0 where it does not exist."""
    enabled: bool
    epoch: int
    """Its version in ZooKeeper; -1 where it does not exist."""
    finalized: tuple[Finalized, ...]


@answer()
@dataclass(frozen=True, slots=True)
class ZkFeatures:
    """The answer of a broker to ApiVersions."""

    epoch: int
    finalized: tuple[Finalized, ...]


@answer()
@dataclass(frozen=True, slots=True)
class ZkRegistration:
    """The node of a live broker in /brokers/ids."""

    exists: bool
    version: int
    """Of its JSON; 0 where it does not exist."""
    supported: tuple[Supported, ...]


Action: TypeAlias = ZkResults | ZkTopLevel | ZkStops | ZkNode | ZkFeatures | ZkRegistration


@operation(
    "zk-controller", "broker", "controller at {inter_broker}", examples="controller at 2.7",
    sentence="starts as the controller, with inter-broker version {inter_broker}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class StartController:
    """A controller starts, and brings /feature in order."""

    inter_broker: Annotated[InterBroker, about("its inter-broker version"), typical("2.7", "2.6", "3.3")]


@operation(
    "zk-update", "operator", "zk-update v{version}[ {updates}]{validate_only: validate}",
    examples="zk-update v0 a:1,b:0!; zk-update v1 a:1 validate",
    sentence="UpdateFeatures v{version}: {updates}{validate_only:, validate only}", accepted=ZkResults,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ZkUpdate:
    """A request for updates; in version 0, a downgrade type stands for the flag allowDowngrade."""

    version: Annotated[int, about("of UpdateFeatures"), typical(0, 1)]
    updates: Annotated[tuple[Annotated[TypedUpdate, UPDATE], ...], about("the updates")] = ()
    validate_only: Annotated[bool, about("validateOnly, which these controllers do not read")] = False


@operation("zk-delete-node", "operator", "delete node", sentence="deletes /feature in ZooKeeper")
@dataclass(frozen=True, slots=True)
class DeleteNode:
    """An operator deletes /feature, by another tool."""


@operation(
    "zk-read", "broker", "read {broker}", examples="read 0", sender="broker {broker}", sentence="reads /feature",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ReadFeature:
    """A broker starts, or is notified of /feature, and reads it."""

    broker: Annotated[int, about("its number"), typical(range(2))]


@operation("zk-features", "client", "zk-features {broker}", examples="zk-features 0", accepted=ZkFeatures)
@dataclass(frozen=True, slots=True)
class AskZkFeatures:
    """A client sends ApiVersions to a broker."""

    broker: Annotated[int, about("its number"), typical(range(2))]


@operation("zk-node", "operator", "zk-node", accepted=ZkNode)
@dataclass(frozen=True, slots=True)
class ReadZkNode:
    """/feature is read from ZooKeeper."""


@operation(
    "zk-write-node", "operator", "write node{disabled: disabled}[ {features}]",
    examples="write node a:1-2; write node disabled", sentence="writes /feature in ZooKeeper",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class WriteNode:
    """A newer broker, or another tool, writes /feature in its first form. An incompatible controller stops."""

    features: Annotated[
        tuple[Annotated[Supported, SUPPORTED], ...], about("the finalized features, with both levels")
    ] = ()
    disabled: Annotated[bool, about("whether its status is disabled")] = False


@operation(
    "zk-declare", "broker", "declare {broker}[ {supported}]", examples="declare 0 a:1-2; declare 1",
    sender="broker {broker}", sentence="registers in ZooKeeper with features",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class DeclareFeatures:
    """A broker registers, with the features that its release is to have; those of broker 0 are the controller's."""

    broker: Annotated[int, about("its number"), typical(range(2))]
    supported: Annotated[tuple[Annotated[Supported, SUPPORTED], ...], about("the supported levels")] = ()


@operation(
    "zk-registration", "operator", "zk-registration {broker}", examples="zk-registration 0", accepted=ZkRegistration,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ReadRegistration:
    """The registration of a broker that has read /feature is read from ZooKeeper."""

    broker: Annotated[int, about("its number"), typical(range(2))]


Event: TypeAlias = (
    StartController | ZkUpdate | DeleteNode | ReadFeature | AskZkFeatures | ReadZkNode
    | WriteNode | DeclareFeatures | ReadRegistration
)  # fmt: skip
OPERATIONS: Operations[Event, Action] = Operations(
    "zookeeper-features",
    Role.CONTROLLER,
    (
        StartController, ZkUpdate, DeleteNode, ReadFeature, AskZkFeatures, ReadZkNode,
        WriteNode, DeclareFeatures, ReadRegistration,
    ),
    sample="controller at 2.7; zk-node",
)  # fmt: skip
