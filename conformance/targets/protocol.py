"""The interface between the suite and anything that it tests.

An adapter answers single operations of the testee protocol; a target runs whole cases with one.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import Died, Observation, Refused, Replied, Unsupported
from kipcheck.conformance.core.values.untrusted_text import clean, one_line

T = TypeVar("T")

VERSION = 1
"""The version of the testee protocol."""
BATCH = 64
"""Cases in one batch: larger batches gain nothing."""

Messages: TypeAlias = Mapping[str, tuple[int, int]]
"""Message -> lowest and highest version."""
OPERATIONS: tuple[str, ...] = ("encode", "decode", "recode")
"""What a codec does with a message."""
STREAM = "stream"
"""Among assignors: a target that claims it performs the operations of Streams groups, as leader and as member."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The capabilities that a target announces."""

    messages: Messages = field(default_factory=dict)
    missing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By message: the versions within its range that the target lacks."""
    assignors: tuple[str, ...] = ()
    """``STREAM`` may be among them: the operations of Streams groups, including those of their members."""
    machines: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    """Name -> sentence: what the target cannot represent. An unsupported result must name one, else it is a failure."""
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Message -> the operations of a codec that the target supports; a message that is not named supports all."""

    def has(self, message: str, version: int) -> bool:
        """Whether the target claims that version."""
        low, high = self.messages.get(message, (0, -1))
        return low <= version <= high and version not in self.missing.get(message, ())

    def performs(self, verb: str, message: str | None) -> bool:
        """Whether the target claims that operation of a codec for the message; true for what no codec does."""
        return verb not in OPERATIONS or verb in self.operations.get(message or "", OPERATIONS)

    def supports(self, case: Case) -> bool:
        """Whether the target claims the operation of each step: a case with another step is no case for it."""
        if not self.operations:
            return True
        return all(self.performs(step.verb, step.body.get("message")) for step in case.steps)

    def without(self, families: Collection[str]) -> "Claims":
        """The claims without requests and responses of these families: ``Fetch``, ``Produce``."""
        omitted = {f"{family}{kind}" for family in families for kind in ("Request", "Response")}

        def kept(claimed: Mapping[str, T]) -> Mapping[str, T]:
            return {name: each for name, each in claimed.items() if name not in omitted}

        messages, missing, operations = kept(self.messages), kept(self.missing), kept(self.operations)
        return replace(self, messages=messages, missing=missing, operations=operations)

    @property
    def roles(self) -> frozenset[Role]:
        """The roles that these claims suffice for."""
        sufficient = {
            Role.CODEC: bool(self.messages),
            Role.LEADER: bool(self.assignors),
            Role.MEMBER: STREAM in self.assignors,
        }
        played = {role for role, claimed in sufficient.items() if claimed}
        return frozenset(played | {role for each in self.machines if (role := verb_registry.role_of(each)) is not None})


@dataclass(frozen=True, slots=True)
class TargetInfo:
    name: str
    version: str
    language: str
    issues: str
    """The URL of its issue tracker."""
    roles: frozenset[Role]
    claims: Claims = field(default_factory=Claims)
    command: str = ""
    """The target as it was given (``cmd:...``), if ``name`` is another: the testee's own, or that of ``--name``."""
    played: str = ""
    """The release of Kafka whose broker kipcheck plays for the target, if it plays one."""
    unserved: str = ""
    """What the target sends that the newest release does not serve, if an older one is played for it."""

    @property
    def opened(self) -> str:
        """The name under which the registry opens the target."""
        return self.command or self.name


class Unavailable(Exception):
    """A target, or a jar or program that it needs, cannot be used here: not installed, not fetched, or of an
    unsupported version. One line says what is missing and what to do."""


class NotPlayed(Unavailable):
    """The target is available and has other roles."""

    def __init__(self, info: TargetInfo, role: Role) -> None:
        super().__init__(f"{info.name} does not play the role {role.value}")
        self.info = info


class Broken(Exception):
    """The target did not start, or violated the protocol outside of any case."""


class Unstable(Exception):
    """The target died more often than a run allows."""


class Adapter(Protocol):
    """Connects the protocol to the code under test. It observes and never judges."""

    name: str
    version: str
    issues: str

    def claims(self) -> Claims:
        """The capabilities in the edition that was configured last; ``apache`` before that."""
        ...

    def configure(self, edition: str, /) -> str | None:
        """Returns why this edition is not supported, or None; raises nothing."""
        ...

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        """The result of an operation: ``status`` and its fields. Raises only unexpected exceptions."""
        ...


