"""Invariants of the descriptions of streams groups."""

from collections import Counter
from collections.abc import Iterator

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.streams_group import model
from kipcheck.conformance.protocols.streams_group.described import differs, lists_differ
from kipcheck.conformance.protocols.streams_group.invariants import (
    DESCRIBE,
    HEARTBEAT,
    asks,
    described,
    impact,
    rule,
)
from kipcheck.conformance.protocols.streams_group.trace import GroupStep, describes, group_steps

PLACE = 30


@impact("Tools show other members than the group has", "trivia", "answers", "misled-operator")
@described("streams-group/describes-members", "grp-145")
def describes_members(history: History) -> Iterator[Violation]:
    """A describe has the members of the group, each with the epochs and tasks of the last answer to it."""
    for step in describes(history):
        found = {member.client: member for member in step.described.members}
        over = step.before.config.session_ms
        ended = {client.name for client in step.before.members if client.away and client.silent_ms >= over}
        possible = {client.name for client in step.before.members} - ended
        sure = [client for client in step.before.members if client.is_certain_member]
        names = sorted({client.name for client in sure} | (possible & found.keys()))
        yield from lists_differ(step, "the members", names, sorted(found), "members")
        for client in sure:
            member = found.get(client.name)
            if member is None:
                continue
            for what, expected, observed in (
                ("epoch", client.memory.epoch, member.epoch),
                ("topology-epoch", client.topology_epoch, member.topology_epoch),
                ("tasks", client.memory.given, member.tasks),
                ("standby", client.standbys.given, member.standby),
            ):
                yield from differs(step, f"{what} of {client.name}", expected, observed, what)


@impact("Tools show another topology than the group has", "trivia", "answers", "misled-operator")
@described("streams-group/describes-topology", "grp-146")
def describes_topology(history: History) -> Iterator[Violation]:
    """A describe has the topology, with its epoch, with which the first member joined."""
    for step in describes(history):
        yield from differs(step, "the topology", step.before.topology, step.described.topology, "topology")
        yield from differs(
            step, "the epoch of the topology", step.before.topology_epoch, step.described.topology_epoch, "epoch"
        )


@impact("An abandoned group looks alive, or a live one abandoned", "trivia", "answers", "misled-operator")
@described("streams-group/empty-without-members", "grp-147")
def empty_without_members(history: History) -> Iterator[Violation]:
    """The state of a group is Empty when all members have left, and is not while it has members."""
    for step in describes(history):
        state, known = step.described.state, step.before
        if not known.members:
            yield from differs(step, "the state of a group without members", model.EMPTY, state, "left")
        elif any(client.is_certain_member for client in known.members) and state == model.EMPTY:
            yield from differs(step, "the state of a group with members", f"not {model.EMPTY}", state, "alive")


@impact("The epoch of a group falls", "double processing", "epochs", "stale-view")
@described("streams-group/group-epoch-rises", "grp-148")
def group_epoch_rises(history: History) -> Iterator[Violation]:
    """The epoch of the group never falls, and is at least that of its assignment; that is at least each member's."""
    for step in describes(history):
        found, last = step.described, step.before.highest
        if found.epoch < last:
            yield from differs(step, "the group epoch", f"{last} or above", found.epoch, "falls")
        elif found.assignment_epoch > found.epoch:
            yield from differs(step, "the assignment epoch", f"at most {found.epoch}", found.assignment_epoch, "target")
        for member in found.members:
            if member.epoch > found.assignment_epoch:
                expected = f"at most {found.assignment_epoch}"
                yield from differs(step, f"the epoch of {member.client}", expected, member.epoch, "member")


@impact("An abandoned group waits for an assignment", "trivia", "answers", "misled-operator", links=("KAFKA-20442",))
@described("streams-group/empty-owes-nothing", "grp-402", grade=Grade.SHOULD)
def empty_owes_nothing(history: History) -> Iterator[Violation]:
    """The assignment epoch of a group whose members have all left is that of the group."""
    for step in describes(history):
        found = step.described
        if not step.before.members and found.state == model.EMPTY:
            yield from differs(step, "the assignment epoch", found.epoch, found.assignment_epoch, "left")


