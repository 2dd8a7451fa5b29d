"""Runs the commands of ``feature-commands`` with Kafka's own tool, on a cluster of one node of its release.

What the cluster has is read without the tool, by ApiVersions. Conversations begin with the levels of a new cluster:
what one changed is taken back, and where it cannot be, another cluster is started.
"""

import asyncio
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, assert_never

from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Refused
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.controller.forms import level_of
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.model.kraft import NONE
from kipcheck.conformance.protocols.features.model.kraft_rules import FIRST, METADATA
from kipcheck.conformance.protocols.features.ops import commands
from kipcheck.conformance.protocols.features.ops.kraft import UNSAFE_DOWNGRADE, UPGRADE, Declared, Level, TypedUpdate
from kipcheck.conformance.targets.protocol import Broken, observed
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.transport import process_tree

ENDS_S: Final = 90.0
NO_NAME: Final = "9.9"
"""Of a level that no release knows."""
USAGE: Final = "USAGE"
SUMMARY: Final = re.compile(r"(\d+) out of \d+ operation\(s\) failed\.")
DONE: Final = re.compile(r"(\S+) (was|can be) (upgraded|downgraded|disabled)(?: to (\d+))?\.")
NOT_DONE: Final = re.compile(r"(Could|Can) not (upgrade|downgrade|disable) (\S+?)(?: to (\d+))?\. .*")
ROW: Final = re.compile(
    r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)\s+"
    r"Epoch: (\S+)"
)
NEEDS: Final = re.compile(r"(\S+)=(\d+)(?: \(\S+\))? (requires:|has no dependencies\.)")
LEVEL: Final = re.compile(r"\s*(\S+)=(\d+)(?: \(\S+\))?")
DEPRECATED: Final = "`metadata` flag is deprecated"
WORDS: Final = {"upgraded": "upgrade", "downgraded": "downgrade", "disabled": "disable"}


def level_name(level: int) -> str:
    names: list[str] = table()["feature-levels"]["metadata-names"]
    return names[level - 1] if 0 < level <= len(names) else NO_NAME


def options_of(event: commands.Event, kraft: bool) -> tuple[str, ...]:
    """The options of a command. ``kraft``: whether the tool is from 3.3.0 or later, where commands have no dashes."""
    match event:
        case commands.CommandDescribe():
            return ("describe",) if kraft else ("--describe",)
        case commands.CommandAll(command, dry_run):
            return (command if kraft else f"--{command}", *(("--dry-run",) if dry_run else ()))
        case commands.CommandChange():
            named = [word for each in event.features for word in ("--feature", f"{each.feature}={each.level}")]
            metadata = [] if event.metadata is None else ["--metadata", level_name(event.metadata)]
            release = [] if event.release is None else ["--release-version", level_name(event.release)]
            return (event.command, *named, *metadata, *release, *_flags(event))
        case commands.CommandDisable():
            return ("disable", *(word for each in event.features for word in ("--feature", each)), *_flags(event))
        case commands.CommandMap(asked):
            return ("version-mapping", *(() if asked is None else ("--release-version", level_name(asked))))
        case commands.CommandDepends(features):
            named = [word for each in features for word in ("--feature", f"{each.feature}={each.level}")]
            return ("feature-dependencies", *named)
        case commands.CommandLevels():
            raise ValueError("the levels are read without the tool")
        case _:
            assert_never(event)


def _flags(event: commands.CommandChange | commands.CommandDisable) -> tuple[str, ...]:
    return (*(("--unsafe",) if event.unsafe else ()), *(("--dry-run",) if event.dry_run else ()))


# What the tool prints


def printed(event: commands.Event, output: str, errors: str, code: int) -> Observation:
    """What a command printed on its two outputs, and its exit code. Without a line of its own, it was refused."""
    lines = [each.rstrip() for each in output.splitlines() if each.strip() and DEPRECATED not in each]
    found: commands.Action
    match event:
        case commands.CommandDescribe():
            found = _rows(lines, code)
        case commands.CommandChange() | commands.CommandDisable() | commands.CommandAll():
            found = _changes(lines, errors, code)
        case commands.CommandMap():
            read = [LEVEL.fullmatch(each) for each in lines]
            levels = sorted((each[1], int(each[2])) for each in read if each is not None)
            unread = [line for line, each in zip(lines, read, strict=True) if each is None]
            found = commands.CommandMapping(tuple(Level(*each) for each in levels), tuple(unread), code)
        case commands.CommandDepends():
            found = _needs(lines, code)
        case commands.CommandLevels():
            raise ValueError("the levels are read without the tool")
        case _:
            assert_never(event)
    read_nothing = not (getattr(found, "rows", ()) or getattr(found, "lines", ()) or getattr(found, "levels", ()))
    if code and read_nothing:
        return Refused(USAGE, " ".join(f"{output} {errors}".split())[-300:])
    return replied(found)


def _rows(lines: Sequence[str], code: int) -> commands.CommandRows:
    rows, unread = [], []
    for line in lines:
        if (found := ROW.fullmatch(line.strip())) is None:
            unread.append(line)
            continue
        low, high, level = (level_of(found[place]) for place in (2, 3, 4))
        rows.append(commands.CommandRow(found[1], low, high, level, int(found[5])))
    return commands.CommandRows(tuple(rows), tuple(unread), code)


