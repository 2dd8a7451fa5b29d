"""Updates a file of known deviations from runs and campaigns, and keeps the text of everything that does not change.

A run with the list's own draw decides what the list expects exactly: it adds, narrows and removes entries, and counts
their cases. Other runs, and campaigns, add what they find as ``seldom``, and remove nothing: a failure that they do not
find may still occur.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any

import tomlkit

from kipcheck.conformance.core.ledger import FAILURE_FORMAT, Failure, Ledger, Target, places_of, where_of
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.engine.execution import profile
from kipcheck.conformance.engine.known import rules, text as texts
from kipcheck.conformance.engine.known.files import InvalidKnownFile, parse
from kipcheck.conformance.engine.known.match import Knowledge, KnownDeviations
from kipcheck.conformance.engine.known.moved_entries import NO_EXPLANATION, Explanation, same_failure, same_place
from kipcheck.conformance.targets.protocol import TargetInfo

TODO = "TODO"
"""The placeholder for a reason and a link that a person has to write: no run accepts a file with it."""
STALE = ("passes", "changed", "nothing")
"""Kinds of stale entries that one run is enough to remove; for the others a person decides."""


@dataclass(slots=True)
class Update:
    text: str
    """The new text of the file."""
    added: list[str] = field(default_factory=list)
    """Entries whose reason and link are TODO."""
    explained: list[str] = field(default_factory=list)
    """Entries that were added with the reason and link of another one."""
    widened: list[str] = field(default_factory=list)
    """Entries with further places."""
    removed: list[str] = field(default_factory=list)
    narrowed: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    """Entries with another number of cases than before."""
    left: list[str] = field(default_factory=list)
    """Stale entries that a person has to edit."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A ledger, and what it says about the target."""

    ledger: Ledger
    target: Target
    draw: rules.Draw

    @classmethod
    def of(cls, ledger: Ledger, target: str | None) -> "_Source":
        """Errors: ``InvalidKnownFile``."""
        at, names = ledger.path, [each.target for each in ledger.targets]
        found = [each for each in ledger.targets if target in _names(each)]
        if len(found) != 1:
            raise InvalidKnownFile([f"{at}:1: use --target with one of its targets: {', '.join(names) or 'none'}"])
        if ledger.footer is None or ledger.footer.stopped_by is not None or ledger.undecided > ledger.held_back_cases:
            why = "the run was cut short, so missing failures prove nothing: complete it first"
            raise InvalidKnownFile([f"{at}:1: {why}"])
        if ledger.failure_format != FAILURE_FORMAT:
            why = f"its failures are of format {ledger.failure_format}, in which they have other shapes: run it again"
            raise InvalidKnownFile([f"{at}:1: {why}"])
        return cls(ledger, found[0], _draw(ledger))

    @property
    def made_by(self) -> str:
        return rules.maker(self.ledger.header.kipcheck)

    @property
    def is_run(self) -> bool:
        return not self.ledger.campaigns

    @property
    def has_all_checks(self) -> bool:
        """Whether no check was left out: only then it counts all cases of a failure."""
        return self.ledger.header.options.checks == ("*",)

    def account(self, known: rules.KnownFile, today: date) -> tuple[KnownDeviations, list[Failure]]:
        """The list as this ledger shows it, and the failures with the entries that match them."""
        account = KnownDeviations((known,), self.draw, today, [self.target.target], version=self.ledger.header.kipcheck)
        recorded = _recorded_target(account, self.ledger, self.target)
        return account, account.match_failures(
            [_without_known(each) for each in self.ledger.failures if _of(each, recorded)]
        )


def _names(each: Target) -> tuple[str | None, ...]:
    """How --target may name it; None: not at all."""
    return None, each.target, rules.base(each.target, each.version), each.command or each.target


