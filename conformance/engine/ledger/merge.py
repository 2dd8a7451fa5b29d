"""Merges ledgers: of the parts of a run, of runs of different targets or checks with equal options, of campaigns.

A campaign draws its own cases: it may have another seed than a run or another campaign, and the same places.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from kipcheck.conformance.core import ledger as records
from kipcheck.conformance.core.files import output_folder
from kipcheck.conformance.core.files.output_folder import FAILURES, OF_A_RUN, REPORTS, OutputFolder
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.part import Part
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.findings.causes import united_causes
from kipcheck.conformance.engine.findings.failures import FLAKY, DistinctFailure, distinct_failures, file, filed, united
from kipcheck.conformance.engine.ledger.conclusion import Conclusion, by_invariant

ALIKE: Mapping[str, str] = {"seed": "--seed", "cases": "--cases"}
"""Options that must be equal in all runs that are merged, by field."""


class Unlike(Exception):
    """The ledgers cannot be merged. The message names the folders, the difference and the remedy."""


@dataclass(frozen=True, slots=True)
class Source:
    folder: Path
    ledger: records.Ledger

    @property
    def options(self) -> records.RunOptions:
        return self.ledger.header.options

    @property
    def part(self) -> Part | None:
        part = self.ledger.header.part
        return Part(*part) if part else None

    @property
    def plan(self) -> tuple[tuple[str, ...], ...]:
        """Equal for the parts of one run: targets, checks, messages."""
        return self.targets, self.options.checks, self.options.messages

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that were given, by the names that they have in the results."""
        names = {each.command: each.target for each in self.ledger.targets if each.command}
        return tuple(names.get(each, each) for each in self.options.targets)

    @property
    def places(self) -> Collection[records.Place]:
        """The places with verdicts of runs."""
        if not self.ledger.campaigns:
            return self.ledger.cases.keys()
        return dict.fromkeys(each.place for each in self.ledger.verdicts())

    @property
    def is_run(self) -> bool:
        """Whether it contains verdicts of runs, and not campaigns alone."""
        return not self.ledger.campaigns or bool(self.places)

    @property
    def codes(self) -> set[int]:
        footer = self.ledger.footer
        return {exits.UNDECIDED} if footer is None else {*footer.exits, footer.exit}


@dataclass(frozen=True, slots=True)
class Merged:
    ledger: Path
    exit_code: int
    missing: tuple[str, ...]
    """Why it is incomplete, a line for each reason; empty if it is complete."""


def merge(folders: Sequence[Path], out: Path) -> Merged:
    """Errors: ``Unlike``, and nothing was changed; OSError and ``Unusable`` if ``out`` cannot be written."""
    sources = [_source(folder) for folder in folders]
    if out.resolve() in {each.folder.resolve() for each in sources}:
        raise Unlike(f"--out {out} is one of the folders to be merged: name another folder")
    _alike(sources)
    missing = tuple(_missing(sources))
    folder = OutputFolder(out)
    folder.check(*OF_A_RUN, output_folder.FLAKY)
    with folder.trial(records.NAME):
        path = folder.claim(records.NAME)
        folder.remove(REPORTS, FAILURES, output_folder.FLAKY)
    with records.Writer(path) as writer:
        code = _write(writer, sources, out, missing)
    return Merged(out / records.NAME, code, missing)


def _source(folder: Path) -> Source:
    path = folder if folder.is_file() else folder / records.NAME
    try:
        return Source(path.parent, records.read(path))
    except FileNotFoundError:
        raise Unlike(records.missing(folder)) from None
    except (OSError, ValueError) as wrong:
        raise Unlike(str(wrong)) from None


# ---- can they be merged?


