"""What ``kipcheck features`` asks of a cluster, and the lines that it prints, as KIP-584 shows them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.cli.feature_state import HIGHEST, FeatureState
from kipcheck.conformance.core.nearest import hint
from kipcheck.conformance.protocols.features.model.cluster import FeatureCluster
from kipcheck.conformance.protocols.features.model.draft_rules import FEATURE_UPDATE_FAILED, NONE
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.ops.cluster import Answered, Requested, UpdateFeatures
from kipcheck.conformance.wire.workbench import Unreadable

ADD, UPGRADE, DOWNGRADE, DELETE = "Add", "Upgrade", "Downgrade", "Delete"
ABSENT: Final = "-"
DELETION: Final = 0
"""The level that asks for a deletion."""


@dataclass(frozen=True, slots=True)
class Change:
    """An update that the tool asks for."""

    kind: str
    feature: str
    level: int
    """``DELETION`` of a deletion."""

    @property
    def requested(self) -> Requested:
        """Naming a feature under --downgrade or --delete sets the flag (584-63)."""
        return Requested(self.feature, self.level, self.kind in (DOWNGRADE, DELETE))


@dataclass(frozen=True, slots=True)
class Done:
    lines: tuple[str, ...]
    state: FeatureState
    well: bool
    """Whether no update was refused."""


# What is asked for


def upgrades(state: FeatureState, levels: Mapping[str, int]) -> list[Change]:
    """To the levels that the tool knows; a feature that has such a level, or a higher one, stays."""
    finalized = state.finalized()
    return [_raise(finalized, name, level) for name, level in sorted(levels.items())
            if name not in finalized or finalized[name].high < level]  # fmt: skip


def downgrades(state: FeatureState, levels: Mapping[str, int]) -> list[Change]:
    """To the levels that the tool knows; a finalized feature that it does not know is deleted."""
    changes = []
    for name, span in sorted(state.finalized().items()):
        if name not in levels:
            changes.append(Change(DELETE, name, DELETION))
        elif levels[name] < span.high:
            changes.append(Change(DOWNGRADE, name, levels[name]))
    return changes


def named_changes(state: FeatureState, upgrade: str, downgrade: str, delete: str) -> list[Change]:
    """The three lists of ``update``, each by name. Errors: ``Unreadable``."""
    finalized = state.finalized()
    raised = [_raise(finalized, name, level) for name, level in sorted(_levels("--upgrade", upgrade))]
    lowered = [Change(DOWNGRADE, name, level) for name, level in sorted(_levels("--downgrade", downgrade))]
    deleted = [Change(DELETE, name, DELETION) for name in sorted(_names("--delete", delete))]
    changes = [*raised, *lowered, *deleted]
    if not changes:
        raise Unreadable("options", "nothing to update: use --upgrade, --downgrade or --delete")
    names = [each.feature for each in changes]
    known = {
        *finalized,
        *(name for each in state.brokers for name, _ in each),
        *(n for each in state.known.values() for n in each),
    }
    for name in names:
        if names.count(name) > 1:
            raise Unreadable("options", f"the feature {name} is named twice: name it once")
        if name not in known:
            raise Unreadable(
                "options",
                f"unknown feature {name!r}: it is not finalized, and no broker supports it{hint(name, known)}",
            )
    return changes


def _raise(finalized: Mapping[str, Range], name: str, level: int) -> Change:
    return Change(UPGRADE if name in finalized else ADD, name, level)


def _names(option: str, text: str) -> list[str]:
    found = [each.strip() for each in text.split(",")] if text else []
    if not all(found):
        raise Unreadable("options", f"invalid {option} {text!r}: use names of features, separated by commas")
    return found


def _levels(option: str, text: str) -> Iterator[tuple[str, int]]:
    for each in _names(option, text):
        name, _, level = each.rpartition(":")
        if not name or not level.isascii() or not level.isdigit() or not 1 <= int(level) <= HIGHEST:
            raise Unreadable("options", f"invalid {option} {each!r}: use FEATURE:LEVEL, a level from 1 to {HIGHEST}")
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
    return tuple(int(each) for each in release.split("."))


# What is done, and the lines about it


def described(state: FeatureState) -> Iterator[str]:
    """The features that the first broker supports, and those that are finalized."""
    finalized = state.finalized()
    supported = dict(state.brokers[0]) if state.brokers else {}
    epoch = state.node.epoch if state.active and state.node is not None else ABSENT
    for name in sorted({*finalized, *supported}):
        low, high = supported.get(name, (ABSENT, ABSENT))
        least, most = finalized.get(name, (ABSENT, ABSENT))
        yield (
            f"Feature: {name}  SupportedMinVersion: {low}  SupportedMaxVersion: {high}  "
            f"FinalizedMinVersionLevel: {least}  FinalizedMaxVersionLevel: {most}  Epoch: {epoch}"
        )


def updated(state: FeatureState, changes: Sequence[Change]) -> Done:
    """One request with all changes, as the draft's controller answers it."""
    if not changes:
        return Done((), state, True)
    machine, before = FeatureCluster(), state.cluster()
    after, actions = machine.step(before, UpdateFeatures(tuple(each.requested for each in changes)))
    (answer,) = actions
    assert isinstance(answer, Answered)  # the file has a controller, and it is asked with permission
    errors = [each.error for each in answer.results]
    results = [
        "OK" if error == NONE else f"{error}: {_why(state, each, error)}"
        for each, error in zip(changes, errors, strict=True)
    ]
    return Done(tuple(lines(state, changes, results)), state.after(after), all(error == NONE for error in errors))


def lines(state: FeatureState, changes: Sequence[Change], results: Iterable[str]) -> Iterator[str]:
    """A line for each change and its result."""
    finalized = state.finalized()
    width = max(len(each.kind) for each in changes) + 2
    for each, result in zip(changes, results, strict=True):
        before = finalized[each.feature].high if each.feature in finalized else ABSENT
        level = each.level if each.level != DELETION else ABSENT
        yield (
            f"{f'[{each.kind}]':>{width}} Feature: {each.feature}  ExistingFinalizedMaxVersion: {before}  "
            f"NewFinalizedMaxVersion: {level}  Result: {result}"
        )


def _why(state: FeatureState, change: Change, error: str) -> str:
    """Why the controller refuses a change."""
    span = state.finalized().get(change.feature)
    if error == FEATURE_UPDATE_FAILED:
        return _obstacle(state, change, span)
    if not any(change.feature in dict(each) for each in state.brokers) and change.kind != DELETE:
        return "no broker supports the feature"
    if span is None:
        return "the feature is not finalized"
    if change.level == span.high:
        return f"level {span.high} is finalized already"
    return f"level {change.level} is {'below' if change.level < span.high else 'above'} the finalized level {span.high}"


def _obstacle(state: FeatureState, change: Change, span: Range | None) -> str:
    if state.node is not None and not state.node.enabled:
        return "feature versioning is disabled"
    for number, each in enumerate(state.brokers):
        own = dict(each).get(change.feature)
        if own is None:
            return f"broker {number} does not know the feature"
        if not own.holds(change.level):
            return f"broker {number} supports levels {own}"
    return f"the finalized minimum level is {span.low}" if span else "the controller refuses it"
