"""The ledger of a campaign: it gives back what it was given, whatever stops a writer or damages a file."""

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.campaign import files
from kipcheck.conformance.campaign.report import arrow, row_files
from kipcheck.conformance.campaign.rows import Count, Found, Kept, Key, Row
from kipcheck.conformance.core.files.output_folder import LIST
from kipcheck.conformance.tests.support.without_arrow import without_arrow

FORMS = ("parquet", "jsonl")


def row(shard: int, round_: int = 0, **more: Any) -> Row:
    """With something in every field, and of its own in most."""
    rng = Random(f"{round_}/{shard}")
    kept = Kept("wire/damage", "apache", "M", 3, f'{{"a":{{"$bytes":"{rng.randbytes(9).hex()}"}}}}', (5, 1 << 62), 4)
    found = Found(
        check="group/errors", invariant="group/agrees", edition="apache", subject="group", shape=("died", "é"),
        why=f"no answer to step {shard}", case_id=f"{shard:016x}", case='{"steps":[]}', place=("group", None),
        value="[]", seed=1 << 60, number=7, kind="", cases=2, at_case=shard, where=(("group", None), ("m", 4)),
        line="{}",
    )  # fmt: skip
    counts = tuple(Count("wire/damage", "M", version, "wire/reads", "PASS", shard) for version in (None, 0, 3))
    made = Row(
        "c", round_, shard, "hold", "reference", "1", "mixed", 5, 250, "0123456789abcdef", "done", cases=250, steps=900,
        counts=counts, coverage=(shard, 1 << 61), kept=(kept,), found=(found,), troubles=("it died", ""),
        breaches=("said 𝄞",), unreached="gone", at_case=3, case="{}", detail="so", attempt=1, host="h", python="3.11.2",
        wall_ms=12, cpu_ms=11, started="2026-11-22T01:00:00Z",
    )  # fmt: skip
    return replace(made, **more).sealed()


def by_key(*rows: Row) -> dict[Key, Row]:
    return {each.key: each for each in rows}


def written(form: str, folder: Path, *rows: Row, round_: int = 0, wave: int = 0) -> Path:
    if form == "parquet":
        return row_files.write(folder, round_, wave, rows)
    with without_arrow():
        return row_files.write(folder, round_, wave, rows)


# ---- what goes in comes out


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_back_as_they_went(tmp_path: Path, form: str) -> None:
    bare = Row("c", 0, 9, "reduce", "t", "", "mixed", 0, 0, "", "infra").sealed()
    assert all(getattr(row(1), each.name) != getattr(bare, each.name) for each in fields(Row) if each.name not in SAME)
    path = written(form, tmp_path, row(1), bare)
    assert path == tmp_path / "ledger" / "round=0" / f"wave-0.{form}"
    result = row_files.read(tmp_path)
    assert result.rows == by_key(row(1), bare)
    assert (result.clashes, result.set_aside) == ([], [])
    assert sorted(tmp_path.rglob("*.*")) == [tmp_path / LIST, path], "something is left beside it"


def test_a_row_is_plain_data_and_its_digest_the_same_in_every_process() -> None:
    assert row(1).plain == json.loads(json.dumps(asdict(row(1))))
    assert Row.of(json.loads(json.dumps(row(1).plain))) == row(1)
    assert row(1).digest == "9d1d1db381da94e1"


SAME = {"campaign", "round", "deterministic", "engine"}


def test_the_hash_is_the_same_in_either_form_and_in_any_order(tmp_path: Path) -> None:
    rows = [row(shard, round_) for round_ in range(3) for shard in range(4)]
    hashes = set()
    for number, form in enumerate(FORMS):
        for order in (rows, rows[::-1]):
            folder = tmp_path / f"{number}{order is rows}"
            for wave, at in enumerate(range(0, len(order), 5)):
                written(form, folder, *order[at : at + 5], round_=0, wave=wave)
            result = row_files.read(folder)
            assert list(result.rows) == sorted(by_key(*rows))
            hashes.add(result.hash)
    assert len(hashes) == 1
    written("jsonl", tmp_path / "0True", replace(row(7, 7), cases=1).sealed(), round_=7)
    assert row_files.read(tmp_path / "0True").hash not in hashes


