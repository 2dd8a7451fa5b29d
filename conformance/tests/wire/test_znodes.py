"""Nodes in ZooKeeper: what the KIP allows, what released readers took (tried on 2.7.0, 3.2.3 and 3.9.2)."""

import json
from typing import Any

import pytest

from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.explain import explain
from kipcheck.conformance.wire.znodes import ZNode, znode, znode_messages, znode_versions

DRAFT = znode("kip-584", "FeatureZNode", 0)
REGISTRATION = znode("kip-584", "BrokerIdZNode", 5)
V1 = znode("apache@2.7.0", "FeatureZNode", 1)
NEWER_V1 = znode("apache@3.9.2", "FeatureZNode", 1)
V2 = znode("apache@3.9.2", "FeatureZNode", 2)

KIP_EXAMPLE = """{
   "listener_security_protocol_map":{"INTERNAL":"PLAINTEXT", "REPLICATION":"PLAINTEXT", "EXTERNAL":"SASL_SSL"},
   "endpoints":["INTERNAL://kafka-0:9071", "REPLICATION://kafka-0:9072", "EXTERNAL://b3:9092"],
   "rack":"0", "jmx_port":7203, "host":"kafka-0", "timestamp":"1579041366882", "port":9071, "version":5,
   "features": {
      "group_coordinator": {"min_version": 1, "max_version": 3},
      "transaction_coordinator": {"min_version": 1, "max_version": 4}}}"""


def levels(low: Any, high: Any, **more: Any) -> dict[str, Any]:
    return {"min_version_level": low, "max_version_level": high, **more}


def node(version: int, features: Any, status: Any = 1) -> bytes:
    return json.dumps({"version": version, "status": status, "features": features}).encode()


def broker(**keys: Any) -> bytes:
    known = {"version": 5, "host": "h", "port": 9, "jmx_port": -1, "timestamp": "1", "endpoints": ["PLAINTEXT://h:9"]}
    return json.dumps({**known, "listener_security_protocol_map": {}, "features": {}, **keys}).encode()


def test_names_are_the_keys_of_the_json() -> None:
    assert DRAFT.names == ("version", "status", "features")
    assert znode("apache", "BrokerIdZNode", 4).names[-1] == "listener_security_protocol_map"
    assert REGISTRATION.names[-1] == "features"


def test_one_way_to_write_a_node() -> None:
    value = {"features": {"group_coordinator": levels(1, 3)}}
    data = DRAFT.encode(value)
    assert data == (
        b'{"version":0,"status":1,"features":{"group_coordinator":{"min_version_level":1,"max_version_level":3}}}'
    )
    assert DRAFT.decode(data) == {"version": 0, "status": 1, **value}
    assert DRAFT.encode(DRAFT.decode(data)) == data


def test_the_registration_of_the_kip() -> None:
    value = REGISTRATION.decode(KIP_EXAMPLE.encode())
    assert value["features"]["transaction_coordinator"] == {"min_version": 1, "max_version": 4}
    assert (value["version"], value["rack"], value["jmx_port"]) == (5, "0", 7203)
    assert REGISTRATION.decode(REGISTRATION.encode(value)) == value


def test_a_broker_without_a_rack_writes_none() -> None:
    assert b"rack" not in REGISTRATION.encode({"endpoints": []})
    assert REGISTRATION.decode(REGISTRATION.encode({}))["rack"] is None


# 584-02, 584-60, 584-61, 584-64: what the draft refuses


