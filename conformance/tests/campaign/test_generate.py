"""What a shard holds: the same batches everywhere, all of the declaration, from every source and from the corpus."""

import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.campaign.corpus.entries import Snapshot, plain_text, value_of
from kipcheck.conformance.campaign.generate import CONVERSATIONS_A_BATCH, SHARES, Batch, batches
from kipcheck.conformance.campaign.plan import SHARDS_A_ROUND, Shard
from kipcheck.conformance.campaign.rows import Kept
from kipcheck.conformance.core.values.edition import EDITIONS
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.conversations import Subject as Machine
from kipcheck.conformance.wire import layout
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.parse import belongs, parse


def shard(number: int = 0, round_: int = 0, cases: int = 1_000) -> Shard:
    return Shard("c", round_, number, "hold", "reference", "1", "apache", tuple(CHECKS), "mixed", 7, cases, "")


def units(*checks: str, subjects: int = 3) -> dict[str, Sequence[Any]]:
    """The first subjects of each that are in some edition, and of which there is something to hold."""
    return {id: list(islice(_subjects(id), subjects)) for id in checks or CHECKS}


def _subjects(id: str) -> Iterator[Any]:
    check = CHECKS[id]
    for edition in ("apache", *EDITIONS):
        for each in check.family.subjects(edition):
            if check.about(each) and (check.values or any(True for _ in check.given(each))):
                yield each


def drawn(first: int, *checks: str, snapshot: Snapshot | None = None, **of: Any) -> list[Batch]:
    return taken(batches(shard(**of), units(*checks), snapshot or Snapshot()), first)


def taken(batches: Iterator[Batch], first: int) -> list[Batch]:
    return [replace(each, values=[*each.values]) for each in islice(batches, first)]


UPDATES = Machine("kip-584", "features")
GATING = CHECKS["features/gating"]


def conversations(number: int) -> list[Kept]:
    """Entries of a corpus."""
    draw = GATING.drawing(UPDATES, Random(1))
    texts = [plain_text(draw(Random(each), None)[:8]) for each in range(number)]
    return [Kept(GATING.id, UPDATES.edition, UPDATES.name, None, text, (at,), 8) for at, text in enumerate(texts)]


DECLARED = {
    (each.draw, each.node) if each.node else id(each.family): each.id for each in CHECKS.values() if each.values
}
"""One check of each declaration that has its own."""


@pytest.mark.parametrize("id", DECLARED.values())
def test_all_readings_of_a_declaration_speak_its_language(id: str) -> None:
    check = CHECKS[id]
    (subject,) = units(id, subjects=1)[id]
    node, random = check.declaration(subject), Random(1)
    draw, uniform = check.drawing(subject, random), compiled(node)
    values = [draw(random, None), draw(random, None)]
    values += [check.family.trimmed(uniform(random)) for _ in range(2)]
    for each in values:
        parse(node, each)
        assert belongs(node, check.family.trimmed(each))


@pytest.mark.integration
def test_the_same_batches_come_in_every_process_whatever_was_imported_before() -> None:
    script = (
        "import kipcheck.conformance.tests.strategies.test_strategies\n"
        "from kipcheck.conformance.tests.campaign.test_generate import batches_digest\n"
        "print(batches_digest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONHASHSEED": "2"}, capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == batches_digest()


def batches_digest() -> str:
    found = hashlib.blake2b(digest_size=8)
    for each in drawn(
        24, "features/gating", "wire/round-trip", "assign/rounds", snapshot=Snapshot((*conversations(3),))
    ):
        found.update(repr((each.check, each.subject.version, each.source, each.values)).encode())
    return found.hexdigest()


def test_another_shard_or_round_draws_something_else() -> None:
    of: list[dict[str, Any]] = [{}, {"number": 1}, {"round_": 1}]
    found = {repr([each.values for each in drawn(3, "features/gating", **each)]) for each in of}
    assert len(found) == 3


