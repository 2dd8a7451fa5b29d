"""What scripts do to topics: fetch sessions, leaders, records, topics that come and go, and nodes that lag."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.recording.fetch_sessions import ObservedSessions
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.topics import one_record
from kipcheck.conformance.tests.live.client.test_scripted import Sent, commit, committed
from kipcheck.conformance.wire.record_batches import decode


@pytest.fixture
def send() -> Iterator[Sent]:
    found = Sent()
    with found.runner:
        found.broker.nodes = found.nodes
        yield found
        found.script("close")


def fetch(send: Sent, offsets: Mapping[int, int], id: int = 0, epoch: int = -1, node: int = 0, **more: Any) -> Any:
    """A Fetch of partitions of t. ``version``, ``leader``: its version, and the epoch of the leader that it names."""
    version, leader = more.pop("version", 12), more.pop("leader", -1)
    parts = [
        {"partition": number, "currentLeaderEpoch": leader, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
        for number, offset in offsets.items()
    ]  # fmt: skip
    about: dict[str, Any] = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1 << 20, "sessionId": id, "sessionEpoch": epoch,
                             "topics": [{"topic": "t", "partitions": parts}] if parts else [],
                             "forgottenTopicsData": []}  # fmt: skip
    return send("Fetch", version, node, **about | more)


def shown(answer: Mapping[str, Any]) -> dict[int, tuple[int, int]]:
    """The error and the offset after the last record of each partition that an answer names."""
    found = {}
    for topic in answer["responses"]:
        for part in topic["partitions"]:
            batches = decode(part["records"]) if part["records"] else ()
            found[part["partitionIndex"]] = (part["errorCode"], batches[-1].last_offset + 1 if batches else -1)
    return found


def test_a_session_names_only_what_changed(send: Sent) -> None:
    first = fetch(send, {0: 0, 1: 10}, epoch=0)
    id = first["sessionId"]
    assert id > 0 and shown(first) == {0: (0, 10), 1: (0, -1)}
    assert shown(fetch(send, {0: 10}, id, 1)) == {}
    send.broker.topics.grow("t")
    assert shown(fetch(send, {}, id, 2)) == {0: (0, 11), 1: (0, 11)}
    forgotten = [{"topic": "t", "partitions": [0]}]
    assert shown(fetch(send, {1: 10, 2: 9}, id, 3, forgottenTopicsData=forgotten)) == {1: (0, 11), 2: (0, 11)}
    wrong = fetch(send, {}, id, 3)
    assert (wrong["errorCode"], wrong["sessionId"], wrong["responses"]) == (71, 0, [])
    assert fetch(send, {}, id, 4, node=1)["errorCode"] == 70  # each node has its own
    assert fetch(send, {0: 0}, id, -1)["sessionId"] == 0
    assert fetch(send, {}, id, 4)["errorCode"] == 70


def test_an_error_of_a_script_is_that_of_every_partition_of_a_session(send: Sent) -> None:
    id = fetch(send, {0: 10, 1: 10}, epoch=0)["sessionId"]
    send.script("fail_next", "Fetch", "NOT_LEADER_OR_FOLLOWER")
    assert shown(fetch(send, {}, id, 1)) == {0: (6, -1), 1: (6, -1)}
    assert shown(fetch(send, {}, id, 2)).keys() == {0, 1}  # they are well again, which is news
    send.script("fail_next", "Fetch", "FETCH_SESSION_ID_NOT_FOUND")
    assert fetch(send, {}, epoch=0)["errorCode"] == 0  # that cannot be said of a session that begins
    assert fetch(send, {}, id, 3)["errorCode"] == 70
    assert fetch(send, {}, id, 4)["errorCode"] == 70


def test_what_is_recorded_of_a_fetch_of_a_session_has_all_its_partitions() -> None:
    sessions = ObservedSessions()

    def request(epoch: int, offsets: Mapping[int, int], *forgotten: int) -> Received:
        parts = [{"partition": number, "fetchOffset": offset} for number, offset in offsets.items()]
        body = {"sessionId": 5, "sessionEpoch": epoch, "topics": [{"topic": "t", "partitions": parts}],
                "forgottenTopicsData": [{"topic": "t", "partitions": list(forgotten)}]}  # fmt: skip
        return Received("FetchRequest", 12, 1, None, body, 1, "", 0.0)

    unobserved = request(1, {0: 1})
    assert sessions.whole(unobserved) is unobserved
    sessions.answered(request(0, {0: 0, 1: 1}), {"sessionId": 5})
    whole = sessions.whole(request(1, {1: 7, 3: 3}, 0)).body
    assert whole["sessionEpoch"] == -1 and not whole["forgottenTopicsData"]
    (topic,) = whole["topics"]
    assert [(each["partition"], each["fetchOffset"]) for each in topic["partitions"]] == [(1, 7), (3, 3)]


@pytest.mark.parametrize(("leader", "first", "second"), [(-1, 6, 0), (0, 74, 74), (1, 6, 0), (2, 75, 75)])
def test_a_fetch_names_the_epoch_that_it_knows(send: Sent, leader: int, first: int, second: int) -> None:
    elect(send, (0,))
    assert shown(fetch(send, {0: 10}, leader=leader))[0][0] == first
    assert shown(fetch(send, {0: 10}, node=1, leader=leader))[0][0] == second


def elect(send: Sent, partitions: tuple[int, ...] = (), ms: int = 0) -> None:
    async def call() -> None:
        send.broker.logs.elect(partitions, 2, ms)

    send.runner.run(call())


def leaders(send: Sent) -> list[tuple[int, int, int]]:
    topic = next(each for each in send("Metadata", 12, topics=None)["topics"] if each["name"] == "t")
    return [(part["errorCode"], part["leaderId"], part["leaderEpoch"]) for part in topic["partitions"]]


def test_a_partition_without_a_leader_has_one_later(send: Sent) -> None:
    elect(send, (1,), ms=1)
    assert leaders(send)[:2] == [(0, 1, 0), (5, -1, 1)]
    while leaders(send)[1] != (0, 2, 2):
        pass


def test_an_epoch_ends_where_the_next_leader_wrote_first(send: Sent) -> None:
    elect(send, (0,))
    send.broker.topics.grow("t")

    def end(epoch: int) -> tuple[int, int]:
        asked = [{"partition": 0, "currentLeaderEpoch": 1, "leaderEpoch": epoch}]
        answer = send("OffsetForLeaderEpoch", 4, 1, replicaId=-1, topics=[{"topic": "t", "partitions": asked}])
        (part,) = answer["topics"][0]["partitions"]
        return part["leaderEpoch"], part["endOffset"]

    assert [end(epoch) for epoch in (0, 1, 2)] == [(0, 10), (1, 11), (-1, -1)]


def test_a_node_that_lags_knows_neither_others_nor_topics_nor_the_newest_leaders(send: Sent) -> None:
    elect(send)
    send.script("lag", "leader", 10_000)
    assert {each[1:] for each in leaders(send)} == {(1, 0)}
    send.script("lag", "node", 10_000)
    answer = send("Metadata", 12, 1, topics=None)
    assert [node["nodeId"] for node in answer["brokers"]] == [2]
    id = send.broker.topics.by_name["t"].id
    send.script("lag", "topic", 10_000)
    by_name, by_id, every = (
        send("Metadata", 12, topics=asked)["topics"]
        for asked in ([{"name": "t", "topicId": None}], [{"name": None, "topicId": id}], None)
    )
    assert [(each["errorCode"], each["name"]) for each in (*by_name, *by_id)] == [(3, "t"), (100, None)] and not every
    send.broker.logs.lag("topic", 0)
    send("Metadata", 12, topics=None)
    assert send("Metadata", 12, topics=None)["topics"]


@pytest.mark.parametrize(
    ("kind", "offsets", "end"),
    [("batch", [*range(10, 16)], 16), ("gap", [10, 11, 13, 19, 20], 21), ("empty", [15], 16),
     ("control", [*range(10, 17)], 17), ("aborted", [*range(10, 17)], 17), ("marker", [*range(10, 16)], 16)],
)  # fmt: skip
def test_records_of_each_kind(send: Sent, kind: str, offsets: list[int], end: int) -> None:
    send.broker.logs.write(kind)  # type: ignore[arg-type]
    (part,) = fetch(send, {0: 10}, isolationLevel=1)["responses"][0]["partitions"]
    batches = decode(part["records"])
    assert [record.offset for batch in batches for record in batch.records] == offsets
    assert part["highWatermark"] == batches[-1].last_offset + 1 == end
    aborted = [{"producerId": 77, "firstOffset": 10}] if kind == "aborted" else []
    assert part["abortedTransactions"] == aborted
    assert fetch(send, {0: 10})["responses"][0]["partitions"][0]["abortedTransactions"] is None


def test_records_have_a_time_of_these_days() -> None:
    """samsa 0.1.8 reads what follows a partition's records as a batch; zeros in place of the upper half of a time are
    the number of its records, so that it succeeds."""
    assert all(each.timestamp >= 1 << 32 for batch in decode(one_record("t", 0)) for each in batch.records)


def test_markers_have_no_older_format(send: Sent) -> None:
    send.broker.logs.write("control")
    (part,) = fetch(send, {0: 15}, version=2)["responses"][0]["partitions"]
    assert part["errorCode"] == 0 and part["records"]


def test_what_retention_deleted_is_out_of_range(send: Sent) -> None:
    assert send.broker.logs.trim(2)["t-3"] == 8
    assert shown(fetch(send, {0: 7, 1: 8})) == {0: (1, -1), 1: (0, 10)}
    asked = [{"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": -2}]
    (topic,) = send("ListOffsets", 5, topics=[{"name": "t", "partitions": asked}])["topics"]
    assert topic["partitions"][0]["offset"] == 8
    assert send.broker.logs.trim(0)["t-3"] == 10 and shown(fetch(send, {0: 10})) == {0: (0, -1)}
    send.broker.topics.grow("t")
    assert shown(fetch(send, {0: 10})) == {0: (0, 11)}


def test_a_topic_that_is_deleted_takes_its_offsets_along(send: Sent) -> None:
    joined = send.stable()
    before = send.broker.topics.by_name["t"].id
    assert commit(send, joined, 9) == [0, 3] and committed(send)[0] == 9
    assert send.broker.logs.delete("t") and not send.broker.logs.delete("t")
    assert shown(fetch(send, {0: 9})) == {0: (KafkaError.UNKNOWN_TOPIC_OR_PARTITION, -1)}
    assert committed(send)[0] == -1 and commit(send, joined, 9) == [3, 3]
    assert send.broker.logs.create("t") and not send.broker.logs.create("t")
    assert send.broker.topics.by_name["t"].id != before and committed(send)[0] == -1
    assert shown(fetch(send, {0: 0})) == {0: (0, 10)}
