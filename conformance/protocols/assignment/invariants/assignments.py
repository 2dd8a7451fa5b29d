"""Invariants of every assignor: completeness, single owners, balance and order, whatever members owned before."""

from collections import Counter
from collections.abc import Iterator, Mapping

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Refused, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.invariants import ALWAYS, BY_RULE, leader_invariant
from kipcheck.conformance.protocols.assignment.invariants.rounds import (
    STICKIES,
    Round,
    every_round,
    giveable,
    is_assign,
    of_assignors,
    rounds,
)
from kipcheck.conformance.protocols.assignment.model.assignment import (
    COOPERATIVE,
    RANGE,
    ROUNDROBIN,
    STICKY,
    Assignment,
    in_order,
    partition_name,
    partition_names,
    range_,
    roundrobin,
)
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.declare.survival import LOOKS

PLACE = 10

MAX_TEXT = 160


def kind_of_group(case: Case, step: Step) -> tuple[str, ...]:
    """What decides how hard a group is for an assignor: whether its members subscribe alike, and whether they claim."""
    members = [each for each in step.body.get("members", ()) if isinstance(each, Mapping)]
    subscriptions = {tuple(sorted(map(str, each.get("subscription") or ()))) for each in members}
    claims = any(each.get("owned") for each in members)
    return "alike" if len(subscriptions) < 2 else "mixed", "claims" if claims else "no claims"


LOOKS[Role.LEADER] = kind_of_group


def is_request(case: Case, step: Step) -> bool:
    return step.verb in ("assign", "user-data")


@leader_invariant("assign/answers", "grp-11", checks=(ALWAYS, "assign/mixed"), applies_to=is_request)
def answers(history: History) -> Iterator[Violation]:
    """Every group gets an assignment, whatever its members subscribe to or claim."""
    for op in history.ops:
        if isinstance(op.observation, Refused) and is_request(history.case, op.step):
            error, why = op.observation.error, op.observation.why[:MAX_TEXT]
            requested = "user data" if op.step.verb == "user-data" else "an assignment"
            yield Violation(
                f"step {op.index + 1} requests {requested} from {op.step['assignor']}, which fails with {error}: {why}",
                (op.index,), "an answer", f"{error}: {why}", shape=("refused", op.step.verb, error, _kind(op.step)),
            )  # fmt: skip


def _kind(step: Step) -> str:
    """The sticky assignors share one kind, since they fail for the same reasons; range and round robin do not."""
    return STICKY if step["assignor"] in STICKIES else str(step["assignor"])


@impact("An assignor omits a member of the group, or names a stranger", "stuck group", "answers", "stuck-group")
@leader_invariant("assign/everybody", "grp-12", checks=(ALWAYS, "assign/mixed"), applies_to=is_assign)
def every_member(history: History) -> Iterator[Violation]:
    """The answer names every member of the group once, and no other member."""
    for each in every_round(history):
        if each.shares is None:
            if isinstance(each.op.observation, Replied):
                got = str(dict(each.op.observation.payload))[:MAX_TEXT]
                yield _violation(each, f"the answer is not an assignment: {got}", ("garbled",), "an assignment", got)
            continue
        known: set[str] = set()
        for member, _ in each.shares:
            if member not in each.members:
                yield _violation(each, f"{member!r} is in the answer and not in the group", ("stranger",), "", member)
            elif member in known:
                yield _violation(each, f"{member} is in the answer twice", ("member twice",), "once", "twice")
            known.add(member)
        for member in each.members.keys() - known:
            yield _violation(each, f"{member} is in the group and not in the answer", ("member missing",), member, "")


