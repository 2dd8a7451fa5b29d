"""A stored failure taken along: programs that fail while the defect is there, captures that hold what was sent."""

import json
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.ledger import FiledFailure
from kipcheck.conformance.core.values.case import Case, Role, Step, step
from kipcheck.conformance.engine.execution.worker import Unit, Worker
from kipcheck.conformance.engine.export.formats import (
    Impossible,
    Stored,
    as_hex,
    as_pcap,
    as_pytest,
    as_script,
    load,
)
from kipcheck.conformance.engine.findings import failure_records
from kipcheck.conformance.engine.search.shrink import shrunk
from kipcheck.conformance.engine.strength.mutation_test import subject_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, RightAnswer
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh, InProcess
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.framing import decode_request, decode_response, unframe
from kipcheck.conformance.wire.pcap import CLIENT_PORT, PORT, Sent, checksum, pcap

PROGRAMS = [
    name for name, mutant in MUTANTS.items()
    if CHECKS[mutant.check].role in (Role.CODEC, Role.CONTROLLER) and not mutant.deadly and not mutant.remembers
    and INVARIANTS[mutant.invariant].right_answer is not RightAnswer.SEVERAL
]  # fmt: skip


def failure(name: str, out: Path) -> Path:
    """As a run files it."""
    mutant = MUTANTS[name]
    subject = subject_of(mutant)
    with Worker(name, Afresh(f"miniature/{name}", mutant.made)) as worker:
        unit = Unit(f"miniature/{name}", subject.edition, mutant.check, subject.name, subject.version, 0, None)
        findings = worker.run(unit).findings
        found = shrunk(worker, next(each for each in findings if each.invariant == mutant.invariant))
        assert found is not None
        line = failure_records.failure(worker.session(subject.edition, CHECKS[mutant.check].role).info, [found], out)
    return out / "failures" / f"{line.id}.json"


def trouble(program: bytes, adapter: Adapter) -> str | None:
    """What the program says of an adapter, asked here instead of in a process."""
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(program, "exported.py", "exec"), names)  # noqa: S102 - our own
    with InProcess(adapter).open(names["EDITION"], Role(names["ROLE"])):
        answers = [
            {"n": n, **json.loads(json.dumps(adapter.answer({"case": 0, **each})))}
            for n, each in enumerate(names["STEPS"])
        ]
    found: str | None = names["trouble"](answers)
    return found


@pytest.mark.parametrize("name", some_by_day(PROGRAMS, 10, pytest.mark.mutants))
def test_a_program_fails_with_the_defect_and_not_without_it(name: str, tmp_path: Path) -> None:
    program = as_script(load(failure(name, tmp_path)))
    found = trouble(program, MUTANTS[name].made())
    assert found is not None
    assert "expected" in found
    assert trouble(program, Reference()) is None


@pytest.fixture(scope="module")
def filed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return failure("forgets-the-sign", tmp_path_factory.mktemp("run"))