def test_rows_are_plain_columns_for_others(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    row_files.write(tmp_path, 0, 0, [row(0)])
    row_files.write(tmp_path, 1, 0, [replace(row(1, 1), counts=(), kept=(), found=()).sealed()])
    table = pq.read_table(tmp_path / "ledger", partitioning=None)  # the rounds in the names are in the rows too
    assert table.column_names == [each.name for each in fields(Row)]
    assert table["round"].to_pylist() == [0, 1]
    assert table["found"].to_pylist()[0][0]["where"] == [
        {"subject": "group", "version": None},
        {"subject": "m", "version": 4},
    ]
    assert table.schema.equals(arrow.SCHEMA), "an empty list has another type"


@pytest.mark.parametrize("form", FORMS)
def test_words_of_a_target_that_have_no_utf_8_are_kept_as_escapes(tmp_path: Path, form: str) -> None:
    strange = row(0, target_version="1\ud800", troubles=("\udcff",))
    written(form, tmp_path, strange)
    (kept,) = row_files.read(tmp_path).rows.values()
    assert (kept.target_version, kept.troubles) == ("1\\ud800", ("\\udcff",))
    assert kept == row_files.storable(strange) == row_files.storable(kept) == kept.sealed()
    assert row_files.storable(row(0)) is not None and row_files.storable(row(0)) == row(0)


def test_a_wave_is_never_written_over(tmp_path: Path) -> None:
    paths = [written(form, tmp_path, row(shard), wave=2) for shard, form in enumerate(("parquet", "jsonl", "parquet"))]
    assert [path.name for path in paths] == ["wave-2.parquet", "wave-3.jsonl", "wave-4.parquet"]
    assert row_files.read(tmp_path).rows == by_key(row(0), row(1), row(2))
    assert (row_files.next_wave(tmp_path, 0), row_files.next_wave(tmp_path, 1)) == (5, 0)


def test_of_nothing_there_is_nothing(tmp_path: Path) -> None:
    assert row_files.read(tmp_path / "none") == row_files.LedgerContents({}, [], [])
    row_files.write(tmp_path, 0, 0, [])
    assert row_files.read(tmp_path).rows == {}


# ---- several rows of one shard


def test_the_same_outcome_twice_counts_once(tmp_path: Path) -> None:
    again = replace(row(0), host="other", attempt=2)
    for wave, each in enumerate((row(0), again)):
        row_files.write(tmp_path, 0, wave, [each, row(1)])
    assert row_files.read(tmp_path) == row_files.LedgerContents(by_key(row(0), row(1)), [], [])


def test_two_outcomes_of_one_shard_are_a_clash_that_names_the_files(tmp_path: Path) -> None:
    one, other, third = row(0), row(0, cases=249), row(0, cases=248)
    paths = [row_files.write(tmp_path, 0, 0, [each]) for each in (one, other, one, third)]
    result = row_files.read(tmp_path)
    assert result.rows == by_key(one)
    (clash,) = result.clashes
    digests = one.digest, other.digest, third.digest
    assert clash == row_files.Clash(one.key, digests, (paths[0], paths[1], paths[3]), one.target)
    assert str(clash).startswith("shard 0 of round 0 has several results: ")
    assert all(f"{each.digest} in {path}" in str(clash) for each, path in ((one, paths[0]), (other, paths[1])))


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        ({"status": "lost"}, {}, 1),
        ({"status": "unlike"}, {}, 1),
        ({}, {"status": "lost"}, 0),
        ({"status": "infra"}, {}, 1),
        ({}, {"status": "infra"}, 0),
        ({"status": "lost"}, {"status": "infra"}, 1),
        ({"deterministic": False}, {"deterministic": False, "cases": 1}, 0),
    ],
)
def test_what_is_no_outcome_of_the_shard_gives_way(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], counts: int
) -> None:
    both = row(0, **first), row(0, **second)
    for each in both:
        row_files.write(tmp_path, 0, 0, [each])
    result = row_files.read(tmp_path)
    assert (result.rows, result.clashes) == (by_key(both[counts]), [])


def test_only_what_came_to_an_end_and_is_the_same_every_time_is_in_the_hash(tmp_path: Path) -> None:
    row_files.write(tmp_path, 0, 0, [row(0)])
    alone = row_files.read(tmp_path)
    row_files.write(tmp_path, 0, 1, [row(1, status="lost"), row(2, deterministic=False)])
    result = row_files.read(tmp_path)
    assert result.hash == alone.hash
    assert result.ended == {row(0).key, row(2).key}


# ---- damaged files

