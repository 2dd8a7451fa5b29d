"""Invariants of a coordinator of KIP-848's consumer groups.

Each invariant reads the heartbeats of clients and their responses, as ``trace.py`` understands them.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.consumer_group import model
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS, REBALANCE_MS
from kipcheck.conformance.protocols.consumer_group.trace import SETTLED, AnsweredHeartbeat, answered_heartbeats
from kipcheck.conformance.protocols.declare.invariant import impact as any_impact, invariant
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
from kipcheck.conformance.protocols.reconciled import log_laws, terms
from kipcheck.conformance.protocols.reconciled.terms import Says

OWNERSHIP: Final = "consumer-group/ownership"
EPOCHS: Final = "consumer-group/epochs"
RECORDS: Final = "consumer-group/records"
ACCEPTED: Final = ("consumer-heartbeat",)
"""Without an accepted heartbeat the group has no member."""
ownership = partial(invariant, role=Role.COORDINATOR, checks=(OWNERSHIP,), after=ACCEPTED, unsure=is_in_doubt)
epochs = partial(invariant, role=Role.COORDINATOR, checks=(EPOCHS,), after=ACCEPTED, unsure=is_in_doubt)
records = partial(invariant, role=Role.COORDINATOR, checks=(RECORDS,), unsure=is_in_doubt)
impact = partial(any_impact, links=("KIP-848",))


def beats(case: Case, step: Step) -> bool:
    return step.verb == "consumer-heartbeat"


def breach(heartbeat: AnsweredHeartbeat, why: str, expected: str, *shape: str, at: Iterable[int] = ()) -> Violation:
    observed = f"refused: {heartbeat.error}" if heartbeat.error else f"epoch {heartbeat.answered_epoch}"
    return Violation(why, (*at, heartbeat.op.index), expected, observed, shape=shape)


@impact("A partition has two owners", "double processing", "ownership", "double-processing")
@ownership("consumer-group/one-owner", "grp-04", applies_to=beats)
def one_owner(history: History) -> Iterator[Violation]:
    """A partition goes to a new owner only after the old one acknowledged its revocation, left or was fenced."""
    for step in answered_heartbeats(history):
        for partition in step.given or ():
            for other in step.clients.values():
                if other.name != step.beat.client and partition in other.may_still_own:
                    was = other.may_still_own[partition]
                    why = (
                        f"{partition_name(partition)} was assigned to {other.name}, which has not acknowledged its "
                        "revocation; "
                        f"now it is assigned to {step.beat.client}"
                    )
                    kind = "never asked to revoke" if partition in other.memory.given else "not yet revoked"
                    yield breach(step, why, f"{partition_name(partition)} to no other member yet", kind, at=[was])


@impact("The epoch of a member falls", "double processing", "epochs", "stale-view")
@epochs("consumer-group/epochs-rise", "grp-04", applies_to=beats)
def epochs_rise(history: History) -> Iterator[Violation]:
    """The epoch of a member is above 0, and never falls while it is in the group."""
    for step in answered_heartbeats(history):
        if not step.accepted or step.epoch in terms.LEFT:
            continue
        if step.answered_epoch is None or step.answered_epoch < 1:
            yield breach(step, f"{step.beat.client} got epoch {step.answered_epoch}", "an epoch above 0", "no epoch")
        elif step.client.member and step.answered_epoch < step.client.memory.epoch:
            why = f"{step.beat.client} had epoch {step.client.memory.epoch}; now it gets {step.answered_epoch}"
            yield breach(step, why, f"epoch {step.client.memory.epoch} or above", "falls")


@impact("A member that has to revoke partitions gets the next epoch", "double processing", "epochs", "stale-view")
@epochs("consumer-group/keeps-epoch-to-revoke", "grp-400", applies_to=beats)
def keeps_epoch_to_revoke(history: History) -> Iterator[Violation]:
    """The answer that takes partitions from a member, which still owns them, has the epoch that the member had."""
    for step in answered_heartbeats(history):
        if not step.accepted or step.intent is not Says.STAY or step.given is None or not step.client.member:
            continue
        lost, epoch = {*(step.owned or ())} & {*step.client.memory.given} - {*step.given}, step.client.memory.epoch
        if lost and step.answered_epoch != epoch:
            why = f"{step.beat.client} has to revoke {partition_name(min(lost))}, and gets epoch {step.answered_epoch}"
            yield breach(step, why, f"epoch {epoch}", "next epoch")


@impact("A new member gets an outdated epoch", "double processing", "epochs", "stale-view")
@epochs("consumer-group/group-epoch-rises", "grp-70", applies_to=beats)
def group_epoch_rises(history: History) -> Iterator[Violation]:
    """A member that joins gets no older epoch than any member of the group has."""
    for step in answered_heartbeats(history):
        if step.accepted and step.intent is Says.JOIN and step.answered_epoch is not None:
            newest = max((other.memory.epoch for other in step.clients.values() if other.member), default=0)
            if step.answered_epoch < newest:
                why = (
                    f"a member has epoch {newest}; {step.beat.client} joins after that, and gets {step.answered_epoch}"
                )
                yield breach(step, why, f"epoch {newest} or above", "older than others")


@impact("A member that leaves gets an unexpected epoch", "trivia", "epochs", "stale-view")
@epochs("consumer-group/answers-leaving", "grp-57", grade=Grade.SHOULD, applies_to=beats)
def answers_leaving(history: History) -> Iterator[Violation]:
    """A heartbeat that leaves is answered with its own epoch."""
    for step in answered_heartbeats(history):
        if step.accepted and step.epoch in terms.LEFT and step.answered_epoch != step.epoch:
            why = f"{step.beat.client} left and got epoch {step.answered_epoch}"
            yield breach(
                step, why, f"epoch {step.epoch}", "leaving" if step.epoch == terms.LEAVING else "leaving for a while"
            )


def subscribed_topics(heartbeat: AnsweredHeartbeat) -> frozenset[str]:
    """The topics that a member subscribes to from this heartbeat on. A successor that names none has those of the
    process before it, which are any here."""
    beat, client = heartbeat.beat, heartbeat.client
    names = client.topics if beat.topics is None else beat.topics
    regex = client.regex if beat.regex is None else beat.regex
    replaces = heartbeat.intent is Says.JOIN and (heartbeat.holder is not None or client.away)
    matching = {topic for topic in heartbeat.before.topics if model.matches(regex, topic)} if regex else set()
    return frozenset({*names} | matching | ({*heartbeat.before.topics} if replaces else set()))


@impact("A member gets partitions that it does not subscribe to, or that do not exist", "wrong data", "ownership",
        "wrong-data", "double-processing")  # fmt: skip
@ownership("consumer-group/co-subscription", "grp-71", applies_to=beats)
def co_subscription(history: History) -> Iterator[Violation]:
    """Partitions that are assigned to a member exist, and belong to topics that it subscribes to."""
    for step in answered_heartbeats(history):
        topics = subscribed_topics(step)
        for topic, number in sorted(step.given or ()):
            if topic not in topics:
                wants = ", ".join(sorted(topics)) or "nothing"
                why = f"{step.beat.client} subscribes to {wants}, and gets {topic}-{number}"
                yield breach(step, why, "partitions of its topics", "not subscribed")
            elif not 0 <= number < step.before.topics.get(topic, 0):
                yield breach(step, f"{topic}-{number} does not exist", "existing partitions", "not there")


@impact("A member with an outdated epoch is not fenced", "double processing", "epochs", "double-processing",
        "stale-view")  # fmt: skip
@epochs("consumer-group/stale-epoch-fenced", "grp-72", applies_to=beats)
def stale_epoch_fenced(history: History) -> Iterator[Violation]:
    """An epoch is refused if it is a stranger's, too new, too old, or the previous one with too many partitions."""
    for step in answered_heartbeats(history):
        if step.accepted and step.intent is Says.STAY and step.client.member and step.epoch > 0:
            last = step.client.memory.epoch
            if step.epoch > last or (step.epoch < last and not _may_be_a_repetition(step)):
                why = f"{step.beat.client} has epoch {last}, and is accepted with epoch {step.epoch}"
                yield breach(
                    step, why, f"refused: {terms.FENCED_MEMBER_EPOCH}", "newer" if step.epoch > last else "stale"
                )
        elif step.accepted and step.epoch > 0 and _never_joined(step):
            why = f"{step.beat.client} never joined, and is accepted with epoch {step.epoch}"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "never joined")


