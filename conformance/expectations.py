"""What a run makes of the known deviations that it was given: which failures are expected, which entries are stale."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from conformance.checks import CHECKS
from conformance.core.edition import edition
from conformance.core.known import Draw, Entry, Failure, Known, Place, fits
from conformance.core.known_files import Wrong, overlaps, parse
from conformance.evidence import spans
from conformance.targets.entries import roll
from conformance.targets.protocol import Claims
from conformance.targets.roll import MINIATURE, PREFIXES
from conformance.work import Finding, UnitResult, Worker, invariants_of

DEFAULT = "default"
"""In the place of a file: what comes with kipcheck for each target."""
MOST_FAILURES = 4
"""One entry stands for at most so many distinct failures: what it says of them is one reason."""
MOST_SUBJECTS = 12
"""So many subjects may fall under one wildcard; more than that have to be named, so that a reader sees them."""
ALONE = 5
"""What fails so many times out of so many, run alone, is no flake."""
PROFILE = "profile"
"""The name that a profile has in the place of a check."""

Line = dict[str, Any]


# ---- files


def load(names: Sequence[str], targets: Sequence[str], draft: bool = False) -> tuple[Known, ...]:
    """``default`` are the files for these targets. Errors: ``Wrong`` with path, line and what would do."""
    found = [
        parse(text, shown, draft)
        for name in dict.fromkeys(names)
        for shown, text in (_of_targets(targets) if name == DEFAULT else [(name, _read(Path(name)))])
    ]
    if len(found) > 1 and (troubles := overlaps([entry for each in found for entry in each.entries])):
        raise Wrong(troubles)
    troubles = [each for known in found for each in (*_no_edition(known), *(() if draft else _dead_links(known)))]
    if troubles:
        raise Wrong(troubles)
    return tuple(found)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise Wrong([f"{path}:1: cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise Wrong([f"{path}:1: is no UTF-8"]) from None


def _of_targets(targets: Sequence[str]) -> Iterator[tuple[str, str]]:
    folder = files("conformance.targets") / "known"
    for name in dict.fromkeys(slug for target in targets for slug in slugs(target)):
        if (file := folder / f"{name}.toml").is_file():
            with as_file(file) as path:
                yield _brief(path), file.read_text("utf-8")


def slugs(target: str) -> list[str]:
    """What the file of a target may be called: without the release that its name may end in."""
    bare = target.partition("@")[0]
    named = [bare] if bare.count(":") < 2 else [bare.rpartition(":")[0], bare]
    return ["".join(each if each.isalnum() or each in "-_." else "-" for each in name) for name in named]


def _brief(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _no_edition(known: Known) -> Iterator[str]:
    try:
        edition(known.draw.edition)
    except LookupError as unknown:
        yield f"{known.path}:1: {unknown}"


def _dead_links(known: Known) -> Iterator[str]:
    """Links to pages: beside the file, below the folder where one stands, or among kipcheck's own."""
    for entry in known.entries:
        if "://" not in entry.link:
            at = [Path(known.path).parent, Path(), Path(str(files("conformance"))).parent]
            if not any((folder / entry.link).is_file() for folder in at):
                yield f"{entry.at}: link: there is no page {entry.link!r}"


# ---- an account


@dataclass(slots=True)
class _Held:
    """What was held with the target at hand."""

    name: str
    version: str
    claims: Claims | None
    looked: dict[tuple[str, str | None, Place], set[str]] = field(default_factory=dict)
    """Check, invariant (None: any) and place -> what came of it."""
    shown: dict[Entry, set[Place]] = field(default_factory=dict)
    otherwise: dict[Entry, dict[Place, str]] = field(default_factory=dict)
    """Where an entry's failure did not show, and another one of the same invariant did: its id."""
    failures: dict[Entry, set[str]] = field(default_factory=dict)
    steady: set[Entry] = field(default_factory=set)
    places: dict[str, set[Place]] = field(default_factory=dict)
    """Of a check: all that it is about and the target claims."""


