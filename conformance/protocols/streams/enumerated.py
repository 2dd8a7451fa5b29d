"""Scripts of Streams groups that are not drawn: the decision tables of KIP-268, row by row.

Each value of ``upgrade.from``, each pair and triple of used and supported versions, with a change of the leader, and
each cell of the KIP's test matrix.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, combinations_with_replacement, pairwise, permutations, product
from typing import Final, TypeAlias

from kipcheck.conformance.core.files.releases_table import listed, named, since
from kipcheck.conformance.core.values.edition import KIP_268, Standing, edition
from kipcheck.conformance.core.values.release import Release, judged_lines
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.streams.model.draft import UPGRADES
from kipcheck.conformance.protocols.streams.model.members import FUTURE, OWN
from kipcheck.conformance.protocols.streams.model.rules import LINES, Rules
from kipcheck.conformance.protocols.streams.ops import OPERATIONS, Deploy

UNKNOWN_LINES: Final = ("0.9.0", "1.2", "9.9")
"""Values of ``upgrade.from`` that no release accepts."""
OLDEST_OF_VERSION: Final = (LINES[0], "1.1")
"""A value of ``upgrade.from`` for version 1, and one for version 2."""
FIRST_PROBING: Final = named("first-with-probing")
PRE_PROBING: Final = tuple(
    each for each in judged_lines("streams") if Release.parse(each) < Release.parse(since("kip-268"))
)
"""A release of each line before version probing, in order."""
WITHOUT_PATH: Final = LINES[:2]
"""The cell of the test matrix without a rolling path: no release of the later line has the fix (268-41, 268-53)."""


def accepted(edition_name: str) -> tuple[str, ...]:
    """The values of ``upgrade.from`` that the edition's release has to accept; empty if it does not check them."""
    here = edition(edition_name)
    return UPGRADES if here.standing is Standing.DRAFT else Rules.of(here.release).owed().accepts


def kinds(edition_name: str) -> tuple[str, ...]:
    """Binaries with settings in shorthand, one for each used and supported version that a member can have."""
    lines = [each for each in OLDEST_OF_VERSION if each in accepted(edition_name)]
    return tuple(f"{release}{'<' * bool(line)}{line}" for release in (OWN, FUTURE) for line in ("", *lines))


# Values of upgrade.from


def values(edition_name: str) -> Iterator[str]:
    """Each value of any release: two bounces with one that is accepted, and a start with one that is not."""
    taken = accepted(edition_name)
    for line in taken:
        yield f"start a own<{line}; start b own<{line}; settle; start b own; settle; start a own; settle"
        if edition(edition_name).standing is Standing.DRAFT:
            yield f"start a {FUTURE}<{line}; settle; start a {FUTURE}; settle"
    if taken:
        yield from (f"start a own<{line}; settle" for line in (*LINES, *UNKNOWN_LINES) if line not in taken)


# Used and supported versions


def pairs(edition_name: str) -> Iterator[str]:
    """Each pair of versions: either leads while both run, the second runs alone, and then leads."""
    for first, second in product(kinds(edition_name), repeat=2):
        yield f"start a {first}; start b {second}; settle; stop a; settle; restart a; settle"


def triples(edition_name: str) -> Iterator[str]:
    """Each leader beside each two other members; the second leads after the first, and members have tasks by then.

    Of each used version one kind: a subscription of version 1 or 2 does not contain the supported one.
    """
    taken = accepted(edition_name)
    fixed = zip((FUTURE, OWN), OLDEST_OF_VERSION, strict=True)
    here = (OWN, FUTURE, *(f"{release}<{line}" for release, line in fixed if line in taken))
    for first, (second, third) in product(here, combinations_with_replacement(here, 2)):
        yield f"start a {first}; start b {second}; start c {third}; settle; stop a; settle"


def hard_mixes(edition_name: str) -> Iterator[str]:
    """A member that the leader does not know beside members of version 1 and 2, in each order."""
    lines = [each for each in OLDEST_OF_VERSION if each in accepted(edition_name)]
    for line in lines:
        for order in permutations((OWN, f"{OWN}<{line}", FUTURE)):
            yield "; ".join((*(f"start {name} {kind}" for name, kind in zip("abc", order, strict=True)), "settle"))