def _may_be_a_repetition(heartbeat: AnsweredHeartbeat) -> bool:
    """Is it the previous epoch, with no more partitions than the last response gave, as after a lost response?"""
    owned, client = heartbeat.owned, heartbeat.client
    return heartbeat.epoch == client.previous and owned is not None and {*owned} <= {*client.memory.given}


@impact("A member is fenced because a response was lost", "trivia", "guards", "needless-move")
@epochs("consumer-group/repetition-taken", "grp-73", grade=Grade.SHOULD, applies_to=beats)
def repetition_taken(history: History) -> Iterator[Violation]:
    """After a lost response a member may repeat its previous epoch, if it owns no more than it was assigned."""
    for step in answered_heartbeats(history):
        stays = step.intent is Says.STAY and step.client.member and step.epoch > 0 and not step.client.joins
        if stays and step.error == terms.FENCED_MEMBER_EPOCH and _may_be_a_repetition(step) and step.client.unused:
            last = step.client.memory.epoch
            why = f"{step.beat.client} repeats epoch {step.epoch}, which it had before {last}"
            yield breach(step, why, "accepted", "fenced")


@impact("An invalid heartbeat is refused with another error", "trivia", "error-codes", "misled-operator")
@epochs("consumer-group/names-the-fault", "grp-74", grade=Grade.SHOULD, applies_to=beats, after=())
def names_the_fault(history: History) -> Iterator[Violation]:
    """An invalid heartbeat is refused with the error that says why."""
    for step in answered_heartbeats(history):
        expected = _fault(step)
        if expected and step.error not in expected:
            why = f"{step.beat.client} sends {step.intent.value} with epoch {step.epoch}"
            owed = " or ".join(expected)
            yield breach(step, why, f"refused: {owed}", "accepted" if step.accepted else "error", expected[0])


