"""Updates a file of known deviations from a run, and keeps the text of everything that does not change.

After a campaign it only adds entries: a failure that a campaign does not find may still occur.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

import tomlkit

from kipcheck.conformance.core.ledger import Failure, Ledger, Target, where_of
from kipcheck.conformance.core.verdict import Grade
from kipcheck.conformance.engine import profile
from kipcheck.conformance.engine.known.files import InvalidKnownFile, headings, parse
from kipcheck.conformance.engine.known.match import Knowledge, KnownDeviations
from kipcheck.conformance.engine.known.rules import Draw, Entry, Known, SubjectVersion, base
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
    removed: list[str] = field(default_factory=list)
    narrowed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Stale entries that a person has to edit."""


def updated(text: str, path: str, ledger: Ledger, target: str | None, today: date) -> Update:
    """``text``: empty for a new file. Errors: ``Wrong``."""
    known = parse(text, path, draft=True)
    line, draw = _target(ledger, target), _draw(ledger)
    from_campaign = bool(ledger.campaigns)
    if from_campaign and known.entries and known.draw == Draw(known.draw.edition):
        why = "runs expect its entries to match exactly, with the same cases: use another list for campaigns"
        raise InvalidKnownFile([f"{path}:1: {why}"])
    if not from_campaign and known.entries and known.draw != draw:
        raise InvalidKnownFile(
            [f"{path}:1: its entries were found with {_draw_text(known.draw)}, but the run used {_draw_text(draw)}"]
        )
    account = KnownDeviations((known,), draw, today, [line.target])
    recorded = _recorded_target(account, ledger, line)
    lines = account.match_failures([_without_known(each) for each in ledger.failures if _of(each, recorded)])
    made = Update(text or _header(recorded, draw))
    drop: dict[Entry, tuple[set[SubjectVersion], set[str]]] = {}
    for stale in account.stale():
        if stale.kind in STALE:
            if from_campaign:
                continue
            places, patterns = drop.setdefault(stale.entry, (set(), set()))
            places |= stale.places
            patterns |= stale.patterns
        else:
            made.left.append(f"{stale.entry.at}: {stale.kind}: {stale.why}")
    for entry in sorted(drop, key=lambda each: -each.line):
        _without(made, entry, *drop[entry])
    target_of_file = tomllib.loads(made.text).get("target", "")
    failures = [each for each in lines if each.grade != Grade.INFO.value]  # INFO needs no entry
    for each in sorted(failures, key=lambda each: (each.invariant, each.shape)):
        where = {} if each.known else each.where if each.beyond is None else each.beyond.where
        if where:
            _with(made, each, where, recorded, target_of_file, seldom=from_campaign)
    _checked(made, path, known)
    return made


def _target(ledger: Ledger, target: str | None) -> Target:
    names = [each.target for each in ledger.targets]
    found = [each for each in ledger.targets if target in (None, each.target, base(each.target, each.version))]
    if len(found) != 1:
        raise InvalidKnownFile([f"{ledger.path}:1: use --target with one of its targets: {', '.join(names) or 'none'}"])
    if not ledger.complete:
        raise InvalidKnownFile(
            [f"{ledger.path}:1: the run was cut short, so missing failures prove nothing: complete it first"]
        )
    return found[0]


def _draw(ledger: Ledger) -> Draw:
    options, recorded = ledger.header.options, sum(each.held for each in ledger.campaigns)
    return Draw(options.edition, options.seed, options.cases or recorded or None)


def _draw_text(draw: Draw) -> str:
    cases = "" if draw.cases is None else f" and {draw.cases} cases"
    return f"edition {draw.edition}, seed {draw.seed}{cases}"


def _recorded_target(account: KnownDeviations, ledger: Ledger, line: Target) -> TargetInfo:
    """Passes the places that the run checked to the account."""
    options = ledger.header.options
    everything = options.checks == options.messages == ("*",) and not options.part
    there: Knowledge = "looked at" if everything else "unknown"
    info = TargetInfo(line.target, line.version, line.language, line.issues, frozenset())
    account.begin(info, there)
    for place, results in ledger.cases.items():
        if place.target == info.name and results.keys() != {"UNKNOWN"}:
            account.add_verdicts(place.check, (place.subject, place.version), ())
    for (place, invariant), results in ledger.held.items():
        if place.target == info.name:
            account.add_verdicts(place.check, (place.subject, place.version), [{invariant: each} for each in results])
    return info


