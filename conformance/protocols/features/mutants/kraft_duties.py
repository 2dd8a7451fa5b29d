"""KRaft controllers that leave out what they must do, or take what no release takes. Least cases are in shorthand."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.model.kraft import State
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.mutants.kraft import Controller, OtherFaults, kraft_mutant
from kipcheck.conformance.protocols.features.ops import kraft as ops

PLACE = 35


@kraft_mutant("applies-legal-updates", "kraft-update v1 group.version:1")
class RefusesEveryKraftUpdate(Controller):
    """No update is ever applied, as if some node did not support it."""

    def faults(self, state: State, update: ops.TypedUpdate, proposed: Mapping[str, int]) -> Iterator[str]:
        yield "never"


@kraft_mutant("applies-legal-updates", "format 31; kraft-update v1 metadata.version:30!")
class NeverLowersMetadata(Controller):
    """metadata.version is never lowered, even along a step that changes no record."""

    def metadata_faults(self, before: int, level: int) -> Iterator[str]:
        yield from super().metadata_faults(before, level)
        if level < before:
            yield "never"


@kraft_mutant("applies-legal-updates", "kraft-update v1 group.version:0")
class RefusesARepeatedLevel(Controller):
    """A level that is finalized already is refused, as the draft wants it."""

    def faults(self, state: State, update: ops.TypedUpdate, proposed: Mapping[str, int]) -> Iterator[str]:
        yield from super().faults(state, update, proposed)
        if update.level == state.level(update.feature):
            yield "the same level"


class _SomeBrokers(Controller):
    """Compares a level with some of the brokers."""

    def asked(self, brokers: tuple[tuple[int, object], ...]) -> slice:
        raise NotImplementedError

    def unsupported(self, state: State, name: str, level: int) -> Iterator[str]:
        return super().unsupported(replace(state, brokers=state.brokers[self.asked(state.brokers)]), name, level)


@kraft_mutant(
    "within-brokers",
    "broker 1 metadata.version:7-33,group.version:0-1; broker 2 metadata.version:7-33; kraft-update v1 group.version:1",
)
class AsksTheFirstKraftBroker(_SomeBrokers):
    """A level is compared with the broker of the lowest number alone."""

    def asked(self, brokers: tuple[tuple[int, object], ...]) -> slice:
        return slice(1)


@kraft_mutant(
    "within-brokers",
    "broker 1 metadata.version:7-33; broker 2 metadata.version:7-33,group.version:0-1; kraft-update v1 group.version:1",
)
class AsksTheLastKraftBroker(_SomeBrokers):
    """A level is compared with the broker of the highest number alone."""

    def asked(self, brokers: tuple[tuple[int, object], ...]) -> slice:
        return slice(len(brokers) - 1, None)


@kraft_mutant("a-result-each", "kraft-update v1 group.version:0")
class AnswersWithoutResults(Controller):
    """A response never has results."""

    def results(self, errors: Mapping[str, str], request: ops.KraftUpdate) -> tuple[()]:
        return ()


@kraft_mutant("epoch-rises", "levels; kraft-update v1 group.version:0; levels")
class WritesNoRedundantRecord(Controller):
    """A level that is finalized already is accepted, and not written."""

    def applied(self, state: State, updates: Iterable[ops.TypedUpdate]) -> State:
        return super().applied(state, [each for each in updates if state.level(each.feature) != each.level])


@kraft_mutant("levels-stay", "broker 1 gone; levels")
class FallsWithItsNodes(Controller):
    """The levels are forgotten when a node declares what it supports, or is gone."""

    def declared(self, state: State, event: ops.DeclareNode) -> State:
        return replace(super().declared(state, event), levels=((METADATA, self.rules.first_bootstrap),))


@kraft_mutant("levels-are-read", "levels")
class ShowsNoLevels(Controller):
    """The levels cannot be read."""

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        return (
            Transition(state, (ops.Failed("NOT_CONTROLLER"),))
            if isinstance(event, ops.ReadLevels)
            else super().step(state, event)
        )


@kraft_mutant("within-the-release", "kraft-update v1 metadata.version:34")
class TakesTheNextLevel(Controller):
    """A level that the release does not have yet is accepted, one above its highest."""

    def unsupported(self, state: State, name: str, level: int) -> Iterator[str]:
        own = self.rules.supported.get(name, Range(0, 0))
        return iter(()) if level == own.high + 1 else super().unsupported(state, name, level)


@kraft_mutant("knows-the-type", "kraft-update v1 group.version:1~99")
class TakesAnyType(Controller):
    """An unknown upgrade type counts as an upgrade."""

    def faults(self, state: State, update: ops.TypedUpdate, proposed: Mapping[str, int]) -> Iterator[str]:
        known = update if update.upgrade_type in (1, 2, 3) else replace(update, upgrade_type=ops.UPGRADE)
        return super().faults(state, known, proposed)


@kraft_mutant("first-level", "kraft-update v1 metadata.version:6!")
class GoesBelowTheFirst(OtherFaults):
    """metadata.version may fall below the least level of a new cluster."""

    def overlooks(self, state: State, update: ops.TypedUpdate) -> bool:
        below = 1 <= update.level < self.rules.first_bootstrap
        return below and update.feature == METADATA and update.upgrade_type != ops.UPGRADE


@kraft_mutant("dependencies", "format 22; kraft-update v1 eligible.leader.replicas.version:1")
class NeedsNothing(Controller):
    """A feature is finalized whatever metadata.version it needs."""

    def dependencies(self, name: str, level: int, proposed: Mapping[str, int]) -> Iterator[str]:
        return super().dependencies(name, level, {**proposed, METADATA: self.rules.newest})


@kraft_mutant("results-are-true", "levels; kraft-update v1 group.version:1,transaction.version:1; levels")
class AppliesTheFirstOnly(Controller):
    """Of a request only the first update is applied."""

    def applied(self, state: State, updates: Iterable[ops.TypedUpdate]) -> State:
        return super().applied(state, [*updates][:1])


@kraft_mutant(
    "applies-legal-updates", "format 33 with 1; controller 1 metadata.version:7-33; kraft-update v1 metadata.version:33"
)
class RefusesInAQuorum(Controller):
    """A leader that is not alone refuses every update."""

    def registered_controllers(self, state: State, name: str, level: int) -> Iterator[str]:
        yield from super().registered_controllers(state, name, level)
        if len(state.quorum) > 1:
            yield "the others may not support it"


@kraft_mutant(
    "applies-legal-updates",
    "format 22; kraft-update v1 eligible.leader.replicas.version:1,metadata.version:23",
)
class LooksBeforeTheRequest(Controller):
    """What a feature needs is compared with metadata.version before the request, which raises it."""

    def update(self, state: State, request: ops.KraftUpdate) -> Transition[State, ops.Action]:
        self._before = state.level(METADATA)
        return super().update(state, request)

    def dependencies(self, name: str, level: int, proposed: Mapping[str, int]) -> Iterator[str]:
        return super().dependencies(name, level, {**proposed, METADATA: self._before})


@kraft_mutant("levels-stay", "levels")
class ListsLevelZero(Controller):
    """A feature that is not finalized is listed with level 0."""

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        after, actions = super().step(state, event)
        zero = tuple(ops.Level(name, 0) for name in self.rules.supported if not state.level(name))
        found = (
            replace(each, levels=(*each.levels, *zero)) if isinstance(each, ops.Levels) else each for each in actions
        )
        return Transition(after, tuple(found))