def _never_joined(heartbeat: AnsweredHeartbeat) -> bool:
    return not heartbeat.client.member and not heartbeat.client.memory.epoch


def _fault(heartbeat: AnsweredHeartbeat) -> tuple[str, ...]:
    """The expected errors, any of which is right; none if it is not certain that the heartbeat is refused."""
    beat, sent = heartbeat.beat, heartbeat.epoch
    invalid = model.is_invalid(beat, sent, heartbeat.owned)
    unsupported = beat.assignor not in (None, *model.SERVER_ASSIGNORS)
    if invalid or unsupported:
        return (*((terms.INVALID_REQUEST,) if invalid else ()), *((model.UNSUPPORTED_ASSIGNOR,) if unsupported else ()))
    if not heartbeat.before.existed and sent != 0:
        return terms.GROUP_ID_NOT_FOUND, terms.UNKNOWN_MEMBER_ID
    if heartbeat.taken_by:
        return (terms.UNRELEASED_INSTANCE_ID if sent == 0 else terms.FENCED_INSTANCE_ID,)
    if sent > 0 and _never_joined(heartbeat):
        others = {
            terms.FENCED_INSTANCE_ID: heartbeat.holder is not None,
            terms.FENCED_MEMBER_EPOCH: heartbeat.client.away,
        }
        return (terms.UNKNOWN_MEMBER_ID, *(error for error, possible in others.items() if possible))
    client = heartbeat.client
    joins = sent == 0 and not client.member and not client.away and heartbeat.holder is None
    if not (joins and beat.regex) or model.is_regex(beat.regex):
        return ()
    # A member that joins again with another instance id keeps the first one, too.
    return (model.INVALID_REGULAR_EXPRESSION, *((terms.UNRELEASED_INSTANCE_ID,) if beat.instance is not None else ()))