@impact("A task is not run by any member of a stable group", "stuck group", "balance", "unread-partition")
@described("streams-group/stable-is-complete", "grp-149")
def stable_is_complete(history: History) -> Iterator[Violation]:
    """In state Stable each task has one active owner, all members have their targets, and all epochs are the same.

    Each task with a changelog has so many standby tasks as are configured, if there are enough other members.
    """
    for step in describes(history):
        found = step.described
        if found.state != model.STABLE:
            continue
        owned = Counter(task for member in found.members for task in member.tasks)
        yield from lists_differ(step, "the owned tasks", sorted(step.before.tasks), sorted(owned.elements()), "tasks")
        if step.before.standbys is None:
            yield from _other_standbys(step, step.before.config.standbys)
        for member in found.members:
            pairs = ("", member.target, member.tasks), ("standby ", member.standby_target, member.standby)
            for kind, target, owns in pairs:
                name = f"the {kind}tasks of {member.client}"
                yield from lists_differ(step, name, sorted(target), sorted(owns), f"{kind}target tasks")
            yield from differs(step, f"the epoch of {member.client}", found.epoch, member.epoch, "epoch")


def _other_standbys(step: GroupStep, copies: int) -> Iterator[Violation]:
    """Where each task with a changelog has not so many standby tasks, or as many as there are other members."""
    found, known = step.described, step.before
    each = range(min(copies, max(len(found.members) - 1, 0)))
    owed = sorted(task for task in known.tasks for _ in each if known.has_changelog(task))
    standby = Counter(task for member in found.members for task in member.standby)
    yield from lists_differ(step, "the standby tasks", owed, sorted(standby.elements()), "standbys")


@impact("The settings of a group have no effect while it has members", "trivia", "balance", "misled-operator",
        "needless-move")  # fmt: skip
@described("streams-group/follows-its-settings", "grp-363")
def follows_its_settings(history: History) -> Iterator[Violation]:
    """After streams.num.standby.replicas of a group was set, its next stable assignment has so many standby tasks."""
    for step in describes(history):
        copies = step.before.standbys
        if copies is not None and step.before.is_set and step.described.state == model.STABLE:
            yield from _other_standbys(step, copies)


@impact("A member that still runs tasks of others looks up to date", "trivia", "epochs", "stale-view")
@described("streams-group/revokes-before-its-epoch", "grp-151", grade=Grade.SHOULD)
def revokes_before_its_epoch(history: History) -> Iterator[Violation]:
    """While a member has tasks to revoke, its epoch is below the assignment epoch."""
    for step in describes(history):
        found = {member.client: member for member in step.described.members}
        for client in step.before.members:
            member = found.get(client.name) if client.is_certain_member and client.unrevoked else None
            if member is not None and member.epoch >= step.described.assignment_epoch:
                expected = f"below {step.described.assignment_epoch}"
                yield from differs(
                    step, f"the epoch of {client.name}, which has to revoke tasks", expected, member.epoch
                )


@impact("A group rebalances although nothing has changed", "trivia", "epochs", "needless-move")
@described("streams-group/rests", "grp-265")
def rests(history: History) -> Iterator[Violation]:
    """While nothing changes a group that is Stable stays so, in its epoch, and its members keep epoch and tasks."""
    for step in group_steps(history):
        epoch = step.before.stable
        if epoch is None or not step.accepted:
            continue
        if step.verb == "streams-group-describe":
            found = step.described
            yield from differs(step, "the epoch of a group in which nothing has changed", epoch, found.epoch, "group")
            yield from differs(
                step, "the state of a group in which nothing has changed", model.STABLE, found.state, "state"
            )
        elif step.verb == HEARTBEAT and step.is_quiet:
            own, what = step.client, f"of {step.client.name}, for which nothing has changed"
            yield from differs(step, f"the epoch {what}", epoch, step.answered_epoch, "member")
            pairs = ("", own.memory.given, step.given), ("standby ", own.standbys.given, step.given_standby)
            for kind, had, given in pairs:
                if given is not None:
                    yield from lists_differ(step, f"the {kind}tasks {what}", sorted(had), sorted(given), f"{kind}tasks")


@impact("A group without its topics looks ready", "stuck group", "answers", "misled-operator")
@described("streams-group/not-ready-without-topics", "grp-133")
def not_ready_without_topics(history: History) -> Iterator[Violation]:
    """The state of a group with members is NotReady while a source topic does not exist."""
    for step in describes(history):
        known = step.before
        if not known.tasks and any(client.is_certain_member for client in known.members):
            yield from differs(step, "the state of a group without its topics", model.NOT_READY, step.described.state)


@impact("Tools cannot show a group", "trivia", "answers", "misled-operator")
@rule("streams-group/describes", "grp-145", checks=(DESCRIBE,), applies_to=asks)
def describes_groups(history: History) -> Iterator[Violation]:
    """A describe of a streams group with members is answered."""
    for step in group_steps(history):
        describes_one = step.verb == "streams-group-describe" and step.before.form == "streams"
        sure = any(client.is_certain_member for client in step.before.members)
        if describes_one and sure and not step.accepted and step.error not in terms.UNAVAILABLE:
            yield Violation("the group has members", (step.op.index,), "a description", f"refused: {step.error}")
