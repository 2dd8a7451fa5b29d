"""Invariants of a coordinator of KIP-1071's streams groups.

Each invariant reads requests and their answers, as ``trace.py`` understands them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.declare.invariant import impact as any_impact, invariant
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
from kipcheck.conformance.protocols.reconciled import log_laws, terms
from kipcheck.conformance.protocols.streams_group import model
from kipcheck.conformance.protocols.streams_group.described import differs, lists_differ
from kipcheck.conformance.protocols.streams_group.legality import faults, is_legal, other_topology
from kipcheck.conformance.protocols.streams_group.model import is_invalid
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS, REBALANCE_MS, Consume
from kipcheck.conformance.protocols.streams_group.topology import WRONG
from kipcheck.conformance.protocols.streams_group.trace import Group, GroupStep, beats, describes, group_steps

TASKS: Final = "streams-group/tasks"
EPOCHS: Final = "streams-group/epochs"
DESCRIBE: Final = "streams-group/describe"
RECORDS: Final = "streams-group/records"
HEARTBEAT: Final = "streams-group-heartbeat"
FULL: Final = terms.GROUP_MAX_SIZE_REACHED
impact = partial(any_impact, links=("KIP-1071",))


def sends(case: Case, step: Step) -> bool:
    return step.verb == HEARTBEAT


def asks(case: Case, step: Step) -> bool:
    return step.verb != "streams-group-elapse"


rule = partial(invariant, role=Role.COORDINATOR, unsure=is_in_doubt)
tasks = partial(rule, checks=(TASKS,), after=(HEARTBEAT,), applies_to=sends)
epochs = partial(rule, checks=(EPOCHS,), after=(HEARTBEAT,), applies_to=sends)
records = partial(rule, checks=(RECORDS,))
described = partial(rule, checks=(DESCRIBE,), after=(HEARTBEAT,), applies_to=asks)


def breach(step: GroupStep, why: str, expected: str, *shape: str, at: Iterable[int] = ()) -> Violation:
    observed = f"refused: {step.error}" if step.error else f"epoch {step.answered_epoch}"
    return Violation(why, (*at, step.op.index), expected, observed, shape=shape)


# Tasks


def taken(step: GroupStep, revoked: bool) -> Iterator[Violation]:
    """Tasks that the answer assigns though another client may still run them. ``revoked``: that was asked to revoke."""
    for task in step.given or ():
        for other in step.before.clients.values():
            if other.name == step.client.name or task not in other.may_still_own:
                continue
            if revoked is (task in other.unrevoked):
                name = partition_name(task)
                had = f"{name} is with {other.name}"
                why = f"{had}, which has not confirmed its revocation; " if revoked else f"{had}; "
                expected = f"{name} to no other member yet"
                yield breach(step, f"{why}now {step.client.name} gets it", expected, at=[other.may_still_own[task]])


@impact("A task has two active owners", "double processing", "ownership", "double-processing")
@tasks("streams-group/one-owner", "grp-130")
def one_owner(history: History) -> Iterator[Violation]:
    """An active task goes to no other member while its owner was not asked to revoke it, and has not left."""
    for step in beats(history):
        yield from taken(step, revoked=False)


@impact("A task is given away before its owner has stopped it", "double processing", "ownership", "double-processing")
@tasks("streams-group/revoked-first", "grp-131")
def revoked_first(history: History) -> Iterator[Violation]:
    """A task that a member was asked to revoke goes to another one only after a heartbeat without it, or its end."""
    for step in beats(history):
        yield from taken(step, revoked=True)


def asked(step: GroupStep) -> Group:
    """The group as the coordinator sees it when it answers: with a topology that the member brings."""
    return replace(step.known_after(), created=step.before.created)


@impact("A member gets tasks that do not exist", "wrong data", "ownership", "wrong-data")
@tasks("streams-group/known-tasks", "grp-132")
def known_tasks(history: History) -> Iterator[Violation]:
    """An assigned task is of a subtopology of the group's topology, and of a partition of its source topic."""
    for step in beats(history):
        after = asked(step)
        for task in sorted({*(step.given or ())} - {*after.tasks}):
            kind = "partition" if task[0] in after.topology and task[0] in after.sizes else "subtopology"
            yield breach(step, f"{step.client.name} gets {partition_name(task)}", "tasks of the topology", kind)


