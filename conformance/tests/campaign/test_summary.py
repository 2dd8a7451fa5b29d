"""What the rows of a campaign come to is the same however they come, and does not grow with their number."""

import copy
import pickle
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from kipcheck.conformance.campaign.corpus.entries import GROUP, RoundCorpus, Snapshot, grown
from kipcheck.conformance.campaign.rows import Count, Found, Kept, Row, hash_over
from kipcheck.conformance.campaign.summary import CampaignSummary, RoundEnd, RoundSummary, summary_of

TARGETS = "one", "two"
CASE = """
{"check": "features/gating", "edition": "kip-584", "role": "coordinator", "steps": [{"verb": "crash", "actor": "a"}]}
"""


def found(kind: int, rng: random.Random) -> Found:
    where = tuple(("M", version) for version in sorted(rng.sample(range(5), 2)))
    return Found(
        "a/check", f"invariant-{kind}", "apache", "M", ("x",), "why", str(rng.random()), "{}", ("M", 3), "", 1, 2, "k",
        rng.randint(1, 4), rng.randint(0, 9), where,
    )  # fmt: skip


def row(round_: int, shard: int, rng: random.Random) -> Row:
    """Any results: every third shard reduces."""
    reduces = shard % 3 == 2
    counts = tuple(Count("a/check", "M", version, "", "PASS", rng.randint(1, 9)) for version in range(3))
    kept = tuple(
        Kept("a/check", "apache", "M", 3, str(rng.random()), tuple(sorted(rng.sample(range(60), 3))), rng.randint(1, 9))
        for _ in range(4)
    )
    made = Row(
        "c", round_, shard, "reduce" if reduces else "hold", TARGETS[shard % 2], "1", "mixed", 0, 9, "", "done",
        deterministic=shard % 5 > 0, cases=rng.randint(1, 9), steps=rng.randint(1, 9), cpu_ms=rng.randint(1, 9),
        counts=() if reduces else counts, coverage=() if reduces else tuple(rng.sample(range(200), 9)),
        kept=() if reduces else kept, found=tuple(found(kind, rng) for kind in rng.sample(range(9), 3)),
        troubles=("it went down",) if rng.random() < 0.3 else (), unreached="gone" if rng.random() < 0.2 else "",
    )  # fmt: skip
    return made.sealed()


@pytest.fixture(scope="module")
def rounds() -> list[list[Row]]:
    rng = random.Random(1)
    return [[row(round_, shard, rng) for shard in range(40)] for round_ in range(3)]


def plain(summary: CampaignSummary) -> Any:
    """All of it, but for the order in which things came."""

    def ordered(value: Any) -> Any:
        match value:
            case dict():
                return sorted(((repr(name), ordered(each)) for name, each in value.items()), key=lambda pair: pair[0])
            case set():
                return sorted(value, key=repr)
            case list() | tuple():
                return [ordered(each) for each in value]
        return value

    targets = {name: ordered(asdict(each)) for name, each in summary.targets.items()}
    return ordered(targets), summary.rounds, ordered(summary.statuses), summary.hash, summary.cpu_ms, summary.keys


def ends() -> list[RoundEnd]:
    return [RoundEnd(number, 40, 3, 1.5) for number in range(3)]


def united(rounds: Sequence[Sequence[Row]], rng: random.Random) -> CampaignSummary:
    """Each round folded in parts, as by several processes that send their summaries."""
    result = CampaignSummary()
    for rows, end in zip(rounds, ends(), strict=True):
        parts = [RoundSummary("c", end.round) for _ in range(rng.randint(1, 6))]
        for each in rng.sample(rows, len(rows)):
            rng.choice(parts).add(each)
        total = RoundSummary("c", end.round)
        for part in rng.sample(parts, len(parts)):
            total.unite(pickle.loads(pickle.dumps(part)))
        result.add(total, end)
    return result


def test_parts_that_are_united_in_any_order_are_the_whole(rounds: list[list[Row]]) -> None:
    whole = plain(summary_of([each for rows in rounds for each in rows], ends()))
    for seed in range(20):
        assert plain(united(rounds, random.Random(seed))) == whole


