"""The lines of a ledger as dataclasses: they are written as they were read, and wrong ones are refused."""

import ast
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.ledger import TYPES, Failure, FiledFailure, Writer, lines, read
from kipcheck.conformance.core.ledger.failure import ByteRow, SequenceStep, TableRow
from kipcheck.conformance.core.ledger.record import keys_of
from kipcheck.conformance.core.ledger.schema import LEDGER, RESULTS, dumped, ledger_schema, with_lines
from kipcheck.conformance.core.values.failure_group import FailureGroup
from kipcheck.conformance.engine.findings.failures import DistinctFailure, Traits, distinct, is_among, united
from kipcheck.conformance.tests.support.ledgers import FAILURE, HEADER, REASON, everything, write

ROOT = Path(str(files("kipcheck")))


def written(path: Path, out: Path) -> list[str]:
    with Writer(out) as writer:
        for line in lines(path):
            writer.write(line)
    return out.read_text("utf-8").splitlines()


def test_lines_are_written_as_they_were_read(tmp_path: Path) -> None:
    """The same keys in the same order; keys that are absent stay absent."""
    path = write(tmp_path, *everything())
    found = [json.dumps(json.loads(each), ensure_ascii=False) for each in written(path, tmp_path / "again.jsonl")]
    assert found == path.read_text("utf-8").splitlines()


