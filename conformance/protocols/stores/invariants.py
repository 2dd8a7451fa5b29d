"""Invariants of stores with timestamps.

They read the answers, and know what was put; none compares with the model. What a crash may lose is known key by key:
any contents that the key had since the last flush may be there, and from the first reading on it is that one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Op, Refused
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant, steps_of
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, payload, plain_steps
from kipcheck.conformance.protocols.stores.ops import FORMATS, NO_HEADERS, NO_TIMESTAMP

CONTENTS: Final = "stores/contents"
UPGRADES: Final = "stores/upgrades"
contents = partial(invariant, role=Role.STORE, checks=(CONTENTS,), after=("store-open",))
upgrades = partial(invariant, role=Role.STORE, checks=(UPGRADES,))
LINKS: Final = ("KIP-258", "KAFKA-3522")
HEADERS_LINKS: Final = ("KIP-1271", "KAFKA-20056")
READS: Final = ("store-get", "store-put-if-absent", "store-delete", "store-range")
WRITES: Final = ("store-put", "store-put-if-absent", "store-delete", "store-restore")

Stored = tuple[str, int, str | None]
"""Value, timestamp and headers."""


@dataclass(frozen=True, slots=True)
class Had:
    """What a key had at some time."""

    contents: Stored | None
    """None: the key is absent."""
    by: str = ""
    """What made it so: ``put``, ``old`` (without a timestamp), ``restored``, ``deleted``, ``kept`` (by a put that
    expects an absent key); empty: the key was never written."""
    at: int = -1
    """The step."""
    format: str = ""
    """Of the store that has it, since a reading may have moved it; empty: of none."""


NEVER: Final = Had(None)


@dataclass(frozen=True, slots=True)
class KnownStore:
    """What is known of the store from the answers so far."""

    open: str | None = None
    may_be: Mapping[str, tuple[Had, ...]] = field(default_factory=dict)
    """Key -> what it may have, the likeliest last; more than one after a crash."""
    written: Mapping[str, tuple[tuple[int, Had], ...]] = field(default_factory=dict)
    """Key -> what it may have had since the store was opened: after how many flushes; -1: before it was opened."""
    flushes: int = 0
    """How often the store was flushed."""
    opened: frozenset[str] = frozenset()
    """The formats of the stores that were opened in the directory."""
    refused: frozenset[str] = frozenset()
    """Those that were refused there, while no store was open."""
    moved: frozenset[str] = frozenset()
    """The keys that a reading moved to a newer format since the store was opened."""
    maybe_moved: frozenset[str] = frozenset()
    """Those that a crash may have moved back."""
    crashed: int | None = None
    """The last step that killed the process."""
    dead: bool = False
    """Whether the store was not opened since."""
    counted: bool = True
    """Whether each key was written once at most, and nothing was deleted, moved or lost: then the count is exact.

    A write beside old values deletes one that may not exist, which RocksDB counts.
    """

    def of(self, key: str) -> tuple[Had, ...]:
        return self.may_be.get(key, (NEVER,))

    @property
    def is_mixed(self) -> bool | None:
        """Whether values with and without timestamps are left in the directory; None: there may be, after a crash."""
        if "timestamped" not in self.opened:
            return False
        possible = list(self.may_be.items())
        if self.dead:  # what was written since the last flush may be gone
            possible += [(key, tuple(had for _, had in entries)) for key, entries in self.written.items()]
        plain = [
            [had.format == "plain" and had.contents is not None for had in hads]
            for key, hads in possible
            if key not in self.maybe_moved
        ]
        if not self.dead and any(map(all, plain)):
            return True
        return None if self.maybe_moved or any(map(any, plain)) else False


@dataclass(frozen=True, slots=True)
class StoreStep(AnsweredStep[Step, Mapping[str, Any], KnownStore]):
    def contents(self) -> Iterator[tuple[str, Stored | None]]:
        """The keys whose contents the answer shows, and those."""
        if not self.accepted:
            return
        if self.verb == "store-range":
            for row in self.answer.get("rows") or ():
                yield row["key"], _stored(row)
        elif self.verb in READS:
            yield self.request["key"], None if self.answer.get("value") is None else _stored(self.answer)

    def shows(self, had: Had, shown: Stored | None) -> bool:
        """Whether the answer is what a key with these contents has: a plain store knows its value alone, and one with
        timestamps no headers."""
        if had.contents is None or shown is None:
            return had.contents == shown
        known = FORMATS.index(self.before.open) + 1 if self.before.open in FORMATS else 0
        return had.contents[:known] == shown[:known]

    def known_after(self) -> KnownStore:
        return _after(self)


def _stored(found: Mapping[str, Any]) -> Stored:
    return found["value"], found["timestamp"], found.get("headers")


@cached_on_history
def trace(history: History) -> tuple[StoreStep, ...]:
    return plain_steps(history, KnownStore(), StoreStep)


def _after(answered: StoreStep) -> KnownStore:
    before, step = answered.before, answered.request
    if not answered.accepted:
        refused = step.verb == "store-open" and before.open is None
        return replace(before, refused=before.refused | {step["format"]}) if refused else before
    known = before
    for key, shown in answered.contents():
        had = before.of(key)
        likely = next((each for each in reversed(had) if answered.shows(each, shown)), None)
        # A wrong answer counts for the following steps: it is reported once.
        known = _having(known, key, likely or Had(shown, had[-1].by, had[-1].at, had[-1].format))
    match step.verb:
        case "store-open":
            return _opened(known, step["format"], answered.answer.get("flushes"))
        case "store-put" | "store-restore":
            by = "restored" if step.verb == "store-restore" else "put"
            return _written(known, step, by, answered.op.index)
        case "store-put-if-absent":
            (kept,) = known.of(step["key"])
            if kept.contents is None:
                return _written(known, step, "put", answered.op.index)
            return replace(_moved(known, step["key"], replace(kept, by="kept")), counted=False)
        case "store-delete":
            return _written(known, step, "deleted", answered.op.index)
        case "store-get" if known.open != "plain" and answered.answer.get("value") is not None:
            (had_here,) = known.of(step["key"])
            return replace(_moved(known, step["key"], had_here), counted=False)
        case "store-flush":
            return replace(known, flushes=known.flushes + 1)
        case "store-close":
            return replace(known, open=None, written={})
        case "store-crash":
            return replace(
                known, open=None, crashed=answered.op.index, dead=True, counted=False,
                maybe_moved=known.maybe_moved | known.moved,
            )  # fmt: skip
    return known


def _opened(known: KnownStore, format: str, flushes: int | None) -> KnownStore:
    """After a crash a key has what it had at the last flush that was kept, or anything since.

    If it was written since, it may be absent: then a task restores it from the changelog.
    """
    after = replace(
        known, open=format, opened=known.opened | {format}, dead=False, written={}, moved=frozenset()
    )  # fmt: skip
    if not known.dead:
        return after
    kept = known.flushes if flushes is None else min(flushes, known.flushes)
    left = {key: _left(entries, kept) for key, entries in known.written.items()}
    return replace(after, may_be={**known.may_be, **left})


def _left(entries: tuple[tuple[int, Had], ...], kept: int) -> tuple[Had, ...]:
    before = [(at, had) for at, had in entries if at < kept]
    durable = before[-1:] if before[-1][0] >= 0 else before
    since = [had for at, had in entries if at >= kept]
    restored = [replace(since[-1], contents=None)] if since else []
    return (*restored, *(had for _, had in durable), *since)


def _having(known: KnownStore, key: str, had: Had) -> KnownStore:
    """The key has this, and nothing else."""
    settled = {} if len(known.of(key)) == 1 else {key: ((-1, had),)}
    return replace(known, may_be={**known.may_be, key: (had,)}, written={**known.written, **settled})


def _moved(known: KnownStore, key: str, had: Had) -> KnownStore:
    """A reading moved the key to the format of the open store, for good once that is closed."""
    after = _having(known, key, replace(had, format=known.open or had.format))
    return replace(after, moved=known.moved | {key})


def _written(known: KnownStore, step: Step, by: str, at: int) -> KnownStore:
    key, value, format = step["key"], step.body.get("value"), known.open or ""
    if value is None:
        had = Had(None, "deleted", at)
    elif format == "plain":
        had = Had((value, NO_TIMESTAMP, NO_HEADERS), "old" if by == "put" else by, at, format)
    else:
        timestamp = NO_TIMESTAMP if step["timestamp"] is None else step["timestamp"]
        headers = step.body.get("headers", NO_HEADERS) if format == "headers" else NO_HEADERS
        had = Had((value, timestamp, headers), by, at, format)
    entries = (*known.written.get(key, [(-1, each) for each in known.of(key)]), (known.flushes, had))
    old = any(each.format not in ("", format) for hads in known.may_be.values() for each in hads)
    first = known.of(key) == (NEVER,) and value is not None and not old
    return replace(
        known, may_be={**known.may_be, key: (had,)}, written={**known.written, key: entries},
        counted=known.counted and first,
    )  # fmt: skip


def breach(answered: StoreStep, why: str, expected: str, *shape: str, at: int = -1) -> Violation:
    first = () if at < 0 else (at,)
    return Violation(why, (*first, answered.op.index), expected, _observed(answered.op), shape=shape)


def _observed(op: Op) -> str:
    if isinstance(op.observation, Refused):
        return f"refused: {op.observation.error}"
    found = payload(op)
    if "rows" in found:
        return ", ".join(_text(_stored(each), each["key"]) for each in found["rows"]) or "no rows"
    if "value" in found:
        return _text(None if found["value"] is None else _stored(found))
    return ", ".join(f"{name} {value}" for name, value in found.items()) or "accepted"


def _text(contents: Stored | None, key: str = "") -> str:
    if contents is None:
        return "absent"
    value, timestamp, headers = contents
    known = f" with {headers}" if headers else ""
    return (f"{key}={value}" if key else value or "the empty value") + f" at {timestamp}{known}"


def wrong(history: History) -> Iterator[tuple[StoreStep, str, Had, Stored | None]]:
    """The answers that show contents which the key does not have: with the key and what it has."""
    for each in trace(history):
        for key, shown in each.contents():
            had = each.before.of(key)
            if not any(each.shows(one, shown) for one in had):
                yield each, key, had[-1], shown


def _lost_in_a_crash(each: StoreStep, had: Had) -> bool:
    """Whether the contents were written before the last crash."""
    return each.before.crashed is not None and had.at < each.before.crashed


def _breach(each: StoreStep, key: str, had: Had, shown: Stored | None, *shape: str) -> Violation:
    why = f"key {key} reads as {_text(shown)}, and has {_text(had.contents)}"
    return breach(each, why, _text(had.contents, key if had.contents else ""), *shape, at=had.at)


def _kind(had: Had, shown: Stored | None) -> str:
    """How the contents differ."""
    if shown is None or had.contents is None:
        return "lost" if shown is None else "found"
    if shown[0] != had.contents[0]:
        return "value"
    return "timestamp" if shown[1] != had.contents[1] else "headers"


@impact("A store returns a value or timestamp that was not put", "wrong data", "versions", "wrong-data", links=LINKS)
@contents(
    "stores/reads-back", "258-13", "258-28", applies_to=steps_of("store-open", *READS, *WRITES), needs=steps_of(*READS)
)  # fmt: skip
def reads_back(history: History) -> Iterator[Violation]:
    """A key has the value and the timestamp with which it was put last; a value in the old format is whole."""
    for each, key, had, shown in wrong(history):
        if _lost_in_a_crash(each, had) or _kind(had, shown) == "headers":
            continue
        if had.by in ("put", "") or (had.by == "old" and _kind(had, shown) != "timestamp"):
            yield _breach(each, key, had, shown, had.by or "never", _kind(had, shown))


@impact("A value without a timestamp gets one", "wrong data", "versions", "wrong-data", links=LINKS)
@contents(
    "stores/old-timestamps", "258-13", "258-28", applies_to=steps_of("store-open", *READS, *WRITES),
    needs=steps_of(*READS),
)  # fmt: skip
def old_timestamps(history: History) -> Iterator[Violation]:
    """A value that was stored without a timestamp has timestamp -1 in a store with timestamps."""
    for each, key, had, shown in wrong(history):
        if had.by == "old" and _kind(had, shown) == "timestamp" and not _lost_in_a_crash(each, had):
            yield _breach(each, key, had, shown)


@impact("A scan repeats, omits or reorders keys", "wrong data", "order", "wrong-data", links=LINKS)
@contents("stores/ranges", "258-28", applies_to=steps_of("store-open", *READS, *WRITES), needs=steps_of("store-range"))
def ranges(history: History) -> Iterator[Violation]:
    """A range has each key within its bounds once, in the order of the keys' bytes."""
    for each in trace(history):
        if each.op.step.verb != "store-range" or not each.accepted:
            continue
        keys = [bytes.fromhex(row["key"]) for row in each.answer.get("rows") or ()]
        first, last = (bytes.fromhex(text) if text is not None else None for text in _bounds(each.op))
        if len({*keys}) < len(keys):
            double = next(key for key in keys if keys.count(key) > 1)
            yield breach(each, f"the range has key {double.hex()} twice", "each key once", "twice")
        elif keys != sorted(keys):
            yield breach(each, "the range is not in the order of its keys", "in the order of their bytes", "order")
        elif outside := [key for key in keys if not _within(key, first, last)]:
            yield breach(each, f"the range has key {outside[0].hex()}, which is outside of it", "no such key", "bounds")
        else:
            for key, hads in sorted(each.before.may_be.items()):
                owed = all(had.contents is not None for had in hads) and _within(bytes.fromhex(key), first, last)
                if owed and bytes.fromhex(key) not in keys and not _lost_in_a_crash(each, hads[-1]):
                    why = f"the range lacks key {key}, which has {_text(hads[-1].contents)}"
                    yield breach(each, why, f"key {key}", "lacks", at=hads[-1].at)