@impact(
    "A member gets partitions that it does not subscribe to, or that do not exist",
    "stuck group",
    "ownership",
    "double-processing",
    "unread-partition",
)
@leader_invariant("assign/nothing-else", "grp-03", checks=(ALWAYS, "assign/mixed"), applies_to=is_assign)
def nothing_else(history: History) -> Iterator[Violation]:
    """Only existing partitions are assigned, and only to members that subscribe to their topic."""
    for each in rounds(history):
        for member, partitions in each.got.items():
            subscription = each.members[member].subscription
            for partition in sorted(partitions):
                topic, number = partition
                size = each.group.sizes.get(topic)
                if size is None:
                    what, shape = f"topic {topic} does not exist", "no such topic"
                elif not 0 <= number < size:
                    what, shape = f"{topic} has {size} partitions, numbered from 0", "no such partition"
                elif topic not in subscription:
                    subscribes = ", ".join(subscription) or "nothing"
                    what, shape = f"it subscribes to {subscribes}", "not subscribed"
                else:
                    continue
                why = f"{member} is assigned {partition_name(partition)}; {what}"
                yield _violation(
                    each, why, (shape,), f"not {partition_name(partition)}", partition_names(partitions), member
                )


@impact("A partition is assigned to two members", "double processing", "ownership", "double-processing")
@leader_invariant("assign/one-owner", "grp-03", "429-16", checks=(ALWAYS, "assign/mixed"), applies_to=is_assign)
def one_owner(history: History) -> Iterator[Violation]:
    """No partition is assigned twice."""
    for each in rounds(history):
        for partition, members in sorted(each.owners.items()):
            if len(members) == 1:
                continue
            owners = sorted(set(members))
            claiming = [one.id for one in each.group.claims.get(partition, ())]
            claim_note = f" ({' and '.join(claiming)} claimed it)" if claiming else ""
            to = " and to ".join(owners) if len(owners) > 1 else f"{owners[0]} twice"
            shape = "two owners" if len(owners) > 1 else "named twice", f"claimed by {min(len(claiming), 2)}"
            why = f"{partition_name(partition)} is assigned to {to}{claim_note}"
            yield _violation(each, why, shape, "one owner", ", ".join(members), *owners)


@impact("A partition of a subscribed topic is assigned to no member", "stuck group", "ownership", "unread-partition")
@leader_invariant("assign/none-idle", "grp-03", checks=(ALWAYS,), applies_to=is_assign)
def none_idle(history: History) -> Iterator[Violation]:
    """Every partition of a subscribed topic is assigned, except those that cooperative members still own."""
    for each in rounds(history):
        for partition in each.group.wanted:
            if partition in each.owners:
                continue
            claiming = each.group.claims.get(partition, ())
            if claiming and each.assignor == COOPERATIVE:
                continue
            readers = ", ".join(one.id for one in each.group.subscribers[partition[0]])
            why = f"{partition_name(partition)} is not assigned, although {readers} subscribes to {partition[0]}"
            also = "; no member claims it and has to give it up first" if each.assignor == COOPERATIVE else ""
            yield _violation(each, why + also, ("idle",), f"one of {readers}", "no member")


@impact("Members get more partitions than others without need", "trivia", "balance", "unfair-load")
@leader_invariant("assign/balance", "grp-13", checks=(ALWAYS,), applies_to=is_assign)
def balance(history: History) -> Iterator[Violation]:
    """Shares differ by no more than the assignor allows, once all partitions are assigned."""
    for each in rounds(history):
        if not each.is_whole:
            continue  # a violation of another invariant, or a cooperative round before the last one
        if each.assignor == RANGE:
            yield from _balanced_by_topic(each)
        elif each.assignor == ROUNDROBIN:
            yield from _balanced_if_equal(each)
        else:
            sizes = {member: len(partitions) for member, partitions in each.got.items()}
            for giver, receiver, partition in giveable(each, sizes, each.got):
                yield _violation(
                    each,
                    f"{giver} has {sizes[giver]} partitions and {receiver} has {sizes[receiver]}: "
                    f"{partition_name(partition)} "
                    f"could move to {receiver}, which subscribes to {partition[0]}",
                    ("unbalanced",), "no possible receiver with two fewer", _sizes(each), giver, receiver,
                )  # fmt: skip
                break


