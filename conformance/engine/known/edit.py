"""Updates a file of known deviations from a run, and keeps the text of everything that does not change.

After a campaign it only adds entries: a failure that a campaign does not find may still occur.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from kipcheck.conformance.core.ledger import Ledger, Line
from kipcheck.conformance.core.verdict import Grade
from kipcheck.conformance.engine import profile
from kipcheck.conformance.engine.known.files import Wrong, headings, parse
from kipcheck.conformance.engine.known.match import Account, There, where_of
from kipcheck.conformance.engine.known.rules import Draw, Entry, Known, Place, base
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
    by_luck = bool(ledger.campaigns)
    if by_luck and known.entries and known.draw == Draw(known.draw.edition):
        why = "runs expect its entries to match exactly, with the same cases: use another list for campaigns"
        raise Wrong([f"{path}:1: {why}"])
    if not by_luck and known.entries and known.draw != draw:
        raise Wrong([f"{path}:1: its entries were found with {_told(known.draw)}, but the run used {_told(draw)}"])
    account = Account((known,), draw, today, [line["target"]])
    held = _held(account, ledger, line)
    lines = account.judged([_untold(each) for each in ledger.failures if _of(each, held)])
    made = Update(text or _top(held, draw))
    drop: dict[Entry, tuple[set[Place], set[str]]] = {}
    for stale in account.stale():
        if stale.kind in STALE:
            if by_luck:
                continue
            places, patterns = drop.setdefault(stale.entry, (set(), set()))
            places |= stale.places
            patterns |= stale.patterns
        else:
            made.left.append(f"{stale.entry.at}: {stale.kind}: {stale.why}")
    for entry in sorted(drop, key=lambda each: -each.line):
        _without(made, entry, *drop[entry])
    target_of_file = re.search(r'^target\s*=\s*["\'](.*?)["\']', made.text, re.MULTILINE)
    failures = [each for each in lines if each["grade"] != Grade.INFO.value]  # INFO needs no entry
    for each in sorted(failures, key=lambda each: (each["invariant"], each["shape"])):
        where = each["beyond"]["where"] if "beyond" in each else {} if "known" in each else each["where"]
        if where:
            _with(made, each, where, held, target_of_file[1] if target_of_file else "", seldom=by_luck)
    _checked(made, path, known)
    return made


def _target(ledger: Ledger, target: str | None) -> Line:
    names = [each["target"] for each in ledger.targets]
    found = [each for each in ledger.targets if target in (None, each["target"], base(each["target"], each["version"]))]
    if len(found) != 1:
        raise Wrong([f"{ledger.path}:1: use --target with one of its targets: {', '.join(names) or 'none'}"])
    if not ledger.complete:
        raise Wrong([f"{ledger.path}:1: the run was cut short, so missing failures prove nothing: complete it first"])
    return found[0]


def _draw(ledger: Ledger) -> Draw:
    options, held = ledger.header["options"], sum(each["held"] for each in ledger.campaigns)
    return Draw(options["edition"], int(options["seed"]), options["cases"] or held or None)


def _told(draw: Draw) -> str:
    cases = "" if draw.cases is None else f" and {draw.cases} cases"
    return f"edition {draw.edition}, seed {draw.seed}{cases}"


def _held(account: Account, ledger: Ledger, line: Line) -> TargetInfo:
    """Passes the places that the run checked to the account."""
    options = ledger.header["options"]
    everything = options["checks"] == options["messages"] == ["*"] and not options.get("part")
    there: There = "looked at" if everything else "unknown"
    info = TargetInfo(line["target"], line["version"], line["language"], line["issues"], frozenset())
    account.begin(info, there)
    for place, results in ledger.cases.items():
        if place.target == info.name and results.keys() != {"UNKNOWN"}:
            account.look(place.check, (place.subject, place.version), ())
    for (place, invariant), results in ledger.held.items():
        if place.target == info.name:
            account.look(place.check, (place.subject, place.version), [{invariant: each} for each in results])
    return info


def _untold(failure: Line) -> Line:
    """The line without the matches of the run's own lists."""
    return {key: each for key, each in failure.items() if key not in ("known", "beyond", "changed")}


