"""KRaft controllers of feature versions with one planted defect each. Least cases are in shorthand."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.features.model.kraft import KraftController, State
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops import kraft as ops

PLACE = 30


class Controller(MachineMutant, KraftController):
    """The reference machine of edition ``apache`` as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS

    def __init__(self) -> None:
        KraftController.__init__(self, Rules.owed())
        MachineMutant.__init__(self)


kraft_mutant = mutants_of("kraft-features/updates", ops.OPERATIONS.machine)


@kraft_mutant("validate-changes-nothing", "levels; kraft-update v1 group.version:1 validate; levels")
class AppliesWhatItValidates(Controller):
    """Validate-only is not read."""

    def update(self, state: State, request: ops.KraftUpdate) -> Transition[State, ops.Action]:
        return super().update(state, replace(request, validate_only=False))


@kraft_mutant("error-changes-nothing", "levels; kraft-update v1 group.version:1,metadata.version:7; levels")
class AppliesTheGoodOnes(Controller):
    """A request that fails is applied in part."""

    def update(self, state: State, request: ops.KraftUpdate) -> Transition[State, ops.Action]:
        after, actions = super().update(state, request)
        if not any(isinstance(each, ops.Failed) for each in actions) or request.validate_only:
            return Transition(after, actions)
        good = [each for each in request.updates if self.good(state, each, request.version)]
        return Transition(self.applied(after, good), actions)

    def good(self, state: State, update: ops.TypedUpdate, version: int) -> bool:
        read = replace(update, upgrade_type=ops.UPGRADE) if version == 0 else update
        proposed = {**dict(state.levels), update.feature: update.level}
        return next(self.faults(state, read, proposed), None) is None


@kraft_mutant("results-are-true", "levels; kraft-update v1 group.version:1; levels")
class ForgetsAnUpdate(Controller):
    """The last good update of a request is not applied."""

    def applied(self, state: State, updates: Iterable[ops.TypedUpdate]) -> State:
        return super().applied(state, [*updates][:-1])


@kraft_mutant("within-brokers", "broker 1 metadata.version:7-33; kraft-update v1 group.version:1")
class ForgetsTheNodes(Controller):
    """A level is accepted if the leading controller supports it."""

    def unsupported(self, state: State, name: str, level: int) -> Iterator[str]:
        return super().unsupported(replace(state, brokers=(), controllers=(), quorum=(0,)), name, level)


@kraft_mutant("within-controllers", "levels; controller 1 metadata.version:7-33; kraft-update v1 group.version:1")
class AsksBrokersAlone(Controller):
    """A level is compared with brokers, and with no other controller."""

    def registered_controllers(self, state: State, name: str, level: int) -> Iterator[str]:
        return iter(())


@kraft_mutant(
    "asks-unregistered",
    "format 14 with 1; controller 1 metadata.version:7-14; levels; kraft-update v1 metadata.version:15",
)
class AssumesControllers(Controller):
    """Where controllers do not register, a leader assumes that they support what it supports."""

    def known_controllers(self, state: State, name: str, level: int) -> Iterator[str]:
        return iter(())


@kraft_mutant("outlives-fail-over", "levels; fail-over; levels")
class ForgetsWhatRose(Controller):
    """A controller that begins to lead reads the log up to the first level."""

    def failed_over(self, state: State) -> Transition[State, ops.Action]:
        return super().failed_over(replace(state, levels=((METADATA, self.rules.first_bootstrap),)))


@kraft_mutant("outlives-fail-over", "fail-over")
class LeavesNobodyLeading(Controller):
    """After the leading controller ended, none leads."""

    def failed_over(self, state: State) -> Transition[State, ops.Action]:
        return Transition(state, (ops.Leads(-1),))


class OtherFaults(Controller):
    """Overlooks some reasons for a refusal."""

    def overlooks(self, state: State, update: ops.TypedUpdate) -> bool:
        raise NotImplementedError

    def faults(self, state: State, update: ops.TypedUpdate, proposed: Mapping[str, int]) -> Iterator[str]:
        return iter(()) if self.overlooks(state, update) else super().faults(state, update, proposed)


@kraft_mutant("downgrade-gated", "format 33 group.version:1; levels; kraft-update v1 group.version:0")
class LowersByUpgrades(OtherFaults):
    """A feature falls without a downgrade type."""

    def overlooks(self, state: State, update: ops.TypedUpdate) -> bool:
        falls = update.level < state.level(update.feature) and update.feature != METADATA
        return falls and update.upgrade_type == ops.UPGRADE and update.level == 0


@kraft_mutant("downgrade-gated", "levels; kraft-update v1 group.version:1!")
class RaisesByDowngrades(OtherFaults):
    """A downgrade raises a feature."""

    def overlooks(self, state: State, update: ops.TypedUpdate) -> bool:
        span = self.rules.supported.get(update.feature)
        rises = span is not None and state.level(update.feature) < update.level <= span.high
        return rises and update.upgrade_type == ops.SAFE_DOWNGRADE


@kraft_mutant("metadata-downgrades", "levels; kraft-update v1 metadata.version:32!")
class LosesRecords(Controller):
    """metadata.version falls also along steps that change records."""

    def metadata_faults(self, before: int, level: int) -> Iterator[str]:
        return super().metadata_faults(level, level)


@kraft_mutant("v0-flag-is-ignored", "format 33 group.version:1; levels; kraft-update v0 group.version:0!")
class ReadsTheFlag(Controller):
    """The downgrade flag of version 0 is read, as the draft wants it."""

    def update(self, state: State, request: ops.KraftUpdate) -> Transition[State, ops.Action]:
        return super().update(
            state, replace(request, version=1, validate_only=False) if not request.version else request
        )


@kraft_mutant("epoch-never-falls", "levels; kraft-update v1 group.version:1; levels")
class CountsBackwards(Controller):
    """A record lowers the epoch."""

    def applied(self, state: State, updates: Iterable[ops.TypedUpdate]) -> State:
        asked = [*updates]
        return replace(super().applied(state, asked), epoch=state.epoch - len(asked))


@kraft_mutant("one-error", "kraft-update v1 group.version:-1")
class BlamesAnotherError(Controller):
    """A refusal has the error FEATURE_UPDATE_FAILED."""

    def update(self, state: State, request: ops.KraftUpdate) -> Transition[State, ops.Action]:
        after, actions = super().update(state, request)
        changed = (ops.Failed("FEATURE_UPDATE_FAILED") if isinstance(each, ops.Failed) else each for each in actions)
        return Transition(after, tuple(changed))
