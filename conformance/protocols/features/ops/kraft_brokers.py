"""The operations of a KRaft controller that registers brokers, and of brokers that answer ApiVersions; the answers."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation, variant
from kipcheck.conformance.core.operations.field_annotations import about, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.features.ops.cluster import Finalized, Supported
from kipcheck.conformance.protocols.features.ops.kraft import DECLARED, Declared, Format

PLACE = 70

UNSUPPORTED: Final = "UNSUPPORTED_VERSION"


@answer()
@dataclass(frozen=True, slots=True)
class Registered:
    """The controller registered the broker."""

    registered: bool = True


@answer("rejected", class_=UNSUPPORTED, message="broker {broker} does not support what is finalized")
@dataclass(frozen=True, slots=True)
class NotRegistered:
    """The controller refuses the registration, with UNSUPPORTED_VERSION."""

    broker: int


@answer()
@dataclass(frozen=True, slots=True)
class Picture:
    """What a broker of the cluster answers to ApiVersions."""

    finalized: tuple[Finalized, ...]
    supported: tuple[Supported, ...]


Action: TypeAlias = Registered | NotRegistered | Picture


@operation(
    "kraft-register", "broker", "register {broker}[ {supported}]",
    examples="register 1 metadata.version:1-21,kraft.version:0-1; register 1",
    sender="broker {broker}", sentence="registers[, supports {supported}]", accepted=Registered,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Register:
    """A broker registers with the levels that it supports (class ClusterControlManager)."""

    broker: Annotated[int, about("its number"), typical(1, 2)]
    supported: Annotated[tuple[Annotated[Declared, DECLARED], ...], about("the levels that it supports")] = ()


@operation(
    "kraft-picture", "client", "api-versions v{version}", examples="api-versions v3",
    sentence="ApiVersions v{version}", accepted=Picture,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class AskPicture:
    """A client sends ApiVersions to a broker of the controller's release."""

    version: Annotated[int, about("of ApiVersions; features are in it from 3 on"), typical(3, 4)]


FORMAT: Final = variant(Format, "kraft-cluster", kinds={}, meaning="a new cluster with these levels")
Event: TypeAlias = Format | Register | AskPicture
OPERATIONS: Operations[Event, Action] = Operations(
    "kraft-brokers",
    Role.CONTROLLER,
    (FORMAT, Register, AskPicture),
    sample="format 7; api-versions v3",
)