class Account:
    """Of one run. For each target: ``begin``, ``saw`` every result, ``judge`` its failures, ``settle``."""

    def __init__(self, known: Sequence[Known], draw: Draw, today: date, targets: Sequence[str] = ()) -> None:
        self.entries = tuple(entry for each in known for entry in each.entries)
        self._draws = {entry: each.draw for each in known for entry in each.entries}
        self._draw = draw
        self._today = today
        self._targets = targets
        self._strange: set[Entry] = set()
        self._held = _Held("", "", None)
        self.counts = {"entries": len(self.entries), "shown": 0, "not_looked_at": 0, "stale": 0}

    def begin(self, name: str, version: str, claims: Claims | None) -> None:
        """``claims``: None where they are not known any more, and what was looked at is taken for all that there is."""
        self._held = _Held(name, version, claims)

    def saw(self, result: UnitResult) -> None:
        if self.entries and not result.unreached:
            unit = result.unit
            self.look(unit.check, (unit.subject, unit.version), (by for _, _, by in result.cases))

    def look(self, check: str, place: Place, verdicts: Iterable[Mapping[str, str]]) -> None:
        """That a check was held with cases, and what came of each by invariant."""
        self._held.looked.setdefault((check, None, place), set())
        for by in verdicts:
            for invariant, result in by.items():
                self._held.looked.setdefault((check, invariant, place), set()).add(result)

    # ---- failures

    def judge(self, lines: Sequence[Line]) -> None:
        """Tells in each line of a distinct failure whether it is expected.

        ``known``: all of it is. ``beyond``: a part is, and this is not. ``changed``: an entry expects another failure
        there.
        """
        told = [(line, _failure(line)) for line in lines]
        matched: dict[str, dict[Place, Entry]] = {}
        for _, failure in told:
            by_place = matched.setdefault(failure.id, {})
            for entry in self._listed("deviation"):
                named = {place for place in failure.places if entry.names(place)}
                if named and entry.same(failure):
                    by_place.update(dict.fromkeys(named, entry))
                    self._held.shown.setdefault(entry, set()).update(named)
                    self._held.failures.setdefault(entry, set()).add(failure.id)
        for line, failure in told:
            by_place = matched[failure.id]
            left = failure.places - by_place.keys()
            if by_place:
                line["beyond" if left else "known"] = told_of(next(iter(by_place.values())))
            if left and by_place:
                line["beyond"]["where"] = where_of(left)
            instead = {place: other for place in left if (other := self._instead(failure, place)) is not None}
            for place, entry in instead.items():
                self._held.otherwise.setdefault(entry, {})[place] = failure.id
            if left and instead.keys() == left:
                line["changed"] = told_of(next(iter(instead.values())))

    def _listed(self, kind: str) -> Iterator[Entry]:
        for entry in self.entries:
            if entry.kind == kind and entry.about(self._held.name, self._held.version):
                yield entry

    def _instead(self, failure: Failure, place: Place) -> Entry | None:
        """The entry that expects another failure of the same invariant there, which did not show."""
        for entry in self._listed("deviation"):
            if entry.akin(failure) and entry.names(place) and place not in self._held.shown.get(entry, ()):
                return entry
        return None

    def flaky(self, finding: Finding) -> Entry | None:
        """The entry that says that this comes and goes."""
        unit, place = finding.unit, (finding.unit.subject, finding.unit.version)
        for entry in self._listed("flaky"):
            about = unit.check in entry.checks and entry.invariant == finding.invariant
            violation = finding.violation
            if about and entry.names(place) and entry.alike(violation.shape, violation.why, whole=False):
                self._held.shown.setdefault(entry, set()).add(place)
                return entry
        return None

    def steady(self, entry: Entry) -> None:
        """What it says comes and goes did fail every time."""
        self._held.steady.add(entry)

    # ---- entries

    def strangers(self) -> Iterator[Line]:
        """Entries that name what there is not, whatever is run."""
        for entry in self.entries:
            for why in stranger(entry, self._draws[entry].edition, self._targets):
                self._strange.add(entry)
                yield self._stale(entry, "nothing", why)

    def settle(self) -> Iterator[Line]:
        """The entries about this target that are stale."""
        for entry in self._listed("deviation"):
            yield from self._settled(entry)
        for entry in (*self._listed("deviation"), *self._listed("flaky")):
            if entry.expired(self._today):
                yield self._stale(entry, "expired", f"it was to be looked at again by {entry.expires}")
            yield from self._wide(entry)
        for entry in self._held.steady:
            why = f"it is listed as one that comes and goes, and failed {ALONE} times out of {ALONE}, run alone"
            yield self._stale(entry, "steady", f"{why}: make it a [[deviation]]")

    def _settled(self, entry: Entry) -> Iterator[Line]:
        shown = self._held.shown.get(entry, set())
        self.counts["shown"] += bool(shown)
        states: dict[str, set[Place]] = {}
        for place in entry.exact:
            states.setdefault("shown" if place in shown else self._state(entry, place), set()).add(place)
        for pattern in entry.open:
            if any(entry.under(pattern, place) for place in shown):
                continue
            held = [place for check in entry.checks for place in self._places(check)]
            under = {place for place in held if entry.under(pattern, place)}
            if not under:
                states.setdefault("nothing", set()).add((pattern, None))
            whole = {self._state(entry, place) for place in under}
            if whole and whole.isdisjoint({"unlooked"}):
                states.setdefault("changed" if "changed" in whole else min(whole), set()).update(under)
            else:
                states.setdefault("unlooked", set()).update(under)
        if not shown and states.keys() <= {"unlooked"}:
            self.counts["not_looked_at"] += 1
            return
        told = ("passes", "changed") if self._to_the_letter(entry, shown, states) else ()
        for state in (*told, *(("nothing",) if entry not in self._strange else ())):
            if places := states.get(state):
                yield self._stale(entry, state, self._why(entry, state, places), places)

    def _to_the_letter(self, entry: Entry, shown: set[Place], states: Mapping[str, set[Place]]) -> bool:
        """Does it say something that a place does not show?

        With other cases than those of the file only where nothing of the entry shows, and all of it was looked at.
        """
        draw, asked = self._draws[entry], self._draw.cases
        if draw == self._draw:
            return True
        values = [check.values for each in entry.checks if (check := CHECKS.get(each)) is not None]
        enough = asked is None or asked >= (draw.cases or max(values, default=0))
        return enough and not shown and not entry.seldom and "unlooked" not in states

    def _state(self, entry: Entry, place: Place) -> str:
        """passes, changed, nothing or unlooked, of a place where the entry's failure did not show."""
        held = self._held
        if place in held.otherwise.get(entry, {}):
            return "changed"
        about = [check for check in entry.checks if place in self._places(check)]
        if not about:
            return "nothing" if self._draws[entry].edition == self._draw.edition else "unlooked"
        if any((check, None, place) not in held.looked for check in about):
            return "unlooked"
        results = {each for check in about for each in held.looked.get((check, entry.invariant, place), ())}
        if "FAIL" in results:
            return "unlooked"  # it failed, but not again when it was run alone: the run tells of that by itself
        return "passes" if "PASS" in results else "unlooked" if "UNKNOWN" in results else "nothing"

    def _places(self, id: str) -> set[Place]:
        """All that a whole run of a check would look at."""
        check = CHECKS.get(id)
        if check is None or self._held.claims is None:
            return {place for other, invariant, place in self._held.looked if other == id and invariant is None}
        if id not in self._held.places:
            self._held.places[id] = {
                (subject.name, subject.version)
                for subject in check.family.subjects(self._draw.edition)
                if check.family.claimed(subject, self._held.claims) and check.about(subject)
            }
        return self._held.places[id]

    def _why(self, entry: Entry, state: str, places: set[Place]) -> str:
        where = in_words(where_of(places))
        if state == "passes":
            return f"{where}: it no longer fails: strike it off"
        if state == "changed":
            ids = sorted({id for place, id in self._held.otherwise[entry].items() if place in places})
            return f"{where}: it fails otherwise than the entry says: see {', '.join(ids)}"
        return f"{where}: nothing of {entry.invariant} is judged there with {self._held.name} {self._held.version}"

    def _wide(self, entry: Entry) -> Iterator[Line]:
        failures = self._held.failures.get(entry, set())
        if len(failures) > MOST_FAILURES:
            why = f"it stands for {len(failures)} distinct failures, and {MOST_FAILURES} is the most"
            yield self._stale(entry, "wide", f"{why}: {', '.join(sorted(failures))}")
        for pattern in entry.where:
            under = {subject for subject, _ in self._held.shown.get(entry, ()) if fits(pattern, subject)}
            if len(under) > MOST_SUBJECTS:
                why = f"{pattern!r} stands for {len(under)} subjects, and {MOST_SUBJECTS} is the most: name them"
                yield self._stale(entry, "wide", why)

    def _stale(self, entry: Entry, kind: str, why: str, places: set[Place] | None = None) -> Line:
        self.counts["stale"] += 1
        told = told_of(entry)
        return {
            "kind": kind, "entry": entry.at, "why": why, "target": entry.target, "checks": list(entry.checks),
            "invariant": entry.invariant, "where": where_of(places) if places else None, **told,
        }  # fmt: skip