def _bounds(op: Op) -> tuple[str | None, str | None]:
    return op.step["first"], op.step["last"]


def _within(key: bytes, first: bytes | None, last: bytes | None) -> bool:
    return (first is None or first <= key) and (last is None or key <= last)


@impact("A deleted record comes back", "wrong data", "versions", "wrong-data", links=LINKS)
@contents(
    "stores/deletes", "258-27", "258-28", applies_to=steps_of("store-open", *READS, *WRITES), needs=steps_of(*READS)
)
def deletes(history: History) -> Iterator[Violation]:
    """A key that was deleted, or put with null, is absent, in whichever format it was."""
    for each, key, had, shown in wrong(history):
        if had.by == "deleted" and not _lost_in_a_crash(each, had):
            yield _breach(each, key, had, shown)


@impact("A record is overwritten that should be kept", "wrong data", "versions", "wrong-data", links=LINKS)
@contents(
    "stores/absent-only", "258-28", applies_to=steps_of("store-open", *READS, *WRITES),
    needs=steps_of("store-put-if-absent"),
)  # fmt: skip
def absent_only(history: History) -> Iterator[Violation]:
    """A put for an absent key leaves a key alone that has a value, in whichever format."""
    for each, key, had, shown in wrong(history):
        if had.by == "kept" and not _lost_in_a_crash(each, had) and _kind(had, shown) != "headers":
            yield _breach(each, key, had, shown, _kind(had, shown))


