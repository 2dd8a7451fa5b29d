"""The command line as a whole: wrong usage, help, JSON, completion, releases and addresses."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck.conformance.cli.main import parser
from kipcheck.conformance.core.files.install import advice
from kipcheck.conformance.tests.cli.test_cli import outcome

GENERATES: Final = {
    "encode", "decode", "assign", "subscribe", "export", "golden make", "corpus promote", "corpus seeds", "testee",
    "serve", "completion",
}  # fmt: skip
"""Commands whose output is data, files or a server: there is no report that could be JSON."""


def verbs(of: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """All commands that end a command line, by their words."""
    below = [each for each in of._actions if isinstance(each, argparse._SubParsersAction)]
    if not (below and below[0].required):
        yield path, of
    for each in below:
        for name, made in each.choices.items():
            yield from verbs(made, f"{path} {name}".strip())


def test_every_option_has_a_word_of_help_and_every_report_a_form_for_programs() -> None:
    for path, made in verbs(parser()):
        for action in made._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (path, action.dest)
        options = {each for action in made._actions for each in action.option_strings}
        assert ("--json" in options) is (path not in GENERATES), path


@pytest.mark.parametrize(
    ("words", "why", "helps"),
    [
        ("rnu", "kipcheck: unknown command 'rnu'; the nearest: run", "kipcheck"),
        ("run --tagret x", "kipcheck run: unknown option --tagret; the nearest: --target", "kipcheck run"),
        ("run --sede=1", "kipcheck run: unknown option --sede=1; the nearest: --seed", "kipcheck run"),
        ("known udpate", "kipcheck known: unknown command 'udpate'; the nearest: update", "kipcheck known"),
        ("checks foo", "kipcheck checks: unknown argument foo", "kipcheck checks"),
        ("play group --editoin x", "kipcheck play: unknown option --editoin; the nearest: --edition", "kipcheck play"),
        ("export ID --as pyetst", "unknown value 'pyetst'; the nearest: pytest: use pytest, script", "kipcheck export"),
        ("run --budget soon", "argument --budget: invalid duration 'soon': use 90s, 5m or 8h", "kipcheck run"),
        ("", "kipcheck: the following arguments are required: COMMAND", "kipcheck"),
    ],
)
def test_wrong_usage_is_two_lines(capsys: pytest.CaptureFixture[str], words: str, why: str, helps: str) -> None:
    code, out, error = outcome(capsys, *words.split())
    first, second = error.splitlines()
    assert (code, out, second) == (2, "", f"try: {helps} --help") and why in first


def test_text_of_a_user_stays_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = outcome(capsys, "run", "--x\nsecond\x1b[31m")
    assert code == 2 and len(error.splitlines()) == 2 and "\x1b" not in error


@pytest.mark.parametrize(
    ("words", "option", "is_now"),
    [
        (["roll", "--from", "3.9", "--to", "4.4.0"], "old", "3.9.2"),
        (["features", "plan", "--from", "3.9", "--to", "4.4.0"], "old", "3.9.2"),
        (["logdir", "DIR", "--release", "0.10.2"], "release", ["0.10.2.2"]),
        (["serve", "--release", "2.8"], "release", "2.8.2"),
        (["explore", "group", "--edition", "apache@3.9"], "edition", "apache@3.9.2"),
        (["run", "--target", "kafka:4.4?nodes=3&from=4.0.2"], "target", ["kafka:4.4.0?nodes=3&from=4.0.2"]),
        (["run", "--target", "java:kafka-clients:3.9"], "target", ["java:kafka-clients:3.9.2"]),
        (["replay", "--target", "client:java@3.9"], "target", "client:java@3.9.2"),
    ],
)
def test_a_line_of_releases_is_its_newest_patch_and_is_reported(
    capsys: pytest.CaptureFixture[str], words: list[str], option: str, is_now: object
) -> None:
    assert getattr(parser().parse_args(words), option) == is_now
    assert "its newest patch" in capsys.readouterr().err


def test_other_numbers_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    targets = ["cmd:./x --release 3.9", "kafka-python@2.0", "client:./x:3.9 {bootstrap} {group} {topics}",
               "broker:10.0.3.9:9092", "kafka:3.9.1", "kafka:9.9"]  # fmt: skip
    words = [word for each in targets for word in ("--target", each)]
    assert parser().parse_args(["run", *words]).target == targets
    assert parser().parse_args(["roll", "--from", "9.9", "--to", "3.9.1"]).old == "9.9"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words", [["inspect"], ["watch", "--upstream"], ["features", "describe", "--bootstrap-server"]]
)
def test_a_broker_is_written_in_both_ways_everywhere(words: list[str]) -> None:
    found = [vars(parser().parse_args([*words, f"{before}localhost:9092"])) for before in ("", "broker:")]
    assert found[0] == found[1] and ("localhost", 9092) in found[0].values()


def test_shells_complete_commands_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, script, _ = outcome(capsys, "completion", "bash")
    assert code == 0
    (tmp_path / "kipcheck").write_text(script)
    words = "COMP_WORDS=(kipcheck run --tar); COMP_CWORD=2; "
    asked = f"source {tmp_path / 'kipcheck'}; {words}_shtab_kipcheck; echo ${{COMPREPLY[*]}}"
    shown = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, timeout=60, check=False)
    assert "--target" in shown.stdout, shown.stderr


def test_without_the_extra_completion_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    code, out, error = outcome(capsys, "completion", "zsh")
    assert (code, out) == (3, "") and advice("completion") in error


def test_a_message_and_a_report_are_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shown = json.loads(outcome(capsys, "show", "HeartbeatRequest", "--version", "0", "--json")[1])
    assert (shown["message"], shown["version"]) == ("HeartbeatRequest", 0) and bytes.fromhex(shown["hex"])
    about = ("--target", "miniature/forgets-the-sign", "--check", "wire/two-readings", "--message", "HeartbeatResponse")
    code, out, _ = outcome(capsys, "run", *about, "--workers", "1", "--out", str(tmp_path), "--json")
    report = json.loads(out)
    assert code == 1
    id = report["failures"][0]["id"]
    assert json.loads(outcome(capsys, "report", str(tmp_path), "--json")[1]) == report
    shown = json.loads(outcome(capsys, "show", id, "--out", str(tmp_path), "--json")[1])
    assert [each["id"] for each in shown["failures"]] == [id]
    code, out, _ = outcome(capsys, "replay", id, "--out", str(tmp_path), "--json")
    assert (code, [row["exit"] for row in json.loads(out)["replays"]]) == (1, [1])


@pytest.mark.parametrize("words", ["--help", "explain 000c0000000000010001630001670000000000016d"])
def test_what_prints_at_once_imports_neither_the_ledger_nor_metadata_of_packages(words: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "kipcheck", *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    names = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "kipcheck.conformance.cli.options" in names
    heavy = ("kipcheck.conformance.core.ledger", "importlib.metadata", "kipcheck.conformance.targets.session", "rich")
    assert not [name for name in names if name.startswith(heavy)]


@pytest.mark.parametrize(
    ("words", "key", "all_fit"),
    [
        ("checks --family wire --role codec --word truncat", "checks", lambda row: row["id"].startswith("wire/")),
        ("checks --role CLIENT*", "checks", None),
        ("requirements --family 268 --word probing", "requirements", lambda row: row["id"].startswith("268-")),
        ("requirements --role member --word MEMBER", "requirements", lambda row: row["role"] == "member"),
        ("known list --target kafka-python --family member", "known", lambda row: row["target"] == "kafka-python"),
        ("requirements --family 269", "requirements", None),
        ("known list --word nobodysaysthis", "known", None),
    ],
)
def test_lists_have_filters(
    capsys: pytest.CaptureFixture[str], words: str, key: str, all_fit: Callable[[Mapping[str, Any]], bool] | None
) -> None:
    """Without ``all_fit`` nothing fits, and the error names the option."""
    code, out, error = outcome(capsys, *words.split(), "--json")
    if all_fit is None:
        assert (code, out) == (2, "") and error.startswith("kipcheck: --")
        return
    every = json.loads(outcome(capsys, *words.partition(" --")[0].split(), "--json")[1])[key]
    rows = json.loads(out)[key]
    assert code == 0 and rows and all(map(all_fit, rows)) and len(rows) < len(every)
    assert all(row in every for row in rows)


def test_names_that_are_repeated_so_that_nothing_is_imported_for_them() -> None:
    from kipcheck.conformance.cli import assign
    from kipcheck.conformance.protocols.assignment.model.assignment import ASSIGNORS

    assert (*ASSIGNORS,) == assign.ASSIGNORS
