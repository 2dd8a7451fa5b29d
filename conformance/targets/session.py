"""A session with a testee: sends batches, receives results, and attributes each death to the case that caused it.

After a death the cases of a batch run one by one, not by halves: each of k guilty cases among n must die once more in
any case, and halving would add a death (a restart or a whole deadline) for each level above them, where an exchange
with one case takes a millisecond. Only a failure that needs several cases together is halved, since nothing else finds
it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Protocol

from kipcheck.conformance.core.files.unreadable_file import unconnected
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Died, Lost, Observation
from kipcheck.conformance.targets import answers, protocol
from kipcheck.conformance.targets.answers import Hello, ProtocolViolation
from kipcheck.conformance.targets.transport.channel import Channel, Ended
from kipcheck.conformance.targets.transport.framing import Framing

HEAVY: Final = 256 << 10
"""A batch has at most this many hex digits, unless a single case has more."""
MAX_UNSOLICITED: Final = 3
"""At this many unsolicited messages the session gives up."""
SLOW: Final = 0.7
"""Of the deadline: if the cases took this long one by one, the batch was slow and did not hang."""
LONGEST_NAME: Final = 80
"""Characters of a testee's own name that are kept: it becomes part of file names."""
LOST: Final = Lost("the target died at an earlier step")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a testee."""

    start_s: float | None = 60.0
    """Seconds to answer hello and configure."""
    batch_s: float | None = 30.0
    """Wall time in seconds to answer a batch; generous, since a busy CI machine is not a defect."""
    cpu_s: float = 2.0
    """Processor time in seconds for one case of at most a megabyte; enforced by the testee, if it can."""
    restarts: int = 250
    """Per session; past it the target is unstable."""
    hung_s: float = 600.0
    """Seconds per session spent waiting for answers that did not come."""
    deaths: int = 5000
    """Per session, of a testee that detects its own deaths and needs no restart."""
    together: int = protocol.BATCH
    """Cases in one batch."""
    memory_times: float = 1.0
    """Factor for the entry's memory limit, if it has one; at most half of the machine's memory."""
    grace_s: float = 5.0
    """Seconds to answer bye, to exit after it, and to exit after SIGTERM."""


class Link(Protocol):
    """A connection to a running testee, until it ends."""

    channel: Channel
    dump_signal: str | None

    @property
    def over(self) -> bool: ...
    def set_framing(self, framing: Framing, /) -> None: ...
    def exchange(self, message: Mapping[str, Any], seconds: float | None, /) -> dict[str, Any]: ...
    def garbled(self, detail: str, /, unasked: bool = False) -> Ended: ...
    def close(self, last: Mapping[str, Any], /, seconds: float) -> str: ...
    def kill(self) -> None: ...


class TesteeSession:
    """A session with the testee that ``begin`` starts. Errors at the start: ``Unavailable``, ``Broken``."""

    def __init__(
        self,
        name: str,
        begin: Callable[[], Link],
        limits: Limits,
        edition: str,
        role: Role,
        names_itself: bool = False,
        renews: bool = False,
    ) -> None:
        """``names_itself``: the target has the name in its hello, and ``name`` is how it is opened. ``renews``: the
        testee forgets what it was sent when it is configured again.
        """
        self._name, self._begin, self._limits = name, begin, limits
        self._names_itself = names_itself
        self._renews = renews
        self._edition, self._role = edition, role
        self._batches = self._batches_since_start = self._numbers = self._cases = 0
        self._forget()
        self._link, self._hello = self._start()
        self.info = self._info(self._hello)

    def _forget(self) -> None:
        """Begins with whole budgets, and without troubles."""
        self._restarts = self._deaths = self._unsolicited = 0
        self._hung = 0.0
        self._batch_size = self._limits.together
        self._suspects = 0
        """Cases that follow a guilty one in a batch that timed out."""
        self._known_deaths: set[str] = set()
        """Causes of death that have occurred."""
        self._given_up: protocol.Unstable | protocol.Broken | None = None
        self.troubles: list[str] = []
        self.breaches: list[str] = []

    def renew(self) -> bool:
        """Makes it what a new session is, without starting the testee again. Whether it could: if not, it must be
        closed.
        """
        if not self._renews or self._link.over:
            return False
        try:
            self._configure(self._link, self._hello)
        except (Ended, ProtocolViolation, protocol.Unavailable):
            return False
        self._forget()
        return True

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        observations = self.run_up_to_death(cases)
        while len(observations) < len(cases):
            observations += self.run_up_to_death(cases[len(observations) :])
        return observations

    def run_up_to_death(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """The observations of all cases, or of the first of them if the target died: at least of one case."""
        if self._given_up is not None:
            raise self._given_up
        observations: list[tuple[Observation, ...]] = []
        try:
            while len(observations) < len(cases) and not _ends_in_death(observations):
                self._run_batch(_next_batch(cases[len(observations) :], self._next_size()), observations)
        except (protocol.Unstable, protocol.Broken) as why:
            self._given_up = why
            (self.troubles if isinstance(why, protocol.Unstable) else self.breaches).append(str(why))
            lost = Lost(str(why))
            observations += [tuple(lost for _ in case.steps) for case in cases[len(observations) :]]
        return observations

    def _next_size(self) -> int:
        """The most cases of the next batch. After a time-out the rest of its batch runs one by one: another guilty case
        would cost another deadline.
        """
        if not self._suspects:
            return self._batch_size
        self._suspects -= 1
        return 1

    def close(self) -> None:
        self._link.close({"type": "bye"}, seconds=self._limits.grace_s)

    def _run_batch(self, batch: Sequence[Case], observations: list[tuple[Observation, ...]]) -> None:
        if len(batch) == 1:
            self._run_alone(batch[0], observations)
            return
        try:
            observations += self._exchange(batch)
        except Ended as death:
            self._run_one_by_one(batch, death, observations)

    def _run_alone(self, case: Case, observations: list[tuple[Observation, ...]]) -> bool:
        """Whether the case was answered. If not, it is sent again as the first case after a restart, since an earlier
        case may have caused the death; but not after a time-out, which no earlier case causes.
        """
        try:
            observations += self._exchange([case])
            return True
        except Ended as death:
            first = death
        if self._batches_since_start > 1 and first.cause != "timeout":
            try:
                observations += self._exchange([case])
            except Ended as death:
                first = death
            except protocol.Broken:
                if len(case.steps) == 1:  # it cannot be started again, so nothing else is known
                    observations.append((_died(first),))
                raise
            else:
                self._note(first, f"{self._name} at case {case.id}, after other cases: {first}; not after a restart")
                return True
        observations.append(self._attribute_death(case, first))
        return False

    def _run_one_by_one(self, batch: Sequence[Case], first: Ended, observations: list[tuple[Observation, ...]]) -> None:
        """Runs cases one by one until one is guilty; those after it may run in a batch again."""
        started = time.monotonic()
        for index, case in enumerate(batch):
            if not self._run_alone(case, observations):
                self._suspects = len(batch) - index - 1 if first.cause == "timeout" else 0
                return
        self._note_joint_failure(batch, first, time.monotonic() - started)

    def _note_joint_failure(self, batch: Sequence[Case], first: Ended, alone_s: float) -> None:
        """All cases passed one by one: reports what they do together, and makes batches smaller from now on."""
        if first.cause == "timeout":
            self._batch_size = max(1, len(batch) // 2)
            if alone_s >= SLOW * (self._limits.batch_s or 0):
                return  # only slow
            least = ""
        else:
            run = self._shortest_failing_run(batch)
            if run:
                self._batch_size = max(1, len(run) - 1)
            least = (
                f"; the shortest run of them that does has {len(run)} cases"
                if run
                else "; together they did not do so again"
            )
        self._note(first, f"{len(batch)} cases together ended in {first}; one by one none of them did{least}")

    def _note(self, death: Ended, why: str) -> None:
        """Records a death that no single case caused."""
        (self.breaches if death.cause == "garbled" else self.troubles).append(why)

    def _shortest_failing_run(self, batch: Sequence[Case]) -> Sequence[Case]:
        """The shortest run of neighbours that fails, by halving: cuts cases at the end, then at the start. Empty:
        none.
        """
        if not self._run_fails(batch):
            return ()
        lives, ends = 1, len(batch)
        while ends - lives > 1:
            middle = (lives + ends) // 2
            lives, ends = (lives, middle) if self._run_fails(batch[:middle]) else (middle, ends)
        begins, lives = 0, ends - 1
        while lives - begins > 1:
            middle = (begins + lives) // 2
            begins, lives = (middle, lives) if self._run_fails(batch[middle:ends]) else (begins, middle)
        return batch[begins:ends]

    def _run_fails(self, batch: Sequence[Case]) -> bool:
        try:
            self._exchange(batch)
        except Ended:
            return True
        return False

    def _attribute_death(self, case: Case, death: Ended) -> tuple[Observation, ...]:
        """The step that causes the death, earlier steps with their answers, later ones as lost."""
        self._probe(death)
        if death.cause == "garbled":
            self.breaches.append(f"{self._name} broke the protocol at case {case.id}: {death.detail}")
        died = _died(death)
        before: tuple[Observation, ...] = ()
        for count in range(1, len(case.steps)):
            try:
                (before,) = self._exchange([replace(case, steps=case.steps[:count])])
            except Ended:
                before = before[: count - 1]
                break
        return (*before, died, *[LOST] * (len(case.steps) - len(before) - 1))

    def _exchange(self, batch: Sequence[Case]) -> list[tuple[Observation, ...]]:
        """Errors: ``Ended`` where these cases, or those before them, brought the testee down."""
        while True:
            if self._deaths > self._limits.deaths:
                raise protocol.Unstable(f"{self._name} went down {self._deaths} times")
            if self._link.over:
                self._restart()
            started = time.monotonic()
            try:
                found = self._send_batch(batch)
            except Ended as death:
                if death.cause == "timeout":
                    self._hung += time.monotonic() - started
                if not death.unasked:
                    raise
                self._note_unsolicited(death)  # earlier cases caused that, so these are sent once more
            else:
                return found

    def _probe(self, death: Ended) -> None:
        """Checks that the testee survives an empty batch, else no case is to blame. Errors: ``Broken``."""
        if death.cause not in self._known_deaths:
            self._known_deaths.add(death.cause)
            try:
                self._exchange([])
            except Ended as same:
                raise protocol.Broken(f"{self._name} also ended at a batch without cases: {same}") from None

    def _send_batch(self, batch: Sequence[Case]) -> list[tuple[Observation, ...]]:
        """Errors: ``Ended`` where these cases, or those before them, brought the testee down."""
        # Cases have unique numbers: a testee with state notices the start of each case.
        operations = [
            {"case": k, **protocol.operation(step)} for k, case in enumerate(batch, self._cases) for step in case.steps
        ]
        self._cases += len(batch)
        results = iter(self.send(operations))
        return [_until_death([next(results) for _ in case.steps], self._hello.claims.limits) for case in batch]

    def send(self, operations: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The results of operations, in one exchange. Errors: ``Ended``."""
        self._batches += 1
        self._batches_since_start += 1
        # Numbers are unique: a late answer does not match.
        cases = [{"n": n, **each} for n, each in enumerate(operations, self._numbers)]
        self._numbers += len(cases)
        reply = self._link.exchange(
            {
                "type": "batch",
                "id": self._batches,
                "deadline_ms": int((self._limits.batch_s or 0) * 1000),
                "cpu_ms": int(self._limits.cpu_s * 1000),
                "cases": cases,
            },
            self._limits.batch_s,
        )
        results = self._checked(reply, {each["n"]: each["op"] for each in cases})
        self._deaths += sum(each["status"] == "died" for each in results.values())
        return [results[each["n"]] for each in cases]

    def _checked(self, reply: Mapping[str, Any], asked: Mapping[int, str]) -> dict[int, Mapping[str, Any]]:
        try:
            return answers.results(reply, self._batches, asked)
        except ProtocolViolation as wrong:
            raise self._link.garbled(str(wrong), unasked=self._is_late(reply, min(asked, default=0))) from None

    def _is_late(self, reply: Mapping[str, Any], first: int) -> bool:
        """Whether the reply belongs to an earlier batch of this process; then the current batch is not to blame."""
        if self._batches_since_start == 1 or reply.get("type") != "results":
            return False
        results = reply.get("results")
        numbers = [each.get("n") for each in results if isinstance(each, Mapping)] if isinstance(results, list) else []
        return reply.get("id") in range(1, self._batches) or any(
            isinstance(each, int) and not isinstance(each, bool) and 0 <= each < first for each in numbers
        )

    def _note_unsolicited(self, death: Ended) -> None:
        if death.cause != "garbled":
            self._note_idle_death(death)
            return
        self._unsolicited += 1
        why = f"{self._name} sent an unsolicited response after batch {self._batches - 1}: {death.detail}"
        if self._unsolicited == MAX_UNSOLICITED:
            raise protocol.Broken(why)
        self.breaches.append(why)

    def _note_idle_death(self, death: Ended) -> None:
        if "unasked" not in self._known_deaths:
            self._known_deaths.add("unasked")
            why = f"{self._name} went down while idle, after batch {self._batches - 1}: {death}"
            self.troubles.append(why)

    def _start(self) -> tuple[Link, Hello]:
        self._batches_since_start = 0
        try:
            link = self._begin()
        except OSError as missing:
            raise protocol.Unavailable(f"{self._name} cannot be started: {unconnected(missing)}") from None
        try:
            return link, self._handshake(link)
        except Ended as death:
            raise protocol.Broken(f"{self._name} did not start: {death}\n{death.evidence}".rstrip()) from None
        except ProtocolViolation as wrong:
            link.kill()
            raise protocol.Broken(f"{self._name} broke the protocol at its start: {wrong}") from None
        except protocol.Unavailable:
            link.kill()
            raise

    def _handshake(self, link: Link) -> Hello:
        seconds = self._limits.start_s
        found = answers.hello(
            link.exchange({"type": "hello", "protocol": protocol.VERSION, "run": "kipcheck"}, seconds)
        )
        if found.unavailable:
            raise protocol.Unavailable(f"{self._name}: {found.unavailable}")
        link.dump_signal = found.dump_signal
        if self._role not in found.roles:
            raise protocol.NotPlayed(self._info(found), self._role)
        self._configure(link, found)
        link.set_framing(found.framing)
        return found

    def _configure(self, link: Link, found: Hello) -> None:
        asked = {"type": "configure", "role": self._role.value, "edition": self._edition}
        answer = link.exchange({**asked, "framing": found.framing.value}, self._limits.start_s)
        if (why := answers.configured(answer)) is not None:
            raise protocol.Unavailable(why if why.startswith(self._name) else f"{self._name}: {why}")

    def _info(self, hello: Hello) -> protocol.TargetInfo:
        own = hello.name.strip()[:LONGEST_NAME] if self._names_itself else ""
        about = hello.version, hello.language, hello.issues, hello.roles, hello.claims
        return protocol.TargetInfo(own or self._name, *about, command=self._name if own else "")

    def _restart(self) -> None:
        self._restarts += 1
        if self._restarts > self._limits.restarts:
            raise protocol.Unstable(f"{self._name} went down {self._restarts} times")
        if self._hung > self._limits.hung_s:
            raise protocol.Unstable(f"{self._name} hung for {self._hung:.0f} s in total")
        try:
            self._link, hello = self._start()
        except protocol.Unavailable as gone:
            raise protocol.Broken(f"{gone}; before the restart it was available") from None
        if hello != self._hello:
            self._link.kill()
            difference = _first_difference(self._hello, hello)
            raise protocol.Broken(f"{self._name} announced different capabilities after a restart: {difference}")


