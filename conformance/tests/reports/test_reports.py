"""A report reads the ledger and nothing else: what the text says, and what holds for all forms."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kipcheck import reports
from kipcheck.conformance.cli.reports import FORMS
from kipcheck.conformance.core.files.output_folder import LIST, REPORTS, OutputFolder
from kipcheck.conformance.core.ledger import KnownEntry, SequenceStep, read
from kipcheck.conformance.tests.support.ledgers import (
    FAILURE,
    FOOTER,
    HEADER,
    REASON,
    SEEN,
    everything,
    verdicts,
    write,
)
from kipcheck.reports.diagram import sequence
from kipcheck.reports.links import document, entry
from kipcheck.reports.summary import Summary

FAILED = verdicts("FAIL", 12)


def ledger(path: Path, *failures: dict[str, Any], footer: dict[str, Any] | None = FOOTER) -> Path:
    return write(path, *FAILED, *(("failure", each) for each in failures), footer=footer)


def test_a_block_shows_sentence_clause_bytes_count_and_command(tmp_path: Path) -> None:
    text = reports.render(ledger(tmp_path, FAILURE))
    assert text.splitlines()[:15] == [
        "FAIL 0123456789ab  somebody 1.0  wire/two-readings  (MUST)",
        "  broken    Legal bytes are read as what they are.",
        "  grp-05    generated message classes: What is written is read back.",
        "  what      errorCode is read as 65535, not -1",
        "  expected  -1",
        "  observed  65535",
        "  step 1    decode HeartbeatResponse v1: 00000000ffff",
        "  bytes       at bytes    field          type  value",
        "               0 00000000 throttleTimeMs int32 0",
        "            >  4 ffff     errorCode      int16 -1",
        "  found     12 cases: HeartbeatResponse v0-4; SyncGroupResponse v0",
        "  fix       Read an error code as a signed number.",
        "  again     kipcheck replay /somewhere/0123456789ab.json",
        "",
        "somebody",
    ]
    assert text.endswith(f"exit 1, an unexpected failure; {tmp_path / 'ledger.jsonl'}\n")


def test_an_assignment_is_a_table_and_a_conversation_a_list(tmp_path: Path) -> None:
    lines = reports.render(ledger(tmp_path, SEEN)).splitlines()
    assert lines[4:10] == [
        "  table       member subscribes to owned generation got",
        "              c1     t             t-0   3          t-0 t-1",
        "            > c2     t             t-1   3          t-1",
        "  events      1. operator -> controller: update level 3  <- accepted",
        "              2. controller: epoch 4",
        "            > 3. broker 1 -> controller: up, 1 to 2  <- registered",
    ]
    assert "  tags      ownership, KAFKA-1" in lines


def test_the_text_of_a_requirement_stands_there_once_and_what_fails_comes_first(tmp_path: Path) -> None:
    warning = {**FAILURE, "id": "555555555555", "grade": "SHOULD"}
    text = reports.render(ledger(tmp_path, warning, FAILURE))
    assert text.count("What is written is read back.") == 1
    assert text.index("FAIL 0123456789ab") < text.index("WARN 555555555555")


def test_what_is_known_stands_apart_in_a_line(tmp_path: Path) -> None:
    text = reports.render(ledger(tmp_path, {**FAILURE, "known": REASON}, {**SEEN, "id": "666666666666"}))
    assert "FAIL 0123456789ab" not in text
    assert "0123456789ab  somebody  wire/two-readings: it is old https://issues.example/1" in text
    assert "complete: 1 distinct failure, 0 warnings, 1 known deviation; exit 1" in text


def test_without_failures_there_is_the_table_and_what_was_reached(tmp_path: Path) -> None:
    path = write(tmp_path, *verdicts("PASS", 42), footer={**FOOTER, "exit": 0})
    assert [line.split()[:2] for line in reports.render(path).splitlines()] == [
        ["somebody"],
        ["check", "PASS"],
        ["wire/two-readings", "42"],
        ["1", "of"],
        ["causes", "none"],
        ["failures", "none"],
        ["cases", "42:"],
        ["complete:", "0"],
    ]


def test_coverage_counts_requirements_that_cases_came_to(tmp_path: Path) -> None:
    cases = [*verdicts("PASS", 3), *verdicts("PASS", 1, version=2), *verdicts("PASS", 1, subject="SyncGroupResponse")]
    text = reports.render(write(tmp_path, *cases))
    assert (
        "2 of 4 requirements reached (released 2 of 4, draft 0 of 2 parts), 2 by a real target, "
        "on 3 versions of 2 subjects" in text
    )


CELLS = {
    "target": "somebody", "check": "wire/two-readings", "dimensions": ["request", "event", "group"],
    "played": 5, "pairs": 9,
    "missing": {"the command lacks {protocol}": 1, "in no script of this run": 3},
    "rows": {"Heartbeat, stable": {"eager": [2, 3], "static": [0, 4]}, "LeaveGroup, closing": {"eager": [1, 2]}},
}  # fmt: skip


def test_a_table_of_cells_replaces_requirements_where_all_cases_are_chosen_from_it(tmp_path: Path) -> None:
    found = write(tmp_path, *verdicts("PASS", 3), ("cells", CELLS))
    line = (
        "somebody: 5 of 9 pairs of request, event and group were played; not played: 3 (in no script of this run), "
        "1 (the command lacks {protocol})"
    )
    assert line in reports.render(found, "brief") and "requirements reached" not in reports.render(found, "brief")
    text = reports.render(found)
    assert line in text and "Heartbeat, stable    2 of 3  0 of 4" in text and "LeaveGroup, closing  1 of 2\n" in text
    assert "2 of 3" in reports.render(found, "html") and json.loads(reports.render(found, "json"))["cells"] == [CELLS]
    both = write(tmp_path, *verdicts("PASS", 3), *verdicts("PASS", 1, check="wire/round-trip"), ("cells", CELLS))
    assert line in reports.render(both, "brief") and "requirements reached" in reports.render(both, "brief")


def test_coverage_counts_by_edition_and_by_part(tmp_path: Path) -> None:
    """The draft's cases reach the half of a rule of both; cases of releases reach one part of two."""
    invariants = {
        "wire/decodes": {**HEADER["invariants"]["wire/decodes"], "requirements": ["grp-05", "429-07"], "besides": {}}
    }
    stated = {**HEADER["requirements"]["grp-05"], "parts": [["wire/decodes"], ["wire/reads-alike"]]}
    header = {**HEADER, "invariants": invariants, "requirements": {**HEADER["requirements"], "grp-05": stated}}
    cases = verdicts("PASS", 1)

    def reached(editions: list[str] | None, target: str = "somebody") -> dict[str, tuple[dict[str, int], bool]]:
        own = {} if editions is None else {"editions": {"wire/two-readings": {"HeartbeatResponse": editions}}}
        lines = [(kind, {**line, "target": target}) for kind, line in cases]
        path = write(tmp_path, *lines, header={**header, **own})
        return {each.id: (dict(each.parts), each.real) for each in Summary(read(path)).coverage if each.cases}

    both = {"released": 1, "draft": 0}
    assert reached(None) == {"grp-05": ({"released": 1}, True), "429-07": (both, True)}
    assert reached(["kip-429"]) == {"429-07": ({"released": 0, "draft": 1}, True)}
    assert reached(["apache", "kip-429"])["429-07"] == ({"released": 1, "draft": 1}, True)
    assert reached(None, "reference")["grp-05"] == ({"released": 1}, False)
    assert reached(None, "miniature/drops-tags")["grp-05"] == ({"released": 1}, False)


