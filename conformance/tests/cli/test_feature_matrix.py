"""``kipcheck matrix --scenario features``: predictions, the page, errors, and cells run with released controllers."""

import json
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.matrix.feature_cells import FeatureCell, plain, predicted
from kipcheck.reports import feature_matrix


def test_an_older_neighbour_holds_back_what_it_does_not_support() -> None:
    older, newer = predicted("3.9.2", "3.3.2"), predicted("3.9.2", "4.0.2")
    assert (older.registers, older.formatted, older.held["broker"]["metadata.version"]) == (False, 7, 7)
    assert (newer.registers, newer.formatted, newer.held) == (True, 21, {"broker": {}, "controller": {}})


def test_a_cell_unlike_its_prediction_is_shown() -> None:
    cell = predicted("3.9.2", "3.9.2")
    other = FeatureCell("3.9.2", "3.9.2", True, 21, cell.predicted, {"broker": {}, "controller": {}})
    found = plain([other], {"3.3.2": "no jar"})
    assert found["cells"][0]["differs"]
    assert "X" in feature_matrix.text(found).splitlines()[1]
    assert "3.3.2 was not run: no jar" in feature_matrix.text(found)
    assert "<table>" in feature_matrix.html(found)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--scenario", "join"), "features is played alone: omit the other scenarios"),
        (("--from", "2.8.2"), "release 2.8.2 has no KRaft controller of feature versions; the first is 3.3.0"),
        (("--to", "new"), "invalid release 'new'"),
        (("--full",), "--full does not apply to features: omit it"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    arguments: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["matrix", "--scenario", "features", *arguments, "--out", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err
    assert not [*tmp_path.iterdir()]


@pytest.mark.integration
@pytest.mark.jars
def test_released_controllers_answer_as_predicted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ["matrix", "--scenario", "features", "--from", "3.9.2", "--from", NEWEST, "--to", "3.7.2", "--to", "4.0.2"]
    assert run([*asked, "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["differs"] for each in found["cells"]] == [False] * 4
    assert all(each["played"] == each["predicted"] for each in found["cells"])