@impact("A silent member keeps its partitions, or a live one loses them", "stuck group", "guards", "unread-partition",
        "needless-move")  # fmt: skip
@epochs("consumer-group/silent-are-fenced", "grp-75", applies_to=lambda case, step: True)
def silent_are_fenced(history: History) -> Iterator[Violation]:
    """A member that was silent for its session timeout is unknown; one that was not, and need not revoke, is known."""
    return _sessions(history, own=False)


@impact("A session ends at another time than the group's settings state", "stuck group", "guards", "unread-partition",
        "needless-move")  # fmt: skip
@epochs("consumer-group/follows-its-settings", "grp-362", applies_to=lambda case, step: True)
def follows_its_settings(history: History) -> Iterator[Violation]:
    """From the first heartbeat after consumer.session.timeout.ms of a group was set, a member's session is as long."""
    return _sessions(history, own=True)


def _sessions(history: History, own: bool) -> Iterator[Violation]:
    """``own``: of members with the session timeout of their group; else of those with that of the broker."""
    for step in answered_heartbeats(history):
        client = step.client
        session_ms = client.session_ms or step.before.config.session_ms
        if bool(client.session_ms) is not own:
            continue
        if step.intent is not Says.STAY or not client.member or step.beat.behind:
            continue
        if step.beat.instance is not None and (step.holder is None or step.holder.client != client.name):
            continue
        if step.accepted and client.silent_ms >= session_ms:
            why = f"{step.beat.client} was silent for {client.silent_ms} ms, and is accepted as a member"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "never fenced")
        elif step.error == terms.UNKNOWN_MEMBER_ID and not client.expired and not client.revoking_ms:
            why = f"{step.beat.client} was silent for only {client.silent_ms} ms, and is unknown"
            yield breach(step, why, "accepted", "fenced too early")


@impact("A member that does not revoke blocks the group", "stuck group", "guards", "unread-partition")
@epochs("consumer-group/late-revokers-are-fenced", "grp-75", applies_to=lambda case, step: True)
def late_revokers_are_fenced(history: History) -> Iterator[Violation]:
    """A member that does not revoke partitions within its rebalance timeout is fenced."""
    for step in answered_heartbeats(history):
        if step.accepted and step.intent is Says.STAY and step.client.revoking_ms >= REBALANCE_MS:
            why = f"{step.beat.client} still owns what it was asked to revoke {step.client.revoking_ms} ms ago"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "never fenced")


@impact("A member loses its partitions while it stops to read them", "double processing", "guards", "double-processing",
        "needless-move")  # fmt: skip
@epochs("consumer-group/revokers-have-time", "grp-268", applies_to=lambda case, step: True)
def revokers_have_time(history: History) -> Iterator[Violation]:
    """A member that has to revoke partitions, and sends heartbeats, stays a member for its rebalance timeout."""
    for step in answered_heartbeats(history):
        own = step.beat.instance is None or (step.holder is not None and step.holder.client == step.client.name)
        if step.is_cut_short and own:
            why = f"{step.beat.client} was asked to revoke partitions {step.client.revoking_ms} ms ago, and is unknown"
            yield breach(step, why, f"a member for {REBALANCE_MS} ms", "fenced too early")