def test_what_a_later_release_adds_is_kept(tmp_path: Path) -> None:
    later = {**FAILURE, "mood": {"sky": [1]}, "exhibits": [{"kind": "sound", "notes": ["c"]}]}
    path = write(tmp_path, ("failure", later), ("weather", {"sky": "blue"}), header={"mood": 1, **HEADER})
    assert [json.loads(each) for each in written(path, tmp_path / "again.jsonl")][:3] == [
        {"type": "header", "mood": 1, **HEADER}, {"type": "failure", **later}, {"type": "weather", "sky": "blue"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "line", "why"),
    [
        ("failure", {**FAILURE, "cases": "12"}, "failure: cases: must be an integer, got '12'"),
        ("failure", {**FAILURE, "where": 5}, "failure: where: must be an object, got 5"),
        (
            "failure",
            {**FAILURE, "requirements": [{"id": "x"}]},
            r"failure: requirements\[0\]: the field clause is missing",
        ),
        ("failure", {key: FAILURE[key] for key in FAILURE if key != "check"}, "failure: the field check is missing"),
        ("verdict", {"target": "x"}, "verdict: the field check is missing"),
        ("footer", {"complete": 1}, "footer: complete: must be true or false, got 1"),
        ("round", {"campaign": None}, "round: campaign: must be a string, got None"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_place(
    tmp_path: Path, kind: str, line: dict[str, Any], why: str
) -> None:
    path = write(tmp_path, (kind, line), footer=None)
    with pytest.raises(ValueError, match=rf"{path}:2: .*{why}"):
        read(path)


def test_updated_values_keep_their_places_and_new_ones_come_last() -> None:
    line = Failure.of(FAILURE)
    found = line.update(why="otherwise", known=None, tags=("a",))
    assert list(found.plain) == [*FAILURE, "known", "tags"]
    assert found.plain == {**FAILURE, "why": "otherwise", "known": None, "tags": ["a"]}
    assert found.without("known", "tags").plain == {**FAILURE, "why": "otherwise"}


def test_a_file_holds_the_failure_and_its_case() -> None:
    line = Failure.of(FAILURE)
    filed = FiledFailure.holding(line, {"steps": []}, "its last words")
    assert filed.plain == {"format": 2, **FAILURE, "case": {"steps": []}, "stderr": "its last words"}
    assert filed.line == line and filed.line.plain == FAILURE
    known = line.update(known=REASON)
    assert filed.with_line(known).plain == {**filed.plain, "known": REASON}


def test_the_schemas_are_generated() -> None:
    """To write them: ``python -m kipcheck.conformance.core.ledger.schema``."""
    folder = files("kipcheck.reports")
    assert (folder / LEDGER).read_text("utf-8") == dumped(ledger_schema())
    results = (folder / RESULTS).read_text("utf-8")
    assert results == dumped(with_lines(json.loads(results)))


# ---- groups


def test_a_failure_that_was_not_shrunk_joins_the_least_that_it_may_be() -> None:
    every = {"abc": True, "ab": True, "a": False, "x": False, "xy": False, "": False}

    def traits(group: FailureGroup[str]) -> Traits:
        return Traits(group.first, "t", "i", tuple(group.first), every[group.first])

    groups = [FailureGroup((each,)) for each in every]
    assert [each.members for each in distinct(groups, traits, also_unshrunk=False)] == [
        ("abc",), ("ab", "a", ""), ("x",), ("xy",),
    ]  # fmt: skip
    assert [each.members for each in distinct([*groups[:2], *groups[4:2:-1]], traits, also_unshrunk=True)] == [
        ("abc",), ("ab",), ("xy", "x"),
    ]  # fmt: skip


def test_a_group_is_one_failure_with_all_cases_and_places() -> None:
    one = Failure.of({**FAILURE, "known": REASON, "where": {"HeartbeatResponse": "1"}})
    two = Failure.of({**FAILURE, "case_id": "zz", "where": {"HeartbeatResponse": "3"}})
    found = united(FailureGroup(tuple(DistinctFailure(each, None) for each in (two, one)))).line
    assert (found.cases, found.where, found.case_id) == (24, {"HeartbeatResponse": "1, 3"}, "aa")
    assert found.known is None and found.beyond is not None and found.beyond.where == {"HeartbeatResponse": "3"}
    assert is_among(one, [two]) and not is_among(one, [two.update(id="ba9876543210")])


# ---- who reads lines by keys

MODULES = (
    "reports/*.py", "conformance/campaign/report/*.py", "conformance/engine/**/*.py", "conformance/suite/*.py",
    "conformance/cli/*.py",
)  # fmt: skip
EXEMPT = {
    "reports/matrix.py": "reads matrix.json",
    "reports/matrix_text.py": "reads matrix.json",
    "reports/matrix_html.py": "reads matrix.json",
    "reports/matrix_history.py": "reads the histories of a matrix",
    "reports/feature_matrix.py": "reads feature-matrix.json",
    "reports/record_matrix.py": "reads records.json",
    "reports/store_matrix.py": "reads store-upgrade.json",
    "reports/exploration.py": "reads the result of an exploration",
    "reports/sequence_text.py": "reads the rows of a diagram of an exploration",
    "conformance/cli/lookup.py": "prints the catalogue",
    "conformance/engine/doctor/probes.py": "reads messages of the testee protocol",
}
OTHERS = {
    ("conformance/cli/configuration.py", "tools"): "of pyproject.toml",
    ("conformance/cli/feature_matrix.py", "found"): "feature-matrix.json",
    ("conformance/cli/storedir.py", "each"): "a file of a store",
    ("conformance/cli/mutate.py", "near"): "of a result of mutate",
    ("conformance/cli/mutate.py", "mutation.totals(rows)"): "of mutation.json",
    ("conformance/engine/doctor/report.py", "results"): "a message of the testee protocol",
    ("conformance/engine/export/standalone.py", "each"): "a step; the program must run without kipcheck",
    ("conformance/engine/export/standalone.py", "got"): "a difference that the program finds",
    ("conformance/engine/findings/finding_pages.py", "rows"): "of the table of a page",
    ("conformance/engine/known/text.py", "document[entry.kind][0]"): "an entry of a list",
    ("conformance/engine/known/edit.py", "tomlkit.parse(text)"): "a list",
    ("conformance/engine/known/files.py", "listed"): "a list",
    ("conformance/engine/known/files.py", "table"): "an entry of a list",
    ("conformance/engine/catalogue/lint.py", "each"): "a requirement",
    ("conformance/engine/catalogue/lint_words.py", "value"): "an entry of a list",
    ("conformance/engine/reach/record.py", "each"): "an entry of reach.toml",
    ("conformance/engine/reach/record.py", "found"): "reach.json",
    ("conformance/engine/execution/selection.py", "row"): "of the plan",
    ("reports/phrases.py", "step"): "an operation",
    ("reports/phrases.py", "member"): "a part of an operation",
    ("reports/sarif.py", "rule"): "of SARIF",
    ("conformance/campaign/report/campaign_report.py", "plan"): "of manifest.json",
    ("conformance/campaign/report/campaign_report.py", "self.plan"): "of manifest.json",
    ("conformance/campaign/report/campaign_report.py", "aim"): "of manifest.json",
    ("conformance/campaign/report/campaign_report.py", "self.manifest"): "manifest.json",
    ("conformance/campaign/report/row_files.py", "header"): "of a file of rows",
    ("conformance/engine/findings/failures.py", "found"): "a file whose id and case are checked before it is read",
    ("conformance/engine/findings/failures.py", "filed.case"): "a case",
    ("conformance/engine/execution/profile.py", "listed"): "a profile",
    ("conformance/engine/export/formats.py", "step"): "an operation",
    ("conformance/suite/items.py", "lists"): "options",
    ("conformance/cli/known.py", "each"): "an entry of a list",
    ("conformance/cli/run.py", "row"): "of the plan",
    ("conformance/cli/known.py", "row"): "of a list of known deviations",
    ("conformance/engine/doctor/sample_probes.py", "each"): "the result of an operation",
    ("conformance/engine/doctor/sample_probes.py", "operation"): "an operation",
}
"""Other objects with keys of the same names."""


def keys() -> set[str]:
    kinds = (*TYPES, FiledFailure, ByteRow, TableRow, SequenceStep)
    return {key for kind in kinds for key in keys_of(kind)}


def by_key(source: str) -> Iterator[tuple[str, str]]:
    """Object and key of each ``x["key"]`` and ``x.get("key")``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=of, slice=ast.Constant(value=str(key))):
                yield ast.unparse(of), key
            case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[ast.Constant(value=str(key)), *_]):
                yield ast.unparse(of), key


def test_lines_are_read_by_their_fields() -> None:
    wanted, used = keys(), set[tuple[str, str]]()
    for pattern in MODULES:
        found = sorted(ROOT.glob(pattern))
        assert found, pattern
        for path in found:
            name = str(path.relative_to(ROOT))
            if name in EXEMPT:
                continue
            objects = {(name, of) for of, key in by_key(path.read_text("utf-8")) if key in wanted}
            used |= objects
            assert objects <= OTHERS.keys()
    assert used == OTHERS.keys(), "an exemption that nothing needs"


def test_reading_by_keys_is_found() -> None:
    source = 'each["why"], line.get("known"), failures[0].first["round"], found.items["other"]'
    assert {key for _, key in by_key(source)} & keys() == {"why", "known", "round"}
