"""A requirement is reached only by cases of the edition that states it, and counts by its parts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.core.ledger import NAME, Place, read
from kipcheck.conformance.core.values.requirement import Part, applies, requirements
from kipcheck.conformance.engine.catalogue import lint
from kipcheck.conformance.engine.catalogue.tables import parts_covered, requirement, totals
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.engine.ledger.header import header
from kipcheck.reports.coverage import Editions


@pytest.mark.parametrize(
    ("id", "stated", "releases", "where", "reached"),
    [
        ("429-15", "shipped", "2.4.0+", "apache", True),
        ("429-15", "shipped", "2.4.0+", "apache@2.4.0", True),
        ("429-15", "shipped", "2.4.0+", "apache@2.3.1", False),
        ("429-15", "shipped", "2.4.0+", "kip-429", False),
        ("429-02", "draft", "", "kip-429", True),
        ("429-02", "draft", "", "kip-584", False),
        ("429-02", "draft", "", "apache", False),
        ("429-07", "both", "all", "kip-429", True),
        ("429-07", "both", "all", "apache@0.10.0.0", True),
        ("429-07", "both", "all", "nowhere", False),
    ],
)
def test_the_edition_of_a_case_decides(id: str, stated: str, releases: str, where: str, reached: bool) -> None:
    assert applies(id, stated, releases, where) is reached


def test_rules_of_both_are_not_covered_for_releases_where_only_the_draft_is_played() -> None:
    gated, played = requirements()["584-11"], requirements()["584-08"]
    assert gated.edition == played.edition == "both"
    assert (parts_covered(gated, "draft"), parts_covered(gated, "released")) == (1, 0)
    assert requirement("584-11")["covered"] == {"released": 0, "draft": 1}
    assert requirement("584-08")["covered"] == {"released": 2, "draft": 2}
    assert {"features/gating", "zookeeper-features/updates"} <= {*requirement("584-08")["checks"]}


def test_totals_count_parts() -> None:
    for by, covered, there in totals():
        side = {"released": "shipped"}.get(by, by)
        stated = [each for each in requirements().values() if each.edition in ("both", side)]
        assert there == sum(max(1, len(each.parts)) for each in stated) > len(stated)
        assert 0 < covered < there


def test_a_part_without_an_invariant_that_covers_the_rule_is_reported() -> None:
    found = lint.lint_input()
    stated = found.requirements["584-08"]
    wrong = replace(stated, parts=(Part("one", ("wire/encodes",)), *stated.parts))
    single = replace(stated, parts=stated.parts[:1])
    lines = list(lint.troubles(replace(found, requirements={**found.requirements, "584-08": wrong})))
    assert lines == ["584-08: the part 'one' names wire/encodes, which does not cover the requirement"]
    lines = list(lint.troubles(replace(found, requirements={**found.requirements, "584-08": single})))
    assert lines == ["584-08: a single part is the requirement itself"]


def test_the_header_names_the_editions_of_drafts_in_a_run_of_releases() -> None:
    found = header(Options(checks=("features/*", "bounce/upgrade", "wire/round-trip")))
    assert found.editions is not None
    assert found.editions["features/gating"] == {"features": ("kip-584",)}
    assert set(found.editions["bounce/upgrade"]["bounce"]) == {"apache", "kip-429"}
    assert "wire/round-trip" not in found.editions
    assert header(Options(checks=("wire/round-trip",))).editions is None


@pytest.mark.parametrize(("target", "word"), [("reference", "own"), ("kafka-python", "real")])
@pytest.mark.integration
def test_requirements_says_who_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, word: str
) -> None:
    options = Options(targets=(target,), checks=("wire/round-trip",), messages=("HeartbeatRequest",), cases=1)
    assert run(replace(options, workers=1, out=tmp_path)).exit_code == 0
    assert command(["requirements", "grp-05", "--out", str(tmp_path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["requirements"]
    assert row["answered"] == word
    assert command(["requirements", "--out", str(tmp_path)]) == 0
    *rows, _, last = capsys.readouterr().out.splitlines()
    number = sum(f" {word} " in row for row in rows)
    assert number > 0 and last == f"{number if word == 'real' else 0} answered by a real target in {tmp_path}"
    assert command(["requirements", "--out", str(tmp_path / "none")]) == 2
    assert "contains no ledger.jsonl" in capsys.readouterr().err


def test_an_edition_covers_a_rule_only_with_invariants_that_were_judged_in_it() -> None:
    place = Place("java:x:1", "bounce/ownership", "bounce", None)
    declared = {"bounce/ownership": {"bounce": ("apache", "kip-429")}}
    judged = {place[:3]: {"apache": ("bounce/one-owner",), "kip-429": ()}}
    assert Editions("apache", declared, judged).of(place, "bounce/one-owner") == ("apache",)
    assert Editions("apache", declared, judged).of(place, "bounce/mixed") == ()
    assert Editions("apache", declared, {}).of(place, "bounce/one-owner") == ("apache", "kip-429")
    assert Editions("apache", {}, {}).of(place, "bounce/one-owner") == ("apache",)


@pytest.mark.integration
def test_a_run_says_which_invariants_it_judged_in_which_edition(tmp_path: Path) -> None:
    options = Options(targets=("reference",), checks=("bounce/ownership",), cases=3, workers=1, out=tmp_path)
    assert run(options).exit_code == 0
    (done,) = read(tmp_path / NAME).checks
    assert done.judged is not None and [*done.judged["bounce"]] == ["apache", "kip-429"]
    assert all("bounce/one-owner" in each for each in done.judged["bounce"].values())
