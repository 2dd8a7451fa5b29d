"""What the gate demands of others, released jars keep: a verdict that real Kafka would fail is a false alarm."""

from collections import Counter
from collections.abc import Iterator

import pytest

from kipcheck.conformance.clients.java.programs import JavaCodec, Order
from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.codec.checks.family import Subject
from kipcheck.conformance.protocols.codec.invariants.tags import decode_tagged
from kipcheck.conformance.protocols.codec.invariants.versions import WRITTEN_BY_HAND, absent_field
from kipcheck.conformance.protocols.codec.invariants.wire import decode_plain, is_beyond_bounds, is_leniently_readable
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.releases import CLIENTS
from kipcheck.conformance.wire.schema import messages, spec

pytestmark = pytest.mark.jars

RELEASES = CLIENTS
SPOKEN = [each for each in messages(APACHE) if each.endswith(("Request", "Response")) and each != "RequestHeader"]


def demanded(case: Case, step: Step) -> tuple[str, tuple[str, ...]] | None:
    """Of which releases what is known, where the gate says anything about the step."""
    if is_beyond_bounds(case, step):
        return "rejected", RELEASES
    if decode_plain(case, step) or decode_tagged(case, step):
        return "accepted", RELEASES
    if is_leniently_readable(case, step):
        return "accepted", (NEWEST,)
    return None


def orders(message: str) -> Iterator[tuple[str, Order]]:
    for layout in spec(APACHE, message):
        subject = Subject("apache", layout)
        for check in ("wire/prefixes", "wire/damage", "wire/unknown-tags", "wire/two-readings"):
            for sample in CHECKS[check].samples(subject, 7, 4):
                for step in sample.case.steps:
                    wanted = demanded(sample.case, step) if step.verb == "decode" else None
                    for release in wanted[1] if wanted else ():
                        assert wanted is not None
                        yield wanted[0], Order("decode", message, layout.version, hex=step["hex"], release=release)


@pytest.mark.parametrize("message", some_by_day(SPOKEN, 12, pytest.mark.all_jars))
def test_released_jars_do_what_is_demanded(message: str, judge: JavaCodec) -> None:
    asked = list(orders(message))
    seen: Counter[str] = Counter()
    for (wanted, order), answer in zip(asked, judge.answers(order for _, order in asked), strict=True):
        if answer.status == "unsupported":
            continue  # a release without this version
        seen[wanted] += 1
        reported = (
            f"{order.release} {order.message} v{order.version} {order.hex}: {answer.status} {answer.thrown or ''}"
        )
        assert (answer.status == "accepted") == (wanted == "accepted"), reported
    assert min(seen["accepted"], seen["rejected"]) > 20, seen


ABSENT = CHECKS["wire/absent-fields"]
LACKING = list(dict.fromkeys(each.name for each in ABSENT.family.subjects("apache") if ABSENT.about(each)))


@pytest.mark.parametrize("message", some_by_day(LACKING, 8, pytest.mark.all_jars))
def test_released_jars_refuse_what_a_version_lacks_and_leave_out_what_may_be_ignored(
    message: str, judge: JavaCodec
) -> None:
    asked = []
    for layout in spec(APACHE, message):
        if ABSENT.about(Subject("apache", layout)):
            for sample in ABSENT.samples(Subject("apache", layout), 7):
                step = sample.case.steps[1]
                wanted = "accepted" if absent_field(sample.case, step) is None else "rejected"
                asked += [
                    (wanted, Order("encode", message, layout.version, value=step["value"], release=release))
                    for release in RELEASES
                    if message not in WRITTEN_BY_HAND
                ]
    for (wanted, order), answer in zip(asked, judge.answers(order for _, order in asked), strict=True):
        if answer.status == "unsupported" or "has no field" in answer.message:
            continue  # a release without this version, or without the field in any of its versions
        reported = (
            f"{order.release} {order.message} v{order.version} {order.value}: {answer.status} {answer.thrown or ''}"
        )
        assert answer.status == wanted, reported
