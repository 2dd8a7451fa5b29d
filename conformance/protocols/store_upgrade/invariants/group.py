"""Invariants of the group during an upgrade of its stores: the mark of the roll-over, and who has which tasks."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant, steps_of
from kipcheck.conformance.protocols.store_upgrade.invariants.stores import CHANGELOG, LINKS, RUNS, STORES, accepted
from kipcheck.conformance.protocols.store_upgrade.ops import DOWNGRADE, INVALID_CONFIG, MODES, OLD, TASKS
from kipcheck.conformance.protocols.store_upgrade.subscription import read
from kipcheck.conformance.protocols.store_upgrade.trace import AppStep, Member, breach, trace
from kipcheck.conformance.wire.errors import Refused

PLACE = 1
GROUP: Final = "store-upgrade/group"
group = partial(invariant, role=Role.STORE, checks=(GROUP,))


@impact("An instance starts with a mode that does not exist", "refused peer", "guards", "misled-operator", links=LINKS)
@group("store-upgrade/modes", "258-18", "258-25", applies_to=steps_of("start-instance"))
def modes(history: History) -> Iterator[Violation]:
    """upgrade.mode is unset, in_place or roll_over; an instance with another value does not start."""
    for each in trace(history):
        if each.verb != "start-instance" or each.request["code"] == "old":
            continue
        mode = each.request["mode"]
        if each.accepted and mode not in MODES:
            yield breach(each, f"upgrade.mode is {mode!r}", INVALID_CONFIG, "accepted")
        elif each.error and each.error != DOWNGRADE and mode in MODES:
            yield breach(each, f"upgrade.mode {mode} is refused", "accepted", "refused", str(mode))


@impact("An instance or a group stops during an upgrade", "refused peer", "guards", "stuck-upgrade", links=LINKS)
@invariant(
    "store-upgrade/runs", "258-02", "258-03", "258-06", "258-07", "258-08", "258-09", "258-10", "258-11", "258-20",
    "258-22", "258-26", role=Role.STORE, checks=(CHANGELOG, STORES, GROUP),
    applies_to=steps_of(*RUNS, "append-record", "replay-changelog", "read-changelog"),
)  # fmt: skip
def runs(history: History) -> Iterator[Violation]:
    """An instance starts, stops, joins each rebalance, and reads the changelog of each of its tasks.

    One that does not run does none of this, and no instance reads past a record of an unknown version.
    """
    for each in trace(history):
        if each.error and _is_legal(each):
            yield breach(each, "the application refuses it", "accepted", each.verb)
        elif each.accepted and _is_impossible(each):
            yield breach(each, "the application accepts it", "refused", each.verb, "impossible")
        elif each.accepted and each.verb == "rebalance-tasks":
            shares = {share["instance"] for share in each.answer["shares"]}
            if left_out := sorted(each.before.live.keys() - shares):
                yield breach(each, f"{left_out[0]}, which runs, is not in the group", "in the group", "left out")


def _is_impossible(each: AppStep) -> bool:
    """Whether the instance does not run, or a record of the changelog has a version that it does not know."""
    step, known = each.request, each.before
    match each.verb:
        case "stop-instance" | "kill-instance":
            return step["instance"] not in known.live
        case "lose-directory":
            return step["instance"] in known.live
        case "replay-changelog":
            past = step["task"] in known.unreadable and step["most"] is None
            return past or step["instance"] not in known.live
    return False


def _is_legal(each: AppStep) -> bool:
    """Whether the draft has no reason to refuse the step."""
    step, known = each.request, each.before
    match each.verb:
        case "start-instance":
            return step["code"] != "old" and step["mode"] in MODES
        case "stop-instance":
            return step["instance"] in known.live
        case "kill-instance":
            return step["instance"] in known.live and step["swapping"] is None
        case "lose-directory":
            return step["instance"] not in known.live
        case "rebalance-tasks":
            return bool(known.live)
        case "read-changelog":
            return True
        case "append-record":
            return bool(step["version"] == OLD)
        case "replay-changelog" if (member := known.live.get(step["instance"])) is not None:
            return step["task"] in member.active | member.standby and step["task"] not in known.unreadable
    return False


@impact("A leader takes a new instance for an old one", "wrong data", "versions", "stuck-upgrade", links=LINKS)
@group("store-upgrade/marked", "258-08", "258-19", "258-25", applies_to=steps_of(*RUNS))
def marked(history: History) -> Iterator[Violation]:
    """A roll-over instance says so in each subscription, whatever its version, and no other instance does."""
    for each in accepted(history, "rebalance-tasks"):
        for share in each.answer["shares"]:
            member = each.before.live.get(share["instance"])
            for round, text in enumerate(share["subscriptions"]):
                try:
                    mark = read(text).mark
                except Refused:
                    yield breach(each, f"{share['instance']} sends no subscription", "a subscription", "unreadable")
                    continue
                if member is not None and mark is not member.marked:
                    why = f"{share['instance']} sends a subscription {'with' if mark else 'without'} the mark"
                    expected = "with it" if member.marked else "without it"
                    yield breach(each, why, expected, expected, "first" if round == 0 else "probing")


def _members(each: AppStep) -> dict[str, Member]:
    """The instances that run, with what they got."""
    return dict(each.known_after().live)


@impact("New instances take over before their stores are ready", "wrong data", "order", "wrong-data", links=LINKS)
@group("store-upgrade/mirrored", "258-09", "258-19", applies_to=steps_of(*RUNS))
def mirrored(history: History) -> Iterator[Violation]:
    """While an old instance lives, roll-over instances have no active task, and restore those of the old ones."""
    for each in accepted(history, "rebalance-tasks"):
        members = _members(each)
        plain = {name: one for name, one in members.items() if not one.marked}
        new = {name: one for name, one in members.items() if one.marked}
        if not plain or not new or any(one.code == "old" for one in plain.values()):
            continue  # a jar from before KIP-258 does not know the mark
        for name, one in new.items():
            if one.active:
                yield breach(each, f"{name} processes task {min(one.active)} beside old instances", "none", "active")
        owed = {task for one in plain.values() for task in one.active | one.standby}
        if missing := sorted(owed - {task for one in new.values() for task in one.standby | one.upgrade}):
            yield breach(each, f"no roll-over instance restores task {missing[0]}", "each task", "not restored")
        elif len(new) >= len(plain):
            for task in sorted(owed):
                old = sum(task in one.active | one.standby for one in plain.values())
                if sum(task in one.standby | one.upgrade for one in new.values()) < old:
                    yield breach(each, f"task {task} is not restored as often as old instances have it", f"{old} times",
                                 "not mirrored")  # fmt: skip


@impact("A task is processed twice, or not at all", "wrong data", "order", "wrong-data", links=LINKS)
@group("store-upgrade/one-owner", "258-10", "258-19", applies_to=steps_of(*RUNS))
def one_owner(history: History) -> Iterator[Violation]:
    """After each rebalance every task is active on one live instance, of the roll-over if there are no others."""
    for each in accepted(history, "rebalance-tasks"):
        members = _members(each)
        owned = [(task, name) for name, one in members.items() for task in sorted(one.active)]
        for task in TASKS:
            owners = [name for one, name in owned if one == task]
            if len(owners) != 1:
                found = " and ".join(owners) or "no instance"
                yield breach(each, f"task {task} is active on {found}", "one instance", str(min(len(owners), 2)))
        listed = [each for each in each.answer["shares"] if each["instance"] not in members]
        if listed:
            yield breach(each, f"{listed[0]['instance']}, which does not run, is in the group", "left out", "dead")


@impact("Each stop of an old instance moves its tasks", "trivia", "order", "unfair-load", links=LINKS)
@group("store-upgrade/no-leave", "258-11", grade=Grade.SHOULD, applies_to=steps_of("stop-instance"))
def no_leave(history: History) -> Iterator[Violation]:
    """An instance that stops sends no LeaveGroup request: stops within the session timeout are one rebalance."""
    for each in accepted(history, "stop-instance"):
        if each.answer["left"]:
            yield breach(each, f"{each.request['instance']} leaves the group when it stops", "it does not", "left")
