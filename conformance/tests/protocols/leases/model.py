"""A broker that leases a partition: the reference machine."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.tests.protocols.leases.ops import Action, Elapse, Event, Granted, Lease, Rejected, Release

LEASED = "LEASED"
"""Error class while another client has the lease."""
ENVIRONMENT_EVENTS: tuple[Event, ...] = (
    *(Lease(client, ms) for client in (1, 2) for ms in (5, 10)),
    *(Release(client) for client in (1, 2)),
    Elapse(5),
)


@dataclass(frozen=True, slots=True)
class State:
    holder: int | None = None
    left: int = 0
    """Milliseconds until the lease ends."""
    epoch: int = 0


class LeaseBroker:
    def initial(self) -> State:
        return State()

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        match event:
            case Lease(client, ms):
                if self.leased_to_another(state, client):
                    return Transition(state, (Rejected(LEASED),))
                after = State(client, ms, state.epoch + 1)
                return Transition(after, (Granted(after.epoch),))
            case Release(client):
                return Transition(replace(state, holder=None, left=0) if state.holder == client else state)
            case Elapse(ms):
                return Transition(self.elapsed(state, ms))
            case _:
                assert_never(event)

    def leased_to_another(self, state: State, client: int) -> bool:
        return state.holder not in (None, client)

    def elapsed(self, state: State, ms: int) -> State:
        ended = state.left <= ms
        return replace(state, holder=None, left=0) if ended else replace(state, left=state.left - ms)

    def enabled(self, state: State, /) -> Iterable[Event]:
        return (
            each
            for each in ENVIRONMENT_EVENTS
            if not isinstance(each, Lease) or not self.leased_to_another(state, each.client)
        )
