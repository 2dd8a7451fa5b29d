"""Laws of the coordinator of a consumer group, checked in every step of its model: they restate its invariants."""

from collections import Counter
from typing import Any, TypeAlias

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_name
from kipcheck.conformance.protocols.consumer_group.model import TOPICS, Member, State, matches
from kipcheck.conformance.protocols.consumer_group.ops import REBALANCE_MS, SESSION_MS, Beat, Event, Pass
from kipcheck.conformance.protocols.reconciled.terms import AWAY, Says

Step: TypeAlias = Did[State, Any]


def _owned(member: Member) -> set[Partition]:
    """What it was assigned and has not given up."""
    return {*member.assigned, *member.pending}


def _one_owner(index: int, before: State, event: Event, did: Step) -> str | None:
    owners = Counter(partition for each in did.part.members for partition in _owned(each))
    for partition, count in owners.items():
        if count > 1:
            return f"{partition_name(partition)} has {count} owners"
    for each in before.members:
        after = did.part.member(each.id)
        lost = set() if after is None else _owned(each) - _owned(after)
        if lost and not _gives_up(each, event):
            return f"{each.id} has not given up {partition_name(min(lost))}, and no longer owns it"
    return None


def _gives_up(member: Member, event: Event) -> bool:
    """Whether the event may acknowledge a revocation by this member."""
    if not isinstance(event, Beat) or member.id != event.client:
        return False
    return event.says is not Says.STAY or event.owned is not None


def _epochs_rise(index: int, before: State, event: Event, did: Step) -> str | None:
    for each in did.part.members:
        known = before.member(each.id)
        if each.epoch < 1 and each.epoch != AWAY:
            return f"{each.id} has epoch {each.epoch}"
        if known is not None and AWAY not in (each.epoch, known.epoch) and each.epoch < known.epoch:
            return f"the epoch of {each.id} falls from {known.epoch} to {each.epoch}"
    return None


def _group_epoch(index: int, before: State, event: Event, did: Step) -> str | None:
    after = did.part
    if after.group_epoch < before.group_epoch:
        return f"the epoch of the group falls from {before.group_epoch} to {after.group_epoch}"
    newest = max((each.epoch for each in before.members), default=0)
    for each in after.members:
        joins = isinstance(event, Beat) and event.says is Says.JOIN and event.client == each.id
        if joins and before.member(each.id) is None and each.epoch < newest:
            return f"{each.id} joins with epoch {each.epoch}, and another member has {newest}"
    return None


def _co_subscription(index: int, before: State, event: Event, did: Step) -> str | None:
    for each in did.part.members:
        known = before.member(each.id)
        topics = {*each.topics} | {topic for topic in TOPICS if each.regex and matches(each.regex, topic)}
        for topic, number in {*each.assigned} - {*(known.assigned if known else ())}:
            if topic not in topics or not 0 <= number < TOPICS[topic]:
                return f"{each.id} subscribes to {', '.join(sorted(topics))}, and gets {topic}-{number}"
    return None


def _settles(views: tuple[State]) -> str | None:
    (state,) = views
    settled = all(
        each.epoch == state.target_epoch == state.group_epoch and not each.waiting and not each.pending
        for each in state.members
    )
    owned = {partition for each in state.members for partition in each.assigned}
    wanted = {(topic, number) for each in state.members for topic in each.topics for number in range(TOPICS[topic])}
    if settled and wanted - owned:
        return f"all members are settled, and {partition_name(min(wanted - owned))} has no owner"
    return None


def _silent_are_fenced(index: int, before: State, event: Event, did: Step) -> str | None:
    if not isinstance(event, Pass):
        return None
    for each in did.part.members:
        if each.silent_ms >= SESSION_MS:
            return f"{each.id} was silent for {each.silent_ms} ms, and is still a member"
    for each in before.members:
        silent = each.silent_ms + event.ms
        if silent < SESSION_MS and not each.pending and did.part.member(each.id) is None:
            return f"{each.id} was silent for {silent} ms only, and is removed"
    return None


def _late_are_fenced(index: int, before: State, event: Event, did: Step) -> str | None:
    for each in did.part.members:
        if each.revoking_ms >= REBALANCE_MS:
            return f"{each.id} was asked to revoke {each.revoking_ms} ms ago, and is still a member"
    return None


def _one_holder(index: int, before: State, event: Event, did: Step) -> str | None:
    for each in before.members:
        successor = did.part.holder(each.instance)
        if each.epoch != AWAY and successor is not None and successor.id != each.id:
            return f"{successor.id} takes instance {each.instance}, which {each.id} has not left"
    return None


def _kept_while_away(index: int, before: State, event: Event, did: Step) -> str | None:
    if not isinstance(event, Beat) or event.says is Says.LEAVE:
        return None
    for each in before.members:
        leaves = event.says is Says.AWAY and event.client == each.id and each.instance is not None
        holder = did.part.holder(each.instance)
        if leaves and (holder is None or holder.assigned != each.assigned):
            return f"{each.id} leaves for a while, and what it had is not kept"
        joins = event.says is Says.JOIN and event.instance == each.instance
        for other in did.part.members if each.epoch == AWAY and not joins else ():
            if other.id != each.id and (both := {*each.assigned} & {*other.assigned}):
                return f"{partition_name(min(both))} is kept for {each.id}, and {other.id} gets it"
    return None


def _gets_it_back(index: int, before: State, event: Event, did: Step) -> str | None:
    if not isinstance(event, Beat) or event.says is not Says.JOIN or len(before.members) > 1:
        return None
    holder, successor = before.holder(event.instance), did.part.member(event.client)
    if holder is None or holder.epoch != AWAY or successor is None:
        return None
    wanted = {each for each in holder.assigned if each[0] in successor.topics}
    lost = wanted - {*successor.assigned}
    return f"instance {event.instance} had {partition_name(min(lost))}, and does not get it" if lost else None


def _without_rebalance(index: int, before: State, event: Event, did: Step) -> str | None:
    if not isinstance(event, Beat) or event.says is not Says.JOIN:
        return None
    holder, after = before.holder(event.instance), did.part
    known = before.member(event.client)
    same = holder is not None and holder.epoch == AWAY and {*holder.topics} == {*(event.topics or ())}
    if same and known in (None, holder) and after.group_epoch != before.group_epoch:
        gets = f"the group gets epoch {after.group_epoch}"
        return f"{event.client} joins as instance {event.instance}, as before, and {gets}"
    return None


LAWS: tuple[Law[State] | StepLaw[State, Event, Event], ...] = (
    Law("consumer-group/settles", lambda index, state: state, _settles),
    StepLaw("consumer-group/one-owner", _one_owner),
    StepLaw("consumer-group/epochs-rise", _epochs_rise),
    StepLaw("consumer-group/group-epoch-rises", _group_epoch),
    StepLaw("consumer-group/co-subscription", _co_subscription),
    StepLaw("consumer-group/silent-are-fenced", _silent_are_fenced),
    StepLaw("consumer-group/late-revokers-are-fenced", _late_are_fenced),
    StepLaw("consumer-group/one-holder", _one_holder),
    StepLaw("consumer-group/kept-while-away", _kept_while_away),
    StepLaw("consumer-group/gets-it-back", _gets_it_back),
    StepLaw("consumer-group/takeover-without-rebalance", _without_rebalance),
)
