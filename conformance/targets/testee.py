"""A target behind the testee protocol: batches out, results in, a death pinned to the case that caused it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from conformance.core.case import Case, Role
from conformance.core.history import Died, Lost, Observation
from conformance.targets.pipe import Command, Ended, Pipe
from conformance.targets.protocol import (
    BATCH,
    VERSION,
    Broken,
    Claims,
    NotPlayed,
    Session,
    TargetInfo,
    Unavailable,
    Unstable,
    observed,
    operation,
)

HEAVY = 256 << 10
"""A batch carries no more hex digits than this, unless one case alone has more."""


LOST = Lost("the target died at an earlier step")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a testee may take."""

    start_s: float = 60.0
    """To answer hello and configure."""
    batch_s: float = 30.0
    """Of wall time to answer a batch; the busy machine of somebody else's CI is no defect."""
    cpu_s: float = 2.0
    """Of processor time for one case, of at most a megabyte: a testee that can enforces it itself."""
    restarts: int = 250
    """Over a session; past that the target is unstable."""
    deaths: int = 5000
    """Over a session, of a testee that watches itself and needs no restart."""


class Testee:
    """A target by the command that starts it."""

    def __init__(self, name: str, command: Command, limits: Limits | None = None) -> None:
        self.name = name
        self._command = command
        self._limits = limits or Limits()

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        session = _Session(self.name, self._command, self._limits, edition, role)
        try:
            yield session
        finally:
            session.close()


