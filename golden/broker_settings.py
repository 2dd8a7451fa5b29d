"""The settings of groups and offsets that brokers define: ``python -m kipcheck.golden.broker_settings [--check]``.

``core/data/broker_settings.json`` has what the definitions (``ConfigDef``) in the jars of every release state: types,
defaults, bounds and values, by the releases in which they are the same.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeAlias

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.programs import Order
from kipcheck.conformance.core.files.broker_settings import FILE
from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.core.values.release import text_of
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.golden.disagreement import Disagreement

BEGINNINGS: Final = ("group.", "offset.", "offsets.", "share.")
"""How the names of the settings of brokers begin that the file has; of groups it has all."""
OPERATIONS: Final = {"broker": "broker-settings", "group": "group-settings"}
TOGETHER: Final = 8
"""Releases in one JVM."""
Row: TypeAlias = dict[str, Any]
Defined: TypeAlias = Mapping[str, Mapping[str, Row]]
"""For ``broker`` and ``group``: by name of a setting, its row without releases."""


def defined(wanted: Sequence[str]) -> dict[str, Defined]:
    """What the jars of these releases define. Errors: ``Unavailable``; ``Disagreement`` if a jar has no definition."""
    programs.program()
    found: dict[str, Defined] = {}
    for at in range(0, len(wanted), TOGETHER):
        some = wanted[at : at + TOGETHER]
        jars = {each: [Path(one) for one in kafka_broker.class_path(each).split(os.pathsep)] for each in some}
        with programs.judge_of(jars) as judge:
            for release in some:
                answers = {of: judge.one(Order(op, "", release=release)) for of, op in OPERATIONS.items()}
                if wrong := [each for each in answers.values() if each.status != "accepted"]:
                    raise Disagreement(f"{release}: {wrong[0].thrown or wrong[0].status}: {wrong[0].message}")
                found[release] = {of: _kept(of, each.value) for of, each in answers.items()}
    return found


def _kept(of: str, rows: Mapping[str, Row]) -> dict[str, Row]:
    """Without the order of valid values, which may be that of a hash map."""
    return {
        name: row | ({"values": sorted(row["values"])} if "values" in row else {})
        for name, row in sorted(rows.items())
        if of == "group" or name.startswith(BEGINNINGS)
    }


def rows(found: Mapping[str, Defined], of: str) -> Iterator[tuple[str, list[Row]]]:
    """By name of a setting, its rows, with the releases of each. ``found``: all releases, oldest first."""
    for name in sorted({name for each in found.values() for name in each[of]}):
        by_row: dict[str, list[str]] = {}
        for release, each in found.items():
            if name in each[of]:
                by_row.setdefault(json.dumps(each[of][name]), []).append(release)
        yield name, [{"releases": text_of(some), **json.loads(row)} for row, some in by_row.items()]


def text(found: Mapping[str, Defined]) -> str:
    """The content of the file: a row on each line."""
    parts = [f'"made_by": "ConfigDef of KafkaConfig and of GroupConfig", "releases": {json.dumps([*found])}']
    for of in OPERATIONS:
        lines = (f'  "{name}": [\n    ' + ",\n    ".join(map(json.dumps, some)) + "]" for name, some in rows(found, of))
        parts.append(f'"{of}": {{\n' + ",\n".join(lines) + "}")
    return "{" + ",\n".join(parts) + "}\n"


def main(argv: Sequence[str]) -> int:
    """Exit code 1: with ``--check``, the file would change."""
    path = Path(str(files("kipcheck.conformance.core"))) / "data" / FILE
    wanted = text(defined(patches()))
    changed = not path.exists() or path.read_text("utf-8") != wanted
    if changed and "--check" not in argv:
        path.write_text(wanted, "utf-8")
    print(f"{FILE}: {'changed' if changed else 'unchanged'}")
    return int(changed and "--check" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
