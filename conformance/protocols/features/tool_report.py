"""What ``kipcheck features`` asks of a cluster, and the lines that it prints, as KIP-584 shows them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.protocols.features.model import tool
from kipcheck.conformance.protocols.features.model.draft_rules import FEATURE_UPDATE_FAILED, NONE
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.model.tool import DELETE, Change
from kipcheck.conformance.protocols.features.state_file import HIGHEST, FeatureState
from kipcheck.conformance.wire.workbench import Unreadable

ABSENT: Final = "-"


@dataclass(frozen=True, slots=True)
class Done:
    lines: tuple[str, ...]
    state: FeatureState
    well: bool
    """Whether no update was refused."""


# What is asked for


def named_changes(state: FeatureState, upgrade: str, downgrade: str, delete: str) -> list[Change]:
    """The three lists of ``update``. Errors: ``Unreadable``."""
    known = {name: level for levels in state.known.values() for name, level in levels.items()}
    raised, lowered = [*_levels("--upgrade", upgrade)], [*_levels("--downgrade", downgrade)]
    try:
        return tool.named_changes(state, known, raised, lowered, _names("--delete", delete))
    except ValueError as wrong:
        raise Unreadable("options", str(wrong)) from None


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text else []
    if not all(names):
        raise Unreadable("options", f"invalid {option} {text!r}: use names of features, separated by commas")
    return names


def _levels(option: str, text: str) -> Iterator[tuple[str, int]]:
    for change in _names(option, text):
        name, _, level = change.rpartition(":")
        if not name or not level.isascii() or not level.isdigit() or not 1 <= int(level) <= HIGHEST:
            raise Unreadable("options", f"invalid {option} {change!r}: use FEATURE:LEVEL, a level from 1 to {HIGHEST}")
        yield name, int(level)


def known_levels(state: FeatureState, release: str | None) -> Mapping[str, int]:
    """What the tool of a release knows; None: the newest in the file. Errors: ``Unreadable``."""
    if release is not None and release not in state.known:
        there = ", ".join(state.known) or "none"
        raise Unreadable("options", f"unknown release {release!r}: the state file has {there}")
    if release is None and not state.known:
        raise Unreadable("options", "the state file has no releases under known, so the tool knows no levels")
    try:
        return state.known[release or max(state.known, key=_numbers)]
    except ValueError:
        raise Unreadable(
            "options", f"which release is the newest? Use --from-kafka-release {' or '.join(state.known)}"
        ) from None


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in release.split("."))


# What is done, and the lines about it


def described(state: FeatureState) -> Iterator[str]:
    """The features that the first broker supports, and those that are finalized."""
    for row in tool.rows(state):
        low, high, least, most, epoch = (
            ABSENT if value is None else value
            for value in (row.low, row.high, row.finalized_low, row.finalized_high, row.epoch)
        )
        yield (
            f"Feature: {row.feature}  SupportedMinVersion: {low}  SupportedMaxVersion: {high}  "
            f"FinalizedMinVersionLevel: {least}  FinalizedMaxVersionLevel: {most}  Epoch: {epoch}"
        )


def updated(state: FeatureState, changes: Sequence[Change]) -> Done:
    """One request with all changes, as the draft's controller answers it."""
    after, errors = tool.applied(state, [change.requested for change in changes])
    results = [
        "OK" if error == NONE else f"{error}: {_why(state, change, error)}"
        for change, error in zip(changes, errors, strict=True)
    ]
    return Done(tuple(lines(state, changes, results)), after, all(error == NONE for error in errors))


def lines(state: FeatureState, changes: Sequence[Change], results: Sequence[str]) -> Iterator[str]:
    """A line for each change and its result."""
    width = max((len(change.kind) for change in changes), default=0) + 2
    for change in tool.lines(state, changes, results):
        before, level = (ABSENT if number is None else number for number in (change.existing, change.new))
        yield (
            f"{f'[{change.change}]':>{width}} Feature: {change.feature}  ExistingFinalizedMaxVersion: {before}  "
            f"NewFinalizedMaxVersion: {level}  Result: {change.error}"
        )


def _why(state: FeatureState, change: Change, error: str) -> str:
    """Why the controller refuses a change."""
    span = state.finalized().get(change.feature)
    if error == FEATURE_UPDATE_FAILED:
        return _obstacle(state, change, span)
    if not any(change.feature in dict(supported) for supported in state.brokers) and change.kind != DELETE:
        return "no broker supports the feature"
    if span is None:
        return "the feature is not finalized"
    if change.level == span.high:
        return f"level {span.high} is finalized already"
    return f"level {change.level} is {'below' if change.level < span.high else 'above'} the finalized level {span.high}"


def _obstacle(state: FeatureState, change: Change, span: Range | None) -> str:
    if state.node is not None and not state.node.enabled:
        return "feature versioning is disabled"
    for number, supported in enumerate(state.brokers):
        own = dict(supported).get(change.feature)
        if own is None:
            return f"broker {number} does not know the feature"
        if not own.holds(change.level):
            return f"broker {number} supports levels {own}"
    return f"the finalized minimum level is {span.low}" if span else "the controller refuses it"
