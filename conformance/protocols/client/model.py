"""Which steps a script may have: what a broker and the other members of a group can do to a client."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, get_args

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.protocols.client.ops import (
    Answer,
    Assign,
    Error,
    Event,
    Kind,
    Late,
    Others,
    Pass,
    Pieces,
    Rebalance,
    Reset,
)

ERRORS: Final[Mapping[Kind, tuple[Error, ...]]] = {
    "JoinGroup": ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "UNKNOWN_MEMBER_ID"),
    "SyncGroup": (
        "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID",
        "REBALANCE_IN_PROGRESS",
    ),
    "Heartbeat": (
        "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID",
        "REBALANCE_IN_PROGRESS",
    ),
    "OffsetCommit": get_args(Error),
}  # fmt: skip
"""The errors with which a broker answers each request of a known group (``GroupCoordinator``). A heartbeat of a group
that is loading is accepted, and a SyncGroup of one is answered as if the group rebalanced."""

State: TypeAlias = tuple[()]


class Scripts:
    """The machine along which scripts are drawn. It has no state: any order of steps is a script."""

    def initial(self) -> State:
        return ()

    def step(self, state: State, event: Event, /) -> Transition[State, Any]:
        return Transition(state)

    def enabled(self, state: State, /) -> Iterable[Event]:
        yield Rebalance()
        yield Pass(200)
        yield Pass(1200)
        for number in range(4):
            yield Others(number, "lead")
            if number:
                yield Others(number, "follow")
        for partitions in ((), (0,), (1, 2), (0, 1, 2), (3,)):
            yield Assign(partitions)
        for kind, errors in ERRORS.items():
            for error in errors:
                yield Answer(kind, error)
            yield Late(kind, 400)
            yield Late(kind, 1500)
            yield Pieces(kind)
            yield Reset(kind)


def is_possible(event: Event) -> bool:
    """Whether a broker can do that."""
    return not isinstance(event, Answer) or event.error in ERRORS[event.kind]
