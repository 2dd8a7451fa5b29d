"""Every form is what those who read it expect: schemas, importers, limits."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]
import junitparser
import pytest
import xmlschema
from markdown_it import MarkdownIt

from kipcheck import reports
from kipcheck.conformance.core.ledger import lines, read, type_of
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.tests.support.ledgers import (
    FAILURE,
    FOOTER,
    REASON,
    SEEN,
    campaign,
    campaigned,
    everything,
    verdicts,
    write,
)
from kipcheck.reports.markdown import MOST
from kipcheck.reports.summary import summary

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run wrote that found defects in two targets."""
    out = tmp_path_factory.mktemp("run")
    targets = ("miniature/refuses-unknown-tags", "reference")
    run(Options(targets=targets, messages=("HeartbeatRe*",), checks=("wire/[!pv]*",), cases=4, workers=1, out=out))
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is made of a ledger with every kind of line."""
    out = tmp_path_factory.mktemp("made")
    reports.write(write(out, *everything()))
    return out


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files("kipcheck.reports") / f"{name}.schema.json").read_text("utf-8"))
    return found


def wrong_lines(ledger: Path) -> list[str]:
    whole = schema("ledger")
    found = []
    for line in map(json.loads, ledger.read_text("utf-8").splitlines()):
        of_its_type = {**whole["$defs"][line["type"]], "$defs": whole["$defs"]}
        found += [f"{line['type']} {e.json_path}: {e.message}" for e in _validator(of_its_type).iter_errors(line)]
    return found


def _validator(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema)


# ---- the ledger, and JSON


def test_the_schemas_are_schemas() -> None:
    for name in ("ledger", "results"):
        jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.integration
def test_every_line_of_a_run_is_as_the_schema_of_the_ledger_has_it(real: Path, made: Path, tmp_path: Path) -> None:
    fuzzed = write(tmp_path, *campaign(), header=campaigned())
    place = {"target": "somebody", "check": "wire/two-readings", "subject": "HeartbeatResponse", "version": 2}
    dead = write(
        tmp_path / "dead",
        ("held-back", {**place, "cases": 5, "result": "SKIP", "failure": "111111111111"}),
        ("expected", {**place, "results": {"FAIL": 3}}),
        ("inconclusive", {"target": "*", "check": "*", "why": "none of 8 cases passed"}),
        ("exchanges", {"judged": {"JoinGroup": 2}, "left": {"no law reads it": {"Fetch": 3}}}),
        (
            "script",
            {"target": "somebody", "subject": "client", "case": "1" * 16, "script": "stop", "broken": {}, "steps": []},
        ),
        (
            "cells",
            {
                "target": "somebody",
                "check": "client/groups",
                "dimensions": ["kind", "phase"],
                "played": 1,
                "pairs": 2,
                "missing": {"in no script of this run": 1},
                "rows": {"Fetch": {"stable": [1, 2]}},
            },
        ),
    )
    assert wrong_lines(real / "ledger.jsonl") == []
    assert wrong_lines(made / "ledger.jsonl") == []
    assert wrong_lines(fuzzed) == []
    assert wrong_lines(dead) == []
    reported = {type_of(line) for path in (made / "ledger.jsonl", fuzzed, dead) for line in lines(path)}
    assert reported == {each["$ref"].rpartition("/")[2] for each in schema("ledger")["oneOf"]}


def test_a_line_that_the_schema_does_not_have_is_seen(tmp_path: Path) -> None:
    without = {key: each for key, each in FAILURE.items() if key != "why"}
    path = write(tmp_path, ("failure", {**without, "colour": "red"}))
    assert len(wrong_lines(path)) == 2


@pytest.mark.parametrize("which", ["real", "made"])
@pytest.mark.integration
def test_the_results_are_as_their_schema_has_them(request: pytest.FixtureRequest, which: str) -> None:
    folder: Path = request.getfixturevalue(which)
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert [f"{e.json_path}: {e.message}" for e in _validator(schema("results")).iter_errors(results)] == []
    assert list(results)[-1] == "footer"
    assert results["footer"]["complete"] is True


def test_the_results_tell_what_came_of_each_subject_and_how_far_requirements_were_reached(made: Path) -> None:
    results = json.loads((made / "results.json").read_text("utf-8"))
    subjects = results["checks"][0]["subjects"]
    assert subjects["HeartbeatResponse"]["somebody"] == {
        "result": "FAIL", "counts": {"PASS": 30, "FAIL": 12}, "versions": {"PASS": "1", "FAIL": "2"},
    }  # fmt: skip
    assert subjects["HeartbeatResponse"]["another"]["result"] == "KNOWN"
    by_id = {each["id"]: each for each in results["requirements"]}
    assert by_id["584-04"]["reached"]["somebody"] == {
        "SyncGroupResponse": {"result": "PASS", "cases": 3, "versions": "0"}
    }
    assert (by_id["268-09"]["cases"], by_id["268-09"]["checks"]) == (0, [])


def test_of_a_run_that_was_cut_off_the_footer_says_so(tmp_path: Path) -> None:
    results = json.loads(reports.render(write(tmp_path, *verdicts("PASS", 2), footer=None), "json"))
    assert results["footer"]["complete"] is False
    assert results["footer"]["exit"] is None
    assert results["footer"]["counts"] == {"somebody": {"wire/two-readings": {"PASS": 2}}}


# ---- JUnit


@pytest.mark.parametrize("which", [pytest.param("real", marks=pytest.mark.integration), "made"])
def test_junit_is_what_importers_take(request: pytest.FixtureRequest, which: str) -> None:
    path: Path = request.getfixturevalue(which) / "junit.xml"
    found = xmlschema.XMLSchema(HERE / "junit.xsd").iter_errors(path)
    assert [f"{error.path}: {error.reason}" for error in found] == []
    for suite in junitparser.JUnitXml.fromfile(str(path)):
        before = suite.tests, suite.failures, suite.errors, suite.skipped
        suite.update_statistics()  # type: ignore[no-untyped-call]
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == before


def test_what_the_schema_of_junit_does_not_have_is_seen(made: Path) -> None:
    text = (made / "junit.xml").read_text("utf-8")
    checker = xmlschema.XMLSchema(HERE / "junit.xsd")
    for one, other in (("<testsuites>", '<testsuites tests="1">'), ("<system-err></system-err>", ""), ('0.000"', '-"')):
        assert one in text
        assert not checker.is_valid(text.replace(one, other, 1))


def test_a_test_fails_where_a_must_is_broken_and_only_there(made: Path) -> None:
    outcomes = {
        (case.get("classname"), case.get("name")): [each.tag for each in case]
        for case in ElementTree.parse(made / "junit.xml").iter("testcase")
    }
    assert outcomes["somebody.wire.two-readings", "HeartbeatResponse"] == ["failure"]
    assert outcomes["somebody.wire.two-readings", "JoinGroupRequest"] == []  # a note
    assert outcomes["somebody.wire.two-readings", "LeaveGroupRequest"] == ["skipped"]
    assert outcomes["another.wire.two-readings", "HeartbeatResponse"] == ["skipped"]  # known
    assert outcomes["another.wire.two-readings", "SyncGroupResponse"] == ["error"]  # undecided
    assert outcomes["another.assignment.owners", "sticky"] == ["skipped"]  # comes and goes
    assert outcomes["somebody.profile", "range"] == ["failure"]
    assert outcomes["kipcheck.run", "stale entry known.toml:9"] == ["error"]
    assert outcomes["kipcheck.run", "trouble 1: another"] == ["error"]
    assert outcomes["kipcheck.run", "the run is complete"] == []


def test_a_failing_test_shows_the_whole_block_and_its_command(made: Path) -> None:
    (failure,) = (
        each
        for case in ElementTree.parse(made / "junit.xml").iter("testcase")
        if (case.get("classname"), case.get("name")) == ("somebody.wire.two-readings", "HeartbeatResponse")
        for each in case
    )
    assert failure.get("message") == "errorCode is read as 65535, not -1"
    assert "kipcheck replay /somewhere/0123456789ab.json" in str(failure.text)


# ---- SARIF


def essentials(log: dict[str, Any]) -> list[str]:
    """What the standard demands of what is written here (SARIF 2.1.0, sections 3.13 to 3.59), and code scanning too."""
    wrong: list[str] = []
    wrong += ["version"] if log["version"] != "2.1.0" or not log["$schema"].endswith("sarif-2.1.0.json") else []
    for found in log["runs"]:
        rules = found["tool"]["driver"]["rules"]
        ids = [rule["id"] for rule in rules]
        wrong += ["a rule twice"] if len(set(ids)) != len(ids) else []
        wrong += [f"rule {rule['id']}: help" for rule in rules if not rule["help"]["text"]]
        wrong += [f"rule {rule['id']}: words" for rule in rules if not rule["shortDescription"]["text"]]
        for each in found["results"]:
            wrong += ["ruleIndex"] if ids[each["ruleIndex"]] != each["ruleId"] else []
            wrong += ["level"] if each["level"] not in ("error", "warning", "note") or each["kind"] != "fail" else []
            wrong += ["message"] if not each["message"]["text"] else []
            wrong += ["fingerprint"] if not all(map(str, each["partialFingerprints"].values())) else []
            wrong += ["count"] if each["occurrenceCount"] < 1 else []
            for place in each["locations"]:
                at = place["physicalLocation"]["artifactLocation"]
                wrong += ["place"] if found["artifacts"][at["index"]]["location"]["uri"] != at["uri"] else []
                wrong += ["an absolute place"] if at["uri"].startswith("/") or ":" in at["uri"] else []
                wrong += ["line"] if place["physicalLocation"]["region"]["startLine"] < 1 else []
        for each in found["invocations"]:
            wrong += ["invocation"] if not isinstance(each["executionSuccessful"], bool) else []
    return wrong


@pytest.mark.parametrize("which", ["real", "made"])
def test_sarif_keeps_the_rules_of_its_standard(request: pytest.FixtureRequest, which: str) -> None:
    folder: Path = request.getfixturevalue(which)
    log = json.loads((folder / "results.sarif").read_text("utf-8"))
    assert essentials(log) == []
    filed = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in log["runs"][0]["results"]}
    if which == "real":
        assert filed
        assert all((folder / uri).is_file() for uri in filed)


def test_sarif_that_breaks_a_rule_is_seen(made: Path) -> None:
    log = json.loads((made / "results.sarif").read_text("utf-8"))
    first, second = log["runs"][0]["results"][:2]
    first["ruleIndex"], second["level"] = 1 - first["ruleIndex"], "fatal"
    assert essentials(log) == ["ruleIndex", "level"]


def test_in_sarif_a_known_deviation_is_suppressed_and_says_why(made: Path) -> None:
    (found,) = json.loads((made / "results.sarif").read_text("utf-8"))["runs"]
    suppressed = [each for each in found["results"] if each.get("suppressions")]
    assert [each["partialFingerprints"]["kipcheckFailure/v1"] for each in suppressed] == ["111111111111"]
    assert suppressed[0]["suppressions"][0]["justification"].startswith("it is old")
    assert [each["level"] for each in found["results"]].count("warning") == 1
    assert found["tool"]["driver"]["rules"][0]["help"]["text"].startswith("grp-05, generated message classes: What is")


# ---- Markdown


def test_the_summary_is_a_headline_a_table_and_a_block_for_each_failure(made: Path) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse((made / "summary.md").read_text("utf-8"))
    assert next(each.content for each in tokens if each.type == "inline") == "❌ kipcheck: somebody 1.0, another 2.0"
    kinds = [each.type for each in tokens]
    assert kinds.count("table_open") == 2  # causes, then checks
    assert kinds.count("fence") == 1 + 5  # what is known in one, and each other failure
    assert "".join(each.content for each in tokens if each.type == "fence").count("  again     kipcheck replay") == 5


def test_skipped_cases_are_not_among_those_that_passed(tmp_path: Path) -> None:
    path = write(tmp_path, *verdicts("PASS", 40), *verdicts("SKIP", 2))
    assert "| wire/two-readings | ✅ pass 40, 2 skipped |" in reports.render(path, "markdown")
    assert "40, 2 skipped" in reports.render(path, "html")


def test_junit_begins_with_causes_and_the_run(made: Path) -> None:
    first = next(iter(ElementTree.parse(made / "junit.xml").getroot()))
    assert first.get("name") == "kipcheck run"
    (cause, complete, *_) = first.iter("testcase")
    assert (cause.get("name"), [each.tag for each in cause]) == ("somebody: An assignment is lost", ["failure"])
    assert "kipcheck replay /somewhere/0123456789ab.json" in str(cause[0].text)
    assert complete.get("name") == "the run is complete"


@pytest.mark.integration
def test_a_summary_is_never_longer_than_a_job_takes(tmp_path: Path) -> None:
    long = {**SEEN, "exhibits": [], "steps": [{"verb": "assign", "value": "ä" * 3000}] * 40}
    failures = [("failure", {**long, "id": f"{number:012x}"}) for number in range(60)]
    text = reports.render(write(tmp_path, *failures), "markdown")
    assert MOST * 0.9 < len(text.encode()) < 1 << 20
    assert "more are in the ledger" in text
    assert f"{59:012x}" in text


def test_a_known_deviation_has_its_reason_in_every_form(tmp_path: Path) -> None:
    known = ("failure", {**FAILURE, "known": REASON})
    path = write(tmp_path, *verdicts("FAIL", 12), known, footer={**FOOTER, "exit": 0, "exits": []})
    for form in ("text", "html", "junit", "json", "sarif"):
        assert "it is old" in reports.render(path, form), form


# ---- what there is to reach


def test_the_header_names_all_that_there_is_to_reach(real: Path) -> None:
    ledger = read(real / "ledger.jsonl")
    header = ledger.header
    assert list(header.requirements) == list(requirements())
    assert {invariant for _, invariant in ledger.held} <= header.invariants.keys()
    for about in header.invariants.values():
        for ids in (about.requirements, *about.besides.values()):
            assert all(header.requirements[id].text for id in ids)
    assert header.requirements["258-02"].text is None  # of stores: no codec can break it


def test_a_requirement_is_reached_on_the_versions_that_were_held(real: Path) -> None:
    results = json.loads((real / "results.json").read_text("utf-8"))
    reached = next(each for each in results["requirements"] if each["id"] == "grp-05")["reached"]
    assert {name: cell["versions"] for name, cell in reached["reference"].items()} == {
        "HeartbeatRequest": "0-4", "HeartbeatResponse": "0-4",
    }  # fmt: skip
    assert {cell["result"] for cell in reached["reference"].values()} == {"PASS"}
    assert "FAIL" in {cell["result"] for cell in reached["miniature/refuses-unknown-tags"].values()}
    result = sum(1 for line in read(real / "ledger.jsonl").verdicts() if line.target == "reference")
    assert results["footer"]["counts"]["reference"] and result == sum(
        count for by in results["footer"]["counts"]["reference"].values() for count in by.values()
    )


def test_a_failure_has_its_own_fix_and_not_that_of_its_requirement(made: Path) -> None:
    for name in ("report.html", "results.sarif"):
        text = (made / name).read_text("utf-8")
        assert "Read an error code as a signed number." in text
        assert "Mend it." not in text


def test_failures_are_shown_by_cause(made: Path) -> None:
    found = summary(read(made / "ledger.jsonl"))
    first = found.causes[0]
    assert first.cause is not None and first.cause.title == "An assignment is lost"
    assert [each.id for each in first.failures] == ["0123456789ab", "222222222222"]
    assert all(each.cause is None and len(each.failures) == 1 for each in found.causes[1:])
    text = reports.render(made / "ledger.jsonl", "text")
    at = [text.index(each) for each in ("CAUSE An assignment is lost", "FAIL 0123456789ab", "WARN 222222222222")]
    assert at == sorted(at)
    for name in ("report.html", "summary.md", "junit.xml", "results.sarif", "results.json"):
        written = (made / name).read_text("utf-8")
        assert "An assignment is lost" in written, name
        assert "stuck group" in written, name
        assert "kafka-clients 4.4.0" in written, name


def test_a_ledger_without_causes_is_shown_as_before(tmp_path: Path) -> None:
    lines = [each for each in everything() if each[0] != "cause"]
    found = summary(read(write(tmp_path, *lines)))
    assert {each.cause for each in found.causes} == {None}
    assert [bool(each.known) for each in found.failures] == sorted(bool(each.known) for each in found.failures)
    assert "CAUSE" not in reports.render(tmp_path / "ledger.jsonl", "text")
