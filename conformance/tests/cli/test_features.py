"""``kipcheck features``: the four examples of KIP-584, refusals, dry runs, and input that nobody can read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli.main import run

OFFSETS, GROUP, TXN, QUOTA = (
    "consumer_offsets_topic_schema", "group_coordinator", "transaction_coordinator", "replication_throttling",
)  # fmt: skip
BROKER = {OFFSETS: [1, 1], GROUP: [1, 2], TXN: [1, 5]}


def node(**levels: int) -> dict[str, Any]:
    features = {name: {"min_version_level": 1, "max_version_level": level} for name, level in levels.items()}
    return {"version": 0, "status": 1, "features": features}


CLUSTER = {
    "brokers": [BROKER, BROKER],
    "node": node(**{GROUP: 1, TXN: 4}),
    "epoch": 1,
    "known": {"2.8.0": {OFFSETS: 1, GROUP: 2, TXN: 5}, "2.7.0": {GROUP: 1, TXN: 4}},
}


class Tool:
    """The command, on a state file."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file, self._capsys = folder / "state.json", capsys

    def on(self, state: object) -> "Tool":
        self.file.write_text(state if isinstance(state, str) else json.dumps(state), "utf-8")
        return self

    def __call__(self, *words: str) -> tuple[int, list[str], str]:
        """Exit code, lines without repeated blanks, and what stands on stderr."""
        try:
            code = run(["features", "--state", str(self.file), *words])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        out, err = self._capsys.readouterr()
        return code, [" ".join(line.split()) for line in out.splitlines()], err

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file.read_text("utf-8"))
        return found

    def levels(self) -> dict[str, int]:
        features = self.state["node"]["features"]
        return {name: each["max_version_level"] for name, each in features.items()}


@pytest.fixture
def tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(tmp_path, capsys).on(CLUSTER)


def line(kind: str, feature: str, before: object, after: object, result: str = "OK") -> str:
    return (
        f"[{kind}] Feature: {feature} ExistingFinalizedMaxVersion: {before} "
        f"NewFinalizedMaxVersion: {after} Result: {result}"
    )


def test_describe_prints_the_first_example(tool: Tool) -> None:
    code, lines, err = tool("describe")
    assert (code, err) == (0, "")
    assert lines == [supported(OFFSETS, 1, "-", "-"), supported(GROUP, 2, 1, 1), supported(TXN, 5, 1, 4)]


def supported(feature: str, most: int, low: object, high: object) -> str:
    return (
        f"Feature: {feature} SupportedMinVersion: 1 SupportedMaxVersion: {most} "
        f"FinalizedMinVersionLevel: {low} FinalizedMaxVersionLevel: {high} Epoch: 1"
    )


def test_upgrade_all_and_downgrade_all_print_the_second_and_the_third(tool: Tool) -> None:
    before = tool.state
    expected = [line("Add", OFFSETS, "-", 1), line("Upgrade", GROUP, 1, 2), line("Upgrade", TXN, 4, 5)]
    assert tool("upgrade-all", "--dry-run") == (0, expected, "")
    assert tool.state == before
    assert tool("upgrade-all") == (0, expected, "")
    assert tool.state == {**before, "epoch": 2, "node": node(**{OFFSETS: 1, GROUP: 2, TXN: 5})}
    assert tool("upgrade-all") == (0, [], "")

    expected = [line("Delete", OFFSETS, 1, "-"), line("Downgrade", GROUP, 2, 1), line("Downgrade", TXN, 5, 4)]
    assert tool("downgrade-all", "--from-kafka-release", "2.7.0", "--dry-run") == (0, expected, "")
    assert tool("--from-kafka-release", "2.7.0", "downgrade-all") == (0, expected, "")
    assert tool.state == {**before, "epoch": 3}
    assert tool("downgrade-all", "--from-kafka-release", "2.7.0") == (0, [], "")


def test_update_prints_the_fourth(tool: Tool) -> None:
    tool.on({**CLUSTER, "node": node(**{GROUP: 1, TXN: 4, QUOTA: 2})})
    words = ("--upgrade", f"{GROUP}:2,{OFFSETS}:1", "--downgrade", f"{TXN}:3", "--delete", QUOTA)
    expected = [
        line("Add", OFFSETS, "-", 1), line("Upgrade", GROUP, 1, 2),
        line("Downgrade", TXN, 4, 3), line("Delete", QUOTA, 2, "-"),
    ]  # fmt: skip
    assert tool("update", *words, "--dry-run") == (0, expected, "")
    assert tool("update", *words) == (0, expected, "")
    assert tool.levels() == {OFFSETS: 1, GROUP: 2, TXN: 3}
    assert tool.state["epoch"] == 2


