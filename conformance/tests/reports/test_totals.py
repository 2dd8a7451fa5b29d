"""Every form counts the same causes, failures and cases."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from kipcheck import reports
from kipcheck.conformance.tests.support.ledgers import (
    CAUSE,
    FAILURE,
    FLAKY,
    FOOTER,
    REASON,
    SEEN,
    Line,
    campaign,
    campaigned,
    everything,
    verdicts,
    write,
)

PASSED = {**FOOTER, "exit": 0, "exits": [], "meaning": "conformant"}
LATE = {"target": "somebody", "check": "wire/two-readings", "subject": "M", "version": 1, "case": None}
NOTED = {**FAILURE, "id": "555555555555", "grade": "INFO", "cases": 3}
ALONE = {**CAUSE, "failures": [FAILURE["id"]], "cases": 12}
LEDGERS: dict[str, tuple[list[tuple[str, Line]], dict[str, Any]]] = {
    "everything": (everything(), {}),
    "nothing": ([], {"footer": PASSED}),
    "passed, with skips": ([*verdicts("PASS", 1200), *verdicts("SKIP", 30)], {"footer": PASSED}),
    "known": (
        [*verdicts("FAIL", 12), ("failure", {**FAILURE, "known": REASON}),
         ("cause", {**CAUSE, "failures": [FAILURE["id"]]})],
        {"footer": PASSED},
    ),
    "a known and a new one of one cause": (
        [*verdicts("FAIL", 13), ("failure", {**FAILURE, "known": REASON}), ("failure", {**SEEN, "id": "222222222222"}),
         ("cause", CAUSE)],
        {},
    ),
    "a note alone": ([*verdicts("NOTE", 3), ("failure", {**FAILURE, "grade": "INFO"})], {"footer": PASSED}),
    "a failure and a note": (
        [*verdicts("FAIL", 12), *verdicts("NOTE", 3), ("failure", FAILURE), ("failure", NOTED), ("cause", ALONE),
         ("cause", {**ALONE, "id": "beefbeefbeef", "cases": 3, "failures": [NOTED["id"]], "least": NOTED["id"]})],
        {},
    ),
    "flaky": ([*verdicts("FAIL", 2), ("flaky", {**FLAKY, "id": None})], {"footer": {**FOOTER, "exit": 4}}),
    "incomplete": ([*verdicts("PASS", 3), ("verdict", {**LATE, "result": "UNKNOWN", "why": "the budget is used up"})],
                   {"footer": {**FOOTER, "complete": False, "stopped_by": "budget", "exit": 6}}),
    "cut off": ([*verdicts("FAIL", 12)], {"footer": None}),
    "a campaign": (campaign(), {"header": campaigned()}),
}  # fmt: skip
NUMBER = re.compile(r"([\d,]+) ([A-Za-z][A-Za-z ]*)")
Counted = dict[str, dict[str, int]]


class Texts(HTMLParser):
    """The terms and definitions of the first list of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(page[page.index('<dl class="rows">') : page.index("</dl>")])

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def lines(self) -> dict[str, str]:
        return dict(zip(self.texts[::2], self.texts[1::2], strict=True))


def counted(lines: dict[str, str]) -> Counted:
    """What the lines of text say, without numbers of zero."""
    names = {"causes": "causes", "effects": "severities", "failures": "failures", "cases": "cases"}
    found: Counted = {}
    for name, key in names.items():
        text = lines.get(name, "none")
        total, colon, parts = text.partition(": ")
        by_kind = {kind: int(number.replace(",", "")) for number, kind in NUMBER.findall(parts if colon else text)}
        assert not colon or int(total.replace(",", "")) == sum(by_kind.values()), text
        found[key] = by_kind
    found["besides"] = {
        kind.removesuffix("s"): int(number) for number, kind in NUMBER.findall(lines.get("besides", ""))
    }
    return found


def plain(totals: dict[str, Any]) -> Counted:
    """The same of the totals in JSON."""
    besides = {
        "flaky failure": totals["flaky"],
        "skipped check": totals["skipped_checks"],
        "stale entry": totals["stale"],
    }
    found = {
        key: {kind: n for kind, n in totals[key].items() if n} for key in ("causes", "severities", "failures", "cases")
    }
    return {**found, "besides": {kind: n for kind, n in besides.items() if n}}


