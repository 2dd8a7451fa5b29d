"""A conversation with a testee: batches out, results in, a death pinned to the case that caused it.

One by one, and not by halving: of k guilty cases among n each has to be seen to die once more whatever is done, and
halving would pay a death for each level above them, a restart or a whole deadline, where an exchange with one case
takes a millisecond. What only happens in company is halved, since there nothing else helps.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Protocol

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import Died, Lost, Observation
from kipcheck.conformance.targets import answers
from kipcheck.conformance.targets.answers import Hello, Wrong
from kipcheck.conformance.targets.protocol import (
    BATCH,
    VERSION,
    Broken,
    NotPlayed,
    TargetInfo,
    Unavailable,
    Unstable,
    observed,
    operation,
)
from kipcheck.conformance.targets.transport.channel import Ended, Talk
from kipcheck.conformance.targets.transport.framing import Framing

HEAVY: Final = 256 << 10
"""A batch carries no more hex digits than this, unless one case alone has more."""
UNASKED: Final = 3
"""So often it may speak unasked."""
SLOW: Final = 0.7
"""Of the deadline: cases that took so long one by one were slow together, and did not hang."""
LOST: Final = Lost("the target died at an earlier step")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a testee may take."""

    start_s: float | None = 60.0
    """To answer hello and configure."""
    batch_s: float | None = 30.0
    """Of wall time to answer a batch; the busy machine of somebody else's CI is no defect."""
    cpu_s: float = 2.0
    """Of processor time for one case, of at most a megabyte: a testee that can enforces it itself."""
    restarts: int = 250
    """Over a session; past that the target is unstable."""
    hung_s: float = 600.0
    """Over a session, in waiting for answers that did not come."""
    deaths: int = 5000
    """Over a session, of a testee that watches itself and needs no restart."""
    together: int = BATCH
    """Cases in one batch."""
    memory_times: float = 1.0
    """So many times what its entry says may it take, where it has a limit at all; half of the machine's at most."""
    grace_s: float = 5.0
    """To answer bye; to end after it; to end after SIGTERM."""


class Link(Protocol):
    """One life of a testee."""

    talk: Talk
    dump_signal: str | None

    @property
    def over(self) -> bool: ...
    def speak(self, framing: Framing, /) -> None: ...
    def exchange(self, message: Mapping[str, Any], seconds: float | None, /) -> dict[str, Any]: ...
    def garbled(self, detail: str, /, unasked: bool = False) -> Ended: ...
    def close(self, last: Mapping[str, Any], /, seconds: float) -> str: ...
    def kill(self) -> None: ...


