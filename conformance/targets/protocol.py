"""The seam between the suite and anything it can test.

An adapter answers single operations in the words of the testee protocol; a target holds whole cases with one.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from kipcheck.conformance.core import verbs
from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.foreign import clean, one_line
from kipcheck.conformance.core.history import Died, Observation, Refused, Replied, Unsupported

VERSION = 1
"""Of the testee protocol."""
BATCH = 64
"""Cases that travel together: past that nothing is gained."""

Messages: TypeAlias = Mapping[str, tuple[int, int]]
"""Message -> lowest and highest version."""
STREAM = "stream"
"""Among assignors: a target that claims it performs the operations of Streams groups, as leader and as member."""
FEATURES = "features"
"""The machine of a controller that holds feature versions."""
GROUP = "group"
"""The machine of a coordinator of one classic group."""
CONSUMER_GROUP = "consumer-group"
"""The machine of a coordinator of one group of KIP-848."""
MEMBER = "member"
"""The machine of a consumer that is a member of a classic group."""
BOUNCE = "bounce"
"""The machine of an operator: members of a whole group are upgraded one after the other."""
STREAMS = "streams"
"""The machine of another operator: a fleet of Kafka Streams members, all of one release and of its future."""
STREAMS_MIXED = "streams-mixed"
"""The same with members of any releases."""
PLAYED: Mapping[Role, tuple[str, ...]] = {
    Role.CONTROLLER: (FEATURES,),
    Role.COORDINATOR: (GROUP, CONSUMER_GROUP),
    Role.MEMBER: (MEMBER,),
    Role.OPERATOR_TOOL: (BOUNCE, STREAMS, STREAMS_MIXED),
}
"""Role -> the machines that are played in it."""
MACHINES: tuple[str, ...] = tuple(name for names in PLAYED.values() for name in names)


@dataclass(frozen=True, slots=True)
class Claims:
    """What a target says it can do."""

    messages: Messages = field(default_factory=dict)
    missing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of a message: versions in between that it lacks."""
    assignors: tuple[str, ...] = ()
    """``STREAM`` may be among them."""
    machines: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    """What it cannot express of all this: a name -> a sentence. What is unsupported names one; else it is a lie."""

    def has(self, message: str, version: int) -> bool:
        """Does it claim that version?"""
        low, high = self.messages.get(message, (0, -1))
        return low <= version <= high and version not in self.missing.get(message, ())

    @property
    def roles(self) -> frozenset[Role]:
        """Those that these claims are enough for."""
        played = {
            Role.CODEC: bool(self.messages),
            Role.LEADER: bool(self.assignors),
            **{role: any(name in self.machines for name in names) for role, names in PLAYED.items()},
        }
        played[Role.MEMBER] |= STREAM in self.assignors
        return frozenset(role for role, claimed in played.items() if claimed)


@dataclass(frozen=True, slots=True)
class TargetInfo:
    name: str
    version: str
    language: str
    issues: str
    """Where its maintainers take reports."""
    roles: frozenset[Role]
    claims: Claims = field(default_factory=Claims)


class Unavailable(Exception):
    """The target is not here: not installed, or of the wrong version. Says what is missing."""


class NotPlayed(Unavailable):
    """The target is here and plays other roles."""

    def __init__(self, info: TargetInfo, role: Role) -> None:
        super().__init__(f"{info.name} does not play the role {role.value}")
        self.info = info


class Broken(Exception):
    """The target did not start, or broke the protocol outside of any case."""


class Unstable(Exception):
    """The target went down more often than a run allows."""


class Adapter(Protocol):
    """What stands between the protocol and the code under test. It observes and never judges."""

    name: str
    version: str
    issues: str

    def claims(self) -> Claims:
        """What it can do in the edition that it was configured for last, ``apache`` till then."""
        ...

    def configure(self, edition: str, /) -> str | None:
        """Errors are answers: why this edition cannot be played, or None."""
        ...

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        """An operation's result: ``status`` and what belongs to it. Raises only what it did not expect."""
        ...


class Session(Protocol):
    """A target at work in one role and edition."""

    @property
    def info(self) -> TargetInfo: ...
    @property
    def troubles(self) -> Sequence[str]:
        """Deaths that belong to no case, for they did not come again when its cases were run alone; and giving up."""
        ...

    @property
    def breaches(self) -> Sequence[str]:
        """Of the testee protocol: what was garbled, and what was said unasked."""
        ...

    def hold(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """What came back on each step of each case. Errors: ``Broken``, ``Unstable``."""
        ...


class Target(Protocol):
    @property
    def name(self) -> str: ...
    def open(self, edition: str, role: Role, /) -> AbstractContextManager[Session]:
        """A fresh session. Errors: ``Unavailable``, of which ``NotPlayed`` is one; ``Broken``."""
        ...


def operation(step: Step) -> dict[str, Any]:
    """A step in the words of the protocol."""
    actor = {"actor": step.actor} if verbs.names_its_sender(step.verb) else {}
    return {"op": step.verb, **actor, **step.body}


PAYLOAD = ("hex", "value", "left", "assignment", "level", "epoch", "answers", "actions")
"""What may come with a result that was accepted; the rest is passed over."""


def observed(result: Mapping[str, Any], limits: Mapping[str, str] = MappingProxyType({})) -> Observation:
    """A result as an observation, of a target with such limits. Errors: ValueError for one that no protocol knows.

    Classes, messages and evidence are for people, who read them in a terminal: they come clean. Values are data.
    """
    match result:
        case {"status": "accepted"}:
            return Replied(tuple((key, value) for key, value in result.items() if key in PAYLOAD))
        case {"status": "rejected", "class": str(kind)}:
            offset = result.get("offset")
            return Refused(one_line(kind), _message(result), offset if isinstance(offset, int) else None)
        case {"status": "unsupported"}:
            limit = result.get("capability", "")
            return Unsupported(_message(result), limit if limit in limits else "")
        case {"status": "internal", "class": str(kind)}:
            cause = "memory" if kind == "MemoryError" else "crashed"
            return Died(cause, f"{one_line(kind)}: {_message(result)}".rstrip(": "))
        case {"status": "died", "cause": "crashed" | "timeout" | "memory" as cause}:  # of a testee that watches itself
            return Died(cause, _message(result), clean(str(result.get("evidence", ""))))
    raise ValueError(f"{str(result)[:80]} is no result")


def _message(result: Mapping[str, Any]) -> str:
    return clean(str(result.get("message", "")))
