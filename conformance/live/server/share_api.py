"""Share groups (KIP-932) for one member: the machine of consumer groups assigns, that of share partitions delivers.

A share group assigns without revocation: a member is taken to own what it is still assigned. No lock expires.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, get_args

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.recording.bodies import Bodies
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Answer, Groups, Handler
from kipcheck.conformance.live.server.topics import Topic, Topics
from kipcheck.conformance.protocols.reconciled.terms import LEAVING, Rejected, Says
from kipcheck.conformance.protocols.share_group.heartbeat import Heartbeat, HeartbeatAnswer
from kipcheck.conformance.protocols.share_partition import ops
from kipcheck.conformance.protocols.share_partition.messages import TYPES
from kipcheck.conformance.protocols.share_partition.model import ShareLeader, State

MOST: Final = 4
"""Records of a partition in one answer."""
WAIT_S: Final = 0.2
"""The longest wait of a fetch: topics grow with heartbeats."""
LOCK_MS: Final = 30_000
"""``group.share.record.lock.duration.ms``, its default."""
NAMES: Final[Mapping[int, ops.Kind]] = {TYPES[kind]: kind for kind in get_args(ops.Kind) if kind in TYPES}
Key: TypeAlias = tuple[str, int]
"""Topic and partition."""
Find: TypeAlias = Callable[[Received, Topic | None, int, Mapping[str, Any]], int]


@dataclass(slots=True)
class Session:
    epoch: int = 1
    """Of its next request."""
    partitions: dict[Key, None] = field(default_factory=dict)


InSession: TypeAlias = Callable[[Received, Session | None, Mapping[Key, int], Answer], None]
"""Answers a request, whose acknowledgements have these errors."""


class ShareApi:
    def __init__(self, groups: Groups, topics: Topics, bodies: Bodies, error: Find) -> None:
        """``error``: why a node does not read a partition, 0 if it does."""
        self.groups = groups
        self.topics = topics
        self.bodies = bodies
        self.error = error
        self.members: set[str] = set()
        self.sessions: dict[tuple[str, tuple[str, int]], Session] = {}
        """By member and the address of a node."""
        self.machine = ShareLeader()
        self.states: dict[Key, State] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {
            "ShareGroupHeartbeatRequest": self.heartbeat,
            "ShareFetchRequest": partial(self._in_session, self._fetch),
            "ShareAcknowledgeRequest": partial(self._in_session, self._acknowledged),
        }

    # Heartbeats

    def heartbeat(self, request: Received, answer: Answer) -> None:
        id, beat = self.bodies.read(Heartbeat, request)
        answer(self.bodies.written(self._beaten(id, beat), request.version))

    def _beaten(self, id: str, beat: Heartbeat) -> HeartbeatAnswer:
        if not id or not beat.member or (not beat.epoch and beat.topics is None):
            return HeartbeatAnswer(Error.INVALID_REQUEST, member=beat.member)
        group = self.groups.new_consumer(id, beat.member)
        if group is None:
            return HeartbeatAnswer(Error.GROUP_ID_NOT_FOUND, member=beat.member)
        self.members.add(beat.member)
        member = group.state.member(beat.member)
        target = dict(group.machine.shares(group.state)).get(beat.member, ())
        kept = () if member is None or not beat.epoch else tuple(each for each in member.assigned if each in target)
        reply = group.heartbeat(beat.member, beat.epoch, None if beat.topics is None else {*beat.topics}, kept)
        if isinstance(reply, Rejected):
            return HeartbeatAnswer(Error[reply.error], member=beat.member)
        interval_ms = self.groups.settings.consumer_heartbeat_ms
        return HeartbeatAnswer(0, None, beat.member, reply.epoch, interval_ms, reply.assignment)

    # Records

    def _in_session(self, then: InSession, request: Received, answer: Answer) -> None:
        """Acknowledges, and answers as ``then`` does, which is given no session if the request ends it."""
        session = self._session(request)
        if isinstance(session, Error):
            return answer({"errorCode": session})
        errors = self._acknowledge(request)
        ends = request.body["shareSessionEpoch"] == LEAVING
        if ends:
            self._close(request)
        then(request, None if ends else session, errors, answer)

    def _fetch(self, request: Received, session: Session | None, errors: Mapping[Key, int], answer: Answer) -> None:
        """Answers at once if there is anything to report, else a little later."""
        if session is None:
            return answer(self._fetched(errors, {}))
        found = self._acquire(request, session)
        wait_s = min(request.body["maxWaitMs"] / 1000, WAIT_S)
        if found or errors or not request.body["maxRecords"]:
            return answer(self._fetched(errors, found))
        asyncio.get_running_loop().call_later(
            wait_s, lambda: answer(self._fetched(errors, self._acquire(request, session)))
        )

    def _acknowledged(
        self, request: Received, session: Session | None, errors: Mapping[Key, int], answer: Answer
    ) -> None:
        parts = {key: {"partitionIndex": key[1], "errorCode": code} for key, code in errors.items()}
        answer({"errorCode": 0, "responses": self._listed(parts)})

    def _session(self, request: Received) -> Session | Error:
        """The session of a request, which is begun or goes on. Source: ``SharePartitionManager.newContext``."""
        body, key = request.body, (request.body["memberId"], request.reached)
        epoch = body["shareSessionEpoch"]
        if not epoch:
            if request.api != "ShareFetch":
                return Error.INVALID_SHARE_SESSION_EPOCH
            self._close(request)
            self.sessions[key] = Session()
        session = self.sessions.get(key)
        if session is None:
            return Error.SHARE_SESSION_NOT_FOUND
        if epoch not in (0, LEAVING, session.epoch):
            return Error.INVALID_SHARE_SESSION_EPOCH
        session.epoch += epoch > 0
        if request.api == "ShareFetch":
            session.partitions |= dict.fromkeys(key for key, _ in self._named(body["topics"]))
            for gone, _ in self._named(body["forgottenTopicsData"]):
                session.partitions.pop(gone, None)
        return session

    def _close(self, request: Received) -> None:
        """Ends the session of a member with this node: what it acquired is released."""
        member = request.body["memberId"]
        session = self.sessions.pop((member, request.reached), None)
        for key in session.partitions if session is not None else ():
            if key in self.states:
                self.states[key] = self.machine.closed(self.states[key], member)

    def _named(self, topics: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Key, Any]]:
        """The partitions of topics that there are, each with its entry."""
        for each in topics:
            topic = self.topics.by_id.get(each["topicId"])
            if topic is None:
                continue
            for part in each["partitions"]:
                yield (topic.name, part["partitionIndex"] if isinstance(part, Mapping) else part), part

    def _acknowledge(self, request: Received) -> dict[Key, int]:
        """The error of each partition with acknowledgements."""
        found: dict[Key, int] = {}
        for key, part in self._named(request.body["topics"]):
            for batch in part["acknowledgementBatches"]:
                error = self._acknowledge_batch(key, request.body["memberId"], batch)
                found[key] = found.get(key) or error
        return found

    def _acknowledge_batch(self, key: Key, member: str, batch: Mapping[str, Any]) -> int:
        first, last, types = batch["firstOffset"], batch["lastOffset"], batch["acknowledgeTypes"]
        ranges = [(first, last, types[0])] if len(types) == 1 else [
            (first + place, first + place, kind) for place, kind in enumerate(types)
        ]  # fmt: skip
        state = self.states.get(key, State())
        for start, end, kind in ranges:
            wanted = ops.Acknowledge(member, Says.STAY, NAMES.get(kind, "unknown"), start, end)
            state, refused = self.machine.acknowledged(state, wanted)
            if refused is not None:
                return Error[refused]
        self.states[key] = state
        return 0

    def _acquire(self, request: Received, session: Session) -> dict[Key, dict[str, Any]]:
        """The partitions with records that the member acquires, and those that this node does not lead."""
        found: dict[Key, dict[str, Any]] = {}
        for key in session.partitions:
            topic = self.topics.by_name.get(key[0])
            if topic is None:
                continue
            if error := self.error(request, topic, key[1], {}):
                found[key] = {"partitionIndex": key[1], "errorCode": error, "records": b"", "acquiredRecords": []}
                continue
            log = topic.log_of(key[1])
            state = self.states.get(key, State(reset="earliest"))._replace(end=log.end)
            fetch = ops.Fetch(request.body["memberId"], Says.STAY, most=min(MOST, request.body["maxRecords"]))
            self.states[key], acquired = self.machine.fetched(state, fetch)
            if acquired:
                first, last = acquired[0][0], acquired[-1][1]
                found[key] = {
                    "partitionIndex": key[1], "errorCode": 0,
                    "records": b"".join(log.batches[log.place(first) : log.place(last) + 1]),
                    "acquiredRecords": [
                        {"firstOffset": start, "lastOffset": end, "deliveryCount": times}
                        for start, end, times in acquired
                    ],
                }  # fmt: skip
        return found

    def _fetched(self, acknowledged: Mapping[Key, int], found: Mapping[Key, Mapping[str, Any]]) -> dict[str, Any]:
        nothing = {"errorCode": 0, "records": b"", "acquiredRecords": []}
        parts = {
            key: {**nothing, "partitionIndex": key[1], "acknowledgeErrorCode": acknowledged.get(key, 0),
                  **found.get(key, {})}
            for key in {**acknowledged, **found}
        }  # fmt: skip
        return {"errorCode": 0, "acquisitionLockTimeoutMs": LOCK_MS, "responses": self._listed(parts)}

    def _listed(self, parts: Mapping[Key, Mapping[str, Any]]) -> list[dict[str, Any]]:
        topics: dict[str, list[Mapping[str, Any]]] = {}
        for (name, _), part in parts.items():
            topics.setdefault(name, []).append(part)
        return [{"topicId": self.topics.by_name[name].id, "partitions": listed} for name, listed in topics.items()]
