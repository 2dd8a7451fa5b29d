"""Parts of a run: each its own share, and together the whole, failures included."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from kipcheck.conformance.core.ledger import Ledger, read
from kipcheck.conformance.core.values.part import Part
from kipcheck.conformance.engine.execution.run import Options, execute, run
from kipcheck.conformance.engine.ledger.merge import merge
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess

MUTANT = "refuses-unknown-tags"
ASKED = Options(
    targets=(f"miniature/{MUTANT}", "reference"), messages=("HeartbeatRe*", "SyncGroupRequest", "LeaveGroupRequest"),
    checks=("wire/vectors", "wire/prefixes", "wire/unknown-tags"), cases=2, workers=1,
)  # fmt: skip


@given(st.text(), st.integers(1, 40))
def test_every_subject_falls_to_one_part(subject: str, of: int) -> None:
    assert sum(Part(number, of).includes(subject) for number in range(1, of + 1)) == 1


def test_the_parts_are_of_like_size_and_stay_what_they_are() -> None:
    subjects = [f"Message{number}" for number in range(300)]
    sizes = [sum(map(Part(number, 3).includes, subjects)) for number in (1, 2, 3)]
    assert min(sizes) > 80
    names = ("FindCoordinatorRequest", "JoinGroupRequest", "SyncGroupRequest", "sticky")
    assert [each for each in names if Part(1, 2).includes(each)] == ["JoinGroupRequest", "SyncGroupRequest"]


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "1 /3", "a/b", "١/٣", "1/99999"])
def test_what_is_no_part_is_told_so(text: str) -> None:
    with pytest.raises(ValueError, match="use I/N with"):
        Part.read(text)


def test_a_part_of_the_environment_is_read_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kipcheck", "run"], env={**os.environ, "KIPCHECK_PART": "4/3"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--part" in done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return executed(replace(ASKED, out=tmp_path_factory.mktemp("whole")))


def executed(options: Options) -> Ledger:
    """Without a process for each target."""
    targets = {options.targets[0]: InProcess(MUTANTS[MUTANT].made()), "reference": InProcess(Reference())}
    outcome = execute(options, targets.__getitem__)
    assert outcome.ledger is not None
    return read(outcome.ledger)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Ledger]:
    out = tmp_path_factory.mktemp("parts")
    return [executed(replace(ASKED, part=Part(number, 3), out=out / str(number))) for number in (1, 2, 3)]


def verdicts(ledger: Ledger) -> Counter[str]:
    return Counter(json.dumps(line.plain, sort_keys=True) for line in ledger.verdicts())


def failures(ledger: Ledger) -> dict[str, object]:
    """Whatever they say, but for the folder in which they stand."""
    return {each.id: {**each.plain, "reproduce": each.reproduce.partition(" --out ")[0]} for each in ledger.failures}


@pytest.mark.integration
def test_each_part_holds_its_own_subjects_and_is_complete(parts: list[Ledger]) -> None:
    for number, ledger in enumerate(parts, 1):
        assert ledger.complete
        assert ledger.header.part == (number, 3)
        assert all(Part(number, 3).includes(place.subject) for place in ledger.cases)
    assert any(ledger.failures for ledger in parts)


def test_parts_merged_are_the_whole(whole: Ledger, parts: list[Ledger], tmp_path: Path) -> None:
    merged = merge([each.path.parent for each in reversed(parts)], tmp_path)
    together = read(merged.ledger)
    assert verdicts(together) == verdicts(whole)
    assert failures(together) == failures(whole)
    assert together.counts == whole.counts
    assert together.footer is not None
    assert whole.footer is not None
    for key in ("complete", "exit", "exits", "meaning", "counts"):
        assert getattr(together.footer, key) == getattr(whole.footer, key), key
    assert {(each.target, each.check) for each in together.skips} == {(each.target, each.check) for each in whole.skips}
    assert sorted(map(repr, together.differences)) == sorted(map(repr, whole.differences))
    assert merged.exit_code == 1


def test_a_merged_failure_is_replayed_from_its_own_file(parts: list[Ledger], tmp_path: Path) -> None:
    merge([each.path.parent for each in parts], tmp_path / "all")
    for each in read(tmp_path / "all" / "ledger.jsonl").failures:
        filed = json.loads((tmp_path / "all" / "failures" / f"{each.id}.json").read_text("utf-8"))
        assert filed["case"]["steps"]
        assert (filed["cases"], filed["where"]) == (each.cases, each.where)
        assert each.reproduce == f"kipcheck replay {each.id} --out {tmp_path / 'all'}"


def test_a_part_to_which_nothing_falls_is_complete_and_tested_nothing(tmp_path: Path) -> None:
    one = replace(ASKED, targets=("reference",), messages=("HeartbeatRequest",), checks=("wire/prefixes",))
    codes = [run(replace(one, part=Part(number, 2), out=tmp_path / str(number))).exit_code for number in (1, 2)]
    ledgers = [read(tmp_path / number / "ledger.jsonl") for number in "12"]
    assert all(each.footer is not None and each.footer.complete for each in ledgers)
    assert sorted(zip(codes, (bool(each.cases) for each in ledgers), strict=True)) == [(0, True), (7, False)]


def test_a_part_of_nothing_is_wrong_usage_as_the_whole_is(tmp_path: Path) -> None:
    nothing = replace(ASKED, messages=("NoSuchMessage",), part=Part(1, 2), out=tmp_path)
    assert run(nothing).exit_code == 2


def test_the_plan_of_a_part_is_its_own() -> None:
    asked = replace(ASKED, targets=("reference",), checks=("wire/prefixes",), dry_run=True)
    plans = [run(replace(asked, part=Part(number, 2))).plan for number in (1, 2)]
    whole = run(asked).plan
    assert sorted(map(str, [*plans[0], *plans[1]])) == sorted(map(str, whole))
    assert not {row["subject"] for row in plans[0]} & {row["subject"] for row in plans[1]}