def _alike(sources: Sequence[Source]) -> None:
    for one, other in pairwise(sources):
        if unlike := records.unlike_formats(one.ledger, other.ledger):
            raise Unlike(f"{unlike}: merge ledgers of one format at a time")
        pairs = [("kipcheck", one.ledger.header.kipcheck, other.ledger.header.kipcheck)]
        pairs.append(("--edition", one.options.edition, other.options.edition))
        _same(one, other, pairs)
    runs = [each for each in sources if each.is_run]
    for one, other in pairwise(runs):
        _same(
            one, other, [(name, getattr(one.options, key), getattr(other.options, key)) for key, name in ALIKE.items()]
        )
    campaigns: dict[str, Path] = {}
    versions: dict[str, tuple[str, Path]] = {}
    places: dict[records.Place, Path] = {}
    parts: dict[tuple[Any, ...], Source] = {}
    for source in sources:
        for line in source.ledger.targets:
            version, where = versions.setdefault(line.target, (line.version, source.folder))
            if version != line.version:
                raise Unlike(
                    f"{line.target} is {version} in {where} and {line.version} in {source.folder}: "
                    "merge ledgers of one version at a time"
                )
        if source.part is not None:
            first = parts.setdefault((source.plan, source.part), source)
            if first is not source:
                raise Unlike(f"part {source.part} is in {first.folder} and in {source.folder}: leave one out")
        for campaign in source.ledger.campaigns:
            where = campaigns.setdefault(campaign.id, source.folder)
            if where != source.folder:
                raise Unlike(f"campaign {campaign.id} is in {where} and in {source.folder}: leave one out")
        for place in source.places:
            if place in places:
                what = f"{place.check} on {place.subject} with {place.target}"
                raise Unlike(f"{what} is in {places[place]} and in {source.folder}: leave one out")
            places[place] = source.folder


def _same(one: Source, other: Source, pairs: Sequence[tuple[str, object, object]]) -> None:
    for name, here, there in pairs:
        if here != there:
            what = f"{name} is {here} in {one.folder} and {there} in {other.folder}"
            raise Unlike(f"{what}: run them with equal options, or do not merge them")


def _missing(sources: Sequence[Source]) -> Iterator[str]:
    by_plan: dict[tuple[Any, ...], list[Part]] = {}
    for source in sources:
        if source.part is not None:
            by_plan.setdefault((source.plan, source.part.of), []).append(source.part)
    for (plan, of), parts in by_plan.items():
        there = {each.number for each in parts}
        for number in range(1, of + 1):
            if number not in there:
                yield f"part {number}/{of} of {', '.join(plan[0])} is missing"
    for source in sources:
        footer = source.ledger.footer
        if footer is None:
            yield f"{source.folder} was cut off"
        elif footer.stopped_by is not None:
            yield f"{source.folder}: {footer.stopped_by}"


# ---- the one ledger


def _write(writer: records.Writer, sources: Sequence[Source], out: Path, missing: Sequence[str]) -> int:
    writer.write(_header(sources, out))
    counts: dict[str, dict[str, Counter[str]]] = {}
    compared = _Compared(_targets(sources), apart=all(len(each.ledger.targets) < 2 for each in sources))
    for line in _verdicts(sources):
        compared.add(line)
        counts.setdefault(line.target, {}).setdefault(line.check, Counter())[line.result] += 1
        writer.write(line)
    for place, (results, by) in _tallies(sources).items():
        counts.setdefault(place.target, {}).setdefault(place.check, Counter()).update(results)
        writer.write(records.Tally(**place._asdict(), results=results, by=by))
    failures = list(_failures(sources, out))
    _file_flaky(sources, out)
    causes = united_causes(each.ledger.causes for each in sources)
    for other in (*_others(sources, counts), *failures, *causes, *compared.rows()):
        writer.write(other)
    for source in sources:
        for held_back in source.ledger.held_back:
            records.count(counts[held_back.target][held_back.check], held_back)
        for expected in source.ledger.expected:
            records.count(counts[expected.target][expected.check], expected)
    codes = {code for each in sources for code in each.codes - {exits.FAILED, exits.INCONCLUSIVE}} | (
        {exits.UNDECIDED} if missing else set()
    )
    if any(map(_decides, failures)) or any(map(_otherwise_failed, sources)):
        codes.add(exits.FAILED)
    is_judged = not missing and bool(counts or not codes - {exits.CONFORMANT})
    for reason in _conclude(writer, sources, counts, is_judged):
        writer.write(reason)
        codes.add(exits.INCONCLUSIVE)
    code = exits.first(codes)
    footers = [each.ledger.footer for each in sources if each.ledger.footer is not None]
    footer = records.Footer(
        complete=not missing and all(each.ledger.complete for each in sources),
        stopped_by="; ".join(missing) or None,
        exit=code,
        exits=tuple(sorted(codes - {exits.CONFORMANT})),
        meaning=exits.meaning(code, sum(bool(each.known) for each in failures)),
        counts={name: {check: dict(c) for check, c in by.items()} for name, by in counts.items()},
        seconds=round(sum(float(each.seconds) for each in footers), 1),
        least=_searches([each.least for each in footers if each.least is not None]),
    )
    writer.write(footer.without("known"))
    return code