def _without_known(failure: Failure) -> Failure:
    """The line without the matches of the run's own lists."""
    return failure.without("known", "beyond", "changed")


def _of(failure: Failure, recorded: TargetInfo) -> bool:
    return failure.target == recorded.name and failure.check != profile.CHECK


# ---- text


def _blocks(text: str) -> dict[int, tuple[int, int]]:
    """The line of an entry's heading -> its first and last line, with the comments directly above it."""
    lines = text.splitlines()
    starts = [number for _, number in headings(text)]
    begins = {start: _above(lines, start) for start in starts}
    found = {}
    for start, following in zip(starts, [*starts[1:], 0], strict=True):
        end = begins[following] - 1 if following else len(lines)
        found[start] = (begins[start], end)
    return found


def _above(lines: list[str], start: int) -> int:
    while start > 1 and lines[start - 2].lstrip().startswith("#"):
        start -= 1
    return start


def _without(made: Update, entry: Entry, places: set[SubjectVersion], dropped_patterns: set[str]) -> None:
    """Removes places, and keys with a wildcard; with the last of them the entry."""
    remaining, before = where_of(entry.exact_places - places), where_of(entry.exact_places)
    begin, end = _blocks(made.text)[entry.line]
    lines = made.text.splitlines(keepends=True)
    if not remaining and not set(entry.open_keys) - dropped_patterns:
        del lines[begin - 1 : end]
        made.removed.append(f"{entry.at}: {entry.invariant}")
    else:
        changed = {
            each: remaining.get(each)
            for each in entry.where
            if each in dropped_patterns or remaining.get(each) != before.get(each)
        }
        lines[begin - 1 : end] = [_narrowed("".join(lines[begin - 1 : end]), entry, changed)]
        made.narrowed.append(f"{entry.at}: {entry.invariant}")
    made.text = "".join(lines)


def _narrowed(block: str, entry: Entry, changed: Mapping[str, str | None]) -> str:
    """One entry with other versions of subjects, or without them.

    tomlkit moves entries where those of both kinds alternate, and loses track of dotted keys once one is removed:
    so it gets one entry, and one change, at a time.
    """
    for subject, versions in changed.items():
        document = tomlkit.parse(block)
        where: Any = document[entry.kind][0]["where"]
        if versions is None:
            del where[subject]
        else:
            where[subject] = versions
        block = tomlkit.dumps(document)
    return block


def _header(info: TargetInfo, draw: Draw) -> str:
    top = {"target": base(info.name, info.version)}
    return tomlkit.dumps(top | {key: each for key, each in asdict(draw).items() if each != getattr(Draw(), key)})


def _with(made: Update, line: Failure, where: Mapping[str, str], info: TargetInfo, target: str, seldom: bool) -> None:
    """Appends an entry whose reason and link are TODO."""
    mine, why = base(info.name, info.version), f"{TODO}: {line.why}"
    entry = {
        **({"target": mine} if target not in (mine, info.name) else {}),
        "checks": [*line.checks],
        "invariant": line.invariant,
        "versions": info.version,
        "shape": [_encodable(each) for each in line.shape],
        "reason": _encodable(why[:300]),
        "link": TODO,
        **({"seldom": True} if seldom else {}),
    }
    rows = f"[[deviation]]\n{tomlkit.dumps(entry)}[deviation.where]\n{tomlkit.dumps(where)}"
    made.text = made.text.rstrip("\n") + "\n\n" * bool(made.text.strip()) + rows
    made.added.append(f"{line.invariant}: {', '.join(where)}")


def _encodable(text: str) -> str:
    """With ``?`` for lone surrogates, which a file cannot contain."""
    return text.encode("utf-8", "replace").decode()


def _checked(made: Update, path: str, before: Known) -> None:
    """Parses the new text: only the intended entries may have changed."""
    after = parse(made.text, path, draft=True)
    if len(after.entries) != len(before.entries) - len(made.removed) + len(made.added):
        raise InvalidKnownFile([f"{path}:1: its layout cannot be rewritten: write each entry as a [[deviation]] table"])
