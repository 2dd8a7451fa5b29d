"""Loads files of known deviations, and checks that what they name exists."""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.nearest import nearest
from kipcheck.conformance.engine.execution import profile
from kipcheck.conformance.engine.execution.worker import invariants_of
from kipcheck.conformance.engine.known.files import InvalidKnownFile, UnreadableKnownFile, overlaps, parse
from kipcheck.conformance.engine.known.rules import Entry, KnownFile, SubjectVersion, fits, versions_in
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets.registry import MUTANT_PREFIX, PREFIXES
from kipcheck.conformance.targets.target_entries import target_entries

SIMILARITY = 0.85
"""The similarity from which an unknown name is a misspelling."""
DEFAULT = "default"
"""Stands for the files shipped with kipcheck for each target."""


def load(names: Sequence[str], targets: Sequence[str]) -> tuple[KnownFile, ...]:
    """``default`` stands for the files of these targets. Errors: ``InvalidKnownFile`` with path and line."""
    found = [
        parse(text, shown)
        for name in dict.fromkeys(names)
        for shown, text in (_of_targets(targets) if name == DEFAULT else [(name, _read(Path(name)))])
    ]
    if len(found) > 1 and (troubles := overlaps([entry for each in found for entry in each.entries])):
        raise InvalidKnownFile(troubles)
    troubles = [each for known in found for each in (*_no_edition(known), *_dead_links(known))]
    if troubles:
        raise InvalidKnownFile(troubles)
    return tuple(found)


def everything(names: Sequence[str]) -> tuple[KnownFile, ...]:
    """``default`` stands for all files shipped with kipcheck. Errors: ``InvalidKnownFile``."""
    return load([shown for name in names for shown in (_shipped() if name == DEFAULT else [name])], ())


def _shipped() -> list[str]:
    folder = files("kipcheck.conformance.clients") / "known"
    with as_file(folder) as path:
        return sorted(_brief(each) for each in path.glob("*.toml"))


def row(entry: Entry) -> dict[str, Any]:
    """The entry in ``kipcheck known list --json``."""
    where = {subject: versions_in(spans) for subject, spans in entry.where.items()}
    return {
        "kind": entry.kind, "entry": entry.at, "target": entry.target, "versions": entry.versions,
        "checks": list(entry.checks), "invariant": entry.invariant,
        "shape": list(entry.shape) if entry.shape is not None else None, "why": entry.why, "where": where,
        "reason": entry.reason, "link": entry.link, "expires": str(entry.expires) if entry.expires else None,
        "seldom": entry.seldom, "cases": entry.cases,
    }  # fmt: skip


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UnreadableKnownFile([unreadable(error, path)]) from None
    except UnicodeDecodeError:
        raise InvalidKnownFile([f"{path}:1: is not UTF-8"]) from None


def _of_targets(targets: Sequence[str]) -> Iterator[tuple[str, str]]:
    folder = files("kipcheck.conformance.clients") / "known"
    for name in dict.fromkeys(slug for target in targets for slug in file_names(target)):
        if (file := folder / f"{name}.toml").is_file():
            with as_file(file) as path:
                yield _brief(path), file.read_text("utf-8")


RELEASE: Final = re.compile(r"\d+(\.\d+)+")


def file_names(target: str) -> list[str]:
    """The possible file names for a target: with and without a release at the end of its name."""
    bare = target.partition("@")[0]
    before, _, last = bare.rpartition(":")
    is_release = RELEASE.fullmatch(last.partition("?")[0]) is not None
    named = [before, bare] if before and (":" in before or is_release) else [bare]
    return ["".join(each if each.isalnum() or each in "-_." else "-" for each in name) for name in named]


def _brief(path: Path) -> str:
    """Relative to the working directory, if it is below; in a checkout not through the link in ``src/kipcheck``."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _no_edition(known: KnownFile) -> Iterator[str]:
    try:
        edition(known.draw.edition)
    except LookupError as unknown:
        yield f"{known.path}:1: {unknown}"


def _dead_links(known: KnownFile) -> Iterator[str]:
    """Links to missing pages. A page may be beside the file, below the working directory, or among kipcheck's own."""
    for entry in known.entries:
        if "://" not in entry.link:
            at = [Path(known.path).parent, Path(), Path(str(files("kipcheck.conformance"))).parent]
            if not any((folder / entry.link).is_file() for folder in at):
                yield f"{entry.at}: link: the page {entry.link!r} does not exist"


def _misspelt(target: str) -> str | None:
    """The listed target that it is a misspelling of. Any other name may be that of a testee (``cmd:``)."""
    if target in PREFIXES or target.startswith((MUTANT_PREFIX, *(f"{each}:" for each in PREFIXES))):
        return None
    for like in nearest(target, target_entries(), SIMILARITY, most=1):
        if not (target.startswith(like) or like.startswith(target)):  # a fork may be named kafka-python-ng
            return like
    return None


def unknown_names(entry: Entry, edition: str, running: Iterable[str] = ()) -> Iterator[str]:
    """The names in the entry that do not exist: target (if it is a misspelling), checks, invariant and subjects."""
    names = {*target_entries(), *running}
    if entry.target not in names and (meant := _misspelt(entry.target)):
        yield f"unknown target {entry.target!r}: did you mean {meant!r}?"
    if entry.checks == (profile.CHECK,):
        return
    places: set[SubjectVersion] = set()
    for id in entry.checks:
        if (check := CHECKS.get(id)) is None:
            yield f"unknown check {id!r}"
        elif entry.invariant not in {each.id for each in invariants_of(check)}:
            yield f"{id} does not check an invariant {entry.invariant!r}"
        else:
            places |= {(each.name, each.version) for each in check.family.subjects(edition)}
    for pattern in entry.where if places else ():
        if not any(entry.covers_under(pattern, places_named) for places_named in places):
            of = " of these versions" if any(fits(pattern, name) for name, _ in places) else ""
            yield f"{' and '.join(entry.checks)}: no subject {pattern!r}{of}"
