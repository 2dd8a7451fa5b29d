"""Results of a command carry the name in its hello, so ids and lists of known deviations survive another folder."""

import json
import shlex
import shutil
import socket
import sys
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as kipcheck
from kipcheck.conformance.core.ledger import Ledger, read
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.engine.execution.selection import Options
from kipcheck.conformance.engine.execution.target_names import Label, labels_of
from kipcheck.conformance.engine.known.lists import unknown_names
from kipcheck.conformance.engine.known.match import known_deviations
from kipcheck.conformance.engine.known.rules import Entry
from kipcheck.conformance.live.coordinator.compatible_brokers import LIBRARIES, Process
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.tests.support import broken_testees

ONE = ("--check", "wire/two-readings", "--message", "HeartbeatResponse", "--cases", "2")
KNOWN = """\
target = {target}
cases = 2

[[deviation]]
checks = ["wire/two-readings"]
invariant = {invariant}
versions = "all"
shape = {shape}
reason = "The testee leaves the field out of every value that it decodes, because it is made so."
link = "https://issues.apache.org/jira/browse/KAFKA-1"
[deviation.where]
{where}
"""


def at(folder: Path, name: str = "forgets-a-field") -> str:
    """The target that starts a copy of the program in the folder."""
    folder.mkdir(exist_ok=True)
    script = shutil.copy(broken_testees.__file__, folder / "testee.py")
    return f"cmd:{sys.executable} -I -S {script} {name}"


def ran(out: Path, *arguments: str) -> tuple[int, Ledger]:
    code = kipcheck(["run", *ONE, *arguments, "--out", str(out)])
    return code, read(out / "ledger.jsonl")


def test_ids_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    one, other = (
        ran(tmp_path / f"out-{name}", "--target", at(tmp_path / name)) for name in ("here", "there")
    )  # fmt: skip
    assert one[0] == other[0] == 1
    assert [line.id for line in one[1].failures] == [line.id for line in other[1].failures] != []
    assert {line.target for line in one[1].failures} == {"broken"}
    assert [(line.target, line.command) for line in one[1].targets] == [("broken", at(tmp_path / "here"))]
    assert {place.target for place in one[1].cases} == {"broken"}


def test_the_file_keeps_the_command_for_replay_and_is_not_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = at(tmp_path / "here")
    _, ledger = ran(tmp_path / "out", "--target", command)
    line = ledger.failures[0]
    path = tmp_path / "out" / "failures" / f"{line.id}.json"
    filed = json.loads(path.read_text())
    assert (filed["target"], filed["command"]) == ("broken", command)
    words = ["kipcheck", "replay", line.id, "--out", str(tmp_path / "out"), "--target", command]
    assert shlex.split(line.reproduce) == words
    assert kipcheck(["replay", str(path)]) == 2
    assert "does not start commands from files" in capsys.readouterr().err
    assert kipcheck(["replay", str(path), "--trust"]) == 1
    assert kipcheck(["export", str(path), "--as", "script", "--to", str(tmp_path / "alone.py")]) == 0
    assert "testee.py" not in (tmp_path / "alone.py").read_text()
    assert kipcheck(["export", str(path), "--as", "script", "--trust", "--to", str(tmp_path / "alone.py")]) == 0
    assert "testee.py" in (tmp_path / "alone.py").read_text()


@pytest.mark.parametrize("command", ["cmd:touch", "drill:raise@1,once="])
def test_a_command_in_a_file_with_a_harmless_target_is_not_started(tmp_path: Path, command: str) -> None:
    _, ledger = ran(tmp_path / "out", "--target", at(tmp_path / "here"))
    path = tmp_path / "out" / "failures" / f"{ledger.failures[0].id}.json"
    filed = json.loads(path.read_text())
    pwned = tmp_path / "pwned"
    blank = " " if command.startswith("cmd") else ""
    path.write_text(json.dumps({**filed, "target": "reference", "command": f"{command}{blank}{pwned}"}))
    assert kipcheck(["replay", str(path)]) == 2
    assert not pwned.exists()
    path.write_text(json.dumps({**filed, "command": ["cmd:touch", str(pwned)]}))
    assert kipcheck(["replay", str(path), "--trust"]) == 2


