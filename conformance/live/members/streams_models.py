"""Members of a Streams group that run in this process: the small consumer, with the model of an assignor.

They report what ``StreamsMember.java`` prints. A task is that of the partition with its number, since the application
has one subtopology without state.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer import Consumer, Partition, subscription
from kipcheck.conformance.live.members.processes import Begun, Event, Exited, Killed, Line
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE
from kipcheck.conformance.protocols.streams.model.members import (
    STREAM,
    AssignmentResult,
    Binary,
    Fatal,
    Joining,
    Misconfigured,
    Share,
)
from kipcheck.conformance.wire.embedded import Assignment, Subscription, read_assignment

OPENED_OR_CLOSED: Final = {"assigned": "opened", "revoked": "closed", "lost": "closed"}
"""A callback of a consumer -> what happens to the tasks of its partitions."""
METHODS: Final = {"subscribe": "subscriptionUserData", "lead": "performAssignment", "assigned": "onAssignment"}
"""What a thread was doing -> the method of Kafka in which its exception is thrown."""
AT_ONCE: Final = ("again", "now")


class ThreadEnded(Exception):
    """An exception of an assignor, or an error code that it was sent."""

    def __init__(self, during: str, kind: str, why: str) -> None:
        """``during``: ``subscribe``, ``lead``, ``assigned`` or ``error``."""
        super().__init__(f"at {METHODS.get(during, during)}\n{kind}: {why}")


@final
class ModelledThread(Consumer):
    """Does not leave its group when it ends, as a Streams thread does not."""

    def __init__(
        self, name: str, binary: Binary, settings: Mapping[str, Any], report: Callable[[str, object], None]
    ) -> None:
        """``settings``: arguments of the consumer. ``report``: gets a word of ``StreamsMember.java`` and its rest.

        Errors: ``Misconfigured``.
        """
        super().__init__(**settings, assignors=STREAM)
        self.client_id = f"{name}-model"
        self._binary = binary
        self._report = report
        self.memory = binary.initial()
        self.call = self._call

    @property
    def is_cooperative(self) -> bool:
        return COOPERATIVE in self._binary.supports

    def _call(self, what: str, partitions: list[str]) -> None:
        for each in partitions:
            self._report(OPENED_OR_CLOSED[what], f"0_{each.rpartition('-')[2]}")

    async def run(self) -> int:
        if self.is_cooperative:
            self._report("protocols", "COOPERATIVE")
        self._report("used", self.memory.used)
        return await super().run()

    async def leave(self) -> None:
        """Nothing is sent."""

    def forget(self, error: int) -> None:
        super().forget(error)
        self.memory = replace(self.memory, active=())

    def metadata(self, assignor: str) -> bytes:
        try:
            self.memory, data = self._binary.subscribe(self.memory, (*self.topics,))
        except Fatal as fatal:
            raise ThreadEnded("subscribe", fatal.kind, fatal.why) from None
        assert isinstance(data, bytes)
        owned = self.owned if self.is_cooperative else ()
        return Subscription(int(self.is_cooperative), (*self.topics,), owned, user_data=data).written

    async def sync(self, joined: Mapping[str, Any]) -> int:
        given = await self._lead(joined["members"]) if joined["leader"] == self.member else {}
        assignments = [
            {"memberId": id, "assignment": Assignment(0, share.partitions, _bytes(share.data)).written}
            for id, share in given.items()
        ]
        named = {"protocolType": "consumer", "protocolName": joined["protocolName"]}
        answer = await self.ask("SyncGroup", {**self.names(), **named, "assignments": assignments})
        error: int = answer["errorCode"]
        return error or await self._take(read_assignment(answer["assignment"]))

    async def _lead(self, listed: Iterable[Mapping[str, Any]]) -> Mapping[str, Share]:
        found = {each["memberId"]: subscription(each["metadata"]) for each in listed}
        topics = sorted({*self.topics}.union(*(each.topics for each in found.values())))
        sizes = tuple(Topic(each["name"], len(each["partitions"])) for each in await self.describe(topics))
        joining = (Joining(id, each.topics, each.user_data, each.owned) for id, each in found.items())
        try:
            self.memory, shares = self._binary.lead(self.memory, sizes, tuple(joining))
        except Fatal as fatal:
            raise ThreadEnded("lead", fatal.kind, fatal.why) from None
        return shares

    async def _take(self, given: Assignment) -> int:
        """An error by which it joins again, or none."""
        try:
            result = self._binary.assigned(self.memory, Share(given.partitions, given.user_data))
        except Fatal as fatal:
            raise ThreadEnded("assigned", fatal.kind, fatal.why) from None
        if result.memory.used != self.memory.used:
            self._report("used", result.memory.used)
        self.memory = result.memory
        if result.error:
            raise ThreadEnded("error", "kipcheck.AssignmentError", f"error code {result.error}")
        lost = {*self.owned}.difference(given.partitions)
        await self.give_up(lost)
        self.own(given.partitions if result.applied else ())
        return await self._joins_again(result, lost)

    async def _joins_again(self, result: AssignmentResult, lost: set[Partition]) -> int:
        if result.rejoin.when == "again":
            await super().leave()
            self.forget(Error.UNKNOWN_MEMBER_ID)
        joins = result.rejoin.when in AT_ONCE or (lost and self.is_cooperative)
        return Error.REBALANCE_IN_PROGRESS if joins else Error.NONE


def _bytes(data: object) -> bytes:
    assert isinstance(data, bytes)
    return data


@final
@dataclass(slots=True)
class ModelledMember:
    """A member that runs as a task. Errors of ``run`` end it, as an exception ends a thread of Streams."""

    name: str
    take: Callable[[Event], None]
    thread: ModelledThread | None = None
    ended: "asyncio.Future[None]" = field(init=False)
    _running: "asyncio.Task[int] | None" = None

    @classmethod
    async def start(
        cls, name: str, binary: Binary, settings: Mapping[str, Any], take: Callable[[Event], None]
    ) -> "ModelledMember":
        """``settings``: arguments of the consumer. One that is not configured correctly ends at once."""
        found = cls(name, take)
        take(Begun(time.monotonic_ns(), name))
        found.ended = asyncio.ensure_future(found._run(binary, settings))
        return found

    def _report(self, what: str, rest: object = "") -> None:
        self.take(Line(time.monotonic_ns(), self.name, what, str(rest)))

    async def _run(self, binary: Binary, settings: Mapping[str, Any]) -> None:
        code, errors = 0, ""
        try:
            self.thread = ModelledThread(self.name, binary, settings, self._report)
            self._running = asyncio.ensure_future(self.thread.run())
            with suppress(asyncio.CancelledError):
                await self._running
        except Misconfigured as why:
            code, errors = 1, f"{why.kind}: {why}"
        except (ThreadEnded, RuntimeError, OSError, EOFError) as why:
            code, errors = 1, str(why)
            self._report("died")
        self.take(Exited(time.monotonic_ns(), self.name, code, errors))

    async def stop(self) -> None:
        self._report("closing")
        if self.thread is not None:
            self.thread.own(())
        await self._end()

    async def kill(self) -> None:
        if not self.ended.done():
            self.take(Killed(time.monotonic_ns(), self.name))
        await self._end()

    async def _end(self) -> None:
        if self._running is not None:
            self._running.cancel()
        await self.ended