def _searches(every: Sequence[records.LeastCases]) -> records.LeastCases | None:
    """All searches for least cases, with the longest limit of time."""
    if not every:
        return None
    limits = [each.limit_s for each in every if each.limit_s is not None]
    return records.LeastCases(
        found=sum(each.found for each in every), cut=sum(each.cut for each in every),
        gone=sum(each.gone for each in every), left_out=sum(each.left_out for each in every),
        limit_s=max(limits, default=None),
    )  # fmt: skip


def _conclude(
    writer: records.Writer, sources: Sequence[Source], counts: records.Counts, is_judged: bool
) -> Iterator[records.Inconclusive]:
    """Why all ledgers together show too little, if that ``is_judged``; writes the checks without a verdict."""
    held_back: Counter[tuple[str, str]] = Counter()
    for source in sources:
        for line in source.ledger.held_back:
            held_back[line.target, line.check] += line.cases if line.result == Result.SKIP.name else 0
        for (target, check, _), number in source.ledger.not_begun.items():
            held_back[target, check] += number
    results = by_invariant((*key, counted) for each in sources for key, counted in each.ledger.held.items())
    conclusion = Conclusion(counts, held_back, results)
    for skip in conclusion.skipped_checks():
        writer.write(skip)
    if is_judged:
        yield from conclusion.reasons([glob for each in sources for glob in each.options.require])


def _decides(failure: records.Failure) -> bool:
    return exits.FAILED in exits.of_failure(failure)


def _otherwise_failed(source: Source) -> bool:
    """Whether it failed for another reason than a failure."""
    return exits.FAILED in source.codes and not any(map(_decides, source.ledger.failures))


def _header(sources: Sequence[Source], out: Path) -> records.Header:
    first = sources[0].ledger.header
    options = sources[0].options
    for key in ("targets", "checks", "messages"):
        every = dict.fromkeys(name for each in sources for name in getattr(each.options, key))
        options = options.update(**{key: tuple(every)})
    invariants: dict[str, records.AboutInvariant] = {}
    requirements: dict[str, records.AboutRequirement] = {}
    editions: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for source in sources:
        for id, about in source.ledger.header.invariants.items():
            kept = invariants.get(id) or about.update(checks=(), besides={})
            checks = tuple(dict.fromkeys([*kept.checks, *about.checks]))
            invariants[id] = kept.update(checks=checks, besides={**kept.besides, **about.besides})
        editions |= source.ledger.header.editions or {}
        for id, requirement in source.ledger.header.requirements.items():
            if id not in requirements or len(requirement.present) > len(requirements[id].present):
                requirements[id] = requirement  # with its text, if a run could reach it
    campaigns = tuple(campaign for each in sources for campaign in each.ledger.campaigns)
    merged = tuple(
        records.MergedFrom(folder=str(each.folder), part=each.part, complete=each.ledger.complete) for each in sources
    )
    return first.update(
        begun=min(each.ledger.header.begun for each in sources),
        options=options.with_place(str(out), _names(sources, options.targets)),
        part=None,
        **({"campaigns": campaigns} if campaigns else {}),
        merged=merged,
        invariants=invariants,
        requirements=requirements,
        **({"editions": editions} if editions else {}),
    )


def _names(sources: Sequence[Source], targets: Sequence[str]) -> tuple[str, ...]:
    """The names of all commands, in their order, if a run had --name."""
    names = {each.command: each.target for source in sources for each in source.ledger.targets if each.command}
    given = any(source.options.names for source in sources)
    return tuple(names[each] for each in targets if each in names) if given else ()


