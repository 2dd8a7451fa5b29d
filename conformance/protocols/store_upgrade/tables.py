"""The lives of an application that do not depend on a seed: what a store makes of each record, each path of an upgrade
with a failure at each of its steps, and each pair of instances in a group."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, Final, TypeAlias

from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.store_upgrade.ops import (
    MODES,
    NEW,
    OLD,
    OPERATIONS,
    OPERATORS,
    OTHER_MODES,
    TASKS,
    TIMESTAMPS,
    VALUES,
    Append,
    Code,
    Convert,
    Event,
    Get,
    Kill,
    Lose,
    Put,
    PutIfAbsent,
    ReadChangelog,
    Rebalance,
    Replay,
    Start,
    Stop,
    Swap,
)

Life: TypeAlias = tuple[Event, ...]
KEY, OTHER = "61", "62"
UNKNOWN: Final = 3
CODES: Final[tuple[tuple[Code, str | None], ...]] = (
    ("old", None), ("plain", None), ("builder", None), ("builder", "in_place"), ("builder", "roll_over"),
    ("timestamped", None),
)  # fmt: skip
READINGS: Final[Life] = (Get(0, KEY), PutIfAbsent(0, KEY, "34", 9), Get(0, KEY), Get(0, OTHER), ReadChangelog(0))


def _given(kind: str, lives: Iterable[Iterable[Event]]) -> tuple[Conversation, ...]:
    return tuple(Conversation(tuple(map(OPERATIONS.step_of, each)), kind) for each in lives)


@cache
def _changelogs() -> tuple[Conversation, ...]:
    return (
        *_given("converter", _conversions()),
        *_given("restore", _restores()),
        *_given("service", _services()),
        *_given("failure", _failures()),
    )


def changelogs(subject: Any) -> Iterable[Conversation]:
    """Each value, timestamp and version; each code and operator; each path with a failure at each step."""
    return _changelogs()


def _conversions() -> Iterator[Life]:
    for value, version in product((*VALUES, None), (OLD, NEW, UNKNOWN)):
        yield tuple(Convert(value, timestamp, version) for timestamp in TIMESTAMPS)


def _restores() -> Iterator[Life]:
    restored: tuple[Code, ...] = ("timestamped", "builder", "plain")
    for version, timestamp, code in product((OLD, NEW), TIMESTAMPS, restored[:2]):
        yield Append(0, KEY, "31", timestamp, version), Start("a", code), Rebalance(), Get(0, KEY)
    for code in restored:
        unread = Append(0, KEY, "32", 5, OLD), Append(0, KEY, "33", 6, UNKNOWN), Append(0, KEY, "34", 7, OLD)
        yield Start("a", code), Rebalance(), *unread, Replay("a", 0, 1), Replay("a", 0), Get(0, KEY)
    for first, second, value in product((OLD, NEW), (OLD, NEW), (*VALUES, None)):
        log = Append(0, KEY, "32", 5, first), Append(0, KEY, value, 7, second)
        yield *log, Start("a", "timestamped"), Rebalance(), *READINGS
        yield *log, Start("a", "builder", "in_place"), Rebalance(), *READINGS, Replay("a", 0), ReadChangelog(0)


def _services() -> Iterator[Life]:
    for (code, mode), timestamp in product(CODES, TIMESTAMPS):
        started = Start("a", code, mode), Rebalance()
        yield *started, Put(0, KEY, "31", timestamp), *READINGS, PutIfAbsent(0, OTHER, "32", timestamp), Get(0, OTHER)
    for operator, (code, mode), value in product(OPERATORS, CODES, (*VALUES, None)):
        started = Start("a", code, mode), Rebalance()
        yield *started, Put(0, KEY, "33", 4, operator), Put(0, KEY, value, 5, operator), *READINGS


def _paths() -> Iterator[Life]:
    """The upgrade paths, with records before, between and after their bounces."""
    for version in (OLD, NEW):
        log = Append(0, KEY, "31", 5, OLD), Append(0, OTHER, "32", 6, version)
        begun = *log, Start("a", "plain"), Rebalance(), Put(0, KEY, "33", 7)
        served = Get(0, KEY), Put(0, OTHER, "34", 8)
        finished = Start("a", "builder"), Rebalance(), Replay("a", 0), Swap("a", 0), *served, Get(0, OTHER)
        yield *begun, Start("a", "builder", "in_place"), Rebalance(), *served, Replay("a", 0), *served, *finished
        yield *begun, *finished
        yield (
            *begun, Start("r", "builder", "roll_over", 4), Rebalance(), *served, Replay("r", 0), Stop("a"), Rebalance(),
            Replay("r", 0), Swap("r", 0), Start("r", "builder", None, 4), Rebalance(), Replay("r", 0), Swap("r", 0),
            *served, Get(0, OTHER),
        )  # fmt: skip


def _restart(event: Start) -> Life:
    return event, Rebalance()


def _failures() -> Iterator[Life]:
    """Each path as it is; and with an instance killed while it swaps, or after each step killed, lost or stopped."""
    for path in _paths():
        yield path
        for at, each in enumerate(path):
            if isinstance(each, Swap):
                started = [one for one in path[:at] if isinstance(one, Start)]
                yield *path[:at], Kill(each.instance, each.task), *_restart(started[-1]), *path[at + 1 :]
        for at in range(2, len(path)):
            started = [each for each in path[:at] if isinstance(each, Start)]
            if not started or isinstance(path[at - 1], Start):
                continue
            name = started[-1].instance
            failures: Sequence[Life] = ((Kill(name),), (Kill(name), Lose(name)), (Stop(name),))
            for failure in failures:
                yield *path[:at], *failure, *_restart(started[-1]), *path[at:]


@cache
def _stores() -> tuple[Conversation, ...]:
    return (*_given("swap", _swaps()), *_given("service", _switches()))


def stores(subject: Any) -> Iterable[Conversation]:
    """A swap with each number of records missing, and each change of code and mode."""
    return _stores()


def _swaps() -> Iterator[Life]:
    begun = Start("a", "plain"), Rebalance()
    waits = Start("a", "builder"), Rebalance()
    for number in range(4):
        log = tuple(Append(0, KEY, value, at, OLD) for at, value in enumerate(VALUES[:number]))
        for read in range(number + 1):
            replays = (Replay("a", 0, 1),) * read
            swap = Swap("a", 0), Get(0, KEY), Replay("a", 0), Swap("a", 0), Get(0, KEY)
            yield *begun, *log, *waits, *replays, *swap
            yield *begun, *log, *waits, *replays, Kill("a", 0), *waits, Get(0, KEY), Replay("a", 0), *swap
    in_place = Start("a", "builder", "in_place"), Rebalance(), Replay("a", 0), Swap("a", 0), Get(0, KEY)
    yield *begun, Append(0, KEY, "31", 5, OLD), *in_place
    beside = Start("a", "plain"), Start("b", "plain"), Rebalance("a"), Start("a", "builder"), Rebalance("a")
    for task in TASKS:
        yield *beside, Append(task, KEY, "31", 5, OLD), Replay("a", task), Swap("a", task), Rebalance(), Get(task, KEY)
    for late in ("35", None):
        missing = Append(0, KEY, late, 9, OLD)
        yield *begun, *waits, Replay("a", 0), missing, Swap("a", 0), Get(0, KEY), Replay("a", 0), Swap("a", 0)
        yield *begun, *waits, Replay("a", 0), missing, Kill("a", 0), Replay("a", 0), Swap("a", 0), Get(0, KEY)


def _switches() -> Iterator[Life]:
    for (one, mode), (other, after) in product(CODES, CODES):
        for task in TASKS:
            first = Start("a", one, mode), Rebalance(), Put(task, KEY, "31", 5), Get(task, KEY)
            yield *first, Start("a", other, after), Rebalance(), Get(task, KEY), Put(task, KEY, "32", 6), Get(task, KEY)


@cache
def _groups() -> tuple[Conversation, ...]:
    return (*_given("mode", _modes()), *_given("pair", _pairs()))


def groups(subject: Any) -> Iterable[Conversation]:
    """Each mode of each code; each pair of codes and modes, and of metadata versions, led by either instance."""
    return _groups()


def _modes() -> Iterator[Life]:
    yield Stop("a"), Kill("a"), Replay("a", 0), Lose("a"), Start("a", "plain"), Lose("a"), Rebalance(), Stop("b")
    for mode in (*MODES, *OTHER_MODES):
        yield tuple(Start("a", code, mode) for code in dict.fromkeys(code for code, _ in CODES))


def _pairs() -> Iterator[Life]:
    for (one, mode), (other, second), versions in product(CODES, CODES, ((3, 3), (3, 4), (4, 4))):
        started = Start("a", one, mode, versions[0]), Start("r", other, second, versions[1])
        yield *started, Rebalance("a"), Rebalance("r"), Stop("a"), Rebalance(), Start("a", one, mode), Rebalance()
    codes: tuple[Code, ...] = ("old", "plain", "builder")
    for code, version in product(codes, (3, 4)):
        olds = Start("a", code), Start("b", code)
        news = Start("r", "builder", "roll_over", version), Start("s", "builder", "roll_over", version)
        yield (
            *olds, Rebalance(), *news, Rebalance("a"), Rebalance("r"), Stop("a"), Rebalance("b"), Rebalance("s"),
            Stop("b"), Rebalance("r"),
        )  # fmt: skip
