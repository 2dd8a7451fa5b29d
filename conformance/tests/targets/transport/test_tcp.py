"""A testee that somebody started himself: on this machine only, asked one by one, in as many roles as it plays."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as kipcheck
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Died, Lost, Replied
from kipcheck.conformance.targets.protocol import Broken, Unavailable
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.tests.support import broken_testees


@contextlib.contextmanager
def listening(name: str) -> Iterator[str]:
    """Its address, as a target."""
    command = [sys.executable, "-P", "-m", "kipcheck", "testee", name, "--listen", "0"]
    serving = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert serving.stdout is not None
        stated = serving.stdout.readline()
        assert stated.startswith(f"{name} is tcp:127.0.0.1:")
        yield stated.partition(" is ")[2].partition(";")[0]
    finally:
        serving.terminate()
        serving.communicate()


def decode(*codes: int) -> Case:
    steps = [step("codec", "decode", message="HeartbeatResponse", version=0, hex=f"{code:04x}") for code in codes]
    return Case("test", "apache", Role.CODEC, tuple(steps))


@pytest.mark.integration
def test_a_run_finds_there_what_it_finds_elsewhere(tmp_path: Path) -> None:
    narrow = ["--message", "Heartbeat*", "--check", "wire/two-readings", "--cases", "8", "--workers", "2"]
    with listening("miniature/forgets-the-sign") as address:
        code = kipcheck(["run", "--target", address, *narrow, "--out", str(tmp_path)])
        assert code == 1
        (failure,) = read(tmp_path / "ledger.jsonl").failures
        assert (failure.invariant, failure.observed) == ("wire/decodes", "65535")
        stored = str(tmp_path / "failures" / f"{failure.id}.json")
        assert kipcheck(["replay", stored]) == 1
        assert kipcheck(["replay", stored, "--target", "reference"]) == 0
        assert kipcheck(["replay", stored, "--prune", "--target", "reference"]) == 0
    assert Path(stored).exists(), "another target says nothing about this one"
    assert json.loads(Path(stored).read_text())["target"] == address


@pytest.mark.integration
def test_roles_take_turns_on_one_connection() -> None:
    with (
        listening("reference") as address,
        target(address).open("apache", Role.CODEC) as codec,
        target(address).open("apache", Role.CONTROLLER) as controller,
    ):
        asked = Case("test", "apache", Role.CONTROLLER, (step("operator", "describe"),))
        for _ in range(2):
            ((answer,),) = codec.run([decode(0)])
            ((printed,),) = controller.run([asked])
            assert isinstance(answer, Replied)
            assert isinstance(printed, Replied)
        assert not codec.troubles and not controller.troubles


@contextlib.contextmanager
def broken(name: str, lives: int) -> Iterator[str]:
    """A broken testee behind a port, for so many connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError), server:  # the test is over before all its lives are
                for _ in range(lives):
                    connection, _ = server.accept()
                    with connection:
                        ends = connection.fileno()
                        command = [sys.executable, "-I", "-S", broken_testees.__file__, name]
                        subprocess.run(command, check=False, stdin=ends, stdout=ends)

        address = f"tcp:127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=serve, daemon=True).start()
        yield address


def test_a_death_is_its_own_case_s_and_the_rest_is_held_with_the_next_life() -> None:
    with broken("crashes", lives=10) as address, target(address).open("apache", Role.CODEC) as session:
        answers = [answer for (answer,) in session.run([decode(0), decode(1), decode(2)])]
    assert [type(each) for each in answers] == [Replied, Died, Replied]
    assert isinstance(answers[1], Died)
    assert answers[1].detail == "closed the connection"


def test_where_nobody_listens_any_more_the_death_is_told_and_the_rest_is_lost() -> None:
    with broken("crashes", lives=1) as address, target(address).open("apache", Role.CODEC) as session:
        answers = [answer for (answer,) in session.run([decode(0), decode(1), decode(2)])]
        assert [type(each) for each in answers] == [Replied, Died, Lost]
        with pytest.raises(Broken, match=r"cannot be started|did not start"):
            session.run([decode(0)])


def test_nobody_there_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with (
        pytest.raises(Unavailable, match="nothing listens there"),
        target(f"tcp:localhost:{port}").open("apache", Role.CODEC),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("tcp:", "invalid address"), ("tcp:127.0.0.1", "invalid address"), ("tcp:127.0.0.1:0", "invalid address"),
        ("tcp:127.0.0.1:http", "invalid address"), ("tcp:127.0.0.1:65536", "invalid address"),
        ("tcp:192.0.2.1:9000", "on this machine"), ("tcp:example.org:9000", "on this machine"),
    ],
)  # fmt: skip
def test_an_address_elsewhere_or_none_is_wrong_usage(address: str, why: str) -> None:
    with pytest.raises(LookupError, match=why):
        target(address)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [(["nobody"], 2, "unknown target 'nobody'"), (["tcp:127.0.0.1:1"], 2, "has no command of its own")],
)
def test_what_is_no_testee_of_ours_is_wrong_usage(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kipcheck(["testee", *arguments]) == code
    assert says in capsys.readouterr().err


def test_the_schema_is_printed_for_whoever_has_no_checkout(capsys: pytest.CaptureFixture[str]) -> None:
    assert kipcheck(["testee", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$id"] == "urn:kipcheck:testee:1"


@pytest.mark.parametrize("name", ["reference", "kafka-python"])
def test_on_stdin_and_stdout_it_speaks_lines(name: str) -> None:
    asked = [{"type": "hello", "protocol": 1, "run": "test"}, {"type": "bye"}]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kipcheck", "testee", name], check=False, capture_output=True, text=True,
        timeout=60, input="".join(json.dumps(each) + "\n" for each in asked),
    )  # fmt: skip
    hello, bye = map(json.loads, done.stdout.splitlines())
    assert (hello["name"], bye, done.returncode) == (name, {"type": "bye"}, 0)
