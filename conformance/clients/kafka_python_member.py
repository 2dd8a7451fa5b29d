"""Adapts the consumer of kafka-python 3 as a member of a classic group: its KafkaConsumer, called as a user calls it.

Its event loop, coordinator, subscriptions and assignors run as released; only its fetcher is replaced, by an idle one.
The operations play the coordinator of its group. A SyncGroup response, and a failed JoinGroup response, are read in the
next poll if no time passes and no other operation comes before it, else before that operation: the consumer's loop is a
thread of its own, which does not wait for the user.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

from kipcheck.conformance.clients.assignor_adapter import EAGER
from kipcheck.conformance.clients.kafka_python_loop import BEGINNING, Client, Clock, Loop, Wire, on_the_wire, patched
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.member.model.client import BACKOFF_MS, HEARTBEAT_MS, POLL_MS, SESSION_MS
from kipcheck.conformance.protocols.member.model.messages import COMMIT_FAILED, ILLEGAL_STATE
from kipcheck.conformance.protocols.member.ops import INCREMENTAL
from kipcheck.conformance.targets.error_mapping import class_name, rejected

BROKER: Final = (4, 3)
"""The newest release whose versions it knows: in it JoinGroup goes up to 7, SyncGroup to 5, and so on."""
ENDLESS_MS: Final = 2**31
KINDS: Final = {
    "JoinGroupRequest": "joined",
    "SyncGroupRequest": "synced",
    "HeartbeatRequest": "beat",
    "OffsetCommitRequest": "committed",
}
"""Request class -> the answer to it, as operations name it."""
ELSEWHERE: Final = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
OPENED: Final[Mapping[str, Any]] = {"assignors": ("range",), "topics": (), "instance": None, "rack": None}
"""Defaults of fields that an operation leaves out."""
Row = dict[str, Any]


class KafkaPythonMember:
    """Answers the operations of one case after another.

    ``skips`` is the name of the limit for leaders that are to skip the assignment, ``why`` its sentence.
    """

    def __init__(self, skips: str, why: str) -> None:
        self._skips = {"status": "unsupported", "capability": skips, "message": why}
        self.clock = Clock()
        patched(self.clock)
        logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
        self._library = Library()
        self._case: object = None
        self._process: Process | None = None

    def answer(self, op: Mapping[str, Any], /) -> Row:
        if op.get("case") != self._case:
            self._case = op.get("case")
            self._end()
            self.clock.now = BEGINNING
        if op["op"] == "member-open":
            self._end()
            op = {**OPENED, **op}
            self._process = Process(self._library, self.clock, op["topics"])
            try:
                self._process.open(op)
            except self._library.errors.KafkaError as rejection:
                self._end()
                return rejected(rejection)
            return self._process.result()
        if op.get("skip_assignment"):
            return {**self._skips}
        if self._process is None:
            if op["op"] == "member-elapse":
                self.clock.now += op["ms"] / 1000
            return {"status": "accepted", "actions": []}
        self._process.apply(op)
        values = self._process.result()
        if op["op"] == "member-close":
            self._end()
        return values

    def _end(self) -> None:
        if self._process is not None:
            self._process.loop.end()
        self._process = None


class Library:
    """The classes of kafka-python that are used here."""

    def __init__(self) -> None:
        self.errors = import_module("kafka.errors")
        self.group = import_module("kafka.protocol.consumer")
        self.records = import_module("kafka.protocol.consumer.metadata")
        self.structs = import_module("kafka.structs")
        self.consumer = import_module("kafka.consumer.group").KafkaConsumer
        self.listener = import_module("kafka.consumer.subscription_state").ConsumerRebalanceListener

    @cached_property
    def assignors(self) -> dict[str, Any]:
        found = {
            name: getattr(import_module(f"kafka.coordinator.assignors.{module}"), kind)
            for name, (module, kind) in EAGER.items()
        }
        own = import_module("kafka.coordinator.assignors.cooperative_sticky").CooperativeStickyAssignor
        found["cooperative-sticky"] = own
        deals = found["roundrobin"]()
        found[INCREMENTAL] = type(
            "Incremental", (own,), {"name": INCREMENTAL, "assign": lambda self, *values: deals.assign(*values)}
        )
        return found

    def rebalance_listener(self, record: Callable[[str, Iterable[Any]], None]) -> Any:
        """A rebalance listener that reports the user's callbacks."""
        return type(
            "Listener",
            (self.listener,),
            {
                "on_partitions_revoked": lambda self, partitions: record("revoked", partitions),
                "on_partitions_lost": lambda self, partitions: record("lost", partitions),
                "on_partitions_assigned": lambda self, partitions: record("assigned", partitions),
            },
        )()

    def error(self, raised: BaseException) -> str:
        """The protocol's name of an error; what is neither a response's error nor a failed commit is an illegal state.

        The class of the exception is reported beside it, and distinguishes those.
        """
        if isinstance(raised, self.errors.CommitFailedError):
            return COMMIT_FAILED
        if isinstance(raised, self.errors.BrokerResponseError):
            known = {each.value: each.name for each in Error}
            return known.get(raised.errno, str(raised.message))
        return ILLEGAL_STATE

    # Metadata and assignments

    def subscription(self, assignor: str, values: Mapping[str, Any]) -> bytes:
        """The subscription as one of its own members would write it, in the given version."""
        data = b""
        if assignor == "sticky" and (values["data"] or values["data_generation"] >= 0):
            owned = [self.structs.TopicPartition(*each) for each in values["data"]]
            data = self.assignors["sticky"]._metadata(values["topics"], owned, values["data_generation"]).user_data
        made = self.records.ConsumerProtocolSubscription
        written = made(
            version=min(values["version"], made.max_version),
            topics=list(values["topics"]),
            user_data=data,
            owned_partitions=[made.TopicPartition(*each) for each in by_topic(values["owned"])],
            generation_id=values["generation"],
            rack_id=values["rack"],
        )
        return bytes(written.encode())

    def read_subscription(self, assignor: str, data: bytes) -> Row:
        read = self.records.ConsumerProtocolSubscription.decode(data)
        owned = [(each.topic, index) for each in read.owned_partitions or () for index in each.partitions]
        row = {
            "topics": sorted(read.topics),
            "version": read.version,
            "owned": partitions(owned),
            "generation": read.generation_id if read.version >= 2 else -1,
            "rack": read.rack_id if read.version >= 3 else None,
        }
        if assignor == "sticky" and read.user_data:
            remembered = self.assignors["sticky"].parse_member_metadata(read)
            row.update(data=partitions(remembered.partitions), data_generation=remembered.generation)
        return row

    def assignment(self, values: Any) -> bytes:
        if values == "":
            return b""
        made = self.records.ConsumerProtocolAssignment
        return bytes(made(0, by_topic(values["partitions"]), b"").encode())

    def read_assignment(self, data: bytes) -> Row:
        return {"partitions": partitions(self.records.ConsumerProtocolAssignment.decode(data).partitions())}


