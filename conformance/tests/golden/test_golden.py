"""The golden vectors: what real Kafka wrote, both our readings read; nothing changes or vanishes unseen."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import kipcheck.golden.vectors
from kipcheck.conformance.clients.java.programs import JavaCodec
from kipcheck.conformance.core.values.edition import APACHE, EDITIONS, Standing, edition
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.tests.support.loops import for_each, some_by_default
from kipcheck.conformance.tests.support.releases import CLIENTS, STREAMS_JARS
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import messages, spec
from kipcheck.golden import make as making, text
from kipcheck.golden.outcomes import ALL, REST, UNTESTED, by_release, grouped, takes
from kipcheck.golden.samples import SMALL, UNKNOWN_TAGS, samples
from kipcheck.golden.sources import part
from kipcheck.golden.vector_files import REGRESSIONS
from kipcheck.golden.vectors import TEXT, Malformed, Part, Vector, check, lock, report, unreviewed, vectors, verify

GOLDEN = Path(kipcheck.golden.vectors.__file__).parent
ALL_MESSAGES = messages(APACHE)
SHARES = [ALL_MESSAGES[n::12] for n in range(12)]
SCHEMA = json.loads((GOLDEN / "schema.json").read_text())
EVERY = vectors()


@pytest.mark.parametrize("share", some_by_default([pytest.param(each, id=str(n)) for n, each in enumerate(SHARES)], 1))
def test_every_vector_means_the_same_to_all_readings(share: tuple[str, ...]) -> None:
    assert [line for each in EVERY if each.message in share for line in check(each)] == []


def test_every_vector_is_what_was_reviewed() -> None:
    found = report(messages=["HeartbeatRequest"])
    assert found.troubles == ()
    assert len(found.vectors) == len(lock().vectors)


def test_the_shares_and_the_drafts_are_all_there_is() -> None:
    drafts = [each for each in EVERY if not each.edition.startswith("apache")]
    assert {each.message for each in EVERY} == {*ALL_MESSAGES, *(each.message for each in drafts)}
    assert [line for each in drafts for line in check(each)] == []


@for_each(ALL_MESSAGES)
@pytest.mark.integration
def test_every_version_has_its_vectors(message: str) -> None:
    found = {(each.version, each.note) for each in vectors(message) if each.edition == "apache"}
    for at in spec(edition("apache"), message):
        assert {(at.version, note) for note, _ in samples(at)} <= found
        assert {(at.version, note) for note in ("defaults", SMALL, "typical", "lowest", "highest")} <= found
        assert ((at.version, "unknown tags") in found) == at.flexible
        damaged = {each.damage for each in vectors(message) if each.version == at.version and each.edition == "apache"}
        assert at.encode(at.defaults()) == b"" or "prefix" in damaged or at.message == "ValueAndTimestamp"
        assert {"trailing", *(("wide-varint", "padded-varint", "tag-order") if at.flexible else ())} <= damaged or (
            at.message == "ValueAndTimestamp"
        )


def test_version_1_of_streams_records_is_there_as_1_1_1_writes_it() -> None:
    for message, tail in (("SubscriptionInfo", "userEndPoint"), ("AssignmentInfo", "partitionsByHost")):
        typical = [
            each for each in vectors(message)
            if (each.version, each.note) == (1, "typical") and each.made_by != TEXT
        ]  # fmt: skip
        exact, long = typical
        assert {"0.10.0.1", "2.0.1"} <= set(exact.written_by)
        assert set(long.written_by) == {"0.10.1.1", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.0", "1.1.1"}
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


@pytest.mark.integration
def test_one_flipped_bit_of_any_vector_is_seen() -> None:
    changed = [replace(each, hex=flipped(each.data)) for each in EVERY]
    names = sorted(lock().vectors)
    assert list(unreviewed(changed, lock())) == [f"{name}: differs from the reviewed state" for name in names]
    for each in changed:
        if each.damage is None and each.value is not None:
            assert next(check(each), ""), f"{each.name}: no decoder refuses it"


def test_every_part_of_a_vector_is_in_its_digest() -> None:
    one = vectors("JoinGroupRequest")[0]
    others: dict[str, Any] = {
        "edition": "apache@3.9.2", "message": "JoinGroupResponse", "version": 9, "note": "another", "hex": "00",
        "value": None, "made_by": "text", "outcomes": {"3.9.2": "rejected java.lang.RuntimeException"},
        "damage": "prefix", "of": "typical", "written_by": ("3.9.2",), "parts": (Part(0, 1, "a", "b", "c"),),
    }  # fmt: skip
    assert others.keys() == {each.name for each in fields(Vector)}
    assert len({one.digest, *(replace(one, **{key: other}).digest for key, other in others.items())}) == 13


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN / "vectors", tmp_path / "vectors")
    shutil.copyfile(GOLDEN / "lock.json", tmp_path / "lock.json")
    return tmp_path


def edited(root: Path, name: str) -> Iterator[dict[str, Any]]:
    path = root / "vectors" / "apache" / f"{name}.json"
    result = json.loads(path.read_text())
    yield result
    path.write_text(json.dumps(result))


def test_a_vector_that_is_gone_is_seen(copied: Path) -> None:
    for result in edited(copied, "JoinGroupRequest"):
        gone = result["vectors"].pop(7)
    assert verify(copied, messages=()) == [f"apache/JoinGroupRequest v{gone['version']} {gone['note']}: missing"]


def test_a_file_that_is_gone_is_seen(copied: Path) -> None:
    (copied / "vectors" / "apache" / "SubscriptionInfo.json").unlink()
    gone = [each for each in vectors("SubscriptionInfo") if each.edition == "apache"]
    assert len(verify(copied, messages=())) == len(gone)


def test_a_vector_nobody_reviewed_is_seen(copied: Path) -> None:
    for result in edited(copied, "ApiVersionsRequest"):
        result["vectors"].append(result["vectors"][0] | {"note": "mine"})
        result["vectors"].append(result["vectors"][0])
    assert verify(copied, messages=()) == [
        "apache/ApiVersionsRequest v0 defaults: the name is not unique",
        "apache/ApiVersionsRequest v0 mine: new, not in the lock",
    ]


@pytest.mark.integration
def test_a_wrong_expectation_is_seen_even_where_the_lock_knows_it(copied: Path) -> None:
    """Locking is no judgement: both readings still look at the bytes, and so does the lenient one."""
    for result in edited(copied, "JoinGroupRequest"):
        (typical,) = (each for each in result["vectors"] if (each["version"], each["note"]) == (5, "typical"))
        typical["value"]["memberId"] = "another"
        typical["outcomes"] = {"rejected java.lang.RuntimeException": "3.9.2", "accepted": "rest"}
    (copied / "lock.json").write_text(text.locked(copied, {}))
    reported = "\n".join(verify(copied, messages=["JoinGroupRequest"]))
    assert "the codec reads" in reported and "the construct decoder reads" in reported
    assert "3.9.2: the outcome is rejected java.lang.RuntimeException" in reported
    assert len(reported.splitlines()) == 3


@pytest.mark.integration
def test_regressions_are_under_the_lock(copied: Path) -> None:
    folder = copied / "vectors" / "regressions"
    changed, gone = sorted(folder.iterdir())[:2]
    content = json.loads(changed.read_text())
    changed.write_text(json.dumps({**content, "note": "another"}))
    gone.unlink()
    (folder / "0123456789ab.json").write_text(json.dumps(content))
    assert verify(copied, messages=()) == [
        "regressions/0123456789ab: new, not in the lock",
        f"regressions/{changed.stem}: differs from the reviewed state",
        f"regressions/{gone.stem}: missing",
    ]
    (copied / "lock.json").write_text(text.locked(copied, {}))
    assert verify(copied, messages=()) == []


def test_a_changed_field_is_one_line_per_message(copied: Path) -> None:
    for result in edited(copied, "HeartbeatRequest"):
        result["asked"] = {}
        for each in result["vectors"]:
            each["outcomes"] = {}
    found = report(copied, messages=())
    about = [line for line in found.lines() if "HeartbeatRequest" in line]
    number = len(vectors("HeartbeatRequest"))
    assert about == [
        f"apache/HeartbeatRequest: {number} differences, the first: v0 defaults: differs from the reviewed state"
    ]
    assert sum("HeartbeatRequest" in line for line in found.lines(details=True)) == number > 1


def test_a_changed_hash_of_a_jar_is_seen(copied: Path) -> None:
    """By whoever reads files, and without a jar."""
    for result in edited(copied, "JoinGroupRequest"):
        (jar,) = result["origin"]["jars"]
        result["origin"]["jars"][jar] = "0" * 64
    (reported,) = verify(copied, messages=())
    assert reported == f"apache/JoinGroupRequest: the digest of {jar} differs from the lock's"


def test_bytes_that_a_release_writes_again_must_be_what_we_read() -> None:
    """The value behind damaged bytes is not in the file: what the release writes of it stands for it."""
    (cut,) = (each for each in vectors("ApiVersionsRequest") if each.name.endswith("v3 trailing of the message, ff"))
    assert set(cut.outcomes.values()) == {"rewritten"} and list(check(cut)) == []
    other = replace(cut, outcomes={"3.9.2": "rewritten 016200"})
    assert [line.partition(": ")[2][:30] for line in check(other)] == ["3.9.2: the release writes back"]


def test_releases_are_told_apart_where_they_differ() -> None:
    """Facts of the jars that the vectors must show: limits of 4.2.2 and 4.4.0, and who gave up on memory."""
    (negative,) = (
        each for each in vectors("HeartbeatRequest")
        if (each.version, each.damage) == (4, "wide-varint") and each.note.endswith("the message, ffffffff0f")
    )  # fmt: skip
    refuse = {release for release, outcome in negative.outcomes.items() if not takes(outcome)}
    assert refuse == {"4.2.2", "4.4.0"} and "4.3.1" in negative.outcomes
    huge = [
        each for each in vectors("JoinGroupRequest") if each.version == 5 and each.note.endswith("metadata, 7fffffff")
    ]
    gave_up = {release for each in huge for release, outcome in each.outcomes.items() if outcome == "exhausts memory"}
    assert gave_up == {"2.4.1", "2.6.3", "2.8.0", "2.8.1"}
    asked = {release for each in vectors("JoinGroupRequest") if each.version == 0 for release in each.outcomes}
    assert "4.0.0" not in asked and {"3.9.2", "4.0.2"} <= asked
    (later,) = (
        each for each in vectors("SubscriptionInfo")
        if (each.version, each.note) == (11, "a later version")
    )  # fmt: skip
    words = {release: outcome.split()[0] for release, outcome in later.outcomes.items()}
    assert (words["1.1.1"], words["2.0.1"], words["4.3.1"]) == ("rejected", "future", "future")


def test_outcomes_are_grouped_and_taken_apart_again() -> None:
    asked = ("2.8.0", "2.8.2", "3.9.2", "4.4.0")
    some = {"2.8.0": "exhausts memory", "2.8.2": "accepted", "3.9.2": "accepted"}
    result = grouped(some, asked)
    assert result == {"exhausts memory": "2.8.0", UNTESTED: "4.4.0", "accepted": REST}
    assert by_release(result, asked) == some
    assert grouped(dict.fromkeys(asked, "accepted"), asked) == {"accepted": ALL}
    with pytest.raises(ValueError, match=r"4\.4\.0"):
        by_release({"accepted": "2.8.0"}, asked)


def test_bytes_without_a_value_must_be_refused() -> None:
    """Later vectors hold bytes that releases refuse, or that only some of them accept."""
    underflow = {"3.9.2": "rejected java.nio.BufferUnderflowException"}
    cut = Vector("apache", "HeartbeatRequest", 4, "cut", "0267", None, "text", underflow)
    assert list(check(cut)) == []
    whole = replace(cut, hex="026700000001026d0000")
    assert [line.partition(": ")[2].partition(" accepts")[0] for line in check(whole)][:2] == [
        "the codec", "the construct decoder",
    ]  # fmt: skip
    trailing = replace(whole, hex=whole.hex + "ff", outcomes={"3.9.2": f"rewritten {whole.hex}"})
    assert list(check(trailing)) == []
    assert len(list(check(replace(trailing, outcomes=underflow)))) == 1


def test_a_file_in_the_wrong_place_is_refused(copied: Path) -> None:
    shutil.move(copied / "vectors" / "apache" / "SubscriptionInfo.json", copied / "vectors" / "apache" / "Other.json")
    with pytest.raises(Malformed, match=r"Other\.json contains vectors of apache/SubscriptionInfo"):
        vectors(root=copied)


# -- the form of the files


def breaches(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """As much of JSON Schema as ``schema.json`` uses."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}
    yield from (
        f"{path}: {key} is no name" for key in (value if isinstance(value, dict) else ())
        if not re.search(schema.get("propertyNames", {}).get("pattern", ""), key)
    )  # fmt: skip
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


