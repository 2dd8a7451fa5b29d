"""The text of vector files: one vector per line, so that a change of one vector is a change of one line."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.golden.outcomes import grouped
from kipcheck.golden.vector_files import Vector, lock, regression_digests, vectors


def files(made: Iterable[Vector], jars: Mapping[str, str]) -> dict[str, str]:
    """The text of each file, by its path in the package."""
    by: dict[tuple[str, str], list[Vector]] = {}
    for each in made:
        by.setdefault((each.edition, each.message), []).append(each)
    return {
        f"vectors/{edition}/{message}.json": _file(edition, message, some, jars)
        for (edition, message), some in by.items()
    }


def _file(edition: str, message: str, some: list[Vector], jars: Mapping[str, str]) -> str:
    first = some[0].made_by
    named = dict.fromkeys([first, *sorted({each.made_by for each in some})])
    asked: dict[int, list[str]] = {}
    for each in some:
        mine = asked.setdefault(each.version, [])
        mine += [release for release in each.outcomes if release not in mine]
        mine.sort(key=Release.parse)
    head = {
        "message": message,
        "edition": edition,
        "origin": {"kind": "jar", "jars": {each: jars[each] for each in named}},
        "asked": {str(version): " ".join(those) for version, those in asked.items()},
    }
    lines = ",\n".join(_line(each, first, asked[each.version]) for each in some)
    return f'{json.dumps(head)[:-1]},\n"vectors": [\n{lines}\n]}}\n'


def _line(each: Vector, usual: str, asked: list[str]) -> str:
    line: dict[str, Any] = {"version": each.version, "note": each.note}
    if each.damage:
        line |= {"damage": each.damage, "of": each.of}
    if each.made_by != usual:
        line["made_by"] = each.made_by
    if each.written_by:
        line["written_by"] = " ".join(each.written_by)
    line |= {"outcomes": grouped(each.outcomes, asked), "value": each.value, "hex": each.hex}
    return json.dumps(line, ensure_ascii=True, separators=(",", ":"))


def locked(root: Path, jars: Mapping[str, str]) -> str:
    """The text of the lock over all files, including those that no jar makes."""
    found = vectors(root=root)
    kept = lock(root).jars if (root / "lock.json").is_file() else {}
    named = {each.made_by for each in found}
    digests: dict[str, dict[str, str]] = {}
    for each in sorted(found, key=lambda each: each.name):
        start = f"{each.edition}/{each.message}"
        digests.setdefault(start, {})[each.name.removeprefix(f"{start} ")] = each.digest
    content = {
        "jars": {name: digest for name, digest in sorted({**kept, **jars}.items()) if name in named},
        "vectors": digests,
        "regressions": regression_digests(root),
    }
    return json.dumps(content, indent=1) + "\n"


def text_of(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def write(path: Path, text: str) -> None:
    """Replaces the file atomically."""
    with maven.placing(path) as staged:
        staged.write_text(text, "utf-8")
