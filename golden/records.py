"""The records of Kafka Streams as each release line writes them, through the classes that applications use.

Releases differ: in 0.10.1 to 1.1.1 version 1 is version 2 with a 1 before it, some releases write their own newest
version as the second number, and from 3.0 on tasks have another order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.clients.java.programs import JavaCodec, Order
from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.canonical_form import canonical
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout
from kipcheck.golden.disagreement import Disagreement
from kipcheck.golden.samples import SMALL, samples
from kipcheck.golden.sources import STREAMS, coordinate, layout_in
from kipcheck.golden.vector_files import Vector

LONG_V1: Final = "apache@1.1.1"
"""The edition whose layout version 1 has from 0.10.1.0 to 1.1.1."""
OWN_SECOND_INT: Final = releases(span("own-version-to-members"))
SECOND_INT: Final = {"SubscriptionInfo": "latestSupportedVersion", "AssignmentInfo": "commonlySupportedVersion"}
NUMBERS: Final = {"below its own": -1, "none": -(1 << 31), "above all": 99}
"""Numbers for the second int that mean something special."""


def of_every_line(judge: JavaCodec, message: str, made: Sequence[Vector]) -> list[Vector]:
    """Adds to ``made`` the releases that write each vector, and vectors for what others write."""
    by_bytes = {(each.edition, each.version, each.hex): each for each in made}
    for version in sorted({each.version for each in made}):
        for release in STREAMS:
            theirs = layout_in(release, message, version)
            if theirs is None:
                continue
            offered = [(note, theirs.codec.to_json(value)) for note, value in samples(theirs)]
            orders = [Order("encode", message, version, value, release=release, public=True) for _, value in offered]
            for (note, value), answer in zip(offered, judge.answers(orders), strict=True):
                # The classes cannot represent values with repeated elements or invalid text.
                if answer.hex is not None:
                    _enter(by_bytes, theirs, release, note, value, answer.hex)
    of_small = {each.version: each for each in made if each.note == SMALL}
    odd = [
        odd for each in of_small.values() for odd in _odd(each) if (odd.edition, odd.version, odd.hex) not in by_bytes
    ]
    ordered = [*by_bytes.values(), *odd]
    return sorted(ordered, key=lambda each: (each.version, each.edition, each.damage is not None))


def _enter(
    by_bytes: dict[tuple[str, int, str], Vector],
    theirs: Layout,
    release: str,
    note: str,
    value: dict[str, Any],
    data: str,
) -> None:
    message, version = theirs.message, theirs.version
    for edition in ("apache", LONG_V1):
        at = layout(edition, message, version)
        try:
            meant = at.codec.to_json(at.decode(bytes.fromhex(data)))
            break
        except Refused:
            continue
    else:
        raise Disagreement(f"{release} writes {message} v{version} of {value} as {data}, which cannot be decoded")
    constant = Release.parse(release) in OWN_SECOND_INT
    kept = [{**each, SECOND_INT[message]: 0} if constant and version >= 3 else each for each in (meant, value)]
    if edition == "apache" and canonical(message, kept[0]) != canonical(message, _like(kept[0], kept[1])):
        raise Disagreement(f"{release} writes {message} v{version} of {value} as {data}, which is decoded as {meant}")
    known = by_bytes.get((edition, version, data))
    if known is None:
        taken = {each.note for each in by_bytes.values() if (each.edition, each.version) == (edition, version)}
        name = f"{note}, as {release} writes it" if note in taken else note
        known = Vector(edition, message, version, name, data, meant, coordinate(release, message))
    by_bytes[edition, version, data] = replace(known, written_by=(*known.written_by, release))


def _like(model: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in model}


def _odd(small: Vector) -> Iterator[Vector]:
    """Vectors with numbers that no release writes as a version."""
    if small.version < 3:
        return
    for what, number in NUMBERS.items():
        data = small.data[:4] + number.to_bytes(4, "big", signed=True) + small.data[8:]
        at = small.layout
        value = at.codec.to_json(at.decode(data))
        note = f"second int, {what}"
        yield replace(small, note=note, hex=data.hex(), value=value, damage="second-int", of=SMALL, written_by=())
    if small.message == "SubscriptionInfo":
        later = (small.version + 1).to_bytes(4, "big")
        for note, data in (
            ("a later version and nothing more", later),
            ("a later version", later + later + small.data[8:]),
        ):
            yield replace(small, note=note, hex=data.hex(), value=None, damage="version", of=SMALL, written_by=())