class Conversation:
    """A session with whatever ``begin`` starts. Errors of the beginning: ``Unavailable``, ``Broken``."""

    def __init__(self, name: str, begin: Callable[[], Link], limits: Limits, edition: str, role: Role) -> None:
        self._name, self._begin, self._limits = name, begin, limits
        self._edition, self._role = edition, role
        self._restarts = self._deaths = self._unasked = 0
        self._hung = 0.0
        self._together = limits.together
        self._batches = self._in_life = self._numbers = self._cases = 0
        self._seen: set[str] = set()
        """Kinds of deaths."""
        self._given_up: Unstable | Broken | None = None
        self.troubles: list[str] = []
        self.breaches: list[str] = []
        self._link, self._hello = self._start()
        self.info = _info(name, self._hello)

    def hold(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        if self._given_up is not None:
            raise self._given_up
        held: list[tuple[Observation, ...]] = []
        try:
            while len(held) < len(cases):
                self._hold_batch(_first(cases[len(held) :], self._together), held)
        except (Unstable, Broken) as why:
            self._given_up = why
            (self.troubles if isinstance(why, Unstable) else self.breaches).append(str(why))
            lost = Lost(str(why))
            held += [tuple(lost for _ in case.steps) for case in cases[len(held) :]]
        return held

    def close(self) -> None:
        self._link.close({"type": "bye"}, seconds=self._limits.grace_s)

    def _hold_batch(self, batch: Sequence[Case], held: list[tuple[Observation, ...]]) -> None:
        if len(batch) == 1:
            self._hold_alone(batch[0], held)
            return
        try:
            held += self._ask(batch)
        except Ended as death:
            self._hold_apart(batch, death, held)

    def _hold_alone(self, case: Case, held: list[tuple[Observation, ...]]) -> bool:
        """Is it answered? One that is not is asked again as the first of a life, for what came before may be to blame;
        but not after a time-out, which is never late.
        """
        try:
            held += self._ask([case])
            return True
        except Ended as death:
            first = death
        if self._in_life > 1 and first.cause != "timeout":
            try:
                held += self._ask([case])
            except Ended as death:
                first = death
            except Broken:
                if len(case.steps) == 1:  # it cannot be begun again, and this is all that is known
                    held.append((_died(first),))
                raise
            else:
                self._note(first, f"{self._name} at case {case.id}, after others: {first}; begun afresh it did not")
                return True
        held.append(self._blame(case, first))
        return False

    def _hold_apart(self, batch: Sequence[Case], first: Ended, held: list[tuple[Observation, ...]]) -> None:
        """One by one, until one is found guilty; what comes after it may be held together again.

        Not after a time-out, though: should there be another guilty one, that would cost a deadline more.
        """
        begun, guilty = time.monotonic(), False
        for index, case in enumerate(batch):
            if not self._hold_alone(case, held):
                guilty = True
                if first.cause != "timeout":
                    if rest := batch[index + 1 :]:
                        self._hold_batch(rest, held)
                    return
        if not guilty:
            self._in_company(batch, first, time.monotonic() - begun)

    def _in_company(self, batch: Sequence[Case], first: Ended, alone_s: float) -> None:
        """All were answered, one by one: say what they do together, and let fewer travel together from now on."""
        if first.cause == "timeout":
            self._together = max(1, len(batch) // 2)
            if alone_s >= SLOW * (self._limits.batch_s or 0):
                return  # slow, and no more
            least = ""
        else:
            run = self._least_run(batch)
            if run:
                self._together = max(1, len(run) - 1)
            least = f"; the least run of them that does is {len(run)} long" if run else "; nor did they again together"
        self._note(first, f"{len(batch)} cases together ended in {first}; one by one none of them did{least}")

    def _note(self, death: Ended, why: str) -> None:
        """Of what no case is to blame for."""
        (self.breaches if death.cause == "garbled" else self.troubles).append(why)

    def _least_run(self, batch: Sequence[Case]) -> Sequence[Case]:
        """Of neighbours, by halving: what comes after it is left out, then what comes before it. Empty: none."""
        if not self._ends(batch):
            return ()
        lives, ends = 1, len(batch)
        while ends - lives > 1:
            middle = (lives + ends) // 2
            lives, ends = (lives, middle) if self._ends(batch[:middle]) else (middle, ends)
        begins, lives = 0, ends - 1
        while lives - begins > 1:
            middle = (begins + lives) // 2
            begins, lives = (middle, lives) if self._ends(batch[middle:ends]) else (begins, middle)
        return batch[begins:ends]

    def _ends(self, batch: Sequence[Case]) -> bool:
        try:
            self._ask(batch)
        except Ended:
            return True
        return False

    def _blame(self, case: Case, death: Ended) -> tuple[Observation, ...]:
        """The step that brings it down, those before it with their answers, those after it lost."""
        self._probe(death)
        if death.cause == "garbled":
            self.breaches.append(f"{self._name} broke the protocol at case {case.id}: {death.detail}")
        died = _died(death)
        before: tuple[Observation, ...] = ()
        for count in range(1, len(case.steps)):
            try:
                (before,) = self._ask([replace(case, steps=case.steps[:count])])
            except Ended:
                before = before[: count - 1]
                break
        return (*before, died, *[LOST] * (len(case.steps) - len(before) - 1))

    def _ask(self, batch: Sequence[Case]) -> list[tuple[Observation, ...]]:
        """Errors: ``Ended`` where these cases, or their company, brought it down."""
        while True:
            if self._deaths > self._limits.deaths:
                raise Unstable(f"{self._name} went down {self._deaths} times")
            if self._link.over:
                self._restart()
            begun = time.monotonic()
            try:
                found = self._asked(batch)
            except Ended as death:
                if death.cause == "timeout":
                    self._hung += time.monotonic() - begun
                if not death.unasked:
                    raise
                self._spoke_unasked(death)  # what was asked before is guilty of that, so these are asked once more
            else:
                return found

    def _probe(self, death: Ended) -> None:
        """No case is to blame where it ends with none at all. Errors: ``Broken``."""
        if death.cause not in self._seen:
            self._seen.add(death.cause)
            try:
                self._ask([])
            except Ended as same:
                raise Broken(f"{self._name} ended at a batch without cases too: {same}") from None

    def _asked(self, batch: Sequence[Case]) -> list[tuple[Observation, ...]]:
        self._batches += 1
        self._in_life += 1
        # Numbers are never used twice: a late answer does not fit, and a testee with a state sees each case begin.
        operations = [
            {"case": k, **operation(step)} for k, case in enumerate(batch, self._cases) for step in case.steps
        ]
        cases = [{"n": n, **each} for n, each in enumerate(operations, self._numbers)]
        first, self._numbers = self._numbers, self._numbers + len(cases)
        self._cases += len(batch)
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
        numbers = iter(range(first, self._numbers))
        limits = self._hello.claims.limits
        return [_to_the_death([results[next(numbers)] for _ in case.steps], limits) for case in batch]

    def _checked(self, reply: Mapping[str, Any], asked: Mapping[int, str]) -> dict[int, Mapping[str, Any]]:
        try:
            return answers.results(reply, self._batches, asked)
        except Wrong as wrong:
            raise self._link.garbled(str(wrong), unasked=self._is_late(reply, min(asked, default=0))) from None

    def _is_late(self, reply: Mapping[str, Any], first: int) -> bool:
        """Does it speak of what was asked before, in this life? Then what was asked now is not to blame."""
        if self._in_life == 1 or reply.get("type") != "results":
            return False
        results = reply.get("results")
        numbers = [each.get("n") for each in results if isinstance(each, Mapping)] if isinstance(results, list) else []
        return reply.get("id") in range(1, self._batches) or any(
            isinstance(each, int) and not isinstance(each, bool) and 0 <= each < first for each in numbers
        )

    def _spoke_unasked(self, death: Ended) -> None:
        if death.cause != "garbled":
            self._ended_unasked(death)
            return
        self._unasked += 1
        why = f"{self._name} spoke of what it was not asked, after batch {self._batches - 1}: {death.detail}"
        if self._unasked == UNASKED:
            raise Broken(why)
        self.breaches.append(why)

    def _ended_unasked(self, death: Ended) -> None:
        if "unasked" not in self._seen:
            self._seen.add("unasked")
            why = f"{self._name} went down when nothing was asked, after batch {self._batches - 1}: {death}"
            self.troubles.append(why)

    def _start(self) -> tuple[Link, Hello]:
        self._in_life = 0
        try:
            link = self._begin()
        except OSError as missing:
            raise Unavailable(f"{self._name} cannot be started: {missing}") from None
        try:
            return link, self._shake_hands(link)
        except Ended as death:
            raise Broken(f"{self._name} did not start: {death}\n{death.evidence}".rstrip()) from None
        except Wrong as wrong:
            link.kill()
            raise Broken(f"{self._name} did not keep the protocol at its start: {wrong}") from None
        except Unavailable:
            link.kill()
            raise

    def _shake_hands(self, link: Link) -> Hello:
        seconds = self._limits.start_s
        found = answers.hello(link.exchange({"type": "hello", "protocol": VERSION, "run": "kipcheck"}, seconds))
        if found.unavailable:
            raise Unavailable(f"{self._name}: {found.unavailable}")
        link.dump_signal = found.dump_signal
        if self._role not in found.roles:
            raise NotPlayed(_info(self._name, found), self._role)
        asked = {"type": "configure", "role": self._role.value, "edition": self._edition}
        why = answers.configured(link.exchange({**asked, "framing": found.framing.value}, seconds))
        if why is not None:
            raise Unavailable(f"{self._name}: {why}")
        link.speak(found.framing)
        return found

    def _restart(self) -> None:
        self._restarts += 1
        if self._restarts > self._limits.restarts:
            raise Unstable(f"{self._name} went down {self._restarts} times")
        if self._hung > self._limits.hung_s:
            raise Unstable(f"{self._name} hung for {self._hung:.0f} s altogether")
        try:
            self._link, hello = self._start()
        except Unavailable as gone:
            raise Broken(f"{gone}, which was different before it was started again") from None
        if hello != self._hello:
            self._link.kill()
            unlike = _unlike(self._hello, hello)
            raise Broken(f"{self._name} says hello in another way after it was started again: {unlike}")


def _died(death: Ended) -> Died:
    return Died(death.cause, death.detail, death.evidence)


def _unlike(before: Hello, after: Hello) -> str:
    """The first thing in which they differ."""
    names = (each.name for each in fields(before))
    name = next(each for each in names if getattr(before, each) != getattr(after, each))
    return f"{name} was {getattr(before, name)!r:.80}, and is {getattr(after, name)!r:.80}"


def _info(name: str, hello: Hello) -> TargetInfo:
    return TargetInfo(name, hello.version, hello.language, hello.issues, hello.roles, hello.claims)


def _to_the_death(results: Sequence[Mapping[str, Any]], limits: Mapping[str, str]) -> tuple[Observation, ...]:
    """What a testee that watches itself answered after it died in the same case is of another life."""
    ends = next((index + 1 for index, each in enumerate(results) if each["status"] == "died"), len(results))
    return (*(observed(each, limits) for each in results[:ends]), *[LOST] * (len(results) - ends))


def _first(cases: Sequence[Case], together: int) -> Sequence[Case]:
    """A batch."""
    weight = 0
    for number, case in enumerate(cases[:together]):
        weight += sum(len(step.body.get("hex", "")) for step in case.steps)
        if number and weight > HEAVY:
            return cases[:number]
    return cases[:together]