def test_a_refused_update_leaves_its_feature_and_the_others_go_on(tool: Tool) -> None:
    code, lines, err = tool("update", "--upgrade", f"{GROUP}:3,{OFFSETS}:1", "--downgrade", f"{TXN}:4")
    assert (code, err) == (1, "")
    assert lines == [
        line("Add", OFFSETS, "-", 1),
        line("Upgrade", GROUP, 1, 3, "FEATURE_UPDATE_FAILED: broker 0 supports levels 1 to 2"),
        line("Downgrade", TXN, 4, 4, "INVALID_REQUEST: level 4 is finalized already"),
    ]
    assert tool.levels() == {OFFSETS: 1, GROUP: 1, TXN: 4}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--upgrade", f"{GROUP}:1"), "INVALID_REQUEST: level 1 is finalized already"),
        (("--upgrade", f"{TXN}:3"), "INVALID_REQUEST: level 3 is below the finalized level 4"),
        (("--downgrade", f"{TXN}:5"), "INVALID_REQUEST: level 5 is above the finalized level 4"),
        (("--downgrade", f"{OFFSETS}:1"), "INVALID_REQUEST: the feature is not finalized"),
        (("--delete", OFFSETS), "INVALID_REQUEST: the feature is not finalized"),
        (("--upgrade", "later:1"), "INVALID_REQUEST: no broker supports the feature"),
        (("--upgrade", "half:1"), "FEATURE_UPDATE_FAILED: broker 1 does not know the feature"),
    ],
)
def test_a_refusal_gives_its_reason_and_nothing_is_written(tool: Tool, words: tuple[str, ...], why: str) -> None:
    brokers = [{**BROKER, "half": [1, 1]}, BROKER]
    tool.on({**CLUSTER, "brokers": brokers, "known": {"2.9.0": {"later": 1}}})
    before = tool.file.read_bytes()
    code, (reported,), err = tool("update", *words)
    assert (code, err) == (1, "") and reported.endswith(f"Result: {why}")
    assert tool.file.read_bytes() == before


def test_minimum_levels_are_those_of_brokers_and_hold_a_downgrade_up(tool: Tool) -> None:
    tool.on({"brokers": [{GROUP: [2, 5]}], "node": None})
    assert tool("update", "--upgrade", f"{GROUP}:4")[0] == 0
    assert tool.state["node"]["features"] == {GROUP: {"min_version_level": 2, "max_version_level": 4}}
    tool.on({**tool.state, "brokers": [{GROUP: [1, 5]}]})
    _, (reported,), _ = tool("update", "--downgrade", f"{GROUP}:1")
    assert reported.endswith("FEATURE_UPDATE_FAILED: the finalized minimum level is 2")


def test_without_a_node_nothing_is_finalized_and_the_first_update_creates_it(tool: Tool) -> None:
    tool.on({"brokers": [{GROUP: [1, 2]}], "node": None, "known": {"2.7.0": {GROUP: 2}}})
    _, (reported,), _ = tool("describe")
    assert reported.endswith("FinalizedMinVersionLevel: - FinalizedMaxVersionLevel: - Epoch: -")
    assert tool("upgrade-all") == (0, [line("Add", GROUP, "-", 2)], "")
    assert (tool.state["epoch"], tool.levels()) == (0, {GROUP: 2})


def test_a_disabled_node_is_not_updated(tool: Tool) -> None:
    tool.on({**CLUSTER, "node": {**node(), "status": 0}})
    assert {reported.partition("Epoch: ")[2] for reported in tool("describe")[1]} == {"-"}
    code, lines, _ = tool("upgrade-all")
    assert code == 1
    assert {reported.partition("Result: ")[2] for reported in lines} == {
        "FEATURE_UPDATE_FAILED: feature versioning is disabled"
    }


def test_a_deletion_looks_at_no_broker(tool: Tool) -> None:
    tool.on({**CLUSTER, "brokers": [], "node": node(**{GROUP: 1})})
    assert tool("update", "--delete", GROUP) == (0, [line("Delete", GROUP, 1, "-")], "")
    assert tool.levels() == {}