def test_the_sources_have_their_shares() -> None:
    """Where there is no corpus yet, what would change it draws."""
    found = Counter(each.source for each in drawn(300, "nodes/round-trip"))
    wanted = dict(SHARES)
    wanted["draw"] = wanted.get("draw", 0) + wanted.pop("mutate", 0)
    assert found.keys() == {source for source, share in wanted.items() if share}
    for source, share in wanted.items():
        assert abs(found[source] - 3 * share) < 25, source


def test_conversations_of_a_batch_are_drawn_under_one_swarm() -> None:
    """So a verb that it switches off is missing in all of them, and each verb in some batch."""
    found = [each.values for each in drawn(12, "features/gating") if each.source == "draw"]
    assert {len([*each]) for each in found} == {CONVERSATIONS_A_BATCH}
    missing = [{"broker-down", "restart"} - {step["verb"] for value in each for step in value} for each in found]
    assert any(missing)
    assert not all(missing)


def test_heavy_checks_have_their_turn_less_often() -> None:
    found = Counter(each.check for each in drawn(100, "wire/proportion", "wire/claims"))
    assert 0 < found["wire/proportion"] < found["wire/claims"] / 3


def test_a_check_that_draws_nothing_is_held_with_what_is_given() -> None:
    for each in drawn(3, "wire/vectors"):
        assert each.source == "given"
        assert each.given
        assert not each.values


def test_nothing_to_hold_is_told() -> None:
    with pytest.raises(ValueError, match="no check has a subject"):
        next(batches(shard(), {"features/gating": ()}, Snapshot()))


# The corpus


def test_what_is_kept_is_replayed_first_by_some_shard() -> None:
    entries = conversations(20)
    replayed: list[Any] = []
    for number in range(SHARDS_A_ROUND):
        found = drawn(5, "features/gating", snapshot=Snapshot((*entries,)), number=number)
        sources = [each.source for each in found]
        assert "replay" not in sources[sources.count("replay") :]
        replayed += [plain_text(next(iter(each.values))) for each in found if each.source == "replay"]
    assert sorted(replayed) == sorted(each.value for each in entries)


def test_replay_takes_no_more_than_its_share() -> None:
    found = drawn(8, "features/gating", snapshot=Snapshot((*conversations(80),)), cases=20)
    assert sum(each.source == "replay" for each in found) == 5


def test_what_is_kept_is_changed_by_every_check_of_its_declaration() -> None:
    """Half of the changed conversations begin as one that is kept did, and go on."""
    entries = conversations(4)
    kept = [value_of(GATING.declaration(UPDATES), each.value) for each in entries]
    found = drawn(25, "features/epochs", "nodes/flaws", snapshot=Snapshot((*entries,)))
    changed = [each for each in found if each.source == "mutate"]
    assert changed
    assert {each.check for each in changed} == {"features/epochs"}, "of nodes there are none"
    node = GATING.declaration(UPDATES)
    heads = [value[:3] for value in kept]
    values = [value for each in changed for value in each.values]
    for value in values:
        parse(node, value)
    goes_on = sum(value[:3] in heads and len(value) > 9 for value in values)
    assert goes_on > len(values) / 8


def test_what_is_of_another_declaration_is_left_alone() -> None:
    entry = Kept(GATING.id, UPDATES.edition, UPDATES.name, None, '[{"verb": "of another day"}]', (1,), 1)
    found = drawn(25, "features/gating", snapshot=Snapshot((entry,)))
    assert {each.source for each in found} == {"draw", "uniform"}


def test_values_of_messages_are_changed_without_tags_that_nobody_knows() -> None:
    """To hold those has a check of its own."""
    check = CHECKS["wire/round-trip"]
    one = layout("apache", "JoinGroupRequest", 9)
    subject = next(each for each in check.family.subjects("apache") if each.layout is one)
    text = plain_text(one.defaults())
    entry = Kept(check.id, "apache", one.message, one.version, text, (1,), 2)
    of_one: Mapping[str, Sequence[Any]] = {check.id: (subject,)}
    found = taken(batches(shard(), of_one, Snapshot((entry,))), 60)
    assert {each.source for each in found} == {"replay", "mutate", "draw", "uniform"}
    drawn = [value for each in found for value in each.values if each.source != "draw"]
    assert not [value for value in drawn if "_unknownTaggedFields" in repr(value)]
