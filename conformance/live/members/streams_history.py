"""Orders what was observed of the members of a Streams group by time, as events of the machine ``streams``.

What ``consumer_history`` says of times holds here too. A task is active in a member from the opening of its processor
to its closing, as the member itself reports both; subscriptions and assignments are bytes that passed the proxy.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, assert_never

from kipcheck.conformance.live.members.consumer_history import Settled, StepBegun, process_of
from kipcheck.conformance.live.members.processes import Begun, Exited, Killed, Line
from kipcheck.conformance.live.members.traffic import JOIN, LEAVE, SYNC, Answered, Sent as Request
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.streams.blobs import latest
from kipcheck.conformance.protocols.streams.model.members import TaskId
from kipcheck.conformance.protocols.streams.ops import (
    TOPICS,
    Began,
    Died,
    Formed,
    JoinMetadata,
    ObservedEvent,
    Present,
    Refused,
    Rests,
    Sent,
    Start,
)
from kipcheck.conformance.protocols.upgrade.ops import Ended, Gave, PutOut, Restless, Took
from kipcheck.conformance.wire.embedded import ASSIGNMENT, SUBSCRIPTION, read

Observed: TypeAlias = Line | Begun | Killed | Exited | Request | Answered | StepBegun | Settled
PLACES: Final = (("performAssignment", "lead"), ("onAssignment", "assigned"), ("subscriptionUserData", "subscribe"),
                 ("PartitionAssignor.subscription", "subscribe"))  # fmt: skip
"""Methods in a stack trace -> what a thread was doing."""
WORD: Final = "COOPERATIVE"
NO_BYTES: Final = b""


class At(NamedTuple):
    step: int
    event: ObservedEvent


@lru_cache(maxsize=4096)
def subscribed(metadata: bytes) -> tuple[bytes, tuple[Partition, ...]]:
    """The user data of a subscription, and the partitions that it claims."""
    body = read(SUBSCRIPTION, metadata)[1]
    owned = [(each["topic"], number) for each in body.get("ownedPartitions") or () for number in each["partitions"]]
    return bytes(body["userData"] or b""), tuple(sorted(owned))


@lru_cache(maxsize=4096)
def assigned(assignment: bytes) -> tuple[tuple[Partition, ...], bytes]:
    if not assignment:
        return (), NO_BYTES
    body = read(ASSIGNMENT, assignment)[1]
    found = [(each["topic"], number) for each in body["assignedPartitions"] for number in each["partitions"]]
    return tuple(sorted(found)), bytes(body["userData"] or b"")


def used_in(data: bytes) -> int:
    """The version in front of user data."""
    return int.from_bytes(data[:4], "big", signed=True)


@dataclass(slots=True)
class Process:
    name: str
    start: Start
    began: bool = False
    """Whether it has joined once."""
    joined: bool = False
    generation: int = -1
    used: int = 0
    partitions: tuple[Partition, ...] = ()
    active: set[TaskId] = field(default_factory=set)
    closing: bool = False
    died: bool = False
    ended: bool = False
    waiting: int = 0
    last_ns: int = 0

    @property
    def member(self) -> str:
        return self.start.member


class StreamsHistory:
    """The group after all that was observed, in the order of time. ``starts``: how each process was started."""

    def __init__(self, observed: Iterable[Observed], starts: Mapping[str, Start]) -> None:
        self.processes: dict[str, Process] = {}
        self.generation = 0
        self.members: list[str] = []
        """The processes of the last generation."""
        self.found: list[At] = []
        self._starts = starts
        self._step = 0
        given = sorted(observed, key=lambda one: one.at_ns)
        self._cooperative = {
            each.process for each in given if isinstance(each, Line) and each.what == "protocols" and WORD in each.rest
        }
        """Processes whose assignor supports cooperative rebalancing, which it does from its start on."""
        for each in given:
            self.found += [At(self._step, event) for event in self._events(each)]

    @property
    def running(self) -> list[Process]:
        return [each for each in self.processes.values() if not each.ended and not each.died and not each.closing]

    def _events(self, observed: Observed) -> Iterator[ObservedEvent]:
        match observed:
            case StepBegun(_, index):
                self._step = index
            case Begun(at, name):
                self.processes[name] = Process(name, self._starts[name], last_ns=at)
            case Line(_, name) | Killed(_, name) | Exited(_, name):
                yield from self._of_process(observed, self.processes[name])
            case Request(client_id=name) if process_of(name) in self.processes:
                yield from self._requested(observed, self.processes[process_of(name)])
            case Answered(request=request) if process_of(request.client_id) in self.processes:
                yield from self._answered(observed, self.processes[process_of(request.client_id)])
            case Settled(_, turns):
                there = tuple(map(self._present, self.running))
                yield Rests(self.generation, there) if turns is None else Restless(turns)

    def _present(self, process: Process) -> Present:
        active = tuple(sorted(process.active, key=str))
        return Present(process.member, process.used, active, (), process.partitions)

    def _of_process(self, observed: Line | Killed | Exited, process: Process) -> Iterator[ObservedEvent]:
        if process.ended:
            return
        process.last_ns = observed.at_ns
        match observed:
            case Line(_, _, "opened", rest):
                task = TaskId.parse(rest)
                process.active.add(task)
                yield Took(process.member, process.generation, ((TOPIC, task.partition),))
            case Line(_, _, "closed", rest) if (task := TaskId.parse(rest)) in process.active:
                process.active.discard(task)
                yield Gave(process.member, ((TOPIC, task.partition),))
            case Line(_, _, "used", rest) if rest.isdigit():
                process.used = int(rest)
            case Line(_, _, "closing"):
                process.closing = not process.died
            case Line(_, _, "died"):
                process.died = True
            case Line():
                pass
            case Killed():
                process.ended = True
                yield Ended(process.member)
            case Exited(_, _, _, errors):
                process.ended = True
                yield from self._exited(errors, process)
            case _:
                assert_never(observed)

    def _exited(self, errors: str, process: Process) -> Iterator[ObservedEvent]:
        """A process that was not stopped has died of what it printed on stderr."""
        if not process.closing:
            kind, why = failure(errors)
            start = process.start
            if not process.began:
                yield Refused(process.member, start.release, start.upgrade_from, why)
                return
            during = next((what for method, what in PLACES if method in errors), "error")
            yield Died(process.member, during, kind, why)
        yield Ended(process.member)

    def _began(self, process: Process, used: int) -> Began:
        process.began, process.used = True, used
        start = process.start
        return Began(process.member, start.release, start.upgrade_from, latest(start.release), used)

    def _requested(self, sent: Request, process: Process) -> Iterator[ObservedEvent]:
        process.waiting += 1
        process.last_ns = sent.at_ns
        if sent.api == JOIN:
            process.used = used_in(subscribed(bytes(sent.body["protocols"][0]["metadata"]))[0])
            if not process.began:
                yield self._began(process, process.used)
        elif sent.api == LEAVE:
            process.joined = False
        elif sent.api == SYNC and sent.body["assignments"] and sent.body["generationId"] == self.generation:
            for each in sent.body["assignments"]:
                partitions, data = assigned(bytes(each["assignment"]))
                name = self._name(process_of(each["memberId"]))
                yield Sent(self.generation, process.member, name, partitions, data)

    def _answered(self, answer: Answered, process: Process) -> Iterator[ObservedEvent]:
        process.waiting -= 1
        process.last_ns = answer.at_ns
        body = answer.body
        if answer.error:
            return
        if answer.request.api == JOIN:
            process.joined = True
            if body["leader"] == body["memberId"]:
                yield from self._formed(answer)
        elif answer.request.api == SYNC and not process.ended:
            process.generation = answer.request.body["generationId"]
            process.partitions = assigned(bytes(body["assignment"]))[0]

    def _formed(self, answer: Answered) -> Iterator[ObservedEvent]:
        body = answer.body
        self.generation = body["generationId"]
        self.members = [process_of(each["memberId"]) for each in body["members"]]
        for each in self.running:
            if each.joined and each.name not in self.members:
                each.joined = False
                each.active.clear()
                yield PutOut(each.member)
        joined = []
        for each in body["members"]:
            data, owned = subscribed(bytes(each["metadata"]))
            name = process_of(each["memberId"])
            joined.append(JoinMetadata(self._name(name), data, owned, name in self._cooperative))
        yield Formed(self.generation, self._name(process_of(body["leader"])), tuple(joined))

    def _name(self, process: str) -> str:
        found = self.processes[process]
        return f"former {found.member}" if found.ended or found.closing or found.died else found.member

    # Rest

    def is_stable(self) -> bool:
        """Whether the last generation has all members that run, each of which knows its assignment."""
        names = sorted(each.name for each in self.running)
        synced = all(each.generation == self.generation and not each.waiting for each in self.running)
        return synced and (sorted(self.members) == names if names else all(x.ended for x in self.processes.values()))

    def quiet_since_ns(self) -> int:
        return max((each.last_ns for each in self.running), default=0)

    def is_complete(self) -> bool:
        """Whether the task of each partition is active in some member."""
        active = {task.partition for each in self.running for task in each.active}
        return not self.running or {*range(PARTITIONS)} <= active


TOPIC: Final = TOPICS[0].name
PARTITIONS: Final = TOPICS[0].partitions


def failure(errors: str) -> tuple[str, str]:
    """Class and message of the last cause in a stack trace."""
    found = ("", errors.splitlines()[-1] if errors else "no error was printed")
    for line in errors.splitlines():
        head, _, why = line.removeprefix("Caused by: ").partition(": ")
        words = head.split()
        if words and words[-1].endswith(("Exception", "Error")) and "." in words[-1]:
            found = words[-1], why
    return found
