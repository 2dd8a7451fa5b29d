"""Invariants of a broker that stores records of its coordinators.

They read the answers, and the table of versions by release; none compares with the model.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import AppliesTo, impact, invariant, steps_of
from kipcheck.conformance.protocols.declare.trace import payload
from kipcheck.conformance.protocols.stored_records import settings
from kipcheck.conformance.protocols.stored_records.ops import CLASSIC, GROUP, KEY, SAMPLES, TRANSACTION
from kipcheck.conformance.wire.stored_records import InterBroker, newest_readable, readable_before, written

WRITTEN: Final = "stored-records/written"
LOADED: Final = "stored-records/loaded"
writes = partial(invariant, role=Role.BROKER, checks=(WRITTEN,))
loads = partial(
    invariant, role=Role.BROKER, checks=(LOADED,), grade=Grade.INFO, applies_to=steps_of("read-record")
)  # fmt: skip
LINKS: Final = ("KIP-384",)
VERSIONS: Final = {(message, data): version for (message, version), data in SAMPLES.items()}
NEVER: Final = 99
NO_LINE: Final = "9.9"


def writing(*messages: str) -> AppliesTo:
    """The writes of these records: a testee may be one coordinator, and write none of another."""
    return lambda case, step: step.verb == "write-record" and step["message"] in messages


def release(history: History) -> Release:
    return Release.parse(edition(history.case.edition).release)


def answered(history: History, verb: str) -> Iterator[Op]:
    return (op for op in history.ops if op.step.verb == verb and isinstance(op.observation, Replied | Refused))


def unlike(op: Op, right: int | None, why: str) -> Iterator[Violation]:
    """``right``: the version that the record has to have; None: nothing is known of it."""
    if (
        right is None
        or not isinstance(op.observation, Replied)
        or (found := settings.version_of(settings.decoded(str(payload(op).get("hex", ""))))) == right
    ):
        return
    message = op.step["message"]
    shape = "none" if found is None else "newer" if found > right else "older"
    wrote = "without a version" if found is None else f"in version {found}"
    yield Violation(f"{message} is written {wrote}, {why}", (op.index,), f"version {right}", wrote, shape=(shape,))


# What is written


@impact("A cluster cannot go back to its old release", "refused peer", "versions", "unreadable", links=LINKS)
@writes("stored-records/version-by-release", "384-09", applies_to=writing(*CLASSIC))
def version_by_release(history: History) -> Iterator[Violation]:
    """Classic groups and offsets are written in the version that release and inter-broker version select."""
    at = release(history)
    for op in answered(history, "write-record"):
        setting = settings.in_force(op.step["inter_broker"], at)
        if op.step["message"] in CLASSIC and not op.step["expires"] and setting is not None:
            right, before = written(op.step["message"], at, setting), readable_before(op.step["message"], setting)
            if right is not None and (before is None or right <= before):  # else stored-records/way-back decides
                yield from unlike(op, right, f"by {at} with inter-broker version {setting}")


@impact("A cluster cannot go back, though nothing was raised", "refused peer", "versions", "unreadable", "lost-offsets",
        links=LINKS)  # fmt: skip
@writes("stored-records/way-back", "384-23", applies_to=writing(*CLASSIC))
def way_back(history: History) -> Iterator[Violation]:
    """A classic group or offset is written in a version that each release reads which the version in force allows."""
    at = release(history)
    for op in answered(history, "write-record"):
        setting = settings.in_force(op.step["inter_broker"], at)
        found = settings.version_of(settings.decoded(str(payload(op).get("hex", ""))))
        if op.step["message"] not in CLASSIC or setting is None or found is None:
            continue
        before = readable_before(op.step["message"], setting)
        if before is not None and found > before:
            message, first = op.step["message"], setting.first_release()
            yield Violation(
                f"{message} is written in version {found} at {setting}, and {first} reads versions up to {before}",
                (op.index,), f"version {before} or less", f"in version {found}", shape=("newer",),
            )  # fmt: skip


@impact("Old brokers cannot read offsets that expire", "refused peer", "versions", "unreadable", links=LINKS)
@writes("stored-records/expiring-in-version-1", "384-09", applies_to=writing("OffsetCommitValue"))
def expiring_in_version_1(history: History) -> Iterator[Violation]:
    """An offset commit with a retention time of its own is written in version 1, which alone has a field for it."""
    for op in answered(history, "write-record"):
        if op.step["message"] == "OffsetCommitValue" and op.step["expires"]:
            yield from unlike(op, 1, "though it has a retention time of its own")


@impact("Transactions are stored in a format that no feature allows", "refused peer", "gating", "unreadable",
        links=(*LINKS, "KIP-890"))  # fmt: skip
@writes("stored-records/transaction-version", "384-22", applies_to=writing(TRANSACTION))
def transaction_version(history: History) -> Iterator[Violation]:
    """The level of transaction.version selects the version of the values in the transaction log."""
    at = release(history)
    for op in answered(history, "write-record"):
        level = op.step["level"]
        if op.step["message"] == TRANSACTION and level in range(3) and at >= settings.FEATURES_SINCE:
            right = written(TRANSACTION, at, InterBroker.of(at), transactions=level)
            yield from unlike(op, right, f"at transaction.version {level}")


@impact("Consumer groups are stored before the cluster allows them", "refused peer", "gating", "unreadable",
        links=(*LINKS, "KIP-848"))  # fmt: skip
@writes("stored-records/group-version", "384-22", applies_to=writing(GROUP))
def group_version(history: History) -> Iterator[Violation]:
    """At group.version 0 no record of a consumer group is written."""
    for op in answered(history, "write-record"):
        early = op.step["message"] == GROUP and op.step["level"] == 0 and release(history) >= settings.FEATURES_SINCE
        if early and isinstance(op.observation, Replied):
            yield Violation(
                f"{GROUP} is written at group.version 0", (op.index,), "an error", "accepted", shape=("early",)
            )


@impact("Classic groups stop at a level that does not concern them", "refused peer", "gating", "stuck-group",
        links=LINKS)  # fmt: skip
@writes("stored-records/classic-ungated", "384-22", applies_to=writing(*CLASSIC))
def classic_ungated(history: History) -> Iterator[Violation]:
    """Classic groups and offsets are written at every level of group.version."""
    at = release(history)
    for op in answered(history, "write-record"):
        gated = op.step["message"] in CLASSIC and op.step["level"] in (0, 1) and at >= settings.FEATURES_SINCE
        if gated and settings.in_force(op.step["inter_broker"], at) is not None and isinstance(op.observation, Refused):
            yield Violation(
                f"{op.step['message']} is refused at group.version {op.step['level']}", (op.index,), "accepted",
                op.observation.error, shape=("refused",),
            )  # fmt: skip


@impact("A coordinator does not store its groups", "refused peer", "gating", "stuck-group", links=LINKS)
@writes("stored-records/writes", "384-09", "384-22", "384-23", "384-28",
        applies_to=writing(*CLASSIC, TRANSACTION, GROUP))  # fmt: skip
def writes_records(history: History) -> Iterator[Violation]:
    """A record that the release has is written at every inter-broker version and level that allow it."""
    at = release(history)
    for op in answered(history, "write-record"):
        message, level, setting = op.step["message"], op.step["level"], settings.in_force(op.step["inter_broker"], at)
        if setting is None or (at < settings.FEATURES_SINCE and (level is not None or message == GROUP)):
            continue
        lowest, highest = (int(message == GROUP), 2 if message == TRANSACTION else 1)
        if level is not None and not lowest <= level <= highest:
            continue
        exists = message == GROUP or written(message, at, setting, expiring=op.step["expires"]) is not None
        version = settings.version_of(settings.decoded(str(payload(op).get("hex", ""))))
        if exists and version is None:
            found = op.observation.error if isinstance(op.observation, Refused) else "no record"
            why = f"{message} is not written by {at} at {setting}, with the feature level {level}"
            yield Violation(why, (op.index,), "a record", found, shape=("refused",))


@impact("A broker starts with an inter-broker version that does not exist", "wrong data", "guards", "misled-operator",
        links=LINKS)  # fmt: skip
@writes("stored-records/known-names", "384-28", applies_to=writing(*CLASSIC))
def known_names(history: History) -> Iterator[Violation]:
    """An inter-broker version is one that its line has; a broker refuses the one after the last."""
    at = release(history)
    for op in answered(history, "write-record"):
        name = op.step["inter_broker"]
        if name is None or op.step["message"] not in CLASSIC or not isinstance(op.observation, Replied):
            continue
        unknown = settings.is_named(name) is False and InterBroker.parse(name).line <= InterBroker.of(at).line
        if unknown or name == NO_LINE:
            yield Violation(f"{at} takes the inter-broker version {name}", (op.index,), "an error", "accepted",
                            shape=("line" if name == NO_LINE else "step",))  # fmt: skip


# What is loaded


@impact("An old release reads a record that it does not know", "wrong data", "guards", "wrong-data", links=LINKS)
@loads("stored-records/unknown-versions-refused", "384-21")
def unknown_versions_refused(history: History) -> Iterator[Violation]:
    """A value in a version that the release does not know is refused; of a transaction it is skipped from 4.3.0 on."""
    at = release(history)
    for op in answered(history, "read-record"):
        message, version = op.step["message"], settings.version_of(settings.decoded(op.step["hex"]))
        highest = None if message == KEY else newest_readable(message, at)
        if highest is None or version is None or version <= highest:
            continue
        skips = message == TRANSACTION and at in releases(span("skips-unknown-transaction-values"))
        refused = isinstance(op.observation, Refused)
        found = "an error" if refused else "loaded" if payload(op).get("loaded") else "skipped"
        if found != (right := "skipped" if skips else "an error"):
            yield Violation(
                f"{message} in version {version}: {found} by {at}, whose newest is {highest}", (op.index,), right,
                found, shape=("refused" if refused else "loaded",),
            )  # fmt: skip


@impact("A partition of groups does not load", "refused peer", "versions", "unreadable", "lost-offsets", links=LINKS)
@loads("stored-records/known-versions-loaded", "384-21")
def known_versions_loaded(history: History) -> Iterator[Violation]:
    """A record of a version that the release knows is loaded, whichever release wrote it."""
    at = release(history)
    for op in answered(history, "read-record"):
        message = op.step["message"]
        version = VERSIONS.get((message, op.step["hex"]))
        highest = (3 if at >= settings.FEATURES_SINCE else 2) if message == KEY else newest_readable(message, at)
        if version is not None and highest is not None and version <= highest and not payload(op).get("loaded"):
            found = op.observation.error if isinstance(op.observation, Refused) else "skipped"
            yield Violation(
                f"{message} in version {version} is not loaded by {at}", (op.index,), "loaded", found,
                shape=("refused" if isinstance(op.observation, Refused) else "skipped",),
            )  # fmt: skip


@impact("A partition of groups does not load after a downgrade", "refused peer", "leniency", "unreadable",
        "lost-offsets", links=(*LINKS, "KIP-915"))  # fmt: skip
@loads("stored-records/unknown-keys", "384-21")
def unknown_keys(history: History) -> Iterator[Violation]:
    """A record whose key has a type that no release knows is refused up to 3.4.0, and skipped later."""
    skips = release(history) in releases(span("skips-unknown-group-keys"))
    right = "skipped" if skips else "an error"
    for op in answered(history, "read-record"):
        if op.step["message"] != KEY or VERSIONS.get((KEY, op.step["hex"])) != NEVER:
            continue
        refused = isinstance(op.observation, Refused)
        found = "an error" if refused else "loaded" if payload(op).get("loaded") else "skipped"
        if found != right:
            yield Violation(f"an unknown type of key is answered with {found}", (op.index,), right, found,
                            shape=(found.removeprefix("an "),))  # fmt: skip
