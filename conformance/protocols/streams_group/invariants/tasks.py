"""Invariants of the tasks that a coordinator of streams groups assigns."""

from collections.abc import Iterator, Mapping

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.streams_group import model
from kipcheck.conformance.protocols.streams_group.invariants import answered, asked, breach, impact, tasks
from kipcheck.conformance.protocols.streams_group.topology import WRONG
from kipcheck.conformance.protocols.streams_group.trace import GroupStep, beats

PLACE = 10


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


@impact("A warm-up task restores what its member has already, or nothing", "trivia", "ownership", "needless-move")
@tasks("streams-group/warm-ups-elsewhere", "grp-364")
def warm_ups_elsewhere(history: History) -> Iterator[Violation]:
    """A member gets no warm-up of a task that it runs or has the standby of; warm-ups are of tasks with a changelog."""
    for step in answered(history):
        for task in step.given_warmup or ():
            name, after = partition_name(task), asked(step)
            for kind, given in (("active", step.given), ("standby", step.given_standby)):
                if task in (given or ()):
                    why = f"{step.client.name} gets {name} as {kind} task, and to warm up"
                    yield breach(step, why, "one of both", kind)
            if task not in after.tasks or not after.has_changelog(task):
                why = f"{step.client.name} gets {name} to warm up"
                yield breach(step, why, "warm-ups of tasks with a changelog", "no changelog")


@impact("Members warm up tasks that they never run", "trivia", "ownership", "needless-move")
@tasks("streams-group/no-warm-up-unasked", "grp-159", grade=Grade.INFO)
def no_warm_up_unasked(history: History) -> Iterator[Violation]:
    """A member that reports no offsets of its tasks gets no warm-up task."""
    for step in answered(history):
        for task in step.given_warmup or ():
            yield breach(step, f"{step.client.name} gets {partition_name(task)} to warm up", "no warm-up task")
