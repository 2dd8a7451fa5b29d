"""Kafka Streams groups that follow a feature, with one planted defect each. Least cases are in shorthand."""

from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.features.invariants.app import UPGRADES
from kipcheck.conformance.protocols.features.model.app import NEW, OLD, FeatureApp, State
from kipcheck.conformance.protocols.features.ops.app import OPERATIONS, Action, Event, Poll, Polled, Rebalance, Wrote
from kipcheck.conformance.protocols.features.ops.cluster import TopLevel

PLACE = 60
UPGRADED: Final = "finalize 2; notify 0; begin a; rebalance 0; "


class App(MachineMutant, FeatureApp):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS

    def __init__(self) -> None:
        FeatureApp.__init__(self)
        MachineMutant.__init__(self)


_mutant = mutants_of(UPGRADES, OPERATIONS.machine, edition="kip-584")


@_mutant("asks-again", "begin a; ask 0")
class NeverPolls(App):
    """The leader reads the feature in rebalances only."""

    def polled(self, state: State, broker: int) -> Transition[State, Action]:
        return Transition(state, (Polled(False, False),))


@_mutant("support-changes-nothing", "begin a; ask 0")
class GoesBySupport(App):
    """The leader upgrades as soon as a broker supports the new level."""

    def polled(self, state: State, broker: int) -> Transition[State, Action]:
        asks = self.asks(state)
        return Transition(state, (Polled(asks, asks),))


@_mutant("one-broker-is-enough", "finalize 2; notify 0; begin a; ask 0")
class WaitsForAllBrokers(App):
    """The leader waits until every broker knows the new level."""

    def polled(self, state: State, broker: int) -> Transition[State, Action]:
        asks = self.asks(state)
        return Transition(state, (Polled(asks, asks and min(state.caches) > state.newest),))


@_mutant("asks-no-broker", f"{UPGRADED}ask 0")
class AlwaysAsks(App):
    """The leader asks a broker also after the upgrade began."""

    def asks(self, state: State) -> bool:
        return True

    def instruction(self, state: State, level: int) -> int:
        return max(level, state.newest)


@_mutant("never-back", f"{UPGRADED}rebalance 1")
class BelievesAStaleBroker(App):
    """The level is not kept in metadata: a leader that asks a stale broker takes the group back."""

    def instruction(self, state: State, level: int) -> int:
        return OLD if state.newest == NEW and OLD in state.caches else level


@_mutant("switches-when-instructed", f"{UPGRADED}app")
class SwitchesInTheRebalance(App):
    """Members change their producers in the rebalance, before they have the leader's instruction."""

    def rebalanced(self, state: State, broker: int) -> Transition[State, Action]:
        after, actions = super().rebalanced(state, broker)
        return Transition(
            replace(after, members=tuple(replace(each, told=each.level) for each in after.members)), actions
        )


@_mutant("crashes-rather", f"{UPGRADED}instruct a; finalize 1; commit a")
class WritesOn(App):
    """A member on the new level writes on after a downgrade."""

    def committed(self, state: State, name: str) -> Transition[State, Action]:
        return Transition(state, (Wrote(False),))


@_mutant("sends-what-it-learned", "finalize 2; notify 0; begin a; rebalance 0")
class NeverSendsTheNewLevel(App):
    """The leader notices the new level, and goes on sending the old one."""

    def instruction(self, state: State, level: int) -> int:
        return OLD


@_mutant("sends-what-it-learned", "begin a; rebalance 0")
class SendsTheNewestItKnows(App):
    """The leader sends the highest level that it could work at."""

    def instruction(self, state: State, level: int) -> int:
        return NEW


@_mutant("metadata-records", f"{UPGRADED}app")
class RecordsNothing(App):
    """The level of a rebalance is not kept in the members' metadata."""

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        after, actions = super().step(state, event)
        if isinstance(event, Rebalance):
            after = replace(after, members=tuple(replace(each, level=OLD) for each in after.members))
        return Transition(after, actions)


@_mutant("goes-on", "ask 0")
class AnswersNothing(App):
    """The group never says what it does."""

    def step(self, state: State, event: Event, /) -> Transition[State, Any]:
        if not isinstance(event, Poll):
            return super().step(state, event)
        return Transition(state, (TopLevel("NOT_COORDINATOR"),))


@_mutant("switches-when-instructed", f"{UPGRADED}instruct a; app")
class NeverSwitches(App):
    """Members ignore the leader's instruction."""

    def told(self, state: State, name: str) -> State:
        return state


@_mutant("asks-no-broker", f"{UPGRADED}ask 0")
class RebalancesForEver(App):
    """Each poll starts a rebalance as long as a broker knows the new level."""

    def polled(self, state: State, broker: int) -> Transition[State, Action]:
        return Transition(state, (Polled(self.asks(state), self.known(state, broker) == NEW),))


@_mutant("crashes-rather", "begin a; commit a")
class EndsAtTheOldLevel(App):
    """A member ends whenever the old level is finalized, also if it never left it."""

    def committed(self, state: State, name: str) -> Transition[State, Action]:
        if state.member(name) is None or state.level > OLD:
            return super().committed(state, name)
        return Transition(state.without(name), (Wrote(True),))