def updated(text: str, path: str, ledgers: Sequence[Ledger], target: str | None, today: date) -> Update:
    """``text``: empty for a new file, which gets the draw of the first ledger. Errors: ``InvalidKnownFile``."""
    before = parse(text, path, draft=True)
    sources = [_Source.of(each, target) for each in ledgers]
    first = sources[0]
    own = before.draw if text.strip() else replace(first.draw, scripts=())
    for each in sources:
        if (each.target.target, each.target.version) != (first.target.target, first.target.version):
            what = f"{each.target.target} {each.target.version} in {each.ledger.path}"
            raise InvalidKnownFile([f"{path}:1: {first.target.target} {first.target.version}, but {what}"])
        if each.draw.edition != own.edition:
            why = f"it is about edition {own.edition}, but {each.ledger.path} about edition {each.draw.edition}"
            raise InvalidKnownFile([f"{path}:1: {why}"])
    made = Update(text or _header(first.target, own))
    rewriting = _Rewriting(made, path, before, today)
    for each in sorted(sources, key=lambda each: not (each.is_run and each.draw == own)):  # stable
        rewriting.take(each, exact=each.is_run and each.draw == own)
    return made


@dataclass(slots=True)
class _Rewriting:
    """Takes one ledger after the other into the text of a list."""

    made: Update
    path: str
    before: rules.KnownFile
    today: date
    left: dict[tuple[Any, ...], str] = field(default_factory=dict)
    """What a person has to decide, once for each entry."""

    def take(self, source: _Source, exact: bool) -> None:
        """``exact``: it is a run with the list's own draw."""
        self._strike(source, exact)
        self._add(source, exact)
        if exact and source.has_all_checks:
            self._count(source)

    def _known(self) -> rules.KnownFile:
        return parse(self.made.text, self.path, draft=True)

    # ---- what is gone

    def _strike(self, source: _Source, exact: bool) -> None:
        """Removes what does not show, and makes a seldom entry an exact one where it shows."""
        made, known = self.made, self._known()
        account, _ = source.account(known, self.today)
        drop: dict[rules.Entry, tuple[set[rules.SubjectVersion], set[str]]] = {}
        for stale in account.stale():
            if stale.kind not in STALE:
                about = stale.kind, stale.entry.invariant, stale.entry.shape
                self.left.setdefault(about, f"{stale.entry.at}: {stale.kind}: {stale.why}")
            elif exact and (stale.places or stale.patterns):
                places, patterns = drop.setdefault(stale.entry, (set(), set()))
                places |= stale.places
                patterns |= stale.patterns
        made.left = [*self.left.values()]
        promoted: set[rules.Entry] = set()
        for entry in known.entries if exact else ():
            shown = account.shown(entry)
            if entry.seldom and shown:
                places, _ = drop.setdefault(entry, (set(), set()))
                if entry.open_keys or entry.exact_places - places <= shown:
                    promoted.add(entry)
                else:
                    places |= shown  # they are added again, as exact ones
        for entry in sorted(drop, key=lambda each: -each.line):
            if entry in promoted:
                made.text = texts.with_value(made.text, entry, "seldom", None)
            if any(drop[entry]):
                without(made, entry, *drop[entry])

    # ---- what is new

    def _add(self, source: _Source, exact: bool) -> None:
        _, lines = source.account(self._known(), self.today)
        failures = [each for each in lines if each.grade != Grade.INFO.value]  # INFO needs no entry
        for line in sorted(failures, key=lambda each: (each.invariant, each.shape)):
            where = {} if line.known else line.where if line.beyond is None else line.beyond.where
            if where:
                self._add_failure(source, line, where, exact)

    def _add_failure(self, source: _Source, line: Failure, where: Mapping[str, str], exact: bool) -> None:
        known = self._known()
        places = frozenset(places_of(where))
        found = self._explanation(source, known, line, places, exact)
        like = found.entry
        sibling = next((each for each in known.entries if _takes(each, line, seldom=not exact)), None)
        if sibling is not None and (not exact or like is not None):
            self._widen(sibling, line, where)
            return
        self.made.text = _with(self.made.text, line, where, found, source.target, seldom=not exact)
        about = f"{line.invariant}: {', '.join(where)}"
        if like is None:
            self.made.added.append(about)
        else:
            self.made.explained.append(f"{about}: with reason and link of {like.at} ({', '.join(like.shape or ())})")
        self._require(len(self._known().entries) == len(known.entries) + 1)

    def _explanation(
        self,
        source: _Source,
        known: rules.KnownFile,
        line: Failure,
        places: frozenset[rules.SubjectVersion],
        exact: bool,
    ) -> Explanation:
        """With its own draw and kipcheck, a failure in a new place or shape is news, which a person has to explain."""
        other_kipcheck = bool(self.before.entries) and self.before.made_by != source.made_by
        listed = (*self.before.entries, *known.entries)
        news = exact and not other_kipcheck
        seldom = [each for each in listed if each.seldom and any(map(each.covers, places))]
        found = same_failure(seldom if news else listed, line)
        if found != NO_EXPLANATION or news:
            return found
        found = same_place(self.before, known.entries, line, places)
        if found.entry is not None and not other_kipcheck:
            return Explanation(candidates=(found.entry,))
        return found

    def _widen(self, entry: rules.Entry, line: Failure, where: Mapping[str, str]) -> None:
        """With further places, and with the checks that show the failure there."""
        made = self.made
        changed: dict[str, str | None] = {}
        for subject, versions in where.items():
            spans = entry.where.get(subject)
            changed[subject] = versions if spans is None else _united(rules.versions_in(spans), versions, subject)
        made.text = texts.with_places(made.text, entry, changed)
        checks = _with_checks(entry, line.checks)
        if checks is not None:
            made.text = texts.with_value(made.text, self._same(entry), "checks", checks)
        made.widened.append(f"{entry.at}: {entry.invariant}: {', '.join(where)}")
        after = self._same(entry)
        self._require(all(after.covers(place) for place in places_of(where)))

    # ---- cases

    def _count(self, source: _Source) -> None:
        """Writes the number of cases of all entries that can be counted; of the others only an old one remains."""
        made, known = self.made, self._known()
        account, lines = source.account(known, self.today)
        counted = False
        for entry in sorted(known.entries, key=lambda each: -each.line):
            number = account.count(entry) or None
            if number is None and (entry.cases is None or known.made_by == source.made_by):
                continue  # the run did not reach all of it
            if number is not None:
                counted = True
                shown_by = (each.checks for each in lines if entry.matches(rules.ObservedFailure.of(each)))
                checks = _with_checks(entry, [check for checks in shown_by for check in checks])
                if checks is not None:
                    made.text = texts.with_value(made.text, entry, "checks", checks)
            if number != entry.cases:
                made.text = texts.with_value(made.text, self._same(entry), "cases", number)
                if entry.cases is not None:
                    made.counted.append(f"{entry.at}: {entry.invariant}: {number or 'no'} cases, before {entry.cases}")
        if counted and known.made_by != source.made_by:
            made.text = texts.with_top(made.text, "made_by", source.made_by)
        self._require(len(self._known().entries) == len(known.entries))

    # ----

    def _same(self, entry: rules.Entry) -> rules.Entry:
        """The entry in the text as it is now, if only lines below its heading have changed."""
        return next(each for each in self._known().entries if each.line == entry.line)

    def _require(self, whole: bool) -> None:
        if not whole:
            why = "its layout cannot be rewritten: write each entry as a [[deviation]] table"
            raise InvalidKnownFile([f"{self.path}:1: {why}"])


