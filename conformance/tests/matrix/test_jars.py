"""Cells of the matrix with released jars: two in every run, more with all jars."""

import json
from pathlib import Path

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.clients.java.streams_members import open_jars
from kipcheck.conformance.matrix.cells import BREAKS, OK, Cell, cells, outcome
from kipcheck.conformance.matrix.groups import released_binaries
from kipcheck.conformance.matrix.known import listed
from kipcheck.conformance.matrix.predictions import committed
from kipcheck.conformance.matrix.release_lines import named
from kipcheck.conformance.matrix.scenario_names import BOUNCE, JOIN, SCENARIOS
from kipcheck.conformance.matrix.scenarios import Pair


@pytest.mark.jars
@pytest.mark.parametrize(
    ("scenario", "old", "new", "verdict", "requirement"),
    [(JOIN, "2.1.1", "2.0.1", BREAKS, "268-33"), (BOUNCE, "2.8.2", "3.9.2", OK, None)],
)
def test_a_cell_with_jars(scenario: str, old: str, new: str, verdict: str, requirement: str | None) -> None:
    with open_jars([old, new]) as jars:
        found = outcome(Cell(scenario, Pair(named(old), named(new))), released_binaries(jars.binary))["cell"]
    assert (found["verdict"], found["requirement"]) == (verdict, requirement), found["reason"]
    assert found["rounds"] >= 2


@pytest.mark.all_jars
def test_what_breaks_with_jars_breaks_again_from_its_file(tmp_path: Path) -> None:
    assert main.run(["matrix", "--from", "2.1", "--to", "2.0", "--scenario", "join", "--out", str(tmp_path)]) == 0
    (cell,) = json.loads((tmp_path / "matrix.json").read_text())["cells"]
    assert cell["verdict"] == BREAKS
    assert main.run(["matrix", "--case", str(tmp_path / "histories" / f"{cell['case']}.json")]) == 1


@pytest.mark.all_jars
def test_cells_of_all_lines_are_as_foretold_or_known() -> None:
    asked = cells(SCENARIOS, (), ())[::29]
    predictions, known = committed(), listed()
    unlike = []
    with open_jars(sorted({each.patch for cell in asked for each in cell.pair if each.patch != "future"})) as jars:
        for cell in asked:
            verdict, reported = (
                outcome(cell, released_binaries(jars.binary, cell.edition))["cell"]["verdict"],
                predictions.of(cell),
            )
            assert reported is not None
            if verdict != reported.verdict and not any(each.expects(cell, verdict) for each in known):
                unlike.append((*cell.key, verdict, reported.verdict))
    assert not unlike
