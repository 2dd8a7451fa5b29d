"""Makes the golden vectors from released jars: ``python -m kipcheck.golden.make [--check]``.

The jar writes the bytes; the value beside them is what the jar decodes from them. Classes of Streams and of the
assignors lose the order of elements, so there the value is decoded here, after a comparison in canonical form. Then
the bytes are damaged, and every release that has the version decodes them.
"""

import argparse
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kipcheck.conformance.clients.java.programs import Answer, JavaCodec, Order, java_judge
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.targets.canonical_form import canonical
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import jar_digests, maven
from kipcheck.conformance.targets.transport.pipe import Ended
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout, messages, spec
from kipcheck.golden import records
from kipcheck.golden.damage import damaged
from kipcheck.golden.disagreement import Disagreement
from kipcheck.golden.outcomes import ACCEPTED, EXHAUSTS, FUTURE, INTERNAL, REJECTED, REWRITTEN, UNWRITABLE
from kipcheck.golden.samples import SMALL, samples
from kipcheck.golden.sources import CONSUMER, RECORDS, STICKY, coordinate, jars, maker, tested_releases
from kipcheck.golden.text import files, locked, text_of, write
from kipcheck.golden.vector_files import Vector, vectors
from kipcheck.golden.vectors import by_message

HERE = Path(__file__).parent
OK, CHANGED, NO_JARS = 0, 1, 3
OURS = "the bytes start with version"
"""The message of kipcheck's Java program where the version belongs to another class."""
BY_HAND = (*RECORDS, *STICKY)


def make(check: bool = False, root: Path = HERE, only: Sequence[str] = ()) -> list[str]:
    """Writes what the jars make now, and returns which files changed, and how; with ``check`` only returns it.

    ``only``: these messages; the files of others are unchanged. Errors: ``Unavailable`` without a JDK or jars,
    ``Disagreement``.
    """
    wanted = only or messages(APACHE)
    with java_judge(jars()) as judge:
        made = [each for message in wanted for each in _of_message(judge, message)]
    digests = {each.made_by: "" for each in made}
    found = maven.fetch(digests)
    digests = {each: jar_digests.sha256(path) for each, path in found.items()}
    texts = files(made, digests)
    reported = []
    for name, text in texts.items():
        before = text_of(root / name)
        if before == text:
            continue
        reported += (
            [f"{name} is new"] if before is None else [f"{name}: {line}" for line in _differences(root, name, made)]
        )
    if not only:
        reported += [f"no jar makes {name} any more" for name in _left(root, texts)]
    if not check:
        for name, text in texts.items():
            if text_of(root / name) != text:
                write(root / name, text)
        if not only:
            for name in _left(root, texts):
                (root / name).unlink()
        write(root / "lock.json", locked(root, digests))
    return reported


def _of_message(judge: JavaCodec, message: str) -> Iterator[Vector]:
    made = [each for at in spec(APACHE, message) for each in _of_layout(judge, at)]
    if message in RECORDS:
        made = records.of_every_line(judge, message, made)
    yield from with_outcomes(judge, made)


def _of_layout(judge: JavaCodec, at: Layout) -> Iterator[Vector]:
    release = maker(at)
    for note, value in samples(at):
        yield _valid(judge, at, release, note, at.codec.to_json(value))
    (small,) = (value for note, value in samples(at) if note == SMALL)
    written = at.encode(small)
    seen = {written.hex()}
    for note, damage in damaged(at):
        if (hexed := damage.data.hex()) in seen:
            continue
        seen.add(hexed)
        by = coordinate(release, at.message)
        meant = _strictly(at, damage.data)
        yield Vector("apache", at.message, at.version, note, hexed, meant, by, damage=damage.kind, of=SMALL)


def _strictly(at: Layout, data: bytes) -> dict[str, Any] | None:
    try:
        return at.codec.to_json(at.decode(data))
    except Refused:
        return None


def _valid(judge: JavaCodec, at: Layout, release: str, note: str, value: Mapping[str, Any]) -> Vector:
    where = f"{coordinate(release, at.message)} and {at}, {note}"
    reported = judge.one(Order("encode", at.message, at.version, value, release=release))
    if reported.hex is None:
        raise Disagreement(
            f"{where}: the jar does not write {value}: {reported.status} {reported.thrown} {reported.message}"
        )
    meant: Any = judge.one(Order("decode", at.message, at.version, hex=reported.hex, release=release)).value
    if at.message in BY_HAND and at.message != "SubscriptionInfo":
        meant = at.codec.to_json(at.decode(bytes.fromhex(reported.hex)))
        if canonical(at.message, meant) != canonical(at.message, value):
            raise Disagreement(f"{where}: for {value} the jar writes {reported.hex}")
    elif meant != value:
        raise Disagreement(f"{where}: for {value} the jar writes {reported.hex}, and decodes {meant}")
    return Vector("apache", at.message, at.version, note, reported.hex, meant, coordinate(release, at.message))