@pytest.mark.parametrize(
    ("found", "data", "kind", "path"),
    [
        pytest.param(DRAFT, node(0, {"f": levels(0, 3)}), "range", "features.f.min_version_level", id="584-61"),
        pytest.param(DRAFT, node(0, {"f": levels(1, 0)}), "range", "features.f.max_version_level", id="highest 0"),
        pytest.param(DRAFT, node(0, {"f": levels(3, 2)}), "range", "features.f", id="lowest above highest"),
        pytest.param(DRAFT, node(0, {"f": levels(1, 32768)}), "range", "features.f.max_version_level", id="584-60"),
        pytest.param(DRAFT, node(0, {"f": levels("1", 2)}), "type", "features.f.min_version_level", id="584-64"),
        pytest.param(DRAFT, node(0, {"f": levels(1.0, 2)}), "type", "features.f.min_version_level", id="a fraction"),
        pytest.param(DRAFT, node(0, {"f": levels(True, 2)}), "type", "features.f.min_version_level", id="a boolean"),
        pytest.param(DRAFT, node(0, {"f": levels(1, 2, x=[])}), "type", "features.f.x", id="neither text nor number"),
        pytest.param(DRAFT, node(0, {"f": {"max_version_level": 2}}), "missing", "features.f.min_version_level",
                     id="one level only"),
        pytest.param(DRAFT, node(0, {"": levels(1, 2)}), "range", "features", id="no name"),
        pytest.param(DRAFT, node(0, []), "type", "features", id="no map"),
        pytest.param(DRAFT, node(0, {}, 2), "range", "status", id="status 2"),
        pytest.param(DRAFT, node(0, {}, None), "type", "status", id="status null"),
        pytest.param(DRAFT, node(1, {}), "version", "version", id="another version"),
        pytest.param(DRAFT, b'{"version":0,"features":{}}', "missing", "status", id="no status"),
        pytest.param(DRAFT, b'{"version":0,"status":1}', "missing", "features", id="no features"),
        pytest.param(DRAFT, b"[]", "type", "", id="no object"),
        pytest.param(DRAFT, b'{"version":0,"version":0,"status":1,"features":{}}', "json", "version", id="a key twice"),
        pytest.param(REGISTRATION, broker(features={"f": {"min_version": 0, "max_version": 1}}), "range",
                     "features.f.min_version", id="584-01"),
        pytest.param(REGISTRATION, broker(features={"f": {"min_version": 2, "max_version": 1}}), "range", "features.f",
                     id="584-01, order"),
        pytest.param(REGISTRATION, broker(endpoints="x"), "type", "endpoints", id="endpoints no array"),
        pytest.param(REGISTRATION, broker(endpoints=["x", 1]), "type", "endpoints[1]", id="an endpoint no text"),
        pytest.param(REGISTRATION, broker(version=4), "version", "version", id="version 4"),
        pytest.param(REGISTRATION, broker(port=1 << 31), "range", "port", id="port past 32 bits"),
    ],
)  # fmt: skip
def test_the_draft_refuses(found: ZNode, data: bytes, kind: str, path: str) -> None:
    for lenient in (False, True):
        with pytest.raises(Refused) as caught:
            found.decode(data, lenient=lenient)
        assert (caught.value.kind, caught.value.path) == (kind, path), str(caught.value)
        assert caught.value.offset is not None


def test_other_keys_are_ignored() -> None:
    plain = node(0, {"f": levels(1, 2)})
    more = node(0, {"f": levels(1, 2, note="text", weight=7)}).replace(b'"status"', b'"more": [{}], "status"')
    assert DRAFT.decode(more) == DRAFT.decode(plain)


@pytest.mark.parametrize(
    ("data", "kind", "offset"),
    [
        (b"", "truncated", 0),
        (b'{"version": 0, ', "truncated", 15),
        (b'{"version": 0, "sta', "truncated", 15),
        (b'{"version" 0}', "json", 11),
        (b'{"version": 00}', "json", 13),
        (b'{"version": 0,}', "json", 14),
        (b'{"version": nul}', "json", 12),
        (b'{"version": "\x01"}', "json", 12),
        (b'{"version": "\xff"}', "text", 13),
        (b"[" * 100_000, "json", 33),
        (b"9" * 100_000, "range", 0),
        (b'{"version":0,"status":1,"features":{}} x', "trailing", 39),
        (b'{"version":0,"status":1,"features":{"\\ud800":{}}}', "text", 45),
    ],
)
def test_broken_json_is_refused_where_it_breaks(data: bytes, kind: str, offset: int) -> None:
    with pytest.raises(Refused) as caught:
        DRAFT.decode(data)
    assert (caught.value.kind, caught.value.offset) == (kind, offset), str(caught.value)


