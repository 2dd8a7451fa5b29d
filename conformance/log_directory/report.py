"""Describes the contents of a log directory, as text and as JSON."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.core.values.untrusted_text import one_line
from kipcheck.conformance.log_directory.contents import Contents, Count, Level
from kipcheck.conformance.log_directory.groups_report import groups_as_json, groups_text
from kipcheck.conformance.log_directory.verdicts import Unread, Verdict, verdicts
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA


def text(found: Contents, wanted: tuple[Release, ...], groups: bool = False) -> Iterator[str]:
    """Lines. Names of files, topics, groups and members in them are from outside."""
    return map(one_line, _lines(found, wanted, groups))


def _lines(found: Contents, wanted: tuple[Release, ...], groups: bool) -> Iterator[str]:
    yield f"{found.folder}: {len(found.formats)} formats"
    width = max((len(each.name) for each in found.formats), default=0)
    for format, count in sorted(found.formats.items()):
        yield f"  {format.name:<{width}}  version {format.version}  {count.number:>6} times  first: {count.first}"
    yield from _node(found)
    yield from (f"level: {_named(each)} in {each.source}: {each.place}" for each in found.levels)
    yield from (f"incomplete, recovery cuts it off: {each}" for each in found.tails)
    yield from (f"epochs: {each}" for each in found.epochs)
    yield from (f"not read, and decides nothing: {what}, {number}" for what, number in sorted(found.skipped.items()))
    yield from _counts("unknown", found.unknown)
    yield from _counts("not read", found.unread)
    yield from (f"damaged: {each}" for each in found.damage)
    if groups:
        yield from groups_text(found.groups)
    yield from _verdicts(found, wanted)


def _counts(head: str, counts: Mapping[str, Count]) -> Iterator[str]:
    for what, count in sorted(counts.items()):
        yield f"{head}: {what}, {count.number}, first: {count.first}"


def _named(level: Level) -> str:
    """``metadata.version 21 (3.9-IV0)``."""
    names = table()["feature-levels"]["metadata-names"]
    known = level.feature == METADATA and 0 < level.level <= len(names)
    return f"{level.feature} {level.level}" + (f" ({names[level.level - 1]})" if known else "")


def _node(found: Contents) -> Iterator[str]:
    stopped = "cleanly" if found.clean else "not cleanly, or the node is a controller only (no .kafka_cleanshutdown)"
    yield f"stopped: {stopped}"
    if found.properties is not None:
        known = {key: value for key, value in found.properties.items() if key != "version"}
        mode = "KRaft" if found.kraft else "ZooKeeper"
        yield f"node: {mode}, " + ", ".join(f"{key} {value}" for key, value in known.items())
    if log := found.metadata:
        start = f"checkpoint {log.checkpoint.name}" if log.checkpoint else "no checkpoint"
        before = f"; {log.older} records before that count no more" if log.older else ""
        yield f"metadata log: {start}, and the log from offset {log.end} on{before}"


def _verdicts(found: Contents, wanted: tuple[Release, ...]) -> Iterator[str]:
    judged = verdicts(found, wanted)
    if not wanted:
        if found.damage:
            return
        for head, reads in (("read by", True), ("not read (--release prints why) by", False), ("no verdict on", None)):
            names = [release for release, each in judged.items() if each.reads is reads]
            if names or reads:
                yield f"{head} {', '.join(names) or 'no release'}"
        yield from (f"no verdict: {why}" for why in _doubts(judged.values()))
        return
    for release, each in judged.items():
        if each.reads and not found.damage:
            yield f"{release} reads all of it"
        yield from (f"{release} cannot read {unread}" for unread in each.unread)
        if each.reads is None:
            yield from (f"no verdict on {release}: {why}" for why in each.open)


def _doubts(judged: Iterable[Verdict]) -> list[str]:
    return [*dict.fromkeys(why for each in judged if each.reads is None for why in each.open)]


def as_json(found: Contents, wanted: tuple[Release, ...], groups: bool = False) -> Mapping[str, Any]:
    return {
        "directory": str(found.folder),
        "formats": [
            {"format": format.name, "version": format.version, "count": count.number,
             "file": str(count.first.file), "offset": count.first.offset}
            for format, count in sorted(found.formats.items())
        ],
        "damage": found.damage,
        "clean": found.clean,
        "node": found.properties,
        "quorum": found.quorum,
        "metadata": found.metadata and {
            "checkpoint": found.metadata.checkpoint and str(found.metadata.checkpoint), "from": found.metadata.end,
            "voters": found.metadata.voters and sorted(found.metadata.voters),
        },
        "levels": [
            {"feature": each.feature, "level": each.level, "source": str(each.source),
             "file": str(each.place.file), "offset": each.place.offset}
            for each in found.levels
        ],
        "tails": found.tails,
        "epochs": found.epochs,
        "unknown": _counts_as_json(found.unknown),
        "notRead": _counts_as_json(found.unread),
        "skipped": found.skipped,
        "releases": {release: _verdict_as_json(each) for release, each in verdicts(found, wanted).items()},
        **(groups_as_json(found.groups) if groups else {}),
    }  # fmt: skip


def _counts_as_json(counts: Mapping[str, Count]) -> list[Mapping[str, Any]]:
    return [
        {"what": what, "count": each.number, "file": str(each.first.file), "offset": each.first.offset}
        for what, each in sorted(counts.items())
    ]


def _verdict_as_json(verdict: Verdict) -> Mapping[str, Any]:
    return {"reads": verdict.reads, "unread": [*map(_unread_as_json, verdict.unread)], "noVerdict": verdict.open}


def _unread_as_json(unread: Unread) -> Mapping[str, Any]:
    level = {"feature": unread.level.feature, "level": unread.level.level} if unread.level else {}
    return {"format": unread.format, "version": unread.version, **level}
