"""Files below --out: kipcheck removes and replaces what it wrote, and nothing else; wrong arguments change nothing."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kipcheck import reports
from kipcheck.conformance.campaign import shard_sizing
from kipcheck.conformance.campaign.directory import starting_corpus
from kipcheck.conformance.campaign.driver import CampaignRequest, Ready, campaign
from kipcheck.conformance.campaign.executors import local
from kipcheck.conformance.campaign.executors.choice import Chosen
from kipcheck.conformance.campaign.executors.preflight import Unready
from kipcheck.conformance.campaign.manifest import Manifest, UnusableCampaign
from kipcheck.conformance.campaign.report import row_files as rows
from kipcheck.conformance.cli import main
from kipcheck.conformance.core import ledger
from kipcheck.conformance.core.files.output_folder import (
    FAILURES,
    LIST,
    MATRIX,
    OF_A_CAMPAIGN,
    OF_A_MATRIX,
    OF_A_RUN,
    REPORTS,
    ROWS,
    OutputFolder,
    Unusable,
)
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.engine.execution import run as engine_run
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.suite import combined
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Target
from kipcheck.reports import matrix

MUTANT = "miniature/refuses-unknown-tags"
ID = "0123456789ab"
ASKED = ("run", "--message", "HeartbeatRe*", "--check", "wire/repeat", "--cases", "1", "--workers", "1", "--target")
RUN = (*ASKED, "reference")
ONE = ("--message", "HeartbeatRequest", "--check", "wire/unknown-tags", "--cases", "2", "--workers", "1")
FAILING = ("run", *ONE, "--target", MUTANT)
CAMPAIGN = ("campaign", "--target", "reference", "--check", "wire/round-trip", "--cases", "300", "--executor", "inline")
SMALL = CampaignRequest(
    targets=("reference",), checks=("features/epochs",), cases=20, rounds=1,
    executor="inline", workers=1,
)  # fmt: skip
EXPLORE = ("explore", "features", "--edition", "kip-584", "--scope", "brokers=2")


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Miniatures without a process of their own."""
    real = registry.target

    def target_of(name: str) -> Target:
        short = name.removeprefix("miniature/")
        return InProcess(MUTANTS[short].made()) if short in MUTANTS else real(name)

    monkeypatch.setattr(engine_run, "target_of", target_of)


@pytest.fixture(scope="module")
def inline() -> Iterator[Ready]:
    with local.inline() as executor:

        @contextmanager
        def ready(*arguments: Any) -> Iterator[Chosen]:
            yield Chosen(executor, "for a test")

        yield ready


def state(folder: Path) -> dict[str, Any]:
    """All that is there, byte for byte; links are not followed."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = content
    return found


def placed(folder: Path, *names: str) -> Path:
    """With files of somebody else; ``NAME -> PATH`` is a link."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, _, to in (each.partition(" -> ") for each in names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if to:
            (folder / name).symlink_to(to)
        else:
            (folder / name).write_text("precious")
    return folder


def listed(folder: Path) -> list[str]:
    _, *entries = map(json.loads, (folder / LIST).read_text().splitlines())
    return entries


def refused(capsys: pytest.CaptureFixture[str], within: Path, *arguments: object) -> str:
    """What is said where a command ends with 2 and has changed nothing below ``within``."""
    before = state(within)
    capsys.readouterr()
    code = main.run([*map(str, arguments)])
    printed = capsys.readouterr()
    assert code == exits.USAGE, (arguments, printed)
    assert state(within) == before, arguments
    assert printed.err.count("\n") == 1, printed.err
    return printed.err


# ---- files of somebody else


