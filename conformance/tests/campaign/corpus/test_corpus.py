"""The corpus of a campaign: values as text, what of it is enough, its files, and what people do with it."""

import gzip
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kipcheck.conformance.campaign.corpus import snapshots
from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot, grown
from kipcheck.conformance.campaign.corpus.export import exported
from kipcheck.conformance.campaign.corpus.minimise import cover
from kipcheck.conformance.campaign.corpus.value_text import loaded, plain_text, value_of
from kipcheck.conformance.campaign.report import row_files
from kipcheck.conformance.campaign.rows import Kept, Row
from kipcheck.conformance.cli import main
from kipcheck.conformance.core.files.output_folder import LIST
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.engine.export.input_files import INDEX
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire import layout

# ---- values as text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ([True, 1, 1.0, -0.0, 2**70], "[true,1,1.0,-0.0,1180591620717411303424]"),
        (b"\x00\xff", '{"$bytes":"00ff"}'),
        ([b""], '[{"$bytes":""}]'),
        (UUID(int=1), '{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
        ({"b": "é\ud800", "a": []}, '{"b":"\\u00e9\\ud800","a":[]}'),
        ({"$bytes": "00"}, '{"$object":{"$bytes":"00"}}'),
        ({"$object": {"$x": b"a"}}, '{"$object":{"$object":{"$object":{"$x":{"$bytes":"61"}}}}}'),
        ({}, "{}"),
    ],
)
def test_values_go_there_and_back(value: Any, text: str) -> None:
    assert plain_text(value) == text
    back = loaded(text)
    assert repr(back) == repr(value), "another type, or another order"


@pytest.mark.parametrize("value", [math.nan, math.inf, (1,), {1: 2}, {1}, object(), [(b"",)]])
def test_what_no_node_declares_has_no_text(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        plain_text(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"$bytes":"0"}',
        '{"$bytes":1}',
        '{"$uuid":"1"}',
        '{"$none":1}',
        '{"$bytes":"00","a":1}',
        "[" * 5000,
        "\ud800",
    ],
)
def test_what_is_no_text_of_a_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        loaded(text)


def test_a_value_that_is_no_longer_declared_is_told_with_the_place() -> None:
    check = CHECKS["wire/round-trip"]
    node = check.declaration(check.family.subject("apache", "HeartbeatRequest", 4))
    with pytest.raises(ValueError, match=r"the fields groupId, .* are wanted"):
        value_of(node, "{}")


@for_each([id for id, check in CHECKS.items() if check.values])
def test_what_checks_draw_goes_there_and_back(id: str) -> None:
    check = CHECKS[id]
    subjects = [each for each in check.family.subjects("apache") if check.about(each)]
    for subject in subjects[::149]:
        value = (check.draw or check.family.draw)(subject, Random(f"{id}/{subject.name}"))
        node = check.declaration(subject)
        assert value_of(node, plain_text(value)) == value


def test_what_a_check_begins_with_may_be_more_than_it_declares_and_is_kept_as_it_is() -> None:
    check = CHECKS["bounce/upgrade"]
    subject = next(each for each in check.family.subjects("apache") if check.about(each))
    node, strange = check.declaration(subject), 0
    for first in check.first:
        value = first(subject)
        text = plain_text(value)
        assert loaded(text) == value
        try:
            value_of(node, text)
        except ValueError:
            strange += 1
    assert strange, "then a failure needs no other way back than a corpus"


# ---- what is enough


def entry(name: str, keys: set[int], steps: int = 1) -> Kept:
    return Kept("group/errors", "apache", "group", None, json.dumps(name), tuple(sorted(keys)), steps)


def names(snapshot: Snapshot) -> list[str]:
    return [json.loads(each.value) for each in snapshot.entries]


def row(shard: int, *kept: Kept, round_: int = 0, **more: Any) -> Row:
    coverage = tuple(sorted({key for each in kept for key in each.keys}))
    made = Row("c", round_, shard, "hold", "t", "1", "mixed", 0, 9, "", "done", coverage=coverage, kept=kept)
    return replace(made, **more).sealed()


@pytest.mark.parametrize(
    ("entries", "chosen"),
    [
        ([], []),
        ([entry("a", set())], []),
        ([entry("a", {1, 2, 3}, 9), entry("b", {1, 2}, 1), entry("c", {3}, 1)], [1, 2]),
        ([entry("a", {1, 2, 3, 4}, 2), entry("b", {1, 2}, 1), entry("c", {3, 4}, 1)], [0]),
        ([entry("aaa", {1}), entry("a", {1}), entry("b", {1})], [1]),
        # The first shows most for a step, and is not needed when both of the others are there.
        ([entry("a", {1, 2}), entry("b", {1, 3, 4}, 2), entry("c", {2, 5, 6}, 2)], [1, 2]),
    ],
)
def test_the_shortest_that_show_everything_are_chosen(entries: list[Kept], chosen: list[int]) -> None:
    assert cover(entries) == chosen