def _takes(entry: rules.Entry, line: Failure, seldom: bool) -> bool:
    """Whether further places of the failure belong to the entry."""
    exactly = entry.shape == tuple(map(str, line.shape)) and not entry.why
    alike = entry.invariant == line.invariant and entry.applies_to(line.target, line.version, line.command)
    return entry.kind == "deviation" and exactly and alike and entry.seldom == seldom and not entry.open_keys


def _united(one: str, other: str, subject: str) -> str:
    return where_of([*places_of({subject: one}), *places_of({subject: other})])[subject]


def _with_checks(entry: rules.Entry, checks: Sequence[str]) -> list[str] | None:
    """The checks of the entry and these; None if it has them all."""
    return None if set(checks) <= set(entry.checks) else sorted({*entry.checks, *checks})


def without(made: Update, entry: rules.Entry, places: set[rules.SubjectVersion], dropped_patterns: set[str]) -> None:
    """Removes places, and keys with a wildcard; with the last of them the entry."""
    remaining, before = where_of(entry.exact_places - places), where_of(entry.exact_places)
    if not remaining and not set(entry.open_keys) - dropped_patterns:
        made.text = texts.without_entry(made.text, entry)
        made.removed.append(f"{entry.at}: {entry.invariant}")
        return
    changed = {
        each: remaining.get(each)
        for each in entry.where
        if each in dropped_patterns or remaining.get(each) != before.get(each)
    }
    made.text = texts.with_places(made.text, entry, changed)
    made.narrowed.append(f"{entry.at}: {entry.invariant}")


