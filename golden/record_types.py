"""The types of persisted records by release, from released jars: ``python -m kipcheck.golden.record_types [--check]``.

``conformance/wire/schemas/record_types.json`` has every record of the metadata log, and those records of groups and
share groups that have no schema in kipcheck: the type, and its versions from each release on that changed them (null:
removed).
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import as_file, files
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core.files.releases_table import jars, patches
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.wire.definitions import in_jar
from kipcheck.conformance.wire.schema import Raw, Versions, messages

FILE: Final = "record_types.json"
JARS: Final[Mapping[str, tuple[str, str]]] = {
    "metadata": ("kafka-metadata", jars()["metadata"]),
    "groups": ("kafka-group-coordinator", jars()["group-coordinator"]),
    "shares": ("kafka-share-coordinator", "4.0.0-4.2.1, 4.3.0+"),
}
"""Section of the file -> the jar that defines its records, and the releases on Maven Central."""
Found = dict[tuple[int, str], dict[str, list[int] | None]]


class Defined(NamedTuple):
    type: int
    name: str
    versions: list[int]


def in_release(section: str, release: str) -> Iterator[Defined]:
    """The records that a jar defines. Errors: ``Unavailable``."""
    (path,) = maven.fetch([f"org.apache.kafka:{JARS[section][0]}:{release}"]).values()
    defined = in_jar(path)
    for name, raw in defined.items():
        if section == "metadata" and raw["type"] == "metadata":
            yield Defined(raw["apiKey"], name, _range(raw))
        elif section != "metadata" and name.endswith("Key") and name.removeprefix("Legacy") not in messages(APACHE):
            record = name.removesuffix("Key")
            yield Defined(_range(raw)[0], record, _range(defined[f"{record}Value"]))


def _range(raw: Raw) -> list[int]:
    found = Versions.parse(raw["validVersions"])
    assert found.high is not None
    return [found.low, found.high]


def made() -> dict[str, Any]:
    """The contents of the file, as the jars of all releases define it. Errors: ``Unavailable``."""
    return {section: _section(section) for section in JARS}


def _section(section: str) -> dict[str, Any]:
    found: Found = {}
    published = releases(JARS[section][1])
    for release in (each for each in patches() if Release.parse(each) in published):
        current = {(each.type, each.name): each.versions for each in in_release(section, release)}
        for key in {*found, *current}:
            changes = found.setdefault(key, {})
            if next(reversed(changes.values()), None) != current.get(key):
                changes[release] = current.get(key)
    ordered = sorted(found.items(), key=lambda each: (each[0][0], Release.parse(next(iter(each[1])))))
    return {name: {"type": number, "versions": changes} for (number, name), changes in ordered}


def text(found: Mapping[str, Any]) -> str:
    sections = (
        f'"{section}": {{\n  ' + ",\n  ".join(f'"{name}": {json.dumps(each)}' for name, each in records.items()) + "}"
        for section, records in found.items()
    )
    return "{" + ",\n ".join(sections) + "}\n"


def main(argv: Sequence[str]) -> int:
    """Exit code 1: with ``--check``, the file would change."""
    with as_file(files("kipcheck.conformance.wire") / "schemas" / FILE) as path:
        wanted = text(made())
        changed = not path.exists() or path.read_text("utf-8") != wanted
        if changed and "--check" not in argv:
            path.write_text(wanted, "utf-8")
    print(f"{FILE}: {'changed' if changed else 'unchanged'}")
    return int(changed and "--check" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