def test_whatever_there_is_nothing_is_missing_and_nothing_too_much() -> None:
    rng = Random(3)
    for _ in range(60):
        entries = [
            entry(str(number), {rng.randrange(20) for _ in range(rng.randint(0, 6))}, rng.randint(1, 9))
            for number in range(rng.randint(0, 15))
        ]
        chosen = cover(entries)
        assert chosen == sorted(chosen)
        shown = {key for index in chosen for key in entries[index].keys}
        assert shown == {key for each in entries for key in each.keys}
        for left_out in chosen:
            assert shown != {key for index in chosen if index != left_out for key in entries[index].keys}


def test_there_is_an_end_to_what_is_chosen() -> None:
    entries = [entry(f"{number:03}", {number}) for number in range(50)]
    assert len(cover(entries, most=7)) == 7
    assert cover(entries, most_text=33) == list(range(6))
    assert cover([entry("long" * 9, {1}), entry("short", {2}, 5)], most_text=10) == [1]


def test_a_corpus_grows_the_same_way_whatever_comes_first() -> None:
    old = Snapshot((entry("old", {1}), entry("needed", {9})), frozenset({1, 9, 77}))
    rows = [row(1, entry("b", {1, 2, 3})), row(0, entry("a", {4, 5}), entry("none", {4})), row(2)]
    found = grown(old, rows)
    assert names(found) == ["needed", "a", "b"], "the oldest first, then shard by shard"
    assert found.keys == {1, 2, 3, 4, 5, 9, 77}
    assert grown(old, reversed(rows)) == found and grown(old, reversed(rows)).digest == found.digest
    assert grown(found, rows) == found
    assert grown(old, []).keys == old.keys


def test_the_same_value_of_two_shards_has_the_keys_of_both() -> None:
    found = grown(Snapshot.empty(), [row(0, entry("a", {1}, 2)), row(1, entry("a", {2}, 3))])
    assert found.entries == (entry("a", {1, 2}, 3),)


def test_what_is_another_thing_every_time_has_no_say_in_what_others_begin_with() -> None:
    steady, loose = row(0, entry("a", {1})), row(1, entry("b", {2}), deterministic=False)
    assert grown(Snapshot.empty(), [steady, loose]) == grown(Snapshot.empty(), [steady])
    assert names(grown(Snapshot.empty(), [loose])) == ["b"]


def test_thousands_of_entries_of_four_shards_become_hundreds() -> None:
    rng = Random(7)
    rows = []
    for shard in range(4):
        keys = [{int(3450 * rng.random() ** 3) for _ in range(2 * rng.randint(3, 60))} for _ in range(875)]
        rows.append(row(shard, *(entry(f"{shard}/{n}", each, len(each)) for n, each in enumerate(keys))))
    found = grown(Snapshot.empty(), rows)
    assert sum(len(each.kept) for each in rows) == 3500
    assert 100 < len(found.entries) < 900
    assert {key for each in found.entries for key in each.keys} == found.keys


# ---- bytes

SOME = Snapshot((entry("a", {1, 1 << 62}, 3), entry("é", {2})), frozenset({1, 2, 5, 1 << 62}))


def test_a_snapshot_comes_back_and_its_digest_is_the_same_in_every_process() -> None:
    assert Snapshot.load(SOME.dump()) == SOME
    assert SOME.digest == "f6263343dad689c6"
    assert Snapshot.load(Snapshot.empty().dump()) == Snapshot.empty()
    assert Snapshot.empty().digest == ""
    assert replace(SOME, entries=SOME.entries[::-1]).digest != SOME.digest
    assert replace(SOME, keys=frozenset({1})).digest != SOME.digest
    assert SOME.dump() == replace(SOME).dump()


