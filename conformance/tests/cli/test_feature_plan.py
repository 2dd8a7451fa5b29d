"""``kipcheck features plan``: levels that rise, their order, and the orders of restarts behind it."""

import json

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.protocols.features.upgrades.upgrade_plan import plan


def test_the_page_shows_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.resources import files

    page = (files("kipcheck.conformance") / "docs" / "features.md").read_text("utf-8")
    assert run(["features", "plan", "--from", "3.9.2", "--to", "4.3.1"]) == 0
    assert f"```text\n{capsys.readouterr().out}```" in page


@pytest.mark.parametrize(
    ("old", "new", "steps", "kept"),
    [
        ("3.7.2", "3.9.2", {"metadata.version": 21}, set()),
        ("3.3.2", "3.4.1", {"metadata.version": 8}, {"metadata.version"}),
        ("3.9.2", "4.0.0", {"metadata.version": 25, "group.version": 1, "transaction.version": 2},
         {"metadata.version"}),
        ("4.3.1", "4.4.0", {"metadata.version": 33, "share.version": 2, "kraft.version": 1},
         {"metadata.version", "kraft.version"}),
        ("4.4.0", "4.4.0", {"kraft.version": 1}, {"kraft.version"}),
        ("3.9.1", "3.9.2", {}, set()),
    ],
)  # fmt: skip
def test_levels_that_rise(old: str, new: str, steps: dict[str, int], kept: set[str]) -> None:
    found = plan(old, new)
    assert {each.feature: each.after for each in found.steps} == steps
    assert {each.feature for each in found.steps if not each.undone} == kept
    assert found.unguarded == "" and set(found.early) <= {"kraft.version"}


def test_old_controllers_are_not_guarded_below_level_15() -> None:
    found = plan("3.3.2", "3.9.2")
    assert found.early == ("metadata.version",)
    assert found.unguarded == "metadata.version 21 with controller 1, which supports 1 to 7"


def test_needs_come_first() -> None:
    steps = plan("3.9.2", "4.4.0").steps
    names = [each.feature for each in steps]
    (eligible,) = (each for each in steps if each.feature == "eligible.leader.replicas.version")
    assert eligible.needs == "metadata.version 23"
    assert names.index("metadata.version") < names.index(eligible.feature) < names.index("kraft.version")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["features", "plan", "--from", "4.0.0", "--to", "4.4.0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [*found] == ["from", "to", "steps", "explored"]
    assert found["explored"]["complete"] and found["explored"]["transitions"] > 500


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--from", "4.3.1", "--to", "3.9.2"), "4.3.1 is newer than 3.9.2"),
        (("--from", "2.8.2", "--to", "4.0.0"), "release 2.8.2 has no KRaft controller"),
        (("--from", "4.0.0", "--to", "5.9.9"), "unknown release 5.9.9"),
        (("--from", "four", "--to", "4.0.0"), "invalid release 'four'"),
        (("--from", "4.0.0"), "plan needs --from and --to"),
        (("--from", "4.0.0", "--to", "4.4.0", "--state", "f"), "takes no --state"),
    ],
)
def test_what_cannot_be_planned_is_exit_2(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str) -> None:
    assert run(["features", "plan", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("describe",), "describe needs --state or --bootstrap-server"),
        (("describe", "--state", "f", "--from", "4.0.0"), "describe takes no --from"),
    ],
)
def test_options_of_a_plan_belong_to_it(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str) -> None:
    assert run(["features", *words]) == 2
    assert why in capsys.readouterr().err
