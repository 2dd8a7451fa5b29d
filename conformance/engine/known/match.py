"""Matches the failures of a run with known deviations, and finds stale entries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import metadata
from typing import Any, Literal

from kipcheck.conformance.core.ledger import Failure as Line, Flaky, KnownEntry, Stale as StaleLine, where_of
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.target_title import titled
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.engine.execution import profile
from kipcheck.conformance.engine.execution.profile import Profile
from kipcheck.conformance.engine.execution.selection import InvalidOptions, Options, subjects
from kipcheck.conformance.engine.execution.worker import Finding, UnitResult, Worker, invariants_of
from kipcheck.conformance.engine.known import rules
from kipcheck.conformance.engine.known.files import InvalidKnownFile
from kipcheck.conformance.engine.known.lists import load, unknown_names
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets.protocol import Broken, TargetInfo, Unavailable, Unstable
from kipcheck.conformance.targets.registry import is_live, is_steady

SURVIVES = "survives"
"""The invariant that a target breaks when it dies or is killed."""
MOST_FAILURES = 4
"""The most distinct failures that one entry may match: its single reason has to explain all of them."""
MOST_SUBJECTS = 12
"""The most subjects that one wildcard may match; more have to be named, so that a reader sees them."""
RERUNS = 5
"""Reruns of a case on its own: a failure in all of them is not flaky."""
DEFAULT_DRAW = rules.Draw()
Knowledge = Literal["claimed", "looked at", "unknown"]
NO_TARGET = TargetInfo("", "", "", "", frozenset())


@dataclass(slots=True)
class _TargetRun:
    """What was run with the current target."""

    info: TargetInfo
    knowledge: Knowledge
    """How the places of a check are known."""
    unmet_claims: list[Line] = field(default_factory=list)
    """Claims that profiles require and the target does not make."""
    looked: dict[tuple[str, str | None, rules.SubjectVersion], set[str]] = field(default_factory=dict)
    """Check, invariant (None: any) and place -> the results there."""
    held_back: set[tuple[str, rules.SubjectVersion]] = field(default_factory=set)
    """Check and place where cases were held back: what did not show there may be in these."""
    shown: dict[rules.Entry, set[rules.SubjectVersion]] = field(default_factory=dict)
    changed: dict[rules.Entry, dict[rules.SubjectVersion, str]] = field(default_factory=dict)
    """Places where an entry's failure did not show, but another one of the same invariant did -> its id."""
    failures: dict[rules.Entry, dict[str, rules.ObservedFailure]] = field(default_factory=dict)
    """The failures that an entry matches, by id."""
    deaths: list[rules.ObservedFailure] = field(default_factory=list)
    """The failures in which the target died or was killed."""
    steady: set[rules.Entry] = field(default_factory=set)
    places: dict[str, set[rules.SubjectVersion]] = field(default_factory=dict)
    """Check -> its places among the target's claims."""