FULL = [each for each in FORMS if each != "badge"]
"""A badge has three words, and its own tests."""


@pytest.mark.parametrize("form", FULL)
def test_a_ledger_that_was_cut_off_is_called_incomplete_in_every_form(tmp_path: Path, form: str) -> None:
    path = ledger(tmp_path, FAILURE, footer=None)
    path.write_text(path.read_text()[:-40])  # in the middle of a line
    assert not read(path).failures
    assert "INCOMPLETE" in reports.render(path, form)


def test_cases_that_failed_before_the_run_was_cut_off_are_told(tmp_path: Path) -> None:
    text = reports.render(write(tmp_path, *FAILED, footer=None))
    assert "somebody: wire/two-readings: 12 cases failed and were not examined before the run ended" in text
    assert text.splitlines()[-1].startswith(
        "INCOMPLETE: the ledger ends before its footer; the run was cut off: "
        "0 distinct failures, 0 warnings, 12 failed cases not examined; "
    )
    assert "another: all checks: not begun" in text
    assert "not examined" not in reports.render(write(tmp_path, *FAILED, ("failure", FAILURE), footer=None))


def test_a_long_message_is_shown_around_its_guilty_bytes(tmp_path: Path) -> None:
    rows = [
        {"offset": n, "bytes": f"{n:02x}", "path": f"numbers[{n}]", "type": "int8", "value": str(n), "guilty": n == 50}
        for n in range(100)
    ]
    text = reports.render(ledger(tmp_path, {**FAILURE, "exhibits": [{"kind": "bytes", "rows": rows}]}))
    assert "(44 fields before)" in text
    assert "(43 fields after)" in text
    assert "numbers[50]" in text
    assert "numbers[10]" not in text


