"""Controllers of feature updates with one planted defect each. Least cases are in shorthand."""

from collections.abc import Iterator
from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.features.model import controller
from kipcheck.conformance.protocols.features.ops import controller as ops

PLACE = 10


class MutantController(MachineMutant, controller.FeatureController):
    """The reference machine as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS


epochs = mutants_of("features/epochs", ops.OPERATIONS.machine)
gating = mutants_of("features/gating", ops.OPERATIONS.machine)
brokers = mutants_of("features/brokers", ops.OPERATIONS.machine)
# The epoch


@epochs("epoch-grows", "up 0 1-2; update 1; update 2")
class StuckEpoch(MutantController):
    """Updates are applied, and the epoch is not raised after the first."""

    def applied(self, state: controller.State, update: ops.Update) -> controller.State:
        return replace(super().applied(state, update), epoch=1)


@epochs("epoch-grows", "up 0 1-2; update 1; update 2")
class LeapingEpoch(MutantController):
    """Every update raises the epoch by two."""

    def applied(self, state: controller.State, update: ops.Update) -> controller.State:
        return replace(super().applied(state, update), epoch=state.epoch + 2)


@epochs("epoch-grows", "up 0 1-2; update 1; update 0!")
class DeletesTheNode(MutantController):
    """A deletion of the feature deletes the whole node, and its versions start again."""

    def applied(self, state: controller.State, update: ops.Update) -> controller.State:
        after = super().applied(state, update)
        return after if after.level else replace(after, epoch=0)


@epochs("only-updates-change", "describe; update 0; describe")
class CountsRefusals(MutantController):
    """A refused update raises the epoch."""

    def update(self, state: controller.State, update: ops.Update) -> Transition[controller.State, ops.Action]:
        after, actions = super().update(state, update)
        refused = any(isinstance(action, ops.Rejected) for action in actions)
        return Transition(replace(after, epoch=after.epoch + 1) if refused else after, actions)


@epochs("only-updates-change", "up 0 1-2; update 2; update 1; describe")
class AppliesWhatItRefuses(MutantController):
    """A downgrade without the flag is refused, and lowers the level nevertheless."""

    def update(self, state: controller.State, update: ops.Update) -> Transition[controller.State, ops.Action]:
        after, actions = super().update(state, update)
        return Transition(replace(after, level=update.level) if 1 <= update.level < after.level else after, actions)


@epochs("only-updates-change", "up 0 1-2; describe")
class FinalizesByItself(MutantController):
    """The first broker that registers finalizes its highest level."""

    def step(self, state: controller.State, event: ops.Event, /) -> Transition[controller.State, ops.Action]:
        after, actions = super().step(state, event)
        if isinstance(event, ops.BrokerUp) and event.high is not None and not after.level:
            after = replace(after, level=event.high)
        return Transition(after, actions)


@epochs("outlives-restarts", "up 0 1-2; update 1; restart; describe")
class ForgetsAtRestart(MutantController):
    """Finalized features are lost when the controllers restart."""

    def restarted(self, state: controller.State) -> controller.State:
        return controller.State(brokers=state.brokers)


@epochs("epoch-names-contents", "up 0 1-2; update 1; describe")
class TellsTheLevelBefore(MutantController):
    """The reported level is the one before the last update, the epoch the current one."""

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[int, int] = {}

    def applied(self, state: controller.State, update: ops.Update) -> controller.State:
        self._before[state.epoch + 1] = state.level
        return super().applied(state, update)

    def described(self, state: controller.State) -> ops.Told:
        return ops.Told(self._before.get(state.epoch, 0), state.epoch)


# Updates to refuse


@gating("downgrade-gated", "up 0 1-2; update 2; update 1")
class ForgetsGate(MutantController):
    """A downgrade without the flag is finalized."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        falls = 1 <= update.level < state.level
        return super().faults(state, replace(update, allow_downgrade=True) if falls else update)


@gating("deletion-gated", "up 0 1-2; update 1; update 0")
class DeletesUnasked(MutantController):
    """A feature is deleted without the flag."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        return super().faults(state, replace(update, allow_downgrade=True) if update.level < 1 else update)


@gating("deletes-what-is-there", "update 0!")
class DeletesNothing(MutantController):
    """A feature that is not finalized is deleted."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        return iter(()) if update.level < 1 and update.allow_downgrade else super().faults(state, update)