@impact("A member that joins again has no tasks", "stuck group", "answers", "unread-partition")
@tasks("streams-group/joins-get-tasks", "grp-150")
def joins_get_tasks(history: History) -> Iterator[Violation]:
    """The answer to a join has the active tasks of the member, also if it was there before."""
    for step in beats(history):
        if step.accepted and step.epoch == 0 and step.given is None:
            yield breach(step, f"{step.client.name} joins", "active tasks, which may be none", "omitted")


@impact("A member does not learn why it gets no task", "stuck group", "answers", "stuck-group")
@tasks("streams-group/missing-topics-reported", "grp-133")
def missing_topics_reported(history: History) -> Iterator[Violation]:
    """The status of an answer says MISSING_SOURCE_TOPICS if a source topic does not exist, and only then."""
    for step in beats(history):
        if not step.accepted or step.epoch in terms.LEFT:
            continue
        missing = step.known_after().missing
        reported = model.MISSING_SOURCE_TOPICS in step.statuses
        if bool(missing) != reported:
            why = f"{', '.join(missing) or 'no source topic'} is missing; the status is {step.statuses}"
            yield breach(
                step, why, "the status names it" if missing else "no such status", "hidden" if missing else "made up"
            )


@impact("A member does not learn why it gets no task", "stuck group", "answers", "stuck-group")
@tasks("streams-group/wrong-partitions-reported", "grp-156")
def wrong_partitions_reported(history: History) -> Iterator[Violation]:
    """The status of an answer says INCORRECTLY_PARTITIONED_TOPICS if a changelog has a wrong number of partitions.

    A source topic that is missing comes first. Otherwise the status does not say so.
    """
    for step in answered(history):
        after = step.known_after()
        wrong = after.is_wrong and not after.missing
        if wrong is not (model.INCORRECTLY_PARTITIONED_TOPICS in step.statuses):
            why = f"the changelog of {WRONG} has {'a wrong number of' if wrong else 'no'} partitions"
            expected = "the status names it" if wrong else "no such status"
            yield breach(step, f"{why}; the status is {step.statuses}", expected, "hidden" if wrong else "made up")


@impact("Internal topics are not created, and no task runs", "stuck group", "answers", "stuck-group")
@tasks("streams-group/internal-topics-created", "grp-157")
def internal_topics_created(history: History) -> Iterator[Violation]:
    """While internal topics are missing, a status says so, and the broker creates them, as large as tasks need."""
    for step in answered(history):
        owed = asked(step).uncreated
        if dict(step.created) != dict(owed):
            why = f"of the internal topics {_named(owed)} are missing"
            kind = "none" if not step.created else "others" if {*step.created} != {*owed} else "partitions"
            yield Violation(why, (step.op.index,), _named(owed), _named(step.created), shape=("topics", kind))
        if bool(owed) is not (model.MISSING_INTERNAL_TOPICS in step.statuses):
            why = f"of the internal topics {_named(owed)} are missing; the status is {step.statuses}"
            expected = "the status says so" if owed else "no such status"
            yield breach(step, why, expected, "status", "hidden" if owed else "made up")


