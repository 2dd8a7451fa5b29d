"""The golden vectors: what real Kafka wrote, both our readings read; nothing changes or vanishes unseen."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import golden.vectors
from conformance.core.edition import edition
from conformance.wire.schema import spec
from golden import make as making
from golden.samples import UNKNOWN_TAGS, samples
from golden.vectors import Malformed, Vector, check, lock, unreviewed, vectors, verify

GOLDEN = Path(golden.vectors.__file__).parent
EVERY_VERSION = (
    "JoinGroupRequest", "JoinGroupResponse", "ApiVersionsRequest", "ApiVersionsResponse",
    "ConsumerProtocolSubscription", "ConsumerProtocolAssignment", "SubscriptionInfo", "AssignmentInfo",
)  # fmt: skip
SCHEMA = json.loads((GOLDEN / "schema.json").read_text())


def test_every_vector_is_what_was_reviewed_and_means_the_same_to_both_readings() -> None:
    assert verify() == []


@pytest.mark.parametrize("message", EVERY_VERSION)
def test_every_version_has_its_vectors(message: str) -> None:
    found = {(each.version, each.note) for each in vectors(message) if each.edition == "apache"}
    for at in spec(edition("apache"), message):
        assert {(at.version, note) for note, _ in samples(at)} <= found
        assert {(at.version, note) for note in ("defaults", "typical", "lowest", "highest")} <= found
        assert ((at.version, "unknown tags") in found) == at.flexible


def test_version_1_of_streams_records_is_there_as_1_1_1_writes_it() -> None:
    for message, tail in (("SubscriptionInfo", "userEndPoint"), ("AssignmentInfo", "partitionsByHost")):
        typical = [each for each in vectors(message) if (each.version, each.note) == (1, "typical")]
        exact, long = typical
        assert [each.edition for each in typical] == ["apache", "apache@1.1.1"]
        assert exact.value and long.value
        assert tail in long.value and tail not in exact.value
        assert long.hex.startswith(exact.hex) and len(long.hex) > len(exact.hex)


def test_unknown_tags_stand_in_inner_structs_too() -> None:
    (found,) = (each for each in vectors("JoinGroupRequest") if (each.version, each.note) == (9, "unknown tags"))
    assert found.value
    assert len(found.value[UNKNOWN_TAGS]) == 3
    assert all(UNKNOWN_TAGS in each for each in found.value["protocols"])


# -- changes are seen


def flipped(data: bytes) -> str:
    """The last bit is another; where there is none, there is one."""
    return (data[:-1] + bytes([data[-1] ^ 1]) if data else b"\0").hex()


def test_one_flipped_bit_of_any_vector_is_seen() -> None:
    changed = [replace(each, hex=flipped(each.data)) for each in vectors()]
    names = sorted(lock().vectors)
    assert list(unreviewed(changed, lock())) == [f"{name}: it is not what was reviewed" for name in names]
    for each in changed:
        assert list(check(each)), f"{each.name}: no reading of ours minds"


def test_every_part_of_a_vector_is_in_its_digest() -> None:
    one = vectors("JoinGroupRequest")[0]
    others: dict[str, Any] = {
        "edition": "apache@3.9.2", "message": "JoinGroupResponse", "version": 9, "note": "another", "hex": "00",
        "value": None, "made_by": "text", "outcomes": {"3.9.2": "rejected java.lang.RuntimeException"},
    }  # fmt: skip
    assert others.keys() == {each.name for each in fields(Vector)}
    assert len({one.digest, *(replace(one, **{key: other}).digest for key, other in others.items())}) == 9


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN / "vectors", tmp_path / "vectors")
    shutil.copyfile(GOLDEN / "lock.json", tmp_path / "lock.json")
    return tmp_path


def edited(root: Path, name: str) -> Iterator[dict[str, Any]]:
    path = root / "vectors" / "apache" / f"{name}.json"
    held = json.loads(path.read_text())
    yield held
    path.write_text(json.dumps(held))


def test_a_vector_that_is_gone_is_seen(copied: Path) -> None:
    for held in edited(copied, "JoinGroupRequest"):
        gone = held["vectors"].pop(7)
    assert verify(copied) == [f"apache/JoinGroupRequest v{gone['version']} {gone['note']}: it is gone"]


def test_a_file_that_is_gone_is_seen(copied: Path) -> None:
    (copied / "vectors" / "apache" / "SubscriptionInfo.json").unlink()
    assert len(verify(copied)) == len([each for each in vectors("SubscriptionInfo") if each.edition == "apache"])


def test_a_vector_nobody_reviewed_is_seen(copied: Path) -> None:
    for held in edited(copied, "ApiVersionsRequest"):
        held["vectors"].append(held["vectors"][0] | {"note": "mine"})
        held["vectors"].append(held["vectors"][0])
    assert verify(copied) == [
        "apache/ApiVersionsRequest v0 defaults: it is there twice",
        "apache/ApiVersionsRequest v0 mine: it is new, and not in the lock",
    ]


def test_a_wrong_expectation_is_seen_even_where_the_lock_knows_it(copied: Path) -> None:
    """Locking is no judgement: both readings still look at the bytes, and so does the lenient one."""
    for held in edited(copied, "JoinGroupRequest"):
        (typical,) = (each for each in held["vectors"] if (each["version"], each["note"]) == (5, "typical"))
        typical["value"]["memberId"] = "another"
        typical["outcomes"]["3.9.2"] = "rejected java.lang.RuntimeException"
    (copied / "lock.json").write_text(making._locked(copied, {}))
    told = "\n".join(verify(copied))
    assert "the codec reads" in told and "the second reading reads" in told
    assert "3.9.2 says rejected java.lang.RuntimeException" in told


def test_bytes_without_a_value_must_be_refused() -> None:
    """Later vectors hold bytes that releases refuse, or that only some of them accept."""
    underflow = {"3.9.2": "rejected java.nio.BufferUnderflowException"}
    cut = Vector("apache", "HeartbeatRequest", 4, "cut", "0267", None, "text", underflow)
    assert list(check(cut)) == []
    whole = replace(cut, hex="026700000001026d0000")
    assert [line.partition(": ")[2].partition(" accepts")[0] for line in check(whole)][:2] == [
        "the codec", "the second reading",
    ]  # fmt: skip
    trailing = replace(whole, hex=whole.hex + "ff", outcomes={"3.9.2": "accepted"})
    assert list(check(trailing)) == []
    assert len(list(check(replace(trailing, outcomes=underflow)))) == 1


def test_a_file_in_the_wrong_place_is_refused(copied: Path) -> None:
    shutil.move(copied / "vectors" / "apache" / "SubscriptionInfo.json", copied / "vectors" / "apache" / "Other.json")
    with pytest.raises(Malformed, match=r"Other\.json is of apache/SubscriptionInfo"):
        vectors(root=copied)


# -- the form of the files


def breaches(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """As much of JSON Schema as ``schema.json`` uses."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}
    named = schema.get("type", [])
    wanted = tuple(kinds[kind] for kind in ([named] if isinstance(named, str) else named))
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and int in wanted)):
        yield f"{path}: {value!r} is no {named}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{path}: {value!r} does not match"
    elif isinstance(value, list):
        for n, each in enumerate(value):
            yield from breaches(schema.get("items", {}), each, f"{path}[{n}]")
    elif isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        yield from (f"{path}: {key} is missing" for key in schema.get("required", ()) if key not in value)
        for key, each in value.items():
            if key in properties:
                yield from breaches(properties[key], each, f"{path}.{key}")
            elif more is False:
                yield f"{path}: {key} is not known"
            elif isinstance(more, dict):
                yield from breaches(more, each, f"{path}.{key}")


