"""A KRaft controller that registers brokers, and their answers to ApiVersions, by exact release.

Classes ClusterControlManager and ApiVersionsResponse. A broker answers with the finalized levels, each as minimum and
maximum, without those that are 0, and with what its release supports; from 3.9 on a request below version 4 is not
shown a feature whose minimum is 0, because older clients refuse it (KAFKA-17011).
"""

from typing import Final, assert_never

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.features.model.kraft import NONE, KraftController, State
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.ops import kraft_brokers as ops
from kipcheck.conformance.protocols.features.ops.cluster import Finalized, Supported
from kipcheck.conformance.protocols.features.ops.kraft import DeclareNode, Format

HIDES_ZERO: Final = Release.parse(since("hides-level-0", "controller"))
SHOWS_ZERO: Final = 4
"""The version of ApiVersions from which on supported features with minimum 0 are shown."""


class KraftBrokers:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.controller = KraftController(rules)

    def initial(self) -> State:
        return self.controller.initial()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case Format():
                return Transition(self.controller.formatted(event))
            case ops.Register():
                return self.registered(state, event)
            case ops.AskPicture(version):
                return Transition(state, (ops.Picture(self.finalized(state), self.supported(version)),))
            case _:
                assert_never(event)

    def registered(self, state: State, event: ops.Register) -> Transition[State, ops.Action]:
        supported = {each.feature: Range(each.low, each.high) for each in event.supported}
        if self.controller.registration_error(state, supported) != NONE:
            return Transition(state, (ops.NotRegistered(event.broker),))
        declared = DeclareNode("broker", event.broker, event.supported)
        return Transition(self.controller.declared(state, declared), (ops.Registered(),))

    def finalized(self, state: State) -> tuple[Finalized, ...]:
        return tuple(Finalized(name, level, level) for name, level in state.shown())

    def supported(self, version: int) -> tuple[Supported, ...]:
        hides = version < SHOWS_ZERO and Release.parse(self.rules.release) >= HIDES_ZERO
        return tuple(Supported(name, *span) for name, span in self.rules.declares() if span.low > 0 or not hides)