BAD: tuple[tuple[object, tuple[str, ...], str], ...] = (
    (CLUSTER, ("update", "--upgrade", "group_coordinater:2"), "unknown feature 'group_coordinater'"),
    (CLUSTER, ("upgrade-all", "--from-kafka-release", "9.9"), "unknown release '9.9'"),
    (CLUSTER, ("update", "--upgrade", f"{GROUP}:2", "--from-kafka-release", "9.9"), "unknown release '9.9'"),
    ({**CLUSTER, "known": {}}, ("downgrade-all",), "no releases under known"),
    ({**CLUSTER, "known": {"new": {}, "old": {}}}, ("upgrade-all",), "--from-kafka-release new or old"),
    (CLUSTER, ("update",), "nothing to update"),
    (CLUSTER, ("update", "--upgrade", f"{GROUP}:2", "--delete", GROUP), "named twice"),
    (CLUSTER, ("update", "--upgrade", GROUP), "use FEATURE:LEVEL"),
    (CLUSTER, ("update", "--upgrade", f"{GROUP}:0"), "use FEATURE:LEVEL"),
    (CLUSTER, ("update", "--upgrade", f"{GROUP}:32768"), "use FEATURE:LEVEL"),
    (CLUSTER, ("update", "--delete", f"{GROUP},"), "separated by commas"),
    (CLUSTER, ("describe", "--delete", GROUP), "--delete belongs to the action update"),
    (json.dumps(CLUSTER)[:-9], ("describe",), "not JSON"),
    ("[]", ("describe",), "must be a JSON object"),
    ({"brokers": []}, ("describe",), "node: the key is missing"),
    ({**CLUSTER, "broker": []}, ("describe",), "broker: unknown key"),
    ({**CLUSTER, "brokers": [{GROUP: [2, 1]}]}, ("describe",), "the lowest level, 2, is above the highest, 1"),
    ({**CLUSTER, "brokers": [{GROUP: [0, 1]}]}, ("describe",), "must be from 1 to 32767"),
    ({**CLUSTER, "brokers": [{GROUP: [1]}]}, ("describe",), "must be [lowest, highest level]"),
    ({**CLUSTER, "brokers": [{"": [1, 1]}]}, ("describe",), "a feature has no name"),
    ({**CLUSTER, "node": node(**{GROUP: 0})}, ("describe",), "0 where 1 or more is wanted"),
    ({**CLUSTER, "node": {**node(), "status": 2}}, ("describe",), "status 2 where 0 (disabled) or 1 (enabled)"),
    ({**CLUSTER, "node": {**node(), "version": 1}}, ("describe",), "version 1"),
    ({**CLUSTER, "epoch": -1}, ("describe",), "must be from 0"),
    ({**CLUSTER, "node": None}, ("describe",), "there is no epoch"),
)  # fmt: skip


@pytest.mark.parametrize(("state", "words", "why"), BAD, ids=[why for *_, why in BAD])
def test_bad_input_is_one_line_and_nothing_is_written(
    tool: Tool, state: object, words: tuple[str, ...], why: str
) -> None:
    before = tool.on(state).file.read_bytes()
    code, lines, err = tool(*words)
    assert (code, lines) == (2, [])
    assert err.startswith("kipcheck: ") and err.count("\n") == 1 and why in err
    assert tool.file.read_bytes() == before


def test_a_file_that_is_not_there_or_no_text(tool: Tool) -> None:
    tool.file.write_bytes(b"\xff")
    assert "not UTF-8" in tool("describe")[2]
    tool.file.unlink()
    code, _, err = tool("describe")
    assert code == 2 and "no such file" in err


def test_the_file_is_replaced_and_nothing_is_left_beside_it(tool: Tool) -> None:
    tool.file.chmod(0o640)
    first = tool.file.stat().st_ino
    assert tool("upgrade-all")[0] == 0
    assert tool.file.stat().st_ino != first and tool.file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tool.file.parent) == ["state.json"]


def test_a_link_stays_a_link(tool: Tool) -> None:
    other = tool.file.with_name("other.json")
    tool.file.rename(other)
    tool.file.symlink_to(other)
    assert tool("upgrade-all")[0] == 0
    assert tool.file.is_symlink() and json.loads(other.read_text())["epoch"] == 2


def test_what_cannot_be_written_is_exit_2(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", denied)
    before = tool.file.read_bytes()
    code, lines, err = tool("upgrade-all")
    assert (code, lines) == (2, []) and "Permission denied; no feature was changed" in err
    assert tool.file.read_bytes() == before and os.listdir(tool.file.parent) == ["state.json"]