@pytest.mark.integration
def test_a_file_that_kipcheck_did_not_write_stays_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([*RUN, "--out", str(tmp_path / "run")]) == 0
    merge = ("merge", str(tmp_path / "run"))
    placed(tmp_path / "elsewhere", "failures.json")
    commands: dict[tuple[str, ...], tuple[str, ...]] = {
        RUN: (
            "failures/mine.json",
            f"failures/{ID}.json",
            "report.html",
            "ledger.jsonl",
            "failures -> ../elsewhere",
            "report.html -> ../elsewhere/failures.json",
            "ledger.jsonl -> gone",
            ".junit.xml.part",
            "failures",
            "failures/sub -> /",
        ),
        CAMPAIGN: ("corpus/mine/seed", "ledger/rows.csv", "manifest.json", "corpus -> ../elsewhere", "corpus/latest"),
        merge: ("failures/mine.json", "failures/flaky/mine.json", "results.json"),
        ("matrix", "--from", "2.8", "--to", "3.9"): ("matrix.json", "histories/mine.json", "matrix.html -> gone"),
        EXPLORE: ("explore-features.html", "explore-features.jsonl -> gone"),
        ("corpus", "merge", str(placed(tmp_path / "c", "corpus/mine"))): ("corpus/mine.jsonl.gz", "corpus/latest"),
        ("corpus", "seeds", "--message", "HeartbeatRequest", "--cases", "1"): ("index.tsv", "kipcheck.dict"),
    }
    for number, (arguments, names) in enumerate(commands.items()):
        for name in names:
            out = placed(tmp_path / f"{number}-{names.index(name)}", name)
            printed = refused(capsys, tmp_path, *arguments, "--out", out)
            place = name.partition(" -> ")[0]
            assert f"{out}/{place} is in the way: " in printed, (arguments, printed)
            assert "Move it elsewhere, or name another folder with --out" in printed


def test_other_files_in_the_folder_are_left_alone_and_the_folder_may_be_a_link(tmp_path: Path) -> None:
    real = placed(tmp_path / "real", "notes.txt", "corpus/mine", "histories/mine", "matrix.json")
    (tmp_path / "out").symlink_to(real)
    before = state(real)
    for _ in range(2):
        assert main.run([*RUN, "--out", str(tmp_path / "out")]) == 0
    assert state(real).items() >= before.items()
    assert sorted(listed(real)) == sorted(["ledger.jsonl", *reports.FILES.values()])


