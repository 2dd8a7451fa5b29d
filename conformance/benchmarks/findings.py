"""Measures how reliably the published findings are found: ``python -m kipcheck.conformance.benchmarks.findings``.

For each page in ``docs/findings`` and each check that its row ``found by`` names, prints in how many of the seeds the
default number of cases shows the failure. It counts if an entry of a shipped known list that links to the page matches
it, or, without such an entry, if it breaks an invariant that the page names. A finding is reliable if one of its checks
shows it with nine of ten seeds.

Arguments are globs of pages or targets: ``kafka-python*``, ``kafka-lists-twice*``. ``--seeds N`` runs seeds 0 to N-1,
``--check GLOB`` only some checks, and ``--any-shape`` counts every failure of the invariants that the page names, which
a list that was not recorded again needs. Everything takes hours.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any, Final

from kipcheck.conformance.clients.java.target import ARTIFACTS
from kipcheck.conformance.engine.execution.worker import Finding, Unit, Worker
from kipcheck.conformance.engine.known.lists import DEFAULT, everything
from kipcheck.conformance.engine.known.rules import Entry
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.registry import target

EDITION: Final = "apache"
RELIABLE: Final = 0.9
ROW: Final = re.compile(r"^\| (target|found by) \| (.*) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """A published finding."""

    name: str
    client: str
    release: str
    checks: tuple[str, ...]
    invariants: frozenset[str]
    entries: tuple[Entry, ...]
    """Of the shipped lists, those that link to the page."""

    @property
    def target(self) -> str:
        """How ``--target`` names the release."""
        return f"java:{self.client}:{self.release}" if self.client in ARTIFACTS else f"{self.client}@{self.release}"

    def is_shown_by(self, found: Finding, any_shape: bool) -> bool:
        if found.invariant not in self.invariants:
            return False
        entries = [each for each in self.entries if each.invariant == found.invariant]
        if any_shape or not entries:
            return True
        place, violation = (found.unit.subject, found.unit.version), found.violation
        return any(each.covers(place) and each.matches_shape(violation.shape, violation.why, False) for each in entries)


def pages() -> Iterator[Page]:
    """All pages, by name. Errors: ValueError for a page without the two rows."""
    known = [entry for each in everything([DEFAULT]) for entry in each.entries]
    roles = {each.role for each in CHECKS.values()}
    invariants = {each.id for role in roles for each in all_invariants(role)}
    folder = files("kipcheck.conformance") / "docs" / "findings"
    for path in sorted(folder.iterdir(), key=lambda each: each.name):
        if not path.name.endswith(".md") or path.name == "index.md":
            continue
        rows = dict(ROW.findall(path.read_text("utf-8")))
        if rows.keys() != {"target", "found by"}:
            raise ValueError(f"{path.name} lacks the row target or the row found by")
        client, release = rows["target"].split()
        named = re.findall(r"`([\w/-]+)`", rows["found by"])
        # A name may be that of a check and of an invariant.
        checks = tuple(each for each in named if each in CHECKS)
        entries = tuple(each for each in known if each.link.endswith(f"/{path.name}"))
        yield Page(path.name.removesuffix(".md"), client, release, checks, frozenset(named) & invariants, entries)


def units(page: Page, check: str, seed: int, claims: Any) -> Iterator[Unit]:
    """The units of the check; if entries name places, only those of them."""
    entries = [each for each in page.entries if check in each.checks]
    family = CHECKS[check].family
    for subject in family.subjects(EDITION):
        place = subject.name, subject.version
        if not CHECKS[check].about(subject) or not family.claimed(subject, claims):
            continue
        if not entries or any(each.covers(place) for each in entries):
            yield Unit(page.target, EDITION, check, subject.name, subject.version, seed, None)


def is_found(worker: Worker, page: Page, check: str, seed: int, any_shape: bool) -> bool:
    """Errors: ``Unavailable``."""
    claims = worker.info(EDITION, CHECKS[check].role).claims
    for unit in units(page, check, seed, claims):
        if any(page.is_shown_by(each, any_shape) for each in worker.run(unit).findings):
            return True
    return False


def main() -> None:
    options = _options()
    chosen = [
        each for each in pages()
        if any(fnmatchcase(name, glob) for glob in options.globs or ["*"] for name in (each.name, each.client))
    ]  # fmt: skip
    print(f"{len(chosen)} findings, seeds 0 to {options.seeds - 1}, the default number of cases")
    print(f"{'finding':52} {'target':34} {'check':20} found")
    reliable = 0
    for page in chosen:
        best = 0
        with Worker(page.target, target(page.target)) as worker:
            for check in page.checks:
                if not fnmatchcase(check, options.check):
                    continue
                try:
                    found = [is_found(worker, page, check, seed, options.any_shape) for seed in range(options.seeds)]
                except Unavailable as why:
                    print(f"{page.name:52} {page.target:34} {check:20} unavailable: {why}", flush=True)
                    continue
                best = max(best, sum(found))
                missed = ", ".join(str(seed) for seed, each in enumerate(found) if not each)
                score = f"{sum(found)} of {len(found)}" + (f", not with {missed}" if missed else "")
                print(f"{page.name:52} {page.target:34} {check:20} {score}", flush=True)
        reliable += best >= RELIABLE * options.seeds
    print(f"{reliable} of {len(chosen)} findings are shown with nine of ten seeds by a check that their page names")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("globs", nargs="*", metavar="GLOB", help="of pages or of targets; default: all")
    parser.add_argument("--seeds", type=int, default=10, metavar="N")
    parser.add_argument("--check", default="*", metavar="GLOB")
    parser.add_argument("--any-shape", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
