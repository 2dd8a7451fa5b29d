"""The operations of a cluster of KIP-584's draft: brokers, elections of controllers, updates of several features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, named, optional, typical
from kipcheck.conformance.core.operations.field_kinds import Kind, TextForm, kind_of
from kipcheck.conformance.core.values.case import Role

PLACE = 20

INCOMPATIBLE: Final = "INCOMPATIBLE_BROKER"
"""Error class for a broker that has to stop. It is not an error code of Kafka: the broker gets no response."""
NOT_CONTROLLER: Final = "NOT_CONTROLLER"
UNAUTHORIZED: Final = "CLUSTER_AUTHORIZATION_FAILED"
IBP: Final = "ibp_feature"
"""The feature that takes the place of the static inter-broker version in phase #3 of the draft (584-32)."""


@dataclass(frozen=True, slots=True)
class Supported:
    """The levels of a feature that a broker supports."""

    feature: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Requested:
    """One update of a request."""

    feature: str
    level: int
    """Below 1: deletes the feature."""
    allow_downgrade: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one update."""

    feature: str
    error: str
    """NONE where it was applied."""


@dataclass(frozen=True, slots=True)
class Finalized:
    feature: str
    low: int
    high: int


def _supported(text: str) -> Supported:
    name, _, span = text.partition(":")
    low, _, high = span.partition("-")
    return Supported(name, int(low), int(high))


def _requested(text: str) -> Requested:
    name, _, level = text.removesuffix("!").partition(":")
    return Requested(name, int(level), text.endswith("!"))


NAME: Final = r"[A-Za-z_]\w*"


def kind_with_text(
    made: type, pattern: str, parse: Callable[[str], Any], print_: Callable[[Any], str], usage: str
) -> Kind:
    """The kind of a record with this form in shorthand."""
    form = TextForm(pattern, parse, print_, usage)
    return replace(kind_of(made), text=lambda note: form)


SUPPORTED: Final = kind_with_text(
    Supported, rf"{NAME}:\d+-\d+", _supported, lambda each: f"{each.feature}:{each.low}-{each.high}", "A:LOW-HIGH"
)
REQUESTED: Final = kind_with_text(
    Requested, rf"(?:{NAME})?:-?\d+!?", _requested,
    lambda each: f"{each.feature}:{each.level}{'!' * each.allow_downgrade}", "A:LEVEL[!]",
)  # fmt: skip
Number: TypeAlias = Annotated[int, about("number of the broker"), typical(range(2))]


# Answers


@answer()
@dataclass(frozen=True, slots=True)
class Answered:
    """The response to a request for updates, without a top-level error."""

    results: tuple[Outcome, ...]


@answer()
@dataclass(frozen=True, slots=True)
class Waiting:
    """The request was validated, and waits for its write."""

    waiting: bool = True


@answer("rejected")
@dataclass(frozen=True, slots=True)
class TopLevel:
    """A top-level error: nothing was changed."""

    error: Annotated[str, named("class")]


@answer("rejected", class_=INCOMPATIBLE, message="broker {broker} has to stop")
@dataclass(frozen=True, slots=True)
class Stops:
    """A broker stops, because it does not support what is finalized."""

    broker: int


@answer()
@dataclass(frozen=True, slots=True)
class Features:
    """What a broker answers to ApiVersions, from its cache."""

    epoch: int
    """-1 where no finalized features are known."""
    finalized: tuple[Finalized, ...]
    supported: tuple[Supported, ...]


@answer()
@dataclass(frozen=True, slots=True)
class Contents:
    """The node in ZooKeeper."""

    epoch: int
    """Its version; -1 where it does not exist."""
    enabled: bool
    finalized: tuple[Finalized, ...]
    registered: tuple[int, ...]
    """The brokers that the controller has registered."""


@answer()
@dataclass(frozen=True, slots=True)
class Deciding:
    """The inter-broker version by which a broker decides."""

    level: int
    """0: below the migration version."""
    dynamic: bool
    """Whether it is the finalized level of the feature, and not the static setting."""


Action: TypeAlias = Answered | Waiting | TopLevel | Stops | Features | Contents | Deciding

# Operations


@operation(
    "start-broker", "broker", "start {broker}[ {supported}][ static {static}]{before_migration: old}",
    examples="start 0 a:1-2,b:1-3; start 1; start 1 a:1-2 old; start 0 ibp_feature:1-3 static 2",
    sender="broker {broker}",
    sentence="starts[, supports {supported}][, static {static}]{before_migration:, below the migration version}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class StartBroker:
    """A broker starts, reads the finalized features, and registers in ZooKeeper unless it has to stop.

    With the number of a live broker, it replaces that one.
    """

    broker: Number
    supported: Annotated[tuple[Annotated[Supported, SUPPORTED], ...], about("supported features")] = ()
    before_migration: Annotated[
        bool, about("its inter-broker version is below the migration version: it declares and checks nothing"), optional
    ] = False
    static: Annotated[
        int, about("its static inter-broker version, counted from the migration version on, which is 1"),
        typical(1, 2, 3), optional,
    ] = 1  # fmt: skip


@operation("stop-broker", "broker", "stop {broker}", examples="stop 0", sender="broker {broker}", sentence="stops")
@dataclass(frozen=True, slots=True)
class StopBroker:
    """A broker stops or dies, with the controller and its unfinished write if it is on that broker."""

    broker: Number


@operation(
    "elect-controller", "broker", "elect {broker}", examples="elect 0",
    sender="broker {broker}", sentence="becomes the controller",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Elect:
    """A live broker becomes the controller; the one before it may not know that yet, and finish its write."""

    broker: Number


@operation(
    "handle-registration", "controller", "handle {broker}", examples="handle 0",
    sentence="handles the registration of broker {broker}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class HandleRegistration:
    """The controller handles the notification that a broker is in ZooKeeper; it skips an incompatible broker."""

    broker: Number


@operation(
    "broker-watch", "broker", "watch {broker}", examples="watch 0",
    sender="broker {broker}", sentence="is notified of the node, and reads it",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Watch:
    """A broker reads the node, and stops if it does not support what is finalized."""

    broker: Number


Updates: TypeAlias = Annotated[tuple[Annotated[Requested, REQUESTED], ...], about("the updates, one for a feature")]


@operation(
    "update-features", "operator", "update-features[ {updates}][ at {to}]{unauthorized: unauthorized}",
    examples="update-features a:2,b:1!; update-features a:1 at 1; update-features a:1 unauthorized",
    sentence="update {updates}[ at broker {to}]{unauthorized:, without permission}",
    accepted=Answered,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class UpdateFeatures:
    """A request for updates, validated and written at once; one that is in flight is finished before it."""

    updates: Updates = ()
    to: Annotated[int | None, about("the broker that receives it; null: the controller")] = None
    unauthorized: Annotated[bool, about("the sender lacks ALTER on the cluster"), optional] = False


@operation(
    "validate-features", "operator", "validate-features[ {updates}]", examples="validate-features a:2",
    sentence="update {updates}: the controller validates it",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ValidateFeatures:
    """The controller validates a request, and does not write yet; without a good update it answers at once."""

    updates: Updates = ()


@operation(
    "write-features", "controller", "write {broker}", examples="write 0",
    sender="broker {broker}", sentence="writes what it validated", accepted=Answered,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Write:
    """The controller on this broker, deposed or not, writes what it has validated."""

    broker: Number


@operation(
    "lose-update", "operator", "lose[ {updates}]{arrives: arrived}",
    examples="lose a:2; lose a:2,b:0! arrived", sentence="update {updates}: the answer is lost",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class LoseUpdate:
    """A request for updates whose answer is lost: the operator does not know whether it was applied (584-33)."""

    updates: Updates = ()
    arrives: Annotated[bool, about("the controller receives it")] = False


@operation(
    "inter-broker-version", "broker", "version {broker}", examples="version 0", sender="broker {broker}",
    sentence="decides by its inter-broker version", accepted=Deciding,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class AskVersion:
    """A broker decides something by its inter-broker version (section Phase #3)."""

    broker: Number


@operation("broker-features", "client", "features {broker}", examples="features 0", accepted=Features)
@dataclass(frozen=True, slots=True)
class AskFeatures:
    """A client sends ApiVersions to a broker."""

    broker: Number


@operation("features-node", "operator", "node", accepted=Contents)
@dataclass(frozen=True, slots=True)
class ReadNode:
    """The node is read from ZooKeeper."""


Event: TypeAlias = (
    StartBroker
    | StopBroker
    | Elect
    | HandleRegistration
    | Watch
    | UpdateFeatures
    | ValidateFeatures
    | Write
    | AskFeatures
    | ReadNode
    | LoseUpdate
    | AskVersion
)
OPERATIONS: Operations[Event, Action] = Operations(
    "feature-cluster",
    Role.CONTROLLER,
    (
        StartBroker, StopBroker, Elect, HandleRegistration, Watch, UpdateFeatures, ValidateFeatures, Write,
        AskFeatures, ReadNode, LoseUpdate, AskVersion,
    ),
    sample="start 0 a:1-2; elect 0; update-features a:2",
)  # fmt: skip
