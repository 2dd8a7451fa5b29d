"""Runs of released nodes on ways back: ``python -m kipcheck.golden.ways_back [NAME ...] [--list] [--anew] [--tables]``.

``golden/ways_back.json`` has a row for each run of ``ways``. Without names, the runs without a row are played, one
cluster at a time, and each row is written when its run ends: the same command continues. A named run with a row is
played again and compared with it; ``--anew`` replaces the row. ``--tables`` writes the tables of ``docs/records.md``.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from kipcheck.conformance.live.ways_back import play
from kipcheck.conformance.protocols.features.upgrades.ways_back import FILE, Played, Way, as_row, played, ways
from kipcheck.conformance.targets.protocol import Broken, Unavailable
from kipcheck.golden import ways_back_tables


def text(found: Iterable[Played]) -> str:
    """A row on each line, in the order of ``ways``."""
    order = ways()
    rows = sorted(found, key=lambda each: order.index(each.way))
    return "[\n" + ",\n".join(json.dumps(as_row(each), ensure_ascii=False) for each in rows) + "\n]\n"


def write(found: Iterable[Played]) -> None:
    """Replaces the file as a whole."""
    path = Path(__file__).parent / FILE
    staged = path.with_suffix(".part")
    staged.write_text(text(found), "utf-8")
    os.replace(staged, path)


def main(argv: Sequence[str]) -> int:
    """Exit code 1: a run differs from its row, or its outcome is not clear; 2: an unknown name."""
    options, names = {each for each in argv if each.startswith("--")}, {each for each in argv if each[:2] != "--"}
    known = {each.name: each for each in ways()}
    if unknown := [*(names - known.keys()), *(options - {"--list", "--anew", "--tables"})]:
        print(f"unknown: {', '.join(unknown)}; --list prints the names", file=sys.stderr)
        return 2
    rows = dict(played())
    wanted = [way for name, way in known.items() if (name in names if names else way not in rows or "--anew" in argv)]
    if "--list" in options:
        for way in known.values():
            print(f"{'recorded' if way in rows else 'not run':8}  {way.name}")
        return 0
    if "--tables" in options:
        page = Path(str(files("kipcheck.conformance"))) / "docs" / "records.md"
        page.write_text(ways_back_tables.replaced(page.read_text("utf-8"), rows), "utf-8")
        return 0
    return max((_run(way, rows, "--anew" in options) for way in wanted), default=0)


def _run(way: Way, rows: dict[Way, Played], anew: bool) -> int:
    print(f"{way.name}: ", end="", flush=True)
    try:
        found = play(way)
    except (Broken, Unavailable) as why:
        print(f"no outcome: {why}", flush=True)
        return 1
    if way in rows and not anew:
        same = found.outcome == rows[way].outcome
        print("as recorded" if same else f"DIFFERS: {found}; recorded: {rows[way]}", flush=True)
        return int(not same)
    rows[way] = found
    write(rows.values())
    print(json.dumps(as_row(found)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
