"""``kipcheck roll``: what a cluster persists in which format at each step of an upgrade, and when it cannot go back.

The versions that a release writes and reads are in ``wire/stored_records.py``; in KRaft the steps after the restarts
are those of ``features plan``. In the draft of KIP-384 the inter-broker version selects the formats that the old
release reads, and persistent.metadata.version all others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from kipcheck.conformance.cli import feature_plan
from kipcheck.conformance.core.edition import KIP_384
from kipcheck.conformance.core.release import NEWEST, Release, releases
from kipcheck.conformance.core.releases_table import named, patches, span, table
from kipcheck.conformance.protocols.features.model.kraft_rules import FIRST, METADATA
from kipcheck.conformance.wire.stored_records import (
    InterBroker,
    log_files,
    messages,
    newest_readable,
    thresholds,
    written,
)

Mode: TypeAlias = Literal["zookeeper", "kraft"]
MODES: Final[tuple[Mode, ...]] = ("zookeeper", "kraft")
INTER_BROKER: Final = "inter.broker.protocol.version"
PERSISTENT: Final = "persistent.metadata.version"
FORMAT: Final = "log.message.format.version"
TRANSACTIONS: Final = "transaction.version"
READS, FAILS, IGNORES = "reads", "fails", "ignores"


@dataclass(frozen=True, slots=True)
class Change:
    """A format that a step begins to write."""

    format: str
    before: int | None
    """None: the cluster did not write it."""
    after: int | None
    """None: a format without a version of its own."""
    old_release: str
    """``reads``, ``fails`` or ``ignores``: what the old release does with it."""


@dataclass(frozen=True, slots=True)
class Step:
    does: str
    settings: Mapping[str, str]
    """What the operator sets in this step."""
    writes: Mapping[str, int]
    """Every format, and the version that is written after the step."""
    changes: tuple[Change, ...]
    lowered: bool = True
    """Whether the cluster takes the setting back."""

    @property
    def undone(self) -> bool:
        """Whether the old release reads all that this step begins to write."""
        return self.lowered and all(each.old_release != FAILS for each in self.changes)


@dataclass(frozen=True, slots=True)
class Roll:
    old: str
    new: str
    mode: Mode
    edition: str
    steps: tuple[Step, ...]
    """The first is the cluster before the roll."""
    keeps: str
    """The highest inter-broker version that does not write what the old release cannot read; empty with KRaft."""
    unguarded: str
    """See ``feature_plan.Plan``."""

    @property
    def last_undone(self) -> int:
        """The number of the last step from which the cluster can go back to the old release."""
        kept = next((number for number, each in enumerate(self.steps) if not each.undone), len(self.steps))
        return kept - 1


@dataclass(frozen=True, slots=True)
class _Settings:
    """What selects the formats."""

    release: Release
    inter_broker: InterBroker
    message_format: InterBroker
    persistent: InterBroker
    transactions: int

    def writes(self, old: Release, gated: bool) -> dict[str, int]:
        """``gated``: the draft holds back what the old release does not read."""
        found = {}
        for format in (*messages(), *log_files()):
            version = self._version(format, self.inter_broker)
            if gated and version is not None and _read_by(old, format, version) == FAILS:
                version = self._version(format, self.persistent)
            if version is not None:
                found[format] = version
        return found

    def _version(self, format: str, selected_by: InterBroker) -> int | None:
        return written(
            format, self.release, selected_by, transactions=self.transactions, message_format=self.message_format
        )


def _read_by(old: Release, format: str, version: int) -> str:
    """A release from before a format looks for no such file, and has no coordinator that loads such records."""
    newest = newest_readable(format, old)
    if newest is None:
        return IGNORES
    return READS if version <= newest else FAILS


def _changes(old: Release, before: Mapping[str, int], after: Mapping[str, int]) -> tuple[Change, ...]:
    return tuple(
        Change(format, before.get(format), version, _read_by(old, format, version))
        for format, version in after.items()
        if before.get(format) != version
    )


def roll(old: str, new: str, mode: str | None = None, edition: str = "apache") -> Roll:
    """Errors: LookupError for an unknown release, a downgrade, and an upgrade that takes several steps."""
    first, last = known_release(old), known_release(new)
    if first >= last:
        why = "the releases are the same" if first == last else f"{old} is newer than {new}"
        raise LookupError(f"{why}: a roll leads to a newer release; what --to can undo is in its roll from --from")
    found = _mode(first, last, mode)
    if edition == KIP_384.name and found == "kraft":
        raise LookupError("kip-384 has settings of brokers with ZooKeeper: use --mode zookeeper, and --to up to 3.9.2")
    if found == "kraft":
        return _with_kraft(str(first), str(last), edition)
    return _with_zookeeper(first, last, edition)


def known_release(text: str) -> Release:
    """Errors: LookupError for anything but a release of Kafka."""
    try:
        found = Release.parse(text)
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None
    if str(found) not in patches():
        raise LookupError(f"unknown release {text}; the newest one known is {NEWEST}")
    return found


def _mode(first: Release, last: Release, wanted: str | None) -> Mode:
    zookeeper, bridge = releases(span("zookeeper")), named("last-before-4")
    if wanted == "kraft" and first < FIRST:
        raise LookupError(f"{first} does not run without ZooKeeper; KRaft begins with {FIRST}")
    if wanted == "zookeeper" and last not in zookeeper:
        raise LookupError(f"{last} has no ZooKeeper; the last release with it is {bridge}")
    if first < FIRST and last not in zookeeper:
        raise LookupError(
            f"no roll leads from {first} to {last}, which has no ZooKeeper: roll to {bridge}, migrate the cluster to "
            f"KRaft there, then roll on from {bridge}"
        )
    return "kraft" if wanted == "kraft" or (wanted is None and first >= FIRST) else "zookeeper"


def _with_zookeeper(first: Release, last: Release, edition: str) -> Roll:
    draft = edition == KIP_384.name
    at, to = InterBroker.of(first), InterBroker.of(last)
    now = _Settings(first, at, at, at, 0)
    before = now.writes(first, draft)
    steps = [Step(f"before: every broker runs {first}", {INTER_BROKER: str(at)}, before, ())]
    pinned = {INTER_BROKER: str(at)}
    if draft:
        pinned[PERSISTENT] = str(at)
    late, full = _Settings(last, to, at, to, 0), _Settings(last, to, to, to, 0)
    raised_format = late.writes(first, False) != full.writes(first, False)
    if raised_format:
        pinned[FORMAT] = str(at)
    plan: list[tuple[str, Mapping[str, str], _Settings]] = [
        (f"restart every broker with {last}, one by one", pinned, _Settings(last, at, at, at, 0)),
        (f"raise {INTER_BROKER} from {at} to {to}, and restart", {INTER_BROKER: str(to)},
         _Settings(last, to, at, at if draft else to, 0)),
    ]  # fmt: skip
    if draft:
        plan.append(
            (f"raise {PERSISTENT} from {at} to {to}, and restart", {PERSISTENT: str(to)},
             _Settings(last, to, at, to, 0))
        )  # fmt: skip
    if raised_format:
        plan.append(
            (f"raise {FORMAT} from {at} to {to}, and restart", {FORMAT: str(to)}, _Settings(last, to, to, to, 0))
        )
    for does, settings, selected in plan:
        after = selected.writes(first, draft)
        steps.append(Step(does, settings, after, _changes(first, before, after)))
        before = after
    keeps = str(to) if draft else _keeps(first, at, to)
    return Roll(str(first), str(last), "zookeeper", edition, tuple(steps), keeps, "")


def _keeps(old: Release, at: InterBroker, to: InterBroker) -> str:
    """The inter-broker version before the first one that writes what the old release cannot read."""
    lost = [
        since
        for format in (*messages(), *log_files())
        for since, version in thresholds(format, at, to).items()
        if _read_by(old, format, version) == FAILS
    ]
    return f"below {min(lost)}" if lost else str(to)


def _with_kraft(old: str, new: str, edition: str) -> Roll:
    first, last = Release.parse(old), Release.parse(new)
    found = feature_plan.plan(old, new)
    levels = feature_plan.levels(old)
    before = _kraft(first, levels).writes(first, False)
    running = ", ".join(f"{name} {level}" for name, level in sorted(levels.items()))
    steps = [Step(f"before: every node runs {old}, with {running}", {}, before, ())]
    after = _kraft(last, levels).writes(first, False)
    changes = _changes(first, before, after)
    steps.append(Step(f"restart every broker and controller with {new}, one by one", {}, after, changes))
    for each in found.steps:
        before, levels = after, {**levels, each.feature: each.after}
        after = _kraft(last, levels).writes(first, False)
        changes = (*_changes(first, before, after), *_new_records(each, first))
        does = f"raise {each.feature} from {each.before} to {each.after}"
        steps.append(Step(does, {each.feature: str(each.after)}, after, changes, each.undone))
    return Roll(old, new, "kraft", edition, tuple(steps), "", found.unguarded)


def _kraft(release: Release, levels: Mapping[str, int]) -> _Settings:
    at = InterBroker.of(release)
    return _Settings(release, at, at, at, levels.get(TRANSACTIONS, 0))


def _new_records(step: feature_plan.Step, old: Release) -> Iterator[Change]:
    if step.feature == METADATA and not step.undone:
        yield Change("records of __cluster_metadata", step.before, step.after, FAILS)
    found = table()["feature-writes"].get(step.feature)
    if found is None or not step.before < found["level"] <= step.after:
        return
    keys = old in releases(span("skips-unknown-group-keys"))
    reads = FAILS if step.feature == "kraft.version" else IGNORES if keys else FAILS
    yield Change(found["writes"], None, None, reads)


def lines(found: Roll) -> Iterator[str]:
    by = "" if found.edition == "apache" else f", as {found.edition} proposes"
    yield f"roll from {found.old} to {found.new}, {'KRaft' if found.mode == 'kraft' else 'ZooKeeper'}{by}"
    for number, each in enumerate(found.steps):
        yield f"{number}. {each.does}"
        if number == 0:
            yield "   writes " + ", ".join(f"{format} {version}" for format, version in each.writes.items())
            continue
        if number == 1 and each.settings:
            yield "   with " + ", ".join(f"{name}={value}" for name, value in each.settings.items())
        yield from (f"   {_change_text(one, found.old)}" for one in each.changes)
        if not each.changes:
            yield "   writes the same formats"
        if not each.lowered:
            yield f"   {next(iter(each.settings))} cannot be lowered again"
    last = found.last_undone
    if last == len(found.steps) - 1:
        yield f"every step can be undone; the last one is {last}"
    else:
        yield f"last step that can be undone: {last or 'none'}; step {last + 1} is the point of no return"
    if found.keeps.startswith("below"):
        yield f"an {INTER_BROKER} {found.keeps} keeps the way back to {found.old}"
    if found.unguarded:
        yield f"not guarded: {found.unguarded}; finish step 1 first"


def _change_text(change: Change, old: str) -> str:
    does = {READS: f"{old} reads it", IGNORES: f"{old} ignores it", FAILS: f"{old} cannot read it"}
    if change.before is None:
        what = change.format if change.after is None else f"{change.format} {change.after}, new"
    else:
        what = f"{change.format} {change.before} -> {change.after}"
    return f"{what}: {does[change.old_release]}"


def as_json(found: Roll) -> Mapping[str, Any]:
    return {
        "from": found.old,
        "to": found.new,
        "mode": found.mode,
        "edition": found.edition,
        "steps": [
            {
                "number": number,
                "does": each.does,
                "settings": dict(each.settings),
                "writes": dict(each.writes),
                "changes": [
                    {"format": one.format, "before": one.before, "after": one.after, "old_release": one.old_release}
                    for one in each.changes
                ],
                "undone": each.undone,
            }
            for number, each in enumerate(found.steps)
        ],
        "last_undone": found.last_undone,
        "keeps": found.keeps,
        "unguarded": found.unguarded,
    }