@impact("A restored store differs from the lost one", "wrong data", "durability", "wrong-data", links=LINKS)
@contents(
    "stores/restores", "258-27", applies_to=steps_of("store-open", *READS, *WRITES), needs=steps_of("store-restore")
)  # fmt: skip
def restores(history: History) -> Iterator[Violation]:
    """A restored key has the value and the timestamp of its record in the changelog."""
    for each, key, had, shown in wrong(history):
        if had.by == "restored" and not _lost_in_a_crash(each, had) and _kind(had, shown) != "headers":
            yield _breach(each, key, had, shown, _kind(had, shown))


@impact("A stored record loses or changes its headers", "wrong data", "versions", "wrong-data", links=HEADERS_LINKS)
@contents(
    "stores/headers", "1271-01", "1271-02", applies_to=steps_of("store-open", *READS, *WRITES), needs=steps_of(*READS)
)  # fmt: skip
def headers(history: History) -> Iterator[Violation]:
    """A store with headers returns those of the record, in order; a value that was stored without headers has none."""
    for each, key, had, shown in wrong(history):
        if _kind(had, shown) == "headers" and not _lost_in_a_crash(each, had):
            yield _breach(each, key, had, shown, had.by, had.format)


@impact("The number of records is wrong by far", "trivia", "versions", "wrong-data", links=LINKS)
@contents(
    "stores/count", "258-28", applies_to=steps_of("store-open", "store-count", *WRITES), needs=steps_of("store-count")
)  # fmt: skip
def count(history: History) -> Iterator[Violation]:
    """The approximate count has the records of both formats: exact until one is written again or moved."""
    for each in trace(history):
        if each.op.step.verb == "store-count" and each.accepted and each.before.counted:
            right = sum(had.contents is not None for (had,) in each.before.may_be.values())
            if each.answer.get("count") != right:
                yield breach(each, f"the store counts {each.answer.get('count')} of {right} records", f"{right}")


