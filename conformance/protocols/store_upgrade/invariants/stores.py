"""Invariants of upgrades of stores: what their answers have to say, whichever path the operator takes.

They read the answers, and know what was put; none compares with the model.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant, steps_of
from kipcheck.conformance.protocols.store_upgrade.ops import IN_MEMORY, NEW, NO_TIMESTAMP, Logged
from kipcheck.conformance.protocols.store_upgrade.records import STAMP, for_new_store, unstamped
from kipcheck.conformance.protocols.store_upgrade.trace import (
    READS,
    SERVICES,
    AppStep,
    Write,
    breach,
    shown,
    text,
    trace,
)

PLACE = 0
CHANGELOG: Final = "store-upgrade/changelog"
STORES: Final = "store-upgrade/stores"
changelog = partial(invariant, role=Role.STORE, checks=(CHANGELOG,))
stores = partial(invariant, role=Role.STORE, checks=(STORES,))
LINKS: Final = ("KIP-258", "KAFKA-3522")
RUNS: Final = ("start-instance", "stop-instance", "kill-instance", "lose-directory", "rebalance-tasks")


def accepted(history: History, *verbs: str) -> Iterator[AppStep]:
    return (each for each in trace(history) if each.accepted and each.verb in verbs)


# The changelog, and what stores make of it


@impact("A record is converted wrongly", "wrong data", "versions", "wrong-data", links=LINKS)
@changelog("store-upgrade/converts", "258-02", "258-24", applies_to=steps_of("convert-record"))
def converts(history: History) -> Iterator[Violation]:
    """A record of the old format gets its timestamp in front, one of the new format stays, and others are refused."""
    for each in trace(history):
        step = each.request
        if step.verb != "convert-record":
            continue
        try:
            right = for_new_store(Logged("", step["value"], step["timestamp"], step["version"]))
        except (LookupError, ValueError):
            if each.accepted:
                yield breach(each, f"a record of version {step['version']} is converted", "refused", "unknown")
            continue
        kind = "tombstone" if step["value"] is None else f"version {step['version']}"
        if not each.accepted:
            yield breach(each, f"a {kind} is refused", "null" if right is None else right, kind)
        elif each.answer["value"] != right:
            found = each.answer["value"]
            yield breach(each, f"a {kind} is converted to {found}", "null" if right is None else right, kind)


@impact("A store upgrade loses or changes a record", "wrong data", "durability", "wrong-data", links=LINKS)
@changelog(
    "store-upgrade/reads-back", "258-03", "258-06", "258-14", "258-16", "258-20",
    applies_to=steps_of(*RUNS, *SERVICES, "append-record", "replay-changelog", "swap-directories"),
    needs=steps_of("query-store"),
)  # fmt: skip
def reads_back(history: History) -> Iterator[Violation]:
    """A key has the value that was written last, whichever store serves it and whatever the upgrade did in between."""
    for each in accepted(history, *READS):
        had, found = each.had, shown(each)
        right = None if had is None else had.contents
        if (found and found[0]) != (right and right[0]) and not (had is not None and had.by == "kept"):
            kind = "lost" if found is None else "found" if right is None else "misread"
            why = f"key {each.request['key']} reads as {text(found)}, and has {text(right)}"
            yield breach(each, why, text(right), kind, str(each.answer["store"]), at=None if had is None else had.at)


@impact("A store upgrade loses timestamps", "wrong data", "versions", "wrong-data", links=LINKS)
@changelog(
    "store-upgrade/timestamps", "258-14", "258-15", "258-16",
    applies_to=steps_of(*RUNS, *SERVICES, "append-record", "replay-changelog", "swap-directories"),
    needs=steps_of("query-store"),
)  # fmt: skip
def timestamps(history: History) -> Iterator[Violation]:
    """A new store has the timestamp of the record behind each value, whichever operator and format wrote it."""
    for each in accepted(history, *READS):
        had, found = each.had, shown(each)
        if had is None or had.contents is None or found is None:
            continue
        if each.answer["store"] == "old" and found[1] == NO_TIMESTAMP:
            continue  # the store does not know it
        if found[0] == had.contents[0] and found != had.contents and had.by != "kept":
            why = f"key {each.request['key']} reads as {text(found)}, and has {text(had.contents)}"
            by = had.by if had.by not in ("put", "processor") else "record"
            yield breach(each, why, text(had.contents), by, at=had.at)


@impact("A record is overwritten that should be kept", "wrong data", "order", "wrong-data", links=LINKS)
@changelog(
    "store-upgrade/absent-only", "258-16", applies_to=steps_of(*RUNS, *SERVICES, "append-record"),
    needs=steps_of("process-if-absent"),
)  # fmt: skip
def absent_only(history: History) -> Iterator[Violation]:
    """A put for an absent key leaves a key alone that has a value, and the proxy does as the store."""
    for each in accepted(history, *READS):
        had, found = each.had, shown(each)
        if had is None or had.by != "kept" or (found and found[0]) == (had.contents and had.contents[0]):
            continue
        why = f"key {each.request['key']} reads as {text(found)}, and has {text(had.contents)}"
        yield breach(each, why, text(had.contents), str(each.answer["store"]), at=had.at)


@impact("A converted record hides a newer one", "wrong data", "durability", "wrong-data", links=LINKS)
@changelog(
    "store-upgrade/written-back", "258-17",
    applies_to=steps_of("append-record", "process-record", "process-if-absent", "replay-changelog", "read-changelog"),
    needs=steps_of("read-changelog"),
)  # fmt: skip
def written_back(history: History) -> Iterator[Violation]:
    """A record that is written back is the newest of its key, once, with the version of the new format."""
    for each in accepted(history, "read-changelog"):
        owed, latest = list(each.before.writes.get(each.request["task"], ())), dict[str, tuple[Write, int]]()
        for at, row in enumerate(each.answer["records"]):
            write = _plain(Logged(**row))
            before = latest.get(row["key"])
            if owed and write == owed[0]:
                owed.pop(0)
            elif before is None or write != before[0]:
                yield breach(each, f"offset {at} has a value of key {row['key']} that is not the newest", "", "older")
            elif row["version"] != NEW:
                yield breach(each, f"offset {at} is written back without the new version", "version 2", "unmarked")
            elif before[1] == NEW:
                yield breach(each, f"offset {at} is written back a second time", "no such record", "twice")
            latest[row["key"]] = write, row["version"]
        if owed:
            yield breach(each, f"the changelog lacks key {owed[0][0]}", "the record that was written", "lost")


def _plain(record: Logged) -> Write:
    """Key, value and timestamp of a record, whatever its format; an unreadable value is taken as it is."""
    if record.version != NEW or record.value is None or len(record.value) < STAMP:
        return record.key, record.value, record.timestamp
    return record.key, *unstamped(record.value)


# What serves, and when


@impact("An upgrade in place interrupts the application", "refused peer", "versions", "stuck-upgrade", links=LINKS)
@stores(
    "store-upgrade/serves-on", "258-04", "258-06", "258-07", "258-12", "258-16", "258-21", "258-23", "258-26",
    applies_to=steps_of(*RUNS, *SERVICES, "append-record", "swap-directories"),
    needs=steps_of(*SERVICES),
)  # fmt: skip
def serves_on(history: History) -> Iterator[Violation]:
    """While upgrade.mode is in_place, the old store serves through the proxy, and the new one only once it is swapped.

    A store that has no unfinished upgrade serves in every mode.
    """
    for each in trace(history):
        swaps = each.before.live.get(each.request["instance"]) if each.verb == "swap-directories" else None
        if swaps is not None and each.accepted and swaps.mode == "in_place" and swaps.code == "builder":
            why = f"{each.request['instance']} swaps a store in the mode in_place"
            yield breach(each, why, "refused until the second bounce", "swapped")
        if each.verb not in SERVICES or each.owner is None or each.request["task"] in each.before.unreadable:
            continue
        name, member = each.owner
        task = each.request["task"]
        if each.accepted and member.mode == "in_place" and member.code == "builder":
            store = "new" if task == IN_MEMORY else each.before.stores.get((name, task), "old")
            if each.answer["store"] != store:
                yield breach(
                    each, f"the {each.answer['store']} store serves task {task}", f"the {store} store", "store"
                )
        elif not each.accepted and not each.before.waits(name, task):
            why = f"{name} does not serve task {task}, which has no unfinished upgrade"
            yield breach(each, why, "accepted", "refused", str(member.mode))


@impact("Stores are not prepared before the second bounce", "trivia", "versions", "stuck-upgrade", links=LINKS)
@stores("store-upgrade/prepares", "258-04", "258-21", applies_to=steps_of(*RUNS))
def prepares(history: History) -> Iterator[Violation]:
    """In the mode in_place an instance prepares a new store for each active and standby task that has an old one."""
    for each in accepted(history, "rebalance-tasks"):
        for name, member in each.known_after().live.items():
            if member.mode != "in_place" or member.code != "builder":
                continue
            right = {
                task for task in member.active | member.standby
                if task != IN_MEMORY and each.before.stores.get((name, task)) != "new"
            }  # fmt: skip
            if missing := sorted(right - member.upgrade):
                kind = "active" if missing[0] in member.active else "standby"
                yield breach(each, f"{name} prepares no store for its {kind} task {missing[0]}", "it does", kind)


@impact("A task is processed with half of its store", "wrong data", "order", "wrong-data", links=LINKS)
@stores(
    "store-upgrade/waits", "258-05", "258-07", "258-20", "258-26",
    applies_to=steps_of(*RUNS, *SERVICES, "append-record", "replay-changelog", "swap-directories"),
    needs=steps_of(*SERVICES),
)  # fmt: skip
def waits(history: History) -> Iterator[Violation]:
    """Outside of the mode in_place a task with an unfinished upgrade is not processed before its store is swapped.

    A store is swapped once it has the whole changelog.
    """
    for each in trace(history):
        if not each.accepted:
            continue
        if each.verb in SERVICES and each.owner is not None and each.before.waits(each.owner[0], each.request["task"]):
            store, task = each.answer["store"], each.request["task"]
            yield breach(each, f"task {task} is processed with an unfinished upgrade", "refused", "processed", store)
        elif each.verb == "swap-directories":
            place = each.request["instance"], each.request["task"]
            reached, end = each.before.positions.get(place, 0), len(each.before.writes.get(place[1], ()))
            if reached < end:
                yield breach(each, f"a store with {reached} of {end} records is swapped", "refused", "incomplete")


@impact(
    "An application that needs no upgrade is held up by one", "refused peer", "guards", "stuck-upgrade", links=LINKS
)
@stores("store-upgrade/nothing-needed", "258-12", applies_to=steps_of(*RUNS, *SERVICES))
def nothing_needed(history: History) -> Iterator[Violation]:
    """Stores in memory, and code without a change, have no upgrade; unchanged code keeps the old format."""
    for each in trace(history):
        if each.accepted and each.verb == "rebalance-tasks":
            for name, member in each.known_after().live.items():
                if IN_MEMORY in member.upgrade:
                    yield breach(each, f"{name} prepares a store that is in memory", "no upgrade", "memory")
                elif member.upgrade and member.code != "builder":
                    yield breach(each, f"{name} prepares a store for the code {member.code}", "no upgrade", member.code)
        elif each.accepted and each.verb in SERVICES and each.owner is not None:
            code, store = each.owner[1].code, each.answer["store"]
            right = "old" if code in ("old", "plain") else "new"
            if store != right and (code != "builder" or each.request["task"] == IN_MEMORY):
                yield breach(each, f"the {store} store serves the code {code}", f"the {right} store", "format", code)


@impact("A finished upgrade is done again", "refused peer", "order", "stuck-upgrade", links=LINKS)
@stores(
    "store-upgrade/finished", "258-23", applies_to=steps_of(*RUNS, *SERVICES, "replay-changelog", "swap-directories")
)
def finished(history: History) -> Iterator[Violation]:
    """After the swap the new store serves at once, in every mode, and nothing is prepared for it again."""
    for each in trace(history):
        if each.accepted and each.verb == "rebalance-tasks":
            for name, member in each.known_after().live.items():
                if again := sorted(task for task in member.upgrade if each.before.stores.get((name, task)) == "new"):
                    yield breach(each, f"{name} prepares task {again[0]} again", "no upgrade", "again")
        elif each.accepted and each.verb in SERVICES and each.owner is not None:
            name, member = each.owner
            is_new = each.before.stores.get((name, each.request["task"])) == "new"
            if is_new and member.code in ("builder", "timestamped") and each.answer["store"] == "old":
                yield breach(each, f"the old store serves task {each.request['task']}", "the new store", "served")


@impact("An upgrade reports that it is finished, and is not", "trivia", "guards", "misled-operator", links=LINKS)
@stores(
    "store-upgrade/progress", "258-22", grade=Grade.SHOULD, applies_to=steps_of(*RUNS, "replay-changelog"),
    needs=steps_of("replay-changelog"),
)  # fmt: skip
def progress(history: History) -> Iterator[Violation]:
    """While processing goes on, a preparation shows how far it is, and does not report that it is finished."""
    for each in accepted(history, "replay-changelog"):
        member, task = each.before.live.get(each.request["instance"]), each.request["task"]
        if member is None or task not in member.upgrade:
            continue
        if (member.mode == "in_place" or member.mirrored) and each.answer["finished"]:
            yield breach(each, "the preparation is finished while records are processed", "finished null", "finished")
        elif each.answer["position"] > each.answer["end"]:
            yield breach(each, "the preparation is behind the end of the changelog", "at most the end", "position")
        elif each.answer["end"] < len(each.before.writes.get(task, ())):
            why = f"the changelog ends at {each.answer['end']}"
            yield breach(each, why, f"{len(each.before.writes[task])}", "end")


@impact("A failed upgrade cannot be taken up again", "refused peer", "durability", "stuck-upgrade", links=LINKS)
@stores(
    "store-upgrade/taken-up", "258-05", "258-20",
    applies_to=steps_of(*RUNS, "append-record", "replay-changelog", "swap-directories"),
    needs=steps_of("replay-changelog", "swap-directories"),
)  # fmt: skip
def taken_up(history: History) -> Iterator[Violation]:
    """An instance that waits for its store can read the changelog, and swap the directories once it has read it all.

    A replay without a limit reads to the end, whichever store it fills.
    """
    for each in trace(history):
        if each.accepted and each.verb == "replay-changelog" and each.request["task"] not in each.before.unreadable:
            reached, end = each.answer["position"], len(each.before.writes.get(each.request["task"], ()))
            if each.request["most"] is None and reached < end:
                yield breach(each, f"the replay ends at {reached} of {end} records", "to the end", "behind")
        if each.accepted or each.verb not in ("replay-changelog", "swap-directories"):
            continue
        name, task = each.request["instance"], each.request["task"]
        member = each.before.live.get(name)
        if member is None or member.mirrored or not each.before.waits(name, task):
            continue
        if task not in member.active | member.standby:
            continue
        if task in each.before.unreadable:
            continue
        if each.verb == "replay-changelog":
            yield breach(each, f"{name} cannot read the changelog of task {task}", "accepted", "replay")
        elif each.before.positions.get((name, task), -1) >= len(each.before.writes.get(task, ())):
            yield breach(each, f"{name} cannot swap the complete store of task {task}", "accepted", "swap")
