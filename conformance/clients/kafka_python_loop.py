"""Replaces time, event loop and connections of kafka-python 3, for a consumer that never waits and has no sockets.

The loop is the library's own (``NetworkSelector``), driven step by step, with its tasks and futures. The clock changes
only when it is advanced. Requests to the cluster are answered at once; requests to the coordinator are passed to a
callback.
"""

import heapq
import math
import threading
from collections import deque
from collections.abc import Callable
from importlib import import_module
from itertools import count
from types import MethodType, SimpleNamespace
from typing import Any, Final, Self

TIMED: Final = (
    "kafka.cluster", "kafka.consumer.fetcher", "kafka.consumer.group", "kafka.consumer.subscription_state",
    "kafka.coordinator.base", "kafka.coordinator.consumer", "kafka.coordinator.heartbeat", "kafka.net.manager",
    "kafka.net.selector", "kafka.util",
)  # fmt: skip
"""The modules of kafka-python that read the time."""
BEGINNING: Final = 1_000.0
"""Seconds. Its timers treat 0 as no time."""
SLACK: Final = 1e-6
"""Seconds: two sums of seconds that differ by no more than this are the same time."""
OVERSHOOT: Final = 2e-6
"""Seconds by which each wait is prolonged: its sessions end only after more than their time."""
METADATA_RETRY_MS: Final = 30_000
"""How often it requests metadata of a topic that does not exist: its default would give 600 equal answers a minute."""
COORDINATOR: Final = 7
"""The id of the only node, which is both the broker and the coordinator of the group."""
NEVER: Final = -1.0


class Clock:
    """Replaces the module ``time`` in kafka-python."""

    def __init__(self) -> None:
        self.now = BEGINNING

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        raise Stuck(f"a call sleeps for {seconds} s")


class Stuck(RuntimeError):
    """A call of the user waits for something that does not come before it returns."""


class Loop:
    """Drives kafka-python's event loop step by step."""

    def __init__(self, clock: Clock) -> None:
        selector = import_module("kafka.net.selector")
        self.clock = clock
        self._task = selector.Task
        self._serial = count()
        self._ended: Any = None
        self.apart = False
        """Whether a call only starts, and continues while other calls are made."""
        self.net = net = object.__new__(selector.NetworkSelector)
        net.config = {**selector.NetworkSelector.DEFAULT_CONFIG, "slow_task_threshold_secs": 0}
        net._poll_lock, net._poll_owner = threading.Lock(), None
        net._closed, net._exception, net._stop, net._io_thread = False, None, False, None
        net._selector = SimpleNamespace(select=lambda timeout: (), get_map=dict)
        net._scheduled, net._ready, net._pending_tasks, net._current = [], deque(), set(), None
        net._pending_waiters, net._pending_waiters_lock = {}, threading.Lock()
        net.run, net.call_at = self.run, self.call_at
        net.start = net.wakeup = net.close = net._schedule_tasks = lambda: None

    def call_at(self, when: float, task: Any) -> Any:
        """Like its own method, but timers of the same time fire in the order in which they were set."""
        if not isinstance(task, self._task):
            task = self._task(task)
        task.scheduled_at, task.state = when, import_module("kafka.net.selector").TaskState.SCHEDULED
        heapq.heappush(self.net._scheduled, _Timer((when, task), next(self._serial)))
        self.net._pending_tasks.add(task)
        return task

    def run(self, call: Any, *arguments: Any) -> Any:
        """Runs a call of the user. Errors: what the call raises; ``Stuck``."""
        future = self.net.call_soon_with_future(call, *arguments)
        if self.apart:
            self._ended = future
            return None
        while not future.is_done and self._turn():
            pass
        if not future.is_done:
            raise Stuck("a call waits for time to pass")
        if future.exception is not None:
            raise future.exception
        return future.value

    def begin(self, call: Callable[[], object]) -> Any:
        """Starts a call that may last: returns the future of its end, or None if it did not have to wait."""
        self.apart, self._ended = True, None
        try:
            call()
        finally:
            self.apart = False
        return self._ended

    def settle(self) -> None:
        """Runs tasks until none is ready."""
        while self._turn():
            pass

    def elapse(self, seconds: float) -> None:
        end = self.clock.now + seconds + (OVERSHOOT if seconds else 0)
        self.settle()
        while self.net._scheduled and self.net._scheduled[0][0] <= end + SLACK:
            self.clock.now = max(self.clock.now, self.net._scheduled[0][0])
            self.settle()
        self.clock.now = max(self.clock.now, end)

    def _turn(self) -> bool:
        """Runs one round; timers fire only when no task is ready."""
        net = self.net
        if not net._ready:
            if not net._scheduled or net._scheduled[0][0] > self.clock.now + SLACK:
                return False
            when, task = heapq.heappop(net._scheduled)
            # Each timer advances the clock: a rest of an interval below its resolution would set the timer for ever.
            self.clock.now = max(math.nextafter(self.clock.now, math.inf), when)
            task.scheduled_at = None
            net._add_ready_task(task)
        net._poll_once()
        return True

    def end(self) -> None:
        """Ends the process: tasks under way are closed."""
        tasks, self.net._pending_tasks = self.net._pending_tasks, set()
        self.net._scheduled.clear()
        self.net._ready.clear()
        self.net._closed = False
        for task in tasks:
            if not task.is_done:
                task.close()


