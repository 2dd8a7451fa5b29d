"""The workbench and the house, as scripts use them: exit codes, one line on stderr, nothing on stdout."""

import io
import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.wire import layout
from kipcheck.golden.vectors import Report

HEARTBEAT = {"groupId": "g", "generationId": 3, "memberId": "m", "groupInstanceId": None}
HEARTBEAT_V4 = "02670000000302" + "6d" + "00" + "00"


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = run(arguments)
    except SystemExit as stopped:  # argparse
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def given(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_the_version_is_that_of_the_installed_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, "--version") == (0, f"kipcheck {metadata.version('kipcheck')}\n", "")


def test_encode_prints_hex(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given(monkeypatch, json.dumps(HEARTBEAT))
    assert outcome(capsys, "encode", "--message", "HeartbeatRequest", "--version", "4") == (0, HEARTBEAT_V4 + "\n", "")
    file = tmp_path / "value.json"
    file.write_text(json.dumps(HEARTBEAT))
    printed = outcome(capsys, "encode", "--message", "HeartbeatRequest", "--version", "4", str(file))[1]
    assert printed == HEARTBEAT_V4 + "\n"


def test_decode_prints_one_object(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = outcome(capsys, "decode", "--message", "HeartbeatRequest", "--version", "4", HEARTBEAT_V4)
    assert (code, json.loads(out), err) == (0, HEARTBEAT, "")
    given(monkeypatch, HEARTBEAT_V4 + "\n")
    assert json.loads(outcome(capsys, "decode", "--message", "HeartbeatRequest", "--version", "4", "-")[1]) == HEARTBEAT


def test_unknown_tags_cross_the_workbench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tagged = HEARTBEAT_V4[:-2] + "01" + "07" + "02" + "00ff"
    code, out, _ = outcome(capsys, "decode", "--message", "HeartbeatRequest", "--version", "4", tagged)
    assert (code, json.loads(out)["_unknownTaggedFields"]) == (0, [{"tag": 7, "data": "00ff"}])
    given(monkeypatch, out)
    assert outcome(capsys, "encode", "--message", "HeartbeatRequest", "--version", "4")[1].strip() == tagged


@pytest.mark.parametrize(
    "arguments, stdin",
    [
        (["encode", "--message", "HeartbeatRequest", "--version", "4"], "{"),
        (["encode", "--message", "HeartbeatRequest", "--version", "4"], "[]"),
        (["encode", "--message", "HeartbeatRequest", "--version", "4"], '{"generationId": NaN}'),
        (["encode", "--message", "HeartbeatRequest", "--version", "4"], '{"groupId": "a", "groupId": "b"}'),
        (["encode", "--message", "HeartbeatRequest", "--version", "99"], "{}"),
        (["encode", "--message", "HeartbeatRequests", "--version", "4"], "{}"),
        (["encode", "--edition", "apaches", "--message", "HeartbeatRequest", "--version", "4"], "{}"),
        (["encode", "--edition", "apache@3.9.99", "--message", "HeartbeatRequest", "--version", "4"], "{}"),
        (["encode", "--message", "HeartbeatRequest"], "{}"),
        (["encode", "--message", "HeartbeatRequest", "--version", "4", "/no/such/file"], ""),
        (["decode", "--message", "HeartbeatRequest", "--version", "4", "0g"], ""),
        (["decode", "--message", "HeartbeatRequest", "--version", "4", "012"], ""),
        (["explain", "--message", "HeartbeatRequest", "--version", "4", "xx"], ""),
        (["editions", "diff", "apache", "nowhere"], ""),
    ],
)
def test_what_cannot_be_read_is_exit_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], stdin: str
) -> None:
    given(monkeypatch, stdin)
    code, out, err = outcome(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("kipcheck: ") and err.count("\n") == 1


UNKNOWN = "0123456789ab"
HEARTBEAT_OPTIONS = ("--message", "HeartbeatRequest", "--version", "4")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("decode", *HEARTBEAT_OPTIONS, "0g"), "not hex: character 2 is 'g'"),
        (("decode", *HEARTBEAT_OPTIONS, "012"), "not hex: 3 digits, an odd number; a byte has two"),
        (("decode", *HEARTBEAT_OPTIONS, "0 12 3"), "not hex: a space splits a byte after character 1"),
        (("encode", *HEARTBEAT_OPTIONS, "none.json"), "none.json cannot be read: no such file in {}"),
        (("encode", *HEARTBEAT_OPTIONS, "{}"), "{} cannot be read: it is a folder"),
        (("encode", *HEARTBEAT_OPTIONS, "--batch", "none.json"), "none.json cannot be read: no such file in {}"),
        (("assign", "--target", "reference", "--assignor", "range", "none"), "none cannot be read: no such file in {}"),
        (("known", "check", "none.toml"), "none.toml cannot be read: no such file in {}"),
        (("known", "list", "none.toml"), "none.toml cannot be read: no such file in {}"),
        (("replay", "none.json"), "none.json cannot be read: no such file in {}"),
        (("replay", UNKNOWN), f"no failure {UNKNOWN} in kipcheck-out/failures, and no such file or folder in {{}}"),
        (("replay", "empty"), "no stored failures (ID.json) in empty"),
        (("replay", "run"), "no stored failures (ID.json) in run/failures"),
        (("replay",), "no stored failures (ID.json) in kipcheck-out/failures"),
        (("export", UNKNOWN, "--out", "run"), f"no failure {UNKNOWN} in run/failures, and no such"),
        (("export", "empty"), "empty cannot be read: it is a folder"),
    ],
)  # fmt: skip
def test_it_names_what_cannot_be_read_and_where(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for each in ("empty", "run/failures"):
        (tmp_path / each).mkdir(parents=True)
    code, out, err = outcome(capsys, *(each.format(tmp_path) for each in arguments))
    assert (code, out, err) == (2, "", err) and err.startswith(f"kipcheck: {why.format(tmp_path)}")


@pytest.mark.parametrize(
    "arguments, stdin, why",
    [
        (["encode", "--message", "HeartbeatRequest", "--version", "4"], '{"groupIdd": "g"}', "groupIdd"),
        (["encode", "--message", "HeartbeatRequest", "--version", "4"], '{"generationId": 2147483648}', "generationId"),
        (["encode", "--message", "HeartbeatRequest", "--version", "2"], '{"groupInstanceId": "i"}', "groupInstanceId"),
        (["encode", "--message", "SyncGroupResponse", "--version", "0"], '{"assignment": "0g"}', "assignment"),
        (["decode", "--message", "HeartbeatRequest", "--version", "4", HEARTBEAT_V4[:-2]], "", "at byte"),
        (["decode", "--message", "HeartbeatRequest", "--version", "4", HEARTBEAT_V4 + "00"], "", "at byte 10"),
    ],
)
def test_what_the_layout_refuses_is_exit_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], stdin: str, why: str
) -> None:
    given(monkeypatch, stdin)
    code, out, err = outcome(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("kipcheck: ") and err.count("\n") == 1 and why in err


def test_a_batch_answers_line_for_line_and_never_stops(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = {"message": "HeartbeatRequest", "version": 4, "value": HEARTBEAT}
    draft = {"edition": "kip-429", "message": "JoinGroupRequest", "version": 5, "value": {"protocolVersion": 1}}
    lines = [
        good,
        "{",
        {**good, "version": 99},
        {**good, "value": {"x": 1}},
        {**good, "value": 1},
        {**good, "colour": 1},
        {"message": "HeartbeatRequest", "version": 4},
        {**good, "version": "4"},
        {**good, "edition": "x"},
        draft,
    ]
    given(monkeypatch, "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    code, out, err = outcome(capsys, "encode", "--batch")
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, err, len(answers)) == (1, "", len(lines))
    assert answers[0] == {"hex": HEARTBEAT_V4}
    assert answers[-1]["hex"].endswith("00000001")
    assert [answer["error"]["class"] for answer in answers[1:-1]] == [
        "not-json", "unknown-version", "unknown-field", *["bad-line"] * 4, "unknown-edition",
    ]  # fmt: skip
    assert all(answer["error"].keys() == {"class", "message", "path", "offset"} for answer in answers[1:-1])


def test_a_batch_of_hex_says_where_the_bytes_break(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_text(f'{{"hex": "{HEARTBEAT_V4}"}}\n{{"hex": "02"}}\n')
    code, out, _ = outcome(capsys, "decode", "--batch", "--message", "HeartbeatRequest", "--version", "4", str(file))
    good, bad = map(json.loads, out.splitlines())
    assert (code, good) == (1, {"value": HEARTBEAT})
    assert (bad["error"]["path"], bad["error"]["offset"]) == ("groupId", 0)
    file.write_text(f'{{"hex": "{HEARTBEAT_V4}"}}\n')
    assert outcome(capsys, "decode", "--batch", "--message", "HeartbeatRequest", "--version", "4", str(file))[0] == 0


def test_explain_shows_every_field_and_names_the_damage(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = outcome(capsys, "explain", "--message", "HeartbeatRequest", "--version", "4", HEARTBEAT_V4)
    assert code == 0 and err == ""
    assert all(name in out for name in HEARTBEAT)
    code, out, err = outcome(capsys, "explain", "--message", "HeartbeatRequest", "--version", "4", HEARTBEAT_V4[:6])
    assert code == 1 and "groupId" in out and "generationId" in err
    code, out, _ = outcome(capsys, "explain", "--json", "--message", "HeartbeatRequest", "--version", "4", HEARTBEAT_V4)
    assert code == 0 and json.loads(out)


def test_a_streams_subscription_above_the_newest_is_read_up_to_its_second_int(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = outcome(capsys, "decode", "--message", "SubscriptionInfo", "--version", "12", "0000000c0000000d00ff")
    assert (code, json.loads(out)) == (0, {"version": 12, "latestSupportedVersion": 13, "_rest": "00ff"})
    given(monkeypatch, out)
    assert outcome(capsys, "encode", "--message", "SubscriptionInfo", "--version", "12")[1] == "0000000c0000000d00ff\n"


def test_version_1_as_0_10_1_to_1_1_write_it_has_an_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    assert "userEndPoint" not in layout("apache", "SubscriptionInfo", 1).names
    assert "userEndPoint" not in layout("kip-268", "SubscriptionInfo", 1).names
    assert "userEndPoint" in layout("apache@1.1.1", "SubscriptionInfo", 1).names


def test_editions_lists_exact_patches(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "editions", "--json")
    table = json.loads(out)["releases"]
    assert code == 0
    assert table["3.9.2"]["JoinGroup"] == [0, 9]
    assert table["4.0.0"]["JoinGroup"] == [2, 9]
    assert table["4.0.1"]["JoinGroup"] == [0, 9]
    assert "StreamsGroupHeartbeat" not in table["4.1.2"]  # unstable there
    assert outcome(capsys, "editions")[0] == 0


def test_an_editions_diff_exits_1_where_a_reader_would_misread(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, "editions", "diff", "apache@2.3.0", "apache@2.3.0")[0] == 0
    assert outcome(capsys, "editions", "diff", "apache@2.3.0", "kip-429")[0] == 1


def test_what_there_is_can_be_looked_up(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "requirements", "--json")
    rows = {row["id"]: row for row in json.loads(out)["requirements"]}
    assert code == 0 and rows["grp-06"]["checks"] == ["wire/unknown-tags"]
    assert rows["grp-06"]["invariants"] == ["wire/keeps-unknown-tags"] and rows["grp-06"]["grade"] == "SHOULD"
    assert rows["card-01"]["checks"] == [] and rows["card-01"]["tests"]
    code, out, _ = outcome(capsys, "requirements", "grp-06")
    assert code == 0 and "ascending order of tags" in out and "TaggedFields" in out
    assert outcome(capsys, "requirements", "grp-00")[0] == 2
    code, out, _ = outcome(capsys, "checks", "--json")
    assert code == 0 and "wire/damage" in {row["id"] for row in json.loads(out)["checks"]}
    code, out, _ = outcome(capsys, "targets", "--json")
    by_name = {row["name"]: row for row in json.loads(out)["targets"]}
    assert code == 0 and by_name["reference"]["available"] and "codec" in by_name["kafka-python"]["roles"]
    assert outcome(capsys, "checks")[0] == outcome(capsys, "requirements")[0] == outcome(capsys, "targets")[0] == 0


def test_invariants_of_every_check_cover_their_requirements(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = json.loads(outcome(capsys, "requirements", "grp-30", "--json")[1])["requirements"]
    assert row["invariants"] == ["keeps-its-claims"] and {*row["checks"]} == {*CHECKS}
    assert outcome(capsys, "requirements", "grp-30")[1].splitlines()[0].endswith(" every check")
    *_, last = outcome(capsys, "checks")[1].split("every check\n")
    assert [line.split()[1] for line in last.splitlines()] == ["survives:", "keeps-its-claims:"]


def test_tests_that_show_a_requirement_exist(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(outcome(capsys, "requirements", "--json")[1])["requirements"]
    root = Path(__file__).resolve().parents[3]
    named = [(row["id"], each) for row in rows for each in row["tests"]]
    assert named
    for id, each in named:
        file, _, function = each.partition("::")
        assert f"\ndef {function}(" in (root / file).read_text("utf-8"), f"{id} names {each}, which is no test"
    out = outcome(capsys, "requirements", "card-01")[1]
    assert out.splitlines()[0].endswith(" tests of kipcheck") and f"    test: {dict(named)['card-01']}" in out


def test_every_requirement_that_is_named_exists() -> None:
    from kipcheck.conformance.core.values.requirement import requirements
    from kipcheck.conformance.engine.catalogue.tables import checks_table

    named = {id for check in checks_table() for each in check["invariants"] for id in each["requirements"]}
    assert named and named <= requirements().keys()


def test_golden_vectors_are_verified_without_java(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # test_golden.py looks at every vector; here it is what the command makes of what was found
    monkeypatch.setattr("kipcheck.golden.vectors.report", lambda: Report((), ()))
    code, out, err = outcome(capsys, "golden", "verify")
    counted = re.fullmatch(r"0 vectors, 0 wrong\n(\d+ regressions), 0 wrong\n", out)
    assert (code, err) == (0, "") and counted is not None and counted[1] != "0 regressions"
    monkeypatch.setattr("kipcheck.golden.vectors.report", lambda: Report((), ("one is wrong",)))
    assert outcome(capsys, "golden", "verify") == (
        1, f"one is wrong\n0 vectors, 1 wrong\n{counted[1]}, 0 wrong\n", "",
    )  # fmt: skip


def test_lines_that_are_no_utf8_are_answered_like_any_other() -> None:
    lines = b'\xff\n{"hex": "\xff"}\n{"hex": "00"}\n'
    about = ("decode", "--batch", "--message", "ResponseHeader", "--version", "0")
    command = [sys.executable, "-m", "kipcheck", *about]
    shown = subprocess.run(command, input=lines, capture_output=True, timeout=60, check=False)
    answers = [json.loads(line)["error"]["class"] for line in shown.stdout.splitlines()]
    assert (shown.returncode, answers, shown.stderr) == (1, ["not-json", "not-hex", "truncated"], b"")


@pytest.mark.integration
def test_a_failure_is_replayed_by_id_and_by_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    about = ("--check", "wire/unknown-tags", "--message", "ApiVersionsResponse", "--cases", "4", "--workers", "1")
    code, shown, _ = outcome(capsys, "run", *about, "--out", out)
    assert code == 1 and "kipcheck replay " in shown
    file = next((tmp_path / "out" / "failures").iterdir())
    assert file.stem in shown
    assert f"kipcheck replay {file.stem} --out {out}" in outcome(capsys, "report", out, "--details")[1]
    assert outcome(capsys, "replay", str(file))[0] == 1
    assert outcome(capsys, "replay", file.stem, "--out", out)[0] == 1
    assert outcome(capsys, "replay", "nothing", "--out", out)[0] == 2
    code, shown, _ = outcome(capsys, "replay", "--out", out)
    stored = {each.stem for each in file.parent.iterdir()}
    assert code == 1 and {line.partition("  ")[0] for line in shown.splitlines()} == stored
    assert outcome(capsys, "replay", str(tmp_path))[0] == 2, "a folder without failures"
    file.write_text(json.dumps({**json.loads(file.read_text()), "target": "reference"}))
    assert outcome(capsys, "replay", "--prune", "--out", out)[0] == 1
    assert {each.stem for each in file.parent.iterdir()} == stored - {file.stem}


def test_help_answers_without_the_heavy_libraries() -> None:
    script = """if True:
        import sys
        from kipcheck.conformance.cli.main import parser
        parser().format_help()
        print([name for name in ("hypothesis", "construct", "kafka", "pyspark", "asyncio") if name in sys.modules])
    """
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "[]"
