"""KRaft controllers that register brokers, with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable
from typing import Final, TypeVar

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.protocols.features.invariants.kraft_brokers import BROKERS
from kipcheck.conformance.protocols.features.model.kraft import State
from kipcheck.conformance.protocols.features.model.kraft_brokers import SHOWS_ZERO, KraftBrokers
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops.cluster import Finalized, Supported
from kipcheck.conformance.protocols.features.ops.kraft_brokers import (
    OPERATIONS,
    Action,
    NotRegistered,
    Register,
    Registered,
)

PLACE = 70
RELEASE: Final = "3.9.2"


class Brokers(MachineMutant, KraftBrokers):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS

    def __init__(self) -> None:
        KraftBrokers.__init__(self, Rules.of(RELEASE))
        MachineMutant.__init__(self)


Made = TypeVar("Made", bound=type[Brokers])


def _mutant(invariant: str, least: str) -> Callable[[Made], Made]:
    edition = f"apache@{RELEASE}"
    return mutant(BROKERS, f"kraft-brokers/{invariant}", OPERATIONS.machine, None, least, edition=edition)


@_mutant("refuses-incompatible", "format 7; register 1")
class RegistersEveryone(Brokers):
    """A broker is registered without a look at its levels."""

    def registered(self, state: State, event: Register) -> Transition[State, Action]:
        return Transition(state, (Registered(),))


@_mutant("admits-compatible", "format 7; register 1 metadata.version:1-21")
class WantsTheSameRelease(Brokers):
    """A broker is registered only if its highest metadata.version is the finalized one."""

    def registered(self, state: State, event: Register) -> Transition[State, Action]:
        same = all(each.high == state.level(METADATA) for each in event.supported if each.feature == METADATA)
        return super().registered(state, event) if same else Transition(state, (NotRegistered(event.broker),))


@_mutant("finalized-as-they-are", "format 7; api-versions v3")
class ListsFromOne(Brokers):
    """A finalized level is listed as the range from 1 on."""

    def finalized(self, state: State) -> tuple[Finalized, ...]:
        return tuple(Finalized(name, 1, level) for name, level in state.levels)


@_mutant("hides-minimum-0", "api-versions v3")
class ShowsMinimum0(Brokers):
    """Supported features with minimum 0 are shown in every version."""

    def supported(self, version: int) -> tuple[Supported, ...]:
        return super().supported(SHOWS_ZERO)