class Process:
    """One consumer process."""

    def __init__(self, library: Library, clock: Clock, topics: Iterable[tuple[str, int]]) -> None:
        self.library = library
        self.loop = Loop(clock)
        self._wire = Wire(self.loop, self._sent, api_version=BROKER)
        self._wire.topics = {name: size for name, size in topics}
        self._consumer: Any = None
        self._listener = library.rebalance_listener(
            lambda kind, given: self._record(kind, partitions=partitions(given))
        )
        self._done: list[Row] = []
        self._under_way: dict[str, tuple[Any, Any]] = {}
        self._unread_answer: Callable[[], object] | None = None
        """Delivers a response that was received and not read yet."""
        self._commits = False

    def result(self) -> Row:
        done, self._done = self._done, []
        return {"status": "accepted", "actions": done}

    def _record(self, action: str, **found: Any) -> None:
        self._done.append({"action": action, **found})

    # The user

    def open(self, op: Mapping[str, Any]) -> None:
        """Errors: KafkaError, where the consumer refuses its configuration."""
        self._consumer = self.library.consumer(
            kafka_client=lambda **config: Client(self._wire),
            metrics_enabled=False,
            api_version=BROKER,
            group_id="g",
            group_instance_id=op["instance"],
            client_rack=op["rack"] or "",
            partition_assignment_strategy=[self.library.assignors[each] for each in op["assignors"]],
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=POLL_MS,
            retry_backoff_ms=BACKOFF_MS,
            enable_auto_commit=False,
        )
        self._consumer._fetcher = SimpleNamespace(
            reset_offsets_if_needed=_nothing,
            maybe_validate_positions=_nothing,
            validate_offsets_if_needed=_nothing,
            fetch_records=lambda *_, **__: ({}, True),
        )
        self._consumer._coordinator.lookup_coordinator()
        self._settle()

    def apply(self, op: Mapping[str, Any]) -> None:
        verb = op["op"]
        if verb == "member-told" and op["answer"] not in self._under_way:
            return  # There is no request: nothing happens, and nothing comes between a response and the next poll.
        unread, self._unread_answer = self._unread_answer, None
        if unread is not None:
            # As a timer: timers fire once the poll waits for the response.
            self.loop.net.call_at(self.loop.clock.now, unread)
            if verb != "member-poll":
                self._settle()
        match verb:
            case "member-subscribe":
                self._consumer.subscribe(topics=list(op["topics"]), listener=self._listener)
            case "member-unsubscribe":
                self._consumer.unsubscribe()
            case "member-poll":
                self._poll()
            case "member-commit":
                self._commit(op["offsets"])
            case "member-close":
                self._consumer.close(timeout_ms=0)
            case "member-metadata":
                self._wire.topics = {name: size for name, size in op["topics"]}
                self.loop.net.call_soon_with_future(self._wire.cluster.refresh_metadata)
            case "member-disconnected":
                self._disconnected()
            case "member-elapse":
                self.loop.elapse(op["ms"] / 1000)
            case "member-told":
                self._receive(op)
        self._settle()

    def _settle(self) -> None:
        """Answers metadata requests in the step in which they are sent."""
        self.loop.settle()
        if self._wire.cluster.need_update:
            self.loop.net.call_soon_with_future(self._wire.cluster.refresh_metadata)
            self.loop.settle()

    def _search_coordinator(self) -> None:
        """Looks for the coordinator at once, polled or not, and finds it after a back-off."""
        self._wire.found_at = self.loop.clock.now + BACKOFF_MS / 1000
        self.loop.net.call_at(self._wire.found_at, self._look)

    def _look(self) -> None:
        if self._consumer._coordinator.coordinator_unknown():
            self._consumer._coordinator.lookup_coordinator()

    def _poll(self) -> None:
        try:
            self._consumer.poll(timeout_ms=0)
        except Exception as raised:  # noqa: BLE001 - an exception that the user gets
            self._record("raised", error=self.library.error(raised), exception=class_name(raised))
            return
        state = self._consumer._subscription.assignment.items()
        self._record("reads", partitions=partitions(each for each, at in state if not at._pending_revocation))

    def _commit(self, offsets: Iterable[tuple[str, int, int]]) -> None:
        """Starts a blocking commit, which is retried until its outcome is known: no other call is made before that."""
        if self._commits:
            return
        self._commits = True
        structs = self.library.structs
        wanted = {structs.TopicPartition(topic, at): structs.OffsetAndMetadata(to, "", -1) for topic, at, to in offsets}
        try:
            future = self.loop.begin(lambda: self._consumer.commit(wanted, timeout_ms=ENDLESS_MS))
        except Exception as raised:  # noqa: BLE001 - an exception that the user gets
            self._committed(raised)
            return
        future.add_callback(lambda _: self._committed(None))
        future.add_errback(self._committed)

    def _committed(self, raised: BaseException | None) -> None:
        self._commits = False
        if raised is None:
            self._record("commit-ended", error="NONE")
        else:
            self._record("commit-ended", error=self.library.error(raised), exception=class_name(raised))

    # Requests

    def _sent(self, request: Any, future: Any) -> None:
        """Records a request, decoded from its encoded form."""
        name, version = type(request).__name__, request.API_VERSION
        read = on_the_wire(request)
        who = {"version": version, "member": read.member_id, "instance": getattr(read, "group_instance_id", None)}
        match name:
            case "JoinGroupRequest":
                protocols = [
                    [each.name, self.library.read_subscription(each.name, each.metadata)] for each in read.protocols
                ]
                self._record(
                    "join", **who, protocol_type=read.protocol_type, protocols=protocols,
                    session_ms=read.session_timeout_ms, rebalance_ms=read.rebalance_timeout_ms, protocol_version=None,
                )  # fmt: skip
            case "SyncGroupRequest":
                given = sorted((each.member_id, each.assignment) for each in read.assignments)
                self._record(
                    "sync", **who, generation=read.generation_id,
                    assignments=[[id, self.library.read_assignment(data)] for id, data in given],
                    protocol_type=read.protocol_type, protocol=read.protocol_name,
                )  # fmt: skip
            case "HeartbeatRequest":
                self._record("heartbeat", **who, generation=read.generation_id)
            case "LeaveGroupRequest":
                self._record(
                    "leave",
                    version=version,
                    members=[[each.member_id, each.group_instance_id] for each in read.members],
                )
                # The user would wait for the response, which is only logged and changes nothing.
                future.failure(self.library.errors.KafkaTimeoutError())
                return
            case "OffsetCommitRequest":
                offsets = [[t.name, p.partition_index, p.committed_offset] for t in read.topics for p in t.partitions]
                self._record("commit", **who, generation=read.generation_id_or_member_epoch, offsets=offsets)
            case _:
                raise AssertionError(f"no answer is defined for {name}")
        self._under_way[KINDS[name]] = request, future

    # The coordinator

    def _receive(self, op: Mapping[str, Any]) -> None:
        kind, error = op["answer"], op.get("error", "NONE")
        request, future = self._under_way.pop(kind)
        if error in ELSEWHERE:
            self._search_coordinator()
        response = self._response(kind, request, op, Error[error].value)
        if kind == "synced" or (kind == "joined" and error != "NONE"):
            self._unread_answer = lambda: future.success(response)
        else:
            future.success(response)

    def _response(self, kind: str, request: Any, op: Mapping[str, Any], code: int) -> Any:
        group, version = self.library.group, request.API_VERSION
        usual = {"version": version, "throttle_time_ms": 0, "error_code": code}
        match kind:
            case "joined":
                made = group.JoinGroupResponse
                protocol = op.get("protocol")
                members = [
                    made.JoinGroupResponseMember(
                        version=version, member_id=id, group_instance_id=instance,
                        metadata=self.library.subscription(protocol or "", {**BARE, **values}),
                    )
                    for id, instance, values in op.get("members", ())
                ]  # fmt: skip
                response = made(
                    **usual, generation_id=op.get("generation", -1), protocol_type=op.get("protocol_type"),
                    protocol_name=protocol, leader=op.get("leader", ""), member_id=op.get("member", ""),
                    members=members,
                )  # fmt: skip
            case "synced":
                response = group.SyncGroupResponse(
                    **usual, protocol_type=op.get("protocol_type"), protocol_name=op.get("protocol"),
                    assignment=self.library.assignment(op.get("assignment", "")),
                )  # fmt: skip
            case "beat":
                response = group.HeartbeatResponse(**usual)
            case _:
                topic = group.OffsetCommitResponse.OffsetCommitResponseTopic
                response = group.OffsetCommitResponse(
                    version=version,
                    throttle_time_ms=0,
                    topics=[
                        topic(
                            version=version,
                            name=each.name,
                            partitions=[
                                topic.OffsetCommitResponsePartition(
                                    version=version, partition_index=part.partition_index, error_code=code
                                )
                                for part in each.partitions
                            ],
                        )
                        for each in request.topics
                    ],
                )
        return on_the_wire(response)

    def _disconnected(self) -> None:
        gone, self._under_way = self._under_way, {}
        self._search_coordinator()
        self._wire.gone_till = self._wire.found_at
        for _, future in gone.values():
            future.failure(self.library.errors.KafkaConnectionError("the connection was lost"))


BARE: Final[Row] = {"owned": (), "generation": -1, "rack": None, "data": (), "data_generation": -1, "version": 1}
"""Defaults of a member's subscription."""


def _nothing() -> None:
    """Does nothing, for a fetcher that has nothing to do."""


def by_topic(values: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for topic, index in values:
        found.setdefault(topic, []).append(index)
    return list(found.items())


def partitions(found: Iterable[Any]) -> list[list[Any]]:
    return sorted([topic, index] for topic, index in found)