# Hand-over of tasks


def hand_overs(edition_name: str) -> Iterator[str]:
    """Members join and leave one by one, in each order: tasks move in each of these rebalances."""
    for first, second, third in permutations("abc"):
        start = "; ".join(f"start {each} own; settle" for each in (first, second, third))
        yield f"{start}; stop {first}; settle; restart {first}; settle"
        yield f"start {first} own; settle; start {second} future; settle; start {third} future; settle"


def threads(edition_name: str) -> Iterator[str]:
    """Two threads of one instance, beside a third member: each of the three is of either release, in each order."""
    for a, b, c in product((OWN, FUTURE), repeat=3):
        yield f"start a {a}; start b {b} of a; settle; start c {c}; settle"
        yield f"start c {c}; settle; start a {a}; start b {b} of a; settle"


def shut_downs(edition_name: str) -> Iterator[str]:
    """Either of two members requests the shutdown of all, which the first one leads."""
    for first, second in product((OWN, FUTURE), repeat=2):
        yield from (f"start a {first}; start b {second}; settle; shut-down {each}; settle" for each in "ab")


def leaders(edition_name: str) -> Iterator[str]:
    """A member of the edition's release leads, alone and beside another one."""
    yield "start a own; settle"
    yield "start a own; start b own; settle"


# The test matrix


def matrix(edition_name: str) -> Iterator[str]:
    """Each cell of the KIP's test matrix: two members go from a release to a later one, or to the simulated one."""
    if edition_name != KIP_268.name:
        return
    rows = (*PRE_PROBING, OWN)
    for old, new in (*combinations(rows, 2), *((each, FUTURE) for each in rows)):
        line = upgrade_from(old)
        if (line, upgrade_from(new)) == WITHOUT_PATH:
            continue
        needs = line == LINES[0] if new in PRE_PROBING else bool(line)
        bounces = [f"{new}<{line}", new] if needs else [new]
        begun = f"start a {old}; start b {old}; settle"
        yield "; ".join((begun, *(f"start {name} {kind}; settle" for kind in bounces for name in "ba")))


def upgrade_from(release: str) -> str:
    """The value for members of this release; empty for those with version probing."""
    return next((each for each in UPGRADES if f"{release}.".startswith(f"{each}.")), "")


def neighbours(edition_name: str) -> Iterator[str]:
    """Members of each release with version probing go to the next one and back, in runs of releases of any line."""
    if edition(edition_name).standing is Standing.DRAFT:
        return
    probing, modern = listed("streams-probing"), listed("streams-modern")
    for line in ((FIRST_PROBING, *probing), modern):
        for old, new in pairwise(line):
            begun = f"start a {old}; start b {old}; settle"
            yield f"{begun}; start b {new}; settle; start a {new}; settle; start b {old}; settle"
    old, new = probing[-1], modern[0]
    line_of_old = old.rpartition(".")[0]
    bounces = "; ".join(f"start {each} {kind}; settle" for kind in (f"{new}<{line_of_old}", new) for each in "ba")
    yield f"start a {old}; start b {old}; settle; {bounces}"


# Conversations


Given: TypeAlias = Callable[[Subject], Iterable[Conversation]]


def given(*scripts: Callable[[str], Iterable[str]], deployed: Iterable[Deploy] = ()) -> Given:
    """The scripts as conversations of a check, with each of the deployments, or without one if there are none."""
    begun = tuple((OPERATIONS.step_of(each),) for each in deployed) or ((),)

    def conversations(subject: Subject) -> Iterator[Conversation]:
        for script in scripts:
            for text, start in product(script(subject.edition), begun):
                yield Conversation((*start, *OPERATIONS.parse_shorthand(text)), "enumerated")

    return conversations


def together(*several: Given) -> Given:
    return lambda subject: chain.from_iterable(each(subject) for each in several)
