"""Runs released assignors of Kafka Streams: several releases of kafka-streams in one JVM.

The program in the JVM keeps no state between orders, so an order carries all of a member's state, and equal orders have
equal answers: they are kept in memory, and on disk by the contents of the jars and of the program.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.answer_cache import AnswerCache
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.members_ops import (
    memory_of,
    partitions_of,
    plain_data,
    plain_joining,
    plain_memory,
    plain_settings,
)
from kipcheck.conformance.protocols.streams.model import members as model_members
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import jar_digests, maven
from kipcheck.conformance.targets.transport.pipe import Ended, Pipe

BATCH: Final = 32
"""Orders in one exchange: an assignment takes far longer than a codec operation."""
MILLISECONDS: Final = 5_000
"""Processor time for one order. An order that takes longer counts as one that never ends."""
SPUN: Final = "processor time"
"""The words in the program's message for an order that exceeded its processor time: it would on a busy machine too."""
LASTING: Final = ("accepted", "rejected", "unsupported")
"""Statuses that are the same each time. (An order given up for another reason may succeed later.)"""

T = TypeVar("T")
Order: TypeAlias = Mapping[str, Any]
"""One ``stream-...`` operation of the testee protocol, with its release."""
Result: TypeAlias = Mapping[str, Any]


class Unanswerable(Exception):
    """The program cannot pass this order to the release; the text says why."""


class Jars:
    """Some releases in one JVM, which starts at the first order whose answer is not known yet."""

    def __init__(self, begin: Callable[[], Pipe], digests: Mapping[str, str], kept: AnswerCache) -> None:
        """``digests``: for each release, of the jars that decide its answers."""
        self._begin = begin
        self._digests = digests
        self._kept = kept
        self._pipe: Pipe | None = None
        self._known: dict[str, Result] = {}
        self._binaries: dict[model_members.Settings, JarBinary] = {}
        self._batches = 0
        self.hits = 0
        """Orders whose answers were known."""
        self.misses = 0
        """Orders that a jar had to answer."""

    @property
    def releases(self) -> tuple[str, ...]:
        return tuple(self._digests)

    def binary(self, settings: model_members.Settings) -> "JarBinary":
        """Errors: LookupError for a release that was not opened."""
        if settings.release not in self._digests:
            raise LookupError(f"kafka-streams {settings.release} was not opened; opened: {', '.join(self._digests)}")
        if settings not in self._binaries:
            self._binaries[settings] = JarBinary(self, settings)
        return self._binaries[settings]

    def answers(self, orders: Sequence[Order]) -> list[Result]:
        """The result of each order; its status is ``died`` where the JVM died or gave the order up."""
        keys = [self._key(each) for each in orders]
        wanted = {key: order for key, order in zip(keys, orders, strict=True) if key not in self._known}
        self._known |= {key: found for key, text in self._kept.get(wanted).items() if (found := _parsed(text))}
        missing = [key for key in wanted if key not in self._known]
        self.misses += len(missing)
        self.hits += len(orders) - len(missing)
        for at in range(0, len(missing), BATCH):
            some = missing[at : at + BATCH]
            fresh = dict(zip(some, self._exchange_or_split([wanted[key] for key in some]), strict=True))
            self._known |= fresh
            self._kept.put({key: json.dumps(each) for key, each in fresh.items() if _lasts(each)})
        return [self._known[key] for key in keys]

    def close(self) -> None:
        if self._pipe is not None:
            self._pipe.close({"type": "bye"})
        self.kill()
        self._kept.close()

    def kill(self) -> None:
        if self._pipe is not None:
            self._pipe.kill()
            self._pipe = None

    def _key(self, order: Order) -> str:
        text = json.dumps(order, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"{self._digests[order['release']]}\0{MILLISECONDS}\0{text}".encode()).hexdigest()

    def _exchange_or_split(self, orders: Sequence[Order]) -> list[Result]:
        """Where the JVM dies, sends the orders one by one to find the one that killed it."""
        try:
            return self._exchange(orders)
        except Ended as death:
            self._pipe = None
            if len(orders) > 1:
                return [self._exchange_or_split([each])[0] for each in orders]
            reply = {"status": "died", "cause": death.cause, "message": death.detail, "evidence": death.evidence}
            return [reply]

    def _exchange(self, orders: Sequence[Order]) -> list[Result]:
        pipe = self._running()
        self._batches += 1
        seconds = programs.START_SECONDS + len(orders) * MILLISECONDS / 1000
        cases = [{"n": n, **order} for n, order in enumerate(orders)]
        reply = pipe.exchange(
            {
                "type": "batch", "id": self._batches, "deadline_ms": int(seconds * 1000), "cpu_ms": MILLISECONDS,
                "cases": cases,
            },
            seconds,
        )  # fmt: skip
        results = reply.get("results")
        if reply.get("type") != "results" or not isinstance(results, list) or len(results) != len(orders):
            raise pipe.garbled(f"no results: {str(reply)[:100]}")
        if any(each["status"] in ("died", "internal") for each in results):
            self.kill()  # one of its threads may still spin, or its heap may be full
        return results

    def _running(self) -> Pipe:
        """Errors: ``Unavailable`` where the JVM cannot be started."""
        if self._pipe is None or self._pipe.over:
            try:
                self._pipe = self._begin()
                self._pipe.exchange({"type": "hello", "protocol": 1, "run": "streams"}, programs.START_SECONDS)
            except (OSError, Ended) as wrong:
                self._pipe = None
                raise Unavailable(f"the JVM with kafka-streams does not start: {wrong}") from None
        return self._pipe