@gating("flag-only-down", "up 0 1-2; update 1; update 2!")
class RisesWithTheFlag(MutantController):
    """An upgrade with the downgrade flag is applied."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        rises = update.level > state.level > 0
        return super().faults(state, replace(update, allow_downgrade=False) if rises else update)


@gating("same-level-refused", "up 0 1-2; update 1; update 1")
class AcceptsTheSame(MutantController):
    """An update to the finalized level is accepted."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        return iter(()) if update.level == state.level > 0 else super().faults(state, update)


class _LooksElsewhere(MutantController):
    """Checks only some of the brokers."""

    def counts(self, broker: controller.Broker, level: int) -> bool:
        raise NotImplementedError

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        counted = tuple(each for each in state.brokers if self.counts(each, update.level))
        return super().faults(replace(state, brokers=counted), update)


@gating("level-suits-brokers", "up 0 2-2; up 1 1-2; update 1")
class LooksAtTheHighest(_LooksElsewhere):
    """The lowest level of a broker is not checked."""

    def counts(self, broker: controller.Broker, level: int) -> bool:
        return broker.low is None or level >= broker.low


@gating("level-suits-brokers", "up 0 -; up 1 1-2; update 1")
class ForgetsTheUnknowing(_LooksElsewhere):
    """A broker that does not know the feature does not forbid an update."""

    def counts(self, broker: controller.Broker, level: int) -> bool:
        return broker.knows


@gating("level-suits-brokers", "update 1")
class AsksNobody(MutantController):
    """Without live brokers every level is accepted."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        alone = not state.brokers and update.level > state.level and not update.allow_downgrade
        return iter(()) if alone else super().faults(state, update)


# Updates to apply


@gating("upgrades", "up 0 1-2; update 2")
class StopsShort(MutantController):
    """The highest level that a broker supports counts as out of range."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        yield from super().faults(state, update)
        if update.level > state.level and any(each.high == update.level for each in state.brokers):
            yield controller.FEATURE_UPDATE_FAILED


@gating("downgrades", "up 0 1-2; update 2; update 1!")
class NeverGoesDown(MutantController):
    """Every downgrade is refused, even with the flag."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        yield from super().faults(state, update)
        if 1 <= update.level < state.level:
            yield controller.FEATURE_UPDATE_FAILED


@gating("deletion-is-free", "up 0 1-2; update 1; update 0!")
class GuardsDeletion(MutantController):
    """A feature is not deleted while a broker knows it."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        yield from super().faults(state, update)
        if update.level < 1 and any(each.knows for each in state.brokers):
            yield controller.FEATURE_UPDATE_FAILED


@gating("names-the-fault", "update 0")
class BlamesBrokers(MutantController):
    """Every refusal has the error FEATURE_UPDATE_FAILED."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        return (controller.FEATURE_UPDATE_FAILED for _ in super().faults(state, update))


@gating("names-the-fault", "up 0 1-2; update 3")
class BlamesTheOperator(MutantController):
    """Every refusal has the error INVALID_REQUEST."""

    def faults(self, state: controller.State, update: ops.Update) -> Iterator[str]:
        return (controller.INVALID_REQUEST for _ in super().faults(state, update))


# Brokers


@brokers("incompatible-broker-stops", "up 0 1-2; update 1; up 0 2-2")
class AdmitsAnyone(MutantController):
    """A broker can register whatever it supports."""

    def admits(self, state: controller.State, broker: controller.Broker) -> bool:
        return True


@brokers("incompatible-broker-stops", "up 0 1-2; update 1; up 0 -")
class AdmitsTheUnknowing(MutantController):
    """A broker that does not know the finalized feature can register."""

    def admits(self, state: controller.State, broker: controller.Broker) -> bool:
        return not broker.knows or super().admits(state, broker)


@brokers("compatible-broker-stays", "up 0 1-2; update 1; up 0 1-2")
class WantsTheNewest(MutantController):
    """A broker can register only if the finalized level is its highest."""

    def admits(self, state: controller.State, broker: controller.Broker) -> bool:
        return not state.level or (broker.supports(state.level) and broker.high == state.level)
