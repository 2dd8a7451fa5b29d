"""Golden record batches, written and read by released jars: ``python -m kipcheck.golden.batches [--check]``.

``golden/batches.json`` has bytes, what the release that wrote them reads in them, and which other releases write the
same bytes and read the same. They are not vectors: a batch is no message with a schema (see ``wire.record_batches``).
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from os import pathsep
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kipcheck.conformance.clients.java.programs import coordinates, program, tool
from kipcheck.conformance.core.files.releases_table import listed
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.golden.disagreement import Disagreement

FILE: Final = "batches.json"
RELEASES: Final = listed("batch-writers")
"""The first writes, the others write and read again: magic 2 exists since 0.11."""
TIME: Final = 1_700_000_000_000
NONE: Final[Mapping[str, bytes | None]] = MappingProxyType({})
Value = dict[str, Any]


def batch(*records: Value, **fields: Any) -> Value:
    """A batch as the Java program takes it: from a producer without id, unless ``fields`` say otherwise."""
    usual = {
        "magic": 2, "baseOffset": 0, "baseTimestamp": TIME, "leaderEpoch": -1, "producerId": -1, "producerEpoch": -1,
        "baseSequence": -1, "transactional": False, "control": False,
    }  # fmt: skip
    return {**usual, **fields, "records": [*records]}


def record(
    value: bytes | None, key: bytes | None = None, timestamp: int = TIME, headers: Mapping[str, bytes | None] = NONE
) -> Value:
    named = [{"key": each, "value": None if data is None else data.hex()} for each, data in headers.items()]
    hexed = {"key": None if key is None else key.hex(), "value": None if value is None else value.hex()}
    return {"timestamp": timestamp, **hexed, "headers": named}


SAMPLES: Final[dict[str, Value]] = {
    "one record": batch(record(b"hello")),
    "null and empty": batch(record(None), record(b"", b""), record(None, b"k"), record(b"v", None)),
    "offset and leader epoch": batch(record(b"a"), record(b"b"), baseOffset=(1 << 40) + 3, leaderEpoch=7),
    "headers": batch(record(b"v", b"k", headers={"a": b"1", "b": None, "grüße ↯": b""})),
    "later and earlier": batch(record(b"a"), record(b"b", None, TIME + 5_000_000_000), record(b"c", None, TIME - 1)),
    "no timestamp": batch(record(b"a", None, -1)),
    "sizes of two bytes": batch(record(bytes(range(200)) * 2, b"k" * 64)),
    "hundred records": batch(*(record(str(n).encode(), bytes((n,)), TIME + n) for n in range(100))),
    "idempotent": batch(record(b"a"), record(b"b"), producerId=(1 << 40) + 9, producerEpoch=3, baseSequence=41),
    "transactional": batch(record(b"a"), producerId=5, producerEpoch=0, baseSequence=0, transactional=True),
    "end of a transaction": batch(baseOffset=12, leaderEpoch=2, producerId=5, producerEpoch=1, control=True),
}
"""By note: what is written."""


def asked(release: str, lines: Sequence[Value]) -> list[Any]:
    """The answers of a release's classes. Errors: ``Unavailable`` without a JDK or the jars."""
    jars = maven.fetch({each: None for each in coordinates(release)})
    given = f"{release}={pathsep.join(map(str, jars.values()))}"
    done = subprocess.run(
        [tool("java"), "-cp", str(program()), "kipcheck.Batches", given],
        input="".join(json.dumps(each) + "\n" for each in lines),
        check=True, capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def made() -> dict[str, Any]:
    """The content of the file. Errors: ``Disagreement`` between releases; ``Unavailable``."""
    written = {release: asked(release, [*SAMPLES.values()]) for release in RELEASES}
    first = written[RELEASES[0]]
    read = {release: asked(release, [{"hex": each} for each in first]) for release in RELEASES}
    entries = []
    for n, note in enumerate(SAMPLES):
        for release in RELEASES[1:]:
            if (written[release][n], read[release][n]) != (first[n], read[RELEASES[0]][n]):
                raise Disagreement(f"{note}: {release} has {written[release][n]} and {read[release][n]}")
        entries.append({"note": note, "hex": first[n], "batches": read[RELEASES[0]][n]})
    about = {"made_by": f"org.apache.kafka:kafka-clients:{RELEASES[0]}", "same_in": [*RELEASES[1:]]}
    return {**about, "batches": entries}


def batches() -> Iterator[tuple[str, bytes, list[Value]]]:
    """Note, bytes, and the batches in them, from the file."""
    content = json.loads((files("kipcheck.golden") / FILE).read_text("utf-8"))
    for each in content["batches"]:
        yield each["note"], bytes.fromhex(each["hex"]), each["batches"]


def text(content: dict[str, Any]) -> str:
    entries = ",\n  ".join(json.dumps(each, ensure_ascii=False) for each in content["batches"])
    head = json.dumps({key: each for key, each in content.items() if key != "batches"})
    return f'{head[:-1]}, "batches": [\n  {entries}]}}\n'


def main(argv: Sequence[str]) -> int:
    """Exit code 1: with ``--check``, the file would change."""
    path, wanted = Path(__file__).parent / FILE, text(made())
    changed = not path.exists() or path.read_text("utf-8") != wanted
    if changed and "--check" not in argv:
        path.write_text(wanted, "utf-8")
    print(f"{FILE}: {'changed' if changed else 'unchanged'}")
    return int(changed and "--check" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
