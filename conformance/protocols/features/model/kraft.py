"""The controller of feature versions in KRaft, as an exact release from 3.3.0 on has it (class FeatureControlManager).

A level is a single number, and a feature that is not finalized has level 0. Every refusal has the error
INVALID_UPDATE_VERSION: in the result of the feature up to 3.9, at top level from 4.0 on, where one refused update fails
all of them. A repeated level is accepted, and written again.

From 4.1 on kraft.version is raised in the quorum while the request is still being judged: where a later update is
refused, the request fails and kraft.version stays raised, which edition ``apache`` mends. Updates are judged in the
order of a Java HashMap. The conditions of the quorum itself are not modelled.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kipcheck.conformance.core.values.java_hash import string_hash
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.model.kraft_rules import DISABLED, KRAFT, METADATA, Rules
from kipcheck.conformance.protocols.features.model.ranges import Range, Ranges, ranges
from kipcheck.conformance.protocols.features.ops import kraft as ops
from kipcheck.conformance.protocols.features.ops.cluster import Outcome

NONE: Final = "NONE"
INVALID_UPDATE_VERSION: Final = "INVALID_UPDATE_VERSION"
UNSUPPORTED_VERSION: Final = "UNSUPPORTED_VERSION"
INVALID_REGISTRATION: Final = "INVALID_REGISTRATION"
DOWNGRADES: Final = (ops.SAFE_DOWNGRADE, ops.UNSAFE_DOWNGRADE)
WITHOUT_RESULTS: Final = 2
"""The version of UpdateFeatures from which on a response of 4.0 has no results."""


@final
@dataclass(frozen=True, slots=True)
class State:
    levels: tuple[tuple[str, int], ...]
    """Finalized levels by name, sorted; those that are 0 are left out."""
    epoch: int = 1
    """Records of features in the log."""
    quorum: tuple[int, ...] = (0,)
    """The numbers of the controllers; 0 leads."""
    brokers: tuple[tuple[int, Ranges], ...] = ()
    controllers: tuple[tuple[int, Ranges], ...] = ()
    """Other controllers that declared what they support."""
    kraft: int = 0
    """The kraft.version of the quorum, where controllers do not regard it."""

    def level(self, feature: str) -> int:
        return dict(self.levels).get(feature, 0)

    def shown(self) -> tuple[tuple[str, int], ...]:
        """The levels that clients read."""
        return self.levels if self.kraft <= self.level(KRAFT) else self.with_level(KRAFT, self.kraft).levels

    def with_level(self, feature: str, level: int) -> "State":
        levels = {**dict(self.levels), feature: level}
        return replace(self, levels=tuple(sorted((name, each) for name, each in levels.items() if each)))


class KraftController:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def initial(self) -> State:
        return State(((METADATA, self.rules.newest),))

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Format():
                return Transition(self.formatted(event))
            case ops.DeclareNode():
                return Transition(self.declared(state, event))
            case ops.KraftUpdate():
                return self.update(state, event)
            case ops.ReadLevels():
                levels = tuple(ops.Level(name, level) for name, level in state.shown())
                return Transition(state, (ops.Levels(state.epoch, levels),))
            case ops.FailOver():
                return self.failed_over(state)
            case _:
                assert_never(event)

    def formatted(self, event: ops.Format) -> State:
        state = State(((METADATA, event.level),), 1 + len(event.levels), tuple(sorted({0, *event.controllers})))
        for each in event.levels:
            if each.feature == KRAFT and self.rules.kraft_version_apart:
                state = replace(state, kraft=each.level)
            else:
                state = state.with_level(each.feature, each.level)
        return state

    def declared(self, state: State, event: ops.DeclareNode) -> State:
        def among(nodes: tuple[tuple[int, Ranges], ...]) -> tuple[tuple[int, Ranges], ...]:
            others = [each for each in nodes if each[0] != event.node]
            new = [] if event.supported is None else [(event.node, _ranges(event.supported))]
            return tuple(sorted((*others, *new)))

        if event.kind == "broker":
            return replace(state, brokers=among(state.brokers))
        return replace(state, controllers=among(state.controllers))

    def failed_over(self, state: State) -> Transition[State, ops.Action]:
        """What is finalized is in the log. Controller 0 stands for those of its release."""
        return Transition(state, (ops.Leads(0),))

    # Updates

    def update(self, state: State, request: ops.KraftUpdate) -> Transition[State, ops.Action]:
        updates = {each.feature: _typed(each, request.version) for each in request.updates}
        proposed = {**dict(state.levels), **{name: each.level for name, each in updates.items()}}
        errors = {name: self.error(state, each, proposed) for name, each in sorted(updates.items())}
        validates = request.validate_only and request.version > 0
        if self.rules.all_or_nothing and any(error != NONE for error in errors.values()):
            after = state if validates else self.raised_before(state, updates, errors)
            return Transition(after, (ops.Failed(INVALID_UPDATE_VERSION),))
        answer = ops.Results(self.results(errors, request))
        good = [each for name, each in updates.items() if errors[name] == NONE]
        return Transition(state if validates else self.applied(state, good), (answer,))

    def raised_before(self, state: State, updates: Mapping[str, ops.TypedUpdate], errors: Mapping[str, str]) -> State:
        """After a request that failed: an upgrade of kraft.version stays, if it was judged before the first refusal."""
        for name in hash_order(updates):
            if errors[name] != NONE:
                return state
            if name == KRAFT and self.rules.refused_keeps_kraft_version and updates[name].upgrade_type == ops.UPGRADE:
                return state.with_level(KRAFT, updates[name].level)
        return state

    def results(self, errors: Mapping[str, str], request: ops.KraftUpdate) -> tuple[Outcome, ...]:
        """By name. From 4.0 on a feature that the request repeats has as many results."""
        if not self.rules.all_or_nothing:
            return tuple(Outcome(name, error) for name, error in errors.items())
        if request.version >= WITHOUT_RESULTS:
            return ()
        return tuple(Outcome(name, NONE) for name in sorted(each.feature for each in request.updates))

    def applied(self, state: State, updates: Iterable[ops.TypedUpdate]) -> State:
        """A record for each update, also for a level that is finalized already."""
        for each in updates:
            if each.feature == KRAFT and self.rules.kraft_version_in_quorum and each.upgrade_type != ops.UPGRADE:
                continue  # the level that it has already: nothing is written
            state = replace(state, epoch=state.epoch + 1)
            if not (each.feature == KRAFT and self.rules.kraft_version_unused):
                state = state.with_level(each.feature, each.level)
        return state

    def error(self, state: State, update: ops.TypedUpdate, proposed: Mapping[str, int]) -> str:
        """Of one update, or ``NONE``. ``proposed``: all levels after the request."""
        return NONE if next(self.faults(state, update, proposed), None) is None else INVALID_UPDATE_VERSION

    def faults(self, state: State, update: ops.TypedUpdate, proposed: Mapping[str, int]) -> Iterator[str]:
        """Why the update is refused, in the order of Kafka's tests."""
        name, level, before = update.feature, update.level, state.level(update.feature)
        if update.upgrade_type not in (ops.UPGRADE, *DOWNGRADES):
            yield "unknown upgrade type"
        if level < 0:
            yield "a level below 0"
        yield from self.unsupported(state, name, level)
        if level < before and update.upgrade_type not in DOWNGRADES:
            yield "a downgrade without a downgrade type"
        if level > before and update.upgrade_type in DOWNGRADES:
            yield "an upgrade with a downgrade type"
        if name == METADATA:
            yield from self.metadata_faults(before, level)
        elif name == KRAFT and self.rules.kraft_version_in_quorum:
            if level < before:
                yield "kraft.version does not fall"
        elif self.rules.known_only:
            yield from self.dependencies(name, level, proposed)

    def unsupported(self, state: State, name: str, level: int) -> Iterator[str]:
        """The nodes that do not support the level."""
        if not self.rules.supported.get(name, DISABLED).holds(level):
            yield "controller 0"
        for number, supported in state.brokers:
            declared = dict(supported).get(name)
            if declared is None and self.rules.undeclared_refused:
                yield f"broker {number} does not declare it"
            elif not (declared or DISABLED).holds(level):
                yield f"broker {number}"
        if not self.rules.registered_controllers:
            yield from self.known_controllers(state, name, level)
        elif self.rules.registers_controllers(state.level(METADATA)):
            yield from self.registered_controllers(state, name, level)
        elif self.rules.asks_unregistered:
            yield from self.known_controllers(state, name, level)

    def known_controllers(self, state: State, name: str, level: int) -> Iterator[str]:
        """Up to 3.6: the controllers whose ApiVersions response is known; others are passed over.

        From 3.7 on nothing takes its place where controllers do not register: what no release asks, edition ``apache``
        does.
        """
        for number, supported in state.controllers:
            if number in state.quorum[1:] and not dict(supported).get(name, DISABLED).holds(level):
                yield f"controller {number}"

    def registered_controllers(self, state: State, name: str, level: int) -> Iterator[str]:
        for number, supported in state.controllers:
            if number != 0 and not dict(supported).get(name, DISABLED).holds(level):
                yield f"controller {number}"
        known = {0, *(number for number, _ in state.controllers)}
        for number in state.quorum:
            if number not in known:
                yield f"controller {number} has not registered"

    def metadata_faults(self, before: int, level: int) -> Iterator[str]:
        if level < self.rules.first_bootstrap:
            yield f"below {self.rules.first_bootstrap}, the first level of a cluster"
        if level < before and self.rules.changes_metadata(level, before):
            yield "a downgrade that loses metadata"

    def dependencies(self, name: str, level: int, proposed: Mapping[str, int]) -> Iterator[str]:
        if name not in self.rules.supported:
            yield "unknown feature"
        if proposed.get(METADATA, 0) < self.rules.needs.get((name, level), 0):
            yield "it needs a higher metadata.version"

    # Registration (classes ClusterControlManager, QuorumController)

    def registration_error(self, state: State, supported: Mapping[str, Range]) -> str:
        """Of a broker that registers with these ranges, or ``NONE``. A feature that is not finalized has level 0."""
        levels = dict(state.shown())
        if self.rules.not_finalized_is_0:
            levels = {**dict.fromkeys(supported, 0), **levels}
        if any(not supported[name].holds(levels[name]) for name in supported if name in levels):
            return UNSUPPORTED_VERSION
        if METADATA not in supported:
            if self.rules.metadata_is_declared:
                return INVALID_REGISTRATION
            if not Range(1, 1).holds(levels.get(METADATA, 1)):
                return UNSUPPORTED_VERSION
        undeclared = levels.keys() - supported.keys() - {METADATA}
        return UNSUPPORTED_VERSION if undeclared and self.rules.undeclared_finalized_refused else NONE


BUCKETS: Final = 16
"""Of a Java HashMap with up to 12 entries."""


def hash_order(names: Iterable[str]) -> list[str]:
    """The order in which a Java HashMap lists up to 12 names, which were put into it in this order."""

    def bucket(name: str) -> int:
        found = string_hash(name)
        return (found ^ found >> 16) % BUCKETS

    return sorted(names, key=bucket)


def _typed(update: ops.TypedUpdate, version: int) -> ops.TypedUpdate:
    """As the controller reads it: a request of version 0 has no type, and its downgrade flag is not read (584-44)."""
    return replace(update, upgrade_type=ops.UPGRADE) if version == 0 else update


def _ranges(supported: Iterable[ops.Declared]) -> Ranges:
    return ranges({each.feature: (each.low, each.high) for each in supported})
