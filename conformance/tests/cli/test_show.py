"""``kipcheck show``: failures and causes of a run, and examples of messages."""

import json
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.cli.show import example
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.tests.support.ledgers import CAUSE, everything, write
from kipcheck.conformance.wire import explain
from kipcheck.conformance.wire.schema import messages, spec
from kipcheck.conformance.wire.workbench import hex_of


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = command(["show", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_failure_is_shown_below_its_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, *everything())
    code, out, _ = shown(capsys, "0123456789ab", "--out", tmp_path)
    assert code == 0
    assert out.startswith("CAUSE An assignment is lost\n")
    assert "FAIL 0123456789ab  somebody 1.0" in out and "errorCode is read as 65535" in out
    assert out.endswith("other failures of this cause: 222222222222\n")


def test_a_cause_is_shown_with_all_its_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, *everything())
    code, out, _ = shown(capsys, CAUSE["id"], "--out", tmp_path)
    assert code == 0
    assert "FAIL 0123456789ab" in out and "WARN 222222222222" in out and "other failures" not in out


def test_a_failure_without_a_cause_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, *everything())
    code, out, _ = shown(capsys, "ba9876543210", "--out", tmp_path)
    assert code == 0 and out.startswith("FAIL ba9876543210  somebody 1.0")


def test_an_unknown_id_names_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "0123456789aa", "--out", tmp_path / "nowhere")[0] == 2
    path = write(tmp_path, *everything())
    code, out, err = shown(capsys, "0123456789aa", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert err == f"kipcheck: {path} has no failure or cause 0123456789aa; it has 6 failures\n"


def test_a_message_is_shown_with_a_value_and_its_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = shown(capsys, "JoinGroupRequest", "--version", 9)
    title, value, data, head, *rows = out.splitlines()
    assert (code, title) == (0, "JoinGroupRequest v9, edition apache")
    assert json.loads(value)["protocols"] == [{"name": "a", "metadata": "61"}]
    assert bytes.fromhex(data)
    assert head.split() == ["offset", "bytes", "path", "type", "value", "meaning"]
    assert [row.split()[0] for row in rows][:3] == ["0", "2", "6"]


def test_the_newest_version_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "HeartbeatRequest")[1].startswith("HeartbeatRequest v4, edition apache\n")
    assert shown(capsys, "HeartbeatRequest", "--edition", "apache@2.0.0")[1].startswith("HeartbeatRequest v2,")
    assert shown(capsys, "FeatureZNode")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["joingrouprequest"], "has no message joingrouprequest; the nearest: JoinGroupRequest,"),
        (["JoinGroupRequest", "--version", 99], "JoinGroupRequest has no version 99 in apache; it has 0-9"),
        (["JoinGroupRequest", "--edition", "kip-0"], "kip-0"),
    ],
)
def test_what_does_not_exist_is_exit_2(capsys: pytest.CaptureFixture[str], arguments: list[object], why: str) -> None:
    code, out, err = shown(capsys, *arguments)
    assert (code, out) == (2, "")
    assert why in err


@pytest.mark.parametrize("name", ["apache", "apache@3.9.2", "kip-584"])
@pytest.mark.integration
def test_encode_reads_every_value_that_is_shown(name: str) -> None:
    for message in messages(edition(name)):
        for layout in spec(edition(name), message):
            value, data = example(layout)
            assert hex_of(layout, value) == data.hex(), layout
            assert explain.explain(layout, data).damage is None, layout