def _verdicts(sources: Sequence[Source]) -> Iterator[records.Verdict]:
    """In the order of a run: by target, check and subject."""
    targets = {name: number for number, name in enumerate(_targets(sources))}
    checks = {id: number for number, id in enumerate(sources[0].ledger.header.checks)}

    def order(line: records.Verdict) -> tuple[int, int, str]:
        return targets[line.target], checks.get(line.check, len(checks)), line.subject

    yield from sorted((line for each in sources for line in each.ledger.verdicts()), key=order)


def _tallies(sources: Sequence[Source]) -> dict[records.Place, tuple[Counter[str], dict[str, Counter[str]]]]:
    """Of all campaigns together."""
    found: dict[records.Place, tuple[Counter[str], dict[str, Counter[str]]]] = {}
    for source in sources:
        for line in source.ledger.tallies:
            results, by = found.setdefault(line.place, (Counter(), {}))
            results.update(line.results)
            for invariant, counted in line.by.items():
                by.setdefault(invariant, Counter()).update(counted)
    return found


JUDGED = frozenset({"PASS", "FAIL", "WARN", "NOTE"})


class _Compared:
    """Compares the results of equal cases of targets that were run apart; each run compared its own targets."""

    def __init__(self, targets: Sequence[str], apart: bool) -> None:
        self._targets = targets if apart else ()
        self._results: dict[tuple[str, str, int | None, str], dict[str, str]] = {}

    def add(self, line: records.Verdict) -> None:
        if len(self._targets) > 1 and line.case is not None:
            place = line.check, line.subject, line.version, line.case
            self._results.setdefault(place, {})[line.target] = line.result

    def rows(self) -> Iterator[records.Difference]:
        """As ``differences`` has them, but without differing answers: a ledger does not contain answers."""
        found: dict[tuple[str, ...], list[tuple[int | None, str]]] = {}
        for (check, subject, version, case), results in self._results.items():
            if len(JUDGED & set(results.values())) > 1:
                row = (results.get(name, "SKIP") for name in self._targets)
                found.setdefault((check, subject, *row), []).append((version, case))
        for place, cases in found.items():
            yield records.Difference.between(self._targets, place, cases)


def _targets(sources: Sequence[Source]) -> list[str]:
    requested = [name for each in sources for name in each.targets]
    run = [place.target for each in sources for place in each.ledger.cases]
    return list(dict.fromkeys([*requested, *run]))


MADE_ANEW = frozenset({"failure", "cause", "footer", "begin", "check", "skip", "inconclusive", "tally"})


def _others(sources: Sequence[Source], counts: Mapping[str, Mapping[str, object]]) -> Iterator[records.LedgerLine]:
    """All other lines, each once; a check that one part skipped and another ran was run."""
    written: set[str] = set()
    checks: dict[tuple[str, str], records.CheckDone] = {}
    for source in sources:
        for kind, lines in source.ledger.lines.items():
            for line in lines:
                run = isinstance(line, records.Skip) and line.check in counts.get(line.target, {})
                text = json.dumps([kind, line.plain], sort_keys=True)
                if run or text in written or (kind in MADE_ANEW and kind != records.Skip.TYPE):
                    continue
                written.add(text)
                yield line
        for done in source.ledger.checks:
            before = checks.get((done.target, done.check)) or done.update(units=0, seconds=0.0, counts={})
            checks[done.target, done.check] = before.update(
                units=before.units + done.units,
                seconds=round(before.seconds + done.seconds, 3),
                counts=dict(Counter(before.counts) + Counter(done.counts)),
            )
            if done.judged:  # a subject is in one part
                both = {**(before.judged or {}), **done.judged}
                checks[done.target, done.check] = checks[done.target, done.check].update(judged=both)
    yield from checks.values()


# ---- failures


def _failures(sources: Sequence[Source], out: Path) -> Iterator[records.Failure]:
    every = [(source.folder, line) for source in sources for line in source.ledger.failures]
    for group in distinct_failures(DistinctFailure(line, filed(folder, line.id)) for folder, line in every):
        yield file(united(group), out).line


def _file_flaky(sources: Sequence[Source], out: Path) -> None:
    """Copies the cases of flaky failures: of each the first."""
    written: set[str] = set()
    for source in sources:
        for line in source.ledger.flaky:
            found = filed(source.folder, line.id, FLAKY) if line.id else None
            if found is not None and line.id is not None and line.id not in written:
                written.add(line.id)
                file(DistinctFailure(found, found), out, FLAKY)
