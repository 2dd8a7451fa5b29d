"""What each KRaft controller makes of its neighbours' features: release x release, predicted by models, run by jars.

A cell has a controller of one release, which leads a cluster at the highest level of metadata.version that both
releases support, and a neighbour of another release: first a broker, then another controller of the quorum. The
controller gets a request, with validate-only, for every level of every feature. The released FeatureControlManager
answers; the registration of the broker in a new cluster of the controller's release is predicted only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Literal, TypeAlias

from kipcheck.conformance.core.files.releases_table import listed
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import Observation, Refused, Replied
from kipcheck.conformance.matrix.scenario_names import FEATURES
from kipcheck.conformance.protocols.features.model.kraft import NONE, KraftController
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops import kraft as ops
from kipcheck.conformance.targets.protocol import BATCH, Target, Unavailable, observed

KINDS: Final[tuple[Literal["broker", "controller"], ...]] = ("broker", "controller")
NODE: Final = 1
Accepted: TypeAlias = Mapping[str, tuple[int, ...]]
"""Feature -> the levels that the controller accepts."""
Opened: TypeAlias = Callable[[str], Target]
"""The target of a release. Errors: ``Unavailable``."""


@dataclass(frozen=True, slots=True)
class FeatureCell:
    controller: str
    neighbour: str
    registers: bool
    """Whether a broker of the neighbour registers in a new cluster of the controller's release, by the model."""
    formatted: int | None
    """The metadata.version of the cluster; None: no level suits both releases."""
    predicted: Mapping[str, Accepted]
    """By kind of the neighbour."""
    played: Mapping[str, Accepted] | None = None
    """None: it was not run."""

    @property
    def differs(self) -> bool:
        return self.played is not None and self.played != self.predicted

    @property
    def held(self) -> dict[str, dict[str, int]]:
        """By kind, the features that the neighbour holds back, and the highest level that is accepted."""
        own = Rules.of(self.controller).supported
        found = self.played if self.played is not None else self.predicted
        return {
            kind: {name: max(levels, default=-1) for name, levels in accepted.items()
                   if max(levels, default=-1) < own[name].high}
            for kind, accepted in found.items()
        }  # fmt: skip


def releases() -> tuple[str, ...]:
    """One release for each behaviour of controllers."""
    return listed("controllers")


def predicted(controller: str, neighbour: str) -> FeatureCell:
    """By the models. Errors: LookupError for a release without a KRaft controller."""
    own, other = _rules(controller), _rules(neighbour)
    machine = KraftController(own)
    fresh = machine.formatted(_new_cluster(own))
    registers = machine.registration_error(fresh, dict(other.declares())) == NONE
    level = min(own.newest, other.newest)
    if level < max(own.first_bootstrap, own.supported[METADATA].low, other.supported[METADATA].low):
        return FeatureCell(controller, neighbour, registers, None, {})
    found: dict[str, Accepted] = {}
    for kind in KINDS:
        talk = script(own, other, level, kind)
        state, answers = machine.initial(), list[Observation]()
        for each in talk:
            state, actions = machine.step(state, each)
            answers.append(observed(ops.OPERATIONS.answer_of(actions)))
        found[kind] = _accepted(talk, answers)
    return FeatureCell(controller, neighbour, registers, level, found)


def _rules(release: str) -> Rules:
    try:
        return Rules.of(release)
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None


def _new_cluster(rules: Rules) -> ops.Format:
    levels = rules.defaults()
    others = tuple(ops.Level(name, level) for name, level in levels.items() if name != METADATA and level)
    return ops.Format(levels[METADATA], others)


def script(own: Rules, other: Rules, level: int, kind: Literal["broker", "controller"]) -> tuple[ops.Event, ...]:
    """A cluster at this level with the neighbour, and a question for every level of every feature."""
    quorum = (NODE,) if kind == "controller" else ()
    declared = tuple(ops.Declared(name, *span) for name, span in other.declares())
    return (ops.Format(level, (), quorum), ops.DeclareNode(kind, NODE, declared), *_questions(own, level))


