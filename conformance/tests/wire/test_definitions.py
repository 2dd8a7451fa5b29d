"""Definitions as they stand in jars, in every form that releases gave them."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.definitions import definitions, missing, parse
from kipcheck.conformance.wire.diff import diff
from kipcheck.conformance.wire.schema import messages, spec


def jar(folder: Path, **definitions: object) -> Edition:
    """A jar with these definitions in it, text or what becomes JSON."""
    path = folder / f"{len(list(folder.iterdir()))}.jar"
    with ZipFile(path, "w") as made:
        for name, raw in definitions.items():
            made.writestr(f"common/message/{name}.json", raw if isinstance(raw, str) else json.dumps(raw))
        made.writestr("common/message/NOTICE.txt", "not a definition")
        made.writestr("other/Thing.json", "{]")
    return edition(f"jar:{path}")


def message(*fields: Mapping[str, Any], versions: str = "0", flexible: str = "none", **more: object) -> dict[str, Any]:
    reported = {"type": "request", "name": "Ping", "validVersions": versions, "flexibleVersions": flexible}
    return {**reported, **more, "fields": fields}


def field(name: str, type: str = "int32", versions: str = "0+", **more: object) -> dict[str, Any]:
    return {"name": name, "type": type, "versions": versions, **more}


def test_a_definition_may_hold_comments_text_after_its_end_and_loose_types() -> None:
    raw = parse(
        """// a comment
        { "type": "request", /* another */ "name": "Ping", // "name": "Pong",
          "validVersions": "0-1", "flexibleVersions": "1+",
          "fields": [
            { "name": "Url", "type": "string", "versions": "0+", "default": "a//b /* c */" },
            { "name": "Count", "type": "int32", "versions": "0+", "default": -1 },
            { "name": "Sure", "type": "bool", "versions": "0+", "default": true, "ignorable": "false" },
            { "name": "Hint", "type": "int64", "taggedVersions": "1+", "tag": "0", "default": "0x10" } ] }
        } trailing"""
    )
    assert raw["name"] == "Ping"
    assert [each["name"] for each in raw["fields"]] == ["Url", "Count", "Sure", "Hint"]
    assert raw["fields"][0]["default"] == "a//b /* c */"


def test_definitions_in_a_jar_become_layouts(tmp_path: Path) -> None:
    raw = message(
        field("Count", default=-1),
        field("sure", "bool", default=True, ignorable="false"),
        {"name": "Hint", "type": "int64", "taggedVersions": "1+", "tag": "0", "default": "0x10"},
        field("Gone", "Thing", nullableVersions="0+", default=None, fields=[field("x")]),
        versions="0-1",
        flexible="1+",
    )
    found = jar(tmp_path, Ping=raw, Gone={**message(), "name": "Gone", "validVersions": "none"})
    assert messages(found) == ("Ping",), "a message without versions is not spoken"
    assert spec(found, "Ping").at(1).defaults() == {"count": -1, "sure": True, "hint": 16, "gone": {"x": 0}}
    assert spec(found, "Ping").at(0).names == ("count", "sure", "gone")
    assert not layout(found, "Ping", 0).slots[1].ignorable
    assert missing(found) == ()
    with pytest.raises(LookupError, match="defines no Pong"):
        layout(found, "Pong", 0)


def test_a_record_leads_with_the_number_on_the_wire_however_its_key_is_numbered(tmp_path: Path) -> None:
    key = {"type": "coordinator-key", "validVersions": "0", "flexibleVersions": "none"}
    group = {**key, "apiKey": 2, "name": "GroupMetadataKey", "fields": [field("group", "string", "0")]}
    fields = [field("group", "string", "0"), field("p", versions="0")]
    offset = {**key, "apiKey": 1, "name": "OffsetCommitKey", "fields": fields}
    found = jar(
        tmp_path,
        GroupMetadataKey=group,
        OffsetCommitKey=offset,
        LegacyOffsetCommitKey={**offset, "apiKey": 0, "name": "LegacyOffsetCommitKey"},
        GroupMetadataValue={**message(), "type": "coordinator-value", "name": "GroupMetadataValue", "apiKey": 2},
    )
    assert layout(found, "GroupMetadataKey", 2).encode({"group": "g"}).hex() == "0002000167"
    assert [each.version for each in spec(found, "OffsetCommitKey")] == [0, 1]
    assert layout(found, "OffsetCommitKey", 0).encode({"group": "g", "p": 3}).hex() == "000000016700000003"
    assert layout(found, "GroupMetadataValue", 0).encode({}).hex() == "0000"
    old = {**group, "type": "data", "validVersions": "2", "fields": [field("group", "string", "2")]}
    del old["apiKey"]
    before = jar(tmp_path, GroupMetadataKey=old)
    assert layout(before, "GroupMetadataKey", 2) == layout(found, "GroupMetadataKey", 2)


def test_the_subscription_of_streams_has_its_own_name_and_prefix(tmp_path: Path) -> None:
    fields = [field("version", versions="1+"), field("latestSupportedVersion", versions="3+", default="-1")]
    raw = {"type": "data", "name": "SubscriptionInfoData", "validVersions": "1-3", "fields": fields}
    found = layout(jar(tmp_path, SubscriptionInfoData=raw), "SubscriptionInfo", 3)
    assert found.decode(found.encode({})) == {"version": 3, "latestSupportedVersion": -1}


def test_a_response_is_as_unstable_as_its_request(tmp_path: Path) -> None:
    request = {**message(field("a")), "name": "PingRequest", "latestVersionUnstable": True}
    response = {**message(field("a")), "name": "PingResponse", "type": "response"}
    found = jar(tmp_path, PingRequest=request, PingResponse=response)
    assert spec(found, "PingRequest").unstable == spec(found, "PingResponse").unstable == 0


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "[]",
        '{"name": "Ping"}',
        '{"type": "x", "name": "y", "validVersions": "0", "fields": 3}',
        message(field("a"), versions="0+"),
        message(field("a", versions="some")),
        message(field("a", "int31")),
        message(field("a", "[]Loop"), commonStructs=[{"name": "Loop", "fields": [field("b", "Loop")]}]),
        message(field("a", taggedVersions="0+", tag="first")),
    ],
)
def test_what_is_no_definition_is_named(tmp_path: Path, damage: object) -> None:
    with pytest.raises(LookupError, match=r"common/message/Ping\.json"):
        definitions(jar(tmp_path, Ping=damage))


def test_what_is_no_jar_is_named(tmp_path: Path) -> None:
    text = tmp_path / "text.jar"
    text.write_text("no jar")
    for path in (text, tmp_path / "none.jar", tmp_path):
        with pytest.raises(LookupError, match=path.name):
            definitions(edition(f"jar:{path}"))
    with pytest.raises(LookupError, match="contains no definition"):
        definitions(jar(tmp_path))
    with pytest.raises(LookupError, match="too large"):
        definitions(jar(tmp_path, Ping=" " * (5 << 20)))


def test_a_release_is_read_from_the_jars_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {**message(field("a")), "name": "JoinGroupRequest"}
    path = Path(jar(tmp_path, JoinGroupRequest=raw).name.removeprefix("jar:"))
    empty = Path(jar(tmp_path).name.removeprefix("jar:"))
    there = {"org.apache.kafka:kafka-clients:99.0.0": path, "org.apache.kafka:kafka-metadata:99.0.0": empty}

    def found(wanted: list[str]) -> dict[str, Path | str]:
        return {each: there.get(each, "nothing there") for each in wanted}

    monkeypatch.setattr(maven, "_found", found)
    new = edition("maven:99.0.0")
    assert messages(new) == ("JoinGroupRequest",)
    assert dict(missing(new)) == {
        "org.apache.kafka:kafka-group-coordinator:99.0.0": "nothing there",
        "org.apache.kafka:kafka-transaction-coordinator:99.0.0": "nothing there",
        "org.apache.kafka:kafka-streams:99.0.0": "nothing there",
        "org.apache.kafka:kafka-metadata:99.0.0": "the jar contains no definition",
    }
    assert set(diff(edition("apache@4.4.0"), new).missing) == set(missing(new))
    with pytest.raises(LookupError, match=r"98\.0\.0.*nothing there"):
        definitions(edition("maven:98.0.0"))


@pytest.mark.parametrize("name", ["maven:4", "maven:latest", "maven:4.1.0-rc1", "maven:../4.1.0"])
def test_only_exact_releases_are_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven, "fetch", None)
    with pytest.raises(LookupError, match="invalid release"):
        definitions(edition(name))


PROCESSES = (
    "kipcheck.conformance.campaign.executors.spark_worker",
    "kipcheck.conformance.campaign.shard",
    "kipcheck.conformance.cli.main",
    "kipcheck.conformance.suite.items",
    "kipcheck.conformance.targets.transport.child",
    "kipcheck.conformance.engine.execution.worker",
    "kipcheck.golden.make",
    "kipcheck.strategies.public",
)
"""A module of every kind of process that looks up editions, and of every public face."""


@pytest.mark.parametrize("module", some_by_default(PROCESSES, 2))
def test_every_process_can_fetch_the_jars_of_an_edition(module: str) -> None:
    code = f"""if True:
        from importlib import import_module
        from kipcheck.conformance.core.files.jars import files_of
        import_module({module!r})
        from kipcheck.conformance.targets.toolchains import maven
        maven._found = lambda coordinates: {{each: "jar" for each in coordinates}}
        print(files_of(["a:b:1"]))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "{'a:b:1': 'jar'}\n"


def test_without_a_source_of_jars_the_error_names_the_import() -> None:
    code = "from kipcheck.conformance.wire import layout; layout('maven:4.1.0', 'HeartbeatRequest', 4)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.endswith(
        "LookupError: no source of jars is registered: import kipcheck.conformance.targets first\n"
    )