@pytest.fixture(scope="module", params=LEDGERS)
def forms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    lines, more = LEDGERS[request.param]
    path = write(tmp_path_factory.mktemp("ledger"), *lines, **more)
    return {form: reports.render(path, form) for form in reports.FORMS}


def test_all_forms_have_the_same_numbers(forms: dict[str, str]) -> None:
    totals = json.loads(forms["json"])["footer"]["totals"]
    assert json.loads(forms["sarif"])["runs"][0]["properties"]["totals"] == totals
    properties = next(ElementTree.fromstring(forms["junit"]).iter("properties"))
    by_name = {str(each.get("name")): each.get("value") for each in properties}
    numbers = {**totals, "unjudged_invariants": sum(map(len, totals["unjudged_invariants"].values()))}
    for key, value in numbers.items():
        for name, number in (
            ((f"{key}.{k}", n) for k, n in value.items()) if isinstance(value, dict) else [(key, value)]
        ):
            assert by_name[name] == str(number), name
    wanted = plain(totals)
    assert counted(Texts(forms["html"]).lines) == wanted
    for form, mark in (("markdown", r"- (\w+): (.*)"), ("text", r"(causes|effects|failures|cases|besides) +(.*)")):
        lines = (re.fullmatch(mark, line) for line in forms[form].splitlines())
        assert counted({found[1]: found[2] for found in lines if found}) == wanted, form


def test_the_numbers_are_those_of_what_is_shown(forms: dict[str, str]) -> None:
    results = json.loads(forms["json"])
    totals = results["footer"]["totals"]
    cases: Counter[str] = Counter()
    for check in results["checks"]:
        for cell in check["targets"].values():
            cases.update(cell["counts"])
    assert cases == Counter(totals["cases"])
    log = json.loads(forms["sarif"])["runs"][0]
    words = {"error": "FAIL", "warning": "WARN", "note": "NOTE"}
    kinds = ("KNOWN" if each.get("suppressions") else words[each["level"]] for each in log["results"])
    assert Counter(kinds) == Counter(totals["failures"])
    causes = [each["kind"] for each in log["properties"]["causes"]]
    assert Counter(causes) == Counter(totals["causes"])
    assert causes == sorted(causes, key=lambda kind: {"KNOWN": 1, "NOTE": 2}.get(kind, 0))
    shown = re.findall(r'<summary><span class="rank">\d+</span><span class="word (\w+)">', forms["html"])
    assert [each.upper() for each in shown] == causes
    rows = re.findall(r"^\| \d+ \| \S+ (\w+) \|", forms["markdown"], re.MULTILINE)
    assert [each.upper() for each in rows if each][: len(causes)] == causes


def test_a_cause_has_one_number_of_cases_in_all_forms(forms: dict[str, str]) -> None:
    number = r"([\d,]+)"
    numbers = [f"{each['cases']:,}" for each in json.loads(forms["sarif"])["runs"][0]["properties"]["causes"]]
    rows = re.findall(
        rf"^\| \d+ \| \S+ \w+ \|(?:[^|]*\|){{2,3}} {number} \| [0-9a-f]{{12}}", forms["markdown"], re.MULTILINE
    )
    assert rows == numbers
    summaries = re.findall(
        rf'<span class="who">(?:<span[^>]*>[^<]*</span>)?(?:[^·<]* · )?{number} cases? ·', forms["html"]
    )
    assert summaries == numbers
    of_ledger = [f"{each['cases']:,}" for each in json.loads(forms["json"])["causes"]]
    assert Counter(of_ledger) <= Counter(numbers)
    assert Counter(re.findall(rf"^  severity  .*, {number} cases?$", forms["text"], re.MULTILINE)) <= Counter(numbers)


def test_a_form_that_counts_otherwise_is_seen() -> None:
    assert counted({"causes": "3: 2 FAIL, 1 NOTE"})["causes"] == {"FAIL": 2, "NOTE": 1}
    with pytest.raises(AssertionError):
        counted({"cases": "1,000: 900 PASS, 99 FAIL"})