@runtime_checkable
class ImportsByRole(Protocol):
    """An adapter that imports what a role needs when a session with that role begins."""

    def import_for(self, role: Role, /) -> None:
        """Called after ``configure``, in the process from which those that run operations are forked."""
        ...


class Session(Protocol):
    """A running target in one role and edition."""

    @property
    def info(self) -> TargetInfo: ...
    @property
    def troubles(self) -> Sequence[str]:
        """Deaths that no single case caused, as they did not recur when its cases ran alone; and why it gave up."""
        ...

    @property
    def breaches(self) -> Sequence[str]:
        """Violations of the testee protocol: garbled and unsolicited messages."""
        ...

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """The observations of each step of each case. Errors: ``Broken``, ``Unstable``."""
        ...


Plan: TypeAlias = Generator[Sequence[Case], Sequence[tuple[Observation, ...]], T]
"""Yields cases that are run at once, and is sent what was observed."""


@runtime_checkable
class WaitsInRealTime(Session, Protocol):
    """A session whose cases wait in real time, side by side: those of several checks take as long as those of one."""

    at_once: int
    """The number of cases that make the most of it; 1: each unit is a call of its own."""
    searches_at_once: int
    """The searches for least cases that go on at once."""

    def lasts_s(self, case: Case, /) -> float:
        """About how many seconds the steps of a case wait; 0: that is unknown."""
        ...

    def run_plans(self, plans: Sequence[Plan[T]], /) -> list[T]:
        """Runs the cases of several plans, each as soon as it can, once. Returns what the plans return."""
        ...


class Target(Protocol):
    @property
    def name(self) -> str: ...
    def open(self, edition: str, role: Role, /) -> AbstractContextManager[Session]:
        """A new session. Errors: ``Unavailable``, of which ``NotPlayed`` is one; ``Broken``."""
        ...


def operation(step: Step) -> dict[str, Any]:
    """A step as an operation of the protocol."""
    actor = {"actor": step.actor} if verb_registry.names_its_sender(step.verb) else {}
    return {"op": step.verb, **actor, **step.body}


PAYLOAD = (
    "hex", "value", "left", "assignment", "level", "epoch", "answers", "actions", "results", "levels", "exists",
    "version", "enabled", "finalized", "registered", "supported", "waiting",
    "format", "inter_broker", "persistent", "both", "flushes", "timestamp", "headers", "rows", "count",
    "instance", "store", "shares", "position", "end", "finished", "records",
    "responses", "sent", "old", "new", "descriptors", "threads", "memory_mib", "processor_ms",
    "dynamic", "uses", "asks", "all", "rebalances", "members", "crashed", "exit", "loaded",
    "received", "generation", "led", "leads", "controller",
    "tasks", "standby", "warmup", "statuses", "created", "endpoint_epoch", "endpoints", "state", "assignment_epoch",
    "topology", "topology_epoch",
    "lines", "failed", "unread", "leader", "settled", "nodes", "hit", "outcome", "accepted", "acquired", "refused",
    "offsets",
)  # fmt: skip
"""Fields that an accepted result may have; others are ignored."""


def observed(result: Mapping[str, Any], limits: Mapping[str, str] = MappingProxyType({})) -> Observation:
    """A result as an observation. ``limits``: those that the target claims. Errors: ValueError for an invalid result.

    Classes, messages and evidence lose control characters, since a terminal may show them; values stay as they are.
    """
    match result:
        case {"status": "accepted"}:
            return Replied(tuple((key, value) for key, value in result.items() if key in PAYLOAD))
        case {"status": "rejected", "class": str(kind)}:
            offset = result.get("offset")
            return Refused(one_line(kind), _message(result), offset if isinstance(offset, int) else None, _at(result))
        case {"status": "unsupported"}:
            limit = result.get("capability", "")
            return Unsupported(_message(result), limit if limit in limits else "")
        case {"status": "internal", "class": str(kind)}:
            cause = "memory" if kind == "MemoryError" else "crashed"
            return Died(cause, f"{one_line(kind)}: {_message(result)}".rstrip(": "), at=_at(result))
        case {"status": "died", "cause": "crashed" | "timeout" | "memory" as cause}:  # the testee detected it
            return Died(cause, _message(result), clean(str(result.get("evidence", ""))), _at(result))
    raise ValueError(f"invalid result: {str(result)[:80]}")


def _message(result: Mapping[str, Any]) -> str:
    return clean(str(result.get("message", "")))


def _at(result: Mapping[str, Any]) -> str:
    return one_line(str(result.get("at", "")))[:LONGEST_AT]


LONGEST_AT = 200
"""Characters of ``at`` that are kept."""