def renewed(session: protocol.Session) -> bool:
    """As ``TesteeSession.renew``; False if the session cannot be renewed."""
    renew: Callable[[], bool] = getattr(session, "renew", lambda: False)
    return renew()


def run_up_to_death(session: protocol.Session, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
    """As ``TesteeSession.run_up_to_death``; of all cases, if the session cannot stop."""
    found: list[tuple[Observation, ...]] = getattr(session, "run_up_to_death", session.run)(cases)
    return found


def _ends_in_death(observations: Sequence[tuple[Observation, ...]]) -> bool:
    """Whether the target died in one of the cases of the last batch."""
    return any(isinstance(each, Died) for case in observations[-protocol.BATCH :] for each in case)


def _died(death: Ended) -> Died:
    return Died(death.cause, death.detail, death.evidence)


def _first_difference(before: Hello, after: Hello) -> str:
    """The first field in which they differ."""
    names = (each.name for each in fields(before))
    name = next(each for each in names if getattr(before, each) != getattr(after, each))
    return f"{name} was {getattr(before, name)!r:.80}, now {getattr(after, name)!r:.80}"


def _until_death(results: Sequence[Mapping[str, Any]], limits: Mapping[str, str]) -> tuple[Observation, ...]:
    """Results up to a death; results after it in the same case belong to another process and count as lost."""
    ends = next((index + 1 for index, each in enumerate(results) if each["status"] == "died"), len(results))
    return (*(protocol.observed(each, limits) for each in results[:ends]), *[LOST] * (len(results) - ends))


def _next_batch(cases: Sequence[Case], together: int) -> Sequence[Case]:
    """The next batch."""
    weight = 0
    for number, case in enumerate(cases[:together]):
        weight += sum(len(step.body.get("hex", "")) for step in case.steps)
        if number and weight > HEAVY:
            return cases[:number]
    return cases[:together]