def test_no_prefix_is_a_node() -> None:
    for data in (DRAFT.encode({"features": {"grüße": levels(1, 2)}}), KIP_EXAMPLE.encode()):
        found = DRAFT if b"status" in data else REGISTRATION
        for end in range(len(data)):
            with pytest.raises(Refused) as caught:
                found.decode(data[:end])
            assert caught.value.kind in ("truncated", "text")


# What released readers take


@pytest.mark.parametrize(
    ("data", "in_2_7_0", "in_3_9_2"),
    [
        pytest.param(node(1, {"f": levels(1, 2)}), 2, 2, id="as written"),
        pytest.param(node(0, {}), None, None, id="version 0"),
        pytest.param(node(3, {"f": levels(1, 2)}), 2, None, id="version 3"),
        pytest.param(node(1, {"": levels(1, 2)}), 2, 2, id="no name"),
        pytest.param(node(1, {"f": levels(1, 2, x="s")}), None, None, id="text in an entry"),
        pytest.param(node(1, {"f": levels(1, 2, x=70000)}), 2, 2, id="another number in an entry"),
        pytest.param(node(1, {"f": levels(1, 40000)}), None, -25536, id="the low 16 bits, negative"),
        pytest.param(node(1, {"f": levels(1, 70000)}), 4464, 4464, id="the low 16 bits"),
        pytest.param(node(1, {"f": levels(1, 2.0)}), None, None, id="a fraction"),
        pytest.param(node(1, {"f": levels(0, 2)}), None, None, id="level 0"),
        pytest.param(node(1, {"f": levels(3, 2)}), None, None, id="lowest above highest"),
        pytest.param(node(1, {"f": {"min_version_level": 1}}), None, None, id="one level only"),
        pytest.param(node(1, {"f": levels(1, 2)}, 2), None, None, id="status 2"),
        pytest.param(node(1, {"f": levels(1, 2)}, None), None, None, id="status null"),
        pytest.param(b'{"version":1,"status":1,"features":null}', None, None, id="features null"),
        pytest.param(node(1, {"f": levels(1, 2)}) + b" x", 2, 2, id="text behind"),
        pytest.param(b'{"version":9,' + node(1, {"f": levels(1, 2)})[1:], 2, 2, id="a key twice"),
        pytest.param(b'{"more":[1],' + node(1, {"f": levels(1, 2)})[1:], 2, 2, id="another key"),
    ],
)
def test_lenient_takes_what_released_readers_take(data: bytes, in_2_7_0: int | None, in_3_9_2: int | None) -> None:
    for found, expected in ((V1, in_2_7_0), (NEWER_V1, in_3_9_2)):
        if expected is None:
            with pytest.raises(Refused):
                found.decode(data, lenient=True)
        else:
            (entry,) = found.decode(data, lenient=True)["features"].values()
            assert entry["max_version_level"] == expected


def test_version_2_has_the_highest_level_only() -> None:
    assert V2.decode(node(2, {"f": levels(9, 2)}))["features"] == {"f": {"max_version_level": 2}}
    for wrong in ({"max_version_level": 0}, {"min_version_level": 1}):
        with pytest.raises(Refused):
            V2.decode(node(2, {"f": wrong}), lenient=True)