def _named(topics: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({size})" for name, size in sorted(topics.items())) or "none"


def answered(history: History) -> Iterator[GroupStep]:
    """The accepted heartbeats of clients that do not leave."""
    return (step for step in beats(history) if step.accepted and step.epoch not in terms.LEFT)


@impact("A static member that restarts loses its tasks", "trivia", "ownership", "needless-move",
        links=("KIP-345", "KIP-1071"))  # fmt: skip
@tasks("streams-group/away-keeps-tasks", "grp-161")
def away_keeps_tasks(history: History) -> Iterator[Violation]:
    """A static member that left for a while keeps its tasks until a process joins as it, or its session ends."""
    for step in beats(history):
        joined = step.before.instances.get(step.beat.instance or "") if step.epoch == 0 else None
        for other in step.before.clients.values():
            if other.name in (step.client.name, joined):
                continue
            for task in sorted({*(step.given or ())} & {*other.kept}):
                why = f"{partition_name(task)} is kept for {other.name}, which left for a while"
                yield breach(
                    step, f"{why}; now {step.client.name} gets it", f"{partition_name(task)} to no other member"
                )


# Standby tasks


@impact("A standby task protects against nothing", "stuck group", "ownership", "needless-move")
@tasks("streams-group/standby-elsewhere", "grp-158")
def standby_elsewhere(history: History) -> Iterator[Violation]:
    """A member does not get the standby of a task that it runs; standbys are of tasks that have a changelog."""
    for step in answered(history):
        for task in step.given_standby or ():
            if task in (step.given or ()):
                why = f"{step.client.name} gets {partition_name(task)} as an active and as a standby task"
                yield breach(step, why, "one of both", "active")
            elif task not in asked(step).tasks or not asked(step).has_changelog(task):
                why = f"{step.client.name} gets {partition_name(task)} as a standby task"
                yield breach(step, why, "standbys of tasks with a changelog", "no changelog")


@impact("Members warm up tasks that they never run", "trivia", "ownership", "needless-move")
@tasks("streams-group/no-warm-up-unasked", "grp-159", grade=Grade.INFO)
def no_warm_up_unasked(history: History) -> Iterator[Violation]:
    """A member that reports no offsets of its tasks gets no warm-up task."""
    for step in answered(history):
        for task in step.given_warmup or ():
            yield breach(step, f"{step.client.name} gets {partition_name(task)} to warm up", "no warm-up task")


# Epochs and errors


@impact("The epoch of a member falls", "double processing", "epochs", "stale-view")
@epochs("streams-group/epochs-rise", "grp-134")
def epochs_rise(history: History) -> Iterator[Violation]:
    """The epoch of a member never falls while it is in the group."""
    for step in beats(history):
        last = step.client.memory.epoch
        if (
            step.accepted
            and step.epoch not in terms.LEFT
            and step.client.is_certain_member
            and step.answered_epoch < last
        ):
            why = f"{step.client.name} had epoch {last}; now it gets {step.answered_epoch}"
            yield breach(step, why, f"epoch {last} or above")


@impact("A member that leaves gets an unexpected epoch", "trivia", "epochs", "stale-view")
@epochs("streams-group/answers-leaving", "grp-135", grade=Grade.SHOULD)
def answers_leaving(history: History) -> Iterator[Violation]:
    """A heartbeat that leaves is answered with epoch -1; that of a static member that leaves for a while with -2."""
    for step in beats(history):
        if step.accepted and step.epoch in terms.LEFT and step.answered_epoch != step.epoch:
            yield breach(step, f"{step.client.name} left and got epoch {step.answered_epoch}", f"epoch {step.epoch}")


def _may_be_a_repetition(step: GroupStep) -> bool:
    """Is it the previous epoch, with no more tasks than the last response gave, as after a lost response?"""
    owned, client = step.owned, step.client
    if step.epoch != client.previous or owned.active is None:
        return False
    standby = {*(owned.standby or ())} <= {*client.standbys.given}
    return standby and {*owned.active} <= {*client.memory.given}


@impact("A member with an outdated epoch is not fenced", "double processing", "epochs", "double-processing",
        "stale-view")  # fmt: skip
@epochs("streams-group/stale-epoch-fenced", "grp-136")
def stale_epoch_fenced(history: History) -> Iterator[Violation]:
    """An epoch above the member's, or below it and no repetition, is refused as FENCED_MEMBER_EPOCH."""
    for step in beats(history):
        last = step.client.memory.epoch
        if not step.client.is_certain_member or step.epoch <= 0 or step.epoch == last or faults(step):
            continue
        if step.error != terms.FENCED_MEMBER_EPOCH and not _may_be_a_repetition(step):
            why = f"{step.client.name} has epoch {last}, and sends {step.epoch}"
            yield breach(step, why, f"refused: {terms.FENCED_MEMBER_EPOCH}", "newer" if step.epoch > last else "stale")


@impact("A member is fenced because a response was lost", "trivia", "guards", "needless-move")
@epochs("streams-group/repetition-taken", "grp-137", grade=Grade.SHOULD)
def repetition_taken(history: History) -> Iterator[Violation]:
    """After a lost response a member may repeat its previous epoch, if it owns no more tasks than it was assigned."""
    for step in beats(history):
        unused = step.client.is_certain_member and step.client.unused
        if unused and step.epoch > 0 and step.error == terms.FENCED_MEMBER_EPOCH and _may_be_a_repetition(step):
            why = f"{step.client.name} repeats epoch {step.epoch}, which it had before {step.client.memory.epoch}"
            yield breach(step, why, "accepted")


@impact("A client that is no member goes on as one", "stuck group", "guards", "stuck-group")
@epochs("streams-group/strangers-refused", "grp-138")
def strangers_refused(history: History) -> Iterator[Violation]:
    """A heartbeat of a client that is no member, and does not join, is refused as UNKNOWN_MEMBER_ID."""
    for step in beats(history):
        strange = step.before.form == "streams" and step.epoch != 0 and not step.client.member and not faults(step)
        if strange and step.error != terms.UNKNOWN_MEMBER_ID:
            why = f"{step.client.name} is no member, and sends epoch {step.epoch}"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "accepted" if step.accepted else step.error)


