"""The operations of a feature controller in KIP-584's draft, and its answers."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, named, typical
from kipcheck.conformance.core.values.case import Role

PLACE = 10

INCOMPATIBLE = "INCOMPATIBLE_BROKER"
"""Error class for a broker that has to stop. It is not an error code of Kafka: the broker gets no response."""

Number: TypeAlias = Annotated[int, about("its number"), typical(range(3))]


@answer()
@dataclass(frozen=True, slots=True)
class Applied:
    epoch: int


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Rejected:
    error: Annotated[str, named("class")]


@answer("rejected", class_=INCOMPATIBLE, message="broker {broker} has to stop")
@dataclass(frozen=True, slots=True)
class ShutDown:
    """The order to a broker to stop, because it does not support the finalized level."""

    broker: int


@answer()
@dataclass(frozen=True, slots=True)
class Told:
    level: int
    epoch: int


Action: TypeAlias = Applied | Rejected | ShutDown | Told


@operation(
    "update", "operator", "update {level}{allow_downgrade:!}",
    examples="update 2; update 1!",
    sentence="update to level {level}{allow_downgrade:, downgrade allowed}",
    accepted=Applied,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Update:
    """The operator requests that a level be finalized."""

    level: Annotated[int, about("the level; below 1 deletes the feature"), typical(range(-1, 5))]
    allow_downgrade: Annotated[bool, about("the allowDowngrade flag")] = False


@operation(
    "broker-up", "broker", ("up {broker} {low}-{high}", "up {broker} -"),
    examples="up 0 1-3; up 1 -",
    sender="broker {broker}",
    sentence=("comes up, supports {low} to {high}", "comes up, does not know the feature"),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class BrokerUp:
    """A broker registers; with the number of a live broker, it replaces that one.

    It is rejected if it has to stop.
    """

    broker: Number
    low: Annotated[int | None, about("lowest supported level; null if the broker does not know the feature"),
                   typical(range(1, 3))]  # fmt: skip
    high: Annotated[int | None, about("highest supported level; null if the broker does not know the feature"),
                    typical(range(2, 4))]  # fmt: skip


@operation("broker-down", "broker", "down {broker}", examples="down 0", sender="broker {broker}", sentence="goes down")
@dataclass(frozen=True, slots=True)
class BrokerDown:
    """A broker goes down."""

    broker: Number


@operation("restart", "controller", "restart", sentence="all controllers restart")
@dataclass(frozen=True, slots=True)
class Restart:
    """All controllers restart.

    State outside the node is lost, and brokers register again unchanged.
    """


@operation("describe", "operator", "describe", accepted=Told)
@dataclass(frozen=True, slots=True)
class Describe:
    """The operator requests the finalized level."""


Event: TypeAlias = Update | BrokerUp | BrokerDown | Restart | Describe
OPERATIONS: Operations[Event, Action] = Operations(
    "features", Role.CONTROLLER, (Update, BrokerUp, BrokerDown, Restart, Describe), sample="up 1 1-3; update 1"
)
