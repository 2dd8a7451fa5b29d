"""A consumer of aiokafka: consumes and commits until SIGTERM, then closes."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
TIMES = {
    "SESSION_MS": "session_timeout_ms",
    "HEARTBEAT_MS": "heartbeat_interval_ms",
    "REBALANCE_MS": "rebalance_timeout_ms",
    "MAX_POLL_MS": "max_poll_interval_ms",
}
REST_S = 0.02
"""After a poll that waits for nothing."""
TEXTS = {"INSTANCE": "group_instance_id", "CLIENT_ID": "client_id"}


def given(name: str) -> str:
    return os.environ.get(f"KIPCHECK_{name}", "")


POLL_MS = int(given("POLL_MS") or 100)


def report(callback: str, partitions: Any) -> None:
    """To kipcheck, as all its programs do."""
    print("kipcheck:", callback, *(f"{at.topic}-{at.partition}" for at in partitions), file=sys.stderr, flush=True)


def settings() -> dict[str, Any]:
    found: dict[str, Any] = {key: int(given(name)) for name, key in TIMES.items() if given(name)}
    found |= {key: given(name) for name, key in TEXTS.items() if given(name)}
    if names := [name for name in given("ASSIGNORS").split(",") if name]:
        if lacked := [name for name in names if name not in ASSIGNORS]:
            sys.exit(f"aiokafka has no assignor {lacked[0]}")
        found["partition_assignment_strategy"] = [ASSIGNORS[name] for name in names]
    return {**found, "enable_auto_commit": given("COMMIT") in ("", "auto")}


class Program(ConsumerRebalanceListener):  # type: ignore[misc]  # without types
    def __init__(self) -> None:
        self.consumer: Any = AIOKafkaConsumer(
            bootstrap_servers=given("BOOTSTRAP"), group_id=given("GROUP"),
            auto_commit_interval_ms=int(given("COMMIT_MS") or 100),
            auto_offset_reset=given("OFFSET_RESET") or "earliest", **settings(),
        )  # fmt: skip
        named = {"pattern": given("PATTERN")} if given("PATTERN") else {"topics": given("TOPICS").split(",")}
        self.consumer.subscribe(**named, listener=self)
        self.ended = asyncio.Event()
        self.is_busy = self.rebalanced = False
        self.held: dict[Any, int] = {}
        self.done: dict[Any, int] = {}
        self.commits: set[Any] = set()
        self.working = asyncio.Lock()

    async def on_partitions_revoked(self, revoked: Any) -> None:
        report("given-up", revoked)
        await self.finish(revoked)

    async def finish(self, revoked: Any) -> None:
        """Waits for the work on what was read; or commits, as its last work, what was read of these partitions."""
        async with self.working:
            if given("COMMIT") == "revoked":
                if self.held:
                    await self.pause()
                for at in [at for at in self.held if at in revoked]:
                    await self.committed({at: self.held.pop(at)})

    def on_partitions_assigned(self, assigned: Any) -> None:
        report("assigned", assigned)
        self.rebalanced = True

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.ended.set)
        await self.consumer.start()
        while not self.ended.is_set():
            if given("RESUME"):
                self.consumer.resume(*self.consumer.assignment())
            found = await self.consumer.getmany(timeout_ms=POLL_MS)
            await asyncio.sleep(0 if POLL_MS else REST_S)
            for at, records in found.items():
                print(at.topic, at.partition, records[-1].offset, flush=True)
            self.is_busy |= bool(found)
            async with self.working:
                await self.pause()
                await self.commit({at: records[-1].offset + 1 for at, records in found.items()})
        await asyncio.gather(*self.commits)
        await self.finish(self.consumer.assignment())  # which aiokafka calls for rebalances alone
        await self.consumer.stop()

    async def pause(self) -> None:
        if self.is_busy and given("PAUSE_MS"):
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.ended.wait(), int(given("PAUSE_MS")) / 1000)

    async def commit(self, read: dict[Any, int]) -> None:
        how = given("COMMIT")
        if how == "sync" and read:
            await self.committed()
        elif how == "async" and read:
            self.commits = {each for each in self.commits if not each.done()} | {asyncio.create_task(self.committed())}
        elif how == "revoked":
            self.held |= read
        elif how == "late":
            if self.rebalanced:
                for at, offset in self.held.items():
                    if offset > self.done.get(at, 0):
                        await self.committed({at: offset})
                self.held, self.rebalanced = {}, False
            self.held |= read

    async def committed(self, late: dict[Any, int] | None = None) -> None:
        """Commits the positions; or, late, an offset of before a rebalance, which aiokafka refuses if the partition is
        not assigned any more."""
        try:
            await self.consumer.commit(late)
        except IllegalStateError:
            return
        except KafkaError as refused:  # what can be tried again is, after the next poll
            if not (isinstance(refused, CommitFailedError) or getattr(refused, "retriable", False)):
                raise
            print(repr(refused), file=sys.stderr, flush=True)
        self.done |= late or {}


async def main() -> None:
    await Program().run()


if __name__ == "__main__":
    asyncio.run(main())
