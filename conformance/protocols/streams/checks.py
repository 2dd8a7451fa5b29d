"""Checks of Streams groups: upgrades and downgrades of every kind, in every order, with failures."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import APACHE, KIP_268, Standing, edition
from kipcheck.conformance.core.values.release import Release, judged_lines
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Operation, none_given
from kipcheck.conformance.protocols.declare.conversations import Subject, Value
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.streams import enumerated, invariants, one_application
from kipcheck.conformance.protocols.streams.blobs import write_assignment, write_subscription
from kipcheck.conformance.protocols.streams.enumerated import given, together
from kipcheck.conformance.protocols.streams.members_ops import plain_memory, plain_settings
from kipcheck.conformance.protocols.streams.model.members import (
    AssignmentInfo,
    Memory,
    Settings,
    Store,
    SubscriptionInfo,
    Subtopology,
    TaskId,
    Topology,
)
from kipcheck.conformance.protocols.streams.model.rules import LINES, Rules
from kipcheck.conformance.protocols.streams.ops import MEMBERS, OPERATIONS, STATELESS, STREAMS, STREAMS_MIXED, Deploy
from kipcheck.conformance.protocols.streams.rolling import Pair, pairs, pairs_of_streams_groups, script
from kipcheck.conformance.protocols.streams.strategies.scripts import (
    LAST_STOP,
    mixed_streams_scripts,
    streams_scripts,
)
from kipcheck.conformance.protocols.upgrade import script_checks as scripts
from kipcheck.conformance.protocols.upgrade.script_checks import possible_script, script_family, value_of
from kipcheck.conformance.targets.protocol import STREAM, Claims
from kipcheck.conformance.wire.schema import ZERO_UUID

DEFAULT_LINE: Final = LINES[:1]
"""For releases without ``upgrade.from``, which ignore it."""

# Hand-written scripts


def started(kind: str, members: str = "abc") -> str:
    return "; ".join((*(f"start {each} {kind}" for each in members), "settle"))


def restarted(kind: str, members: Iterable[str] = "abc") -> str:
    return "; ".join(f"start {each} {kind}; settle" for each in members)


def then(*texts: str) -> str:
    return "; ".join(texts)


ORDERS: Final = tuple(then(started("own"), restarted("future", each)) for each in permutations("abc"))
WITHOUT_WAITING: Final = then(
    started("own"), "start a future; move b 3; start b future; move c 2; start c future; settle", restarted("own")
)
"""The next member is restarted before the group is at rest; then all return to the old release."""
ALONE: Final = "start a future; start b own; settle; stop a; settle; restart a; settle; stop b; settle"
"""A member whose version fell returns to its latest when the last old member is gone."""
FOUR: Final = then(started("own", "abcd"), restarted("future", "abcd"))
AGAIN: Final = then(started("own"), restarted("own"))
PROBED: Final = (*ORDERS, WITHOUT_WAITING, ALONE, FOUR, AGAIN)
TWO_BOUNCES: Final = then(started("own<{0}"), restarted("own"))
OFFLINE: Final = then(started("own"), "stop a; stop b; stop c; settle", started("future"))
DOWNGRADED: Final = then(started("future"), restarted("own"), restarted("future"))
REFUSED: Final = then(started("own"), "start a own<9.9; settle; start b own<0.10.0; start c own<2.4; settle")
HARD_MIX: Final = "start a own<{0}; start b own<{0}; settle; start c future; settle; settle"
FROM_THE_LINE_BEFORE: Final = "start a own<{1}; settle"
UPGRADES: Final = (TWO_BOUNCES, OFFLINE, DOWNGRADED, REFUSED, HARD_MIX, FROM_THE_LINE_BEFORE)
THREADS: Final = then(
    "start a own; start b own of a; start c own; start d own of c; settle",
    "start a future; start b future of a; settle; start c future; settle; start d future of c; settle",
)
"""Two instances of two threads each; one instance is restarted as a whole, the other thread by thread."""
HALF: Final = "start a own; start b own of a; settle; start b future of a; settle; start a future; settle"
EXPIRED: Final = then(started("own"), "expire b; settle; start c future; move a 2; expire a; settle")
RESTARTED: Final = then(started("own"), "start b future; settle; start a future; settle; start c future; settle")
SHUT_DOWN: Final = then(started("own"), "shut-down b; settle")
SHUT_DOWN_MIXED: Final = then(
    "start a own; start b future; settle; shut-down a; settle; shut-down b; settle",
    "start a future; start b own; settle; shut-down b; settle",
)
"""The leader is older than the member that requests the shutdown, and then newer."""


def with_failures(text: str) -> Iterator[str]:
    return scripts.with_failures(OPERATIONS, text, "stop {0}; restart {0}")


T: Final = (Topic("t", 3),)
T_U: Final = (Topic("t", 2), Topic("u", 2))
COUNTS: Final = Topology((Subtopology(0, ("t",), stores=(Store("counts"),)),), standbys=1)
CHAIN: Final = (
    Subtopology(0, ("t",), ("r",)),
    Subtopology(1, ("r",), ("s",)),
    Subtopology(2, ("s",), stores=(Store("sums"),)),
)
JOINED: Final = (Subtopology(0, ("t", "u"), stores=(Store("left"), Store("right")), copartition=(("t", "u"),)),)
JOINED_LATER: Final = (
    Subtopology(0, ("t",), ("r",)),
    Subtopology(1, ("r", "u"), stores=(Store("joined"),), copartition=(("r", "u"),)),
)
WITH_STANDBYS: Final = Deploy(COUNTS, T, end_points=True)
DEPLOYED: Final = (
    WITH_STANDBYS,
    Deploy(Topology(CHAIN, 2), T, end_points=True),
    Deploy(Topology(JOINED, 1), T_U, end_points=True),
    Deploy(Topology(JOINED_LATER), T_U, tags=(("zone", "z1"), ("zone", "z2"))),
)
BACKWARDS: Final = (
    Subtopology(0, ("q",)),
    Subtopology(1, ("r",), ("q",)),
    Subtopology(2, ("t",), ("r",)),
)
"""A chain that is listed from its end: the size of a topic depends on one that is determined later."""
LACKING: Final = (Deploy(COUNTS, ()), Deploy(Topology(CHAIN), ()), Deploy(Topology(JOINED_LATER), (Topic("u", 2),)))
"""A source topic is missing; in the second, two repartition topics depend on it."""
UNEVEN: Final = Deploy(Topology(JOINED), (Topic("t", 2), Topic("u", 3)))
"""Partition 2 of the second topic has no partner in the first, with which it is joined."""
UNEVENS: Final = tuple(
    Deploy(Topology(JOINED), (Topic("t", first), Topic("u", second))) for first, second in ((2, 3), (3, 2), (1, 4))
)
LATER_SIZES: Final = (
    Deploy(Topology(BACKWARDS), T),
    Deploy(Topology(JOINED_LATER), (Topic("t", 2), Topic("u", 4))),
)
"""The size of a repartition topic follows from a later subtopology, or from the topic with which it is joined."""


def first_value(text: str, deployed: Deploy | None = None) -> Callable[[Subject], Value]:
    """A script as a first value of a check.

    ``{0}`` in the text is the release line for ``upgrade.from`` (``line``), ``{1}`` the newest that the release has to
    accept.
    """

    def value(subject: Subject) -> Value:
        steps = OPERATIONS.parse_shorthand(text.format(line(subject.edition), newest_line(subject.edition)))
        begun = () if deployed is None else (OPERATIONS.step_of(deployed),)
        return value_of(subject, (*begun, *steps))

    return value


def line(edition_name: str) -> str:
    """The value of ``upgrade.from`` in scripts: 1.1 in a draft or if the release accepts it, else its first value."""
    here = edition(edition_name)
    if here.standing is Standing.DRAFT:
        return "1.1"
    taken = Rules.of(here.release).accepts
    return "1.1" if "1.1" in taken else [*taken, "1.1"][0]


def newest_line(edition_name: str) -> str:
    """The newest value of ``upgrade.from`` that the edition's release has to accept."""
    here = edition(edition_name)
    return "1.1" if here.standing is Standing.DRAFT else [*DEFAULT_LINE, *Rules.of(here.release).owed().accepts][-1]


