"""What is told of a campaign follows from its rows, in the words and under the ids of a run."""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.manifest import with_id
from kipcheck.conformance.campaign.plan import Aim, Plan
from kipcheck.conformance.campaign.report.campaign_report import CampaignReport, report
from kipcheck.conformance.campaign.report.row_files import Clash
from kipcheck.conformance.campaign.report.triage import triage
from kipcheck.conformance.campaign.rows import Count, Found, Row
from kipcheck.conformance.campaign.shard import run_shard
from kipcheck.conformance.campaign.summary import RoundEnd, summary_of
from kipcheck.conformance.cli import main
from kipcheck.conformance.core.ledger import Failure, FirstFound, Ledger, SequenceExhibit, lines, read, type_of
from kipcheck.conformance.engine.execution import run
from kipcheck.conformance.engine.execution.replay import replay, stored
from kipcheck.conformance.engine.execution.run import Options
from kipcheck.conformance.engine.findings.causes import Context
from kipcheck.conformance.engine.findings.failures import Kind
from kipcheck.conformance.engine.known.edit import updated
from kipcheck.conformance.engine.known.match import KnownDeviations
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.in_process import Afresh, InProcess
from kipcheck.conformance.targets.protocol import Target
from kipcheck.golden.regressions import check, read as regression_in

NAME = "deletes-unasked"
TARGET = f"miniature/{NAME}"
PLAN = Plan("c0ffee00c0ffee00", (Aim(TARGET, "1"),), "kip-584", (MUTANTS[NAME].check,), "mixed", 7, 120, 2, 40)
INVARIANT = "features/deletion-gated"
FLAKY = f"""
target = "{TARGET}"
[[KIND]]
checks = ["features/gating"]
invariant = "features/deletion-gated"
versions = "all"
shape = ["applied", "deletion without the flag"]
reason = "A defect that is planted for this test."
link = "https://issues.example/1"
expires = 2999-01-01
where = {{ features = "" }}
"""
DEVIATION = FLAKY.replace("KIND", "deviation")