@impact("An invalid heartbeat is accepted, or refused with another error", "trivia", "error-codes", "misled-operator")
@rule("streams-group/invalid-refused", "grp-139", checks=(EPOCHS,), applies_to=sends)
def invalid_refused(history: History) -> Iterator[Violation]:
    """An invalid heartbeat is refused as INVALID_REQUEST; an invalid topology as STREAMS_INVALID_TOPOLOGY."""
    for step in beats(history):
        expected = faults(step)
        known = step.before.form == "streams" and step.before.tasks and step.client.is_certain_member
        if not expected and known and step.beat.flaw == "task" and step.epoch == step.client.memory.epoch:
            expected = (terms.INVALID_REQUEST,)
        if expected and step.error not in expected:
            why = (
                f"{step.client.name} sends epoch {step.epoch}, {step.beat.flaw or 'without a topology where it joins'}"
            )
            kind = "accepted" if step.accepted else "error"
            yield breach(step, why, f"refused: {expected[0]}", kind, step.beat.flaw or "plain")


@impact("A group of another type is used as a streams group", "wrong data", "guards", "wrong-data")
@rule("streams-group/one-type", "grp-140", checks=(EPOCHS,), applies_to=asks)
def one_type(history: History) -> Iterator[Violation]:
    """A group has one type, or is not there: requests of another type are refused as GROUP_ID_NOT_FOUND."""
    for step in group_steps(history):
        form, consumes = step.before.form, isinstance(step.request, Consume)
        wrong = form == "streams" if consumes else form == "consumer"
        absent = form == "none" and not consumes and (step.verb != HEARTBEAT or step.epoch != 0)
        if not (wrong or absent) or step.error == terms.GROUP_ID_NOT_FOUND or (step.verb == HEARTBEAT and faults(step)):
            continue
        sent = step.verb.removeprefix("streams-group-")
        why = f"{sent}, and the group is {'not there' if absent else f'a {form} group'}"
        yield breach(step, why, f"refused: {terms.GROUP_ID_NOT_FOUND}", sent, form)


@impact("A silent member keeps its tasks, or a live one loses them", "stuck group", "guards", "unread-partition",
        "needless-move")  # fmt: skip
@rule("streams-group/silent-are-removed", "grp-141", checks=(EPOCHS,), after=(HEARTBEAT,))
def silent_are_removed(history: History) -> Iterator[Violation]:
    """A member that was silent for its session timeout is unknown; one that was not, and need not revoke, is known."""
    for step in beats(history):
        client = step.client
        if not client.member or step.epoch == 0 or faults(step):
            continue
        if step.accepted and client.silent_ms >= step.before.config.session_ms:
            why = f"{client.name} was silent for {client.silent_ms} ms, and is accepted as a member"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "never removed")
        elif step.error == terms.UNKNOWN_MEMBER_ID and client.is_certain_member and not client.revoking_ms:
            why = f"{client.name} was silent for only {client.silent_ms} ms, and is unknown"
            yield breach(step, why, "accepted", "removed too early")


@impact("A member loses its tasks while it closes them", "double processing", "guards", "double-processing",
        "needless-move")  # fmt: skip
