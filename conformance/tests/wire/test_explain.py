"""Every byte has a row, and every field a meaning."""

import json
import random
from collections.abc import Iterator

from kipcheck.conformance.core.values.edition import EDITIONS, edition
from kipcheck.conformance.tests.support.draws import damaged, value
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.describe import _meanings, describe, laid_out, meaning, name_of
from kipcheck.conformance.wire.explain import Explained, as_json, explain, text
from kipcheck.conformance.wire.schema import Layout, messages, spec

JOIN_6 = layout("apache", "JoinGroupRequest", 6)
PROTOCOLS = [{"name": "range", "metadata": b"\1\2"}, {"name": "x", "metadata": b"y" * 300}]
DATA = JOIN_6.encode({"groupId": "g", "protocols": PROTOCOLS, "_unknownTaggedFields": [{"tag": 7, "data": b"zz"}]})


def every_layout() -> Iterator[Layout]:
    for name in EDITIONS:
        for message in messages(edition(name)):
            yield from spec(edition(name), message)
    yield layout("apache", "SubscriptionInfo", 99)


def check_tiles(explained: Explained) -> None:
    at = 0
    for row in explained.rows:
        assert row.offset == at and row.size > 0 and 0 <= row.lead <= row.size, row
        at += row.size
    assert at == len(explained.data)


def test_rows_tile_the_bytes_of_every_message_at_every_version() -> None:
    for each in every_layout():
        rng = random.Random(str(each))
        data = each.encode(value(each, rng))
        whole = explain(each, data)
        check_tiles(whole)
        assert whole.damage is None and all(row.read for row in whole.rows)
        for broken in (data[: rng.randrange(len(data) + 1)], damaged(data, rng), rng.randbytes(9)):
            for lenient in (False, True):
                check_tiles(explain(each, broken, lenient))


def test_damage_stands_where_reading_stopped() -> None:
    for each in every_layout():
        rng = random.Random(f"{each} damaged")
        explained = explain(each, damaged(each.encode(value(each, rng)), rng))
        last = explained.rows[-1] if explained.rows else None
        if explained.damage is None:
            assert last is None or last.read
        elif last is not None and not last.read:
            assert explained.damage.offset is not None and explained.damage.offset >= last.offset
            assert last.meaning == explained.damage.why


def test_lengths_counts_and_tags_are_visible() -> None:
    rows = [(row.path, row.type, row.value, row.lead) for row in explain(JOIN_6, DATA).rows]
    assert rows[0] == ("groupId", "compact string", "g", 1)
    assert ("groupInstanceId", "compact nullable string", None, 1) in rows
    assert ("protocols", "compact array count", 2, 0) in rows
    assert ("protocols[1].metadata", "compact bytes", b"y" * 300, 2) in rows
    assert ("protocols[1]", "uvarint tag count", 0, 0) in rows
    assert rows[-4:] == [
        ("", "uvarint tag count", 1, 0),
        ("_unknownTaggedFields[0]", "uvarint tag", 7, 0),
        ("_unknownTaggedFields[0]", "uvarint size", 2, 0),
        ("_unknownTaggedFields[0]", "bytes of an unknown tag", b"zz", 0),
    ]


def test_presence_bytes_and_known_tags_are_visible() -> None:
    found = layout("apache", "StreamsGroupHeartbeatRequest", 0)
    rows = {(row.path, row.type): row.value for row in explain(found, found.encode({"topology": {}})).rows}
    assert rows["topology", "int8 presence"] is True
    assert rows["userEndpoint", "int8 presence"] is False
    answer = layout("apache", "ApiVersionsResponse", 3)
    tagged = explain(answer, answer.encode({"finalizedFeaturesEpoch": 5})).rows[-3:]
    assert [(row.type, row.value) for row in tagged] == [("uvarint tag", 1), ("uvarint size", 8), ("int64", 5)]
    assert tagged[0].meaning == "tag of finalizedFeaturesEpoch"


def test_a_leading_version_is_visible() -> None:
    for message in ("ConsumerProtocolSubscription", "SubscriptionInfo"):
        found = layout("apache", message, 1)
        first = explain(found, found.encode({})).rows[0]
        assert (first.value, first.meaning) == (1, "version of the layout that follows")


def test_numbers_have_the_names_that_kafka_gives_them() -> None:
    found = layout("apache", "ApiVersionsResponse", 0)
    rows = explain(found, found.encode({"errorCode": 35, "apiKeys": [{"apiKey": 18}]})).rows
    assert rows[0].meaning.startswith("UNSUPPORTED_VERSION: ")
    assert rows[2].meaning.startswith("ApiVersions: ")
    streams = layout("apache", "SubscriptionInfo", 9)
    assert explain(streams, streams.encode({"errorCode": 4})).rows[-1].meaning.startswith("SHUTDOWN_REQUESTED: ")
    assert name_of("HeartbeatResponse", "errorCode", 27) == "REBALANCE_IN_PROGRESS"
    assert name_of("RequestHeader", "requestApiKey", 11) == "JoinGroup"
    assert name_of("AssignmentInfo", "errCode", 2) == "VERSION_PROBING"
    assert name_of("RequestHeader", "requestApiKey", 52) == "Vote"
    assert name_of("RequestHeader", "requestApiKey", 52, "kip-584") == "UpdateFeatures"
    assert name_of("HeartbeatResponse", "errorCode", 9999) == "" == name_of("HeartbeatResponse", "memberId", 1)


