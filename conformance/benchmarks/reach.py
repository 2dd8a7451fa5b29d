"""Counts in how many default cases each branch of each invariant applies: ``python -m
kipcheck.conformance.benchmarks.reach``.

Writes ``reach.json``, which ``kipcheck checks --lint --reach`` compares with the sources, and reports what no default
case reaches. ``--check GLOB`` counts the cases of these checks, and keeps the counts of the others. ``--out DIR`` keeps
the counts of each check, so that an interrupted count continues: give it a folder for each state of the sources.
``--verify`` writes nothing: it fails where a new count has errors. Takes some minutes of processor time.

``--target NAME`` writes nothing: it lists the branches that the recorded cases reach, and those of this target do not.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.engine.reach import counter, record
from kipcheck.conformance.targets.protocol import Unavailable

MUTANTS: Final = "mutants.json"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="append", metavar="GLOB")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--target", metavar="NAME")
    options = parser.parse_args(arguments)
    sources = record.sources()
    counts = counter.install(sources)  # before any module with branches is imported
    from kipcheck.conformance.engine.reach import measure

    before = record.Reached.read() if record.RECORD.exists() else record.Reached()
    chosen = {id for id in measure.CHECKS if any(fnmatchcase(id, glob) for glob in options.check or ["*"])}
    if options.target:
        for id in (each for each in measure.CHECKS if each in chosen):
            try:
                played = measure.of_check(id, counts, options.target)
            except Unavailable as why:
                print(f"{id}: not counted: {why}")
                continue
            less = _places(before.checks[id]) - _places(played)
            print(f"{id}: {len(less)} branches are not reached")
            print("".join(f"  {place}, line {sources.places[place].line}\n" for place in sorted(less)), end="")
        return 0
    checks: dict[str, Any] = {}
    for id in measure.CHECKS:
        if id in chosen:
            kept = _kept(options.out, f"{id.replace('/', '~')}.json")
            checks[id] = measure.of_check(id, counts) if kept is None else kept
            _keep(options.out, f"{id.replace('/', '~')}.json", checks[id])
            print(f"{id}: {len(_places(checks[id]))} branches", flush=True)
        elif id in before.checks:
            checks[id] = record.present(before.checks[id], sources.places)
    invariants = {each.id: each for role in Role for each in measure.all_invariants(role)}
    searched = record.searched(sources, invariants.values())
    found = record.Reached(checks)
    waiting = {*sources.places, *(id for id, own in searched.items() if own)} - found.by_cases - found.cases().keys()
    known = {**(before.mutants if options.check else {}), **(_kept(options.out, MUTANTS) or {})}
    mutants = {id: name for id, name in known.items() if id in waiting}
    mutants |= measure.by_mutants(waiting - mutants.keys(), searched, counts)
    _keep(options.out, MUTANTS, mutants)
    found = record.Reached(checks, mutants, [*(sources.places.keys() - found.by_cases - mutants.keys())])
    if not options.verify:
        record.RECORD.write_text(found.text(), "utf-8")
    troubles = [*record.troubles(sources.places, searched, found, record.excused())]
    print("\n".join(troubles) or "default cases reach every branch of every invariant, but for those in reach.toml")
    return 1 if troubles else 0


def _places(cases: Mapping[str, Mapping[str, int]]) -> set[str]:
    """Those that applied for some invariant."""
    return {place for each in cases.values() for place in each}


def _kept(folder: Path | None, name: str) -> Any:
    """None: it was not counted yet."""
    path = None if folder is None else folder / name
    return json.loads(path.read_text("utf-8")) if path is not None and path.exists() else None


def _keep(folder: Path | None, name: str, counts: Any) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(counts), "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
