"""The seed corpus: names that depend on bytes alone, a dictionary that fuzzers read, nothing that changes by itself."""

import ast
import hashlib
import re
from pathlib import Path

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.files.output_folder import LIST
from kipcheck.conformance.engine.export.input_files import INDEX
from kipcheck.conformance.engine.export.seed_corpus import DICTIONARY, seeds
from kipcheck.conformance.wire import layout
from kipcheck.golden.vectors import vectors

ARGUMENTS = ["corpus", "seeds", "--message", "Heartbeat*", "--message", "SubscriptionInfo", "--cases", "8"]


def written(out: Path, *more: str) -> dict[str, bytes]:
    assert main.run([*ARGUMENTS, "--out", str(out), *more]) == 0
    files = (path for path in out.rglob("*") if path.is_file() and path.name != LIST)
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def test_one_file_for_each_input_named_by_its_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = written(tmp_path)
    inputs = files.keys() - {DICTIONARY, INDEX}
    assert capsys.readouterr().out == f"{len(inputs)} inputs in {tmp_path}\n"
    assert {path.split("/")[0] for path in inputs} == {"HeartbeatRequest", "HeartbeatResponse", "SubscriptionInfo"}
    for path in inputs:
        message, version, name = path.split("/")
        assert name == hashlib.blake2b(files[path], digest_size=10).hexdigest()
        assert re.fullmatch(r"v\d+", version), message
    rows = dict(line.split("\t") for line in files[INDEX].decode().splitlines())
    assert rows.keys() == inputs
    kinds = {origin.partition(",")[0] for origin in rows.values()}
    assert {"golden", "extreme", "inhabited", "drawn"} <= kinds
    assert any(", " in origin for origin in rows.values()), "none is damaged"


@pytest.mark.integration
def test_same_arguments_same_files_and_a_seed_changes_what_is_drawn_only(tmp_path: Path) -> None:
    one, two = written(tmp_path / "one"), written(tmp_path / "two")
    assert one == two
    other = written(tmp_path / "other", "--seed", "1")
    assert other != one
    golden = {line.split("\t")[0] for line in one[INDEX].decode().splitlines() if line.endswith("\tgolden")}
    assert golden
    assert golden <= other.keys()


def test_golden_bytes_are_among_them_and_whole_ones_can_be_read() -> None:
    found = list(seeds("apache", ["HeartbeatRequest"], 0, 8))
    data = {(each.version, each.data) for each in found}
    assert {(each.version, each.data) for each in vectors() if each.message == "HeartbeatRequest"} <= data
    for each in found:
        if each.origin == "drawn":
            layout("apache", "HeartbeatRequest", each.version).decode(each.data)


def test_the_dictionary_is_one_that_fuzzers_read(tmp_path: Path) -> None:
    lines = written(tmp_path)[DICTIONARY].decode().splitlines()
    words = {}
    for line in lines:
        name, _, text = line.partition("=")
        assert re.fullmatch(r"\w+", name)
        assert re.fullmatch(r'"(\\x[0-9a-f]{2})+"', text)
        words[name] = ast.literal_eval(f"b{text}")
    assert len(words) == len(lines)
    assert words["HeartbeatRequest_v4"] == bytes.fromhex("000c0004")
    assert words["text_range"] == b"\0\x05range"
    assert words["compact_cooperative_sticky"] == b"\x13cooperative-sticky"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (["--edition", "kip-1"], "unknown edition 'kip-1'"),
        (["--message", "NoSuch"], "no message matches NoSuch in apache; messages: ApiVersionsRequest"),
    ],
)
def test_what_there_is_not_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], why: str
) -> None:
    assert main.run(["corpus", "seeds", "--out", str(tmp_path / "out"), *change]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_where_it_cannot_write_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main.run([*ARGUMENTS, "--out", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err