def upgrades(kind: str) -> tuple[str, ...]:
    """Scripts of mixed groups, from the table of releases."""

    def restarts(given: str) -> str:
        return given if ";" in given else restarted(*given.split())

    return tuple(then(started(first), *map(restarts, later)) for first, *later in table()["streams-upgrades"][kind])


MIXED: Final = upgrades("released")
MIXED_DRAFT: Final = upgrades("draft")


def mixed(number: int) -> Callable[[Subject], Value]:
    """One of the mixed scripts of the edition, by number."""

    def value(subject: Subject) -> Value:
        texts = MIXED if subject.edition != KIP_268.name else MIXED_DRAFT
        return first_value(texts[number % len(texts)], WITH_STANDBYS if number % 3 == 0 else None)(subject)

    return value


# Every value of a setting


def each_member(subject: Subject) -> Iterator[Conversation]:
    """Each of four members restarts, and each requests the shutdown of the application."""
    for each in MEMBERS:
        failed = then(started("own", "".join(MEMBERS)), f"stop {each}; settle; restart {each}; settle")
        yield Conversation(OPERATIONS.parse_shorthand(f"{failed}; shut-down {each}; settle"), each)


def every_line_with_upgrade_from(subject: Subject) -> Iterator[Conversation]:
    """Members of each line are upgraded with its value of ``upgrade.from``, and then without it.

    To the last release before the one that requires a stop there, or else to the next line.
    """
    if subject.edition == KIP_268.name:
        return
    releases = judged_lines("streams")
    for each, old, following in zip(LINES, releases, releases[1:], strict=False):
        new = following if Release.parse(old) >= Release.parse(LAST_STOP) else LAST_STOP
        text = then(started(old, "ab"), restarted(f"{new}<{each}", "ab"), restarted(new, "ab"))
        yield Conversation(OPERATIONS.parse_shorthand(text), each)