@pytest.mark.parametrize("text", ["", "{}\n", "not JSON\n", '{"type": "header", "format": 1}\n', "[1]\n", "\x00\xff\n"])
def test_what_is_no_ledger_is_told_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match="is not a ledger"):
        reports.render(path)


def test_an_unknown_form_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="there are brief, text, html, junit"):
        reports.render(ledger(tmp_path), "stone")


def test_the_command_offers_the_forms_there_are() -> None:
    assert FORMS == reports.FORMS


def test_lines_of_kinds_that_a_report_does_not_know_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, *FAILED, ("weather", {"sky": "blue"}), ("failure", FAILURE))
    assert reports.render(path) == reports.render(ledger(tmp_path, FAILURE))


def test_all_files_are_written_and_what_an_earlier_run_left_can_be_taken_away(tmp_path: Path) -> None:
    text = reports.write(write(tmp_path, *everything()))
    assert text == reports.render(tmp_path / "ledger.jsonl", "brief")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([LIST, "ledger.jsonl", *reports.FILES.values()])
    for form, name in reports.FILES.items():
        assert (tmp_path / name).read_text("utf-8") == reports.render(tmp_path / "ledger.jsonl", form)
    (tmp_path / ".report.html.part").write_text("of a run that was killed here")
    OutputFolder(tmp_path).remove(REPORTS)
    assert sorted(os.listdir(tmp_path)) == [LIST, "ledger.jsonl"]


