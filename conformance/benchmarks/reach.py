"""Counts in how many default cases each branch of each invariant applies: ``python -m
kipcheck.conformance.benchmarks.reach``.

Writes ``reach.json``, which ``kipcheck checks --lint --reach`` compares with the sources, and reports what no default
case reaches. ``--check GLOB`` counts the cases of these checks, and keeps the counts of the others. ``--out DIR`` keeps
the counts of each check, so that an interrupted count continues: give it a folder for each state of the sources.
``--verify`` writes nothing: it fails where a new count has errors. Takes some minutes of processor time.
"""

import argparse
import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.engine.reach import counter, record


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="append", metavar="GLOB")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args(arguments)
    sources = record.sources()
    counts = counter.install(sources)  # before any module with branches is imported
    from kipcheck.conformance.engine.reach import measure

    before = record.Reached.read() if record.RECORD.exists() else record.Reached()
    checks = {}
    for id in measure.CHECKS:
        if any(fnmatchcase(id, glob) for glob in options.check or ["*"]):
            kept = options.out and options.out / f"{id.replace('/', '~')}.json"
            if kept and kept.exists():
                checks[id] = json.loads(kept.read_text("utf-8"))
            else:
                checks[id] = measure.of_check(id, counts)
                if kept:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_text(json.dumps(checks[id]), "utf-8")
            print(f"{id}: {len({place for each in checks[id].values() for place in each})} branches", flush=True)
        elif id in before.checks:
            checks[id] = record.present(before.checks[id], sources.places)
    by_cases = record.Reached(checks).by_cases
    invariants = {each.id: each for role in Role for each in measure.all_invariants(role)}
    searched = record.searched(sources, invariants.values())
    known = {place: name for place, name in before.mutants.items() if options.check and place in sources.places}
    waiting = sources.places.keys() - by_cases - known.keys()
    mutants = {**known, **measure.by_mutants(waiting, searched, counts)}
    found = record.Reached(checks, {place: name for place, name in mutants.items() if place not in by_cases})
    found = record.Reached(checks, found.mutants, [*(sources.places.keys() - by_cases - mutants.keys())])
    if not options.verify:
        record.RECORD.write_text(found.text(), "utf-8")
    troubles = [*record.troubles(sources.places, searched, found, record.excused())]
    print("\n".join(troubles) or "every branch and every invariant is reached, or excused")
    return 1 if troubles else 0


if __name__ == "__main__":
    raise SystemExit(main())
