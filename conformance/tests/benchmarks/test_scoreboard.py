"""The page of known causes by severity."""

from kipcheck.conformance.benchmarks import scoreboard
from kipcheck.conformance.benchmarks.pages import DOCS, with_section
from kipcheck.conformance.benchmarks.scoreboard import NONE, NOT_LOOKED_AT, NOT_OFFERED, System, counted
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.recall.bugs import bugs


def test_the_page_is_what_is_generated() -> None:
    page = (DOCS / "scoreboard.md").read_text("utf-8")
    for (begin, end), lines in scoreboard.sections(bugs().values()).items():
        assert len(lines) > 3 and begin in page
        assert with_section(page, begin, end, lines) == page


def test_failures_with_one_page_are_one_cause_and_other_releases_do_not_count() -> None:
    entries = System("kafka", NEWEST).entries
    assert entries and counted([]) == NONE
    (page,) = {each.link for each in entries[:1]}
    alike = [each for each in entries if each.link == page]
    number, severity = counted(alike * 2).split(" ", 1)
    assert number == "1" and severity in counted(entries)
    assert not System("kafka", "0.8.0").entries and not System("nobody", NEWEST).entries


def test_what_was_not_looked_at_is_named() -> None:
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in scoreboard.clients_table()}
    assert rows["kio"].count(NOT_LOOKED_AT) == 4
    assert rows["kafkajs"].rstrip(" |").endswith(NOT_OFFERED) and NOT_OFFERED not in rows["java"]
    assert NONE not in rows["kio"]