FOLDERS = sorted(path for path in (GOLDEN / "vectors").iterdir() if path.name != REGRESSIONS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_files_keep_to_the_schema(folder: Path) -> None:
    for path in folder.glob("*.json"):
        assert list(breaches(SCHEMA, json.loads(path.read_text()))) == [], path


def test_the_schema_is_one_that_others_can_use() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    judge = jsonschema.Draft202012Validator(SCHEMA)
    for name in ("apache/ApiVersionsResponse", "apache/AssignmentInfo", "kip-584/FeatureZNode"):
        assert list(judge.iter_errors(json.loads((GOLDEN / "vectors" / f"{name}.json").read_text()))) == []


def test_the_schema_explains_every_key_and_refuses_others() -> None:
    good = json.loads((GOLDEN / "vectors" / "apache" / "JoinGroupRequest.json").read_text())
    explained = [*SCHEMA["properties"]["origin"]["properties"].values()]
    explained += SCHEMA["properties"]["vectors"]["items"]["properties"].values()
    assert all(each.get("description") for each in explained)
    assert list(breaches(SCHEMA, good | {"extra": 1})) == [": extra is not known"]
    assert list(breaches(SCHEMA, good | {"origin": {"kind": "hearsay"}}))
    assert list(breaches(SCHEMA, good | {"vectors": [good["vectors"][0] | {"hex": "0"}]}))
    words = good["vectors"][0] | {"outcomes": {"rejected Tried to read too much": "3.9.2"}}
    assert list(breaches(SCHEMA, good | {"vectors": [words]}))


# -- drafts


DRAFTS = [each for each in EVERY if each.made_by == TEXT]


def test_drafts_have_vectors_and_no_jar() -> None:
    assert {each.edition for each in DRAFTS} == {"kip-268", "kip-429", "kip-584"}
    assert {each.name for each in EVERY if edition(each.edition).standing is Standing.DRAFT} == {
        each.name for each in DRAFTS
    }
    assert not any(each.outcomes or each.written_by for each in DRAFTS)
    reported = {each.message for each in DRAFTS}
    assert {"FeatureZNode", "BrokerIdZNode", "ApiVersionsResponse", "JoinGroupRequest"} <= reported
    assert all(each.edition in EDITIONS for each in DRAFTS)


@for_each(DRAFTS)
def test_every_byte_of_a_draft_is_explained(vector: Vector) -> None:
    at = 0
    for each in vector.parts:
        assert each.offset == at and each.size > 0 and each.why, each
        assert each.clause in requirements(), each
        at += each.size
    assert at == len(vector.data)


def test_a_draft_with_a_flipped_bit_or_another_value_is_seen() -> None:
    for each in DRAFTS:
        if each.value is not None:
            assert list(check(replace(each, value={**each.value, next(iter(each.value)): "another"}))), each.name
            with pytest.raises(Refused):
                each.layout.decode(each.data[:-1])


# -- making


def test_without_jars_making_says_so_with_a_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(wanted: object) -> None:
        raise Unavailable("no jar")

    monkeypatch.setattr(making, "java_judge", missing)
    assert making.main(["--check"]) == 3


def test_the_report_counts_what_there_is() -> None:
    reported = report(messages=())
    assert list(reported.lines())[-1] == f"{len(reported.vectors)} vectors, 0 wrong"
    assert any(line.startswith("kip-584: ") and "from a text" in line for line in reported.lines())


# -- with the jars


@pytest.mark.jars
def test_the_oracles_make_of_every_vector_what_it_says(judge: JavaCodec) -> None:
    """Without the other releases; all of them are asked where all vectors are made again."""
    compared = Counter[str]()
    for message in ALL_MESSAGES:
        among = STREAMS_JARS if part(message) == "streams" else CLIENTS
        result = [each for each in vectors(message) if each.made_by != TEXT]
        for before, after in zip(result, making.with_outcomes(judge, result, among), strict=True):
            reported = {release: each for release, each in before.outcomes.items() if release in among}
            assert after.outcomes == reported, before.name
            compared.update(each.split()[0] for each in reported.values())
    assert min(compared[word] for word in ("accepted", "rewritten", "rejected")) > 2000, compared


@pytest.mark.jars
@pytest.mark.all_jars
def test_the_jars_make_all_vectors_again() -> None:
    assert making.make(check=True) == []


@pytest.mark.jars
@pytest.mark.all_jars
def test_making_mends_what_was_changed(copied: Path) -> None:
    for result in edited(copied, "ApiVersionsRequest"):
        result["vectors"][0]["hex"] += "00"
    (copied / "vectors" / "apache@1.1.1" / "SubscriptionInfo.json").unlink()
    changed = [
        "vectors/apache/ApiVersionsRequest.json: v0 defaults: changed hex",
        "vectors/apache@1.1.1/SubscriptionInfo.json is new",
    ]
    wanted = ("ApiVersionsRequest", "SubscriptionInfo")
    assert making.make(check=True, root=copied, only=wanted) == changed
    assert making.make(root=copied, only=wanted) == changed
    assert making.make(check=True, root=copied, only=wanted) == []
    assert verify(copied, messages=()) == []