# Families


def editions(name: str) -> Iterable[str]:
    """The edition itself. A run of ``apache`` does not include the draft: jars of releases do not implement it."""
    here = edition(name)
    return (name,) if here == KIP_268 or here.standing is Standing.RELEASED else ()


def of_any_release(name: str) -> Iterable[str]:
    """A run of ``apache``, which names no release, includes the draft too; one that names a release has no others."""
    here = edition(name)
    return (name, KIP_268.name) if here == APACHE else editions(name) if here == KIP_268 else ()


def is_released(subject: Subject) -> bool:
    return subject.edition != KIP_268.name


def line_by_line(subject: Subject) -> Iterator[Conversation]:
    for each in pairs():
        yield Conversation(tuple(OPERATIONS.parse_shorthand(script(each))), f"{each.old} to {each.new}")


def by_heartbeats(subject: Subject) -> Iterator[Conversation]:
    for each in pairs_of_streams_groups() if is_released(subject) else ():
        there, back = script(each), script(Pair(each.new, each.old))
        yield Conversation(tuple(OPERATIONS.parse_shorthand(there)), f"{each.old} to {each.new}")
        yield Conversation(tuple(OPERATIONS.parse_shorthand(back)), f"{each.new} to {each.old}")


def beside_others(subject: Subject) -> Iterator[Conversation]:
    for text, what in one_application.scripts(subject.edition):
        yield Conversation(tuple(OPERATIONS.parse_shorthand(text)), what)


# Operations for a doctor

SAMPLE: Final = Settings("", STATELESS, str(ZERO_UUID))


def sample_ops(role: Role, claims: Claims) -> Iterator[Operation]:
    """Of a leader and of a member. What they read is of version 1, which every release reads."""
    if STREAM not in claims.assignors:
        return
    match role:
        case Role.LEADER:
            said = write_subscription(SubscriptionInfo(1)).hex()
            joined = {"id": "c1", "subscription": ["t"], "userData": said, "owned": [], "generation": -1}
            yield _sample("assign", topics=[{"name": "t", "partitions": 2}], members=[joined], offsets={})
        case Role.MEMBER:
            assigned = write_assignment(AssignmentInfo(1, active=(TaskId(0, 0),))).hex()
            yield _sample("configure")
            yield _sample("subscribe", topics=["t"])
            yield _sample("assigned", partitions=[["t", 0]], userData=assigned)


def _sample(op: str, **more: Any) -> Operation:
    memory = {} if op == "configure" else {"memory": plain_memory(Memory(1))}
    return {"op": f"stream-{op}", "settings": plain_settings(SAMPLE), **memory, **more}


STREAMS_GROUPS: Final = replace(
    script_family(OPERATIONS, "fleet", STREAMS, editions, streams_scripts), sample_ops=sample_ops
)
MIXED_STREAMS_GROUPS: Final = script_family(OPERATIONS, "fleet", STREAMS_MIXED, of_any_release, mixed_streams_scripts)
BESIDE_OTHERS: Final = script_family(OPERATIONS, "fleet", STREAMS_MIXED, editions, mixed_streams_scripts)
"""In the edition of a release, too: scripts name what members are beside it."""
conversation: Final = possible_script(OPERATIONS)

