"""The operations of a KRaft controller of feature versions, and its answers."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, named, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.features.ops.cluster import Outcome, kind_with_text

PLACE = 30

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
TYPES: Final = {UPGRADE: "", SAFE_DOWNGRADE: "!", UNSAFE_DOWNGRADE: "!!"}
"""Upgrade types of UpdateFeatures from version 1 on, and their marks in shorthand; another number follows a tilde."""
FEATURE: Final = r"[A-Za-z_][\w.]*"


@dataclass(frozen=True, slots=True)
class Declared:
    """The levels of a feature that a node supports."""

    feature: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Level:
    feature: str
    level: int


@dataclass(frozen=True, slots=True)
class TypedUpdate:
    """One update of a request. Of a request of version 0, the controller reads no type."""

    feature: str
    level: int
    upgrade_type: int = UPGRADE


def _declared(text: str) -> Declared:
    name, _, span = text.rpartition(":")
    low, _, high = span.partition("-")
    return Declared(name, int(low), int(high))


def _level(text: str) -> Level:
    name, _, level = text.rpartition(":")
    return Level(name, int(level))


def _update(text: str) -> TypedUpdate:
    name, _, rest = text.rpartition(":")
    level, tilde, number = rest.partition("~")
    marks = rest.count("!")
    return TypedUpdate(name, int(level.rstrip("!")), int(number) if tilde else UPGRADE + marks)


def _printed(update: TypedUpdate) -> str:
    mark = TYPES.get(update.upgrade_type, f"~{update.upgrade_type}")
    return f"{update.feature}:{update.level}{mark}"


DECLARED: Final = kind_with_text(
    Declared, rf"{FEATURE}:\d+-\d+", _declared, lambda each: f"{each.feature}:{each.low}-{each.high}", "A:LOW-HIGH"
)
LEVEL: Final = kind_with_text(Level, rf"{FEATURE}:\d+", _level, lambda each: f"{each.feature}:{each.level}", "A:LEVEL")
UPDATE: Final = kind_with_text(
    TypedUpdate, rf"(?:{FEATURE})?:-?\d+(?:!!?|~\d+)?", _update, _printed, "A:LEVEL[!|!!|~TYPE]"
)


@answer()
@dataclass(frozen=True, slots=True)
class Results:
    """A response without a top-level error."""

    results: tuple[Outcome, ...]
    """By name of the feature; from version 2 on, and of refused requests from 4.0 on, there are none."""


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Failed:
    """A response with a top-level error."""

    error: Annotated[str, named("class")]


@answer()
@dataclass(frozen=True, slots=True)
class Levels:
    """What is finalized; level 0 is left out."""

    epoch: int
    """Records of features that were written; a controller counts others, too."""
    levels: tuple[Level, ...]


@answer()
@dataclass(frozen=True, slots=True)
class Leads:
    """The controller that leads after another one ended, or after it came back."""

    controller: int


Action: TypeAlias = Results | Failed | Levels | Leads


@operation(
    "kraft-format", "operator", "format {level}[ {levels}][ with {controllers}]",
    examples="format 7; format 25 group.version:1 with 1,2",
    sentence="format the cluster with metadata.version {level}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Format:
    """A new cluster, whose controller 0 leads; without it, a conversation begins at the newest metadata.version."""

    level: Annotated[int, about("metadata.version")]
    levels: Annotated[tuple[Annotated[Level, LEVEL], ...], about("levels of other features")] = ()
    controllers: Annotated[tuple[int, ...], about("numbers of the other controllers of the quorum")] = ()


@operation(
    "kraft-node", "broker", ("{kind} {node} {supported}", "{kind} {node} gone"),
    examples="broker 1 metadata.version:1-7; controller 2 metadata.version:1-7; broker 1 gone",
    sender="{kind} {node}", sentence=("registers, supports {supported}", "is gone"),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class DeclareNode:
    """A broker or another controller declares the levels that it supports, or is gone."""

    kind: Annotated[Literal["broker", "controller"], about("broker or controller"), typical("broker", "controller")]
    node: Annotated[int, about("its number"), typical(1, 2)]
    supported: Annotated[tuple[Annotated[Declared, DECLARED], ...] | None, about("null: it is gone")]


@operation(
    "kraft-update", "operator", "kraft-update v{version}[ {updates}]{validate_only: validate}",
    examples="kraft-update v1 metadata.version:6!,group.version:1; kraft-update v2 metadata.version:7 validate",
    sentence="UpdateFeatures v{version}: {updates}{validate_only:, validate only}", accepted=Results,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class KraftUpdate:
    """A request for updates. A feature that it repeats has its last level and type."""

    version: Annotated[int, about("of UpdateFeatures"), typical(1, 2, 0)]
    updates: Annotated[tuple[Annotated[TypedUpdate, UPDATE], ...], about("the updates")] = ()
    validate_only: Annotated[bool, about("validateOnly; a request of version 0 has none")] = False


@operation("kraft-levels", "operator", "levels", accepted=Levels)
@dataclass(frozen=True, slots=True)
class ReadLevels:
    """The finalized levels are read."""


@operation(
    "kraft-fail-over", "operator", "fail-over", sentence="stops the leading controller, and starts it again",
    accepted=Leads,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class FailOver:
    """The leading controller ends and comes back; in a quorum, another one may lead then (584-57)."""


Event: TypeAlias = Format | DeclareNode | KraftUpdate | ReadLevels | FailOver
OPERATIONS: Operations[Event, Action] = Operations(
    "kraft-features", Role.CONTROLLER, (Format, DeclareNode, KraftUpdate, ReadLevels, FailOver), sample="levels"
)