def test_damaged_bytes_are_explained_up_to_the_damage() -> None:
    explained = explain(JOIN_6, DATA[:40])
    assert explained.damage is not None
    assert (explained.damage.kind, explained.damage.path) == ("length", "protocols[1].metadata")
    assert [row.path for row in explained.rows][-2:] == ["protocols[1].name", "protocols[1].metadata"]
    assert not explained.rows[-1].read


# Renderings


def test_text_has_aligned_columns_and_names_the_damage() -> None:
    lines = text(explain(JOIN_6, DATA[:40])).splitlines()
    head, rows, damage = lines[0], lines[1:-1], lines[-1]
    assert head.split() == ["offset", "bytes", "path", "type", "value", "meaning"]
    assert damage.startswith("damage: JoinGroupRequest v6 / protocols[1].metadata at byte ")
    at = head.index("path")
    assert all(line[at - 2 : at] == "  " and line[at] != " " for line in rows)
    assert rows[0].split()[:3] == ["0", "02", "67"]


def test_text_shortens_what_is_long_and_json_does_not() -> None:
    explained = explain(JOIN_6, DATA)
    assert max(map(len, text(explained).splitlines())) < 250
    assert "(300 bytes)" in text(explained)
    rows = json.loads(as_json(explained))["rows"]
    assert bytes.fromhex("".join(row["bytes"] for row in rows)) == DATA
    assert next(row["value"] for row in rows if row["path"] == "protocols[1].metadata") == "79" * 300


def test_text_disturbs_no_terminal() -> None:
    data = JOIN_6.encode({"groupId": "\x1b[31m\x9b\u202e\n"})
    assert all(each.isprintable() for line in text(explain(JOIN_6, data)).split("\n") for each in line)


def test_json_says_what_was_explained_and_what_is_wrong() -> None:
    found = json.loads(as_json(explain(JOIN_6, DATA[:3])))
    assert (found["edition"], found["message"], found["version"]) == ("apache", "JoinGroupRequest", 6)
    assert found["damage"] == {
        "class": "truncated",
        "message": "JoinGroupRequest v6 / sessionTimeoutMs at byte 2: int32 takes 4 bytes, 1 left",
        "path": "sessionTimeoutMs",
        "offset": 2,
    }
    assert json.loads(as_json(explain(JOIN_6, DATA)))["damage"] is None


def test_no_bytes_at_all() -> None:
    empty = explain(JOIN_6, b"")
    assert empty.rows == () and empty.damage is not None
    assert text(empty).splitlines()[-1].startswith("damage: ")
    nothing = layout("apache", "ApiVersionsRequest", 0)
    assert explain(nothing, b"").damage is None and text(explain(nothing, b"")).startswith("offset")


# Meanings


def test_every_declared_field_has_a_meaning() -> None:
    bare = {
        f"{each.message}: {row.path}" for each in every_layout() for row in describe(each) if not row.meaning
    }  # fmt: skip
    assert not bare


def test_no_meaning_is_left_over() -> None:
    owned: set[str] = set()
    for each in every_layout():
        owned |= {
            name
            for struct in structs(each)
            for slot in struct.slots
            for name in (slot.name, f"{struct.message}.{slot.name}")
        }
    nodes = {"BrokerIdZNode", "FeatureZNode"}
    left = {name for name in _meanings()["fields"] if name not in owned and name.partition(".")[0] not in nodes}
    assert left <= {"jmx_port", "endpoints", "listener_security_protocol_map", "min_version", "max_version",
                    "min_version_level", "max_version_level", "version"}  # fmt: skip


def structs(found: Layout) -> Iterator[Layout]:
    yield found
    for slot in found.slots:
        if slot.item is not None:
            yield from structs(slot.item)


def test_meanings_of_the_same_name_may_differ() -> None:
    assert meaning("TopicInfo", "partitions") != meaning("TopicPartition", "partitions") != ""
    assert meaning("Nobody", "nothing") == ""


def test_rows_of_documentation() -> None:
    rows = {row.path: row for row in describe(JOIN_6)}
    assert rows["groupInstanceId"].type == "compact nullable string" and rows["groupInstanceId"].default is None
    assert rows["rebalanceTimeoutMs"].default == -1
    assert rows["protocols[].metadata"].type == "compact bytes"
    assert laid_out(JOIN_6.slots[-1]) == "compact array of JoinGroupRequestProtocol"
    assert describe(layout("apache", "ApiVersionsResponse", 3))[-1].tag == 3
    assert describe(layout("apache", "SubscriptionInfo", 3))[0].path == "version"