class _Session:
    def __init__(self, name: str, command: Command, limits: Limits, edition: str, role: Role) -> None:
        self._name, self._command, self._limits = name, command, limits
        self._edition, self._role = edition, role
        self._restarts = self._deaths = 0
        self._given_up = ""
        self._batches = 0
        self.troubles: list[str] = []
        self._pipe, self.info = self._start()

    def hold(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        if self._given_up:
            raise Unstable(self._given_up)
        held: list[tuple[Observation, ...]] = []
        try:
            for batch in _batches(cases):
                self._hold_together(batch, held)
        except Unstable as why:
            self._given_up = str(why)
            self.troubles.append(self._given_up)
            lost = Lost(self._given_up)
            held += [tuple(lost for _ in case.steps) for case in cases[len(held) :]]
        return held

    def close(self) -> None:
        self._pipe.close({"type": "bye"})

    def _hold_together(self, batch: Sequence[Case], held: list[tuple[Observation, ...]]) -> None:
        """All at once; if that brings it down, one by one, which costs one more death and not one for each halving."""
        try:
            held += self._ask(batch)
            return
        except Ended as death:
            first = death
            if len(batch) == 1:
                held.append(self._blame(batch[0], death))
                return
        for index, case in enumerate(batch):
            try:
                held += self._ask([case])
            except Ended as death:
                held.append(self._blame(case, death))
                if batch[index + 1 :]:
                    self._hold_together(batch[index + 1 :], held)
                return
        self.troubles.append(f"{len(batch)} cases together ended in {first}; one by one none of them did")

    def _blame(self, case: Case, death: Ended) -> tuple[Observation, ...]:
        """The step that brings it down, those before it with their answers, those after it lost."""
        died = Died(death.cause, death.detail, death.evidence)
        if len(case.steps) == 1:
            return (died,)
        before: tuple[Observation, ...] = ()
        for count in range(1, len(case.steps)):
            part = Case(case.check, case.edition, case.role, case.steps[:count])
            try:
                (before,) = self._ask([part])
            except Ended:
                before = before[: count - 1]
                break
        return (*before, died, *[LOST] * (len(case.steps) - len(before) - 1))

    def _ask(self, batch: Sequence[Case]) -> list[tuple[Observation, ...]]:
        if self._pipe.over:
            self._restart()
        self._batches += 1
        operations = [{"case": k, **operation(step)} for k, case in enumerate(batch) for step in case.steps]
        reply = self._pipe.exchange(
            {
                "type": "batch",
                "id": self._batches,
                "deadline_ms": int(self._limits.batch_s * 1000),
                "cpu_ms": int(self._limits.cpu_s * 1000),
                "cases": [{"n": n, **each} for n, each in enumerate(operations)],
            },
            self._limits.batch_s,
        )
        if reply.get("type") != "results" or reply.get("id") != self._batches:
            raise self._pipe.garbled(f"results of batch {self._batches} wanted, not {str(reply)[:80]}")
        found = self._observations(reply.get("results"), len(operations))
        died = {each["n"] for each in reply["results"] if each["status"] == "died"}
        self._deaths += len(died)
        if self._deaths > self._limits.deaths:
            raise Unstable(f"{self._name} went down {self._deaths} times")
        numbers = iter(range(len(found)))
        return [
            _to_the_death([(found[n], n in died) for _, n in zip(case.steps, numbers, strict=False)]) for case in batch
        ]

    def _observations(self, results: Any, wanted: int) -> list[Observation]:
        found: dict[int, Observation] = {}
        for each in results if isinstance(results, list) else ():
            number = each.get("n") if isinstance(each, Mapping) else None
            if not isinstance(number, int) or not 0 <= number < wanted or number in found:
                raise self._pipe.garbled(f"a result of no case, or a second one: {str(each)[:80]}")
            try:
                found[number] = observed(each)
            except ValueError as wrong:
                raise self._pipe.garbled(str(wrong)) from None
        if len(found) != wanted:
            raise self._pipe.garbled(f"{len(found)} results of {wanted}")
        return [found[number] for number in range(wanted)]

    def _start(self) -> tuple[Pipe, TargetInfo]:
        try:
            pipe = Pipe(self._command)
        except OSError as missing:
            raise Unavailable(f"{self._name} cannot be started: {missing}") from None
        try:
            hello = pipe.exchange({"type": "hello", "protocol": VERSION, "run": "kipcheck"}, self._limits.start_s)
            if hello.get("unavailable"):
                pipe.kill()
                raise Unavailable(f"{self._name}: {hello['unavailable']}")
            info = _info(self._name, hello)
            if self._role not in info.roles:
                pipe.kill()
                raise NotPlayed(info, self._role)
            ready = pipe.exchange(
                {"type": "configure", "role": self._role.value, "edition": self._edition}, self._limits.start_s
            )
        except Ended as death:
            raise Broken(f"{self._name} did not start: {death}\n{death.evidence}".rstrip()) from None
        except (KeyError, TypeError, ValueError) as wrong:
            pipe.kill()
            raise Broken(f"{self._name} answered hello with something else: {wrong!r}") from None
        if "unsupported" in ready:
            pipe.kill()
            raise Unavailable(f"{self._name}: {ready['unsupported']}")
        if not ready.get("ok"):
            pipe.kill()
            raise Broken(f"{self._name} answered configure with {str(ready)[:80]}")
        return pipe, info

    def _restart(self) -> None:
        self._restarts += 1
        if self._restarts > self._limits.restarts:
            raise Unstable(f"{self._name} went down {self._restarts} times")
        self._pipe, _ = self._start()


def _to_the_death(answers: Sequence[tuple[Observation, bool]]) -> tuple[Observation, ...]:
    """What a testee that watches itself answered after it died in the same case is of another life."""
    ends = next((index + 1 for index, (_, died) in enumerate(answers) if died), len(answers))
    return (*(each for each, _ in answers[:ends]), *[LOST] * (len(answers) - ends))


def _info(name: str, hello: Mapping[str, Any]) -> TargetInfo:
    if hello.get("type") != "hello":
        raise ValueError(str(hello)[:80])
    messages = {str(message): (int(low), int(high)) for message, (low, high) in hello["capabilities"].items()}
    missing = {str(message): tuple(map(int, versions)) for message, versions in hello.get("missing", {}).items()}
    assignors, machines = (tuple(map(str, hello.get(key, ()))) for key in ("assignors", "machines"))
    claims = Claims(messages, missing, assignors, machines)
    roles = frozenset(Role(role) for role in hello["roles"])
    return TargetInfo(name, str(hello["version"]), str(hello["language"]), str(hello.get("issues", "")), roles, claims)


def _batches(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    batch: list[Case] = []
    weight = 0
    for case in cases:
        own = sum(len(step.body.get("hex", "")) for step in case.steps)
        if batch and (len(batch) == BATCH or weight + own > HEAVY):
            yield batch
            batch, weight = [], 0
        batch.append(case)
        weight += own
    if batch:
        yield batch