def find(name: str, limits: object = None) -> Target:
    return Afresh(name, MUTANTS[name.removeprefix("miniature/")].made)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Of two rounds with a planted defect; the least case was looked for in the first."""
    found: dict[Kind, Found] = {}
    result: list[Row] = []
    for round_ in range(2):
        shards = list(PLAN.shards(round_, ""))
        here = [run_shard(each, Snapshot.empty(), find=find) for each in shards]
        new = {each.group: each for row in here for each in row.found if each.group not in found}
        least = PLAN.reductions(round_, len(shards), PLAN.aims[0], tuple(new.values()))
        found |= new
        result += [*here, *(run_shard(each, Snapshot.empty(), find=find) for each in least)]
    assert found
    return result


def holding(rows: Sequence[Row], **about: Any) -> list[Row]:
    """Those that held conversations, changed so."""
    return [replace(row, **about) for row in rows if row.stage == "hold"]


def reported(
    out: Path, rows: Sequence[Row], complete: bool = True, stopped_by: str | None = None, **more: Any
) -> CampaignReport:
    manifest = {
        "plan": asdict(more.pop("plan", PLAN)), "begun": "2026-01-31T23:59:59Z", "host": {"name": "here"},
        "settings": {"executor": "inline", "slots": 1}, "skipped": more.pop("skipped", []), "stopped_by": "the plan",
    }  # fmt: skip
    out.mkdir(exist_ok=True)
    rounds = [RoundEnd(number, sum(row.round == number for row in rows), 3, 1.5) for number in range(2)]
    return report(out, manifest, summary_of(rows, rounds), complete, stopped_by, **more)


def ledger_of(out: Path) -> Ledger:
    return read(out / "ledger.jsonl")


def codes(out: Path) -> list[int]:
    footer = ledger_of(out).footer
    assert footer is not None
    return list(footer.exits)


# ---- a campaign that came to its end


def test_it_counts_what_the_shards_held(tmp_path: Path, rows: list[Row]) -> None:
    found = reported(tmp_path, rows)
    ledger = ledger_of(tmp_path)
    assert (found.exit_code, found.failures, found.warnings, found.known) == (1, 1, 0, 0)
    assert sum(each.total() for each in ledger.cases.values()) == 120
    failed = sum(
        each.cases for row in holding(rows) for each in row.counts if each.invariant == "" and each.result == "FAIL"
    )
    assert ledger.counts[TARGET]["features/gating"]["FAIL"] == failed > 1
    (failure,) = ledger.failures
    assert failure.cases == failed
    assert failure.where == {"features": ""}
    assert [type_of(line) for line in lines(tmp_path / "ledger.jsonl")] == [
        "header", "tally", "target", "failure", "cause", "round", "round", "footer",
    ]  # fmt: skip


def test_its_causes_are_those_of_a_run(tmp_path: Path, rows: list[Row]) -> None:
    """Title, severity and page as a run has them, from the case that a shard reduced."""
    reported(tmp_path, rows)
    ledger = ledger_of(tmp_path)
    (failure,), (cause,) = ledger.failures, ledger.causes
    assert (cause.failures, cause.least, cause.cases) == ((failure.id,), failure.id, failure.cases)
    (reduced,) = (Context.read(json.loads(each.context)) for row in rows for each in row.found if each.line)
    assert reduced.size[1] == failure.case_id
    assert (failure.invariant, tuple(failure.shape)) in reduced.also
    assert cause.title in (tmp_path / "summary.md").read_text()
    page = (tmp_path / "report.html").read_text()
    assert "What is new" not in page, "the causes are the list"
    assert "1 new" in page


def test_its_failures_are_those_of_a_run_under_the_same_ids(tmp_path: Path, rows: list[Row]) -> None:
    reported(tmp_path / "campaign", rows)
    options = Options((TARGET,), "kip-584", (MUTANTS[NAME].check,), cases=60, workers=1, out=tmp_path / "run")
    run.execute(options, lambda name: InProcess(MUTANTS[NAME].made()))
    (there,) = read(tmp_path / "run" / "ledger.jsonl").failures
    (here,) = ledger_of(tmp_path / "campaign").failures
    assert {*here.present} - {*there.present} == {"first"}
    alike = ("id", "sentence", "requirements", "grade", "shape", "why", "expected", "observed")
    assert {key: getattr(here, key) for key in alike} == {key: getattr(there, key) for key in alike}
    # The run begins with enumerated cases, and reaches another least case, which is no longer.
    shown = [each.exhibits[0] for each in (here, there)]
    steps = [len(each.steps) for each in shown if isinstance(each, SequenceExhibit)]
    assert len(steps) == len(shown) and steps[0] == steps[1]


def test_the_least_case_replays_in_the_plain_loop_and_is_a_regression(tmp_path: Path, rows: list[Row]) -> None:
    reported(tmp_path, rows)
    (failure,) = ledger_of(tmp_path).failures
    path = tmp_path / "failures" / f"{failure.id}.json"
    assert failure.reproduce == f"kipcheck replay {failure.id} --out {tmp_path}"
    again = replay(path)
    assert again.exit_code == 1, again
    one = regression_in(tmp_path / "failures" / "regressions" / path.name)
    assert list(check(one)) == []
    assert len(list(check(one, find(TARGET)))) == 1


def test_a_failure_of_a_night_becomes_a_regression_test(
    tmp_path: Path, rows: list[Row], capsys: pytest.CaptureFixture[str]
) -> None:
    reported(tmp_path / "night", rows)
    (failure,) = ledger_of(tmp_path / "night").failures
    promote = ["corpus", "promote", failure.id, "--out", str(tmp_path / "night"), "--to", str(tmp_path / "mine")]
    assert main.run([*promote, "--note", "the first of its kind"]) == 0
    path = tmp_path / "mine" / f"{failure.id}.json"
    assert capsys.readouterr().out.startswith(f"{path}: kipcheck replay {tmp_path / 'mine'} ")
    one = regression_in(path)
    assert (one.note, list(check(one)), len(list(check(one, find(TARGET))))) == ("the first of its kind", [], 1)
    assert main.run(["replay", str(tmp_path / "mine")]) == 1
    assert main.run(["replay", str(tmp_path / "mine"), "--target", "reference"]) == 0
    capsys.readouterr()
    assert main.run(promote) == 2
    assert "it is a regression test already" in capsys.readouterr().err
    assert main.run(["corpus", "promote", "0" * 12, "--out", str(tmp_path), "--to", str(tmp_path / "none")]) == 2


def test_no_regression_test_is_made_of_a_case_that_our_models_do_not_pass(
    tmp_path: Path, rows: list[Row], capsys: pytest.CaptureFixture[str]
) -> None:
    reported(tmp_path, rows)
    (failure,) = ledger_of(tmp_path).failures
    path = tmp_path / "failures" / f"{failure.id}.json"
    path.write_text(path.read_text().replace(f'"{INVARIANT}"', '"features/none"'))
    assert main.run(["corpus", "promote", str(path), "--to", str(tmp_path / "mine")]) == 1
    assert "no regression test: " in capsys.readouterr().err
    assert not list((tmp_path / "mine").iterdir())


def test_what_is_not_found_any_more_is_fixed_only_if_its_case_passes(tmp_path: Path, rows: list[Row]) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    reported(before, rows)
    counts = tuple(Count("features/gating", "features", None, name, "PASS", 9) for name in ("", INVARIANT))
    reported(now, holding(rows, found=(), counts=counts))
    (known,) = triage(now, before).failures
    assert (known.status, known.count) == ("known", 0)
    path = before / "failures" / f"{known.id}.json"
    path.write_text(path.read_text().replace(f'"{TARGET}"', '"reference"'))
    (fixed,) = triage(now, before).failures
    assert fixed.status == "fixed"
    when = f"2026-01-31T23:59:59Z with {TARGET} 1"
    assert fixed.since == f"not found since {when}; last found {when}"


def test_rows_in_any_order_make_one_ledger(tmp_path: Path, rows: list[Row]) -> None:
    def text(out: Path) -> list[str]:
        reported(out, mixed)
        return (out / "ledger.jsonl").read_text().replace(str(out), "").splitlines()

    mixed = list(rows)
    before = text(tmp_path / "1")
    random.Random(0).shuffle(mixed)
    assert text(tmp_path / "2") == before


def test_a_failure_tells_where_it_was_met_first(tmp_path: Path, rows: list[Row]) -> None:
    reported(tmp_path, rows)
    (failure,) = ledger_of(tmp_path).failures
    first = next(row for row in rows if row.found)
    before = sum(row.cases for row in holding(rows) if row.key < first.key)
    cases = before + first.found[0].at_case
    assert failure.first == FirstFound(campaign=PLAN.campaign, round=first.round, shard=first.shard, cases=cases)


def test_rounds_say_what_they_brought(tmp_path: Path, rows: list[Row]) -> None:
    reported(tmp_path, rows)
    ledger = ledger_of(tmp_path)
    keys = [{key for row in rows if row.round == number for key in row.coverage} for number in range(2)]
    assert [each.coverage for each in ledger.rounds] == [len(keys[0]), len(keys[0] | keys[1])]
    assert [each.new for each in ledger.rounds] == [len(keys[0]), len(keys[1] - keys[0])]
    assert [each.cases for each in ledger.rounds] == [60, 60]
    assert [each.failures for each in ledger.rounds] == [(ledger.failures[0].id,), ()]
    growth = [point for each in ledger.rounds for point in each.growth[TARGET]]
    assert growth == sorted(growth) and growth[0] == (0, 0) and growth[-1] == (120, len(keys[0] | keys[1]))
    (campaign,) = ledger.campaigns
    assert (campaign.held, campaign.planned, campaign.stopped_by) == (120, len(rows), "the plan")


# ---- what comes and goes, and what nobody looked into


def test_what_did_not_come_again_is_flaky(tmp_path: Path, rows: list[Row]) -> None:
    gone = [
        replace(row, found=tuple(replace(each, line="") for each in row.found)) if row.stage == "reduce" else row
        for row in rows
    ]
    found = reported(tmp_path, gone)
    ledger = ledger_of(tmp_path)
    (flaky,) = ledger.flaky
    assert (found.exit_code, codes(tmp_path), ledger.failures) == (4, [4], ())
    assert (flaky.entry, flaky.alone) == ("", "did not fail every time")
    kept = json.loads((tmp_path / "failures" / "flaky" / f"{flaky.id}.json").read_text())
    assert kept["case"]["steps"]
    assert not list((tmp_path / "failures").glob("*.json"))
    assert not list((tmp_path / "failures").glob("regressions/*.json"))


def test_what_fails_in_one_shard_and_not_in_another_comes_and_goes(tmp_path: Path, rows: list[Row]) -> None:
    (least,) = (row for row in rows if row.stage == "reduce")
    other = replace(least, shard=99, found=tuple(replace(each, line="") for each in least.found))
    assert reported(tmp_path, [*rows, other]).exit_code == 4
    assert [each.id for each in ledger_of(tmp_path).flaky]


def test_what_nobody_looked_into_is_told_as_it_was_found(tmp_path: Path, rows: list[Row]) -> None:
    found = reported(tmp_path, holding(rows), complete=False, stopped_by="interrupted")
    (failure,) = ledger_of(tmp_path).failures
    assert (found.exit_code, codes(tmp_path), failure.shrunk) == (1, [1, 6], False)
    first = next(row.found[0] for row in rows if row.found)
    assert failure.case_id == first.case_id
    kept = json.loads((tmp_path / "failures" / f"{failure.id}.json").read_text())
    assert kept["case"] == json.loads(first.case)
    assert kept["reproduce"].startswith("kipcheck replay ")


def test_while_it_goes_on_there_is_no_footer_and_the_next_report_forgets_this_one(
    tmp_path: Path, rows: list[Row]
) -> None:
    reported(tmp_path, holding(rows), complete=False)
    before = set((tmp_path / "failures").glob("*.json"))
    assert ledger_of(tmp_path).footer is None
    reported(tmp_path, [replace(row, found=()) for row in rows])
    assert len(before) == 1 and not list((tmp_path / "failures").glob("*/*.json"))
    assert not list((tmp_path / "failures").glob("*.json"))
    assert list(stored([tmp_path])) == []


# ---- shards that did not come to their end


@pytest.mark.parametrize("status", ["timeout", "memory", "crashed", "garbled"])
def test_the_case_with_which_a_shard_went_down_is_a_failure_of_the_target(
    tmp_path: Path, rows: list[Row], status: Any
) -> None:
    case = next(row.found[0].case for row in rows if row.found)
    first = next(row for row in rows if row.stage == "hold")
    down = replace(
        first, status=status, at_case=17, case=case, detail="in its way\nits last words", cases=0, counts=(), found=()
    )
    found = reported(tmp_path, [down])
    (failure,) = ledger_of(tmp_path).failures
    assert (found.exit_code, codes(tmp_path)) == (1, [1, 6])
    assert (failure.invariant, failure.shape[0], failure.shape[2]) == ("survives", "died", status)
    assert failure.first is not None and failure.first.cases == 17
    kept = json.loads((tmp_path / "failures" / f"{failure.id}.json").read_text())
    assert (kept["case"], kept["stderr"]) == (json.loads(case), "its last words")
    (trouble,) = ledger_of(tmp_path).troubles
    assert trouble.why.endswith("in its way (round 0, shard 0)")


def test_shards_that_nothing_could_run_leave_it_undecided(tmp_path: Path, rows: list[Row]) -> None:
    lost = [replace(row, status="infra", detail="gone", cases=0, counts=(), found=()) for row in holding(rows)[:2]]
    assert reported(tmp_path, [*lost, *holding(rows, found=())[2:]]).exit_code == 6
    (trouble,) = ledger_of(tmp_path).troubles
    assert trouble.why.endswith("gone (round 0, shard 0 and 1 more)")
    assert ledger_of(tmp_path).campaigns[0].shards["infra"] == 2


def test_a_target_that_is_not_there_did_not_start_also_beside_others(tmp_path: Path, rows: list[Row]) -> None:
    gone = holding(rows, unreached="it is not installed", cases=0, counts=(), found=(), coverage=())
    assert reported(tmp_path / "alone", gone).exit_code == 3
    two = replace(PLAN, aims=(*PLAN.aims, Aim("miniature/asks-nobody", "1")))
    other = holding(rows, found=(), target="miniature/asks-nobody")
    assert reported(tmp_path / "two", [*gone, *other], plan=two, skipped=[("third", "nor is this")]).exit_code == 3
    assert [(each.target, each.why) for each in ledger_of(tmp_path / "two").troubles] == [
        ("third", "nor is this"),
        (TARGET, "it is not installed"),
    ]


def test_a_command_is_reported_by_the_name_of_its_testee(tmp_path: Path, rows: list[Row]) -> None:
    command = "cmd:./my-testee"
    plan = replace(PLAN, aims=(Aim(command, "1", label="mine"),))
    mine = holding(rows, target=command)
    assert reported(tmp_path / "mine", mine, plan=plan).exit_code == 1
    ledger = ledger_of(tmp_path / "mine")
    assert [(line.target, line.command) for line in ledger.targets] == [("mine", command)]
    assert {(line.target, line.command) for line in ledger.failures} == {("mine", command)}
    assert all(line.reproduce.endswith(f"--target {command}") for line in ledger.failures)
    assert {place.target for place in ledger.cases} == {*ledger.campaigns[0].targets} == {"mine"}
    without = replace(PLAN, aims=(Aim(command, "1"),))
    reported(tmp_path / "other", mine, plan=without)
    other = ledger_of(tmp_path / "other")
    assert other.campaigns[0].hash == ledger.campaigns[0].hash
    assert {line.id for line in other.failures}.isdisjoint(line.id for line in ledger.failures)
    assert with_id(plan).campaign == with_id(without).campaign


@pytest.mark.parametrize(
    ("about", "code"),
    [({"troubles": ("it went down",)}, 4), ({"breaches": ("it spoke out of turn",)}, 3), ({"unreached": "no more"}, 6)],
)
def test_what_is_wrong_besides_cases_is_told_once(tmp_path: Path, rows: list[Row], about: Any, code: int) -> None:
    assert reported(tmp_path, holding(rows, found=(), **about)).exit_code == code
    (trouble,) = ledger_of(tmp_path).troubles
    assert trouble.why.endswith(f"(round 0, shard 0 and {len(holding(rows)) - 1} more)")


def test_two_results_of_one_shard_are_a_defect_of_ours(tmp_path: Path, rows: list[Row]) -> None:
    clash = Clash(rows[0].key, ("aa", "bb"), (Path("x"), Path("y")))
    assert reported(tmp_path, holding(rows, found=()), clashes=[clash]).exit_code == 70
    assert ledger_of(tmp_path).campaigns[0].clashes == (str(clash),)


# ---- lists of known deviations


def listed(tmp_path: Path, text: str) -> tuple[str]:
    path = tmp_path / "known.toml"
    path.write_text(text)
    return (str(path),)


def test_what_a_list_names_is_known(tmp_path: Path, rows: list[Row]) -> None:
    found = reported(tmp_path, rows, known=listed(tmp_path, DEVIATION))
    assert (found.exit_code, found.failures, found.known) == (0, 0, 1)
    known = ledger_of(tmp_path).failures[0].known
    assert known is not None and known.reason == "A defect that is planted for this test."


def test_a_failure_that_a_list_names_is_known_in_every_place(tmp_path: Path, rows: list[Row]) -> None:
    """A campaign finds ever more places for it: a run with the list's own cases decides which are new."""
    assert 'where = { features = "" }' in DEVIATION
    elsewhere = DEVIATION.replace('features = ""', 'elsewhere = ""')
    reported(tmp_path, rows, known=listed(tmp_path, elsewhere))
    (failure,) = ledger_of(tmp_path).failures
    assert failure.known is not None and failure.known.where == {"features": ""} and failure.beyond is None
    assert 1 not in codes(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "It also occurs on features, which the list does not name." in page


def test_that_a_listed_failure_does_not_show_says_nothing(tmp_path: Path, rows: list[Row]) -> None:
    """Its cases are drawn by luck: whether it is mended the gate says, whose cases are fixed."""
    assert reported(tmp_path, holding(rows, found=()), known=listed(tmp_path, DEVIATION)).exit_code == 0
    other = DEVIATION.replace('["applied", "deletion without the flag"]', '["other"]')
    assert reported(tmp_path, rows, known=listed(tmp_path, other)).exit_code == 1
    assert ledger_of(tmp_path).failures[0].changed is None


def test_a_warning_that_the_list_lacks_fails_a_campaign(
    tmp_path: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    match = KnownDeviations.match_failures

    def warned(self: KnownDeviations, lines: Sequence[Failure], *flags: bool, **more: bool) -> list[Failure]:
        return match(self, [each.update(grade="SHOULD") for each in lines], *flags, **more)

    monkeypatch.setattr(KnownDeviations, "match_failures", warned)
    other = DEVIATION.replace('["applied", "deletion without the flag"]', '["other"]')
    for text, code in ((None, 0), (other, 1), (DEVIATION, 0)):
        found = reported(tmp_path, rows, known=() if text is None else listed(tmp_path, text))
        assert (found.exit_code, ledger_of(tmp_path).failures[0].unlisted) == (code, True if code else None)


def test_an_entry_whose_day_is_over_or_that_names_what_there_is_not_is_stale(tmp_path: Path, rows: list[Row]) -> None:
    over = DEVIATION.replace("2999", "2020")
    assert reported(tmp_path, rows, known=listed(tmp_path, over)).exit_code == 5
    strange = DEVIATION.replace("features/gating", "features/none")
    assert reported(tmp_path, rows, known=listed(tmp_path, strange)).exit_code == 5
    assert [each.kind for each in ledger_of(tmp_path).stale] == ["nothing"]


def test_a_list_that_cannot_be_used_any_more_costs_no_report(tmp_path: Path, rows: list[Row]) -> None:
    found = reported(tmp_path, rows, known=listed(tmp_path, "nonsense"))
    assert (found.exit_code, found.failures, codes(tmp_path)) == (2, 1, [1, 2])
    (trouble,) = ledger_of(tmp_path).troubles
    assert "known.toml:1: " in trouble.why
    assert json.loads((tmp_path / "results.json").read_text())["checks"][0]["targets"].keys() == {TARGET}


def test_what_is_listed_as_flaky_may_fail_and_may_not(tmp_path: Path, rows: list[Row]) -> None:
    flaky = listed(tmp_path, FLAKY.replace("KIND", "flaky"))
    assert reported(tmp_path, rows, known=flaky).exit_code == 0
    (line,) = ledger_of(tmp_path).flaky
    assert (line.alone, line.entry, line.reason) == (
        "failed",
        f"{flaky[0]}:3",
        "A defect that is planted for this test.",
    )
    assert ledger_of(tmp_path).failures == ()


def test_a_list_of_its_own_is_brought_up_to_a_campaign_and_loses_nothing(tmp_path: Path, rows: list[Row]) -> None:
    reported(tmp_path, rows)
    made = updated("", "known.toml", [ledger_of(tmp_path)], None, date(2026, 1, 31))
    assert made.text.startswith(f'target = "{TARGET}"\nedition = "kip-584"\nseed = 7\ncases = 120\n')
    assert "seldom = true\n" in made.text
    assert made.added == ["features/deletion-gated: features"]
    reported(tmp_path, holding(rows, found=()))
    later = updated(made.text, "known.toml", [ledger_of(tmp_path)], None, date(2026, 1, 31))
    assert later.text == made.text
    reported(tmp_path, rows)
    of_runs = 'edition = "kip-584"\n' + DEVIATION
    assert updated(of_runs, "known.toml", [ledger_of(tmp_path)], None, date(2026, 1, 31)).text == of_runs
    of_runs = of_runs.replace("deletion without the flag", "another shape")
    more = updated(of_runs, "known.toml", [ledger_of(tmp_path)], None, date(2026, 1, 31))
    assert more.text.startswith(of_runs) and "seldom = true\n" in more.text[len(of_runs) :] and more.removed == []
