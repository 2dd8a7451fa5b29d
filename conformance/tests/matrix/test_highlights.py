"""A history of the matrix shows where it breaks, and the bytes behind it."""

from functools import cache
from typing import Any

from kipcheck.conformance.matrix.groups import mixed_group, reference_binaries
from kipcheck.conformance.matrix.highlights import EventPosition, guilty_event, with_highlights
from kipcheck.conformance.matrix.history_text import history_json
from kipcheck.conformance.matrix.play import JudgedScript, judged, played
from kipcheck.conformance.matrix.scenarios import SETTLE
from kipcheck.conformance.protocols.streams.ops import Event, ShutDown, Start


@cache
def of(*script: Event) -> JudgedScript:
    """Played by our machines."""
    ((_, seen),) = played(mixed_group(reference_binaries(fitted=True)), [script])
    return judged(script, seen, "matrix/bounce", "reference")


def shown(found: dict[str, Any]) -> list[tuple[int, str, bool, list[tuple[str, str]]]]:
    """Step, what, whether it is marked, and the first of the marked fields of each member's user data."""
    marks = []
    for number, step in enumerate(found["steps"]):
        for each in step["seen"]:
            fields = [
                (blob["member"], row["field"]) for blob in each["blobs"] for row in blob["rows"] if row.get("guilty")
            ]
            if each.get("guilty") or fields:
                marks.append((number, each["what"], each.get("guilty", False), fields))
    return marks


TWO_THREADS = (Start("a", "2.0.1"), Start("d", "2.0.1", instance="a"), Start("b", "2.0.1"), SETTLE)


def test_what_completes_the_evidence_is_guilty_and_the_fields_that_it_is_about() -> None:
    found = of(*TWO_THREADS, Start("b", "2.1.1"), SETTLE)
    broken = next(each for each in found.broken if each.invariant.id == "streams/shared-while-probing")
    place = guilty_event(found, broken)
    assert place is not None
    seen = found.seen[place.step]
    # The second of the two threads that are given the same: with the first nothing was wrong yet.
    assert [type(each).__name__ for each in seen[: place.event + 1]].count("Sent") == 3
    ((step, what, guilty, fields),) = shown(with_highlights(history_json(found), found))
    assert (step, what, guilty) == (place.step, "sent", True)
    assert {field.partition("[")[0] for _, field in fields} == {"activeTasks"}


def test_of_what_a_leader_dies_is_the_version_that_it_did_not_know() -> None:
    found = of(Start("a", "0.10.0.1"), SETTLE, Start("b", "2.0.1"), SETTLE)
    formed, died = shown(with_highlights(history_json(found), found))
    assert formed == (3, "formed", False, [("b", "version")])
    assert died[:3] == (3, "died", True)


def test_of_what_a_member_dies_is_the_version_that_it_was_sent() -> None:
    found = of(Start("a", "4.3.1"), Start("b", "2.8.2"), SETTLE, ShutDown("b"), SETTLE)
    marks = shown(with_highlights(history_json(found), found))
    assert (4, "sent", True, [("b", "version"), ("b", "errCode")]) in marks
    assert [each[1] for each in marks if each[2]].count("died") == 2


def test_where_all_is_well_nothing_is_marked_and_what_is_told_often_is_not_touched() -> None:
    well = of(Start("a", "2.8.2"), SETTLE, Start("b", "4.3.1"), SETTLE)
    assert well.broken == ()
    assert shown(with_highlights(history_json(well), well)) == []
    broken = of(*TWO_THREADS, Start("b", "2.1.1"), SETTLE)
    with_highlights(history_json(broken), broken)
    assert not any(fields for _, what, _, fields in shown(history_json(broken)) if what == "sent")


def test_evidence_of_no_step_has_no_place() -> None:
    found = of(*TWO_THREADS, Start("b", "2.1.1"), SETTLE)
    nowhere = found.broken[0]._replace(violation=type(found.broken[0].violation)("nothing", (), "", ""))
    assert guilty_event(found, nowhere) is None
    assert EventPosition(0, 1) < EventPosition(1, 0)