def test_it_says_of_rows_what_they_say(rounds: list[list[Row]]) -> None:
    rows = [each for found in rounds for each in found]
    held = [each for each in rows if each.stage == "hold"]
    summary = summary_of(rows, ends())
    assert summary.hash == hash_over(rows)
    assert (summary.cases, sum(summary.statuses.values())) == (sum(each.cases for each in held), len(rows))
    assert summary.keys == {key for each in rows for key in each.coverage}
    for name in TARGETS:
        mine = [each for each in held if each.target == name]
        target = summary.targets[name]
        assert sum(target.counts.values()) == sum(count.cases for each in mine for count in each.counts)
        for group, kind in target.kinds.items():
            first = next(each for each in mine if group in [one.group for one in each.found])
            at = next(number for number, each in enumerate(first.found) if each.group == group)
            assert (kind.at, kind.first) == ((first.round, first.shard, at), first.found[at])
            before = sum(each.cases for each in mine if each.key < first.key)
            assert kind.before == before + first.found[at].at_case
            assert kind.cases == sum(one.cases for each in mine for one in each.found if one.group == group)


def test_cases_with_which_shards_went_down_are_kept_once_for_each_way() -> None:
    down = replace(row(0, 1, random.Random(1)), status="crashed", case=CASE, at_case=3, detail="killed")
    summary = summary_of([replace(down, shard=shard) for shard in range(1, 2_000)], ends()[:1])
    (one,) = summary.targets[down.target].down.values()
    assert (one.met.first[:2], one.met.times, one.before) == ((0, 1), 1_999, 3)


def test_a_summary_does_not_grow_with_the_number_of_rows() -> None:
    """The same rows again, in further rounds: pickled, it has the size of before, but for a line a round."""

    def size(number: int) -> int:
        rng = random.Random(2)
        rows = [row(round_, shard, rng) for round_ in range(number) for shard in range(30)]
        summary = summary_of(rows, [RoundEnd(round_, 30, 3, 1.5) for round_ in range(number)])
        return len(pickle.dumps(replace(summary, rounds=[], _hash=None))) - _alone(summary)

    def _alone(summary: CampaignSummary) -> int:
        return len(pickle.dumps([kind.alone for each in summary.targets.values() for kind in each.kinds.values()]))

    assert size(40) < 1.2 * size(10)


# ---- the corpus of a round


def kept(shard: int, count: int = 6) -> list[Row]:
    return [replace(each, stage="hold", deterministic=True) for each in _rows_of(shard, count)]


def _rows_of(shard: int, count: int) -> list[Row]:
    rng = random.Random(shard)
    return [row(0, shard + number, rng) for number in range(count)]


def test_rows_in_any_order_and_in_parts_bring_one_corpus() -> None:
    rows = [replace(each, stage="hold") for each in _rows_of(0, 3 * GROUP + 5)]
    whole = grown(Snapshot.empty(), rows)
    assert 0 < len(whole.entries) < 60
    for seed in range(3):
        rng = random.Random(seed)
        parts = [RoundCorpus() for _ in range(4)]
        for each in rng.sample(rows, len(rows)):
            rng.choice(parts).add(each)
        total = RoundCorpus()
        for part in parts:
            total.unite(copy.deepcopy(part))
        assert total.after(Snapshot.empty()) == whole


def test_what_many_shards_brought_is_reduced_while_they_come() -> None:
    corpus = RoundCorpus()
    rows = kept(0, GROUP * 4)
    for each in rows:
        corpus.add(each)
    assert sorted(corpus.parts) == [(1, number) for number in range(4)]
    assert sum(len(part.steady) for part in corpus.parts.values()) < 4 * 60 < sum(len(each.kept) for each in rows)
    assert corpus.after(Snapshot.empty()).keys == {
        key for each in rows for key in (*each.coverage, *(key for one in each.kept for key in one.keys))
    }
