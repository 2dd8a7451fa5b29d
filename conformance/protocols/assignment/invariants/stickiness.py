"""Invariants of the sticky assignors: no needless moves, the newest claim wins, user data is compatible.

Stickiness is checked only if all claims agree and there are no racks: from 3.5.0 on Kafka prefers a near replica to
stickiness.
"""

from collections.abc import Iterator, Mapping

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.invariants import KEEPING, leader_invariant, rounds as invariants_rounds
from kipcheck.conformance.protocols.assignment.model.assignment import (
    COOPERATIVE,
    STICKY,
    Member,
    Partition,
    partition_name,
    partition_names,
)
from kipcheck.conformance.protocols.assignment.model.sticky import agreed
from kipcheck.conformance.protocols.assignment.ops import read_user_data, user_data_version
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 20


def is_sticky(case: Case, step: Step) -> bool:
    return invariants_rounds.of_assignors(*invariants_rounds.STICKIES)(case, step) and not _user_data(step)


def is_given_user_data(case: Case, step: Step) -> bool:
    """Does the group have user data with a generation, as members from 2.3 on write it?"""
    return invariants_rounds.of_assignors(STICKY)(case, step) and 1 in _user_data(step) and 0 not in _user_data(step)


def is_given_old_user_data(case: Case, step: Step) -> bool:
    """Does the group have user data without a generation, as members up to 2.2 write it?"""
    return invariants_rounds.of_assignors(STICKY)(case, step) and 0 in _user_data(step)


def _user_data(step: Step) -> set[int | None]:
    """The versions of the members' user data; None for data that cannot be read."""
    given = (each.get("userData") for each in step["members"])
    return {user_data_version(bytes.fromhex(each)) for each in given if each is not None}


def settled(each: invariants_rounds.Round) -> Mapping[Partition, str] | None:
    """The agreed owners, if every wanted partition has one and they are in balance; else None."""
    owners = agreed(each.group)
    if owners is None or owners.keys() != set(each.group.wanted):
        return None
    owned = {member: frozenset(one.owned) for member, one in each.members.items()}
    return owners if invariants_rounds.is_balanced(each, owned) else None


def moved(each: invariants_rounds.Round, owners: Mapping[Partition, str]) -> list[tuple[Partition, str, str]]:
    """Partitions that went from one owner to another: partition, old owner, new owner."""
    return [
        (partition, owner, each.owners[partition][0])
        for partition, owner in sorted(owners.items())
        if partition in each.owners and owner not in each.owners[partition]
    ]


@impact("Partitions of a balanced group move", "trivia", "stickiness", "needless-move", links=("KIP-54",))
@leader_invariant("assign/stays", "grp-14", checks=(KEEPING,), applies_to=is_sticky)
def stays(history: History) -> Iterator[Violation]:
    """If all partitions are owned, in balance, every member keeps its partitions."""
    for each in invariants_rounds.rounds(history, *invariants_rounds.STICKIES):
        if is_sticky(history.case, each.op.step):
            why = "all partitions were owned, in one generation and in balance"
            yield from _moved_owned(each, why, ("moved", "settled"))


@impact(
    "A leader ignores which partitions sticky members of other clients own",
    "trivia",
    "claims",
    "needless-move",
    links=("KIP-54", "KIP-341"),
)
@leader_invariant("assign/reads-user-data", "grp-20", checks=("assign/user-data",), applies_to=is_given_user_data)
def reads_user_data(history: History) -> Iterator[Violation]:
    """The user data in which Kafka's StickyAssignor writes owned partitions is read."""
    for each in invariants_rounds.rounds(history, STICKY):
        if is_given_user_data(history.case, each.op.step) and _subscribe_alike(each):
            why = "by the user data, as Kafka writes it, all partitions are owned, in balance"
            yield from _moved_owned(each, why, ("moved", "user data"))


@impact(
    "A leader ignores which partitions sticky members of old releases own",
    "trivia",
    "claims",
    "needless-move",
    links=("KIP-54", "KIP-341"),
)
@leader_invariant(
    "assign/reads-old-user-data",
    "grp-23",
    checks=("assign/user-data",),
    grade=Grade.SHOULD,
    applies_to=is_given_old_user_data,
)
def reads_old_user_data(history: History) -> Iterator[Violation]:
    """User data of StickyAssignors up to 2.2, without a generation, is read too."""
    for each in invariants_rounds.rounds(history, STICKY):
        if is_given_old_user_data(history.case, each.op.step) and _subscribe_alike(each):
            why = "by the user data, as Kafka up to 2.2 writes it, all partitions are owned, in balance"
            yield from _moved_owned(each, why, ("moved", "old user data"))


def _subscribe_alike(each: invariants_rounds.Round) -> bool:
    """With equal subscriptions a leader that reads the claims has no reason to move a partition. With mixed ones it may
    move some towards equal shares, which ``assign/stays`` judges: a move does not show then that it read nothing.
    """
    return len({frozenset(one.subscription) for one in each.group.members}) == 1


