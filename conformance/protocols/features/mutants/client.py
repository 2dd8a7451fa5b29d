"""Clients of feature versions with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.protocols.features.invariants.client import DISCOVERY, RELEASED
from kipcheck.conformance.protocols.features.model.client import NONE, FeatureClient, State
from kipcheck.conformance.protocols.features.ops import client as ops
from kipcheck.conformance.protocols.features.ops.cluster import Outcome

PLACE = 50


class Client(MachineMutant, FeatureClient):
    """The reference machine as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS

    def __init__(self) -> None:
        FeatureClient.__init__(self)
        MachineMutant.__init__(self)


Made = TypeVar("Made", bound=type[Client])


def _mutant(invariant: str, least: str, edition: str = "kip-584") -> Callable[[Made], Made]:
    check = DISCOVERY if edition == "kip-584" else RELEASED
    return mutant(check, f"feature-client/{invariant}", ops.OPERATIONS.machine, None, least, edition=edition)


@_mutant("never-goes-back", "answer 1; answer 0")
class TakesOldAnswers(Client):
    """An answer of a broker that is behind replaces newer features."""

    def answered(self, state: State, answer: ops.BrokerAnswers) -> State:
        return replace(state, epoch=answer.epoch, finalized=answer.finalized, supported=answer.supported)


@_mutant("shows-the-newest", "answer 0; answer 1")
class KeepsTheFirstAnswer(Client):
    """A client never replaces what it learned first."""

    def answered(self, state: State, answer: ops.BrokerAnswers) -> State:
        return (
            super().answered(state, answer) if state == replace(State(state.needs), waited_s=state.waited_s) else state
        )


@_mutant("uses-what-is-finalized", "client needs a:2; answer 0 supports a:1-2")
class UsesWhatABrokerSupports(Client):
    """New behaviour begins as soon as one broker supports it."""

    def uses(self, state: State) -> tuple[str, ...]:
        supported = {each.feature: each.high for each in state.supported}
        return tuple(each.feature for each in state.needs if supported.get(each.feature, 0) >= each.level)


@_mutant("asks", "client needs a:1; pass 600")
class AsksOnce(Client):
    """A client reads the features when it starts, and never again."""

    def waited(self, state: State, seconds: int) -> Transition[State, ops.Action]:
        return Transition(state, (ops.Asked(False),))


@_mutant("asks", "client")
class NeverAsks(Client):
    """A client reads no features when it starts."""

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        after, actions = super().step(state, event)
        return (
            Transition(after, (ops.Asked(False),)) if isinstance(event, ops.StartClient) else Transition(after, actions)
        )


@_mutant("futures", "results a:INVALID_REQUEST")
class TrustsTheTopLevel(Client):
    """Without a top-level error every update counts as applied."""

    def futures(self, results: tuple[Outcome, ...], top: str | None) -> ops.Futures:
        error = top or NONE
        return ops.Futures(tuple(Outcome(each.feature, error) for each in results), error)


@_mutant("takes-answers-as-they-come", "answer 1; answer 0", edition="apache@3.9.2")
class OrdersAnswers(Client):
    """A client of a release follows the rule of the draft, which is no defect."""


@_mutant("uses-what-is-finalized", "client needs a:1; answer 0 a:1-1")
class NeverUsesAnything(Client):
    """New behaviour stays off for ever."""

    def uses(self, state: State) -> tuple[str, ...]:
        return ()


@_mutant("uses-what-is-finalized", "client needs a:2; answer 0 a:2-3")
class WantsTheVeryLevel(Client):
    """New behaviour is used at the needed level alone, and not above it."""

    def uses(self, state: State) -> tuple[str, ...]:
        levels = {each.feature: each.high for each in state.finalized}
        return tuple(each.feature for each in state.needs if levels.get(each.feature) == each.level)


@_mutant("never-goes-back", "answer 1; answer -1")
class ForgetsWithoutEpoch(Client):
    """An answer without finalized features makes the client forget what it knew."""

    def answered(self, state: State, answer: ops.BrokerAnswers) -> State:
        return State(state.needs) if answer.epoch < 0 else super().answered(state, answer)


@_mutant("futures", "results a:NONE top NOT_CONTROLLER")
class TrustsSingleResults(Client):
    """A top-level error is not looked at."""

    def futures(self, results: tuple[Outcome, ...], top: str | None) -> ops.Futures:
        return super().futures(results, None)


@_mutant("shows-the-newest", "answer -1")
class ShowsEpochMinusOne(Client):
    """Without finalized features the client shows the epoch -1."""

    def view(self, state: State) -> ops.View:
        return replace(super().view(state), epoch=state.epoch)


@_mutant("never-goes-back", "answer 1 a:1-1; answer 0")
class KeepsTheEpochAlone(Client):
    """An answer with a lower epoch changes the finalized levels, under the epoch that was seen."""

    def answered(self, state: State, answer: ops.BrokerAnswers) -> State:
        after = replace(state, finalized=answer.finalized, supported=answer.supported)
        return replace(after, epoch=max(state.epoch, answer.epoch))
