"""A lock, its server and its clients: a small composed machine to try searches on, sound or with a defect planted."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from kipcheck.conformance.machines.product import COORDINATOR_INDEX, Did, Law, Sent, StepLaw


@dataclass(frozen=True, slots=True)
class Server:
    holder: int = 0
    """0: nobody."""
    waiting: tuple[int, ...] = ()
    crashes: int = 1
    """So many are still allowed."""


@dataclass(frozen=True, slots=True)
class Client:
    wants: bool = False
    """Its request is on the way, or waits at the server."""
    sent: bool = False
    holds: bool = False


Part: TypeAlias = Server | Client


@dataclass(frozen=True, slots=True)
class Move:
    """``ask``, ``deliver``, ``release``, ``crash``; of the server ``expire``."""

    verb: str


@dataclass(frozen=True, slots=True)
class Message:
    """``ask``, ``release`` and ``crash`` of a client; ``granted`` and ``gone`` of the server, which is 0."""

    verb: str
    by: int


def one_holder(views: tuple[bool, ...]) -> str | None:
    return f"{sum(views)} clients hold the lock" if sum(views) > 1 else None


def somebody_moves(views: tuple[bool, ...]) -> str | None:
    return "a client waits, and nothing happens any more" if any(views) else None


def grants_in_turn(index: int, before: Part, cause: Hashable, did: Did[Part, Message]) -> str | None:
    if isinstance(before, Server) and before.holder == 0 and len(before.waiting) > 0:
        return "the lock is free, and somebody waits for it"
    return None


ONE_HOLDER: Law[Part] = Law(
    "one-holder",
    lambda index, part: isinstance(part, Client) and part.holds, one_holder,
)  # fmt: skip
NO_REST: Law[Part] = Law(
    "no-rest",
    lambda index, part: isinstance(part, Client) and part.wants, somebody_moves, at_rest=True,
)  # fmt: skip
IN_TURN: StepLaw[Part, Move, Message] = StepLaw("in-turn", grants_in_turn)


@dataclass(frozen=True)
class Locks:
    clients: int = 2
    crashes: int = 1
    defect: str = ""
    """``early``: an expired lock goes on while its holder still has it. ``lost``: nobody is woken at a release.
    ``deaf``: nobody is ever given the lock."""

    laws: tuple[Law[Part] | StepLaw[Part, Move, Message], ...] = (ONE_HOLDER, NO_REST, IN_TURN)

    @property
    def names(self) -> tuple[str, ...]:
        return ("server", *"abcdefgh"[: self.clients])

    def initial(self) -> tuple[Part, ...]:
        return (Server(crashes=self.crashes), *(Client() for _ in range(self.clients)))

    def moves(self, index: int, part: Part, /) -> Iterable[Move]:
        if isinstance(part, Server):
            if part.holder and self.defect == "early":
                yield Move("expire")
            return
        if not part.wants and not part.holds:
            yield Move("ask")
        if part.wants and not part.sent:
            yield Move("deliver")
        if part.holds:
            yield Move("release")
            yield Move("crash")

    def act(self, index: int, part: Part, move: Move, /) -> Did[Part, Message]:
        if isinstance(part, Server):
            return self.next(replace(part, holder=0), ())
        match move.verb:
            case "ask":
                return Did(Client(wants=True))
            case "deliver":
                return Did(replace(part, sent=True), (Sent(COORDINATOR_INDEX, Message("ask", index)),))
        return Did(Client(), (Sent(COORDINATOR_INDEX, Message(move.verb, index)),))

    def take(self, index: int, part: Part, message: Message, /) -> Did[Part, Message] | None:
        if isinstance(part, Client):
            return Did(Client(holds=message.verb == "granted"))
        match message.verb:
            case "ask":
                return self.next(replace(part, waiting=(*part.waiting, message.by)), ())
            case "crash" if not part.crashes:
                return None
        crashed = message.verb == "crash"
        freed = replace(part, holder=0 if part.holder == message.by else part.holder, crashes=part.crashes - crashed)
        return Did(freed) if self.defect == "lost" else self.next(freed, ())

    def next(self, server: Server, sends: tuple[Sent[Message], ...]) -> Did[Part, Message]:
        if server.holder or not server.waiting or self.defect == "deaf":
            return Did(server, sends)
        first, *rest = server.waiting
        return Did(
            replace(server, holder=first, waiting=tuple(rest)),
            (*sends, Sent(first, Message("granted", COORDINATOR_INDEX))),
        )

    def describe(self, value: Move | Message, /) -> str:
        return value.verb
