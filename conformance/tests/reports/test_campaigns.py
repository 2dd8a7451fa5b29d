"""What reports say of a campaign, in every form; and campaigns that are merged, with each other and with runs."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]
import pytest

from kipcheck import reports
from kipcheck.conformance.core.ledger import Place, read
from kipcheck.conformance.engine.ledger.merge import Unlike, merge
from kipcheck.conformance.tests.reports.test_page import CONTRAST
from kipcheck.conformance.tests.support.browser import NAMES, browser, installed
from kipcheck.conformance.tests.support.ledgers import (
    CAMPAIGN,
    FAILURE,
    FLAKY,
    FOOTER,
    HEADER,
    SEEN,
    TALLY,
    TARGETS,
    campaign,
    campaigned,
    met,
    round_,
    verdicts,
    write,
)

Line = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    reports.write(write(folder, *campaign(), header=campaigned()))
    return folder


def test_tallies_are_read_as_the_verdicts_that_they_stand_for(made: Path) -> None:
    ledger = read(made / "ledger.jsonl")
    place = Place("somebody", "wire/two-readings", "HeartbeatResponse", 1)
    assert ledger.cases[place] == {"PASS": 88, "FAIL": 12}
    assert ledger.held[place, "wire/decodes"] == {"PASS": 88, "FAIL": 12}
    assert ledger.counts == {
        "somebody": {"wire/two-readings": {"PASS": 88, "FAIL": 12}},
        "another": {"assignment/owners": {"PASS": 97, "FAIL": 3}},
    }


def test_a_terminal_is_told_what_was_held_by_whom_and_how_failures_stand(made: Path) -> None:
    text = reports.render(made / "ledger.jsonl")
    end = " ".join(text[text.index("campaign c0ffee00c0ffee00") :].split())
    assert end.startswith(
        "campaign c0ffee00c0ffee00: mixed engine on pool with 2 slots, 8 of 9 shards, 1 crashed, 200 cases at "
        "20 cases/s, 0.01 CPU hours, 60 kinds of behaviour, 12 values kept; stopped by: the plan "
        "failures: 1 new, 1 flaky, 1 known"
    )
    where = "HeartbeatResponse v0-4; SyncGroupResponse v0"
    assert f"found     12 cases: {where}; first found in round 1, after 33 cases" in text
    assert "flaky: another: assignment/owners on sticky: t-0 has two owners; alone it did not fail every time\n" in text


def test_what_is_wrong_with_the_campaign_itself_is_told(tmp_path: Path) -> None:
    clash = "shard 3 of round 1 came to several ends: aa in x, bb in y"
    path = write(tmp_path, *campaign(), header=campaigned(clashes=[clash], set_aside=["wave-0.parquet is damaged"]))
    for form in ("text", "html", "markdown"):
        reported = reports.render(path, form).replace("\\", "")
        assert clash in reported and "wave-0.parquet is damaged" in reported, form


def test_the_results_hold_campaigns_and_rounds_as_their_schema_has_them(made: Path) -> None:
    results = json.loads((made / "results.json").read_text("utf-8"))
    schema = json.loads((files("kipcheck.reports") / "results.schema.json").read_text("utf-8"))
    assert [f"{e.json_path}: {e.message}" for e in jsonschema.Draft202012Validator(schema).iter_errors(results)] == []
    assert results["campaigns"] == [CAMPAIGN]
    assert [each["round"] for each in results["rounds"]] == [0, 1]
    assert results["failures"][0]["first"]["cases"] == 33
    assert results["footer"]["cases"] == 200


def test_other_forms_read_it_as_they_read_a_run(made: Path) -> None:
    root = ElementTree.fromstring((made / "junit.xml").read_text("utf-8"))
    failed = [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]
    assert failed == ["HeartbeatResponse"]
    log = json.loads((made / "results.sarif").read_text("utf-8"))["runs"][0]
    assert log["properties"]["campaigns"] == [CAMPAIGN["id"]]
    assert len(log["results"]) == 2
    summary = (made / "summary.md").read_text("utf-8")
    assert "| 2 | 100 | 20 | 60 | 0 |" in summary
    assert "Failures: 1 new, 1 flaky, 1 known" in summary


def test_of_what_is_new_notes_are_counted_apart(tmp_path: Path) -> None:
    path = write(tmp_path, ("failure", met(FAILURE)), ("failure", met({**SEEN, "grade": "INFO"})), header=campaigned())
    assert "failures: 2 new (1 of them notes, which decide nothing), 0 flaky, 0 known\n" in reports.render(path)


def test_a_campaign_that_goes_on_is_no_run_that_was_cut_off(tmp_path: Path) -> None:
    header = campaigned(complete=False, stopped_by=None)
    path = write(tmp_path, *campaign(), footer=None, header=header)
    assert "the campaign is still running, or was cut off" in reports.render(path)
    assert "nothing: it is still running" in reports.render(path, "html")


def test_the_page_draws_how_coverage_grew(made: Path) -> None:
    page = (made / "report.html").read_text("utf-8")
    assert page.count("<polyline") == 3
    assert 'points="0.0,300.0 500.0,100.0 500.0,200.0 1000.0,0.0"' in page
    (causes,) = re.findall(r'<polyline points="([^"]*)" class="curve causes">', page)
    assert [each.partition(",")[2] for each in causes.split()] == ["300.0", "300.0", "0.0", "0.0"]
    assert "1 new cause<" in page  # what is known is not drawn
    assert "kipcheck campaign --target somebody --target another --seed 7 --rounds 2" in page
    assert "The campaign is complete, stopped by: the plan." in page
    assert "0123456789abcdef, without another" in page


@pytest.mark.integration
@pytest.mark.skipif(installed() is None, reason=f"no browser on the path: {', '.join(NAMES)}")
def test_the_page_can_be_read_on_a_phone_light_and_dark(made: Path) -> None:
    page = made / "report.html"
    with browser() as shown:
        for dark in (False, True):
            shown.load(page, width=375, height=812, dark=dark)
            assert shown.complaints == []
            assert shown.asked("document.documentElement.scrollWidth") == 375
            assert shown.asked(CONTRAST) == []
            box = "(b => [b.width, b.height])(document.querySelector('.plot svg').getBoundingClientRect())"
            width, height = shown.asked(box)
            assert 200 < width < 375 and 100 < height < 300
            stroke = "getComputedStyle(document.querySelector('.curve')).stroke"
            assert shown.asked(stroke) == ("rgb(140, 188, 245)" if dark else "rgb(11, 87, 176)")
        words = shown.asked("[...document.querySelectorAll('#new .word')].map(e => e.textContent)")
        assert words == ["NEW", "FLAKY", "KNOWN"]
        lost = "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.getElementById(a.hash.slice(1)))"
        assert shown.asked(f"{lost}.length") == 0


# ---- merged


def header_of(id: str, seed: int) -> Line:
    return {**campaigned(id=id, seed=seed), "options": {**HEADER["options"], "seed": seed}}


def test_campaigns_with_other_seeds_are_one_ledger(tmp_path: Path) -> None:
    for number, id in enumerate(("aa", "bb")):
        about: Line = {**round_(0), "campaign": id}
        lines = [("tally", TALLY), ("target", TARGETS[0]), ("failure", met(FAILURE)), ("round", about)]
        write(tmp_path / id, *lines, header=header_of(id, seed=number))
    merged = merge([tmp_path / "aa", tmp_path / "bb"], tmp_path / "both")
    ledger = read(merged.ledger)
    assert [each.id for each in ledger.campaigns] == ["aa", "bb"]
    assert [each.campaign for each in ledger.rounds] == ["aa", "bb"]
    assert ledger.counts == {"somebody": {"wire/two-readings": {"PASS": 176, "FAIL": 24}}}
    assert [each.cases for each in ledger.failures] == [24]
    assert ledger.footer is not None
    assert ledger.footer.counts == ledger.counts
    assert "Campaigns" in reports.render(merged.ledger, "html")


def test_a_campaign_and_a_run_are_one_ledger(tmp_path: Path) -> None:
    write(tmp_path / "run", ("target", TARGETS[0]), *verdicts("PASS", 4), footer={**FOOTER, "exit": 0, "exits": []})
    write(tmp_path / "campaign", ("target", TARGETS[0]), ("tally", TALLY), ("flaky", FLAKY), header=header_of("aa", 3))
    kept = tmp_path / "campaign" / "failures" / "flaky"
    kept.mkdir(parents=True)
    (kept / f"{FLAKY['id']}.json").write_text(json.dumps({**SEEN, "id": FLAKY["id"]}))
    ledger = read(merge([tmp_path / "run", tmp_path / "campaign"], tmp_path / "both").ledger)
    assert ledger.counts == {"somebody": {"wire/two-readings": {"PASS": 92, "FAIL": 12}}}
    filed = json.loads((tmp_path / "both" / "failures" / "flaky" / f"{FLAKY['id']}.json").read_text())
    assert filed["reproduce"].endswith(f"/both/failures/flaky/{FLAKY['id']}.json")
    with pytest.raises(Unlike, match=r"wire/two-readings on HeartbeatResponse with somebody is in .* and in .*"):
        merge([tmp_path / "both", tmp_path / "run"], tmp_path / "more")


def test_one_campaign_twice_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, ("tally", TALLY), header=header_of("aa", 3))
    with pytest.raises(Unlike, match=r"campaign aa is in .*one and in .*two: leave one out"):
        merge([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
