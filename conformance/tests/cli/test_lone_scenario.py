"""Scenarios of ``kipcheck matrix`` that are played alone: which options they refuse, and which files they replace."""

from pathlib import Path

import pytest

from kipcheck.conformance.cli import lone_scenario
from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.files.output_folder import (
    FEATURE_MATRIX,
    LONE_MATRICES,
    RECORD_MATRIX,
    STORE_MATRIX,
    Kind,
)

FILES = {"features": FEATURE_MATRIX, "records": RECORD_MATRIX, "store-upgrade": STORE_MATRIX}
OPTIONS = {"case": ("x.json",), "predict": ("x.toml",), "budget": ("5s",), "full": ()}


def test_every_kind_of_files_belongs_to_a_scenario() -> None:
    assert {*FILES.values()} == {*LONE_MATRICES}


@pytest.mark.parametrize("scenario", FILES)
def test_options_of_other_scenarios_are_refused(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, values in OPTIONS.items():
        assert run(["matrix", "--scenario", scenario, f"--{name}", *values, "--out", str(tmp_path)]) == 2
        assert capsys.readouterr() == ("", f"kipcheck: --{name} does not apply to {scenario}: omit it\n")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("scenario", "files"), FILES.items())
def test_a_file_that_kipcheck_did_not_write_stays_and_no_cell_is_played(
    scenario: str, files: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # a cell that is played would want a JDK
    for name in files.tops:
        (tmp_path / name).write_text("mine")
        assert run(["matrix", "--scenario", scenario, "--out", str(tmp_path)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and f"{tmp_path / name} is in the way" in err
        assert [each.name for each in tmp_path.iterdir()] == [name] and (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()


@pytest.mark.parametrize("files", LONE_MATRICES)
def test_a_later_run_replaces_the_files_of_an_earlier_one(files: Kind, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for number in (1, 2):
        lone_scenario.check(folder, files)
        page = lone_scenario.write(folder, files, {"cells": number}, f"<p>{number}</p>")
    data, html = files.tops
    assert (page, page.read_text()) == (folder / html, "<p>2</p>")
    assert (folder / data).read_text() == '{\n "cells": 2\n}\n'
    assert {each.name for each in folder.iterdir()} == {data, html, ".kipcheck"}