def test_a_report_that_is_rendered_again_replaces_no_file_of_somebody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([*RUN, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_bytes()
    (tmp_path / LIST).unlink()  # as with services that store no hidden files
    assert main.run(["report", str(tmp_path), "--form", "all"]) == 0
    assert (tmp_path / "report.html").read_bytes() == page
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").symlink_to("ledger.jsonl")
    assert "report.html is in the way: it is a symbolic link" in refused(
        capsys, tmp_path, "report", tmp_path, "--form", "all"
    )


@pytest.mark.integration
def test_pruning_deletes_files_of_failures_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run([*FAILING, "--out", str(tmp_path / "out")])
    found, *_ = sorted((tmp_path / "out" / "failures").iterdir())
    filed = {**json.loads(found.read_text()), "target": "reference"}
    kept = [tmp_path / "mine.json", tmp_path / f"{ID}.json", tmp_path / "links" / found.name]
    for path in (tmp_path / found.name, *kept[:2]):
        path.write_text(json.dumps(filed))
    kept[2].parent.mkdir()
    kept[2].symlink_to(kept[0])
    capsys.readouterr()
    assert main.run(["replay", "--prune", *map(str, kept), str(tmp_path / found.name)]) == 0
    assert all(path.exists() for path in kept) and not (tmp_path / found.name).exists()
    assert capsys.readouterr().err.count("is kept: only files written by kipcheck and named ID.json") == 3


# ---- the list


def test_a_hostile_list_makes_nothing_removed_that_kipcheck_did_not_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    main.run([*FAILING, "--out", str(out)])
    victims = ["victim.json", f"failures/{ID}.json", "out/notes.txt", "out/src/main.py", "out/ledger/mine"]
    placed(tmp_path, *victims)
    hostile = [
        str(tmp_path / "victim.json"), "../victim.json", f"../failures/{ID}.json", f"failures/../../failures/{ID}.json",
        "notes.txt", "src/main.py", "ledger/mine", ".", "", "failures", f"failures//{ID}.json", "failures/*.json",
        f"failures/{ID}.json\n", f"./failures/{ID}.json", LIST,
    ]  # fmt: skip
    with (out / LIST).open("a") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in hostile)
    assert main.run([*RUN, "--out", str(out)]) == 0
    assert {(tmp_path / each).read_text() for each in victims} == {"precious"}
    assert not {*hostile} & {*listed(out)}, "they do not stay in the list"
    # What a link leads to is no file of kipcheck's, whatever the list says.
    (out / "failures").symlink_to(tmp_path / "failures")
    with (out / LIST).open("a") as file:
        file.write(f'"failures/{ID}.json"\n')
    assert f"{out}/failures is in the way: it is a symbolic link" in refused(capsys, tmp_path, *RUN, "--out", out)


def test_a_list_that_is_damaged_is_named_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main.run([*RUN, "--out", str(out)]) == 0
    good = (out / LIST).read_bytes()
    wrong = {
        b"": "does not begin with kipcheck's header",
        b"hello\n": "does not begin with kipcheck's header",
        b'"ledger.jsonl"\n' + good: "does not begin with kipcheck's header",
        b'{"format": 2, "kipcheck": "9"}\n': "its format is 2, and this kipcheck reads format 1",
        good + b"{}\n": "is not a path",
        good + b"\xff\xfe\n" + good: "is not a path",
        b"[" * 100_000 + b"\n": "does not begin with kipcheck's header",
    }
    for data, why in wrong.items():
        (out / LIST).write_bytes(data)
        printed = refused(capsys, tmp_path, *RUN, "--out", out)
        assert f"{out / LIST} is damaged: " in printed and why in printed
        assert "move the files to keep elsewhere and remove the folder, or name another folder with --out" in printed
    (out / LIST).unlink()
    (out / LIST).symlink_to(tmp_path / "list")
    (tmp_path / "list").write_bytes(good)
    assert f"{out / LIST} is in the way: it is not a regular file" in refused(capsys, tmp_path, *RUN, "--out", out)


def test_a_folder_from_before_there_were_lists_is_known_by_its_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run([*FAILING, "--out", str(tmp_path)])
    found = {path.name for path in (tmp_path / "failures").iterdir()}
    (tmp_path / LIST).unlink()
    (tmp_path / ".report.html.part").write_text("of a run that was killed")
    placed(tmp_path, "failures/mine.json")
    assert f"{tmp_path}/failures/mine.json is in the way" in refused(capsys, tmp_path, *RUN, "--out", tmp_path)
    (tmp_path / "failures" / "mine.json").unlink()
    assert found and main.run([*RUN, "--out", str(tmp_path)]) == 0
    assert not (tmp_path / "failures").exists() and not (tmp_path / ".report.html.part").exists()
    # A ledger of somebody else marks nothing.
    for text in ('{"type": "header"}', '{"type":"header","format":2}', "[]", '{"format": 2, "kipcheck": "1"}', ""):
        out = placed(tmp_path / "other", "report.html")
        (out / "ledger.jsonl").write_text(f"{text}\n")
        assert "ledger.jsonl is in the way (and so are other files there)" in refused(capsys, out, *RUN, "--out", out)


def test_a_campaign_or_a_matrix_alone_marks_a_folder_too(tmp_path: Path) -> None:
    for name, text in (("manifest.json", '{"format": 1, "plan": {}, "kipcheck": "0"}'),
                       ("matrix.json", '{"cells": [], "kipcheck": "0"}')):  # fmt: skip
        out = tmp_path / name
        out.mkdir()
        with pytest.raises(Unusable, match="is in the way"):
            OutputFolder(placed(out, name)).check(*OF_A_CAMPAIGN, *OF_A_MATRIX)
        (out / name).write_text(text)
        OutputFolder(out).check(*OF_A_CAMPAIGN, *OF_A_MATRIX)


def test_a_kill_between_list_and_file_leaves_no_file_that_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    real = Path.write_text

    def killed(path: Path, *arguments: Any, **more: Any) -> int:
        if path.parent.name == "failures":
            real(path, '{"half of')
            raise Killed
        return real(path, *arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", killed)
        with pytest.raises(Killed):
            main.run([*FAILING, "--out", str(tmp_path)])
    (half,) = (tmp_path / "failures").iterdir()
    assert f"failures/{half.name}" in listed(tmp_path)
    with (tmp_path / LIST).open("a") as file:
        file.write(f'"failures/{ID}.json"\n"failures/{ID[::-1]}.js')  # killed before the file, and amid a line
    (tmp_path / f"{LIST}.part").write_text("a list that was never finished")
    assert main.run([*RUN, "--out", str(tmp_path)]) == 0
    assert sorted(listed(tmp_path)) == sorted(["ledger.jsonl", *reports.FILES.values()])
    assert sorted(os.listdir(tmp_path)) == sorted([LIST, *listed(tmp_path)])


def test_only_names_that_kipcheck_gives_are_written(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path / "out")
    for entry in ("../x", "failures/../../x", str(tmp_path / "x"), "failures/x.json", "notes.txt", LIST):
        with pytest.raises(Unusable, match="is not the name of a file that kipcheck writes"):
            folder.claim(f"failures/{ID}.json", entry)
    assert not (tmp_path / "out").exists()
    assert folder.claim(f"failures/{ID}.json") == tmp_path / "out" / "failures" / f"{ID}.json"
    assert listed(tmp_path / "out") == [f"failures/{ID}.json"]


def test_a_line_that_was_cut_off_is_replaced_and_removal_takes_listed_files_of_one_kind(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    entries = [f"failures/{ID}.json", f"failures/flaky/{ID}.json"]
    folder.claim(entries[0]).write_text("{}")
    with (tmp_path / LIST).open("a") as file:
        file.write('"failures/0123')
    folder.claim(entries[1]).write_text("{}")
    assert listed(tmp_path) == entries
    placed(tmp_path, "failures/mine.json", f"failures/{ID[::-1]}.json", f"failures/.{ID}.json.part")
    folder.remove(FAILURES)
    left = {f"{ID[::-1]}.json", "mine.json", f"{ID}.json"}
    assert {path.name for path in (tmp_path / "failures").rglob("*.json")} == left
    assert (tmp_path / entries[1]).exists() and not (tmp_path / entries[0]).exists()
    assert listed(tmp_path) == entries[1:] and not (tmp_path / "failures" / f".{ID}.json.part").exists()


def test_the_names_of_reports_are_those_that_reports_have() -> None:
    assert {*REPORTS.tops} == {*reports.FILES.values()}
    assert {matrix.NAME, *matrix.FILES.values()} == {*MATRIX.tops}


# ---- commands in one folder


@pytest.mark.integration
def test_run_campaign_and_merge_take_turns_in_one_folder(
    tmp_path: Path, inline: Ready, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert campaign(replace(SMALL, out=out), inline).why == ""
    main.run([*FAILING, "--out", str(out)])
    assert (out / "failures").exists()
    assert campaign(replace(SMALL, out=out), inline).why == ""
    assert not (out / "failures").exists()
    assert main.run([*RUN, "--out", str(out)]) == 0
    assert (out / "manifest.json").exists() and (out / "corpus" / "latest").exists() and (out / "ledger").exists()
    assert main.run([*RUN, "--out", str(tmp_path / "1")]) == 0
    assert main.run(["merge", str(tmp_path / "1"), "--out", str(out)]) == 0
    written = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert written == {LIST, *listed(out)}


@pytest.mark.integration
def test_a_second_campaign_keeps_the_corpus_of_the_first_and_comes_to_its_own_end(
    tmp_path: Path, inline: Ready, capsys: pytest.CaptureFixture[str]
) -> None:
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    campaign(replace(SMALL, out=out), inline)
    first = {name: data for name, data in state(out / "corpus").items() if name != "latest"}
    newest = out / "corpus" / (out / "corpus" / "latest").read_text().strip()
    other = replace(SMALL, seed=7, checks=("features/gating",))
    capsys.readouterr()
    campaign(replace(other, out=out), inline)
    printed = capsys.readouterr().err
    assert f"the corpus of the previous campaign is kept in {newest}; to start from it: --corpus {newest}" in printed
    campaign(replace(other, out=fresh), inline)
    assert capsys.readouterr().err.count("the previous campaign") == 0
    assert state(out / "corpus").items() >= first.items()
    assert (out / "corpus" / "latest").read_text() == (fresh / "corpus" / "latest").read_text() != newest.name
    assert Manifest.read(out).hash == Manifest.read(fresh).hash
    assert rows.read(out).hash == rows.read(fresh).hash
    digests = []
    for folder in (out, fresh):
        assert main.run(["corpus", "info", str(folder), "--json"]) == 0
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert digests[0] == digests[1]
    # A third one may begin with the corpus of the first.
    assert starting_corpus(newest).digest == newest.name.partition(".")[0]
    with pytest.raises(UnusableCampaign, match=r"the corpus .* cannot be read"):
        starting_corpus(out / "ledger.jsonl")


# ---- arguments first


@pytest.mark.integration
def test_a_run_that_does_not_start_leaves_the_results_of_the_run_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    main.run([*FAILING, "--out", str(out)])
    assert any((out / "failures").iterdir())
    events = placed(tmp_path, "events.jsonl") / "events.jsonl"
    (tmp_path / "known.toml").write_text("[[[")
    run = ("run", "--workers", "1", "--events", str(events))
    wrong: dict[tuple[str, ...], str] = {
        ("--target", "nosuch"): "unknown target 'nosuch'",
        ("--target", "reference", "--target", "nosuch"): "unknown target 'nosuch'",
        ("--target", "reference", "--check", "wire/rond-trip"): "no check matches 'wire/rond-trip'",
        ("--target", "reference", "--message", "NoSuch*"): "'NoSuch*' matches no message",
        ("--target", "reference", "--target", MUTANT, "--message", "NoSuch*"): "'NoSuch*' matches no message",
        ("--target", "reference", "--edition", "kip-1"): "unknown edition 'kip-1'",
        ("--target", "reference", "--known", str(tmp_path / "known.toml")): "known.toml",
        ("--target", "reference", "--known", str(tmp_path / "none.toml")): "none.toml",
        ("--target", "reference", "--profile", "nosuch"): "nosuch",
        ("--target", "reference", "--events", str(tmp_path / "none" / "x")): "none/x cannot be written",
        ("--target", "nosuch", "--events", str(tmp_path / "new.jsonl")): "unknown target 'nosuch'",
    }
    for arguments, why in wrong.items():
        assert why in refused(capsys, tmp_path, *run, *arguments, "--out", out), arguments
    refused(capsys, tmp_path, *run, *arguments, "--out", tmp_path / "new" / "folder")
    with pytest.raises(SystemExit):
        main.run([*run, "--part", "3/2", "--out", str(out)])
    assert "cannot be written" in refused(capsys, tmp_path, *RUN, "--out", events / "below")
    assert "cannot be written" in refused(capsys, tmp_path, *RUN, "--out", events)
    before = state(out)
    assert main.run([*RUN, "--events", str(events), "--out", str(out)]) == 0
    assert state(out) != before
    assert [json.loads(line)["type"] for line in events.read_text().splitlines()][:2] == ["header", "target"]


@pytest.mark.integration
def test_a_campaign_that_does_not_start_leaves_the_results_of_the_one_before(
    tmp_path: Path, inline: Ready, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    campaign(replace(SMALL, out=out), inline)
    before = state(out)

    def absent(*arguments: Any) -> Any:
        raise Unready("Spark needs a Java")

    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    changes: list[tuple[dict[str, Any], Callable[..., Any], int]] = [
        ({"targets": ("nosuch",)}, inline, exits.USAGE),
        ({"targets": ("cmd:false",)}, inline, exits.BROKEN),
        ({"checks": ("features/rond-trip",)}, inline, exits.USAGE),
        ({"targets": ("reference",), "checks": ("wire/*",), "edition": "kip-1"}, inline, exits.USAGE),
        ({"known": (str(tmp_path / "none.toml"),)}, inline, exits.USAGE),
        ({"corpus": tmp_path / "nowhere"}, inline, exits.USAGE),
        ({}, absent, exits.USAGE),
        ({"cases": None, "budget": 60.0}, inline, exits.UNDECIDED),
    ]
    monkeypatch.setattr(shard_sizing, "sized", interrupted)
    for change, ready, code in changes:
        outcome = campaign(replace(SMALL, out=out, **change), ready)
        assert (outcome.exit_code, bool(outcome.why)) == (code, True), (change, outcome)
        assert state(out) == before, change
    assert campaign(replace(SMALL, out=tmp_path / "new", targets=("nosuch",)), inline).exit_code == exits.USAGE
    assert not (tmp_path / "new").exists()


def test_a_merge_that_cannot_be_leaves_what_was_merged_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, out = tmp_path / "1", tmp_path / "2", tmp_path / "out"
    main.run([*FAILING, "--out", str(one)])
    assert main.run(["merge", str(one), "--out", str(out)]) == exits.FAILED
    assert "contains no ledger.jsonl" in refused(capsys, tmp_path, "merge", two, "--out", out)
    main.run([*FAILING, "--seed", "1", "--out", str(two)])
    assert "--seed is 0" in refused(capsys, tmp_path, "merge", one, two, "--out", out)
    assert "is one of the folders to be merged" in refused(capsys, tmp_path, "merge", one, out, "--out", out)


def test_the_folder_of_a_matrix_is_tried_before_a_cell_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*arguments: Any) -> Any:
        pytest.fail("cells are played")

    monkeypatch.setattr("kipcheck.conformance.matrix.build.run_matrix", made)
    placed(tmp_path, "file")
    asked = ("matrix", "--from", "2.8", "--to", "3.9", "--scenario", "join")
    assert f"{tmp_path}/file cannot be written" in refused(capsys, tmp_path, *asked, "--out", tmp_path / "file" / "x")
    denied = tmp_path / "denied"
    (denied / f"{LIST}.part").mkdir(parents=True)  # nothing can be written there, for root neither
    assert f"{denied}/{LIST}.part cannot be written" in refused(capsys, tmp_path, *asked, "--out", denied)


@pytest.mark.integration
def test_items_of_pytest_are_forgotten_and_nothing_else(tmp_path: Path) -> None:
    config: Any = SimpleNamespace(getoption=lambda name: tmp_path)
    assert main.run([*RUN, "--out", str(tmp_path / combined.ITEMS / "one")]) == 0
    combined.remove_earlier(config)
    assert [*(tmp_path / combined.ITEMS).iterdir()] == []
    for name in ("items/one/mine", "items/mine", "failures/mine.json", "report.html"):
        placed(tmp_path, name)
        with pytest.raises(pytest.UsageError, match=f"{name} is in the way: .*--kipcheck-out"):
            combined.remove_earlier(config)
        assert (tmp_path / name).read_text() == "precious"
        (tmp_path / name).unlink()
    assert ledger.NAME in {top for kind in OF_A_RUN for top in kind.tops}


def test_the_time_for_a_file_does_not_grow_with_the_list(tmp_path: Path) -> None:
    def taken(folder: OutputFolder, first: int) -> float:
        began = time.process_time()
        for wave in range(first, first + 200):
            path = folder.claim(f"ledger/round=0/wave-{wave}.jsonl")
            path.touch()
            folder.forget({f"ledger/round=0/wave-{wave}.jsonl"})
        return time.process_time() - began

    short, long = OutputFolder(tmp_path / "short"), OutputFolder(tmp_path / "long")
    for folder in (short, long):
        folder.path.mkdir()
    long.claim(*(f"ledger/round=1/wave-{wave}.parquet" for wave in range(20_000)))
    of_long, of_short = taken(long, 1), taken(short, 1)
    assert of_long < 5 * of_short + 0.2
    assert "ledger/round=1/wave-19999.parquet" in (long.path / LIST).read_text()
    other = OutputFolder(long.path)
    other.remove(ROWS)
    assert not (long.path / LIST).exists()


def test_a_file_of_a_long_list_that_was_forgotten_and_is_written_again_stays_listed(tmp_path: Path) -> None:
    folder, again = OutputFolder(tmp_path), "ledger/round=0/wave-0.jsonl"
    many = {f"ledger/round=1/wave-{wave}.jsonl" for wave in range(2_000)}
    folder.claim(again, *many)
    folder.forget({again})
    folder.claim(again).touch()
    folder.forget(many)
    assert (tmp_path / LIST).read_text().splitlines()[1:] == [f'"{again}"']
    assert folder.claim(again).exists()


def test_a_list_that_another_process_changed_is_read_again(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.claim("manifest.json")
    with (tmp_path / LIST).open("a") as file:
        file.write('"report.html"\n"cut o')
    (tmp_path / "report.html").touch()
    folder.claim("report.html", "junit.xml")
    assert (tmp_path / LIST).read_text().splitlines()[1:] == ['"manifest.json"', '"report.html"', '"junit.xml"']