class _Timer(tuple[float, Any]):
    """A heap entry: equal to a pair, and ordered by the sequence in which timers were set."""

    serial: int

    def __new__(cls, pair: tuple[float, Any], serial: int) -> Self:
        made = super().__new__(cls, pair)
        made.serial = serial
        return made

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        assert isinstance(other, _Timer)
        return (self[0], self.serial) < (other[0], other.serial)


class Wire:
    """Replaces kafka-python's connections (``KafkaConnectionManager``).

    Requests to the coordinator are passed to ``sent``, with the future of their answer.
    """

    def __init__(self, loop: Loop, sent: Callable[[Any, Any], None], **config: Any) -> None:
        manager = import_module("kafka.net.manager").KafkaConnectionManager
        self._future = import_module("kafka.future").Future
        self._errors = import_module("kafka.errors")
        self._messages = Messages()
        self._loop, self._net, self._sent = loop, loop.net, sent
        self.broker_version_data = import_module("kafka.protocol.broker_version_data").BrokerVersionData(
            config["api_version"]
        )
        self.broker_version = self.broker_version_data.broker_version
        self.topics: dict[str, int] = {}
        """Topic -> number of partitions, as the broker reports it."""
        self.gone_till = NEVER
        """Before this time there is no connection to the coordinator."""
        self.found_at = NEVER
        """Before this time the coordinator cannot be found."""
        self.bootstrapped = True
        self.wait_for = MethodType(manager.wait_for, self)
        self.call_soon = self._net.call_soon_with_future
        self.run = loop.run
        self.cluster = import_module("kafka.cluster").ClusterMetadata(
            bootstrap_servers="localhost:9092", retry_backoff_ms=METADATA_RETRY_MS
        )
        self.cluster.attach(self)

    def least_loaded_node(self) -> int:
        return COORDINATOR

    def connection_delay(self, node: object) -> float:
        return max(0.0, self.gone_till - self._loop.clock.now) if str(node).startswith("coordinator") else 0.0

    def update_backoff(self, node: object) -> None:
        raise AssertionError(f"{node} should always be available")

    def reset_backoff(self, node: object) -> None:
        pass

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: float | None = None) -> Any:
        """Sends a request. It does not time out by itself: conversations lose the connection by its deadline."""
        future = self._future()
        if self.connection_delay(node_id) > 0:
            return future.failure(self._errors.NodeNotReadyError(node_id))
        if request.API_VERSION is None:
            request.API_VERSION = self.broker_version_data.api_version(request)
        name, version = type(request).__name__, request.API_VERSION
        match name:
            case "MetadataRequest":
                future.success(on_the_wire(self._messages.metadata(version, request, self.topics)))
            case "FindCoordinatorRequest" if self._loop.clock.now < self.found_at:
                self._net.call_at(self.found_at, lambda: future.success(self._messages.coordinator(version, request)))
            case "FindCoordinatorRequest":
                future.success(self._messages.coordinator(version, request))
            case "OffsetFetchRequest":
                future.success(self._messages.positions(version, request))
            case _:
                self._sent(request, future)
        return future