WHOLE = [row(shard) for shard in range(3 * arrow.GROUP)]


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A wave of several groups in either form."""
    folder = tmp_path_factory.mktemp("waves")
    return {form: written(form, folder / form, *WHOLE).read_bytes() for form in FORMS}


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def a_page_spoilt(data: bytes) -> bytes:
    """In the middle of what comes before the footer."""
    at = (len(data) - int.from_bytes(data[-8:-4], "little")) // 2
    return data[:at] + bytes(16) + data[at + 16 :]


def last_line_missing(data: bytes) -> bytes:
    return data[: data.rindex(b"\n", 0, -1) + 1]


def one_word_changed(data: bytes) -> bytes:
    assert data.count(b'"why":"no answer to step 5"') == 1
    return data.replace(b'"why":"no answer to step 5"', b'"why":"no answer to step 6"')


@pytest.mark.parametrize(
    ("form", "damage", "why", "saved"),
    [
        ("parquet", cut, "", 0),
        ("parquet", lambda data: b"", "", 0),
        ("parquet", lambda data: b"no parquet at all" * 99, "", 0),
        ("parquet", lambda data: data[:-1], "", 0),
        ("parquet", a_page_spoilt, f"{arrow.GROUP} rows cannot be read", 2 * arrow.GROUP),
        ("jsonl", cut, "line ", len(WHOLE) // 2),
        ("jsonl", lambda data: b"", "Expecting value", 0),
        ("jsonl", lambda data: b"\xff" + data, "", 0),
        ("jsonl", lambda data: data.replace(b'"format":1', b'"format":9', 1), "not a ledger of format 1", 0),
        ("jsonl", last_line_missing, f"it has {len(WHOLE) - 1} of {len(WHOLE)} rows", len(WHOLE) - 1),
        ("jsonl", one_word_changed, "the checksum of line 7 does not match", len(WHOLE) - 1),
    ],
)
def test_a_damaged_file_is_named_and_set_aside_and_nothing_else_is_lost(
    tmp_path: Path, waves: dict[str, bytes], form: str, damage: Callable[[bytes], bytes], why: str, saved: int
) -> None:
    row_files.write(tmp_path, 0, 0, [row(900)])
    path = tmp_path / "ledger" / "round=0" / f"wave-1.{form}"
    spoilt = damage(waves[form])
    path.write_bytes(spoilt)
    row_files.write(tmp_path, 0, 2, [row(901)])

    result = row_files.read(tmp_path)
    (aside,) = result.set_aside
    assert (aside.path, aside.now, aside.saved) == (path, path.with_name(f"{path.name}.damaged"), saved)
    assert why in aside.why and aside.why
    assert str(aside).startswith(f"{path} is damaged (") and aside.now is not None and aside.now.name in str(aside)
    assert not path.exists() and aside.now.read_bytes() == spoilt
    assert len(result.rows) == 2 + saved
    assert result.rows.items() <= by_key(*WHOLE, row(900), row(901)).items()

    again = row_files.read(tmp_path)
    assert (again.rows, again.set_aside) == (result.rows, []), "it was met twice, or what was saved is gone"


def test_a_row_whose_digest_does_not_fit_is_left_out_and_the_others_of_its_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "ledger" / "round=0" / "wave-0.parquet"
    files.put(path, arrow.parquet_of([row(0), replace(row(1), cases=7), row(2)]))
    result = row_files.read(tmp_path)
    assert result.rows == by_key(row(0), row(2))
    assert [each.why for each in result.set_aside] == ["the digest of shard 1 does not match"]
    assert row_files.read(tmp_path) == row_files.LedgerContents(by_key(row(0), row(2)), [], [])


def test_columns_of_another_day_are_no_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = row_files.write(tmp_path, 0, 0, [row(0)])
    pq.write_table(pq.ParquetFile(path).read().rename_columns(["x", *arrow.SCHEMA.names[1:]]), path)
    result = row_files.read(tmp_path)
    assert not result.rows and len(result.set_aside) == 1
    assert result.set_aside[0].why.startswith("invalid row: unknown field x: the fields are campaign, round, ")


@pytest.mark.parametrize("form", FORMS)
def test_wherever_a_bit_flips_no_row_is_another_one(tmp_path: Path, waves: dict[str, bytes], form: str) -> None:
    rows, rng, named = by_key(*WHOLE), Random(1), 0
    path = tmp_path / "ledger" / "round=0" / f"wave-0.{form}"
    path.parent.mkdir(parents=True)
    for _ in range(6):
        data = bytearray(waves[form])
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        result = row_files.read(tmp_path)
        assert result.rows.items() <= rows.items()
        assert result.rows == rows or result.set_aside
        named += bool(result.set_aside)
        for each in path.parent.iterdir():
            each.unlink()
    assert named > 2, "hardly any flip did harm: are they in the file at all?"


def test_what_cannot_be_moved_is_named_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = row_files.write(tmp_path, 0, 0, [row(0)])
    path.write_bytes(b"")

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", denied)
    (aside,) = row_files.read(tmp_path).set_aside
    assert aside.now is None and path.exists()
    assert str(aside).endswith("not set aside, because files cannot be moved there")


def test_files_that_were_set_aside_never_take_each_others_place(tmp_path: Path) -> None:
    path = tmp_path / "file"
    names = []
    for number in range(3):
        path.write_text(str(number))
        aside = files.set_aside(path, "why")
        assert aside.now is not None and aside.now.read_text() == str(number)
        names.append(aside.now.name)
    assert names == ["file.damaged", "file.2.damaged", "file.3.damaged"]


# ---- no room, and writers that are killed


@contextmanager
def no_larger_files_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def a_device_without_room(beside: Path) -> Iterator[None]:
    """What is written there goes to a device that is always full."""
    beside.symlink_to("/dev/full")
    yield
    assert not beside.is_symlink(), "the place of the file is still taken"


def full(kind: str, folder: Path) -> Any:
    if kind == "limit":
        return no_larger_files_than(100)
    return a_device_without_room(folder / "ledger" / "round=0" / f".wave-1.{kind}.part")


@pytest.mark.parametrize("kind", ["limit", *FORMS])
def test_where_there_is_no_room_the_file_is_named_and_the_rest_is_whole(tmp_path: Path, kind: str) -> None:
    row_files.write(tmp_path, 0, 0, [row(0)])
    form = "jsonl" if kind == "jsonl" else "parquet"
    with full(kind, tmp_path), pytest.raises(row_files.Full) as why:
        written(form, tmp_path, row(1), wave=1)
    assert why.value.filename.endswith(f"wave-1.{form}")
    assert str(why.value).startswith(f"{why.value.filename} cannot be written: ")
    assert " bytes are needed" in str(why.value)
    assert isinstance(why.value, OSError) and why.value.errno in files.NO_ROOM
    assert [path.name for path in (tmp_path / "ledger" / "round=0").iterdir()] == ["wave-0.parquet"]
    row_files.write(tmp_path, 0, 1, [row(1)])
    assert row_files.read(tmp_path).rows == by_key(row(0), row(1))


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("")
    with pytest.raises(NotADirectoryError):
        row_files.write(tmp_path, 0, 0, [row(0)])


@pytest.mark.faults
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """On a file system of 64 KiB, mounted for this process alone."""
    program = """