def _moved_owned(each: invariants_rounds.Round, because: str, shape: tuple[str, ...]) -> Iterator[Violation]:
    owners = settled(each) if each.is_whole or each.assignor == COOPERATIVE else None
    for member in sorted(each.members) if owners is not None else ():
        owned = frozenset(each.members[member].owned)
        if not owned <= each.got[member]:
            moved_away = owned - each.got[member]
            yield Violation(
                f"{each.assignor}, {each.step}: {because}, and {member} loses "
                f"{partition_names(moved_away)}{_to(each, moved_away)}",
                (each.index,), partition_names(owned), partition_names(each.got[member]), member, shape=shape,
            )  # fmt: skip
            return


def _to(each: invariants_rounds.Round, moved_away: frozenset[Partition]) -> str:
    to = sorted({owner for partition in moved_away for owner in each.owners.get(partition, ())})
    return f" to {' and '.join(to)}" if to else ""


@impact("More partitions move than balance requires", "trivia", "stickiness", "needless-move", links=("KIP-54",))
@leader_invariant("assign/keeps-most", "grp-14", checks=(KEEPING,), applies_to=is_sticky)
def keeps_most(history: History) -> Iterator[Violation]:
    """Members with equal subscriptions keep as many partitions as equal shares allow."""
    for each in invariants_rounds.rounds(history, *invariants_rounds.STICKIES):
        owners = agreed(each.group)
        if not owners or not _subscribe_alike(each) or not is_sticky(history.case, each.op.step):
            continue
        share, extra = divmod(len(each.group.wanted), len(each.members))
        owned = {member: len(set(one.owned)) for member, one in each.members.items()}
        over = sum(size > share for size in owned.values())
        most = sum(min(size, share) for size in owned.values()) + min(extra, over)
        kept = sum(len(each.got[member] & set(one.owned)) for member, one in each.members.items())
        if kept < most:
            first = moved(each, owners)
            shown = f"; {partition_name(first[0][0])} goes from {first[0][1]} to {first[0][2]}" if first else ""
            yield Violation(
                f"{each.assignor}, {each.step}: all subscribe to the same topics, {len(each.group.wanted)} partitions "
                f"make {share}{f' or {share + 1}' if extra else ''} for each of {len(each.members)} members, so that "
                f"{most} of the {len(owners)} owned can stay; {kept} stay{shown}",
                (each.index,), f"{most} stay", f"{kept} stay", " ".join(first[0][1:]) if first else "",
                shape=("moved", "more than needed"),
            )  # fmt: skip


@impact("Two members exchange partitions for no benefit", "trivia", "stickiness", "needless-move", links=("KIP-54",))
@leader_invariant("assign/no-exchange", "grp-14", checks=(KEEPING,), applies_to=is_sticky)
def no_exchange(history: History) -> Iterator[Violation]:
    """No two members that owned partitions before exchange partitions of one topic."""
    for each in invariants_rounds.rounds(history, *invariants_rounds.STICKIES):
        owners = agreed(each.group) if is_sticky(history.case, each.op.step) else None
        moves: dict[tuple[str, str, str], Partition] = {}
        for partition, old, new in moved(each, owners or {}):
            moves[partition[0], old, new] = partition
            back = moves.get((partition[0], new, old))
            if back is not None:
                yield Violation(
                    f"{each.assignor}, {each.step}: {partition_name(partition)} goes from {old} to {new} and "
                    f"{partition_name(back)} from "
                    f"{new} to {old}: both could have stayed",
                    (each.index,), "both stay", "both move", f"{old} {new}", shape=("moved", "exchanged"),
                )  # fmt: skip
                break


@impact("A partition moves without need", "trivia", "stickiness", "needless-move", links=("KIP-54",))
@leader_invariant("assign/no-needless-move", "grp-21", checks=(KEEPING,), grade=Grade.SHOULD, applies_to=is_sticky)
def no_needless_move(history: History) -> Iterator[Violation]:
    """No partition moves that could stay with its owner without loss of balance."""
    for each in invariants_rounds.rounds(history, *invariants_rounds.STICKIES):
        owners = agreed(each.group) if is_sticky(history.case, each.op.step) else None
        if not owners or not each.is_whole or not invariants_rounds.is_balanced(each, each.got):
            continue
        for partition, old, new in moved(each, owners):
            back = {**each.got, old: each.got[old] | {partition}, new: each.got[new] - {partition}}
            if invariants_rounds.is_balanced(each, back):
                yield Violation(
                    f"{each.assignor}, {each.step}: {partition_name(partition)} goes from {old}, which then has "
                    f"{len(each.got[old])}, to {new}, which then has {len(each.got[new])}; if it stayed, the shares "
                    "would be in balance too",
                    (each.index,), f"{old} keeps {partition_name(partition)}", f"{new} has it", f"{old} {new}",
                    shape=("moved", "without need"),
                )  # fmt: skip
                break