def told_of(entry: Entry) -> Line:
    """What a report shows of an entry."""
    return {
        "file": entry.file, "line": entry.line, "reason": entry.reason, "link": entry.link,
        "expires": str(entry.expires) if entry.expires else None,
    }  # fmt: skip


def where_of(places: Iterable[Place]) -> dict[str, str]:
    """Subject -> versions as spans, as in the ledger."""
    found: dict[str, set[int]] = {}
    for subject, version in places:
        found.setdefault(subject, set()).update(() if version is None else (version,))
    return {subject: spans(versions) for subject, versions in sorted(found.items())}


def in_words(where: Mapping[str, str]) -> str:
    return "; ".join(f"{subject} v{versions}" if versions else subject for subject, versions in where.items())


def stranger(entry: Entry, edition: str, running: Iterable[str] = ()) -> Iterator[str]:
    """What the entry names and there is not, neither on the roll nor among the targets that are run."""
    names = {*roll(), *running}
    if not (entry.target in names or entry.target.startswith((MINIATURE, *(f"{each}:" for each in PREFIXES)))):
        yield f"there is no target {entry.target!r}"
    if entry.checks == (PROFILE,):
        return
    places: set[Place] = set()
    for id in entry.checks:
        if (check := CHECKS.get(id)) is None:
            yield f"there is no check {id!r}"
        elif entry.invariant not in {each.id for each in invariants_of(check)}:
            yield f"{id} holds no case to an invariant {entry.invariant!r}"
        else:
            places |= {(each.name, each.version) for each in check.family.subjects(edition)}
    for pattern in entry.where if places else ():
        if not any(entry.under(pattern, place) for place in places):
            of = " of these versions" if any(fits(pattern, name) for name, _ in places) else ""
            yield f"{' and '.join(entry.checks)}: about no subject {pattern!r}{of}"


def _failure(line: Line) -> Failure:
    failure = Failure.of(line)
    return replace(failure, whole=any(id not in CHECKS or CHECKS[id].shrinks for id in failure.checks))


def fails_alone(worker: Worker, finding: Finding) -> bool:
    """Does the case fail every time that it is run alone, with a fresh session each?"""
    check = CHECKS[finding.unit.check]
    invariant = next(each for each in invariants_of(check) if each.id == finding.invariant)
    for _ in range(ALONE):
        worker.close()
        if worker.violation(finding.case, invariant) is None:
            return False
    return True