class KnownDeviations:
    """For one run. For each target: ``begin``, ``add_result`` for every result, ``match_failures``, ``stale_lines``."""

    def __init__(
        self,
        known: Sequence[rules.KnownFile] = (),
        draw: rules.Draw = DEFAULT_DRAW,
        today: date = date.min,
        targets: Sequence[str] = (),
        profiles: Sequence[Profile] = (),
        version: str = "",
    ) -> None:
        """``targets``: those of the run, which need not be in the registry. ``version``: of the kipcheck that ran."""
        self.entries = tuple(entry for each in known for entry in each.entries)
        self._has_empty_list = any(not each.entries for each in known)
        self._lists = {entry: each for each in known for entry in each.entries}
        self._made_by = rules.maker(version)
        self._draw = draw
        self._today = today
        self._targets = targets
        self._profiles = profiles
        self._unknown: set[rules.Entry] = set()
        self._run = _TargetRun(NO_TARGET, "unknown")
        self.counts = {"entries": len(self.entries), "shown": 0, "not_looked_at": 0, "other_releases": 0, "stale": 0}

    def begin(self, info: TargetInfo, knowledge: Knowledge = "claimed") -> None:
        """``there``: places are the target's claims (``claimed``), those passed to ``look`` (``looked at``), or
        ``unknown``.
        """
        self._run = _TargetRun(info, knowledge)
        for each in self._profiles:
            claims = list(profile.requirements_of(each, info))
            self._run.unmet_claims += profile.unmet_lines(each, info, claims)
            for claim in claims:
                for place in claim.all_places:
                    self.add_verdicts(
                        profile.CHECK, place, [{each.invariant: "FAIL" if place in claim.places else "PASS"}]
                    )

    def add_result(self, result: UnitResult) -> None:
        if self.entries and not result.unreached:
            unit = result.unit
            self.add_verdicts(unit.check, (unit.subject, unit.version), (by for _, _, by in result.cases))
            if result.held_back:
                self.add_held_back(unit.check, (unit.subject, unit.version))

    def add_held_back(self, check: str, place: rules.SubjectVersion) -> None:
        """Records that cases of a check on a place were held back, so that what did not show there may still fail."""
        self._run.held_back.add((check, place))

    def add_verdicts(self, check: str, place: rules.SubjectVersion, verdicts: Iterable[Mapping[str, str]]) -> None:
        """Records that a check was run on a place, and the results by invariant."""
        self._run.looked.setdefault((check, None, place), set())
        for by in verdicts:
            for invariant, result in by.items():
                self._run.looked.setdefault((check, invariant, place), set()).add(result)

    # ---- failures

    def match_failures(self, lines: Sequence[Line], in_full: bool = True, anywhere: bool = False) -> list[Line]:
        """The lines of distinct failures, those of profiles included, with the entries that match them.

        Not ``in_full``: the run was cut short, and no failure was shrunk. ``anywhere``: a failure that an entry
        matches is known in every place, as in a campaign, which finds ever more places for it.

        ``known``: entries match all places. ``beyond``: entries match some places, and this line has the others.
        ``changed``: an entry expects another failure there. ``unlisted``: a warning that no entry has, of a target
        that has a list.
        """
        lines = [*lines, *self._run.unmet_claims]
        for each in self._profiles:
            lines = [profile.raise_grade(each, line) for line in lines]
        considered = [(line, rules.ObservedFailure.of(line, whole=in_full)) for line in lines]
        self._run.deaths += [failure for _, failure in considered if failure.invariant == SURVIVES]
        matched = {failure.id: self._matched(failure, anywhere) for _, failure in considered}
        judged: list[Line] = []
        for line, failure in considered:
            entries = matched[failure.id]
            remaining = failure.places - {place for places in entries.values() for place in places}
            if entries:
                known = known_entry(next(iter(entries)))
                more = known.update(where=where_of(remaining)) if remaining else known
                line = line.update(beyond=more) if remaining and not anywhere else line.update(known=more)
            instead = {place: others for place in remaining if (others := self._replaced(failure, place))}
            for place, others in instead.items():
                for entry in others:
                    self._run.changed.setdefault(entry, {})[place] = failure.id
            if remaining and instead.keys() == remaining:
                line = line.update(changed=known_entry(next(iter(instead.values()))[0]))
            if self._has_list and line.grade == Grade.SHOULD.value and line.known is None:
                line = line.update(unlisted=True)
            judged.append(line)
        return judged

    @property
    def _has_list(self) -> bool:
        """Whether there is a list for the current target: one with an entry for any release of it, or an empty one."""
        return self._has_empty_list or any(each.target in self._names for each in self.entries)

    @property
    def _names(self) -> tuple[str, ...]:
        """The names by which entries may name the current target."""
        info = self._run.info
        return info.opened, info.name, rules.base(info.name, info.version)

    def _matched(self, failure: rules.ObservedFailure, anywhere: bool) -> dict[rules.Entry, set[rules.SubjectVersion]]:
        """The entries that match the failure, and where; ``anywhere``: also those that name none of its places."""
        found: dict[rules.Entry, set[rules.SubjectVersion]] = {}
        for entry in self._listed("deviation"):
            named = {place for place in failure.places if entry.covers(place)}
            if (named or anywhere) and entry.matches(failure):
                found[entry] = named
                self._run.failures.setdefault(entry, {})[failure.id] = failure
                if named:
                    self._run.shown.setdefault(entry, set()).update(named)
        return dict(sorted(found.items(), key=lambda each: not each[1]))

    def _listed(self, kind: str) -> Iterator[rules.Entry]:
        info = self._run.info
        for entry in self.entries:
            if entry.kind == kind and entry.applies_to(info.name, info.version, info.command):
                yield entry

    def _replaced(self, failure: rules.ObservedFailure, place: rules.SubjectVersion) -> list[rules.Entry]:
        """The entries that expect another failure of the same invariant there, which did not show, or a flaky one that
        failed every time.
        """
        expected = (entry for entry in self._listed("deviation") if self._is_exact(entry))
        return [
            entry
            for entry in (*expected, *self._run.steady)
            if entry.same_invariant(failure)
            and entry.covers(place)
            and (entry in self._run.steady or place not in self._run.shown.get(entry, ()))
        ]

    def lists(self, failure: rules.ObservedFailure) -> bool:
        """Whether an entry matches the failure where it occurs; records nothing."""
        return any(
            entry.matches(failure) and any(map(entry.covers, failure.places)) for entry in self._listed("deviation")
        )

    def flaky(self, finding: Finding) -> rules.Entry | None:
        """The entry that lists this finding as flaky."""
        unit, violation = finding.unit, finding.violation
        place = unit.subject, unit.version
        return self.listed_flaky(unit.check, finding.invariant, place, violation.shape, violation.why)

    def listed_flaky(
        self, check: str, invariant: str, place: rules.SubjectVersion, shape: Sequence[str], why: str
    ) -> rules.Entry | None:
        for entry in self._listed("flaky"):
            about = check in entry.checks and entry.invariant == invariant
            if about and entry.covers(place) and entry.matches_shape(shape, why, whole=False):
                self._run.shown.setdefault(entry, set()).add(place)
                return entry
        return None

    def lists_live(self, finding: Finding) -> bool:
        """Whether an entry lists this finding of a live client.

        Its least case has the same shape, and takes minutes to find; and it need not fail again, since threads meet
        otherwise.
        """
        unit, violation = finding.unit, finding.violation
        return is_live(unit.target) and any(
            unit.check in entry.checks and entry.invariant == finding.invariant
            and entry.covers((unit.subject, unit.version)) and entry.matches_shape(violation.shape, violation.why)
            for entry in self._listed("deviation")
        )  # fmt: skip

    def flaky_line(self, worker: Worker, finding: Finding) -> Flaky | None:
        """The line for a failure that is listed as flaky and does not fail in every rerun; None for others."""
        entry = self.flaky(finding)
        if entry is None:
            return None
        failed = fails_alone(worker, finding)
        if failed == RERUNS:
            self._run.steady.add(entry)
            return None
        unit, violation = finding.unit, finding.violation
        return Flaky(
            target=self._run.info.name, check=unit.check, invariant=finding.invariant, subject=unit.subject,
            version=unit.version, case=finding.case.id, why=violation.why,
            alone=f"failed {failed} of {RERUNS} times", entry=entry.at,
        ).update(**written(entry))  # fmt: skip

    # ---- entries

    def unknown_entries(self, names: Iterable[str] = ()) -> Iterator[StaleLine]:
        """Entries that name unknown targets, checks, invariants or subjects. ``names``: of the targets of the run."""
        running = (*self._targets, *names)
        for entry in self.entries:
            for why in unknown_names(entry, self._lists[entry].draw.edition, running):
                self._unknown.add(entry)
                yield self._line(Stale(entry, "nothing", why))

    def stale_lines(self) -> Iterator[StaleLine]:
        """The lines of stale entries for the current target."""
        return map(self._line, self.stale())

    def stale(self) -> Iterator["Stale"]:
        info = self._run.info
        mine = [each for each in self.entries if each.target in self._names]
        about = info.name, info.version, info.command
        self.counts["other_releases"] += sum(not each.applies_to(*about) for each in mine)
        for entry in self._listed("deviation"):
            yield from self._stale_states(entry)
        for entry in (*self._listed("deviation"), *self._listed("flaky")):
            if entry.expired(self._today):
                yield Stale(entry, "expired", f"it expired on {entry.expires}: review it")
            yield from self._too_wide(entry)
        for entry in self._run.steady:
            why = f"it is listed as flaky, but failed in {RERUNS} of {RERUNS} reruns"
            yield Stale(entry, "steady", f"{why}: make it a [[deviation]]")

    def _stale_states(self, entry: rules.Entry) -> Iterator["Stale"]:
        shown = self._run.shown.get(entry, set())
        self.counts["shown"] += bool(shown)
        states: dict[str, set[rules.SubjectVersion]] = {}
        for place in entry.exact_places:
            states.setdefault("shown" if place in shown else self._state(entry, place), set()).add(place)
        patterns: dict[str, set[str]] = {}
        for pattern in entry.open_keys:
            if not any(entry.covers_under(pattern, place) for place in shown):
                state, places = self._state_of(entry, pattern)
                states.setdefault(state, set()).update(places)
                patterns.setdefault(state, set()).add(pattern)
        if not shown and states.keys() <= {"unlooked"}:
            self.counts["not_looked_at"] += 1
            return
        considered = ("passes", "changed") if self._is_exact(entry) else ()
        found = False
        for state in (*considered, *(("nothing",) if entry not in self._unknown else ())):
            if places := states.get(state, set()):
                named = frozenset(patterns.get(state, ()))
                found = True
                yield Stale(entry, state, self._why(entry, state, places), frozenset(places), named)
        if not found and self._lists[entry].made_by == self._made_by:
            yield from self._miscounted(entry)

    def _miscounted(self, entry: rules.Entry) -> Iterator["Stale"]:
        number = self.count(entry)
        if entry.cases is not None and number is not None and number != entry.cases:
            ids = ", ".join(sorted(self._run.failures[entry]))
            cases = f"{number} case{'s fail' if number > 1 else ' fails'} in this way, and the entry says {entry.cases}"
            yield Stale(entry, "changed", f"{cases}: another defect may be behind it: see {ids}")

    def shown(self, entry: rules.Entry) -> frozenset[rules.SubjectVersion]:
        """The places where the entry's failure showed with the current target."""
        return frozenset(self._run.shown.get(entry, ()))

    def count(self, entry: rules.Entry) -> int | None:
        """The number of cases that show the entry's failures; None if a rerun may give another one.

        So it is for another draw than the list's own, for a target that is not steady, where cases ran into their time
        limit, if one of the failures is in places of other entries too, and if a check or place was left out.
        """
        run = self._run
        failures = run.failures.get(entry, {}).values()
        apart = all(entry.covers(place) for each in failures for place in each.places)
        if not failures or not apart or not self._is_exact(entry) or not is_steady(run.info.name):
            return None
        places = {place for check in entry.checks for place in self._places(check) if entry.covers(place)}
        places |= entry.exact_places
        for place in places:
            about = [check for check in entry.checks if place in self._places(check)]
            if not about or any((check, None, place) not in run.looked for check in about):
                return None
            if any(self._timed_out(check, place) for check in about):
                return None
        if entry.open_keys and run.knowledge == "unknown":
            return None
        return sum(each.cases for each in failures)

    def _timed_out(self, check: str, place: rules.SubjectVersion) -> bool:
        """Whether the target died there because the time of a case was over, or did not die when that was run alone."""
        deaths = [each for each in self._run.deaths if check in each.checks and place in each.places]
        died = "FAIL" in self._run.looked.get((check, SURVIVES, place), ())
        return any(each.timed_out for each in deaths) or (died and not deaths)

    def _state_of(self, entry: rules.Entry, pattern: str) -> tuple[str, set[rules.SubjectVersion]]:
        """The state of the places that a wildcard matches, in none of which the failure showed."""
        under = {place for check in entry.checks for place in self._places(check) if entry.covers_under(pattern, place)}
        states = {self._state(entry, place) for place in under}
        if not under:
            return "unlooked" if self._run.knowledge == "unknown" else "nothing", {(pattern, None)}
        worst = next(each for each in ("unlooked", "changed", "passes", "nothing") if each in states)
        return worst, under

    def _is_exact(self, entry: rules.Entry) -> bool:
        """Whether the entry must show in all its places: the run had the cases with which it was found."""
        return self._lists[entry].draw == self._draw and not entry.seldom

    def _state(self, entry: rules.Entry, place: rules.SubjectVersion) -> str:
        """passes, changed, nothing or unlooked, for a place where the entry's failure did not show."""
        run = self._run
        if place in run.changed.get(entry, {}):
            return "changed"
        about = [check for check in entry.checks if place in self._places(check)]
        if not about:
            here = self._lists[entry].draw.edition == self._draw.edition and run.knowledge != "unknown"
            asked = CHECKS.keys() & entry.checks and not self._is_of_another_role(entry)
            return "nothing" if here and asked else "unlooked"  # or a profile that is not used
        if any((check, None, place) not in run.looked or (check, place) in run.held_back for check in about):
            return "unlooked"
        results = {each for check in about for each in run.looked.get((check, entry.invariant, place), ())}
        if "FAIL" in results:
            return "unlooked"  # it failed, but not when rerun alone: the run reports that itself
        if "PASS" in results:
            return "passes"
        # cases of another draw, and those of a seldom entry, need not have what the invariant is about
        return "unlooked" if "UNKNOWN" in results or not self._is_exact(entry) else "nothing"

    def _is_of_another_role(self, entry: rules.Entry) -> bool:
        """Whether the target plays the role of the entry's checks, and no check of this run was for it: then its claims
        in that role are not known.
        """
        run = self._run
        played = {CHECKS[each].role for each, _, _ in run.looked if each in CHECKS}
        return {CHECKS[each].role for each in entry.checks if each in CHECKS} <= run.info.roles - played

    def _places(self, id: str) -> set[rules.SubjectVersion]:
        """All places that a complete run of a check would cover."""
        check = CHECKS.get(id)
        if check is None or self._run.knowledge != "claimed":
            return {place for other, invariant, place in self._run.looked if other == id and invariant is None}
        if id not in self._run.places:
            self._run.places[id] = {
                (subject.name, subject.version) for subject in subjects(check, self._draw.edition, self._run.info)
            }
        return self._run.places[id]

    def _why(self, entry: rules.Entry, state: str, places: set[rules.SubjectVersion]) -> str:
        where = describe_places(where_of(places))
        if state == "passes":
            return f"{where}: this known deviation no longer occurs: remove it"
        if state == "changed":
            ids = sorted({id for place, id in self._run.changed[entry].items() if place in places})
            return f"{where}: it fails in another way than the entry says: see {', '.join(ids)}"
        target = titled(self._run.info.name, self._run.info.version)
        return f"{where}: {entry.invariant} is not checked there with {target}"

    def _too_wide(self, entry: rules.Entry) -> Iterator["Stale"]:
        failures = self._run.failures.get(entry, {})
        if len(failures) > MOST_FAILURES:
            why = f"it matches {len(failures)} distinct failures, at most {MOST_FAILURES} are allowed"
            yield Stale(entry, "wide", f"{why}: {', '.join(sorted(failures))}")
        for pattern in entry.where:
            under = {subject for subject, _ in self._run.shown.get(entry, ()) if rules.fits(pattern, subject)}
            if len(under) > MOST_SUBJECTS:
                why = f"{pattern!r} matches {len(under)} subjects, at most {MOST_SUBJECTS} are allowed: name them"
                yield Stale(entry, "wide", why)

    def _line(self, stale: "Stale") -> StaleLine:
        self.counts["stale"] += 1
        entry = stale.entry
        return StaleLine(
            kind=stale.kind, entry=entry.at, why=stale.why, target=entry.target, checks=tuple(entry.checks),
            invariant=entry.invariant, where=where_of(stale.places) if stale.places else None,
        ).update(**written(entry))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stale:
    """An entry that does not match the run any more."""

    entry: rules.Entry
    kind: str
    """``passes``, ``changed``, ``nothing``, ``expired``, ``wide`` or ``steady``."""
    why: str
    places: frozenset[rules.SubjectVersion] = frozenset()
    patterns: frozenset[str] = frozenset()
    """The keys of ``where`` with a wildcard that match nothing."""