import sys
from pathlib import Path
from kipcheck.conformance.campaign.files import Full
from kipcheck.conformance.campaign.report import row_files
from kipcheck.conformance.tests.campaign.report.test_row_files import row
folder, written = Path(sys.argv[1]), 0
try:
    while written < 1000:
        row_files.write(folder, 0, written, [row(written)])
        written += 1
except Full as why:
    assert 0 < written < 1000, written
    assert sorted(row_files.read(folder).rows) == [row(shard).key for shard in range(written)]
    next(folder.rglob("wave-0.parquet")).unlink()
    row_files.write(folder, 0, written, [row(written)])
    print(why)
"""
    mounted = f"mount -t tmpfs -o size=64k tmpfs {tmp_path} && exec {sys.executable} -c '{program}' {tmp_path}"
    made = subprocess.run(["unshare", "-rm", "sh", "-c", mounted], capture_output=True, text=True, check=False)
    if "unshare:" in made.stderr or "mount:" in made.stderr:
        pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    assert made.returncode == 0, made.stderr
    assert "No space left on device" in made.stdout


def test_what_a_killed_writer_left_is_no_wave_and_in_nobodys_way(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from kipcheck.conformance.campaign import files
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
files.put(Path({str(tmp_path / "ledger" / "round=0" / "wave-0.parquet")!r}), b"half")
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert [path.name for path in tmp_path.rglob("*.part")] == [".wave-0.parquet.part"]
    assert row_files.read(tmp_path).rows == {}
    row_files.write(tmp_path, 0, 0, [row(0)])
    assert row_files.read(tmp_path).rows == by_key(row(0))
    assert not list(tmp_path.rglob("*.part"))


# ---- without the extra


def test_without_pyarrow_a_parquet_file_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    path = row_files.write(tmp_path, 0, 0, [row(0)])
    with without_arrow(), pytest.raises(row_files.Unreadable, match=r"is Parquet: .* pip install pyarrow ") as why:
        row_files.read(tmp_path)
    assert str(path) in why.value.args[0]
    assert row_files.read(tmp_path).rows == by_key(row(0))


def test_pyarrow_is_loaded_where_a_file_is_written_and_not_before() -> None:
    program = (
        "import sys\nfrom kipcheck.conformance.campaign.corpus import entries, snapshots\n"
        "from kipcheck.conformance.campaign.report import row_files\n"
        "assert 'pyarrow' not in sys.modules and 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_lines_are_json_with_a_header(tmp_path: Path) -> None:
    header, *lines = map(json.loads, written("jsonl", tmp_path, row(0), row(1)).read_text("ascii").splitlines())
    assert header == {"format": 1, "rows": 2}
    assert [(each["shard"], len(each.pop("sum"))) for each in lines] == [(0, 16), (1, 16)]
    assert list(map(Row.of, lines)) == [row(0), row(1)]
