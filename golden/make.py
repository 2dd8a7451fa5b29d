"""Make the golden vectors anew from released jars: ``python -m golden.make [--check]``.

The jar writes the bytes; the value beside them is what the jar reads in them again. The classes for assignments of
Streams lose the order of elements, so that value is ours, after it was compared in substance.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import artifacts
from conformance.core.edition import edition as edition_named
from conformance.targets.java import JavaCodec, Order, java_judge
from conformance.targets.settled import settled
from conformance.wire.schema import Layout, spec
from golden.samples import samples
from golden.vectors import ACCEPTED, REWRITTEN, Vector, lock, vectors

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Source:
    """Which jar makes the vectors of some messages, and who else is asked what it makes of them."""

    edition: str
    messages: tuple[str, ...]
    release: str
    part: str
    asked: tuple[str, ...]
    versions: tuple[int, ...] | None = None
    """None: all that the edition has."""

    @property
    def coordinate(self) -> str:
        return f"org.apache.kafka:kafka-{self.part}:{self.release}"


SOURCES = (
    Source(
        "apache",
        (
            "ApiVersionsRequest", "ApiVersionsResponse", "ConsumerProtocolAssignment", "ConsumerProtocolSubscription",
            "JoinGroupRequest", "JoinGroupResponse",
        ),
        "4.4.0", "clients", ("3.9.2", "4.4.0"),
    ),
    Source("apache", ("AssignmentInfo", "SubscriptionInfo"), "4.3.1", "streams", ("3.9.2", "4.3.1")),
    # What these wrote for version 1 is version 2 with a 1 before it.
    Source("apache@1.1.1", ("AssignmentInfo", "SubscriptionInfo"), "1.1.1", "streams", ("1.1.1",), (1,)),
)  # fmt: skip


class Disagreement(Exception):
    """A jar and the layout do not mean the same: nothing is written."""


def make(check: bool = False, root: Path = HERE) -> list[str]:
    """Write what the jars make now, and say which files are not what they were; with ``check`` only say it.

    Errors: ``Unavailable`` without a JDK or jars, ``Disagreement``.
    """
    wanted: dict[str, dict[str, None]] = {}
    for source in SOURCES:
        for release in (source.release, *source.asked):
            wanted.setdefault(release, {})
            if source.part != "clients":
                wanted[release][source.part] = None
    made: dict[str, str] = {}
    jars: dict[str, str] = {}
    with java_judge({release: tuple(parts) for release, parts in wanted.items()}) as judge:
        for source in SOURCES:
            found = artifacts.fetch([source.coordinate])[source.coordinate]
            jars[source.coordinate] = artifacts.sha256(found)
            for message in source.messages:
                written = [each for at in _layouts(source, message) for each in _vectors(judge, source, at)]
                made[f"vectors/{source.edition}/{message}.json"] = _file(source, message, jars, written)
    changed = [name for name, text in made.items() if _text(root / name) != text]
    if not check:
        for name in changed:
            _write(root / name, made[name])
        _write(root / "lock.json", _locked(root, jars))
    return changed


def _layouts(source: Source, message: str) -> Iterable[Layout]:
    found = spec(edition_named(source.edition), message)
    return [found.at(version) for version in source.versions] if source.versions else found


def _vectors(judge: JavaCodec, source: Source, at: Layout) -> list[Vector]:
    return [_vector(judge, source, at, note, at.codec.to_json(value)) for note, value in samples(at)]


def _vector(judge: JavaCodec, source: Source, at: Layout, note: str, value: Mapping[str, Any]) -> Vector:
    where = f"{source.coordinate} and {at}, {note}"
    told = judge.one(Order("encode", at.message, at.version, value, release=source.release))
    if told.hex is None:
        raise Disagreement(f"{where}: it does not write {value}: {told.status} {told.thrown} {told.message}")
    read = judge.one(Order("decode", at.message, at.version, hex=told.hex, release=source.release))
    meant = read.value
    if at.message == "AssignmentInfo" or (at.message == "SubscriptionInfo" and source.edition != "apache"):
        meant = at.codec.to_json(at.decode(bytes.fromhex(told.hex)))
        if settled(at.message, meant) != settled(at.message, value):
            raise Disagreement(f"{where}: of {value} it writes {told.hex}")
    elif meant != value:
        raise Disagreement(f"{where}: of {value} it writes {told.hex}, and reads {meant}")
    outcomes = {
        release: told_again
        for release in source.asked
        if (told_again := _outcome(judge, release, at, told.hex)) is not None
    }
    return Vector(source.edition, at.message, at.version, note, told.hex, meant, source.coordinate, outcomes)


def _outcome(judge: JavaCodec, release: str, at: Layout, data: str) -> str | None:
    """None where the release has no such version."""
    read = judge.one(Order("decode", at.message, at.version, hex=data, release=release))
    if read.status == "unsupported":
        return None
    if read.status != ACCEPTED:
        return f"{read.status} {read.thrown}"
    again = judge.one(Order("recode", at.message, at.version, hex=data, release=release))
    return ACCEPTED if again.hex == data else REWRITTEN


def _file(source: Source, message: str, jars: Mapping[str, str], written: Iterable[Vector]) -> str:
    origin = {"kind": "jar", "jar": source.coordinate, "sha256": jars[source.coordinate]}
    # One vector a line: a change of one shows as one.
    lines = ",\n".join(
        json.dumps({
            "version": each.version, "note": each.note, "outcomes": each.outcomes, "value": each.value, "hex": each.hex,
        }, ensure_ascii=True)
        for each in written
    )  # fmt: skip
    head = f'"message": {json.dumps(message)}, "edition": {json.dumps(source.edition)}, "origin": {json.dumps(origin)}'
    return f'{{{head},\n"vectors": [\n{lines}\n]}}\n'


def _locked(root: Path, jars: Mapping[str, str]) -> str:
    """Over all files, those that no jar makes among them."""
    found = vectors(root=root)
    kept = lock(root).jars if (root / "lock.json").is_file() else {}
    named = {each.made_by for each in found}
    held = {
        "jars": {name: digest for name, digest in sorted({**kept, **jars}.items()) if name in named},
        "vectors": {each.name: each.digest for each in sorted(found, key=lambda each: each.name)},
    }
    return json.dumps(held, indent=1) + "\n"


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def _write(path: Path, text: str) -> None:
    with artifacts.placing(path) as staged:
        staged.write_text(text, "utf-8")


def main() -> int:
    """0: nothing changed, or it was written; 1: with ``--check``, something would."""
    parser = argparse.ArgumentParser(prog="python -m golden.make", description="make the golden vectors from the jars")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something would change")
    chosen = parser.parse_args()
    try:
        changed = make(check=chosen.check)
    except (artifacts.Unavailable, Disagreement) as why:
        print(f"golden.make: {why}", file=sys.stderr)
        return 1
    for name in changed:
        print(f"{name} {'would change' if chosen.check else 'changed'}")
    return 1 if chosen.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
