"""kipcheck matrix: exit codes, files and what is kept. Our machines play jars, with a planted defect or none."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from kipcheck.conformance.cli import main
from kipcheck.conformance.clients.java.streams_members import Unanswerable
from kipcheck.conformance.engine.execution.pool import Result
from kipcheck.conformance.matrix import build, run
from kipcheck.conformance.matrix.cells import Cell, Outcome, cells, outcome
from kipcheck.conformance.matrix.groups import BinaryFactory, reference_binaries
from kipcheck.conformance.matrix.known import Deviation
from kipcheck.conformance.matrix.predictions import Predictions
from kipcheck.conformance.matrix.release_lines import named
from kipcheck.conformance.matrix.replay import replay
from kipcheck.conformance.matrix.run import Done, Jars, OutcomeCache, Tick
from kipcheck.conformance.protocols.streams.model.members import AssignmentResult, Binary, Memory, Settings, Share
from kipcheck.conformance.targets.protocol import Unavailable

Ran = Callable[..., tuple[int, str, str]]
OURS = reference_binaries(fitted=True)


class Forgetful:
    """Never hears that others know less than it does (a planted defect)."""

    def __init__(self, binary: Binary) -> None:
        self._binary = binary

    def __getattr__(self, name: str) -> Any:
        return getattr(self._binary, name)

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        received = self._binary.assigned(memory, share)
        return replace(received, memory=replace(received.memory, used=memory.used))


def forgetful(settings: Settings) -> Binary:
    made = OURS(settings)
    planted: Any = Forgetful(made)
    return planted if settings.release == "3.9.2" else made


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Ran:
    """Runs the command with our machines in the place of jars, in this process, under ``tmp_path``."""

    def at(*arguments: str, made: BinaryFactory = OURS, known: Sequence[Deviation] = (), missing: str = "",
           done: Callable[[Done[Outcome]], None] = lambda done: None) -> tuple[int, str, str]:  # fmt: skip
        def jars(asked: Sequence[Cell]) -> Jars:
            there = {each.patch: each.patch for cell in asked for each in cell.pair if each.patch != missing}
            return Jars(there, {missing: f"kafka-streams {missing}: no network"} if missing else {})

        def play(asked: Sequence[Cell], kept: OutcomeCache, tick: Tick, *_: Any) -> tuple[Done[Outcome], set[Cell]]:
            found: Done[Outcome] = Done()
            for cell in asked:
                found.found[cell] = outcome(cell, made)
                tick("played", len(found.found), len(asked), "")
            done(found)
            return found, set()

        monkeypatch.setattr(build, "jars", jars)
        monkeypatch.setattr(build, "play", play)
        monkeypatch.setattr("kipcheck.conformance.matrix.known.listed", lambda: tuple(known))
        monkeypatch.chdir(tmp_path)
        code = main.run(["matrix", *arguments])
        printed = capsys.readouterr()
        return code, printed.out if "--json" in arguments else " ".join(printed.out.split()), printed.err

    return at


JOINS = ("--from", "2.8", "--to", "3.9", "--scenario", "join")


def test_a_matrix_as_predicted(ran: Ran, tmp_path: Path) -> None:
    code, out, err = ran(*JOINS)
    assert code == 0, out
    assert "join: one new member" in out and "every cell is as predicted" in out
    assert "played 1 of 1 cells" in err
    printed = json.loads((tmp_path / "kipcheck-out" / "matrix.json").read_text())
    (cell,) = printed["cells"]
    wanted = {"from": "2.8", "to": "3.9", "scenario": "join", "verdict": "ok", "predicted": "ok",
              "requirement": None, "reason": None, "differs": False, "known": None}  # fmt: skip
    assert {key: cell[key] for key in wanted} == wanted and printed["complete"] and cell["rounds"] > 1
    assert (tmp_path / "kipcheck-out" / "matrix.html").is_file()


def test_what_is_written_is_as_the_schema_says(ran: Ran, tmp_path: Path) -> None:
    ran("--from", "2.1", "--to", "2.0", "--to", "future", "--scenario", "join")
    schema = json.loads((files("kipcheck.reports") / "matrix.schema.json").read_text("utf-8"))
    valid = Draft202012Validator(schema)
    printed = json.loads((tmp_path / "kipcheck-out" / "matrix.json").read_text())
    valid.validate(printed)
    assert {each["to"]: each["verdict"] for each in printed["cells"]}["2.0"] == "breaks"
    for cell in printed["cells"]:
        history = json.loads((tmp_path / "kipcheck-out" / "histories" / f"{cell['case']}.json").read_text())
        valid.validate(history)
        assert history["play"] == cell["play"] and history["case"] == cell["case"]


def test_json_goes_to_standard_output_alone(ran: Ran) -> None:
    code, out, err = ran(*JOINS, "--json", "--out", "elsewhere")
    printed = json.loads(out)
    assert code == 0 and printed["complete"] and len(printed["cells"]) == 1
    assert "every cell is as predicted" in err
    assert printed["cells"][0]["play"].endswith(f"elsewhere/histories/{printed['cells'][0]['case']}.json")


@pytest.mark.integration
def test_the_answer_comes_first_and_decides_the_exit_code_where_it_is_required(ran: Ran, tmp_path: Path) -> None:
    both = ("--from", "2.8", "--to", "3.0", "--scenario", "bounce", "--scenario", "failure", "--full")
    code, out, _ = ran(*both, "--require", "works")
    assert code == 0 and out.startswith("2.8 to 3.0: one rolling bounce works: at most"), out
    printed = json.loads((tmp_path / "kipcheck-out" / "matrix.json").read_text())
    assert [(each["result"], each["way"]) for each in printed["answers"]] == [("works", "bounce")]
    assert main.run(["report", str(tmp_path / "kipcheck-out")]) == 0
    fragile = ("--from", "2.3", "--to", "3.9", "--scenario", "bounce")
    code, out, _ = ran(*fragile)
    assert code == 0 and "failures were not run (predicted: it breaks)" in out
    assert "not that an upgrade works" in out
    assert ran(*fragile, "--require", "works")[0] == 7
    assert main.run(["report", str(tmp_path / "kipcheck-out")]) == 7
    assert ran(*fragile, "--scenario", "failure", "--require", "works")[0] == 1


def deviation(verdict: str = "breaks") -> Deviation:
    return Deviation("join", "2.8.0+", "3.9.0+", verdict, "A planted defect.", "conformance/docs/internals/mutants.md")


def test_a_cell_unlike_its_prediction_is_a_failure_and_is_told_with_what_plays_it_again(ran: Ran) -> None:
    code, out, _ = ran(*JOINS, made=forgetful)
    assert code == 1
    assert "1 cell unlike what was predicted" in out
    assert "kipcheck matrix --case kipcheck-out/histories/" in out


def test_a_known_deviation_is_expected_and_stale_where_it_does_not_come(ran: Ran) -> None:
    code, out, _ = ran(*JOINS, made=forgetful, known=[deviation()])
    assert code == 0 and "a known deviation" in out
    assert ran(*JOINS, made=forgetful, known=[deviation("refused")])[0] == 1
    code, out, _ = ran(*JOINS, known=[deviation()])
    assert code == 5 and "did not occur" in out
    assert ran("--from", "2.8", "--to", "3.8", "--scenario", "join", known=[deviation()])[0] == 0, "it was not asked"


def test_missing_jars_are_told_and_what_they_are_needed_for_is_skipped(ran: Ran) -> None:
    code, out, _ = ran("--from", "2.8", "--to", "3.9", "--to", "2.7", "--scenario", "join", "--json", missing="3.9.2")
    printed = json.loads(out)
    assert code == 7 and printed["complete"]
    assert [each["to"] for each in printed["cells"]] == ["2.7"]
    assert printed["skipped"] == [
        {"from": "2.8", "to": "3.9", "scenario": "join", "why": "kafka-streams 3.9.2: no network"}
    ]
    assert printed["counts"]["skipped"] == 1


def test_what_cannot_be_asked_of_a_release_is_skipped(ran: Ran) -> None:
    def unanswered(done: Done[Outcome]) -> None:
        cell = next(iter(done.found))
        del done.found[cell]
        done.failed[cell] = "kafka-streams 2.8.2: it has no such thing"

    code, out, _ = ran(*JOINS, "--json", done=unanswered)
    assert code == 7 and json.loads(out)["skipped"][0]["why"].endswith("no such thing")


def test_a_run_that_was_ended_is_incomplete(ran: Ran) -> None:
    def ended(done: Done[Outcome]) -> None:
        done.complete = False
        done.found.popitem()

    code, out, _ = ran(*JOINS, "--to", "3.8", "--json", done=ended)
    printed = json.loads(out)
    assert code == 6 and not printed["complete"] and len(printed["cells"]) == 1


def test_without_a_jdk_nothing_starts(ran: Ran, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran(*JOINS)  # puts others in the place of what is asked here

    def none(asked: Sequence[Cell]) -> Jars:
        raise Unavailable("there is no javac in JAVA_HOME or on the PATH")

    monkeypatch.setattr(build, "jars", none)
    assert main.run(["matrix", *JOINS]) == 3


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--from", "9.9"], "unknown release of Kafka Streams '9.9'"),
        (["--to", "2.8.9"], "unknown release of Kafka Streams '2.8.9'"),
        (["--from", "future"], "the future version is only an upgrade target"),
        (["--from", "2.8", "--to", "2.0", "--scenario", "bounce"], "use --scenario downgrade"),
        (["--from", "2.8", "--to", "2.0", "--scenario", "downgrade"], "goes from --to to --from"),
        (["--case", "nowhere.json"], "nowhere.json cannot be read: no such file"),
    ],
)
def test_wrong_usage(arguments: list[str], printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["matrix", *arguments]) == 2
    assert printed in capsys.readouterr().err


def test_an_exact_patch_is_named_as_asked_and_foretold_where_it_is_not_committed(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Cell] = []

    def predict(cells: Sequence[Cell], *_: Any) -> Done[Any]:
        asked.extend(cells)
        return Done({cell: ["ok", "breaks"] for cell in cells})

    monkeypatch.setattr(build, "predict", predict)
    code, out, _ = ran("--from", "2.1.0", "--from", "2.1", "--to", "2.0.1", "--scenario", "join", "--json")
    printed = json.loads(out)
    assert [(each["from"], each["to"], each["rule"]) for each in printed["cells"]] == [
        ("2.1.0", "2.0.1", "fitted"), ("2.1", "2.0.1", "fitted")
    ]  # fmt: skip
    assert [cell.key for cell in asked] == [("join", "2.1.0", "2.0.1")] and code == 0


def test_a_history_is_played_again(ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, out, _ = ran("--from", "4.3", "--to", "future", "--scenario", "join", "--json")
    path = tmp_path / "kipcheck-out" / "histories" / f"{json.loads(out)['cells'][0]['case']}.json"
    filed = json.loads(path.read_text())
    for step in filed["plain"]["steps"]:  # as if all were of the future: no jar is needed
        if step["verb"] == "stream-start":
            step["body"]["release"] = "future"
    path.write_text(json.dumps(filed))
    printed, breaks = replay(path)
    assert not breaks and printed.endswith(" rebalances\n") and "start a future" in printed
    assert main.run(["matrix", "--case", str(path)]) == 0


# What is kept, and what goes side by side


def test_an_outcome_is_kept_by_what_the_jars_are(tmp_path: Path) -> None:
    cell, found = cells(["join"], [named("2.8")], [named("3.9")])[0], {"cell": {"verdict": "ok"}, "history": {}}
    kept = OutcomeCache({"2.8.2": "aa", "3.9.2": "bb"}, tmp_path / "of-this")
    assert kept.get(cell) is None
    kept.put(cell, found)
    assert kept.get(cell) == found
    assert OutcomeCache({"2.8.2": "aa", "3.9.2": "cc"}, tmp_path / "of-this").get(cell) is None
    assert OutcomeCache({"2.8.2": "aa", "3.9.2": "bb"}, tmp_path / "of-that").get(cell) is None
    assert kept.get(Cell("join", cell.pair._replace(old=cell.pair.new, new=cell.pair.old))) is None
    next((tmp_path / "of-this").iterdir()).write_text("{")
    assert kept.get(cell) is None


def test_of_old_versions_of_kipcheck_few_results_are_kept(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "x.json").write_text("{}")
    OutcomeCache({}, tmp_path / "4").tidy()
    assert len([*tmp_path.iterdir()]) == run.MOST_CACHED_VERSIONS and (tmp_path / "4" / "x.json").is_file()


def test_a_budget_ends_what_goes_on_in_other_processes() -> None:
    ticks: list[int] = []
    asked = cells(["failure"], [named("2.8")], [named("3.9")])
    done = run.predict(asked, lambda what, now, of, last: ticks.append(now), budget=0.2, workers=1)
    assert not done.complete and not done.found
    assert not run.predict(asked, lambda *printed: None, budget=0).complete, "none is left: nothing begins"
    assert run.predict((), lambda *printed: None, budget=0).complete


def test_other_processes_play_and_tell_what_they_cannot_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = cells(["offline"], [named("0.10.0")], [named("2.0")])
    done = run.predict(asked, lambda *printed: None, workers=1)
    assert done.complete and Predictions({"offline": {"0.10.0.1": {"2.0.1": "ok"}}}).of(asked[0]) is not None
    assert [*done.found.values()] == ["ok"]


def test_unanswerable_questions_skip_a_cell() -> None:
    done: Done[str] = Done()
    cell, failed = cells(["join"], [named("2.8")], [named("3.9")])[0], Unanswerable("kafka-streams 2.8.2: no")
    run._take(Result(raised=failed), cell, done, run.Work("played", lambda cell: ""))
    assert done.failed == {cell: "kafka-streams 2.8.2: no"} and not done.found