@impact("A partition stays without an owner", "stuck group", "balance", "unread-partition")
@ownership("consumer-group/settles", "grp-76", grade=Grade.SHOULD, applies_to=beats)
def settles(history: History) -> Iterator[Violation]:
    """If nothing else happens, every subscribed partition has an owner within a few rounds."""
    for step in answered_heartbeats(history):
        if step.rounds < SETTLED or not step.accepted or any(client.fenced for client in step.clients.values()):
            continue
        if any(holder.away for holder in step.before.holders.values()):
            continue  # their partitions are kept for them
        members = [client for client in step.clients.values() if client.member]
        owned = {partition for client in members for partition in client.memory.given} | {*(step.given or ())}
        wanted = {
            (topic, number)
            for client in members
            for topic in client.topics
            for number in range(step.before.topics.get(topic, 0))
        }
        for topic, number in sorted(wanted - owned):
            why = f"{topic}-{number} has no owner after {step.rounds} rounds in which every member sent what it owns"
            yield breach(step, why, f"an owner of {topic}-{number}", "left over")
            return


@impact("A group rebalances although nothing has changed", "trivia", "epochs", "needless-move")
@ownership("consumer-group/rests", "grp-263", applies_to=beats)
def rests(history: History) -> Iterator[Violation]:
    """In a group at rest a heartbeat of a member that changes nothing is answered with its epoch and its partitions."""
    for step in answered_heartbeats(history):
        rest, had = step.before.rest, step.client.memory.given
        if not step.confirms or rest is None:
            continue
        if step.answered_epoch != rest:
            why = f"nothing has changed since all members had epoch {rest}; {step.beat.client} gets another one"
            yield breach(step, why, f"epoch {rest}", "epoch")
        elif step.given is not None and {*step.given} != {*had}:
            why = f"nothing has changed, and {step.beat.client} gets other partitions"
            yield breach(step, why, ", ".join(map(partition_name, had)) or "no partition", "partitions")


@impact("Members lose partitions whenever a group changes", "trivia", "balance", "needless-move")
@ownership("consumer-group/sticky", "grp-264", grade=Grade.SHOULD, applies_to=beats)
def sticky(history: History) -> Iterator[Violation]:
    """When one member joins or leaves a group at rest, each of the others keeps what it has, up to its fair share.

    All members subscribe to the same topics, and none has asked for an assignor.
    """
    for step in answered_heartbeats(history):
        had, given = step.before.kept.get(step.beat.client), step.given
        if had is None or given is None or not step.confirms:
            continue
        kept, owed = {*had} & {*given}, min(len(had), step.before.fair)
        if len(kept) < owed:
            why = f"{step.beat.client} had {', '.join(map(partition_name, had))}; of these it keeps {len(kept)}"
            yield breach(step, why, f"{owed} of them", "moves")


# Static members


@impact("Two processes are one static member", "double processing", "guards", "double-processing")
@epochs("consumer-group/one-holder", "grp-110", applies_to=beats)
def one_holder(history: History) -> Iterator[Violation]:
    """An instance id has one member: until it leaves or its session ends, another one with that id is refused."""
    for step in answered_heartbeats(history):
        if step.accepted and step.taken_by:
            owed = terms.UNRELEASED_INSTANCE_ID if step.intent is Says.JOIN else terms.FENCED_INSTANCE_ID
            why = f"{step.taken_by} is the member with instance id {step.beat.instance}; {step.beat.client} is accepted"
            yield breach(step, why, f"refused: {owed}", "joins" if step.intent is Says.JOIN else step.intent.value)


@impact("A static member that restarts loses its partitions", "trivia", "ownership", "needless-move")
@ownership("consumer-group/kept-while-away", "grp-111", applies_to=beats)
def kept_while_away(history: History) -> Iterator[Violation]:
    """What a static member had when it left for a while goes to no other member before its session ends."""
    for step in answered_heartbeats(history):
        for instance, holder in step.before.holders.items():
            own = instance == step.beat.instance or holder.client == step.beat.client
            for partition in sorted({*holder.kept} & {*(step.given or ())} if holder.away and not own else ()):
                why = (
                    f"{partition_name(partition)} is kept for instance {instance}, which left for a while; now it is "
                    f"assigned to {step.beat.client}"
                )
                yield breach(step, why, f"{partition_name(partition)} to no other member yet", "away")