def spoilt(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def rewritten(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        text = gzip.decompress(data)
        assert old in text
        return gzip.compress(text.replace(old, new, 1))

    return damage


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: b"",
    "garbage": lambda data: b"garbage",
    "cut off": lambda data: data[:-20],
    "cut by a byte": lambda data: data[:-1],
    "a bit in its middle": spoilt(60),
    "a bit of its checksum": spoilt(-6),
    "another key": rewritten(b'"keys":[2]', b'"keys":[3]'),
    "another value": rewritten(b'"value":"\\"a', b'"value":"\\"b'),
    "a line less": lambda data: gzip.compress(b"".join(gzip.decompress(data).splitlines(keepends=True)[:-1])),
    "another format": rewritten(b'"format":1', b'"format":2'),
    "a key that is no integer": rewritten(b'"keys":[1,2,5', b'"keys":["1",2,5'),
    "no JSON": lambda data: gzip.compress(b"no JSON"),
    "no header": lambda data: gzip.compress(b"[]\n"),
    "no text": lambda data: gzip.compress(b"\xff\n"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_bytes_are_no_snapshot(kind: str) -> None:
    with pytest.raises(Damaged) as why:
        Snapshot.load(DAMAGES[kind](SOME.dump()))
    assert str(why.value)


# ---- files


@pytest.fixture
def campaign(tmp_path: Path) -> list[Snapshot]:
    """Three rounds, with all their files: what each begins with, and what the next would."""
    found = [SOME]
    snapshots.save(tmp_path, SOME)
    for round_ in range(3):
        rows = [
            row(shard, entry(f"{round_}/{shard}", {100 * round_ + shard}), round_=round_, corpus=found[-1].digest)
            for shard in range(2)
        ]
        row_files.write(tmp_path, round_, 0, rows)
        found.append(grown(found[-1], rows))
        snapshots.save(tmp_path, found[-1])
    return found


def test_snapshots_are_found_by_their_digest(tmp_path: Path, campaign: list[Snapshot]) -> None:
    shelf = snapshots.snapshot_store(tmp_path)
    assert [shelf.snapshot(each.digest) for each in campaign] == campaign
    assert shelf.snapshot("") == Snapshot.empty()
    assert shelf.latest() == campaign[-1]
    assert (tmp_path / "corpus" / f"{SOME.digest}.jsonl.gz").is_file()
    assert shelf.set_aside == []


@pytest.mark.parametrize("kind", ["nothing", "garbage", "cut off", "another format"])
def test_a_damaged_snapshot_is_set_aside_and_made_again_of_the_rows(
    tmp_path: Path, campaign: list[Snapshot], kind: str
) -> None:
    path = snapshots.snapshot_path(tmp_path, campaign[2].digest)
    spoilt = DAMAGES[kind](path.read_bytes())
    path.write_bytes(spoilt)
    shelf = snapshots.snapshot_store(tmp_path)
    assert shelf.snapshot(campaign[2].digest) == campaign[2]
    (aside,) = shelf.set_aside
    assert aside.path == path and aside.now is not None and aside.now.read_bytes() == spoilt
    assert Snapshot.load(path.read_bytes()) == campaign[2], "it is not there again"
    assert snapshots.snapshot_store(tmp_path).latest() == campaign[-1]


def test_all_but_what_came_from_elsewhere_can_be_made_again(tmp_path: Path, campaign: list[Snapshot]) -> None:
    for each in campaign[1:]:
        snapshots.snapshot_path(tmp_path, each.digest).write_bytes(b"garbage")
    shelf = snapshots.snapshot_store(tmp_path)
    assert (shelf.latest(), shelf.snapshot(campaign[2].digest)) == (campaign[-1], campaign[2])
    snapshots.snapshot_path(tmp_path, SOME.digest).unlink()
    with pytest.raises(snapshots.SnapshotMissing, match=f"{SOME.digest}.jsonl.gz is missing, and there are no rows"):
        snapshots.snapshot_store(tmp_path).snapshot(SOME.digest)


def test_whoever_goes_on_with_a_campaign_is_told_which_are_damaged(tmp_path: Path, campaign: list[Snapshot]) -> None:
    assert snapshots.set_aside_damaged(tmp_path) == []
    path = snapshots.snapshot_path(tmp_path, campaign[1].digest)
    path.write_bytes(b"garbage")
    assert [each.path for each in snapshots.set_aside_damaged(tmp_path)] == [path]
    assert snapshots.set_aside_damaged(tmp_path) == []
    assert snapshots.set_aside_damaged(tmp_path / "none") == []


def test_rows_that_make_another_snapshot_are_not_taken_for_it(tmp_path: Path) -> None:
    row_files.write(tmp_path, 0, 0, [row(0, entry("a", {1}))])
    row_files.write(tmp_path, 1, 0, [row(0, round_=1, corpus="0123456789abcdef")])
    other = grown(Snapshot.empty(), [row(0, entry("a", {1}))]).digest
    with pytest.raises(snapshots.SnapshotMissing, match=f"the rows lead to another one, {other}"):
        snapshots.snapshot_store(tmp_path).latest()


def test_a_corpus_without_a_ledger_is_the_newest_or_all_there_is(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="has neither a corpus nor a ledger"):
        snapshots.snapshot_store(tmp_path)
    one, two = Snapshot((entry("a", {1}),), frozenset({1})), Snapshot((entry("b", {2}),), frozenset({2}))
    snapshots.save(tmp_path, one)
    newest = snapshots.save(tmp_path, two)
    assert snapshots.snapshot_store(tmp_path).latest() == two
    newest.write_bytes(b"")
    shelf = snapshots.snapshot_store(tmp_path)
    assert shelf.latest() == one
    assert [each.path for each in shelf.set_aside] == [newest]
    snapshots.save(tmp_path, two)
    (tmp_path / "corpus" / snapshots.LATEST).write_bytes(b"\xff")
    both = snapshots.snapshot_store(tmp_path).latest()
    assert (set(names(both)), both.keys) == ({"a", "b"}, frozenset({1, 2}))


# ---- what people do with it


def real(id: str, subject: str, version: int | None, seed: int = 0, keys: tuple[int, ...] = (1,)) -> Kept:
    check = CHECKS[id]
    about = check.family.subject("apache", subject, version)
    value = (check.draw or check.family.draw)(about, Random(seed))
    return Kept(id, "apache", subject, version, plain_text(value), keys, 2)


@pytest.fixture(scope="module")
def entries() -> tuple[Kept, ...]:
    return (
        real("wire/round-trip", "HeartbeatRequest", 4, keys=(1,)),
        real("wire/damage", "HeartbeatResponse", 4, keys=(2,)),
        real("nodes/round-trip", "FeatureZNode", 2, keys=(3,)),
        real("group/errors", "group", None, keys=(4, 5)),
        real("assign/one-round", "range", None, keys=(6,)),
        Kept("wire/none", "apache", "M", 1, "{}", (7,), 1),
    )


@pytest.fixture
def folder(tmp_path: Path, entries: tuple[Kept, ...]) -> Path:
    snapshots.save(tmp_path / "one", Snapshot(entries, frozenset(range(1, 8))))
    return tmp_path / "one"


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main.run(["corpus", *map(str, arguments), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found: dict[str, Any] = json.loads(printed.out)
    return found


def test_info_tells_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = asked(capsys, "info", folder)
    assert (printed["entries"], printed["steps"], printed["keys"], printed["unreadable"]) == (6, 11, 7, 1)
    assert printed["checks"][1] == {"check": "group/errors", "entries": 1, "steps": 2, "subjects": 1}
    assert printed["snapshots"] == [str(snapshots.snapshot_path(folder, printed["digest"]))]
    assert printed["damaged"] == []
    assert main.run(["corpus", "info", str(folder)]) == 0
    first, stale, head, *lines = capsys.readouterr().out.splitlines()
    assert first == f"{printed['digest']}: 6 entries of 11 steps, 7 coverage keys"
    assert stale.startswith("1 entries are no longer declared")
    assert head.split() == ["check", "entries", "steps", "subjects"]
    assert [line.split() for line in lines][1] == ["group/errors", "1", "2", "1"]


def test_damaged_files_are_named_on_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = snapshots.snapshot_store(folder).files()
    path.write_bytes(b"")
    assert main.run(["corpus", "info", str(folder), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(f"kipcheck: {path} is damaged (")
    assert [each["file"] for each in json.loads(printed.out)["damaged"]] == [str(path)]


def test_merge_is_what_all_have_less_what_is_needed_no_more(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = real("group/errors", "group", None, seed=1, keys=(4, 5, 8))
    row_files.write(tmp_path / "two", 0, 0, [row(0, more)])
    printed = asked(capsys, "merge", folder, tmp_path / "two", "--out", tmp_path / "three")
    assert (printed["entries"], printed["keys"]) == (6, 8)
    assert [each["entries"] for each in printed["from"]] == [6, 1]
    found = snapshots.snapshot_store(tmp_path / "three").latest()
    assert (found.digest, found.entries[-1]) == (printed["digest"], more)
    assert Path(printed["file"]) == snapshots.snapshot_path(tmp_path / "three", found.digest)
    assert main.run(["corpus", "merge", str(folder), "--out", str(tmp_path / "four")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{folder}: 6 entries of 11 steps, 7 coverage keys"


def test_minimise_leaves_out_what_is_not_declared(
    folder: Path, capsys: pytest.CaptureFixture[str], entries: tuple[Kept, ...]
) -> None:
    printed = asked(capsys, "minimise", folder)
    assert (printed["before"], printed["entries"], printed["unreadable"]) == ({"entries": 6, "steps": 11}, 5, 1)
    assert snapshots.snapshot_store(folder).files() == [snapshots.snapshot_path(folder, printed["digest"])]
    assert snapshots.snapshot_store(folder).latest().entries == entries[:-1]


def test_minimise_can_hold_everything_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], entries: tuple[Kept, ...]
) -> None:
    one, two, codecs = tmp_path / "one", tmp_path / "two", entries[:3]
    snapshots.save(one, Snapshot(codecs, frozenset({1, 2, 3, 99})))
    printed = asked(capsys, "minimise", one, "--target", "reference", "--out", two)
    found = snapshots.snapshot_store(two).latest()
    assert [each.id for each in found.entries] == [each.id for each in codecs]
    assert all(each.keys != before.keys for each, before in zip(found.entries, codecs, strict=True))
    assert printed["keys"] == len(found.keys) == len({key for each in found.entries for key in each.keys})
    assert snapshots.snapshot_store(one).latest().entries == codecs, "it was not to be touched"


def test_minimise_leaves_alone_what_a_ledger_speaks_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row_files.write(tmp_path, 0, 0, [row(0)])
    assert main.run(["corpus", "minimise", str(tmp_path)]) == 2
    assert "name another folder with --out" in capsys.readouterr().err


def inputs_in(out: Path) -> dict[str, bytes]:
    """By their paths, with the index."""
    files = (path for path in out.rglob("*") if path.is_file() and path.name != LIST)
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def test_export_has_one_file_for_each_input(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], entries: tuple[Kept, ...]
) -> None:
    out = tmp_path / "out"
    printed = asked(capsys, "export", folder, "--out", out)
    files = inputs_in(out)
    index = dict(line.split("\t") for line in files.pop(INDEX).decode().splitlines())
    assert index.keys() == files.keys() and len(files) == printed["inputs"]
    assert (printed["entries"], printed["unreadable"]) == (5, 1)
    assert {origin.split(", ")[1] for origin in index.values()} == {each.id for each in entries[:-1]}
    for path, data in files.items():
        if path.endswith(".json"):
            assert Case.of(json.loads(data)).check == path.rpartition("/")[0]
    whole = [path for path in files if path.startswith("HeartbeatRequest/v4/")]
    assert {layout("apache", "HeartbeatRequest", 4).decode(files[path])["groupId"] for path in whole}
    assert any(path.startswith("HeartbeatResponse/v4/") for path in files)
    assert any(json.loads(data) for path, data in files.items() if path.startswith("FeatureZNode/v2/"))
    assert {path.split("/")[0] for path in files if path.endswith(".json")} == {"group", "assign"}


def test_export_takes_some_checks_and_gives_the_same_files_each_time(folder: Path, tmp_path: Path) -> None:
    found = []
    for out in (tmp_path / "two", tmp_path / "three"):
        assert main.run(["corpus", "export", str(folder), "--out", str(out), "--check", "wire/*"]) == 0
        found.append(inputs_in(out))
    one, two = found
    assert one == two
    assert {path.partition("/")[0] for path in one} == {"HeartbeatRequest", "HeartbeatResponse", INDEX}


def test_a_conversation_that_was_kept_is_the_one_that_is_exported(entries: tuple[Kept, ...]) -> None:
    (printed,) = exported([entries[3]])
    assert Case.of(json.loads(printed.data)).data == loaded(entries[3].value)


@pytest.mark.parametrize("command", ["info", "merge", "minimise", "export"])
def test_where_there_is_no_corpus_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    more = ["--out", str(tmp_path / "out")] if command != "info" else []
    assert main.run(["corpus", command, str(tmp_path), *more]) == 2
    assert capsys.readouterr().err == f"kipcheck: {tmp_path} has neither a corpus nor a ledger of a campaign\n"
    assert not (tmp_path / "out").exists()


def test_where_nothing_can_be_written_is_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    for command in ("merge", "minimise", "export"):
        assert main.run(["corpus", command, str(folder), "--out", str(tmp_path / "file" / "x")]) == 2
        assert "cannot be written: a file is in the place of a folder" in capsys.readouterr().err


def test_a_target_that_is_not_there_is_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for target, code in (("no-such", 2), ("cmd:/no/such/program", 3)):
        out = str(tmp_path / "out")
        assert main.run(["corpus", "minimise", str(folder), "--target", target, "--out", out]) == code
        assert capsys.readouterr().err.startswith("kipcheck: ")
        assert not Path(out).exists()
