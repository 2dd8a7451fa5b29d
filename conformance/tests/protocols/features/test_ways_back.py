"""Ways back to an old release: the rule predicts every recorded run, and no way back is promised without a run."""

from importlib.resources import files

import pytest

from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE
from kipcheck.conformance.protocols.features.upgrades.roll import FAILS, restarted, roll
from kipcheck.conformance.protocols.features.upgrades.upgrade_plan import Upgrade, plan, requested
from kipcheck.conformance.protocols.features.upgrades.ways_back import (
    BINARIES,
    INTER_BROKER,
    NONE,
    PINNED,
    TOGETHER,
    By,
    MetadataLog,
    Played,
    Return,
    Way,
    as_row,
    as_run,
    by_rule,
    by_run,
    from_row,
    played,
    runs,
    ways,
)
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.golden import ways_back_tables

RUNS = [*played().values()]


def of(*features: str) -> list[Played]:
    return [each for each in RUNS if each.way.feature in features]


def of_levels() -> list[Played]:
    return [each for each in RUNS if each.way.feature not in (BINARIES, INTER_BROKER, PINNED, TOGETHER)]


def test_every_row_is_a_run_that_is_listed() -> None:
    assert len(RUNS) > 50 and {each.way for each in RUNS} <= {*ways()}
    assert all(from_row(as_row(each)) == each for each in RUNS)


def test_neighbours_of_every_line_with_kraft_are_listed() -> None:
    raised = [(each.old, each.new) for each in ways() if each.feature == METADATA and each.nodes == 1]
    assert len(raised) >= 13 and {("3.7.2", "3.9.2"), ("4.0.2", "4.4.0"), ("3.3.2", "3.4.1")} <= {*raised}
    assert {(each.old, each.new) for each in ways() if each.feature == METADATA and each.nodes == 3} == {*raised}
    assert {each.feature for each in ways()} >= Rules.of(patches()[-1]).supported.keys()


@for_each(of_levels())
def test_the_rule_predicts_each_run_of_a_level(run: Played) -> None:
    old, new, feature = Rules.of(run.way.old), Rules.of(run.way.new), run.way.feature
    machine = Upgrade(old, new)
    state = machine.upgraded()
    assert state.level(feature) == run.before
    assert isinstance(run.before, int) and isinstance(run.after, int)
    raised = machine.step(state, requested(feature, run.after)).state
    assert run.raised == NONE
    lowered = machine.step(raised, requested(feature, run.before, SAFE_DOWNGRADE)).state.level(feature) == run.before
    assert lowered == (run.lowered == NONE)
    written = raised.level(feature)  # 4.0 accepts kraft.version 1 without effect
    assert by_rule(old, old.defaults(), feature, written, lowered) is by_run(run)
    assert run.after_snapshot is None or run.after_snapshot.runs


@for_each(of(TOGETHER))
def test_the_rule_predicts_each_run_of_all_levels(run: Played) -> None:
    old = Rules.of(run.way.old)
    log = MetadataLog.of(old.defaults())
    steps = plan(run.way.old, run.way.new).steps
    assert len(steps) > 1 and run.after == ", ".join(f"{each.feature} {each.after}" for each in steps)
    for each in steps:
        log = log.with_level(each.feature, each.after)
    for each in reversed(steps):
        log = log.with_level(each.feature, each.before) if each.lowered else log
    assert log.unread_by(old) and not log.with_snapshot().unread_by(old)
    assert by_run(run) is By.SNAPSHOT


@for_each(of(BINARIES, INTER_BROKER, PINNED))
def test_the_formats_predict_each_run_without_a_level(run: Played) -> None:
    old, new = Release.parse(run.way.old), Release.parse(run.way.new)
    if run.way.feature == BINARIES:
        steps = [restarted(old, new)]
    else:
        last = 2 if run.way.feature == PINNED else None
        steps = [*roll(run.way.old, run.way.new, "zookeeper").steps[1:last]]
    assert run.at_once.runs == all(change.old_release != FAILS for each in steps for change in each.changes)


def test_one_node_and_three_have_the_same_outcome() -> None:
    on_three = [each for each in RUNS if each.way.nodes == 3]
    assert on_three
    for each in on_three:
        alone = played().get(Way(each.way.old, each.way.new, each.way.feature))
        assert alone is None or by_run(alone) is by_run(each)


def test_a_lowered_level_is_written_until_a_snapshot() -> None:
    old = Rules.of("3.7.2")
    log = MetadataLog.of({METADATA: 19}).with_level(METADATA, 20)
    assert log.unread_by(old) == "metadata.version 20" == log.with_snapshot().unread_by(old)
    lowered = log.with_level(METADATA, 19)
    assert lowered.unread_by(old) == "metadata.version 20" and lowered.with_snapshot().unread_by(old) == ""
    nodes = [lowered.with_snapshot(), lowered.with_snapshot(), lowered]
    assert [each.unread_by(old) for each in nodes] == ["", "", "metadata.version 20"]


def test_no_way_back_is_promised_without_a_run_of_both_lines() -> None:
    assert as_run(By.SNAPSHOT, "3.7.0", "3.8.0", METADATA) is By.SNAPSHOT  # other patches
    assert as_run(By.RESTART, "3.7.2", "3.8.1", METADATA) is By.NOT_RUN  # runs show another way
    assert as_run(By.SNAPSHOT, "0.10.2.2", "2.8.2", INTER_BROKER) is By.NOT_RUN
    assert as_run(By.IMPOSSIBLE, "3.3.2", "4.4.0", METADATA) is By.IMPOSSIBLE
    assert runs("3.3.2", "4.4.0", METADATA) == ()


@pytest.mark.parametrize(
    ("lowered", "at_once", "later", "by"),
    [
        (NONE, True, True, By.RESTART), (NONE, False, True, By.SNAPSHOT), (NONE, False, False, By.IMPOSSIBLE),
        ("refused", True, None, By.KEPT), ("refused", False, None, By.IMPOSSIBLE),
    ],
)  # fmt: skip
def test_what_a_run_shows(lowered: str, at_once: bool, later: bool | None, by: By) -> None:
    after = None if later is None else Return(later)
    assert by_run(Played(Way("a", "b", "f"), 0, 1, NONE, lowered, Return(at_once), after)) is by


def test_the_page_has_the_tables() -> None:
    page = (files("kipcheck.conformance") / "docs" / "records.md").read_text("utf-8")
    assert ways_back_tables.replaced(page, played()) == page, "python -m kipcheck.golden.ways_back --tables writes them"


def test_a_missing_run_is_counted_and_not_a_cell() -> None:
    name = "3.7.2 3.8.1 metadata.version 1"
    some = {way: each for way, each in played().items() if way.name != name}
    missing = sum(each not in played() for each in ways())
    assert f"unknown: {missing} ways" in ways_back_tables.text(played())
    assert f"unknown: {missing + 1} ways" in ways_back_tables.text(some)
    assert "3.7.2 to 3.8.1 on 3" in ways_back_tables.text(some)