def known_entry(entry: rules.Entry) -> KnownEntry:
    """The part of an entry that a report shows."""
    return KnownEntry(**written(entry))


def written(entry: rules.Entry) -> dict[str, Any]:
    """The fields of ``KnownEntry``."""
    return {
        "file": entry.file, "line": entry.line, "reason": entry.reason, "link": entry.link,
        "expires": str(entry.expires) if entry.expires else None,
    }  # fmt: skip


def describe_places(where: Mapping[str, str]) -> str:
    return "; ".join(f"{subject} v{versions}" if versions else subject for subject, versions in where.items())


def fails_alone(worker: Worker, finding: Finding) -> int:
    """In how many of ``ALONE`` reruns the case fails, each alone and with a fresh session."""
    check = CHECKS[finding.unit.check]
    invariant = next(each for each in invariants_of(check) if each.id == finding.invariant)
    failed = 0
    for _ in range(RERUNS):
        worker.renew()
        try:
            failed += worker.violation(finding.case, invariant) is not None
        except (Unstable, Broken, Unavailable):
            failed += 1
    return failed


def known_deviations(options: Options) -> KnownDeviations:
    """For a run with these options, as of today. Errors: ``InvalidOptions``."""
    try:
        known = load(options.known, (*options.targets, *options.names))
        profiles = [profile.load(each) for each in dict.fromkeys(options.profiles)]
    except (InvalidKnownFile, profile.InvalidProfile) as wrong:
        raise InvalidOptions(str(wrong)) from None
    draw = rules.Draw(str(edition(options.edition)), options.seed, options.cases, options.scripts)
    version = metadata.version("kipcheck")
    return KnownDeviations(known, draw, date.today(), options.targets, profiles, version)