def _questions(own: Rules, level: int) -> Iterator[ops.Event]:
    for name, span in own.declares():
        for wanted in range(span.low, span.high + 1):
            falls = name == METADATA and wanted < level
            update = ops.TypedUpdate(name, wanted, ops.SAFE_DOWNGRADE if falls else ops.UPGRADE)
            yield ops.KraftUpdate(1, (update,), validate_only=True)


def _accepted(talk: Sequence[ops.Event], answers: Sequence[Observation]) -> Accepted:
    found: dict[str, list[int]] = {}
    for event, answer in zip(talk, answers, strict=True):
        if isinstance(event, ops.KraftUpdate):
            (update,) = event.updates
            levels = found.setdefault(update.feature, [])
            if _well(answer):
                levels.append(update.level)
    return {name: tuple(levels) for name, levels in found.items()}


def _well(answer: Observation) -> bool:
    """Errors: ValueError for an answer that a controller does not give."""
    match answer:
        case Replied():
            return all(each["error"] == NONE for each in dict(answer.payload)["results"])
        case Refused():
            return False
    raise ValueError(f"the controller gave no answer: {answer}")


def played(cells: Sequence[FeatureCell], opened: Opened) -> list[FeatureCell]:
    """The cells of one controller, run by its released class. Errors: those of the target; ValueError."""
    (controller,) = {each.controller for each in cells}
    own, edition = Rules.of(controller), f"apache@{controller}"
    playable = [each for each in cells if each.formatted is not None]
    talks = [script(own, Rules.of(each.neighbour), each.formatted or 0, kind) for each in playable for kind in KINDS]
    cases = [Case(f"matrix/{FEATURES}", edition, Role.CONTROLLER, _steps(talk)) for talk in talks]
    with opened(controller).open(edition, Role.CONTROLLER) as session:
        answers = [each for at in range(0, len(cases), BATCH) for each in session.run(cases[at : at + BATCH])]
    found = iter([_accepted(talk, each) for talk, each in zip(talks, answers, strict=True)])
    return [_with(each, {kind: next(found) for kind in KINDS}) if each in playable else each for each in cells]


def played_where_possible(cells: Sequence[FeatureCell], opened: Opened) -> tuple[list[FeatureCell], dict[str, str]]:
    """The cells, run where jars are available, and why some controllers were not run.

    Errors: ``Unavailable`` if none was.
    """
    found, skipped = list[FeatureCell](), dict[str, str]()
    last: Unavailable | None = None
    for controller, cells_of_one in groupby(cells, key=lambda cell: cell.controller):
        row = [*cells_of_one]
        try:
            found += played(row, opened)
        except Unavailable as why:
            last, skipped[controller] = why, str(why)
            found += row
    if last is not None and len(skipped) == len({cell.controller for cell in cells}):
        raise last
    return found, skipped


def _steps(talk: Sequence[ops.Event]) -> tuple[Step, ...]:
    return tuple(map(ops.OPERATIONS.step_of, talk))


def _with(cell: FeatureCell, found: Mapping[str, Accepted]) -> FeatureCell:
    return FeatureCell(cell.controller, cell.neighbour, cell.registers, cell.formatted, cell.predicted, found)


def plain(cells: Sequence[FeatureCell], skipped: Mapping[str, str]) -> dict[str, Any]:
    """As data. ``skipped``: the controllers whose jars are not available, and why."""
    return {
        "scenario": FEATURES,
        "cells": [
            {
                "controller": each.controller,
                "neighbour": each.neighbour,
                "registers": each.registers,
                "formatted": each.formatted,
                "held": each.held,
                "predicted": _listed(each.predicted),
                "played": None if each.played is None else _listed(each.played),
                "differs": each.differs,
            }
            for each in cells
        ],
        "skipped": dict(skipped),
    }


def _listed(found: Mapping[str, Accepted]) -> dict[str, dict[str, list[int]]]:
    return {kind: {name: [*levels] for name, levels in accepted.items()} for kind, accepted in found.items()}