def _balanced_by_topic(each: Round) -> Iterator[Violation]:
    for topic, readers in each.group.subscribers.items():
        sizes = {one.id: sum(name == topic for name, _ in each.got[one.id]) for one in readers}
        yield from _apart(each, sizes, f"of the partitions of {topic}")


def _balanced_if_equal(each: Round) -> Iterator[Violation]:
    real = {member: frozenset(one.subscription) & {*each.group.sizes} for member, one in each.members.items()}
    if len({topics for topics in real.values() if topics}) == 1:
        yield from _apart(each, {member: len(each.got[member]) for member, topics in real.items() if topics}, "")


def _apart(each: Round, sizes: dict[str, int], what: str) -> Iterator[Violation]:
    most, least = max(sizes, key=sizes.__getitem__, default=""), min(sizes, key=sizes.__getitem__, default="")
    if sizes and sizes[most] > sizes[least] + 1:
        why = f"{what} {most} has {sizes[most]} and {least} has {sizes[least]}".lstrip()
        yield _violation(each, why, ("unbalanced",), "a difference of at most one", _sizes(each), most, least)


def is_by_rule(case: Case, step: Step) -> bool:
    """Is it an assignment of dynamic members, by an assignor with a documented result?

    Static members have an invariant of their own.
    """
    return _has_rule(step) and not _is_static(step)


def is_static_by_rule(case: Case, step: Step) -> bool:
    return _has_rule(step) and _is_static(step)


def _has_rule(step: Step) -> bool:
    # Rack-aware range assignment, from 3.5.0 on, is not part of the rule.
    return (
        step.verb == "assign" and step["assignor"] in (RANGE, ROUNDROBIN)
        and not (step["assignor"] == RANGE and any(each["rack"] for each in step["members"]))
    )  # fmt: skip


def _is_static(step: Step) -> bool:
    return any(each["instance"] is not None for each in step["members"])


@impact(
    "An assignment differs from the rule that its name promises", "trivia", "order", "needless-move", "broken-joins"
)
@leader_invariant("assign/by-rule", "grp-16", checks=(BY_RULE,), applies_to=is_by_rule)
def by_rule(history: History) -> Iterator[Violation]:
    """Range gives consecutive partitions of each topic in member id order; round robin deals all out in that order."""
    for each in rounds(history, RANGE, ROUNDROBIN):
        if is_by_rule(history.case, each.op.step):
            wanted = _ruled(each)
            shares = Counter(frozenset(one) for one in wanted.values())
            is_permuted = shares == Counter(each.got[member] for member in wanted)
            yield from _unlike(each, wanted, "members in another order" if is_permuted else "another outcome")


@impact("Partitions move when static members restart", "trivia", "order", "needless-move", links=("KIP-345",))
@leader_invariant(
    "assign/static-order", "grp-17", checks=("assign/static",), grade=Grade.SHOULD, applies_to=is_static_by_rule
)
def static_order(history: History) -> Iterator[Violation]:
    """Static members are ordered first, by instance id, so that one that rejoins gets the same partitions."""
    for each in rounds(history, RANGE, ROUNDROBIN):
        if is_static_by_rule(history.case, each.op.step):
            yield from _unlike(each, _ruled(each), "not by instance id")


def _ruled(each: Round) -> Assignment:
    return range_(each.group) if each.assignor == RANGE else roundrobin(each.group)


def _unlike(each: Round, wanted: Assignment, shape: str) -> Iterator[Violation]:
    if not each.is_whole:
        return  # a violation that another invariant reports
    for member in in_order(each.group.members):
        if each.got[member.id] != frozenset(wanted[member.id]):
            order = ", ".join(_with_instance(each, one.id) for one in in_order(each.group.members))
            yield _violation(
                each,
                f"in the order {order}, {member.id} should get {partition_names(wanted[member.id])}; it is assigned "
                f"{partition_names(each.got[member.id])}",
                (shape,), partition_names(wanted[member.id]), partition_names(each.got[member.id]), member.id,
            )  # fmt: skip
            return