# Upgrades


@impact("Records are lost when a process ends", "wrong data", "durability", "wrong-data", links=LINKS)
@upgrades(
    "stores/survives", "258-13", "258-28",
    applies_to=steps_of("store-open", "store-flush", "store-close", "store-crash", *READS, *WRITES),
    needs=steps_of("store-crash", *READS),
)  # fmt: skip
def survives(history: History) -> Iterator[Violation]:
    """A killed process loses nothing that was flushed, even if a reading moved it to the new format since."""
    for each, key, had, shown in wrong(history):
        if _lost_in_a_crash(each, had):
            yield _breach(each, key, had, shown, _kind(had, shown))
    for each in trace(history):
        if each.op.step.verb != "store-range" or not each.accepted:
            continue
        keys = {row["key"] for row in each.answer.get("rows") or ()}
        first, last = (bytes.fromhex(text) if text is not None else None for text in _bounds(each.op))
        for key, hads in sorted(each.before.may_be.items()):
            owed = all(had.contents is not None for had in hads) and _within(bytes.fromhex(key), first, last)
            if owed and key not in keys and _lost_in_a_crash(each, hads[-1]):
                why = f"key {key} is lost, and has {_text(hads[-1].contents)}"
                yield breach(each, why, f"key {key}", "lost", at=hads[-1].at)


