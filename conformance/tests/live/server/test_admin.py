"""Administrators and producers of a broker on loopback: topics, settings, ids of producers."""

import socket
from collections.abc import Mapping
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]
from kafka.admin import NewTopic  # type: ignore[import-untyped]

from kipcheck import testing
from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire.framing import decode_response, encode_request, frame, unframe


def asked(broker: testing.Broker, name: str, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
    host, port = broker.address.split(":")
    with socket.create_connection((host, int(port)), 5) as client:
        client.sendall(frame(encode_request("apache", f"{name}Request", version, 7, "me", body)))
        payload, rest = unframe(client.recv(100_000))
        assert not rest
        return decode_response(payload, "apache", f"{name}Response", version).body


@for_each([NEWEST, "2.0.1"])
def test_a_test_creates_a_topic_writes_to_it_reads_it_and_deletes_it(release: str) -> None:
    with testing.broker(release=release) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.address)
        admin.create_topics([NewTopic("orders", 2, 1)])
        producer = KafkaProducer(bootstrap_servers=broker.address)
        producer.send("orders", b"one", partition=1).get(5)
        producer.close()
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=broker.address, group_id="g", auto_offset_reset="earliest"
        )  # fmt: skip
        found: dict[Any, list[Any]] = {}
        while not found:
            found = consumer.poll(500)
        assert [(each.partition, each.value) for read in found.values() for each in read] == [(1, b"one")]
        assert [each["group_id"] for each in admin.list_groups()] == ["g"]
        assert admin.describe_groups(["g"])["g"]["group_state"] == "Stable"
        consumer.close()
        admin.delete_topics(["orders"])
        admin.close()
        broker.expect("InitProducerId", error="NONE")
        broker.expect("DeleteTopics", error="NONE")


def topic(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": replicas,
        "assignments": [],
        "configs": [],
    } | more


def test_topics_are_created_and_deleted_or_refused() -> None:
    with testing.broker() as broker:
        wanted = [
            (topic("a", -1, -1), 0), (topic("b", 5), 0), (topic("t"), Error.TOPIC_ALREADY_EXISTS),
            (topic("a b"), Error.INVALID_TOPIC_EXCEPTION), (topic("c", 0), Error.INVALID_PARTITIONS),
            (topic("d", 1, 3), Error.INVALID_REPLICATION_FACTOR),
            (topic("e", -1, -1, assignments=[{"partitionIndex": each, "brokerIds": [1]} for each in range(2)]), 0),
            (topic("f"), Error.INVALID_REQUEST), (topic("f"), Error.INVALID_REQUEST),
        ]  # fmt: skip
        body = {"topics": [each for each, _ in wanted], "timeoutMs": 1000, "validateOnly": False}
        made = asked(broker, "CreateTopics", 7, body)["topics"]
        assert [each["errorCode"] for each in made] == [error for _, error in wanted]
        assert [each["numPartitions"] for each in made if not each["errorCode"]] == [1, 5, 2]
        checked = asked(broker, "CreateTopics", 4, {**body, "topics": [topic("g")], "validateOnly": True})["topics"]
        assert checked[0]["errorCode"] == 0
        assert asked(broker, "CreateTopics", 2, {**body, "topics": [topic("h", -1)]})["topics"][0]["errorCode"] == 37
        ids: dict[str, Any] = {
            "topics": [{"name": None, "topicId": made[0]["topicId"]}, {"name": "b"}, {"name": "g"}],
            "timeoutMs": 1,
        }
        gone = asked(broker, "DeleteTopics", 6, ids)["responses"]
        assert [(each["name"], each["errorCode"]) for each in gone] == [("a", 0), ("b", 0), ("g", 3)]
        again = asked(broker, "DeleteTopics", 6, {**ids, "topics": ids["topics"][:1]})["responses"]
        assert [(each["name"], each["errorCode"]) for each in again] == [(None, Error.UNKNOWN_TOPIC_ID)]
        old = asked(broker, "DeleteTopics", 1, {"topicNames": ["e", "f"], "timeoutMs": 1})["responses"]
        assert [each["errorCode"] for each in old] == [0, Error.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("name", ["AlterConfigs", "IncrementalAlterConfigs"])
def test_settings_are_accepted_or_refused(name: str) -> None:
    setting = {"name": "retention.ms", "value": "1", "configOperation": 0}
    interval = {"name": "consumer.session.timeout.ms", "value": "1", "configOperation": 0}
    with testing.broker() as broker:
        wanted = [
            (2, "t", setting, 0), (2, "no", setting, Error.UNKNOWN_TOPIC_OR_PARTITION), (4, "", setting, 0),
            (32, "g", interval, 0), (32, "g", setting, Error.INVALID_CONFIG), (16, "", setting, Error.INVALID_REQUEST),
        ]  # fmt: skip
        resources: list[dict[str, Any]] = [
            {"resourceType": type, "resourceName": of, "configs": [each]} for type, of, each, _ in wanted
        ]
        if name == "AlterConfigs":
            resources = [
                {**each, "configs": [{key: config[key] for key in ("name", "value")} for config in each["configs"]]}
                for each in resources
            ]
        found = asked(broker, name, 1, {"resources": resources, "validateOnly": False})["responses"]
        assert [each["errorCode"] for each in found] == [error for *_, error in wanted]


def test_producers_get_ids_of_their_own_and_no_transactions() -> None:
    with testing.broker() as broker:
        body = {"transactionalId": None, "transactionTimeoutMs": 1}
        one, other = (asked(broker, "InitProducerId", 4, body) for _ in range(2))
        assert one["producerId"] != other["producerId"] and not one["errorCode"]
        refused = asked(broker, "InitProducerId", 4, {**body, "transactionalId": "mine"})
        assert (refused["errorCode"], refused["producerId"]) == (Error.COORDINATOR_NOT_AVAILABLE, -1)