def _with_instance(each: Round, member: str) -> str:
    instance = each.members[member].instance
    return member if instance is None else f"{member} (instance {instance})"


@impact("Partitions that are to be joined go to different members", "wrong data", "order", "broken-joins")
@leader_invariant("assign/range-alike", "grp-18", checks=(BY_RULE, "assign/racks"), applies_to=of_assignors(RANGE))
def range_assigns_equally(history: History) -> Iterator[Violation]:
    """Range assigns topics with equal partition counts and subscribers in the same way, so that they can be joined."""
    for each in rounds(history, RANGE):
        if not each.is_whole:
            continue
        first: dict[tuple[int, tuple[str, ...]], str] = {}
        for topic, readers in each.group.subscribers.items():
            other = first.setdefault((each.group.sizes[topic], tuple(one.id for one in readers)), topic)
            for number in range(each.group.sizes[topic]) if readers else ():
                one, two = each.owners[topic, number][0], each.owners[other, number][0]
                if one != two:
                    yield _violation(
                        each,
                        f"{partition_name((other, number))} is assigned to {two} and "
                        f"{partition_name((topic, number))} to {one}, "
                        f"although both topics have {each.group.sizes[topic]} partitions and the same subscribers",
                        ("not alike",), f"{two} for both", f"{two} and {one}", one, two,
                    )  # fmt: skip
                    return


@impact("The assignment depends on the order in which members are listed", "trivia", "order", "needless-move")
@leader_invariant(
    "assign/any-order",
    "grp-15",
    checks=("assign/order",),
    grade=Grade.SHOULD,
    applies_to=of_assignors(RANGE, ROUNDROBIN),
)
def any_order(history: History) -> Iterator[Violation]:
    """Range and round robin do not depend on the order in which members, topics and subscriptions are listed."""
    yield from _changed_by_order(history, RANGE, ROUNDROBIN)


@impact("A sticky assignment depends on the order in which members are listed", "trivia", "order", "needless-move")
@leader_invariant(
    "assign/any-order-sticky", "grp-22", checks=("assign/order",), grade=Grade.INFO, applies_to=of_assignors(*STICKIES)
)
def any_order_sticky(history: History) -> Iterator[Violation]:
    """The sticky assignors do not depend on the order in which members are listed."""
    yield from _changed_by_order(history, *STICKIES)


def _changed_by_order(history: History, *assignors: str) -> Iterator[Violation]:
    known: dict[object, Round] = {}
    for each in rounds(history, *assignors):
        members = frozenset(
            (one.id, frozenset(one.subscription), frozenset(one.owned), one.generation, one.instance, one.rack)
            for one in each.group.members
        )
        first = known.setdefault((each.assignor, members, frozenset(each.group.topics)), each)
        for member in sorted(each.members):
            if first.got[member] != each.got[member]:
                yield _violation(
                    each,
                    f"{member} is assigned {partition_names(first.got[member])} in {first.step} and "
                    f"{partition_names(each.got[member])} "
                    f"in {each.step}, where the same group is listed in another order",
                    ("another order",),
                    partition_names(first.got[member]),
                    partition_names(each.got[member]),
                    member,
                    before=first,
                )
                break


def _sizes(each: Round) -> str:
    return ", ".join(f"{member} {len(partitions)}" for member, partitions in sorted(each.got.items()))


def _violation(
    each: Round, why: str, shape: tuple[str, ...], expected: str, observed: str, *members: str,
    before: Round | None = None,
) -> Violation:  # fmt: skip
    at = (each.index,) if before is None else (before.index, each.index)
    path = " ".join(members)
    return Violation(f"{each.assignor}, {each.step}: {why}", at, expected, observed, path, shape=shape)
