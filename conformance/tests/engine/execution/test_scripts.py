"""``run --script``: a conversation that a user writes is read, refused with a reason, or played and judged."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.engine.execution.scripts import given

OURS: Final = f"client:{sys.executable} -m kipcheck.conformance.live.client.consumer {{bootstrap}} {{group}} {{topics}}"


def refused(capsys: pytest.CaptureFixture[str], target: str, script: str, *more: str) -> str:
    assert run(["run", "--target", target, "--script", script, *more]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1, out
    return err


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("answer Heartbeat OFFSET_OUT_OF_RANGE", "step 1, 'answer Heartbeat OFFSET_OUT_OF_RANGE', cannot be played: "),
        ("answer Heartbeat OFFSET_OUT_OF_RANGE", "answers Heartbeat with OFFSET_OUT_OF_RANGE: use COORDINATOR_NOT_AVA"),
        ("rebalance; answer Heartbeat NOTHING", "step 2, 'answer Heartbeat NOTHING', cannot be read: use answer Join"),
        ("rebalanse", "step 1, 'rebalanse', cannot be read: a step begins with one of others, "),
        ("fence; stop", "step 1, 'fence', cannot be played: a member without an instance id cannot be fenced"),
        ("stop; pass 1", "step 2, 'pass 1', cannot be played: stop ended the program"),
        ("late Fetch 99999", "step 1, 'late Fetch 99999', cannot be played: a time is 0 to 10000 ms"),
        ("answer ConsumerGroupHeartbeat NOT_COORDINATOR", "write protocol consumer in front"),
        ("protocol consumer; reset JoinGroup", "sends no JoinGroup: use ConsumerGroupHeartbeat"),
        ("pass 1; static", "step 2, 'static', cannot be played: it takes effect when the program starts: write it in "),
        ("answer Heartbeat NOT_COORDINATOR times 99", "1 to 20 answers are changed"),
        ("late OffsetFetch 400 at stop", "a program that is stopped sends no OffsetFetch: use ConsumerGroupHeartbea"),
        ("refuse Heartbeat GROUP_AUTHORIZATION_FAILED at next", "a refusal lasts from a time on"),
        ("offer Metadata 4-2", "versions are from 0 to 100, the lowest first"),
        ("intervals 4000 of 3000", "a session is longer than its heartbeat interval"),
        ("pass 1; committed 3", "offsets are set while the group has no members"),
        (" ; ", "the script has no steps"),
        ("none.txt", "none.txt cannot be read: no such file in "),
    ],
)  # fmt: skip
def test_a_script_that_cannot_be_played_says_which_step_and_why(
    capsys: pytest.CaptureFixture[str], script: str, why: str
) -> None:
    assert why in refused(capsys, OURS, script)


def test_a_target_that_plays_no_machine_is_given_no_script(capsys: pytest.CaptureFixture[str]) -> None:
    why = refused(capsys, "reference", "join a on t", "--check", "wire/*")
    assert "reference plays no machine of the selected checks" in why
    assert "--script: step 3, 'describ', cannot be read: invalid event 'describ'" in refused(
        capsys, "reference", "join a; sync a; describ"
    )


def test_a_file_has_a_script_in_each_line(tmp_path: Path) -> None:
    file = tmp_path / "scripts.txt"
    file.write_text("# of a bug report\nlate OffsetFetch 1500;\n  restart; stop\n\nrebalance\n", "utf-8")
    assert given(str(file)) == ("late OffsetFetch 1500; restart; stop", "rebalance")
    file.write_text('{"id": 1}', "utf-8")
    with pytest.raises(ValueError, match="kipcheck replay"):
        given(str(file))
    file.write_text("# nothing\n", "utf-8")
    with pytest.raises(ValueError, match="has no scripts"):
        given(str(file))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8"):
        given(str(file))


def test_a_script_is_judged_by_all_checks_of_its_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "--target", "reference", "--message", "group", "--script", "join a; describe v3"]
    asked += ["--out", str(tmp_path)]
    assert run([*asked, "--script", "join b"]) == 0
    ledger = read(tmp_path / "ledger.jsonl")
    by_check = {check: sum(counts.values()) for check, counts in ledger.counts["reference"].items()}
    assert "group/generations" in by_check and set(by_check.values()) == {2}
    assert ledger.header.options.others["scripts"] == ["join a; describe v3", "join b"]
    assert not ledger.skips, "checks of other machines are no matter of the script"
    capsys.readouterr()
    assert run([*asked, "--dry-run", "--json"]) == 0
    assert all(row["cases"] == 1 for row in json.loads(capsys.readouterr().out)["plan"])


def test_a_program_is_played_and_what_it_lacks_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "--target", OURS, "--edition", "apache@4.4.0", "--out", str(tmp_path), "--script"]
    assert run([*asked, "rebalance", "--trace"]) == 0
    shown = capsys.readouterr().out
    assert "1 case in 1 check: 1 PASS" in shown
    assert shown.startswith("PASS client:") and "  script    rebalance; stop\n" in shown
    assert re.search(r"\n +client -> broker: [0-9.]+ s JoinGroup v5, m1, assignors range  <- m1, generation 2,", shown)
    assert "verdicts  PASS: " in shown and "client/leaves" in shown
    (line,) = read(tmp_path / "ledger.jsonl").scripts
    assert (line.script, line.broken, line.steps[0].says) == ("rebalance; stop", {}, "another member joins or leaves")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Conversations" in page and "another member joins or leaves" in page and "--script rebalance" in page
    assert run(["report", str(tmp_path), "--details"]) == 0
    assert "  script    rebalance; stop\n" in capsys.readouterr().out
    assert run([*asked, "others 2 follow; static"]) == 7
    assert "step 2, 'static', cannot be played: the command lacks {instance}" in capsys.readouterr().out


def test_a_conversation_of_several_checks_is_played_and_shown_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "--target", "reference", "--message", "group", "--out", str(tmp_path), "--trace"]
    assert run([*asked, "--script", "join a; sync a"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("PASS reference  group  case ") == 1 and "a -> coordinator: JoinGroup v" in shown
    assert "group/parked-are-answered" in shown or "group/" in shown.partition("verdicts")[2]


@pytest.mark.integration
def test_only_failing_conversations_are_traced_unless_all_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "--target", "miniature/refuses-everything", "--check", "group/parked", "--cases", "3"]
    code = run([*asked, "--out", str(tmp_path), "--trace", "--least", "0"])
    failed = [each for each in read(tmp_path / "ledger.jsonl").verdicts() if each.result in ("FAIL", "WARN")]
    assert len(read(tmp_path / "ledger.jsonl").scripts) == len({each.case for each in failed})
    assert run([*asked, "--out", str(tmp_path), "--trace", "all", "--least", "0"]) == code
    assert len(read(tmp_path / "ledger.jsonl").scripts) == 3
    assert run(["run", "--target", "reference", "--check", "wire/*", "--message", "HeartbeatRequest", "--cases", "2",
                "--out", str(tmp_path), "--trace", "all"]) == 0  # fmt: skip
    assert not read(tmp_path / "ledger.jsonl").scripts, "bytes have no exchanges"


def test_a_replay_prints_the_exchanges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "--target", "miniature/refuses-everything", "--check", "group/errors", "--cases", "3"]
    assert run([*asked, "--least", "0", "--out", str(tmp_path)]) == 1
    failure = next((tmp_path / "failures").glob("*.json"))
    capsys.readouterr()
    assert run(["show", failure.stem, "--out", str(tmp_path)]) == 0
    (vary,) = re.findall(r"^  vary      kipcheck (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert run([*shlex.split(vary), "--least", "0", "--out", str(tmp_path / "again")]) == 1
    assert (tmp_path / "again" / "failures" / failure.name).exists(), "the same failure, by the command that it prints"
    capsys.readouterr()
    assert run(["replay", str(failure), "--trace"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("  events") and "-> coordinator: " in shown and "fails again: " in shown.splitlines()[-1]


def test_the_steps_of_scripts_for_clients_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["play", "client", "--events"]) == 0
    assert "in shorthand: late SyncGroup 400" in capsys.readouterr().out
    assert run(["play", "client", "--events", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "client"
    assert run(["play", "client"]) == 2
    assert "kipcheck run --target client:... --script STEPS; --events lists the steps" in capsys.readouterr().err


@pytest.mark.integration
def test_a_list_of_known_deviations_is_not_stale_because_a_script_does_not_show_them(tmp_path: Path) -> None:
    asked = [
        "run",
        "--target",
        "miniature/refuses-everything",
        "--out",
        str(tmp_path),
        "--check",
        "group/errors",
        "--workers",
        "1",
    ]
    known = tmp_path / "known.toml"
    assert run([*asked, "--cases", "3", "--least", "0"]) == 1
    run(["known", "update", str(known), "--from", str(tmp_path)])
    text = re.sub(r'"TODO: .*"$', '"It refuses all that is asked of it."', known.read_text("utf-8"), flags=re.MULTILINE)
    known.write_text(text.replace('"TODO"', '"https://a.org/1"'), "utf-8")
    assert run([*asked, "--cases", "3", "--least", "0", "--known", str(known)]) in (0, 7)
    assert run([*asked, "--known", str(known), "--message", "group", "--script", "elapse 1"]) == 0
    assert run([*asked, "--message", "group", "--script", "list"]) == 1
    run(["known", "update", str(known), "--from", str(tmp_path)])
    added = known.read_text("utf-8").removeprefix(text)
    assert "seldom = true" in added and "scripts" not in added