def exported(path: Path, *arguments: str, testee: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", **({"KIPCHECK_TESTEE": testee} if testee else {})}
    return subprocess.run(
        [sys.executable, *arguments, str(path)], capture_output=True, text=True, timeout=120, check=False,
        env=environment, cwd=path.parent,
    )  # fmt: skip


REFERENCE = "python -m kipcheck testee reference"


@pytest.mark.integration
def test_a_script_runs_by_itself(filed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["export", str(filed), "--as", "script", "--to", str(tmp_path)]) == 0
    path = tmp_path / f"{filed.stem}.py"
    assert capsys.readouterr().out == f"{path}\n"
    assert "from kipcheck" not in path.read_text()
    failed = exported(path)
    assert (failed.returncode, failed.stderr) == (1, "")
    assert '"hex": "ffff"' in failed.stdout
    assert 'fails: expected value {"errorCode": -1' in failed.stdout
    gone = exported(path, testee=REFERENCE)
    assert (gone.returncode, gone.stdout.splitlines()[-1]) == (0, "gone")


@pytest.mark.integration
def test_a_test_is_a_test(filed: Path, tmp_path: Path) -> None:
    assert main.run(["export", str(filed), "--as", "pytest", "--to", str(tmp_path)]) == 0
    path = tmp_path / f"test_{filed.stem}.py"
    plain = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    failed = exported(path, *plain)
    assert failed.returncode == 1
    assert "expected value" in failed.stdout
    passed = exported(path, *plain, testee=REFERENCE)
    assert passed.returncode == 0, passed.stdout


def test_a_program_tells_of_a_death_and_of_a_testee_that_is_not_there(filed: Path, tmp_path: Path) -> None:
    path = tmp_path / "it.py"
    path.write_bytes(as_script(load(filed)))
    died = exported(path, testee="python -c pass")
    assert (died.returncode, "'cause': 'crashed'" in died.stdout) == (1, True)
    line = json.dumps({"type": "hello", "unavailable": "not today"})
    absent = exported(path, testee=_saying(tmp_path, line))
    assert (absent.returncode, "not today" in absent.stderr) == (1, True)


def _saying(folder: Path, line: str) -> str:
    script = folder / "says.py"
    script.write_text(f"print({line!r})\n")
    return f"python {script}"


def stored(*steps: Step, role: Role = Role.CODEC, invariant: str = "wire/decodes", edition: str = "apache") -> Stored:
    case = Case("wire/two-readings", edition, role, steps)
    line: Mapping[str, Any] = {
        "format": 1, "id": "abcabcabcabc", "target": "reference", "version": "1", "invariant": invariant,
        "sentence": "A rule.",
        "why": 'It has """ and \\ in it.', "guilty_step": len(steps) - 1, "requirements": [], "case": case.plain,
    }  # fmt: skip
    return Stored(FiledFailure.of(line, blank=True), case)


def decode(message: str, version: int, data: bytes) -> Step:
    return step("codec", "decode", message=message, version=version, hex=data.hex())


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("cmd:./my testee", ["./my", "testee"]),
        ("java:kafka-clients:3.9.2", ["python", "-m", "kipcheck", "testee", "java:kafka-clients:3.9.2"]),
        ("kafka-python@2.3.0", ["python", "-m", "kipcheck", "testee", "kafka-python@2.3.0"]),
        ("tcp:127.0.0.1:9000", []),
    ],
)
def test_the_testee_is_the_one_with_which_it_was_found(target: str, command: list[str]) -> None:
    found = stored(decode("HeartbeatResponse", 0, b"\0\0"))
    names: dict[str, Any] = {"__name__": "exported"}
    program = as_script(Stored(found.line.update(target=target), found.case, trusted=True))
    exec(compile(program, "exported.py", "exec"), names)  # noqa: S102 - our own
    assert names["COMMAND"] == command


def test_whatever_a_failure_says_the_program_is_python() -> None:
    odd = stored(decode("HeartbeatResponse", 0, b"\0\0"))
    assert trouble(as_script(odd), Reference()) is None
    compile(as_pytest(odd), "odd.py", "exec")


def test_what_only_the_judge_can_tell_is_no_script_and_a_test_that_asks_the_judge(tmp_path: Path) -> None:
    asked = step("leader", "assign", assignor="range", topics=[], members=[])
    assignment = stored(asked, role=Role.LEADER, invariant="assignment/every-partition")
    with pytest.raises(Impossible, match="more than one assignment satisfies the invariant"):
        as_script(assignment)
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(as_pytest(assignment), "exported.py", "exec"), names)  # noqa: S102 - our own
    assert Case.of(json.loads(names["FAILURE"])["case"]) == assignment.case


# ---- captures


def packets(data: bytes) -> list[bytes]:
    magic, major, minor, _, _, most, link = struct.unpack("<IHHiIII", data[:24])
    assert (magic, major, minor, most, link) == (0xA1B2C3D4, 2, 4, 65535, 1)
    found, at, before = [], 24, (-1, -1)
    while at < len(data):
        seconds, micros, kept, size = struct.unpack("<IIII", data[at : at + 16])
        assert kept == size
        assert before < (seconds, micros)
        before = seconds, micros
        found.append(data[at + 16 : at + 16 + size])
        at += 16 + size
    assert at == len(data)
    return found