def _of(failure: Line, held: TargetInfo) -> bool:
    return bool(failure["target"] == held.name and failure["check"] != profile.CHECK)


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


def _without(made: Update, entry: Entry, places: set[Place], gone: set[str]) -> None:
    """Removes places, and keys with a wildcard; with the last of them the entry."""
    left = where_of(entry.exact - places)
    if not left and not set(entry.open) - gone:
        begin, end = _blocks(made.text)[entry.line]
        lines = made.text.splitlines(keepends=True)
        del lines[begin - 1 : end]
        made.text = "".join(lines)
        made.removed.append(f"{entry.at}: {entry.invariant}")
        return
    first, last = entry.line, _blocks(made.text)[entry.line][1]
    lines = made.text.splitlines(keepends=True)
    block = "".join(lines[first - 1 : last])
    before = where_of(entry.exact)
    for subject in entry.where:
        if subject in gone or left.get(subject) != before.get(subject):
            block = _rewritten(block, subject, left.get(subject))
    made.text = "".join([*lines[: first - 1], block, *lines[last:]])
    made.narrowed.append(f"{entry.at}: {entry.invariant}")


def _rewritten(block: str, subject: str, versions: str | None) -> str:
    """The block with other versions of one subject, or without the subject."""
    key = rf"[\"']?{re.escape(subject)}[\"']?\s*=\s*"
    if versions is not None:
        return re.sub(rf"({key})([\"'])[^\"']*\2", lambda old: f'{old[1]}"{versions}"', block, count=1)
    line = re.compile(rf"^\s*{key}[\"'][^\"']*[\"'][^\n]*\n?", re.MULTILINE)
    if line.search(block):
        return line.sub("", block, count=1)
    return re.sub(rf"{key}[\"'][^\"']*[\"']\s*,?\s*", "", block, count=1)  # in an inline table


def _top(info: TargetInfo, draw: Draw) -> str:
    lines = [f"target = {json.dumps(base(info.name, info.version))}"]
    lines += [f"edition = {json.dumps(draw.edition)}"] if draw.edition != Draw().edition else []
    lines += [f"seed = {draw.seed}"] if draw.seed else []
    lines += [f"cases = {draw.cases}"] if draw.cases is not None else []
    return "\n".join(lines) + "\n"


def _with(made: Update, line: Line, where: Mapping[str, str], info: TargetInfo, target: str, seldom: bool) -> None:
    """Appends an entry whose reason and link are TODO."""
    mine, why = base(info.name, info.version), f"{TODO}: {line['why']}"
    rows = [
        "[[deviation]]",
        *([f"target = {json.dumps(mine)}"] if target not in (mine, info.name) else []),
        f"checks = {_list(line['checks'])}",
        f"invariant = {_text(line['invariant'])}",
        f"versions = {_text(info.version)}",
        f"shape = {_list(line['shape'])}",
        f"reason = {_text(why[:300])}",
        f'link = "{TODO}"',
        *(["seldom = true"] if seldom else []),
        "[deviation.where]",
        *(f"{_key(subject)} = {_text(versions)}" for subject, versions in where.items()),
    ]
    made.text = made.text.rstrip("\n") + "\n\n" * bool(made.text.strip()) + "\n".join(rows) + "\n"
    made.added.append(f"{line['invariant']}: {', '.join(where)}")


def _text(text: str) -> str:
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _text(text)


def _checked(made: Update, path: str, before: Known) -> None:
    """Parses the new text: only the intended entries may have changed."""
    after = parse(made.text, path, draft=True)
    if len(after.entries) != len(before.entries) - len(made.removed) + len(made.added):
        raise Wrong([f"{path}:1: its layout cannot be rewritten: write each entry as a [[deviation]] table"])