def _lasts(result: Result) -> bool:
    return result["status"] in LASTING or (result["status"] == "died" and SPUN in result["message"])


def _parsed(text: str) -> Result | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "status" in found else None


@contextmanager
def open_jars(releases: Sequence[str]) -> Iterator[Jars]:
    """Errors: LookupError for a release without kafka-streams; ``Unavailable`` without a JDK or jars."""
    program = programs.program()  # before any download: the jars need a JDK
    needed = {release: programs.coordinates(release, ("streams",)) for release in sorted(releases, key=Release.parse)}
    found = maven.fetch({each: None for group in needed.values() for each in group})
    paths = {release: [found[each] for each in group] for release, group in needed.items()}
    command = programs.command(paths, "kafka-streams")
    digests = {release: _digest(group) for release, group in paths.items()}
    kept = AnswerCache(maven.cache() / "streams" / f"{program.name}.sqlite3")
    jars = Jars(lambda: Pipe(command), digests, kept)
    try:
        yield jars
    except BaseException:
        jars.kill()
        raise
    finally:
        jars.close()


def _digest(jars: Sequence[Path]) -> str:
    """Of the contents of the jars, independent of their names."""
    return hashlib.sha256("\0".join(map(jar_digests.sha256, jars)).encode()).hexdigest()