@pytest.mark.integration
def test_two_commands_of_one_name_need_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ("--target", at(tmp_path / "here"), "--target", at(tmp_path / "there"))
    assert kipcheck(["run", *ONE, *both, "--out", str(tmp_path / "none")]) == 2
    assert "are both named 'broken'" in capsys.readouterr().err
    assert not (tmp_path / "none" / "ledger.jsonl").exists()
    code, ledger = ran(tmp_path / "out", *both, "--name", "mine", "--name", "theirs", "--workers", "2")
    assert code == 1
    assert [line.target for line in ledger.targets] == ["mine", "theirs"]
    assert {line.target for line in ledger.failures} == {"mine", "theirs"}
    assert len({line.id for line in ledger.failures}) == len(ledger.failures)
    assert not ledger.differences


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["a", "b"], "--name 'b' is for no target"),
        ([" "], "use 1 to 80"),
        (["a\n"], "use 1 to"),
    ],
)
def test_names_are_for_commands(names: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [word for name in names for word in ("--name", name)]
    targets = ("--target", "reference", "--target", at(tmp_path / "here"))
    assert kipcheck(["run", *ONE, *targets, *given, "--out", str(tmp_path / "out")]) == 2
    assert why in capsys.readouterr().err


def test_a_running_broker_has_the_name_of_the_user_and_its_list() -> None:
    targets = ("broker:localhost:9092?timeout=5", "reference", "cmd:./testee")
    options = Options(targets=targets, names=("kfake", "mine"), known=("default",))
    assert labels_of(options) == {targets[0]: Label("kfake"), targets[2]: Label("mine")}
    entries = known_deviations(options).entries
    assert {each.target for each in entries} == {"kfake"}
    assert entries[0].applies_to("kfake", "0", targets[0])
    assert not entries[0].applies_to(targets[0], "0")


@pytest.mark.parametrize(
    ("given", "name", "version"),
    [
        ("mine@1.4.2", "mine", "1.4.2"),
        ("team@home", "team@home", ""),
        ("a@b@v2.0-rc1", "a@b", "v2.0-rc1"),
        ("@1", "@1", ""),
    ],
)
def test_a_user_names_the_release_with_the_target(given: str, name: str, version: str) -> None:
    label = Label.of(given)
    assert (label.name, label.version, str(label)) == (name, version, given)


def test_reports_have_the_release_that_a_user_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = at(tmp_path / "here")
    code, ledger = ran(tmp_path / "out", "--target", target, "--name", "mine@1.4.2")
    assert code == 1 and capsys.readouterr().out.startswith("mine 1.4.2: ")
    assert {(each.target, each.version) for each in ledger.failures} == {("mine", "1.4.2")}


def test_a_broker_with_a_name_that_cannot_be_reached_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host, port = unused.getsockname()
        asked = ["run", "--check", "group/errors", "--cases", "1", "--target", f"broker:{host}:{port}"]
        assert kipcheck([*asked, "--name", "mine", "--out", str(tmp_path)]) == exits.BROKEN
    assert f"{host}:{port} accepts no connection" in "".join(capsys.readouterr())


@pytest.mark.go
@pytest.mark.integration
def test_a_running_broker_with_a_name_has_the_list_of_that_name(tmp_path: Path) -> None:
    broker = Process("kfake", LIBRARIES["kfake"].command(target_entries()["kfake"].default))
    host, port = broker.start()
    opened = f"broker:{host}:{port}"
    asked = ["run", "--edition", "apache@4.0.0", "--check", "group/errors", "--script", "beat a id=x v0"]
    named = ["--target", opened, "--name", "kfake", "--known", "default"]
    try:
        code = kipcheck([*asked, *named, "--out", str(tmp_path)])
    finally:
        broker.stop()
    ledger = read(tmp_path / "ledger.jsonl")
    assert [(line.target, line.command) for line in ledger.targets] == [("kfake", opened)]
    assert {(line.target, line.command) for line in ledger.failures} == {("kfake", opened)}
    assert code == exits.CONFORMANT and all(line.known or line.grade == "INFO" for line in ledger.failures)


def test_a_testee_may_not_take_the_name_of_another_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = ("--target", "reference", "--target", at(tmp_path / "here"), "--name", "reference")
    assert kipcheck(["run", *ONE, *targets, "--out", str(tmp_path / "out")]) == 2
    assert "are both named 'reference'" in capsys.readouterr().err


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.integration
def test_known_lists_match_the_name_and_the_command_of_older_lists(tmp_path: Path, by_name: bool) -> None:
    command = at(tmp_path / "here")
    _, ledger = ran(tmp_path / "before", "--target", command)
    (line,) = ledger.failures
    listed = tmp_path / "known.toml"
    text = KNOWN.format(
        target=json.dumps("broken" if by_name else command),
        invariant=json.dumps(line.invariant),
        shape=json.dumps(list(line.shape)),
        where="\n".join(f"{subject} = {json.dumps(versions)}" for subject, versions in line.where.items()),
    )
    listed.write_text(text)
    code, ledger = ran(tmp_path / "out", "--target", command, "--known", str(listed))
    assert [line.known is not None for line in ledger.failures] == [True]
    assert code == 0, [line.why for line in ledger.stale]
    assert {place.target for place in ledger.cases} == {line.target}
    assert not any("FAIL" in counts for counts in ledger.cases.values()), "they fail as expected"
    code, ledger = ran(tmp_path / "elsewhere", "--target", at(tmp_path / "there"), "--known", str(listed))
    assert [line.known is not None for line in ledger.failures] == [by_name]


def test_only_a_misspelling_of_a_listed_target_is_unknown() -> None:
    def troubles(target: str) -> list[str]:
        about = {"kind": "deviation", "file": "", "line": 1, "versions": "all", "checks": ("wire/two-readings",)}
        about |= {"invariant": "wire/decodes", "shape": (), "why": "", "where": {}, "reason": "", "link": ""}
        return [*unknown_names(Entry(target=target, expires=None, seldom=False, **about), "apache")]  # type: ignore[arg-type]

    assert troubles("kafka-pyhton") == ["unknown target 'kafka-pyhton': did you mean 'kafka-python'?"]
    for name in ("kafka-python", "kafka-python-ng", "my-client", "cmd:./testee", "java:kafka-clients"):
        assert troubles(name) == []


@pytest.mark.integration
def test_parts_of_a_run_in_two_folders_merge(tmp_path: Path) -> None:
    for number, name in enumerate(("here", "there"), 1):
        kipcheck([
            "run", "--check", "wire/two-readings", "--message", "Heartbeat*", "--cases", "2", "--part", f"{number}/2",
            "--target", at(tmp_path / name), "--out", str(tmp_path / f"part-{number}"),
        ])  # fmt: skip
    merged = tmp_path / "merged"
    assert kipcheck(["merge", str(tmp_path / "part-1"), str(tmp_path / "part-2"), "--out", str(merged)]) == 1
    ledger = read(merged / "ledger.jsonl")
    assert ledger.complete
    assert {place.target for place in ledger.cases} == {"broken"}