# ---- ledgers


def _draw(ledger: Ledger) -> rules.Draw:
    options, recorded = ledger.header.options, sum(each.held for each in ledger.campaigns)
    return rules.Draw(options.edition, options.seed, options.cases or recorded or None, options.scripts)


def _recorded_target(account: KnownDeviations, ledger: Ledger, line: Target) -> TargetInfo:
    """Passes the places that the run checked to the account."""
    options = ledger.header.options
    everything = options.checks == options.messages == ("*",) and not options.part
    there: Knowledge = "looked at" if everything else "unknown"
    about = line.target, line.version, line.language, line.issues
    info = TargetInfo(*about, frozenset(), command=line.command or "")
    account.begin(info, there)
    for place, results in ledger.cases.items():
        if place.target == info.name and results.keys() != {"UNKNOWN"}:
            account.add_verdicts(place.check, (place.subject, place.version), ())
    for each in ledger.held_back:
        if each.target == info.name:
            account.add_held_back(each.check, (each.subject, each.version))
    for (place, invariant), results in ledger.held.items():
        if place.target == info.name:
            account.add_verdicts(place.check, (place.subject, place.version), [{invariant: each} for each in results])
    return info


def _without_known(failure: Failure) -> Failure:
    """The line without the matches of the run's own lists."""
    return failure.without("known", "beyond", "changed")


def _of(failure: Failure, recorded: TargetInfo) -> bool:
    return failure.target == recorded.name and failure.check != profile.CHECK


# ---- new text


def _header(target: Target, draw: rules.Draw) -> str:
    top = {"target": rules.base(target.target, target.version)}
    return tomlkit.dumps(top | {key: each for key, each in asdict(draw).items() if each != getattr(rules.Draw(), key)})


def _top_target(text: str) -> str:
    found: str = tomlkit.parse(text).get("target", "")
    return found


def _with(text: str, line: Failure, where: Mapping[str, str], found: Explanation, target: Target, seldom: bool) -> str:
    """Appends an entry, whose reason and link are TODO if no other entry explains it."""
    mine = rules.base(target.target, target.version)
    like = found.entry
    entry: dict[str, Any] = {
        **({"target": mine} if _top_target(text) not in (mine, target.target) else {}),
        "checks": [*line.checks],
        "invariant": line.invariant,
        "versions": target.version,
        "shape": [_encodable(each) for each in line.shape],
        "reason": _encodable(f"{TODO}: {line.why}"[:300]) if like is None else like.reason,
        "link": TODO if like is None else like.link,
        **({"seldom": True} if seldom else {}),
    }
    return texts.appended(text, entry, where, tuple(_candidates(found.candidates)))


def _candidates(entries: Sequence[rules.Entry]) -> Iterator[str]:
    for each in entries:
        yield f"Perhaps as {', '.join(each.shape or ())}: {each.reason} {each.link}"


def _encodable(text: str) -> str:
    """With ``?`` for lone surrogates, which a file cannot contain."""
    return text.encode("utf-8", "replace").decode()