def test_the_lowest_supported_level_may_be_0_from_3_8_0_on() -> None:
    data = broker(features={"f": {"min_version": 0, "max_version": 3}})
    for release in ("2.7.0", "3.7.2"):
        with pytest.raises(Refused):
            znode(f"apache@{release}", "BrokerIdZNode", 5).decode(data, lenient=True)
    for edition in ("apache@3.8.0", "apache@3.9.2", "apache"):
        assert znode(edition, "BrokerIdZNode", 5).decode(data)["features"]["f"]["min_version"] == 0


def test_registrations_are_read_without_what_has_a_default() -> None:
    found = znode("apache", "BrokerIdZNode", 5)
    for data in (b'{"version":5,"jmx_port":1,"endpoints":[]}', broker(rack=None, features=None), broker(version=6)):
        assert found.decode(data, lenient=True)["features"] == {}
    for data in (b'{"version":5,"endpoints":[]}', b'{"version":5,"jmx_port":1}', broker(version=0)):
        with pytest.raises(Refused):
            found.decode(data, lenient=True)
    with pytest.raises(Refused):
        found.decode(b'{"version":5,"jmx_port":1,"endpoints":[]}')


# Writing


@pytest.mark.parametrize(
    ("given", "kind", "path"),
    [
        ([], "type", ""),
        ({"more": 1}, "unknown-field", "more"),
        ({"version": 1}, "version", "version"),
        ({"status": 2}, "range", "status"),
        ({"status": True}, "type", "status"),
        ({"features": {"f": levels(1, 2, more=3)}}, "unknown-field", "features.f.more"),
        ({"features": {"f": levels(1, 1 << 15)}}, "range", "features.f.max_version_level"),
        ({"features": {"\ud800": levels(1, 2)}}, "text", ""),
        ({"features": {7: levels(1, 2)}}, "type", "features"),
        ({"features": {"f": levels(1, b"2")}}, "type", ""),
        ({"features": {"f": None}}, "type", "features.f"),
    ],
)
def test_values_that_are_no_node_are_refused(given: Any, kind: str, path: str) -> None:
    with pytest.raises(Refused) as caught:
        DRAFT.encode(given)
    assert (caught.value.kind, caught.value.path, caught.value.offset) == (kind, path, None), str(caught.value)


# Which there are


def test_which_nodes_an_edition_knows() -> None:
    assert znode_messages("apache@2.6.3") == ("BrokerIdZNode",)
    assert [znode_versions(f"apache@{each}", "FeatureZNode") for each in ("2.7.0", "3.2.3", "3.3.0", "3.9.2")] == [
        (1,), (1,), (1, 2), (1, 2),
    ]  # fmt: skip
    assert znode_versions("kip-584", "FeatureZNode") == (0,)
    assert znode_messages("apache@4.0.0") == () == znode_messages("maven:3.9.2")
    for edition, message, version in (
        ("kip-584", "FeatureZNode", 1), ("apache@4.0.0", "FeatureZNode", 1), ("apache", "OtherZNode", 1),
    ):  # fmt: skip
        with pytest.raises(LookupError):
            znode(edition, message, version)


def test_the_paths_differ() -> None:
    assert (DRAFT.path, V1.path, REGISTRATION.path) == ("/features", "/feature", "/brokers/ids/ID")


def test_layout_gives_nodes_too() -> None:
    assert layout("kip-584", "FeatureZNode", 0) is DRAFT
    assert layout("kip-584", "FeatureZNode", 0).codec.to_json(DRAFT.defaults())["status"] == 1


def test_explained_nodes_tile_their_bytes() -> None:
    data = KIP_EXAMPLE.encode()
    for end in range(0, len(data) + 1, 7):
        rows = explain(REGISTRATION, data[:end]).rows
        assert b"".join(data[row.offset : row.offset + row.size] for row in rows) == data[:end]
    whole = explain(REGISTRATION, data)
    assert whole.damage is None and whole.rows[-1].path == "features.transaction_coordinator.max_version"
    assert explain(DRAFT, DRAFT.encode({})).rows[1].meaning.startswith("enabled")