class JarBinary:
    """The assignor of one release, configured as one member. Errors: as ``Binary``, and ``Unanswerable``."""

    def __init__(self, jars: Jars, settings: model_members.Settings) -> None:
        self.settings = settings
        self._jars = jars
        self._remembered: dict[object, Callable[[], Any]] = {}
        """For each call that was made before, a function that returns its result or raises its error."""
        self._common = {"release": settings.release, "settings": plain_settings(settings)}

    @property
    def latest(self) -> int:
        return int(self._configured["latest"])

    @property
    def supports(self) -> Sequence[str]:
        return tuple(self._configured["protocols"])

    def initial(self) -> model_members.Memory:
        return model_members.Memory(self._configured["used"])

    @cached_property
    def _configured(self) -> Result:
        try:
            return self._answer(self.configuring())
        except model_members.Fatal as thrown:
            raise model_members.Misconfigured(thrown.why, thrown.kind) from None

    def subscribe(
        self, memory: model_members.Memory, topics: tuple[str, ...], /
    ) -> tuple[model_members.Memory, model_members.Blob]:
        return self._once((memory, topics), lambda: self._subscribe(memory, topics))

    def _subscribe(
        self, memory: model_members.Memory, topics: tuple[str, ...]
    ) -> tuple[model_members.Memory, model_members.Blob]:
        reply = self._answer(self.subscribing(memory, topics))
        return memory_of(reply["memory"], memory), bytes.fromhex(reply["hex"])

    def lead(
        self, memory: model_members.Memory, topics: tuple[Topic, ...], members: tuple[model_members.Joining, ...], /
    ) -> tuple[model_members.Memory, Mapping[str, model_members.Share]]:
        return self._once((memory, topics, members), lambda: self._lead(memory, topics, members))

    def _lead(
        self, memory: model_members.Memory, topics: tuple[Topic, ...], members: tuple[model_members.Joining, ...]
    ) -> tuple[model_members.Memory, Mapping[str, model_members.Share]]:
        reply = self._answer(self.leading(memory, topics, members))
        shares = {
            each["id"]: model_members.Share(partitions_of(each["partitions"]), bytes.fromhex(each["userData"] or ""))
            for each in reply["assignment"]
        }
        return memory_of(reply["memory"], memory), shares

    def assigned(self, memory: model_members.Memory, share: model_members.Share, /) -> model_members.AssignmentResult:
        return self._once((memory, share), lambda: self._assigned(memory, share))

    def _assigned(self, memory: model_members.Memory, share: model_members.Share) -> model_members.AssignmentResult:
        reply = self._answer(self.assigning(memory, share))
        rejoin = model_members.Rejoin(reply["rejoin"], reply.get("atMs", 0))
        return model_members.AssignmentResult(
            memory_of(reply["memory"], memory), rejoin, reply["applied"], reply.get("error", model_members.NONE)
        )

    # Orders: for a caller that passes several to ``Jars`` at once, after which the methods above find the answers.

    def configuring(self) -> Order:
        return {"op": "stream-configure", **self._common}

    def subscribing(self, memory: model_members.Memory, topics: tuple[str, ...]) -> Order:
        return {"op": "stream-subscribe", **self._common, "memory": plain_memory(memory), "topics": [*topics]}

    def leading(
        self, memory: model_members.Memory, topics: tuple[Topic, ...], members: tuple[model_members.Joining, ...]
    ) -> Order:
        return {
            "op": "stream-assign",
            **self._common,
            "memory": plain_memory(memory),
            "topics": [{"name": each.name, "partitions": each.partitions} for each in topics],
            "members": [plain_joining(each) for each in members],
            "offsets": {},
        }

    def assigning(self, memory: model_members.Memory, share: model_members.Share) -> Order:
        return {
            "op": "stream-assigned",
            **self._common,
            "memory": plain_memory(memory),
            "partitions": [list(each) for each in share.partitions],
            "userData": plain_data(share.data),
        }

    def _once(self, question: object, compute: Callable[[], T]) -> T:
        """A group repeats the same calls, and even a lookup takes the time to build an order."""
        if question not in self._remembered:
            self._remembered[question] = _memoized(compute)
        found: T = self._remembered[question]()
        return found

    def _answer(self, order: Order) -> Result:
        """Errors: ``Fatal``, ``Endless``, ``Unanswerable``."""
        (result,) = self._jars.answers([order])
        match result["status"]:
            case "accepted":
                return result
            case "rejected":
                raise model_members.Fatal(result["class"], result.get("message", ""))
            case "unsupported":
                raise Unanswerable(f"kafka-streams {self.settings.release}: {result.get('message', '')}")
            case "died" if result["cause"] == "timeout":
                raise model_members.Endless("timeout", result["message"])
            case "died":
                raise model_members.Fatal(result["cause"], result["message"])
        raise model_members.Fatal(result.get("class", result["status"]), result.get("message", ""))


def _memoized(compute: Callable[[], T]) -> Callable[[], T]:
    """Calls the function once; the result returns or raises the same at each call."""
    try:
        found = compute()
    except model_members.Fatal as thrown:
        made, kind, why = type(thrown), thrown.kind, thrown.why

        def again() -> T:
            raise made(kind, why)

        return again
    return lambda: found