@leader_invariant("assign/newest-wins", "grp-24", checks=("assign/claims",), grade=Grade.SHOULD, applies_to=is_sticky)
def newest_wins(history: History) -> Iterator[Violation]:
    """If two members claim a partition, the one with the older generation does not take it from the other."""
    for each in invariants_rounds.rounds(history, *invariants_rounds.STICKIES):
        if not each.is_whole or each.group.has_racks or not is_sticky(history.case, each.op.step):
            continue
        for partition, claiming in sorted(each.group.claims.items()):
            may = [one for one in claiming if each.group.may_have(one, partition)]
            newest = max((one.generation for one in may), default=0)
            rightful = [one for one in may if one.generation == newest]
            stale = [one for one in may if one.generation < newest and one.id in each.owners[partition]]
            if stale and len(rightful) == 1:
                need = _room_for(each, rightful[0], stale[0])
                if need is not None:
                    yield Violation(
                        f"{each.assignor}, {each.step}: {rightful[0].id} claims {partition_name(partition)} in "
                        "generation "
                        f"{newest} and {stale[0].id} in generation {stale[0].generation}; {stale[0].id} gets it, "
                        f"{need}",
                        (each.index,), f"{rightful[0].id} keeps it", f"{stale[0].id} has it",
                        f"{rightful[0].id} {stale[0].id}", shape=("stale claim wins",),
                    )  # fmt: skip
                    break


def _room_for(each: invariants_rounds.Round, rightful: Member, stale: Member) -> str | None:
    """Why balance does not justify taking the partition from its owner; None if it does."""
    mine, other = each.got[rightful.id], each.got[stale.id]
    if len(mine) < len(other):
        return f"although it has {len(other)} and {rightful.id} only {len(mine)}"
    for partition in sorted(mine - set(rightful.owned)):
        if partition[0] in stale.subscription:
            return f"although {rightful.id} gets {partition_name(partition)} instead, which it does not claim"
    return None


def is_user_data_request(case: Case, step: Step) -> bool:
    return step.verb == "user-data" and step["assignor"] == STICKY


@impact(
    "Sticky user data cannot be read by leaders of other clients",
    "refused peer",
    "layout",
    "needless-move",
    links=("KIP-54", "KIP-341"),
)
@leader_invariant("assign/writes-user-data", "grp-20", checks=("assign/user-data",), applies_to=is_user_data_request)
def writes_user_data(history: History) -> Iterator[Violation]:
    """A member of sticky writes its partitions and their generation in the format that Kafka reads."""
    for op in history.ops:
        if is_user_data_request(history.case, op.step) and isinstance(op.observation, Replied):
            owned = frozenset((topic, number) for topic, number in op.step["owned"])
            generation, data = op.step["generation"], op.observation["hex"] or ""
            found = _misread(owned, generation, data)
            if found is not None:
                requested = f"a member that owns {partition_names(owned)} of generation {generation}"
                yield _miswritten(op, requested, f"{partition_names(owned)}, generation {generation}", *found)


def _misread(owned: frozenset[Partition], generation: int, data: str) -> tuple[str, str] | None:
    """What is wrong with the user data, as a sentence and as a shape; None if it is right."""
    if not data:
        return ("writes no user data", "none") if owned else None
    read = read_user_data(bytes.fromhex(data))
    if read is None:
        return f"writes {data[:64]}, which Kafka's StickyAssignor cannot read", "unreadable"
    if frozenset(read[0]) != owned:
        return (
            f"writes {data[:64]}, in which Kafka's StickyAssignor reads {partition_names(read[0])}",
            "other partitions",
        )
    if owned and read[1] != generation:
        return f"writes {data[:64]}, in which Kafka's StickyAssignor reads generation {read[1]}", "other generation"
    return None


def is_generation_request(case: Case, step: Step) -> bool:
    return step.verb == "user-data" and step["assignor"] == COOPERATIVE


@impact(
    "Older leaders reassign partitions that a cooperative member still owns",
    "double processing",
    "layout",
    "double-processing",
    "needless-move",
    links=("KAFKA-14639",),
)
@leader_invariant(
    "assign/writes-generation",
    "grp-25",
    checks=("assign/user-data",),
    grade=Grade.SHOULD,
    applies_to=is_generation_request,
)
def writes_generation(history: History) -> Iterator[Violation]:
    """If a member of cooperative-sticky writes user data, Kafka reads its generation there."""
    for op in history.ops:
        if is_generation_request(history.case, op.step) and isinstance(op.observation, Replied):
            generation, data = op.step["generation"], bytes.fromhex(op.observation["hex"] or "")
            read = int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else None
            if data and read != generation:
                what = "no generation" if read is None else f"generation {read}"
                why = f"writes {data.hex()[:64]}, in which Kafka's CooperativeStickyAssignor reads {what}"
                shape = "unreadable" if read is None else "other generation"
                yield _miswritten(op, f"a member of generation {generation}", f"generation {generation}", why, shape)


def _miswritten(op: Op, requested: str, wanted: str, why: str, shape: str) -> Violation:
    return Violation(
        f"{op.step['assignor']}, step {op.index + 1}: {requested} {why}",
        (op.index,), wanted, str(op.observation["hex"] if isinstance(op.observation, Replied) else "")[:160],
        "userData", shape=("user data", shape),
    )  # fmt: skip
