"""Kills a released store in the middle of its conversion, as kill -9 does, at points drawn from a seed, and reopens it.

    python -m kipcheck.conformance.matrix.store_kills 3.9.2 --seed 0 --points 50

An older release wrote the store without timestamps. What a key has afterwards is judged by the invariants of stores.
"""

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.clients.java.store_process import StoreEnded, StoreProcess, store_process
from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.matrix.store_cells import Answers, broken, history_of
from kipcheck.conformance.protocols.stores.ops import OPERATIONS, Close, Crash, Event, Flush, Get, Open, Put, Range
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder

WRITER: Final = named("last-before-timestamps")
POINTS: Final = 50
KEYS: Final = 120
STEPS: Final = 400
LONGEST_WAIT: Final = 0.004
"""Seconds between the answer at which a kill is aimed and the kill."""
FLUSH_SHARE: Final = 0.05
VALUE: Final = "61" * 300


Tick: TypeAlias = Callable[[int], None]
Answered: TypeAlias = tuple[Step, Any]


class Kill(NamedTuple):
    point: int
    after: int
    """How many steps were answered."""
    during: str
    """The verb of the step that was not."""
    history: History

    @property
    def why(self) -> list[str]:
        return [each.why for _, each in broken(self.history)]


def _key(number: int) -> str:
    return f"{number:04x}"


def _written(place: Path) -> Answers:
    """The old store."""
    events: Sequence[Event] = (
        Open("plain"), *(Put(_key(each), VALUE + f"{each:04x}", 5) for each in range(KEYS)), Close(),
    )  # fmt: skip
    with store_process(WRITER, place) as process:
        return [_asked(process, OPERATIONS.step_of(each)) for each in events]


def _asked(process: StoreProcess, step: Step, place: str | None = None) -> Answered:
    return step, process.answer(step.verb, directory=place, **step.body)


READ: Final[Sequence[Event]] = (Open("timestamped"), Range(), *(Get(_key(each)) for each in range(KEYS)), Close())
READS: Final = tuple(map(OPERATIONS.step_of, READ))


def _steps(random: Random) -> list[Step]:
    """Most keys are read only, which moves them; a few are written."""
    events: list[Event] = []
    for each in range(STEPS):
        if random.random() < FLUSH_SHARE:
            events.append(Flush())
        elif random.random() < 0.75:
            events.append(Get(_key(random.randrange(KEYS))))
        else:
            events.append(Put(_key(random.randrange(KEYS)), f"{each:04x}", 7 + each))
    return [OPERATIONS.step_of(each) for each in events]


def kills(release: str, seed: int, points: int = POINTS, tick: Tick = lambda done: None) -> Iterator[Kill]:
    """Errors: ``Unavailable`` without a JDK or the jars."""
    with temporary_folder("store-kills") as folder:
        old = folder / "old"
        written, killed = _written(old), []
        for point in range(points):
            place = folder / str(point)
            shutil.copytree(old, place)
            killed.append(_killed(release, Random(f"kill {seed} {release} {point}"), place, written))
            tick(point + 1)
        with store_process(release, old) as again:
            for point, (answers, after, during) in enumerate(killed):
                answers += [_asked(again, each, str(folder / str(point))) for each in READS]
                yield Kill(point, after, during, history_of(answers, release))


def _killed(release: str, random: Random, place: Path, written: Answers) -> tuple[list[Answered], int, str]:
    """The answers up to the kill, their number, and the verb of the step that was under way."""
    steps = _steps(random)
    flushes = [at for at, each in enumerate(steps) if each.verb == "store-flush"]
    # Half of the kills are aimed at a flush.
    aim = random.choice(flushes) if flushes and random.random() < 0.5 else random.randrange(len(steps))
    process = StoreProcess(release, place)
    answers = [*written, _asked(process, OPERATIONS.step_of(Open("timestamped")))]
    with suppress(StoreEnded):
        for each in steps:
            process.send(each.verb, **each.body)
    results = [process.receive() for _ in range(aim)]
    time.sleep(random.random() * LONGEST_WAIT)
    process.kill()
    results += process.answers_left
    answers += zip(steps, results, strict=False)
    under_way = steps[len(results)] if len(results) < len(steps) else None
    if under_way is not None and under_way.verb == "store-put":
        answers.append((under_way, {"status": "accepted"}))  # it may have happened, as may all since the last flush
    answers.append((OPERATIONS.step_of(Crash()), {"status": "accepted"}))
    return answers, len(results), under_way.verb if under_way is not None else "the end"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("release")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--points", type=int, default=POINTS)
    options = parser.parse_args(arguments)
    print(f"kafka-streams {options.release} over a store of {WRITER}: seed {options.seed}, {options.points} kills")
    during, bad = Counter[str](), 0
    try:
        for kill in kills(options.release, options.seed, options.points):
            during[kill.during] += 1
            if why := kill.why:
                bad += 1
                first = why[0].partition(VALUE)[0].strip()
                print(f"kill {kill.point}, after {kill.after} steps, in {kill.during}: {len(why)} violations; {first}")
    except Unavailable as missing:
        print(missing, file=sys.stderr)
        return 3
    print(f"killed in: {', '.join(f'{verb} {count}' for verb, count in during.most_common())}")
    print(f"{bad} of {options.points} kills broke a law")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
