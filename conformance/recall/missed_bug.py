"""States why a released bug was missed: from a run of the affected release in which the calls of the functions with the
defect are counted, and from runs of the fixed release.

Two releases differ by more than one bug, so only cases that call these functions are compared, and only verdicts of the
invariants that the entry counts.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kipcheck.conformance.core.values.exits import BROKEN, OURS
from kipcheck.conformance.core.values.plain import short_digest
from kipcheck.conformance.recall.bugs import Bug
from kipcheck.conformance.recall.change import Change
from kipcheck.conformance.recall.changes import entered
from kipcheck.conformance.recall.copies import TARGETS, Copies, DoesNotBuild, copies
from kipcheck.conformance.recall.facts import Usual
from kipcheck.conformance.recall.go_copies import instrumented as instrumented_go
from kipcheck.conformance.recall.measure import NOT_COUNTED, Reason, is_counted, judging_checks
from kipcheck.conformance.recall.mutant_process import END, End, Order
from kipcheck.conformance.recall.mutant_run import Run, run
from kipcheck.conformance.recall.python_copies import NOTE, PACKAGES, instrumented
from kipcheck.conformance.recall.sources import OF_FACTS, digest
from kipcheck.conformance.recall.why import By, Counted, missed, verdicts
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.registry import is_live
from kipcheck.conformance.targets.toolchains.maven import cache

SECONDS: Final = 2400.0
"""The limit of a run, as of the runs that look for the bug."""
LIVE_RUNS: Final = 2
"""Runs of the fixed release where its cases take real time: what differs between them shows nothing."""
SEED: Final = 0
FACTS: Final = "facts"
"""The folder of the runs."""
MEASURED_BY: Final = (*OF_FACTS, "missed_bug.py", "changes.py")


class _NotCounted(Exception):
    """The reason, in words."""


@dataclass(frozen=True, slots=True)
class Explainer:
    """Runs both releases of a missed bug, each once; runs are kept."""

    folder: Path
    begins: Callable[[str], None] = lambda about: None
    """Called before a run."""

    def __call__(self, bug: Bug) -> Reason:
        """Errors: OSError."""
        try:
            return self._reason(bug)
        except (_NotCounted, Unavailable, DoesNotBuild, LookupError, SyntaxError) as wrong:
            return Reason(NOT_COUNTED, f"why it was missed is not counted: {wrong.args[0] if wrong.args else wrong}")

    def _reason(self, bug: Bug) -> Reason:
        if not bug.defect:
            raise _NotCounted("the entry names no function")
        if not bug.edition:
            raise _NotCounted("the releases run with the cases of two editions")
        if bug.affected.partition("@")[0] not in TARGETS:
            raise _NotCounted(f"calls are counted in {', '.join(TARGETS)} alone")
        client = copies(bug.affected)
        changes = calls(bug, client)
        affected = self._run(bug, bug.affected, 0, client, changes)
        fixed = [self._run(bug, bug.fixed, at) for at in range(LIVE_RUNS if is_live(bug.fixed) else 1)]
        facts, usual = affected.facts, Usual([each.facts for each in fixed])
        if not any(facts.keys() & each.keys() for each in usual.runs):
            raise _NotCounted("the releases have no case in common")
        assert affected.end is not None
        outside = affected.end.loaded > 0 and not any(each.reached for each in facts.values())
        of_bug = [_of_bug(bug, each) for each in ([affected], fixed)]
        found = missed(facts, of_bug[0], usual, of_bug[1], Counted(True, outside))
        return Reason(
            found.why,
            f"{found.reached} of {len(facts)} cases called {', '.join(bug.defect)}; {len(found.differing)} of them "
            f"differ from those of {bug.fixed}, and {found.doubted} in a verdict that counts",
        )

    def _run(self, bug: Bug, target: str, at: int, client: Copies | None = None, changes: Sequence[Change] = ()) -> Run:
        """A run of the fixed release, or, with ``client``, of one that counts."""
        checks = judging_checks(bug)
        key = short_digest([target, bug.edition, checks, [each.id for each in changes], digest(MEASURED_BY)])
        place = self.folder / FACTS / f"{target.replace(':', '-')}-{key}-{at}"
        if not (place / END).exists():
            self.begins(f"{target}: why it was missed")
            order = Order(
                target, checks, SEED, str(place), counts=client is not None, edition=bug.edition, known=(),
                confirms=False,
            )  # fmt: skip
            if client is None:
                made = run(cache(), order, SECONDS)
            else:
                with (
                    TemporaryDirectory(prefix="kipcheck-counted-") as folder,
                    client.changed(changes[0], Path(folder) / "cache", *changes[1:]) as copy,
                ):
                    made = run(copy, order, SECONDS)
            if made.hung or made.end is None:
                raise _NotCounted(f"{target} did not end: {made.why or f'{SECONDS:.0f} s'}")
        end = End.read(place)
        made = Run(place, end, False, 0.0)
        if made.ledger is None or end.exit in (BROKEN, OURS):
            shutil.rmtree(place)  # the next attempt may end otherwise
            raise _NotCounted(f"{target} did not run: {end.why}")
        return made


def calls(bug: Bug, client: Copies) -> list[Change]:
    """Changes of nothing at the beginning of each function with the defect, which count calls.

    Errors: ``Unavailable``; LookupError for an entry whose file or function the release has not.
    """
    texts = dict(client.sources())
    package = f"{PACKAGES.get(client.client, '')}/"
    found: dict[str, Change] = {}
    every = []
    for each in bug.defect:
        file, _, name = each.partition(":")
        path = file.removeprefix(package)
        if path not in texts:
            raise LookupError(f"{bug.affected} has no file {path}")
        change = entered(path, name, texts[path])
        counting = None if change is None else _counting(change)
        if change is None or counting is None:
            raise LookupError(f"{bug.affected}, {path}: calls of {name} cannot be counted")
        texts[path] = counting
        found[path] = change
        every.append(change)
    # Of a file in Go the last text is the whole one; one in Python is changed step by step.
    return [*found.values()] if next(iter(found)).endswith(".go") else every


def _counting(change: Change) -> str | None:
    if change.path.endswith(".go"):
        return instrumented_go(change)
    text = instrumented(change)
    return text if text.count(NOTE) > change.before.count(NOTE) else None


def _of_bug(bug: Bug, runs: Sequence[Run]) -> Mapping[str, By]:
    """The verdicts of invariants that count, by case."""
    found = verdicts(ledger for each in runs if (ledger := each.ledger) is not None)
    return {case: {id: each for id, each in by.items() if is_counted(bug, id)} for case, by in found.items()}
