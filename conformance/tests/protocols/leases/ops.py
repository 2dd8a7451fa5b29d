"""The operations of a broker that leases a partition to one client at a time, and its answers."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, named, typical
from kipcheck.conformance.core.values.case import Role

Client: TypeAlias = Annotated[int, about("its number"), typical(range(1, 4))]


@answer()
@dataclass(frozen=True, slots=True)
class Granted:
    epoch: int
    """The number of leases that were granted so far."""


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Rejected:
    error: Annotated[str, named("class")]


Action: TypeAlias = Granted | Rejected


@operation(
    "lease", "client", "lease {client} {ms}",
    examples="lease 1 10",
    sender="client {client}",
    sentence="requests the lease for {ms} ms",
    accepted=Granted,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Lease:
    """A client requests the lease, or extends its own."""

    client: Client
    ms: Annotated[int, about("duration, ms"), typical(5, 10)]


@operation("release", "client", "release {client}", examples="release 1", sender="client {client}",
           sentence="gives up the lease")  # fmt: skip
@dataclass(frozen=True, slots=True)
class Release:
    """A client gives up the lease, if it has it."""

    client: Client


@operation("lease-elapse", "time", "wait {ms}", examples="wait 5", sentence="{ms} ms pass")
@dataclass(frozen=True, slots=True)
class Elapse:
    """Time passes."""

    ms: Annotated[int, about("milliseconds"), typical(5, 10)]


Event: TypeAlias = Lease | Release | Elapse
OPERATIONS: Operations[Event, Action] = Operations(
    "leases", Role.BROKER, (Lease, Release, Elapse), sample="lease 1 10; wait 5"
)