def streams(data: bytes) -> dict[int, bytes]:
    """By source port, what TCP carried, with every checksum, size and sequence number looked at."""
    next_byte: dict[int, int] = {}
    carried: dict[int, bytes] = {PORT: b"", CLIENT_PORT: b""}
    flags_seen = []
    for packet in packets(data):
        assert packet[12:14] == b"\x08\x00"
        ip = packet[14:]
        assert (ip[0], ip[9], len(ip)) == (0x45, 6, int.from_bytes(ip[2:4], "big"))
        assert checksum(ip[:20]) == 0
        tcp = ip[20:]
        source, target, number, seen = struct.unpack(">HHII", tcp[:12])
        assert checksum(ip[12:20] + struct.pack(">BBH", 0, 6, len(tcp)) + tcp) == 0
        assert {source, target} == {PORT, CLIENT_PORT}
        assert number == next_byte.get(source, 0)
        if tcp[13] & 0x10:
            assert seen == next_byte.get(target, 0)
        flags_seen.append(tcp[13])
        payload = tcp[20:]
        carried[source] += payload
        next_byte[source] = number + len(payload) + bool(tcp[13] & 0x03)
    assert flags_seen[:3] == [0x02, 0x12, 0x10]
    assert flags_seen[-3:] == [0x11, 0x11, 0x10]
    return carried


def frames(data: bytes) -> list[bytes]:
    found = []
    while data:
        payload, data = unframe(data)
        found.append(payload)
    return found


def test_a_request_is_captured_with_header_and_size() -> None:
    body = layout("apache", "JoinGroupRequest", 6).defaults() | {"groupId": "g"}
    data = layout("apache", "JoinGroupRequest", 6).encode(body)
    carried = streams(as_pcap(stored(decode("JoinGroupRequest", 6, data))))
    (payload,) = frames(carried[CLIENT_PORT])
    found = decode_request(payload)
    assert (found.message, found.version, found.correlation_id, found.client_id) == (
        "JoinGroupRequest", 6, 1, "kipcheck"
    )  # fmt: skip
    assert found.body["groupId"] == "g"
    assert carried[PORT] == b""


def test_an_answer_comes_after_a_request_for_it_so_that_a_reader_knows_what_it_is() -> None:
    data = layout("apache", "HeartbeatResponse", 4).encode({"errorCode": 27})
    first, second = decode("HeartbeatResponse", 4, data), decode("HeartbeatResponse", 3, data[:-1])
    carried = streams(as_pcap(stored(first, second)))
    asked = [decode_request(each) for each in frames(carried[CLIENT_PORT])]
    assert [(each.message, each.version, each.correlation_id) for each in asked] == [
        ("HeartbeatRequest", 4, 1), ("HeartbeatRequest", 3, 2)
    ]  # fmt: skip
    one, two = frames(carried[PORT])
    assert decode_response(one, "apache", "HeartbeatResponse", 4).body["errorCode"] == 27
    assert decode_response(two, "apache", "HeartbeatResponse", 3).correlation_id == 2


def test_an_api_versions_answer_has_the_header_without_tags() -> None:
    data = layout("apache", "ApiVersionsResponse", 3).encode({})
    (payload,) = frames(streams(as_pcap(stored(decode("ApiVersionsResponse", 3, data))))[PORT])
    assert decode_response(payload, "apache", "ApiVersionsResponse", 3).correlation_id == 1


def test_damage_is_captured_as_it_is() -> None:
    damaged = bytes.fromhex("0000ffffffffff")
    (payload,) = frames(streams(as_pcap(stored(decode("SyncGroupResponse", 0, damaged))))[PORT])
    assert payload == b"\0\0\0\x01" + damaged


