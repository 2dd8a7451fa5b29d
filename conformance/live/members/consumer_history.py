"""Orders what was observed of the consumers of a group by time, as events of the machine ``bounce``.

Why a verdict on two owners is certain, although the events come from several processes:

* All times are CLOCK_MONOTONIC's of one machine: the programs take it at the begin of a callback, kipcheck when it
  reads an exchange that passes, and before it kills a process.
* In a correct group one thing causes the other: A's revoked or lost callback returns before A's next JoinGroup, or
  before the coordinator can give its partitions away; that comes before the assignments of a generation, and these
  before B's assigned callback. So if B's assigned callback begins before A's revoked callback, the chain is broken,
  whatever delays a thread or a line.
* What ends an ownership without a callback is put at its earliest time: before the SIGKILL, before ``close()`` is
  called, and, for a member that the group removed, when the generation without it is formed, which is before any
  member can learn of an assignment in it.

A line that a killed process could not print any more is missing, which hides a violation at most.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, assert_never, final

from kipcheck.conformance.live.members.processes import Begun, Exited, Killed, Line
from kipcheck.conformance.live.members.traffic import JOIN, LEAVE, SYNC, Answered, Sent
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE
from kipcheck.conformance.protocols.cluster.kinds import TOPICS
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.member.model.rules import ASSIGNORS
from kipcheck.conformance.protocols.upgrade.ops import (
    Assigned,
    Ended,
    Failed,
    Formed,
    Gave,
    Joining,
    ObservedEvent,
    PutOut,
    Restless,
    Rests,
    Took,
)
from kipcheck.conformance.wire.embedded import ASSIGNMENT, SUBSCRIPTION, read

REFUSED: Final = frozenset({Error.INCONSISTENT_GROUP_PROTOCOL})
"""Errors of JoinGroup that a member reports to its user."""


@final
@dataclass(frozen=True, slots=True)
class StepBegun:
    at_ns: int
    index: int


@final
@dataclass(frozen=True, slots=True)
class Settled:
    """The end of a wait. ``turns``: how often the group was looked at, if it did not come to rest."""

    at_ns: int
    turns: int | None


Observed: TypeAlias = Line | Begun | Killed | Exited | Sent | Answered | StepBegun | Settled


class At(NamedTuple):
    step: int
    event: ObservedEvent


def member_of(process: str) -> str:
    return process.partition("-")[0]


def process_of(id: str) -> str:
    """The process of a member id, which a coordinator makes of the client id: ``a-2-`` and a UUID, or more between."""
    return "-".join(id.split("-")[:2])


@lru_cache(maxsize=4096)
def topics_in(metadata: bytes) -> tuple[str, ...]:
    return tuple(read(SUBSCRIPTION, metadata)[1]["topics"])


@lru_cache(maxsize=4096)
def partitions_in(assignment: bytes) -> tuple[Partition, ...]:
    """Sorted."""
    if not assignment:
        return ()
    rows = read(ASSIGNMENT, assignment)[1]["assignedPartitions"]
    return tuple(sorted((each["topic"], number) for each in rows for number in each["partitions"]))


def partitions_printed(rest: str) -> tuple[Partition, ...]:
    found = (each.rpartition("-") for each in rest.split(",") if each)
    return tuple(sorted((topic, int(number)) for topic, _, number in found))


@dataclass(slots=True)
class Process:
    name: str
    protocols: tuple[str, ...] = ()
    """The assignors in its last JoinGroup."""
    joined: bool = False
    """Whether it is a member of the group, as far as it knows."""
    generation: int = -1
    """Of its last assignment."""
    owned: set[Partition] = field(default_factory=set)
    closing: bool = False
    ended: bool = False
    refused: bool = False
    waiting: int = 0
    """Requests without an answer."""
    last_ns: int = 0

    @property
    def member(self) -> str:
        return member_of(self.name)

    @property
    def cooperates(self) -> bool:
        return bool(self.protocols) and all(COOPERATIVE in ASSIGNORS[each].supports for each in self.protocols)

    @property
    def knows(self) -> bool:
        return any(COOPERATIVE in ASSIGNORS[each].supports for each in self.protocols)


class ConsumerHistory:
    """The group after all that was observed, in the order of time."""

    def __init__(self, observed: Iterable[Observed]) -> None:
        self.processes: dict[str, Process] = {}
        self.generation = 0
        self.leader = ""
        self.protocol = ""
        self.members: Mapping[str, tuple[str, ...]] = {}
        """Process -> topics, of the last generation."""
        self.found: list[At] = []
        self._step = 0
        for each in sorted(observed, key=lambda one: one.at_ns):
            self.found += [At(self._step, event) for event in self._events(each)]

    @property
    def running(self) -> list[Process]:
        return [each for each in self.processes.values() if not each.ended and not each.closing]

    def _events(self, observed: Observed) -> Iterator[ObservedEvent]:
        match observed:
            case StepBegun(_, index):
                self._step = index
            case Begun(at, name):
                self.processes[name] = Process(name, last_ns=at)
            case Line(_, name) | Killed(_, name) | Exited(_, name):
                yield from self._of_process(observed, self.processes[name])
            case Sent(client_id=name) if name in self.processes:
                self._sent(observed, self.processes[name])
            case Answered(request=request) if request.client_id in self.processes:
                yield from self._answered(observed, self.processes[request.client_id])
            case Settled(_, turns):
                there = self._joining() if self.expected else ()
                yield Rests(self.generation, there) if turns is None else Restless(turns)

    def _of_process(self, observed: Line | Killed | Exited, process: Process) -> Iterator[ObservedEvent]:
        if process.ended:
            return
        process.last_ns = observed.at_ns
        match observed:
            case Line(_, _, what, rest):
                if not process.closing:
                    yield from self._line(what, partitions_printed(rest) if what in CALLBACKS else (), process)
            case Killed():
                process.ended = True
                yield Ended(process.member)
            case Exited(_, _, code, errors):
                process.ended = True
                if not process.closing and not process.refused:
                    yield Failed(process.member, _error(errors) or f"exit code {code}")
                yield Ended(process.member)
            case _:
                assert_never(observed)

    def _line(self, what: str, partitions: tuple[Partition, ...], process: Process) -> Iterator[ObservedEvent]:
        match what:
            case "assigned" if partitions:
                process.owned.update(partitions)
                yield Took(process.member, process.generation, partitions)
            case "revoked" | "lost" if partitions:
                process.owned.difference_update(partitions)
                yield Gave(process.member, partitions, lost=what == "lost")
            case "closing":
                process.closing = True
                if process.owned:
                    yield Gave(process.member, tuple(sorted(process.owned)))
                process.owned.clear()

    def _sent(self, sent: Sent, process: Process) -> None:
        process.waiting += 1
        process.last_ns = sent.at_ns
        if sent.api == JOIN:
            process.protocols = tuple(each["name"] for each in sent.body["protocols"])
        elif sent.api == LEAVE:
            process.joined = False

    def _answered(self, answer: Answered, process: Process) -> Iterator[ObservedEvent]:
        process.waiting -= 1
        process.last_ns = answer.at_ns
        body = answer.body
        if answer.request.api == JOIN:
            if answer.error in REFUSED and not process.refused and not process.ended:
                process.refused = True
                yield Failed(process.member, Error(answer.error).name)
            if not answer.error:
                process.refused, process.joined = False, True
                if body["leader"] == body["memberId"]:
                    yield from self._formed(answer)
        elif answer.request.api == SYNC and not answer.error and not process.ended:
            process.generation = answer.request.body["generationId"]
            yield Assigned(process.member, process.generation, partitions_in(bytes(body["assignment"])))

    def _formed(self, answer: Answered) -> Iterator[ObservedEvent]:
        body = answer.body
        self.generation, self.protocol = body["generationId"], body["protocolName"] or ""
        self.members = {process_of(each["memberId"]): topics_in(bytes(each["metadata"])) for each in body["members"]}
        self.leader = process_of(body["leader"])
        for each in self.running:
            if each.joined and each.name not in self.members:
                each.joined = False
                each.owned.clear()
                yield PutOut(each.member)
        yield Formed(self.generation, self._name(self.leader), self.protocol, self._joining())

    def _name(self, process: str) -> str:
        found = self.processes[process]
        return f"former {found.member}" if found.ended or found.closing else found.member

    def _joining(self) -> tuple[Joining, ...]:
        found = [(self._name(name), self.processes[name], topics) for name, topics in self.members.items()]
        return tuple(Joining(name, int(each.cooperates), int(each.knows), topics) for name, each, topics in found)

    # Rest

    @property
    def expected(self) -> list[Process]:
        """The processes that should be members."""
        return [each for each in self.running if not each.refused]

    def is_stable(self) -> bool:
        """Whether the last generation has all members that it should have, each of which knows its assignment."""
        names = {each.name for each in self.expected}
        if not names:
            return all(each.ended for each in self.processes.values())
        synced = all(each.generation == self.generation and not each.waiting for each in self.expected)
        return synced and {*self.members} == names

    def quiet_since_ns(self) -> int:
        return max((each.last_ns for each in self.expected), default=0)

    def is_complete(self) -> bool:
        """Whether all partitions that the members subscribe to are owned."""
        wanted = {topic for name in self.members for topic in self.members[name]}
        owned = {each for process in self.expected for each in process.owned}
        partitions = {(topic, number) for topic, size in TOPICS if topic in wanted for number in range(size)}
        return not self.expected or partitions <= owned


CALLBACKS: Final = frozenset({"assigned", "revoked", "lost"})


def _error(errors: str) -> str:
    """The class of the first error that a program names on stderr."""
    words = errors.replace(":", " ").split()
    return next((each.rpartition(".")[2] for each in words if each.endswith(("Exception", "Error"))), "")