@impact("A store refuses an operation", "refused peer", "guards", "stuck-upgrade", links=LINKS)
@invariant(
    "stores/serves", "258-13", "258-27", "258-28", "258-30", role=Role.STORE, checks=(CONTENTS, UPGRADES),
    applies_to=steps_of("store-open", "store-flush", "store-close", "store-count", "store-range", *READS, *WRITES),
)  # fmt: skip
def serves(history: History) -> Iterator[Violation]:
    """A store opens what one of its own format left, and an open store does every operation."""
    for each in trace(history):
        step, known = each.request, each.before
        if each.accepted or not each.error:
            continue
        if step.verb != "store-open":
            refused = known.open is not None
        else:
            refused = known.open is None and known.opened | known.refused <= {step["format"]}
        if refused:
            yield breach(each, "the store refuses it", "accepted", step.verb)


@impact("An upgrade needs more than a restart", "refused peer", "guards", "stuck-upgrade", links=LINKS)
@upgrades("stores/opens-old", "258-30", applies_to=steps_of("store-open"))
def opens_old(history: History) -> Iterator[Violation]:
    """A store with timestamps opens whatever a store without them left, without a configuration."""
    for each in trace(history):
        newer = "headers" in each.before.opened | each.before.refused
        if _refused(each, "timestamped") and not newer:
            yield breach(each, "the store with timestamps does not open", "opened")


