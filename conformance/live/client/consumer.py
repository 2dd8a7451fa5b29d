"""A small consumer, which keeps every rule. Mutants change one decision each.

It has one connection to the broker that it was given, and one to its coordinator. As a program:
``python -m kipcheck.conformance.live.client.consumer BOOTSTRAP GROUP TOPIC``.
"""

import asyncio
import re
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.client.consumer_connections import PAUSE_S, Channel, Connections
from kipcheck.conformance.protocols.assignment.model import assignment as rules
from kipcheck.conformance.protocols.assignment.ops import user_data
from kipcheck.conformance.wire.embedded import Assignment, Subscription, assigned, read_subscription
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import next_offset

NO_COORDINATOR: Final = (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
RETRIED: Final = frozenset(
    {Error.COORDINATOR_LOAD_IN_PROGRESS, *NO_COORDINATOR, Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION}
)
BEATS: Final = {
    "consumer": "ConsumerGroupHeartbeat",
    "streams": "StreamsGroupHeartbeat",
    "share": "ShareGroupHeartbeat",
}
"""Protocol -> its heartbeat."""
SUBTOPOLOGY: Final = "0"
"""The only one of a member of a streams group: its task n reads partition n of each of its topics."""
RULES: Final = {rules.RANGE: rules.range_, rules.ROUNDROBIN: rules.roundrobin}
HEARTBEAT_S: Final = 0.15
LATEST: Final = "latest"
LATE: Final = "late"
"""How a program commits that holds records over a rebalance."""
REVOKED: Final = "revoked"
"""How one commits that does so for the partitions that it gives up, before it has them no more."""

Partition = tuple[str, int]


def subscription(data: bytes) -> Subscription:
    """That of a member; to no topics where it cannot be read."""
    try:
        return read_subscription(data)
    except Refused:
        return Subscription(0, ())


class Consumer(Connections):
    """Runs until it is stopped."""

    commits = "auto"
    """After each fetch; or ``late``: after the next rebalance, what it read before and still has; or ``revoked``."""
    pause_ms = 0
    """So long it works after a fetch. Its heartbeats go on."""
    max_poll_ms = 0
    """If it works longer, it leaves the group, and joins again afterwards; 0: no limit."""
    heartbeat_s = HEARTBEAT_S
    """Between two heartbeats."""
    offset_reset = "earliest"
    """Where it begins without a committed offset; or ``latest``."""
    pattern = ""
    """Of its topics; empty: it is given their names."""

    def __init__(
        self, bootstrap: str, group: str, topics: str, session_ms: int, instance: str = "", assignors: str = "",
        protocol: str = "", rebalance_ms: int = 6000,
    ) -> None:  # fmt: skip
        """``topics`` and ``assignors``: with commas between them; ``protocol``: ``consumer`` for that of KIP-848,
        ``streams`` for that of KIP-1071; ``share`` is for a ``ShareConsumer``."""
        super().__init__(bootstrap, session_ms, protocol in BEATS)
        self.heartbeat = BEATS.get(protocol, "")
        self.group, self.topics = group, topics.split(",")
        self.rebalance_ms = rebalance_ms
        self.instance = instance or None
        self.assignors = (assignors or "range").split(",")
        self.member, self.generation = (str(uuid.uuid4()), 0) if self.is_modern else ("", -1)
        self.owned: tuple[Partition, ...] = ()
        self.had = b""
        """Its last assignment as user data of the sticky assignor."""
        self.call: Callable[[str, list[str]], None] = lambda what, partitions: None
        """Calls a callback of its user."""
        self.known_to_user: set[Partition] = set()
        """What its user has, after all callbacks."""
        self.protocol, self.sizes = "", dict[str, int]()
        """The assignor that its group chose when it led last, and the partitions of each topic that it assigned."""
        self.positions: dict[Partition, int] = {}
        """The next offset to read, of the owned partitions whose committed offset is known."""
        self.ids: dict[str, uuid.UUID] = {}
        """Of topics, for KIP-848."""
        self.held: dict[Partition, int] = {}
        """What it has read, and commits late."""
        self.done: dict[Partition, int] = {}
        """What it has committed late."""
        self.unread: dict[str, Any] | None = None
        """The answer to a heartbeat, which it has to act on."""
        self.revoking: frozenset[Partition] = frozenset()
        """What it gives up now."""
        self.rebalanced = False
        """Whether it was assigned partitions since it last committed late."""
        self.has_lost = False
        """Whether a cooperative leader took partitions away, which others get when it joins again."""
        self.busy_until_s = self.polled_s = 0.0
        """When its work ends; when it polled last."""

    @property
    def is_cooperative(self) -> bool:
        return {*self.assignors} == {rules.COOPERATIVE}

    async def run(self) -> int:
        """Its exit code."""
        try:
            await self.find_topics()
            await self.find_coordinator()
            await (self.live_by_heartbeats() if self.is_modern else self.live())
        finally:
            self.home.close()
            self.coordinator.close()
        return 0

    async def find_topics(self) -> None:
        """Their ids; and their names, if it subscribes by a pattern."""
        described = await self.describe(None if self.pattern else self.topics)
        self.ids = {each["name"]: each["topicId"] for each in described if "topicId" in each}
        if self.pattern:
            self.topics = sorted(each["name"] for each in described if re.fullmatch(self.pattern, each["name"]))

    async def describe(self, topics: Iterable[str] | None) -> list[dict[str, Any]]:
        """The metadata of topics, once that of its own ones has no error; None: of all topics."""
        names = None if topics is None else [{"name": each} for each in topics]
        while True:
            answer = await self.ask("Metadata", {"topics": names})
            self.nodes = self.nodes or [(each["host"], each["port"]) for each in answer["brokers"]]
            found: list[dict[str, Any]] = answer["topics"]
            own = found if topics is None else [each for each in found if each["name"] in self.topics]
            if self.stopping.is_set() or not any(each["errorCode"] for each in own):
                return found
            await asyncio.sleep(PAUSE_S)

    async def live(self) -> None:
        await self.join()
        while not self.stopping.is_set():
            await self.round()
        await self.leave()

    async def find_coordinator(self) -> None:
        while not self.stopping.is_set():
            found = await self.ask("FindCoordinator", {"key": self.group})
            if found["errorCode"] == Error.NONE:
                break
            await asyncio.sleep(PAUSE_S)
        else:
            return
        if self.coordinator is not self.home:
            self.coordinator.close()
        self.coordinator = Channel(found["host"], found["port"])

    async def round(self) -> None:
        """A heartbeat; if its work is done, a fetch and a commit; and what follows from their answers."""
        if self.is_overdue:
            await self.leave()
            self.forget(Error.UNKNOWN_MEMBER_ID)
            await self.finish_work()
            return await self.join()
        error = (await self.next_beat())["errorCode"]
        if error == Error.NONE and self.polls() and self.owned:
            await self.fetch()
            error = Error.NONE if self.unread is not None else await self.commit()
        if error != Error.NONE:
            return await self.recover(error)
        await self.rest()

    def polls(self) -> bool:
        """Whether its work is done. The next one begins then."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self.busy_until_s:
            return False
        self.polled_s, self.busy_until_s = now_s, now_s + self.pause_ms / 1000
        return True

    @property
    def is_overdue(self) -> bool:
        """Whether it has not polled for too long."""
        waited_s = asyncio.get_running_loop().time() - self.polled_s
        return bool(self.max_poll_ms and self.polled_s and waited_s > self.max_poll_ms / 1000)

    async def finish_work(self) -> None:
        while not (self.polls() or self.stopping.is_set()):
            await self.rest()

    async def rest(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), self.heartbeat_s)

    async def recover(self, error: int) -> None:
        if error not in RETRIED and error != Error.UNKNOWN_MEMBER_ID:
            raise RuntimeError(f"error {error}")
        if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            self.forget(error)
        await asyncio.sleep(PAUSE_S)
        if error in NO_COORDINATOR:
            return await self.find_coordinator()
        if error != Error.COORDINATOR_LOAD_IN_PROGRESS:
            await self.join()

    def forget(self, error: int) -> None:
        """It is no member any more."""
        self.member, self.generation = ("" if error == Error.UNKNOWN_MEMBER_ID else self.member), -1
        self.own(())

    async def join(self) -> None:
        """Joins until it has an assignment."""
        if self.pattern:
            await self.find_topics()
        while not self.stopping.is_set():
            if not self.is_cooperative:
                await self.give_up(self.owned)
                self.own(())
            answer = await self.ask("JoinGroup", {
                "groupId": self.group, "sessionTimeoutMs": self.session_ms,
                "rebalanceTimeoutMs": self.rebalance_ms,
                "memberId": self.member, "groupInstanceId": self.instance, "protocolType": "consumer",
                "protocols": [{"name": each, "metadata": self.metadata(each)} for each in self.assignors],
            })  # fmt: skip
            error = answer["errorCode"]
            if error == Error.NONE:
                self.member, self.generation = answer["memberId"], answer["generationId"]
                error = await self.sync(answer)
                if error == Error.NONE:
                    self.polled_s = asyncio.get_running_loop().time()
                    if self.has_lost:
                        continue
                    return
            elif error == Error.MEMBER_ID_REQUIRED:
                self.member = answer["memberId"]
                continue
            if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
                self.forget(error)
            elif error in NO_COORDINATOR:
                await self.find_coordinator()
            elif error not in RETRIED:
                raise RuntimeError(f"error {error}")
            await asyncio.sleep(PAUSE_S)

    def metadata(self, assignor: str) -> bytes:
        """Its subscription for an assignor."""
        if assignor == rules.COOPERATIVE:
            return Subscription(2, tuple(self.topics), self.owned, self.generation).written
        had = self.had if assignor == rules.STICKY else b""
        return Subscription(0, tuple(self.topics), user_data=had).written

    async def sync(self, joined: Mapping[str, Any]) -> int:
        given: Mapping[str, list[Partition]] = {}
        self.sizes = {}
        if joined["leader"] == self.member:
            found = {each["memberId"]: subscription(each["metadata"]) for each in joined["members"]}
            topics = sorted({*self.topics}.union(*(each.topics for each in found.values())))
            sizes = {each["name"]: len(each["partitions"]) for each in await self.describe(topics)}
            self.protocol = joined["protocolName"]
            given, self.sizes = self.assign(sizes, found), sizes
        assignments = [{"memberId": id, "assignment": self.assignment(mine)} for id, mine in given.items()]
        named = {"protocolType": "consumer", "protocolName": joined["protocolName"]}
        answer = await self.ask("SyncGroup", {**self.names(), **named, "assignments": assignments})
        if answer["errorCode"] == Error.NONE:
            mine = assigned(answer["assignment"]) or ()
            lost = {*self.owned}.difference(mine)
            self.has_lost = self.is_cooperative and bool(lost)
            await self.give_up(lost)
            if self.known_to_user.issuperset(mine):
                self.call("assigned", [])
            self.own(mine)
            self.had = user_data(mine, self.generation)
        error: int = answer["errorCode"]
        return error

    def assign(self, sizes: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[str, list[Partition]]:
        """Assigns by the rule of the chosen assignor.

        Where it has none, all topics are dealt evenly, those with the fewest subscribers first. A cooperative member
        withholds what another member still owns.
        """
        if (rule := RULES.get(self.protocol)) is not None:
            topics = tuple(rules.Topic(name, size) for name, size in sizes.items())
            group = rules.Group(topics, tuple(rules.Member(id, each.topics) for id, each in members.items()))
            return {id: [*mine] for id, mine in rule(group).items()}
        given: dict[str, list[Partition]] = {id: [] for id in members}
        owners = {partition: id for id, member in members.items() for partition in member.owned}
        subscribers = {topic: sorted(id for id, each in members.items() if topic in each.topics) for topic in sizes}
        dealt = Counter(dict.fromkeys(members, 0))
        for topic in sorted(sizes, key=lambda topic: len(subscribers[topic])):
            readers = subscribers[topic]
            for number in range(sizes[topic]) if readers else ():
                reader = min(readers, key=lambda id: dealt[id])
                dealt[reader] += 1
                if not self.is_cooperative or owners.get((topic, number), reader) == reader:
                    given[reader].append((topic, number))
        return given

    def own(self, partitions: tuple[Partition, ...]) -> None:
        self.call_back("lost", self.known_to_user.difference(partitions))
        self.call_back("assigned", {*partitions} - self.known_to_user)
        self.owned = partitions
        self.rebalanced |= bool(partitions)
        self.positions = {each: offset for each, offset in self.positions.items() if each in partitions}

    def call_back(self, what: str, partitions: Iterable[Partition]) -> None:
        """Unless there are none. A callback for no partitions is called by itself."""
        if found := {*partitions}:
            self.known_to_user = self.known_to_user | found if what == "assigned" else self.known_to_user - found
            self.call(what, [f"{topic}-{number}" for topic, number in sorted(found)])

    def assignment(self, partitions: Iterable[Partition]) -> bytes:
        return Assignment(0, tuple(partitions)).written

    def listed(self, partitions: Iterable[Partition], name: str) -> list[dict[str, Any]]:
        by_topic: dict[str, list[int]] = {}
        for topic, number in partitions:
            by_topic.setdefault(topic, []).append(number)
        return [{name: topic, "partitions": numbers} for topic, numbers in by_topic.items()]

    async def fetch(self) -> None:
        await self.look_up_positions()
        topics = self.listed(self.positions, "topic")
        for each in topics:
            each["partitions"] = [
                {"partition": one, "fetchOffset": self.positions[each["topic"], one], "partitionMaxBytes": 1000}
                for one in each["partitions"]
            ]
        body = {"replicaId": -1, "maxWaitMs": 1, "minBytes": 0, "maxBytes": 10_000, "topics": topics}
        answer = await self.awaited(self.ask("Fetch", body))
        for each in answer["responses"]:
            for part in each["partitions"]:
                at = each["topic"], part["partitionIndex"]
                if part["errorCode"] == Error.NONE and at in self.positions:
                    self.positions[at] = next_offset(part["records"] or b"") or self.positions[at]
        parts = (part for each in answer["responses"] for part in each["partitions"])
        if any(part["errorCode"] == Error.NOT_LEADER_OR_FOLLOWER for part in parts):
            self.turn_to_the_next_node()
            if self.sizes and await self.has_grown():
                await self.join()

    async def has_grown(self) -> bool:
        """Whether a topic has more partitions now than it assigned."""
        answer = await self.ask("Metadata", {"topics": [{"name": each} for each in self.sizes]})
        return any(len(each["partitions"]) > self.sizes[each["name"]] for each in answer["topics"])

    async def look_up_positions(self) -> None:
        """New partitions are read from the committed offset on, or from the beginning or end."""
        new = [each for each in self.owned if each not in self.positions]
        if not new:
            return
        topics = [{"name": each["name"], "partitionIndexes": each["partitions"]} for each in self.listed(new, "name")]
        answer = await self.ask("OffsetFetch", {"groupId": self.group, "topics": topics})
        for each in answer["topics"]:
            for part in each["partitions"]:
                if part["errorCode"] == Error.NONE:
                    at, offset = (each["name"], part["partitionIndex"]), part["committedOffset"]
                    self.positions[at] = offset if offset >= 0 else await self.first_offset(at)

    async def first_offset(self, at: Partition) -> int:
        """Where a partition is read without a committed offset."""
        if self.offset_reset != LATEST:
            return 0
        parts = [{"partitionIndex": at[1], "timestamp": -1}]
        while True:
            body = {"replicaId": -1, "topics": [{"name": at[0], "partitions": parts}]}
            found = (await self.awaited(self.ask("ListOffsets", body)))["topics"][0]["partitions"][0]
            if not found["errorCode"] or self.stopping.is_set():
                return max(int(found["offset"]), 0)
            await asyncio.sleep(PAUSE_S)

    async def awaited(self, answer: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """An answer of the log. Heartbeats go on while it is late, up to one whose answer says something new."""
        asking = asyncio.ensure_future(answer)
        try:
            while not (await asyncio.wait([asking], timeout=2 * self.heartbeat_s))[0]:
                if self.unread is None:
                    beat = await self.next_beat()
                    self.unread = beat if beat["errorCode"] or beat.get("assignment") is not None else None
            return asking.result()
        finally:
            asking.cancel()

    async def next_beat(self) -> dict[str, Any]:
        """The answer to a heartbeat: one that came while another answer was awaited, or that to the next one."""
        unread, self.unread = self.unread, None
        if unread is not None:
            return unread
        return await (self.beat() if self.is_modern else self.ask("Heartbeat", self.names()))

    def finished(self) -> dict[Partition, int]:
        """What it commits now: its positions; if it commits late, after a rebalance, what it read before."""
        if self.commits == REVOKED:
            return {at: offset for at, offset in self.positions.items() if at in self.revoking}
        if self.commits != LATE:
            return self.positions
        late: dict[Partition, int] = {}
        if self.rebalanced:
            kept = {at: offset for at, offset in self.held.items() if at in self.owned}
            late = {at: offset for at, offset in kept.items() if offset > self.done.get(at, 0)}
            self.held, self.rebalanced = {}, False
        self.held |= self.positions
        self.done |= late
        return late

    async def commit(self) -> int:
        offsets = self.finished()
        topics = self.listed(offsets, "name")
        for each in topics:
            each["partitions"] = [
                {"partitionIndex": one, "committedOffset": offsets[each["name"], one]} for one in each["partitions"]
            ]
        if not topics:
            return Error.NONE
        names = self.names()
        names["generationIdOrMemberEpoch"] = names.pop("generationId")
        answer = await self.ask("OffsetCommit", {**names, "topics": topics})
        error: int = answer["topics"][0]["partitions"][0]["errorCode"]
        return Error.NONE if error == Error.UNKNOWN_TOPIC_OR_PARTITION else error

    async def give_up(self, lost: Collection[Partition]) -> None:
        """Commits what it has read of partitions that it has no longer, if it commits in this way."""
        self.revoking = frozenset(lost) if self.commits == REVOKED else frozenset()
        if self.revoking:
            await self.commit()
        self.revoking = frozenset()
        self.call_back("revoked", self.known_to_user.intersection(lost))

    async def leave(self) -> None:
        await self.give_up(self.owned)
        if self.is_modern:
            self.generation = -1 if self.instance is None else -2
            await self.beat()
        elif self.member and self.instance is None:
            await self.ask("LeaveGroup", {"groupId": self.group, "memberId": self.member})

    def names(self) -> dict[str, Any]:
        return {
            "groupId": self.group, "memberId": self.member, "generationId": self.generation,
            "groupInstanceId": self.instance,
        }  # fmt: skip

    # KIP-848

    async def live_by_heartbeats(self) -> None:
        while not self.stopping.is_set():
            if self.is_overdue:
                await self.leave()
                self.join_anew()
                await self.finish_work()
            answer = await self.next_beat()
            error = answer["errorCode"]
            if error == Error.NONE:
                self.generation = answer["memberEpoch"]
                if answer["assignment"] is not None:
                    mine = await self.named(answer["assignment"]["topicPartitions"])
                    await self.give_up({*self.owned}.difference(mine))
                    self.own(mine)
                if self.polls() and self.owned:
                    await self.fetch()
                    if self.unread is not None and self.unread["errorCode"] == Error.NONE:
                        self.generation = self.unread["memberEpoch"]  # what it has is given up at the next turn
                    is_member = self.unread is None or self.unread["errorCode"] == Error.NONE
                    if is_member and await self.commit() in NO_COORDINATOR:
                        await self.find_coordinator()
                await self.rest()
            elif error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.GROUP_ID_NOT_FOUND):
                self.join_anew()
            elif error in NO_COORDINATOR:
                await asyncio.sleep(PAUSE_S)
                await self.find_coordinator()
            elif error in RETRIED:
                await asyncio.sleep(PAUSE_S)
            else:
                raise RuntimeError(f"error {error}")
        await self.leave()

    def join_anew(self) -> None:
        self.generation = 0
        self.own(())

    async def named(self, given: Sequence[Mapping[str, Any]]) -> tuple[Partition, ...]:
        """A topic that was made anew has another id than its metadata had."""
        if not {each["topicId"] for each in given} <= {*self.ids.values()}:
            await self.find_topics()
        names = {id: name for name, id in self.ids.items()}
        known = (each for each in given if each["topicId"] in names)
        return tuple((names[each["topicId"]], number) for each in known for number in each["partitions"])

    async def beat(self) -> dict[str, Any]:
        if self.heartbeat != BEATS["consumer"]:
            return await self.beat_for_tasks()
        parts = self.listed(self.owned, "topicId")
        return await self.ask("ConsumerGroupHeartbeat", {
            "groupId": self.group, "memberId": self.member, "memberEpoch": self.generation,
            "instanceId": self.instance, "rackId": None, "rebalanceTimeoutMs": self.rebalance_ms,
            "subscribedTopicNames": [] if self.pattern else self.topics,
            "subscribedTopicRegex": self.pattern or None, "serverAssignor": None,
            "topicPartitions": [{**each, "topicId": self.ids[each["topicId"]]} for each in parts],
        })  # fmt: skip

    # KIP-1071

    async def beat_for_tasks(self) -> dict[str, Any]:
        """The answer as that of KIP-848, with partitions in place of tasks."""
        tasks = sorted({number for each in self.listed(self.owned, "topicId") for number in each["partitions"]})
        answer = await self.ask(self.heartbeat, {
            "groupId": self.group, "memberId": self.member, "memberEpoch": self.generation,
            "instanceId": self.instance, "rackId": None, "rebalanceTimeoutMs": self.rebalance_ms,
            "topology": {"epoch": 0, "subtopologies": [{"subtopologyId": SUBTOPOLOGY, "sourceTopics": self.topics}]},
            "activeTasks": [{"subtopologyId": SUBTOPOLOGY, "partitions": tasks}] if tasks else [],
            "standbyTasks": [], "warmupTasks": [], "processId": self.member,
        })  # fmt: skip
        given = answer["activeTasks"]
        parts = None if given is None else [
            {"topicId": self.ids[name], "partitions": each["partitions"]} for each in given for name in self.topics
        ]  # fmt: skip
        return {**answer, "assignment": None if parts is None else {"topicPartitions": parts}}


async def main(made: type[Consumer], bootstrap: str, group: str, topic: str) -> int:
    """Runs a consumer until SIGTERM."""
    consumer = made(bootstrap, group, topic, 3000)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, consumer.stopping.set)
    return await consumer.run()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Consumer, *sys.argv[1:])))