@impact("A static member that restarts loses its partitions", "trivia", "ownership", "needless-move")
@ownership("consumer-group/gets-it-back", "grp-112", grade=Grade.SHOULD, applies_to=beats)
def gets_it_back(history: History) -> Iterator[Violation]:
    """A process that joins as an instance that left for a while, in a group without others, gets what that had."""
    for step in answered_heartbeats(history):
        holder = step.holder
        if not step.accepted or step.intent is not Says.JOIN or holder is None or not holder.away or holder.joined:
            continue
        if len(step.before.holders) > 1 or any(other.member or other.expired for other in step.clients.values()):
            continue
        wanted = {partition for partition in holder.kept if partition[0] in (step.beat.topics or ())}
        for partition in sorted(wanted - {*(step.given or ())}):
            why = f"instance {step.beat.instance} had {partition_name(partition)}; {step.beat.client} does not get it"
            yield breach(step, why, f"{partition_name(partition)} to {step.beat.client}", "lost")
            break


@impact("A static member that restarts makes the group rebalance", "trivia", "ownership", "needless-move",
        links=("KIP-345", "KIP-848"))  # fmt: skip
@ownership("consumer-group/takeover-without-rebalance", "grp-152", grade=Grade.SHOULD, applies_to=beats)
def takeover_without_rebalance(history: History) -> Iterator[Violation]:
    """A process that joins as an instance that left a group at rest, with its topics, gets the epoch that all have."""
    for step in answered_heartbeats(history):
        rest = step.before.rest
        if step.accepted and step.replaces and rest is not None and step.answered_epoch != rest:
            why = f"all members have epoch {rest}; {step.beat.client} joins as instance {step.beat.instance}, as before"
            yield breach(step, why, f"epoch {rest}", "another epoch")


# Regular expressions


@impact("A regular expression is not followed", "stuck group", "balance", "unread-partition")
@ownership("consumer-group/regex-is-followed", "grp-113", grade=Grade.SHOULD, applies_to=beats)
def regex_is_followed(history: History) -> Iterator[Violation]:
    """A member that is alone and subscribes to an expression soon has all partitions of the topics that match."""
    for step in answered_heartbeats(history):
        client = step.client
        if not client.regex or step.rounds < SETTLED or step.before.waited_ms < model.REFRESH_MS or not step.accepted:
            continue
        if any(other.name != client.name and (other.member or other.fenced) for other in step.clients.values()):
            continue
        wanted = {
            (name, number)
            for name, size in model.TOPICS.items()
            if model.matches(client.regex, name)
            for number in range(size)
        }
        for partition in sorted(wanted - {*client.memory.given} - {*(step.given or ())}):
            why = f"{client.name} subscribes to {client.regex}, and does not get {partition_name(partition)}"
            yield breach(step, why, f"{partition_name(partition)} to {client.name}", "not followed")
            break


@impact("A topic that is created later is not read", "stuck group", "balance", "unread-partition")
@ownership("consumer-group/regex-matches-later", "grp-361", applies_to=beats)
def regex_matches_later(history: History) -> Iterator[Violation]:
    """A topic that is created after an expression was resolved, and matches it, soon has an owner of each partition."""
    for step in answered_heartbeats(history):
        known = step.before
        if step.rounds < SETTLED or known.waited_ms < model.REFRESH_MS or not step.accepted:
            continue
        if any(client.fenced for client in step.clients.values()) or any(each.away for each in known.holders.values()):
            continue
        members = [client for client in step.clients.values() if client.member]
        owned = {partition for client in members for partition in client.memory.given} | {*(step.given or ())}
        for topic in known.created:
            expressions = [each.regex for each in members if each.regex and model.matches(each.regex, topic)]
            for number in range(known.topics[topic] if expressions else 0):
                if (topic, number) not in owned:
                    why = f"{topic} was created, and matches {expressions[0]}; {topic}-{number} has no owner"
                    yield breach(step, why, f"an owner of {topic}-{number}", "not followed")
                    return


