"""A doctor finds what is wrong with a testee, names it, says how it is mended, and finds nothing with healthy ones."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as kipcheck
from kipcheck.conformance.engine.doctor.probes import PROBES
from kipcheck.conformance.engine.doctor.report import ProbeResult, run_probes
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.testee import Testee
from kipcheck.conformance.targets.transport.pipe import Command
from kipcheck.conformance.tests.support import broken_testees
from kipcheck.conformance.tests.support.broken_testees import TESTEES, WellBred
from kipcheck.conformance.tests.support.loops import some_by_default


def seen(name: str, where: Path, seconds: float = 20) -> dict[str, ProbeResult]:
    env = {**os.environ, "BROKEN_TESTEE_FLAG": str(where / "flag")}
    command = Command((sys.executable, "-I", "-S", broken_testees.__file__, name), env)
    return {line.id: line for line in run_probes(Testee(name, command), seconds, PROBES)}


def wrong(lines: dict[str, ProbeResult]) -> dict[str, str]:
    return {id: line.found for id, line in lines.items() if line.state == "wrong"}


@pytest.mark.parametrize("name", ["well-bred", "well-bred-frames", "answers-any-edition"])
def test_what_keeps_the_protocol_is_in_good_health(name: str, tmp_path: Path) -> None:
    lines = seen(name, tmp_path)
    assert wrong(lines) == ({"unknown-edition": "it answers ok"} if "any" in name else {})
    assert list(lines) == [each.id for each in PROBES]
    assert lines["frames"].state == ("ok" if "frames" in name else "skipped")
    assert lines["speed"].state == "told"


def test_only_claimed_operations_are_requested(tmp_path: Path) -> None:
    lines = seen("only-reads", tmp_path)
    assert wrong(lines) == {}
    assert lines["capabilities"].found == "messages: 2; decode of 1, encode of 1"
    assert lines["claims"].found == "6 answered"
    assert lines["samples"].found == "1 encoded and 5 decoded as kipcheck does"
    assert "Of 1 messages" in lines["prefixes"].found


@pytest.mark.integration
def test_the_reference_is_in_good_health_and_its_leading_versions_are_shown() -> None:
    lines = {line.id: line for line in run_probes(target("reference"), 60, PROBES)}
    assert wrong(lines) == {}
    assert "with version 1000 there, " in lines["leading"].found


@pytest.mark.integration
@pytest.mark.parametrize("name", ["kafka-python", "miniature/forgets-the-sign"])
def test_our_own_testees_are_in_good_health(name: str) -> None:
    assert wrong({line.id: line for line in run_probes(target(name), 60, PROBES)}) == {}


WRONG = [
    ("crashes-at-once", "starts", "left with exit code 1 (no library)"),
    ("hangs-at-hello", "hello", "no answer within"),
    ("greets-people", "starts", "unsolicited bytes: b'Welcome!"),
    ("speaks-before-it-is-asked", "starts", "unsolicited bytes"),
    ("runs-away", "starts", "left with exit code 0"),
    ("says-hello-twice", "unknown-role", "hello"),  # unasked, or in the place of another answer
    ("speaks-another-version", "hello", "hello.protocol: 2, expected 1"),
    ("leaves-out-its-version", "hello", "hello.version: is missing"),
    ("plays-the-wizard", "hello", "hello.roles[1]: 'wizard' is not one of"),
    ("claims-upside-down", "hello", "the lowest version is above the highest"),
    ("claims-past-the-end", "capabilities", "HeartbeatResponse 7-9: the versions are 0-4"),
    ("misspells", "capabilities", "unknown message HeartBeatResponse: did you mean HeartbeatResponse?"),
    ("plays-any-role", "unknown-role", "it answers ok"),
    ("says-neither-yes-nor-no", "configure", "configure: must have ok"),
    ("stumbles-over-nothing", "empty-batch", "left with exit code 1"),
    ("omits-the-last", "full-batch", "results.results: 63 of 64"),
    ("claims-what-it-does-not-do", "claims", "encode HeartbeatResponse v1 is claimed, but answered"),
    ("claims-another-operation", "claims", "recode HeartbeatResponse v0 is claimed, but answered"),
    ("names-no-operation", "hello", "hello.operations.HeartbeatResponse[0]: 'read' is not one of encode, decode"),
    ("counts-its-cases", "repeated", ", then"),
    ("misnames-a-field", "samples", "v1: throttle_time_ms is no field of it: did you mean throttleTimeMs?"),
    ("forgets-a-field", "samples", "decode HeartbeatResponse v1: throttleTimeMs is missing in the value"),
    (
        "reads-another-key",
        "samples",
        "throttleTimeMs is written as 0, not 1: does it read the key",
    ),
    ("can-do-nothing", "samples", "samples is unsupported: a run would be inconclusive"),
    ("refuses-another-key", "samples", "is answered with rejected, KeyError: 'throttletimems'"),
    ("stumbles-over-the-unknown", "unknown-operation", "left with exit code 1"),
    ("takes-anything", "unknown-operation", "is answered with {'status': 'accepted'"),
    ("stumbles-over-types", "unknown-type", "left with exit code 1"),
    ("echoes-types", "unknown-type", "answered with {'type': 'sing'"),
    ("stumbles-over-holes", "incomplete-case", "left with exit code 1"),
    ("stumbles-over-novelty", "unknown-keys", "answered with {'status': 'internal'"),
    ("reads-little", "big-batch", "left with exit code 1"),
    ("speaks-ascii", "unicode", "is not in"),
    ("is-very-loud", "noise", "bytes so far"),
    ("ignores-bye", "bye", "no answer within"),
    ("ignores-the-end", "bye", "SIGKILL was needed"),
    ("changes-with-each-life", "second-life", "the hello after a restart differs"),
    ("ignores-frames", "frames", "it may be a line"),
    ("outlives-its-stdin", "end-of-stdin", "SIGTERM was needed"),
]
"""Testee, probe, and what the probe finds."""


@pytest.mark.parametrize(("name", "id", "found"), some_by_default(WRONG, 6))
def test_what_is_wrong_is_found_and_a_remedy_named(
    name: str, id: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kipcheck.conformance.engine.doctor.probes.BYE_S", 0.3)
    hangs = name in ("hangs-at-hello", "ignores-bye")
    lines = seen(name, tmp_path, 1.0 if hangs else 20)
    assert found in wrong(lines).get(id, ""), lines
    assert lines[id].fix
    first = next(line for line in lines.values() if line.state == "wrong")
    assert first.id == id or not issubclass(TESTEES[name], WellBred), "something else was blamed before"


def test_every_examination_can_fail() -> None:
    """But for the one that judges nothing, and those that need a machine, a schema or a name to be seen to."""
    seen_to = {row[1] for row in WRONG} | {"unknown-edition", "speed", "afresh", "schema", "identity", "roles"}
    seen_to |= {"prefixes", "trailing", "leading"}  # they judge nothing either
    assert seen_to | {"unknown-message"} >= {each.id for each in PROBES}


@contextmanager
def script(name: str) -> Iterator[str]:
    yield f"cmd:{sys.executable} -I -S {broken_testees.__file__} {name}"


def test_the_command_says_what_is_wrong_and_gives_3(capsys: pytest.CaptureFixture[str]) -> None:
    with script("plays-any-role") as ill, script("well-bred") as well:
        assert kipcheck(["doctor", "--target", ill]) == 3
        text = capsys.readouterr().out
        assert "wrong   an unknown role is unsupported: it answers ok\n" in text
        assert 'how to fix it: answer {"type": "configure", "unsupported": "why"}\n' in text
        assert text.endswith(f"2 of {len(PROBES)} probes failed\n")
        assert kipcheck(["doctor", "--target", well, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
    assert (printed["target"], printed["healthy"]) == (well, True)
    skipped = [each["tried"] for each in printed["examinations"] if each["state"] == "skipped"]
    passed = sum(each["state"] == "ok" for each in printed["examinations"])
    assert kipcheck(["doctor", "--target", well]) == 0
    assert skipped and capsys.readouterr().out.endswith(
        f"healthy: {passed} probes passed; not probed: {', '.join(skipped)}\n"
    )
    assert [each["id"] for each in printed["examinations"]] == [each.id for each in PROBES]
    assert {each["state"] for each in printed["examinations"]} == {"ok", "told", "skipped"}


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [("nobody", 2, "unknown target"), ("cmd:", 2, "names no command"), ("cmd:'", 2, "invalid command line"),
     ("java:nothing:1", 2, "unknown target")],
)  # fmt: skip
def test_what_is_no_testee_is_wrong_usage(name: str, code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert kipcheck(["doctor", "--target", name]) == code
    assert says in capsys.readouterr().err


def test_a_program_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert kipcheck(["doctor", "--target", "cmd:/no/such/program"]) == 3
    found = capsys.readouterr()
    assert found.out == ""
    assert "there is no program '/no/such/program' (No such file or directory): nothing was started" in found.err


def test_a_missing_program_a_missing_file_and_a_bad_testee_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_text("#!/no/such/interpreter\n")
    for command, why in (
        ("nosuchprogram --fast", "there is no program 'nosuchprogram' on the PATH"),
        (str(text), f"'{text}' is not executable"),
        (str(tmp_path), f"'{tmp_path}' is a folder, not a program"),
    ):
        assert kipcheck(["doctor", "--target", f"cmd:{command}"]) == 3
        assert why in capsys.readouterr().err
    text.chmod(0o755)
    assert kipcheck(["doctor", "--target", f"cmd:{text}"]) == 3
    assert f"'{text}' names an interpreter in its first line that does not exist" in capsys.readouterr().err
    assert kipcheck(["doctor", "--target", f"cmd:{sys.executable} -I nosuch.py"]) == 3
    found = capsys.readouterr().out
    assert "left with exit code 2" in found
    assert f"how to fix it: 'nosuch.py' in its command line does not exist in {Path.cwd()}" in found
    with script("greets-people") as bad:
        assert kipcheck(["doctor", "--target", bad]) == 3
    assert "b'Welcome!" in capsys.readouterr().out


@pytest.mark.integration
def test_a_death_is_shown_with_its_signal_and_first_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = seen("dies-at-length", tmp_path)
    line = lines["empty-batch"]
    assert line.found == "crashed: killed by SIGKILL (the end)"
    assert line.stderr == ("a fault of the library", *(f"  at frame {n}" for n in range(5)))
    assert line.fix.startswith('answer {"type": "results"')
    assert lines["claims"].fix.startswith("catch every exception of a case")
    with script("dies-at-length") as target:
        assert kipcheck(["doctor", "--target", target]) == 3
    assert "        stderr: a fault of the library\n        stderr:   at frame 0\n" in capsys.readouterr().out


def test_who_answers_for_damage_is_shown(tmp_path: Path) -> None:
    lines = seen("well-bred", tmp_path)
    assert "Of 2 messages without their last byte, 1 is rejected (Length), 1 is accepted" in lines["prefixes"].found
    assert "Of 2 messages with a further byte, 1 is rejected (Length), 1 is accepted" in lines["trailing"].found
    assert (lines["prefixes"].state, lines["trailing"].state) == ("told", "told")
    assert lines["leading"].state == "skipped"


@pytest.mark.integration
def test_a_doctor_sees_whoever_listens(tmp_path: Path) -> None:
    serving = subprocess.Popen(
        [sys.executable, "-m", "kipcheck", "testee", "reference", "--listen", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert serving.stdout is not None
        address = serving.stdout.readline().partition(" is ")[2].partition(";")[0]
        lines = {line.id: line for line in run_probes(target(address), 20, PROBES)}
    finally:
        serving.terminate()
        serving.communicate()
    assert wrong(lines) == {}
    assert lines["end-of-stdin"].state == "skipped"


def test_every_testee_of_these_tests_is_there() -> None:
    assert {row[0] for row in WRONG} <= TESTEES.keys()