@pytest.mark.parametrize(
    ("message", "by_client", "outer"),
    [
        ("ConsumerProtocolSubscription", True, "JoinGroupRequest"),
        ("StickyAssignorUserData", True, "JoinGroupRequest"),
        ("SubscriptionInfo", True, "JoinGroupRequest"),
        ("ConsumerProtocolAssignment", False, "SyncGroupRequest"),
        ("AssignmentInfo", False, "SyncGroupRequest"),
    ],
)
def test_what_travels_inside_of_another_message_is_captured_there(message: str, by_client: bool, outer: str) -> None:
    carried = streams(as_pcap(stored(decode(message, 1, b"\x01\x02odd"))))
    (asked,) = frames(carried[CLIENT_PORT])
    assert decode_request(asked).message == outer
    assert b"\x01\x02odd" in carried[CLIENT_PORT if by_client else PORT]


def test_what_is_stored_is_in_no_frame_and_has_bytes() -> None:
    kept = stored(decode("GroupMetadataValue", 3, b"\0\x03"))
    with pytest.raises(Impossible, match="GroupMetadataValue is never sent"):
        as_pcap(kept)
    assert as_hex(kept) == b"# step 1: decode GroupMetadataValue v3, the guilty one\n0003\n"


def test_a_value_is_captured_as_the_bytes_it_should_give() -> None:
    asked = step("codec", "encode", message="HeartbeatResponse", version=0, value={"errorCode": -1})
    (payload,) = frames(streams(as_pcap(stored(asked)))[PORT])
    assert payload == b"\0\0\0\x01\xff\xff"
    assert as_hex(stored(asked)).endswith(b"\nffff\n")


def test_a_header_is_a_frame_of_its_own() -> None:
    carried = streams(as_pcap(stored(decode("RequestHeader", 1, bytes.fromhex("000c000400000007ffff")))))
    assert frames(carried[CLIENT_PORT]) == [bytes.fromhex("000c000400000007ffff")]


def test_long_frames_take_several_packets_and_the_same_frames_are_the_same_capture() -> None:
    sent = [Sent(bytes(range(256)) * 20, by_client=True), Sent(b"abc", by_client=False)]
    assert streams(pcap(sent)) == {CLIENT_PORT: sent[0].data, PORT: b"abc"}
    assert len(packets(pcap(sent))) == 6 + 4 + 1 + 1 + 1
    assert pcap(sent) == pcap(sent)


def test_a_conversation_without_bytes_is_neither_capture_nor_hex() -> None:
    case = stored(step("operator", "describe"), role=Role.CONTROLLER, invariant="features/epoch-grows")
    for form in (as_pcap, as_hex):
        with pytest.raises(Impossible, match="--as script would do"):
            form(case)


# ---- the command


def test_by_id_to_standard_output(filed: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main.run(["export", filed.stem, "--as", "hex", "--out", str(filed.parents[1])]) == 0
    assert capsysbinary.readouterr().out == b"# step 1: decode HeartbeatResponse v0, the guilty one\nffff\n"


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        (None, 2, "cannot be read: no such file"),
        ("{}", 2, 'does not contain a failure: "target" must be a text'),
        ("[]", 2, "does not contain a failure"),
        ("nonsense", 2, "does not contain a failure"),
    ],
)
def test_what_is_no_failure_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, code: int, why: str
) -> None:
    path = tmp_path / "it.json"
    if text is not None:
        path.write_text(text)
    assert main.run(["export", str(path)]) == code
    printed = capsys.readouterr()
    assert (why in printed.err, printed.out) == (True, "")


def test_a_form_that_does_not_fit_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = stored(decode("GroupMetadataValue", 3, b"\0\x03"))
    path = tmp_path / "it.json"
    path.write_text(json.dumps(kept.line.plain))
    assert main.run(["export", str(path), "--as", "pcap"]) == 1
    assert "abcabcabcabc as pcap: GroupMetadataValue is never sent" in capsys.readouterr().err