of = partial(invariants_of, part=invariants)
VERSIONS: Final = of(invariants.VERSIONS)
LEADING: Final = of(invariants.LEADING)
ENDING: Final = of(invariants.ENDING)
OWNING: Final = of(invariants.OWNING)
PLACING: Final = of(invariants.PLACING, first=("streams/standbys", "streams/idle-standbys", "streams/hosts"))
CONFIGURED: Final = of(invariants.CONFIGURED)
LIVING: Final = of(invariants.LIVING, first=("streams/lives",))
EVERYTHING: Final = (*VERSIONS, *LEADING, *ENDING, *OWNING, *PLACING, *CONFIGURED, *LIVING)
OBSERVABLE: Final = (
    "streams/acts", "streams/lives", "streams/upgraded", "streams/one-owner", "streams/handed-over",
    "streams/all-owned", "streams/pairs", "streams/decodable", "streams/lowest-version", "streams/second-int",
    "streams/leads-the-future", "streams/old-leader-fails", "streams/future-gets", "streams/others-get",
    "streams/restarts-afresh", "streams/upgrade-from", "streams/refuses-values", "streams/successive-differ",
    "streams/no-probing", "streams/probing-ends", "streams/protocols",
)  # fmt: skip
"""What processes on a broker show: what they send, and which tasks they run, not what a member makes of an assignment
inside itself."""
BY_HEARTBEATS: Final = (
    "streams/acts", "streams/lives", "streams/one-owner", "streams/handed-over", "streams/all-owned",
    "streams/probing-ends",
)  # fmt: skip
"""The same of members to which a coordinator assigns tasks, which send no subscriptions."""
DRAWN: Final = 12


def _check(
    id: str,
    sentence: str,
    ids: tuple[str, ...],
    *first: Callable[[Subject], Value],
    known: Callable[[Subject], Iterable[Conversation]] = none_given,
) -> Check[Subject]:
    return Check(
        f"streams/{id}",
        sentence,
        STREAMS_GROUPS,
        conversation,
        values=len(first) + DRAWN,
        invariants=ids,
        first=first,
        given=known,
    )


CHECKS: tuple[Check[Subject], ...] = (
    _check(
        "probing",
        "members of two metadata versions find a common one, in any order of restarts, and reach the latest",
        (*VERSIONS, *LEADING, *ENDING, *LIVING),
        *map(first_value, PROBED),
        known=given(enumerated.pairs, enumerated.triples),
    ),
    _check(
        "upgrade",
        "upgrades with upgrade.from, offline upgrades and downgrades reach their target version",
        (*CONFIGURED, *VERSIONS, *ENDING, *LIVING, *of("streams/upgrade")),
        *map(first_value, UPGRADES),
        known=given(enumerated.values, enumerated.hard_mixes),
    ),
    _check(
        "ownership",
        "in every mix of releases each task runs in one member, and standbys and end points are right",
        (*OWNING, *PLACING, *LIVING),
        *(first_value(text, WITH_STANDBYS) for text in (THREADS, HALF, EXPIRED, *ORDERS[:2])),
        known=together(given(enumerated.hand_overs), given(enumerated.threads, deployed=(WITH_STANDBYS,))),
    ),
    _check(
        "failures",
        "after a crash or a lost connection at any step of an upgrade the group comes to rest, upgraded",
        (*ENDING, *OWNING, *LIVING, *of("streams/failures", first=("streams/lowest-version", "streams/second-int"))),
        *map(first_value, with_failures(RESTARTED)),
        known=each_member,
    ),
    _check(
        "topologies",
        "with repartition chains, co-partitioned and missing topics all tasks are assigned, or all threads end",
        (*OWNING, *PLACING, *LIVING, *of("streams/topologies")),
        *(first_value(RESTARTED, each) for each in DEPLOYED),
        *(first_value(started("own"), each) for each in (*LACKING, UNEVEN)),
        first_value(SHUT_DOWN),
        first_value(SHUT_DOWN_MIXED),
        known=together(given(enumerated.shut_downs), given(enumerated.leaders, deployed=(*UNEVENS, *LATER_SIZES))),
    ),
    Check(
        "streams/mixed",
        "members of any compatible releases keep all invariants of Streams groups",
        MIXED_STREAMS_GROUPS,
        conversation,
        values=len(MIXED) + 2 * DRAWN,
        invariants=EVERYTHING,
        first=tuple(map(mixed, range(len(MIXED)))),
        given=together(given(enumerated.matrix, enumerated.neighbours), every_line_with_upgrade_from),
    ),
    Check(
        "streams/rolling",
        "three members are upgraded from each line of releases to the next, though one is killed in the middle",
        MIXED_STREAMS_GROUPS,
        conversation,
        values=0,
        invariants=OBSERVABLE,
        about=is_released,
        given=line_by_line,
    ),
    Check(
        "streams/heartbeats",
        "three members of a streams group are upgraded to the next line, and back, though one is killed in the middle",
        MIXED_STREAMS_GROUPS,
        conversation,
        values=0,
        invariants=BY_HEARTBEATS,
        about=is_released,
        given=by_heartbeats,
    ),
    Check(
        "streams/beside",
        "an application leads and follows members of each other metadata version, and of a future one",
        BESIDE_OTHERS,
        conversation,
        values=0,
        invariants=OBSERVABLE,
        about=is_released,
        given=beside_others,
    ),
)