def test_a_report_needs_no_more_than_core(tmp_path: Path) -> None:
    script = f"""if True:
        import sys
        from pathlib import Path
        from kipcheck import reports
        reports.write(Path({str(write(tmp_path, *everything()))!r}))
        print([name for name in sys.modules if name.startswith(("kipcheck.conformance.", "kipcheck.strategies"))])
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.replace("'", '"'))
    assert all(name.startswith("kipcheck.conformance.core") for name in loaded)


@pytest.mark.parametrize("form", FULL)
def test_a_ledger_of_a_run_that_never_began_is_rendered(tmp_path: Path, form: str) -> None:
    header = {**HEADER, "invariants": {}, "requirements": {}}
    footer = {**FOOTER, "complete": False, "stopped_by": "no check is called 'x'", "exit": 2, "meaning": "wrong usage"}
    assert "no check is called" in reports.render(write(tmp_path, footer=footer, header=header), form)


@pytest.mark.parametrize("form", ["text", "html", "markdown"])
def test_what_was_not_reached_is_told_with_the_reason(tmp_path: Path, form: str) -> None:
    about = {"target": "somebody", "check": "wire/two-readings", "subject": "HeartbeatResponse"}
    why = "not reached within the budget"
    late = [("verdict", {**about, "version": n, "case": None, "result": "UNKNOWN", "why": why}) for n in range(3)]
    text = reports.render(write(tmp_path, *verdicts("PASS", 2), *late), form)
    assert "wire/two-readings: 3 units of work undecided: not reached within the budget" in text


# ---- links and diagrams in the page


def test_findings_and_lists_are_links_to_the_files_of_kipcheck_and_to_no_others() -> None:
    page = "conformance/docs/findings/kafka-python-endless-varint.md"
    assert re.fullmatch(f'<a href="file:///.*/{page}">{page}</a>', document(page))
    assert document("https://issues.example/1") == '<a href="https://issues.example/1">https://issues.example/1</a>'
    findings = "conformance/docs/findings"
    for name in (
        "/etc/passwd",
        f"{findings}/../index.md",
        f"{findings}/no-such.md",
        "file:///x",
        "javascript:alert(1)",
    ):
        assert document(name) == name
    name = "conformance/clients/known/kafka-python.toml"
    listed = KnownEntry(file=name, line=7, reason="", link="", expires=None)
    assert entry(listed).endswith(f'/{name}">{name}</a>:7')


def test_a_diagram_numbers_steps_and_cuts_nothing_off() -> None:
    long = " ".join(f"word{number}" for number in range(300))
    steps = [
        SequenceStep(sender="user", receiver="consumer", says="poll", answer=None, guilty=False),
        SequenceStep(sender="consumer", receiver="coordinator", says=long, answer=None, guilty=True, first=False),
        SequenceStep(sender="coordinator", receiver="consumer", says="joined 1", answer=None, guilty=False, reply=True),
        SequenceStep(sender="time", receiver="consumer", says="elapse 3000", answer=long, guilty=False),
    ]  # fmt: skip
    drawn = sequence(steps)
    assert drawn.count(long) == 2
    assert re.findall(r"<b>(\d)\. </b>", drawn) == ["1", "2", "3"]
    assert re.findall(r'<p class="message([^"]*)">', drawn) == [
        " right f2 t4", " right f4 t6", " reply left f4 t6", " alone f1 t7", " reply alone f1 t7",
    ]  # fmt: skip
    many = [SequenceStep(sender=f"a{n}", receiver="b", says="x", answer=None, guilty=False) for n in range(9)]
    assert "drawn" not in sequence(many) and sequence(many).count("<li>") == 9


def test_expected_and_observed_stand_once(tmp_path: Path) -> None:
    failure = {**FAILURE, "expected": "a signed one", "observed": "an unsigned one"}
    page = reports.render(ledger(tmp_path, failure), "html")
    assert page.count("a signed one") == page.count("an unsigned one") == 1


def test_a_page_of_many_failures_can_be_sent_by_mail(tmp_path: Path) -> None:
    step = {"from": "user", "to": "consumer", "says": "poll", "answer": "reads t-0", "guilty": False}
    shown = [{"kind": "sequence", "steps": [step] * 30}]
    failures = [{**SEEN, "id": f"{number:012x}", "exhibits": shown} for number in range(100)]
    assert len(reports.render(ledger(tmp_path, *failures), "html").encode()) < 2_000_000


@pytest.mark.parametrize("says", ["8 earlier events are not shown", "1 event is not shown"])
def test_events_that_are_not_shown_have_a_command_that_shows_them(tmp_path: Path, says: str) -> None:
    step = {"from": "client", "to": "client", "says": says, "answer": None, "guilty": False}
    cut = {**SEEN, "exhibits": [{"kind": "sequence", "steps": [step]}]}
    whole = {**SEEN, "exhibits": [{"kind": "sequence", "steps": [{**step, "says": "polls"}]}]}
    assert f"  all       {SEEN['reproduce']} --trace\n" in reports.render(ledger(tmp_path, cut), "text")
    assert "  all  " not in reports.render(ledger(tmp_path, whole), "text")