def _changes(lines: Sequence[str], errors: str, code: int) -> commands.CommandLines:
    rows, unread, failed = [], [], None
    for line in (*lines, *(each.strip() for each in errors.splitlines() if SUMMARY.fullmatch(each.strip()))):
        if (found := DONE.fullmatch(line)) is not None:
            rows.append(commands.ChangeLine(WORDS[found[3]], found[1], int(found[4] or 0), True, found[2] == "can be"))
        elif (found := NOT_DONE.fullmatch(line)) is not None:
            rows.append(commands.ChangeLine(found[2], found[3], int(found[4] or 0), False, found[1] == "Can"))
        elif (found := SUMMARY.fullmatch(line)) is not None:
            failed = int(found[1])
        else:
            unread.append(line)
    return commands.CommandLines(tuple(sorted(rows, key=lambda row: row.feature)), failed, tuple(unread), code)


def _needs(lines: Sequence[str], code: int) -> commands.CommandNeeds:
    rows: list[commands.Dependency] = []
    unread = []
    for line in lines:
        if (found := NEEDS.fullmatch(line)) is not None:
            rows.append(commands.Dependency(found[1], int(found[2]), ()))
        elif (found := LEVEL.fullmatch(line)) is not None and rows:
            last = rows.pop()
            rows.append(commands.Dependency(last.feature, last.level, (*last.needs, Level(found[1], int(found[2])))))
        else:
            unread.append(line)
    return commands.CommandNeeds(tuple(sorted(rows, key=lambda row: row.feature)), tuple(unread), code)


def replied(answer: commands.Action) -> Observation:
    return observed(commands.OPERATIONS.answer_of([answer]))


# On a cluster


@dataclass
class CommandsSession:
    release: str
    command: tuple[str, ...]
    runner: asyncio.Runner
    _stack: ExitStack = field(default_factory=ExitStack)
    _broker: Connections | None = None
    _versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    _begins: dict[str, int] = field(default_factory=dict)
    """The levels of the new cluster."""

    @property
    def kraft(self) -> bool:
        return Release.parse(self.release) >= FIRST

    def played(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        return self.runner.run(self._played(steps))

    async def _played(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        try:
            broker = await self._new()
        except (Closed, Garbled, Broken) as why:
            return (Lost(f"no cluster: {why}"),) * len(steps)
        return tuple([await self._step(commands.OPERATIONS.event_of(each), broker) for each in steps])

    async def _step(self, event: commands.Event, broker: Connections) -> Observation:
        if isinstance(event, commands.CommandLevels):
            try:
                return replied(shown(await requests.settled(broker, self._versions)))
            except (Closed, Garbled) as why:
                return Lost(f"the cluster does not answer: {why}")
        argv = [*self.command, "--bootstrap-server", f"{broker.host}:{broker.port}", *options_of(event, self.kraft)]
        try:
            run = partial(process_tree.run, argv, ENDS_S)
            done = await asyncio.get_running_loop().run_in_executor(None, run)
        except subprocess.TimeoutExpired:
            return Died("timeout", f"the tool did not end within {ENDS_S:.0f} s")
        return printed(event, done.stdout, done.stderr, done.returncode)

    async def _new(self) -> Connections:
        """A cluster with the levels that it began with. Errors: ``Closed``, ``Garbled``, ``Broken``."""
        if self._broker is not None and await self._restored(self._broker):
            return self._broker
        await self.close()
        running = kafka_broker.running(self.release, coordinates=False)
        started = await asyncio.get_running_loop().run_in_executor(None, self._stack.enter_context, running)
        self._broker = Connections(kafka_broker.HOST, started.port)
        self._versions = await versions_of(self._broker)
        self._begins = await self._levels(self._broker)
        return self._broker

    async def _levels(self, broker: Connections) -> dict[str, int]:
        found = shown(await requests.settled(broker, self._versions))
        return {each.feature: each.level for each in found.levels}

    async def _restored(self, broker: Connections) -> bool:
        """Takes back what a conversation changed. False: something stays."""
        try:
            found = await self._levels(broker)
            if found == self._begins:
                return True
            updates = [
                TypedUpdate(name, wanted, UPGRADE if found.get(name, 0) < wanted else UNSAFE_DOWNGRADE)
                for name in sorted({*found, *self._begins}, key=lambda name: name != METADATA)
                if (wanted := self._begins.get(name, 0)) != found.get(name, 0)
            ]
            version = self._versions[requests.UPDATE_FEATURES][1]
            done = await requests.update(broker, version, updates, False)
            return done.error == NONE and await self._levels(broker) == self._begins
        except (Closed, Garbled):
            return False

    async def close(self) -> None:
        if self._broker is not None:
            await self._broker.close()
        self._broker = None
        self._stack.close()


def shown(picture: Picture) -> commands.ClusterLevels:
    levels = {name: high for name, (_, high) in picture.finalized.items() if high}
    supported = tuple(Declared(name, *span) for name, span in sorted(picture.supported.items()))
    return commands.ClusterLevels(picture.epoch, tuple(Level(*each) for each in sorted(levels.items())), supported)


@contextmanager
def commands_session(release: str, command: tuple[str, ...], runner: asyncio.Runner) -> Iterator[CommandsSession]:
    """Its cluster starts with the first conversation."""
    found = CommandsSession(release, command, runner)
    try:
        yield found
    finally:
        runner.run(found.close())