class Client:
    """Replaces ``KafkaNetClient``."""

    def __init__(self, wire: Wire) -> None:
        self._manager = wire
        self._net = wire._net
        self._lock = threading.RLock()
        self.cluster = wire.cluster
        self.connection_delay = wire.connection_delay

    def is_disconnected(self, node: object) -> bool:
        return self.connection_delay(node) > 0

    def least_loaded_node(self) -> int:
        return COORDINATOR

    def maybe_connect(self, node: object) -> None:
        pass

    def close(self) -> None:
        pass


class Messages:
    """Builds the responses of the broker."""

    def __init__(self) -> None:
        self._metadata = import_module("kafka.protocol.metadata")
        self._consumer = import_module("kafka.protocol.consumer")

    def coordinator(self, version: int, request: Any) -> Any:
        made = self._metadata.FindCoordinatorResponse
        found = {"node_id": COORDINATOR, "host": "localhost", "port": 9092, "error_code": 0, "error_message": None}
        if version < 4:
            return made(version=version, throttle_time_ms=0, **found)
        one = made.Coordinator(version=version, key=request.coordinator_keys[0], **found)
        return made(version=version, throttle_time_ms=0, coordinators=[one])

    def metadata(self, version: int, request: Any, topics: dict[str, int]) -> Any:
        made = self._metadata.MetadataResponse
        asked = [each.name for each in request.topics or ()]
        return made(
            version=version,
            brokers=[made.MetadataResponseBroker(COORDINATOR, "localhost", 9092, None)],
            controller_id=COORDINATOR,
            cluster_id="cluster",
            topics=[self._topic(made, version, name, topics.get(name)) for name in sorted(asked)],
        )

    def _topic(self, made: Any, version: int, name: str, size: int | None) -> Any:
        topic = made.MetadataResponseTopic
        partitions = [
            topic.MetadataResponsePartition(
                version=version, error_code=0, partition_index=index, leader_id=COORDINATOR, leader_epoch=0,
                replica_nodes=[COORDINATOR], isr_nodes=[COORDINATOR], offline_replicas=[],
            )
            for index in range(size or 0)
        ]  # fmt: skip
        code = 0 if size is not None else 3
        return topic(version=version, error_code=code, name=name, is_internal=False, partitions=partitions)

    def positions(self, version: int, request: Any) -> Any:
        """Every partition has the committed offset 0."""
        made = self._consumer.OffsetFetchResponse
        group = made.OffsetFetchResponseGroup if version >= 8 else made
        kind = group.OffsetFetchResponseTopics if version >= 8 else made.OffsetFetchResponseTopic
        part = kind.OffsetFetchResponsePartitions if version >= 8 else kind.OffsetFetchResponsePartition
        answered = [
            kind(
                version=version,
                name=each.name,
                partitions=[
                    part(
                        version=version, partition_index=index, committed_offset=0, committed_leader_epoch=-1,
                        metadata="", error_code=0,
                    )
                    for index in each.partition_indexes
                ],
            )
            for each in (request.groups[0].topics if version >= 8 else request.topics)
        ]  # fmt: skip
        if version < 8:
            return made(version=version, error_code=0, topics=answered)
        one = group(version=version, group_id=request.groups[0].group_id, error_code=0, topics=answered)
        return made(version=version, groups=[one])


def on_the_wire(message: Any) -> Any:
    """The message after encoding and decoding, as its receiver reads it."""
    return type(message).decode(bytes(message.encode()), version=message.version)


def patched(clock: Clock) -> None:
    """Makes kafka-python use that clock in this process, from now on."""
    for name in TIMED:
        module: Any = import_module(name)
        module.time = clock
