"""The commands of Kafka's own tool for operators, kafka-features, as releases have them, and what it prints."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.features.ops.cluster import kind_with_text
from kipcheck.conformance.protocols.features.ops.kraft import FEATURE, LEVEL, Declared, Level

PLACE = 90

NAME: Final = kind_with_text(str, FEATURE, str, str, "FEATURE")
Levels: TypeAlias = tuple[Annotated[Level, LEVEL], ...]


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A feature as ``describe`` prints it."""

    feature: str
    low: int
    high: int
    level: int
    """0: it is not finalized."""
    epoch: int


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """What the tool prints about a feature that a command changes."""

    change: str
    """upgrade, downgrade or disable, by the words of the line."""
    feature: str
    level: int
    """0 where the line names none."""
    done: bool
    """``was upgraded``, ``can be upgraded``; not ``Could not upgrade``."""
    dry: bool
    """Whether the words are those of a dry run: ``can be``, ``Can not``."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """What ``feature-dependencies`` prints about a level of a feature."""

    feature: str
    level: int
    needs: tuple[Level, ...]


@answer()
@dataclass(frozen=True, slots=True)
class CommandRows:
    rows: tuple[CommandRow, ...]
    unread: tuple[str, ...]
    """Lines of no known form."""
    exit: int


@answer()
@dataclass(frozen=True, slots=True)
class CommandLines:
    lines: tuple[ChangeLine, ...]
    failed: int | None
    """The number of failed operations in the last line; null: there is no such line."""
    unread: tuple[str, ...]
    exit: int


@answer()
@dataclass(frozen=True, slots=True)
class CommandMapping:
    levels: tuple[Level, ...]
    unread: tuple[str, ...]
    exit: int


@answer()
@dataclass(frozen=True, slots=True)
class CommandNeeds:
    rows: tuple[Dependency, ...]
    unread: tuple[str, ...]
    exit: int


@answer("rejected", class_="USAGE", message="{why}")
@dataclass(frozen=True, slots=True)
class CommandMisused:
    """The tool refuses its options: it prints why, and exits with another code than 0."""

    why: str


@answer()
@dataclass(frozen=True, slots=True)
class ClusterLevels:
    """What the cluster has, by its own answer to ApiVersions."""

    epoch: int
    levels: tuple[Level, ...]
    """Without those that are 0."""
    supported: tuple[Declared, ...]


Action: TypeAlias = CommandRows | CommandLines | CommandMapping | CommandNeeds | CommandMisused | ClusterLevels


@operation("command-describe", "operator", "command describe", sentence="runs describe", accepted=CommandRows)
@dataclass(frozen=True, slots=True)
class CommandDescribe:
    """The operator runs describe."""


@operation(
    "command-change", "operator",
    "command {command}[ {features}][ metadata {metadata}][ release {release}]{unsafe: unsafe}{dry_run: dry}",
    examples="command upgrade group.version:1,metadata.version:25; command downgrade metadata 20 unsafe dry; "
    "command upgrade release 25",
    sentence="runs {command}[ --feature {features}][ --metadata {metadata}][ --release-version {release}]"
    "{unsafe: --unsafe}{dry_run: --dry-run}",
    accepted=CommandLines,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class CommandChange:
    """The operator runs upgrade or downgrade."""

    command: Annotated[Literal["upgrade", "downgrade"], about("the command"), typical("upgrade", "downgrade")]
    features: Annotated[Levels, about("--feature, once for each")] = ()
    metadata: Annotated[int | None, about("--metadata, by its level")] = None
    release: Annotated[int | None, about("--release-version, by its level of metadata.version; from 4.0.0 on")] = None
    unsafe: Annotated[bool, about("--unsafe"), optional] = False
    dry_run: Annotated[bool, about("--dry-run"), optional] = False


@operation(
    "command-disable", "operator", "command disable[ {features}]{unsafe: unsafe}{dry_run: dry}",
    examples="command disable group.version; command disable group.version unsafe dry",
    sentence="runs disable[ --feature {features}]{unsafe: --unsafe}{dry_run: --dry-run}", accepted=CommandLines,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class CommandDisable:
    """The operator runs disable."""

    features: Annotated[
        tuple[Annotated[str, NAME], ...], about("--feature, once for each"), typical((), ("group.version",))
    ] = ()
    unsafe: Annotated[bool, about("--unsafe"), optional] = False
    dry_run: Annotated[bool, about("--dry-run"), optional] = False


@operation(
    "command-all", "operator", "command {command}{dry_run: dry}",
    examples="command upgrade-all; command downgrade-all dry", sentence="runs {command}{dry_run: --dry-run}",
    accepted=CommandLines,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class CommandAll:
    """The operator runs upgrade-all or downgrade-all, which releases before 3.3.0 have."""

    command: Annotated[
        Literal["upgrade-all", "downgrade-all"], about("the command"), typical("upgrade-all", "downgrade-all")
    ]
    dry_run: Annotated[bool, about("--dry-run"), optional] = False


@operation(
    "command-mapping", "operator", "command mapping[ {release}]", examples="command mapping; command mapping 25",
    sentence="runs version-mapping[ --release-version {release}]", accepted=CommandMapping,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class CommandMap:
    """The operator runs version-mapping, which releases from 4.0.0 on have."""

    release: Annotated[int | None, about("--release-version, by its level of metadata.version")] = None


@operation(
    "command-dependencies", "operator", "command needs {features}", examples="command needs group.version:1",
    sentence="runs feature-dependencies --feature {features}", accepted=CommandNeeds,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class CommandDepends:
    """The operator runs feature-dependencies, which releases from 4.0.0 on have."""

    features: Annotated[Levels, about("--feature, once for each")]


@operation("command-levels", "client", "command levels", sentence="ApiVersions", accepted=ClusterLevels)
@dataclass(frozen=True, slots=True)
class CommandLevels:
    """A client reads what the cluster has, without the tool."""


Event: TypeAlias = (
    CommandDescribe | CommandChange | CommandDisable | CommandAll | CommandMap | CommandDepends | CommandLevels
)
OPERATIONS: Operations[Event, Action] = Operations(
    "feature-commands",
    Role.CONTROLLER,
    (CommandDescribe, CommandChange, CommandDisable, CommandAll, CommandMap, CommandDepends, CommandLevels),
    sample="command describe; command levels",
)
