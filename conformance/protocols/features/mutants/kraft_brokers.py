"""KRaft controllers that register brokers, with one planted defect each. Least cases are in shorthand."""

from dataclasses import replace
from typing import Final

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant, mutants_of
from kipcheck.conformance.protocols.features.invariants.kraft_brokers import BROKERS
from kipcheck.conformance.protocols.features.model.kraft import State
from kipcheck.conformance.protocols.features.model.kraft_brokers import SHOWS_ZERO, KraftBrokers
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops import kraft_brokers
from kipcheck.conformance.protocols.features.ops.cluster import Finalized, Supported

PLACE = 70
RELEASE: Final = named("last-before-4")


class Brokers(MachineMutant, KraftBrokers):
    """The reference machine as an adapter, with overridable decisions."""

    operations = kraft_brokers.OPERATIONS
    release = RELEASE

    def __init__(self) -> None:
        KraftBrokers.__init__(self, Rules.of(self.release))
        MachineMutant.__init__(self)


_mutant = mutants_of(BROKERS, kraft_brokers.OPERATIONS.machine, edition=f"apache@{RELEASE}")


@_mutant("refuses-incompatible", "register 1 metadata.version:1-20")
class RegistersEveryone(Brokers):
    """A broker is registered without a look at its levels."""

    def registered(self, state: State, event: kraft_brokers.Register) -> Transition[State, kraft_brokers.Action]:
        return Transition(state, (kraft_brokers.Registered(),))


@_mutant("admits-compatible", "format 20; register 1 metadata.version:1-21")
class WantsTheSameRelease(Brokers):
    """A broker is registered only if its highest metadata.version is the finalized one."""

    def registered(self, state: State, event: kraft_brokers.Register) -> Transition[State, kraft_brokers.Action]:
        same = all(each.high == state.level(METADATA) for each in event.supported if each.feature == METADATA)
        return (
            super().registered(state, event)
            if same
            else Transition(state, (kraft_brokers.NotRegistered(event.broker),))
        )


@_mutant("finalized-as-they-are", "api-versions v3")
class ListsFromOne(Brokers):
    """A finalized level is listed as the range from 1 on."""

    def finalized(self, state: State) -> tuple[Finalized, ...]:
        return tuple(Finalized(name, 1, level) for name, level in state.levels)


@_mutant("hides-minimum-0", "api-versions v3")
class ShowsMinimum0(Brokers):
    """Supported features with minimum 0 are shown in every version."""

    def supported(self, version: int) -> tuple[Supported, ...]:
        return super().supported(SHOWS_ZERO)


@_mutant("admits-compatible", "register 1 metadata.version:1-21")
class RegistersNoBroker(Brokers):
    """No broker is ever registered."""

    def registered(self, state: State, event: kraft_brokers.Register) -> Transition[State, kraft_brokers.Action]:
        return Transition(state, (kraft_brokers.NotRegistered(event.broker),))


@_mutant("answers-clients", "api-versions v3")
class SupportsNothing(Brokers):
    """An answer has no supported features."""

    def supported(self, version: int) -> tuple[Supported, ...]:
        return ()


@_mutant("refuses-incompatible", "register 1 metadata.version:1-20")
class TakesMaximaForMinima(Brokers):
    """A broker is registered if its lowest level is not above what is finalized."""

    def registered(self, state: State, event: kraft_brokers.Register) -> Transition[State, kraft_brokers.Action]:
        lowest = all(each.low <= state.level(each.feature) for each in event.supported)
        return Transition(state, (kraft_brokers.Registered() if lowest else kraft_brokers.NotRegistered(event.broker),))


@mutant(
    BROKERS,
    "kraft-brokers/refuses-incompatible",
    kraft_brokers.OPERATIONS.machine,
    None,
    "format 30 group.version:1; register 1 metadata.version:7-30",
    edition="apache@4.3.1",
)
class LooksAtMetadataAlone(Brokers):
    """Only the level of metadata.version is compared."""

    release = named("mutants-of-controllers")

    def registered(self, state: State, event: kraft_brokers.Register) -> Transition[State, kraft_brokers.Action]:
        metadata = tuple((name, level) for name, level in state.levels if name == METADATA)
        after, actions = super().registered(replace(state, levels=metadata, kraft=0), event)
        return Transition(replace(state, brokers=after.brokers), actions)