# What is granted


def _may_join(heartbeat: AnsweredHeartbeat) -> bool:
    """Whether a valid heartbeat is the first one of a client, of which the group has no trace and for which it has
    room.
    """
    own, clients = heartbeat.client, heartbeat.clients.values()
    others = sum(client.member or client.away for client in clients if client.name != own.name)
    return not (own.member or own.away or own.expired) and others < heartbeat.before.config.max_size


def _may_stay(heartbeat: AnsweredHeartbeat) -> bool:
    """Whether a valid heartbeat is one of a member with its own epoch, which has nothing to revoke and is in time."""
    own, holder = heartbeat.client, heartbeat.holder
    is_well = own.member and not (own.fenced or own.expired or own.revoking_ms)
    as_itself = heartbeat.beat.instance is None or (holder is not None and holder.client == own.name)
    in_time = own.silent_ms < (own.session_ms or heartbeat.before.config.session_ms)
    return is_well and as_itself and in_time and heartbeat.epoch == own.memory.epoch > 0


@impact("A consumer cannot join its group, or stay in it", "stuck group", "guards", "refused-peer", "unread-partition")
@epochs("consumer-group/admits-members", "grp-164", applies_to=beats, after=())
def admits_members(history: History) -> Iterator[Violation]:
    """A valid heartbeat of a client that joins a group with room, or of a member with its own epoch, is accepted."""
    stated = set[str | None]()
    for step in answered_heartbeats(history):
        beat, joins = step.beat, step.epoch == 0
        new_instance = beat.instance is None or beat.instance not in stated
        stated.add(beat.instance)
        if (
            step.accepted
            or step.error in terms.UNAVAILABLE
            or _fault(step)
            or (beat.regex and not model.is_regex(beat.regex))
        ):
            continue
        if (new_instance and _may_join(step)) if joins else _may_stay(step):
            why = f"{beat.client} joins" if joins else f"{beat.client} is a member, and sends its epoch {step.epoch}"
            yield breach(step, why, "accepted", "joins" if joins else "stays", step.error)


@impact(*log_laws.NOT_AS_BEFORE)
@records("consumer-group/outlives-reloads", "grp-250", "grp-251", applies_to=log_laws.reads, after=ACCEPTED)
def outlives_reloads(history: History) -> Iterator[Violation]:
    """A coordinator that has read its log, compacted in any part, serves the group as it was."""
    return log_laws.outlived(history)


@impact(*log_laws.OFFSETS_LOST)
@records("consumer-group/commits-kept", "grp-252", applies_to=log_laws.fetches, after=("consumer-commit",))
def commits_kept(history: History) -> Iterator[Violation]:
    """OffsetFetch returns the last accepted offset of each partition, with its leader epoch and metadata."""
    return log_laws.kept(history, OPERATIONS.event_of)


@impact("A consumer that was fenced cannot come back before its session has ended", "stuck group", "guards",
        "refused-peer", "unread-partition", links=("KIP-848", "KAFKA-19233"))  # fmt: skip
@epochs("consumer-group/taken-back", "grp-260", grade=Grade.SHOULD, applies_to=beats)
def taken_back(history: History) -> Iterator[Violation]:
    """A member that was fenced, and joins again with its id, its instance id and epoch 0, is accepted."""
    for step in answered_heartbeats(history):
        if not step.is_turned_away or _fault(step) or (step.beat.regex and not model.is_regex(step.beat.regex)):
            continue
        own: list[str | None] = [
            instance for instance, each in step.before.holders.items() if each.client == step.client.name
        ]
        if step.beat.instance in (own or [None]):
            why = f"{step.client.name} was fenced, and joins again with epoch 0"
            yield breach(step, why, "accepted", "static" if own else "dynamic", step.error)
