"""What a cluster persists in which format at each step of an upgrade, and from which step it can go back.

The versions that a release writes and reads are in ``wire/stored_records.py``; in KRaft the steps after the restarts
are those of ``upgrade_plan``. A way back is promised where runs showed it (``ways_back``). In the draft of KIP-384 the
inter-broker version selects the formats that the old release reads, and persistent.metadata.version all others.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from kipcheck.conformance.core.files.releases_table import named, span, table
from kipcheck.conformance.core.values.edition import KIP_384
from kipcheck.conformance.core.values.release import Release, known_release, releases
from kipcheck.conformance.protocols.features.model.kraft_rules import FIRST, KRAFT, METADATA, Rules
from kipcheck.conformance.protocols.features.upgrades import upgrade_plan, ways_back
from kipcheck.conformance.protocols.features.upgrades.ways_back import runs
from kipcheck.conformance.wire import stored_records

Mode: TypeAlias = Literal["zookeeper", "kraft"]
MODES: Final[tuple[Mode, ...]] = ("zookeeper", "kraft")
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
    by: ways_back.By = ways_back.By.RESTART
    """How the old release comes back after this step, if those after it were undone."""
    raised: upgrade_plan.Step | None = None
    """The feature that rises in this step."""
    runs: tuple[ways_back.Played, ...] = ()
    """That showed it, or the contrary."""

    @property
    def undone(self) -> bool:
        """Whether the old release runs on all that was written until then: at once, or after a snapshot."""
        return self.by.leads_back


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
    """See ``upgrade_plan.Plan``."""
    assumed: str
    """What the roll takes for granted of the cluster; empty: nothing."""

    @property
    def last_undone(self) -> int:
        """The number of the last step from which the cluster can go back to the old release."""
        kept = next((number for number, each in enumerate(self.steps) if not each.undone), len(self.steps))
        return kept - 1

    @property
    def unknown(self) -> bool:
        """Whether no run shows how the cluster goes back from the step after the last one that can be undone, or from
        all up to that one.
        """
        after = self.last_undone + 1
        raised = [each.raised for each in self.steps[:after] if each.raised is not None]
        unshown = not upgrade_plan.run_together(self.old, self.new, raised)
        return unshown or any(each.by is ways_back.By.NOT_RUN for each in self.steps[after : after + 1])


@dataclass(frozen=True, slots=True)
class _Settings:
    """What selects the formats."""

    release: Release
    inter_broker: stored_records.InterBroker
    message_format: stored_records.InterBroker
    persistent: stored_records.InterBroker
    transactions: int

    def writes(self, old: Release, gated: bool) -> dict[str, int]:
        """``gated``: the draft holds back what the old release does not read."""
        found = {}
        for format in (*stored_records.messages(), *stored_records.log_files()):
            version = self._version(format, self.inter_broker)
            if gated and version is not None and _read_by(old, format, version) == FAILS:
                version = self._version(format, self.persistent)
            if version is not None:
                found[format] = version
        return found

    def _version(self, format: str, selected_by: stored_records.InterBroker) -> int | None:
        return stored_records.written(
            format, self.release, selected_by, transactions=self.transactions, message_format=self.message_format
        )


def _read_by(old: Release, format: str, version: int) -> str:
    """A release from before a format looks for no such file, and has no coordinator that loads such records."""
    newest = stored_records.newest_readable(format, old)
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
    assumed = _assumed(first, last) if mode is None and edition != KIP_384.name else ""
    made = _with_kraft(first, last, edition) if found == "kraft" else _with_zookeeper(first, last, edition)
    return replace(made, assumed=assumed)


def _assumed(first: Release, last: Release) -> str:
    """Where the release may run in another mode, too. Early KRaft: no FeatureLevelRecord is written before 3.3.0."""
    if first in releases(span("zookeeper")) and first >= FIRST and last in releases(span("zookeeper")):
        return "the cluster runs with KRaft; --mode zookeeper is for one with ZooKeeper"
    if first in releases(span("early-kraft")):
        return (
            "the cluster runs with ZooKeeper. One that was formatted in KRaft mode before 3.3.0, in early access, "
            "has no FeatureLevelRecord in its metadata (KAFKA-20839): kipcheck does not know its way back"
        )
    return ""


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
    at, to = stored_records.InterBroker.of(first), stored_records.InterBroker.of(last)
    now = _Settings(first, at, at, at, 0)
    before = now.writes(first, draft)
    steps = [Step(f"before: every broker runs {first}", {ways_back.INTER_BROKER: str(at)}, before, ())]
    pinned = {ways_back.INTER_BROKER: str(at)}
    if draft:
        pinned[PERSISTENT] = str(at)
    late, full = _Settings(last, to, at, to, 0), _Settings(last, to, to, to, 0)
    raised_format = late.writes(first, False) != full.writes(first, False)
    if raised_format:
        pinned[FORMAT] = str(at)
    plan: list[tuple[str, Mapping[str, str], _Settings]] = [
        (f"restart every broker with {last}, one by one", pinned, _Settings(last, at, at, at, 0)),
        (f"raise {ways_back.INTER_BROKER} from {at} to {to}, and restart", {ways_back.INTER_BROKER: str(to)},
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
    for number, (does, settings, selected) in enumerate(plan):
        after = selected.writes(first, draft)
        changes = _changes(first, before, after)
        # The message format rises with the inter-broker version, or after it: no run raises it alone.
        played = "" if draft or number > 1 else ways_back.INTER_BROKER if number else ways_back.PINNED
        by = ways_back.By.RESTART if draft else ways_back.as_run(ways_back.By.RESTART, str(first), str(last), played)
        shown = runs(str(first), str(last), played)
        steps.append(Step(does, settings, after, changes, _by(changes, by), runs=shown))
        before = after
    keeps = str(to) if draft else _keeps(first, at, to)
    return Roll(str(first), str(last), "zookeeper", edition, tuple(steps), keeps, "", "")


def _by(changes: Iterable[Change], by: ways_back.By) -> ways_back.By:
    """What a step writes can take the way back, too."""
    return ways_back.By.IMPOSSIBLE if any(each.old_release == FAILS for each in changes) else by


def _keeps(old: Release, at: stored_records.InterBroker, to: stored_records.InterBroker) -> str:
    """The inter-broker version before the first one that writes what the old release cannot read."""
    lost = [
        since
        for format in (*stored_records.messages(), *stored_records.log_files())
        for since, version in stored_records.thresholds(format, at, to).items()
        if _read_by(old, format, version) == FAILS
    ]
    return f"below {min(lost)}" if lost else str(to)


def _with_kraft(first: Release, last: Release, edition: str) -> Roll:
    old, new = str(first), str(last)
    found = upgrade_plan.plan(old, new)
    levels = upgrade_plan.levels(old)
    running = ", ".join(f"{name} {level}" for name, level in sorted(levels.items()))
    does = f"before: every node runs {old}, with {running}"
    steps = [Step(does, {}, _kraft(first, levels).writes(first, False), ()), restarted(first, last)]
    after = steps[-1].writes
    for each in found.steps:
        before, levels = after, {**levels, each.feature: each.after}
        after = _kraft(last, levels).writes(first, False)
        changes = (*_changes(first, before, after), *_new_records(each, first))
        level = Change(f"level of {each.feature}", each.before, each.after, FAILS if _fails(each, old) else READS)
        does = f"raise {each.feature} from {each.before} to {each.after}"
        settings, shown = {each.feature: str(each.after)}, runs(old, new, each.feature)
        steps.append(Step(does, settings, after, (*changes, level), _by(changes, each.by), each, shown))
    return Roll(old, new, "kraft", edition, tuple(steps), "", found.unguarded, "")


def restarted(first: Release, last: Release) -> Step:
    """The step in KRaft in which every node gets the new release, and the levels stay."""
    old, new = str(first), str(last)
    levels = upgrade_plan.levels(old)
    before, after = (_kraft(each, levels).writes(first, False) for each in (first, last))
    changes, by = _changes(first, before, after), ways_back.as_run(ways_back.By.RESTART, old, new, ways_back.BINARIES)
    does = f"restart every broker and controller with {new}, one by one"
    return Step(does, {}, after, changes, _by(changes, by), runs=runs(old, new, ways_back.BINARIES))


def _fails(step: upgrade_plan.Step, old: str) -> bool:
    """Whether the old release ends at a record of the level."""
    return bool(ways_back.MetadataLog.of({step.feature: step.after}).unread_by(Rules.of(old)))


def _kraft(release: Release, levels: Mapping[str, int]) -> _Settings:
    at = stored_records.InterBroker.of(release)
    return _Settings(release, at, at, at, levels.get(TRANSACTIONS, 0))


def _new_records(step: upgrade_plan.Step, old: Release) -> Iterator[Change]:
    if step.feature == METADATA and not step.lowered:
        yield Change("records of __cluster_metadata", step.before, step.after, FAILS)
    found = table()["feature-writes"].get(step.feature)
    if found is None or not step.before < found["level"] <= step.after:
        return
    if step.feature == KRAFT:
        reads = FAILS if _fails(step, str(old)) else READS
    else:
        reads = IGNORES if old in releases(span("skips-unknown-group-keys")) else FAILS
    yield Change(found["writes"], None, None, reads)