@rule("streams-group/revokers-have-time", "grp-269", checks=(EPOCHS,), after=(HEARTBEAT,))
def revokers_have_time(history: History) -> Iterator[Violation]:
    """A member that has to revoke tasks, and sends heartbeats, stays a member for its rebalance timeout."""
    for step in beats(history):
        if step.is_cut_short and step.beat.instance is None:
            why = f"{step.client.name} was asked to revoke tasks {step.client.revoking_ms} ms ago, and is unknown"
            yield breach(step, why, f"a member for {REBALANCE_MS} ms", "removed too early")


@impact("Two processes act as one static member", "double processing", "identity", "double-processing",
        links=("KIP-345", "KIP-1071"))  # fmt: skip
@epochs("streams-group/one-member-an-instance", "grp-160")
def one_member_an_instance(history: History) -> Iterator[Violation]:
    """While a member has an instance id, and has not left, no other client is accepted with it."""
    for step in beats(history):
        holder = step.before.clients.get(step.before.instances.get(step.beat.instance or "", ""))
        if holder is not None and holder.is_certain_member and holder.name != step.client.name and step.accepted:
            expected = terms.UNRELEASED_INSTANCE_ID if step.epoch == 0 else terms.FENCED_INSTANCE_ID
            why = f"{step.client.name} sends instance id {step.beat.instance}, which {holder.name} has"
            yield breach(step, why, f"refused: {expected}", "joins" if step.epoch == 0 else "stays")


@impact("A streams group has more members than the operator allows", "trivia", "guards", "misled-operator")
@epochs("streams-group/size-limit", "grp-266")
def size_limit(history: History) -> Iterator[Violation]:
    """A streams group takes no new member beyond ``group.streams.max.size``."""
    for step in beats(history):
        sure = [client for client in step.before.members if client.is_certain_member]
        most, own = step.before.config.max_size, step.client
        is_new = step.epoch == 0 and not (own.member or own.away) and step.beat.instance not in step.before.instances
        if step.accepted and is_new and len(sure) >= most:
            why = f"the group has {len(sure)} members, and {own.name} joins"
            yield breach(step, why, f"refused: {FULL}", "too many")


# Topologies


@impact("Members run different topologies, and do not know it", "wrong data", "epochs", "stale-view")
@epochs("streams-group/stale-topology-reported", "grp-142")
def stale_topology_reported(history: History) -> Iterator[Violation]:
    """A status of an answer is STALE_TOPOLOGY if the member's topology epoch is below the group's, and only then."""
    for step in beats(history):
        if not step.accepted or step.epoch in terms.LEFT:
            continue
        after = step.known_after()
        own, group = after.clients[step.client.name].topology_epoch, after.topology_epoch
        if (own < group) is not (model.STALE_TOPOLOGY in step.statuses):
            why = f"{step.client.name} has topology epoch {own}, the group {group}; the status is {step.statuses}"
            expected = f"the status is {model.STALE_TOPOLOGY}" if own < group else "no such status"
            yield breach(step, why, expected, "hidden" if own < group else "made up")


@impact("Members run different topologies, and do not know it", "wrong data", "guards", "wrong-data",
        links=("KIP-1071", "KAFKA-21370"))  # fmt: skip
@epochs("streams-group/one-topology", "grp-143")
def one_topology(history: History) -> Iterator[Violation]:
    """A member does not join with another topology of the same epoch."""
    for step in beats(history):
        same_epoch = other_topology(step) and step.beat.topology_epoch == step.before.topology_epoch
        if same_epoch and step.error not in (terms.INVALID_REQUEST, model.STREAMS_INVALID_TOPOLOGY_EPOCH, FULL):
            why = f"{step.client.name} joins with {step.beat.topology}, the group has {step.before.topology}"
            yield breach(step, why, f"refused: {terms.INVALID_REQUEST} or {model.STREAMS_INVALID_TOPOLOGY_EPOCH}")


@impact("A topology is updated, or refused in another way", "trivia", "guards", "misled-operator",
        links=("KIP-1071", "KAFKA-20170"))  # fmt: skip
@epochs("streams-group/no-update-yet", "grp-144", grade=Grade.INFO)
def no_update_yet(history: History) -> Iterator[Violation]:
    """A join with a newer topology epoch is refused as INVALID_REQUEST: releases do not update topologies."""
    for step in beats(history):
        newer = other_topology(step) and step.beat.topology_epoch > step.before.topology_epoch
        if newer and step.error not in (terms.INVALID_REQUEST, FULL):
            why = f"{step.client.name} joins with topology epoch {step.beat.topology_epoch}"
            yield breach(step, why, f"refused: {terms.INVALID_REQUEST}", "accepted" if step.accepted else step.error)