# -- outcomes of releases


def with_outcomes(judge: JavaCodec, made: Sequence[Vector], among: Collection[str] = ()) -> Iterator[Vector]:
    """Adds the outcomes of the vectors of one message: of all releases that have the version, or those in ``among``."""
    questions = [
        (each, release)
        for each in made
        for release in tested_releases(each.message, each.version)
        if not among or release in among
    ]
    again = [*judge.answers(_order("recode", each, release) for each, release in questions)]
    unsure = [n for n, reported in enumerate(again) if reported.status != "accepted"]
    read = dict(zip(unsure, judge.answers(_order("decode", *questions[n]) for n in unsure), strict=True))
    small = {each.version: each.hex for each in made if each.note == SMALL and each.edition == "apache"}
    outcomes: dict[str, dict[str, str]] = {each.name: {} for each in made}
    for n, (each, release) in enumerate(questions):
        undamaged = small.get(each.version) if each.of else None
        if reported := _outcome(each.hex, again[n], read.get(n), undamaged):
            outcomes[each.name][release] = reported
    for each in made:
        yield replace(each, outcomes=outcomes[each.name])


def _order(op: str, each: Vector, release: str) -> Order:
    # Consumers check the version themselves; a class for one version gets it as an argument.
    public = each.message in CONSUMER and each.damage == "version"
    return Order(op, each.message, each.leading, hex=each.hex, release=release, public=public)


def _outcome(given: str, again: Answer, read: Answer | None, undamaged: str | None) -> str | None:
    """None where the release lacks the version or cannot decode the bytes alone."""
    if again.status == "accepted":
        if again.hex == given:
            return ACCEPTED
        return REWRITTEN if again.hex == undamaged else f"{REWRITTEN} {again.hex}"
    assert read is not None
    if read.status == "accepted":
        if isinstance(read.value, dict) and list(read.value) == ["version", "latestSupportedVersion"]:
            return FUTURE
        return f"{UNWRITABLE} {again.thrown}" if again.status != "unsupported" else f"{UNWRITABLE} here"
    if read.status == "unsupported" or read.message.startswith(OURS):
        return None
    if read.thrown == "java.lang.OutOfMemoryError":
        return EXHAUSTS
    return f"{REJECTED if read.status == 'rejected' else INTERNAL} {read.thrown}"


# -- changes


def _differences(root: Path, name: str, made: Iterable[Vector]) -> list[str]:
    _, edition, file = name.split("/")
    before, after = (
        {each.name: each for each in some if (each.edition, f"{each.message}.json") == (edition, file)}
        for some in (vectors(root=root), made)
    )
    lines = [f"{each.partition(' ')[2]} is gone" for each in before if each not in after]
    for each, vector in after.items():
        short = each.partition(" ")[2]
        old = before.get(each)
        if old is None:
            lines.append(f"{short} is new")
            continue
        keys = ("hex", "value", "made_by", "outcomes", "damage", "of", "written_by")
        parts = [key for key in keys if getattr(old, key) != getattr(vector, key)]
        if parts:
            lines.append(f"{short}: changed {', '.join(parts)}")
    return lines or ["the header or the order of vectors changed"]


def _left(root: Path, texts: Mapping[str, str]) -> list[str]:
    found = (path.relative_to(root).as_posix() for path in sorted((root / "vectors").rglob("*.json")))
    return [name for name in found if name.split("/")[1].startswith("apache") and name not in texts]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0: nothing changed, or it was written; 1: with ``--check``, something would change; 3: no jars."""
    about = "make the golden vectors from the jars"
    parser = argparse.ArgumentParser(prog="python -m kipcheck.golden.make", description=about)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something would change")
    parser.add_argument("--details", action="store_true", help="print every difference; default one line a message")
    parser.add_argument("--message", action="append", default=[], help="only this message; may be repeated")
    parser.add_argument("--lock", action="store_true", help="write only the lock, over the existing files (no Java)")
    chosen = parser.parse_args(argv)
    if chosen.lock:
        write(HERE / "lock.json", locked(HERE, {}))
        return OK
    try:
        changed = make(check=chosen.check, only=chosen.message)
    except (Unavailable, Ended) as why:
        print(f"kipcheck.golden.make: {why}", file=sys.stderr)
        return NO_JARS
    except Disagreement as why:
        print(f"kipcheck.golden.make: {why}", file=sys.stderr)
        return CHANGED
    for line in changed if chosen.details else by_message(changed):
        print(line)
    print(f"{len(changed)} {'would change' if chosen.check else 'changed'}")
    return CHANGED if chosen.check and changed else OK


if __name__ == "__main__":
    sys.exit(main())