@pytest.mark.parametrize("path", sorted((GOLDEN / "vectors").rglob("*.json")), ids=lambda path: path.stem)
def test_files_keep_to_the_schema(path: Path) -> None:
    assert list(breaches(SCHEMA, json.loads(path.read_text()))) == []


def test_the_schema_explains_every_key_and_refuses_others() -> None:
    good = json.loads((GOLDEN / "vectors" / "apache" / "JoinGroupRequest.json").read_text())
    explained = [*SCHEMA["properties"]["origin"]["properties"].values()]
    explained += SCHEMA["properties"]["vectors"]["items"]["properties"].values()
    assert all(each.get("description") for each in explained)
    assert list(breaches(SCHEMA, good | {"extra": 1})) == [": extra is not known"]
    assert list(breaches(SCHEMA, good | {"origin": {"kind": "hearsay"}}))
    assert list(breaches(SCHEMA, good | {"vectors": [good["vectors"][0] | {"hex": "0"}]}))
    words = good["vectors"][0] | {"outcomes": {"3.9.2": "rejected Tried to read too much"}}
    assert list(breaches(SCHEMA, good | {"vectors": [words]}))


# -- with the jars


@pytest.mark.jars
def test_the_jars_make_the_same_vectors_again() -> None:
    assert making.make(check=True) == []


@pytest.mark.jars
def test_making_mends_what_was_changed(copied: Path) -> None:
    for held in edited(copied, "ApiVersionsResponse"):
        held["vectors"][0]["hex"] += "00"
    (copied / "vectors" / "apache@1.1.1" / "SubscriptionInfo.json").unlink()
    changed = ["vectors/apache/ApiVersionsResponse.json", "vectors/apache@1.1.1/SubscriptionInfo.json"]
    assert making.make(check=True, root=copied) == changed
    assert making.make(root=copied) == changed
    assert making.make(check=True, root=copied) == []
    assert verify(copied) == []
