"""A run names the invariants that no case could judge: a target that refuses everything violates nothing."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kipcheck import reports
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.part import Part
from kipcheck.conformance.engine.execution.run import Options, execute
from kipcheck.conformance.engine.ledger.merge import merge
from kipcheck.conformance.protocols.group.target import CoordinatorAdapter
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.reports import terminal

ASKED = Options(targets=("group",), checks=("group/generations", "group/errors"), cases=30, workers=1)


class RefusesToJoin(CoordinatorAdapter):
    """It rejects every request of a client that wants to be a member."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["op"] == "join":
            return {"status": "rejected", "class": "NoRoom", "message": "no member is welcome"}
        return super().answer(op)


def ran(adapter: CoordinatorAdapter, options: Options, code: int = exits.CONFORMANT) -> Path:
    outcome = execute(options, lambda name: InProcess(adapter))
    assert (outcome.exit_code, outcome.failures) == (code, 0)
    assert outcome.ledger is not None
    return outcome.ledger


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(RefusesToJoin(), replace(ASKED, out=tmp_path_factory.mktemp("refused")))


def test_a_coordinator_that_refuses_every_member_passes_and_what_it_hides_is_named(
    refused: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "UNJUDGED", 4)
    (unjudged,) = json.loads(reports.render(refused, "json"))["footer"]["totals"]["unjudged_invariants"].values()
    assert {"group/generation-grows", "group/one-leader", "group/assignment-from-leader"} <= {*unjudged}
    assert not {"group/answers-join", "group/answers-heartbeat", "group/answered-once"} & {*unjudged}
    (line,) = (each for each in reports.render(refused, "brief").splitlines() if "not judged" in each)
    assert line.startswith(f"group: {len(unjudged)} invariants were not judged: {', '.join(unjudged[:4])} and ")
    assert f"and {len(unjudged) - 4} more: kipcheck report " in line and line.endswith("--details")
    for form in ("text", "markdown", "html"):
        text = " ".join(reports.render(refused, form).replace("\\", "").split())
        assert f"{len(unjudged)} invariants were not judged: {', '.join(unjudged)}" in text, form
    properties = json.loads(reports.render(refused, "sarif"))["runs"][0]["properties"]
    assert properties["totals"]["unjudged_invariants"] == {"group": unjudged}
    (number,) = ElementTree.fromstring(reports.render(refused, "junit")).findall(
        ".//property[@name='unjudged_invariants']"
    )
    assert number.get("value") == str(len(unjudged))


def test_it_covers_less_than_one_that_grants(refused: Path, tmp_path: Path) -> None:
    granted = ran(CoordinatorAdapter(), replace(ASKED, out=tmp_path))
    assert [done.judged for done in read(granted).checks] == [None, None]
    assert "not judged" not in reports.render(granted, "brief")
    reached = [json.loads(reports.render(each, "json"))["requirements"] for each in (refused, granted)]
    assert str(reached[0]) != str(reached[1])


def test_merged_parts_name_what_none_of_them_judged(refused: Path, tmp_path: Path) -> None:
    # The only subject is in the first part: the second one has nothing to judge.
    parts = [
        ran(RefusesToJoin(), replace(ASKED, part=Part(number, 2), out=tmp_path / str(number)), code).parent
        for number, code in ((1, exits.CONFORMANT), (2, exits.INCONCLUSIVE))
    ]
    assert all("not judged" not in reports.render(each / "ledger.jsonl", "brief") for each in parts)
    merged = merge(parts, tmp_path / "all")
    assert merged.exit_code == exits.CONFORMANT
    lines = [
        next(line for line in reports.render(each, "text").splitlines() if "not judged" in line)
        for each in (merged.ledger, refused)
    ]
    assert lines[0] == lines[1]
