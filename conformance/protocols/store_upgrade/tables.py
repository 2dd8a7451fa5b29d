"""The lives of an application that do not depend on a seed: what a store makes of each record, each path of an upgrade
with a failure at each of its steps, and each pair of instances in a group."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, Final, TypeAlias

from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.store_upgrade import ops

Life: TypeAlias = tuple[ops.Event, ...]
KEY, OTHER = "61", "62"
UNKNOWN: Final = 3
CODES: Final[tuple[tuple[ops.Code, str | None], ...]] = (
    ("old", None), ("plain", None), ("builder", None), ("builder", "in_place"), ("builder", "roll_over"),
    ("timestamped", None),
)  # fmt: skip
READINGS: Final[Life] = (
    ops.Get(0, KEY),
    ops.PutIfAbsent(0, KEY, "34", 9),
    ops.Get(0, KEY),
    ops.Get(0, OTHER),
    ops.ReadChangelog(0),
)


def _given(kind: str, lives: Iterable[Iterable[ops.Event]]) -> tuple[Conversation, ...]:
    return tuple(Conversation(tuple(map(ops.OPERATIONS.step_of, each)), kind) for each in lives)


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
    for value, version in product((*ops.VALUES, None), (ops.OLD, ops.NEW, UNKNOWN)):
        yield tuple(ops.Convert(value, timestamp, version) for timestamp in ops.TIMESTAMPS)


def _restores() -> Iterator[Life]:
    restored: tuple[ops.Code, ...] = ("timestamped", "builder", "plain")
    for version, timestamp, code in product((ops.OLD, ops.NEW), ops.TIMESTAMPS, restored[:2]):
        yield ops.Append(0, KEY, "31", timestamp, version), ops.Start("a", code), ops.Rebalance(), ops.Get(0, KEY)
    for code in restored:
        unread = (
            ops.Append(0, KEY, "32", 5, ops.OLD),
            ops.Append(0, KEY, "33", 6, UNKNOWN),
            ops.Append(0, KEY, "34", 7, ops.OLD),
        )
        yield ops.Start("a", code), ops.Rebalance(), *unread, ops.Replay("a", 0, 1), ops.Replay("a", 0), ops.Get(0, KEY)
    for first, second, value in product((ops.OLD, ops.NEW), (ops.OLD, ops.NEW), (*ops.VALUES, None)):
        log = ops.Append(0, KEY, "32", 5, first), ops.Append(0, KEY, value, 7, second)
        yield *log, ops.Start("a", "timestamped"), ops.Rebalance(), *READINGS
        yield (
            *log,
            ops.Start("a", "builder", "in_place"),
            ops.Rebalance(),
            *READINGS,
            ops.Replay("a", 0),
            ops.ReadChangelog(0),
        )


def _services() -> Iterator[Life]:
    for (code, mode), timestamp in product(CODES, ops.TIMESTAMPS):
        started = ops.Start("a", code, mode), ops.Rebalance()
        yield (
            *started,
            ops.Put(0, KEY, "31", timestamp),
            *READINGS,
            ops.PutIfAbsent(0, OTHER, "32", timestamp),
            ops.Get(0, OTHER),
        )
    for operator, (code, mode), value in product(ops.OPERATORS, CODES, (*ops.VALUES, None)):
        started = ops.Start("a", code, mode), ops.Rebalance()
        yield *started, ops.Put(0, KEY, "33", 4, operator), ops.Put(0, KEY, value, 5, operator), *READINGS


def _paths() -> Iterator[Life]:
    """The upgrade paths, with records before, between and after their bounces."""
    for version in (ops.OLD, ops.NEW):
        log = ops.Append(0, KEY, "31", 5, ops.OLD), ops.Append(0, OTHER, "32", 6, version)
        begun = *log, ops.Start("a", "plain"), ops.Rebalance(), ops.Put(0, KEY, "33", 7)
        served = ops.Get(0, KEY), ops.Put(0, OTHER, "34", 8)
        finished = (
            ops.Start("a", "builder"),
            ops.Rebalance(),
            ops.Replay("a", 0),
            ops.Swap("a", 0),
            *served,
            ops.Get(0, OTHER),
        )
        yield (
            *begun,
            ops.Start("a", "builder", "in_place"),
            ops.Rebalance(),
            *served,
            ops.Replay("a", 0),
            *served,
            *finished,
        )
        yield *begun, *finished
        yield (
            *begun, ops.Start("r", "builder", "roll_over", 4), ops.Rebalance(), *served, ops.Replay("r", 0),
            ops.Stop("a"), ops.Rebalance(),
            ops.Replay("r", 0), ops.Swap("r", 0), ops.Start("r", "builder", None, 4), ops.Rebalance(), ops.Replay("r",
            0), ops.Swap("r", 0),
            *served, ops.Get(0, OTHER),
        )  # fmt: skip


def _restart(event: ops.Start) -> Life:
    return event, ops.Rebalance()


def _failures() -> Iterator[Life]:
    """Each path as it is; and with an instance killed while it swaps, or after each step killed, lost or stopped."""
    for path in _paths():
        yield path
        for at, each in enumerate(path):
            if isinstance(each, ops.Swap):
                started = [one for one in path[:at] if isinstance(one, ops.Start)]
                yield *path[:at], ops.Kill(each.instance, each.task), *_restart(started[-1]), *path[at + 1 :]
        for at in range(2, len(path)):
            started = [each for each in path[:at] if isinstance(each, ops.Start)]
            if not started or isinstance(path[at - 1], ops.Start):
                continue
            name = started[-1].instance
            failures: Sequence[Life] = ((ops.Kill(name),), (ops.Kill(name), ops.Lose(name)), (ops.Stop(name),))
            for failure in failures:
                yield *path[:at], *failure, *_restart(started[-1]), *path[at:]


@cache
def _stores() -> tuple[Conversation, ...]:
    return (*_given("swap", _swaps()), *_given("service", _switches()))


def stores(subject: Any) -> Iterable[Conversation]:
    """A swap with each number of records missing, and each change of code and mode."""
    return _stores()


def _swaps() -> Iterator[Life]:
    begun = ops.Start("a", "plain"), ops.Rebalance()
    waits = ops.Start("a", "builder"), ops.Rebalance()
    for number in range(4):
        log = tuple(ops.Append(0, KEY, value, at, ops.OLD) for at, value in enumerate(ops.VALUES[:number]))
        for read in range(number + 1):
            replays = (ops.Replay("a", 0, 1),) * read
            swap = ops.Swap("a", 0), ops.Get(0, KEY), ops.Replay("a", 0), ops.Swap("a", 0), ops.Get(0, KEY)
            yield *begun, *log, *waits, *replays, *swap
            yield *begun, *log, *waits, *replays, ops.Kill("a", 0), *waits, ops.Get(0, KEY), ops.Replay("a", 0), *swap
    in_place = (
        ops.Start("a", "builder", "in_place"),
        ops.Rebalance(),
        ops.Replay("a", 0),
        ops.Swap("a", 0),
        ops.Get(0, KEY),
    )
    yield *begun, ops.Append(0, KEY, "31", 5, ops.OLD), *in_place
    beside = (
        ops.Start("a", "plain"),
        ops.Start("b", "plain"),
        ops.Rebalance("a"),
        ops.Start("a", "builder"),
        ops.Rebalance("a"),
    )
    for task in ops.TASKS:
        yield (
            *beside,
            ops.Append(task, KEY, "31", 5, ops.OLD),
            ops.Replay("a", task),
            ops.Swap("a", task),
            ops.Rebalance(),
            ops.Get(task, KEY),
        )
    for late in ("35", None):
        missing = ops.Append(0, KEY, late, 9, ops.OLD)
        yield (
            *begun,
            *waits,
            ops.Replay("a", 0),
            missing,
            ops.Swap("a", 0),
            ops.Get(0, KEY),
            ops.Replay("a", 0),
            ops.Swap("a", 0),
        )
        yield (
            *begun,
            *waits,
            ops.Replay("a", 0),
            missing,
            ops.Kill("a", 0),
            ops.Replay("a", 0),
            ops.Swap("a", 0),
            ops.Get(0, KEY),
        )


def _switches() -> Iterator[Life]:
    for (one, mode), (other, after) in product(CODES, CODES):
        for task in ops.TASKS:
            first = ops.Start("a", one, mode), ops.Rebalance(), ops.Put(task, KEY, "31", 5), ops.Get(task, KEY)
            yield (
                *first,
                ops.Start("a", other, after),
                ops.Rebalance(),
                ops.Get(task, KEY),
                ops.Put(task, KEY, "32", 6),
                ops.Get(task, KEY),
            )


@cache
def _groups() -> tuple[Conversation, ...]:
    return (*_given("mode", _modes()), *_given("pair", _pairs()))


def groups(subject: Any) -> Iterable[Conversation]:
    """Each mode of each code; each pair of codes and modes, and of metadata versions, led by either instance."""
    return _groups()


def _modes() -> Iterator[Life]:
    yield (
        ops.Stop("a"),
        ops.Kill("a"),
        ops.Replay("a", 0),
        ops.Lose("a"),
        ops.Start("a", "plain"),
        ops.Lose("a"),
        ops.Rebalance(),
        ops.Stop("b"),
    )
    for mode in (*ops.MODES, *ops.OTHER_MODES):
        yield tuple(ops.Start("a", code, mode) for code in dict.fromkeys(code for code, _ in CODES))


def _pairs() -> Iterator[Life]:
    for (one, mode), (other, second), versions in product(CODES, CODES, ((3, 3), (3, 4), (4, 4))):
        started = ops.Start("a", one, mode, versions[0]), ops.Start("r", other, second, versions[1])
        yield (
            *started,
            ops.Rebalance("a"),
            ops.Rebalance("r"),
            ops.Stop("a"),
            ops.Rebalance(),
            ops.Start("a", one, mode),
            ops.Rebalance(),
        )
    codes: tuple[ops.Code, ...] = ("old", "plain", "builder")
    for code, version in product(codes, (3, 4)):
        olds = ops.Start("a", code), ops.Start("b", code)
        news = ops.Start("r", "builder", "roll_over", version), ops.Start("s", "builder", "roll_over", version)
        yield (
            *olds, ops.Rebalance(), *news, ops.Rebalance("a"), ops.Rebalance("r"), ops.Stop("a"), ops.Rebalance("b"),
            ops.Rebalance("s"),
            ops.Stop("b"), ops.Rebalance("r"),
        )  # fmt: skip