# Describe


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
        copies = min(step.before.config.standbys, max(len(found.members) - 1, 0))
        owed = sorted(task for task in step.before.tasks for _ in range(copies) if step.before.has_changelog(task))
        standby = Counter(task for member in found.members for task in member.standby)
        yield from lists_differ(step, "the standby tasks", owed, sorted(standby.elements()), "standbys")
        for member in found.members:
            pairs = ("", member.target, member.tasks), ("standby ", member.standby_target, member.standby)
            for kind, target, owns in pairs:
                name = f"the {kind}tasks of {member.client}"
                yield from lists_differ(step, name, sorted(target), sorted(owns), f"{kind}target tasks")
            yield from differs(step, f"the epoch of {member.client}", found.epoch, member.epoch, "epoch")


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


@impact("A Streams application cannot join its group, or stay in it", "stuck group", "guards", "refused-peer",
        "unread-partition")  # fmt: skip
@rule("streams-group/admits-members", "grp-165", checks=(EPOCHS,), applies_to=sends)
def admits_members(history: History) -> Iterator[Violation]:
    """A valid heartbeat of a client that joins with the group's topology, or of a member in its epoch, is accepted."""
    for step in beats(history):
        if not step.accepted and step.error not in terms.UNAVAILABLE and is_legal(step):
            joins = step.epoch == 0
            why = f"{step.client.name} joins" if joins else f"{step.client.name} sends its epoch {step.epoch}"
            yield breach(step, why, "accepted", "joins" if joins else "stays", step.error)


@impact("Tools cannot show a group", "trivia", "answers", "misled-operator")
@rule("streams-group/describes", "grp-145", checks=(DESCRIBE,), applies_to=asks)
def describes_groups(history: History) -> Iterator[Violation]:
    """A describe of a streams group with members is answered."""
    for step in group_steps(history):
        describes_one = step.verb == "streams-group-describe" and step.before.form == "streams"
        sure = any(client.is_certain_member for client in step.before.members)
        if describes_one and sure and not step.accepted and step.error not in terms.UNAVAILABLE:
            yield Violation("the group has members", (step.op.index,), "a description", f"refused: {step.error}")


@impact(
    "A group is not there, or is another one, after its coordinator has read the log",
    "stuck group",
    "durability",
    "stuck-group",
    "needless-move",
)
@records("streams-group/outlives-reloads", "grp-250", "grp-251", applies_to=log_laws.reads, after=(HEARTBEAT,))
def outlives_reloads(history: History) -> Iterator[Violation]:
    """A coordinator that has read its log, compacted in any part, serves the group as it was."""
    return log_laws.outlived(history)


@impact("Committed offsets are lost or changed", "double processing", "durability", "lost-offsets")
@records("streams-group/commits-kept", "grp-252", applies_to=log_laws.fetches, after=("streams-group-commit",))
def commits_kept(history: History) -> Iterator[Violation]:
    """OffsetFetch returns the last accepted offset of each partition, with its leader epoch and metadata."""
    return log_laws.kept(history, OPERATIONS.event_of)


@impact("A Streams client that was fenced cannot come back before its session has ended", "stuck group", "guards",
        "refused-peer", "unread-partition", links=("KIP-1071", "KAFKA-19233"))  # fmt: skip
@epochs("streams-group/taken-back", "grp-261", grade=Grade.SHOULD)
def taken_back(history: History) -> Iterator[Violation]:
    """A member that was fenced, and joins again with its id, its instance id, its topology and epoch 0, is accepted."""
    for step in beats(history):
        own: list[str | None] = [
            instance for instance, name in step.before.instances.items() if name == step.client.name
        ]
        invalid = step.beat.flaw is not None or is_invalid(step.beat, step.epoch, step.owned.active)
        if step.is_turned_away and not invalid and not other_topology(step) and step.beat.instance in (own or [None]):
            why = f"{step.client.name} was fenced, and joins again with epoch 0"
            yield breach(step, why, "accepted", "static" if own else "dynamic", step.error)
