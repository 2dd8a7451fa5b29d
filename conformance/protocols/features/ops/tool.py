"""The operations of KIP-584's tool for operators, and what it prints. The cluster that it is used on is played."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.features.ops.cluster import SUPPORTED, Requested, Supported
from kipcheck.conformance.protocols.features.ops.kraft import LEVEL, Level

PLACE = 80


@dataclass(frozen=True, slots=True)
class Row:
    """A feature as ``describe`` prints it; null for a dash."""

    feature: str
    low: int | None
    """The lowest level that the first broker supports."""
    high: int | None
    finalized_low: int | None
    finalized_high: int | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """A change as the tool prints it; null for a dash."""

    change: str
    """Add, Upgrade, Downgrade or Delete."""
    feature: str
    existing: int | None
    new: int | None
    error: str
    """NONE where it was applied."""


@answer()
@dataclass(frozen=True, slots=True)
class Described:
    rows: tuple[Row, ...]


@answer()
@dataclass(frozen=True, slots=True)
class Ran:
    results: tuple[Line, ...]
    sent: tuple[Requested, ...]
    """The updates of the request that changes features; empty if none was sent."""
    exit: int


@answer("rejected", class_="USAGE", message="{why}")
@dataclass(frozen=True, slots=True)
class Misused:
    """The tool refuses its options, and sends nothing."""

    why: str


Action: TypeAlias = Described | Ran | Misused


@operation(
    "tool-broker", "broker", "tool broker[ {supported}]", examples="tool broker; tool broker a:1-2,b:1-3",
    sentence="starts, supports {supported}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ToolBroker:
    """A further broker starts."""

    supported: Annotated[tuple[Annotated[Supported, SUPPORTED], ...], about("supported features")] = ()


@operation(
    "tool-knows", "operator", "tool knows[ {levels}]", examples="tool knows; tool knows a:2,b:1",
    sentence="takes the tool of a release that knows {levels}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ToolKnows:
    """The operator takes the tool of a release with these levels."""

    levels: Annotated[
        tuple[Annotated[Level, LEVEL], ...], about("the highest level that it knows of each feature")
    ] = ()


@operation("tool-describe", "operator", "tool describe", sentence="runs describe", accepted=Described)
@dataclass(frozen=True, slots=True)
class ToolDescribe:
    """The operator runs describe."""


@operation(
    "tool-upgrade-all", "operator", "tool upgrade-all{dry_run: dry}", examples="tool upgrade-all; tool upgrade-all dry",
    sentence="runs upgrade-all{dry_run: --dry-run}", accepted=Ran,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ToolUpgradeAll:
    """The operator runs upgrade-all."""

    dry_run: Annotated[bool, about("--dry-run"), optional] = False


@operation(
    "tool-downgrade-all", "operator", "tool downgrade-all{dry_run: dry}", examples="tool downgrade-all dry",
    sentence="runs downgrade-all{dry_run: --dry-run}", accepted=Ran,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ToolDowngradeAll:
    """The operator runs downgrade-all."""

    dry_run: Annotated[bool, about("--dry-run"), optional] = False


@operation(
    "tool-update", "operator",
    "tool update[ upgrade {upgrade}][ downgrade {downgrade}][ delete {delete}]{dry_run: dry}",
    examples="tool update upgrade a:2 downgrade b:1 delete c; tool update upgrade a:2 dry",
    sentence="runs update[ --upgrade {upgrade}][ --downgrade {downgrade}][ --delete {delete}]{dry_run: --dry-run}",
    accepted=Ran,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ToolUpdate:
    """The operator runs update."""

    upgrade: Annotated[tuple[Annotated[Level, LEVEL], ...], about("--upgrade")] = ()
    downgrade: Annotated[tuple[Annotated[Level, LEVEL], ...], about("--downgrade")] = ()
    delete: Annotated[tuple[str, ...], about("--delete"), typical((), ("a",))] = ()
    dry_run: Annotated[bool, about("--dry-run"), optional] = False


Event: TypeAlias = ToolBroker | ToolKnows | ToolDescribe | ToolUpgradeAll | ToolDowngradeAll | ToolUpdate
OPERATIONS: Operations[Event, Action] = Operations(
    "feature-tool",
    Role.CONTROLLER,
    (ToolBroker, ToolKnows, ToolDescribe, ToolUpgradeAll, ToolDowngradeAll, ToolUpdate),
    sample="tool broker a:1-2; tool knows a:2; tool upgrade-all; tool describe",
)