def _refused(each: StoreStep, format: str) -> bool:
    """Whether a store of this format was refused, while no other one was open."""
    step = each.op.step
    return step.verb == "store-open" and step["format"] == format and not each.accepted and each.before.open is None


@impact("An upgrade needs more than a restart", "refused peer", "guards", "stuck-upgrade", links=HEADERS_LINKS)
@upgrades("stores/opens-older", "1271-03", applies_to=steps_of("store-open"))
def opens_older(history: History) -> Iterator[Violation]:
    """A store with headers opens whatever a store of one older format left, without a configuration."""
    for each in trace(history):
        if _refused(each, "headers") and each.before.is_mixed is False:
            yield breach(each, "the store with headers does not open", "opened")


@impact("A downgraded application misreads its stores", "wrong data", "guards", "wrong-data", links=HEADERS_LINKS)
@upgrades("stores/refuses-newer", "1271-04", applies_to=steps_of("store-open"))
def refuses_newer(history: History) -> Iterator[Violation]:
    """A store without headers refuses the directory of a store with headers."""
    for each in trace(history):
        step = each.op.step
        older = step.verb == "store-open" and step["format"] != "headers"
        if older and each.accepted and "headers" in each.before.opened:
            yield breach(each, f"the {step['format']} store opens what one with headers left", "refused")


@impact(
    "An upgrade that is refused leaves a store that nothing opens", "refused peer", "guards", "stuck-upgrade",
    links=HEADERS_LINKS,
)  # fmt: skip
@upgrades("stores/mixed-formats", "1271-05", grade=Grade.INFO, applies_to=steps_of("store-open"))
def mixed_formats(history: History) -> Iterator[Violation]:
    """A store with headers refuses values of two older formats, and no store opens the directory from then on."""
    for each in trace(history):
        step = each.op.step
        if step.verb != "store-open" or not each.accepted or each.before.is_mixed is not True:
            continue
        if step["format"] == "headers":
            yield breach(each, "the store with headers opens values of two older formats", "refused", "opens")
        elif "headers" in each.before.refused:
            why = f"the {step['format']} store opens the directory that one with headers refused"
            yield breach(each, why, "refused", "opens again")


@impact(
    "A store looks for old values that it does not have", "trivia", "versions", "unfair-load", links=("KAFKA-8791",)
)
@upgrades("stores/both-formats", "258-29", grade=Grade.INFO, applies_to=steps_of("store-open"))
def both_formats(history: History) -> Iterator[Violation]:
    """A store looks for both formats if it has old values; in 2.3.0 a new store does, too."""
    always = Release.parse(edition(history.case.edition).release) in releases(span("stores-always-both"))
    emptied = False
    family = False
    for each in trace(history):
        step = each.op.step
        emptied = emptied or step.verb not in ("store-open", "store-put", "store-close", "store-get", "store-range")
        emptied = emptied or (step.verb == "store-put" and step["value"] is None) or step.verb == "store-get"
        if step.verb != "store-open" or step["format"] != "timestamped" or not each.accepted:
            continue
        reported, opened_before, family = each.answer.get("both"), family, True
        old = any(had.by == "old" for hads in each.before.may_be.values() for had in hads)
        right = old or (always and not opened_before)
        if reported is not None and not emptied and reported is not right:
            found = "both formats" if reported else "one format"
            yield breach(each, f"the store looks for {found}", "both" if right else "one", found)
