"""``kafka-features:RELEASE``: Kafka's own tool for operators, a process for each command, on a broker that we play.

The commands of ``feature-commands`` run on a cluster of the release instead (module ``commands``).

The broker has the controller of the release. What the tool sends and what it is answered is read from its requests, and
what it makes of it from its exit code. Its commands are fewer than the draft's: one of upgrade, downgrade and disable
at a time, with levels that are named.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition as edition_of
from kipcheck.conformance.core.values.history import Observation, Refused, Unsupported
from kipcheck.conformance.core.values.release import Release, known_release
from kipcheck.conformance.live.controller.commands import CommandsSession, commands_session
from kipcheck.conformance.live.controller.forms import level_of
from kipcheck.conformance.live.controller.requests import name_of
from kipcheck.conformance.live.server.feature_broker import FeatureBroker
from kipcheck.conformance.live.server.features import Controller, Picture
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.protocols.features.model.kraft import NONE
from kipcheck.conformance.protocols.features.ops import commands, tool
from kipcheck.conformance.protocols.features.ops.cluster import Requested
from kipcheck.conformance.protocols.features.ops.kraft import UPGRADE
from kipcheck.conformance.targets.protocol import Claims, NotPlayed, Session, Target, TargetInfo, Unavailable, observed
from kipcheck.conformance.targets.testee import Limits
from kipcheck.conformance.targets.toolchains import kafka_broker, maven
from kipcheck.conformance.targets.transport import process_tree

COMMAND: Final = "command"
LIMITS: Final = {COMMAND: "the released tool has no such command"}
CLAIMS: Final = Claims(machines=(tool.OPERATIONS.machine, commands.OPERATIONS.machine), limits=LIMITS)
HAS_TOOL: Final = Release.parse(since("feature-znode"))
IN_TOOLS: Final = Release.parse(since("tools-jar"))
"""The release from which on the tool is in the jar kafka-tools."""
QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
ENDS_S: Final = 90.0


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """Errors: LookupError for a release without the tool."""
    known_release(rest)
    if Release.parse(rest) < HAS_TOOL:
        raise LookupError(f"{name}: Kafka has the tool from release {HAS_TOOL} on")
    return FeatureTool(name, rest)


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any release is a target."""
    return iter(())


@dataclass(frozen=True, slots=True)
class FeatureTool:
    name: str
    release: str

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        """Errors: ``NotPlayed``; ``Unavailable`` without a JDK or the jars, and in the edition of another release."""
        info = TargetInfo(self.name, self.release, "", "", frozenset({Role.CONTROLLER}), CLAIMS)
        if role is not Role.CONTROLLER:
            raise NotPlayed(info, role)
        if str(edition_of(edition)) != f"apache@{self.release}":
            raise Unavailable(f"{self.name}: its broker is of the same release: use --edition apache@{self.release}")
        with asyncio.Runner() as runner:
            command = command_of(self.release)
            with commands_session(self.release, command, runner) as real:
                yield ToolSession(info, command, runner, real=real)


def command_of(release: str) -> tuple[str, ...]:
    """Of the tool, without its options. Errors: ``Unavailable``."""
    jars = [kafka_broker.class_path(release)]
    main = "kafka.admin.FeatureCommand"
    if Release.parse(release) >= IN_TOOLS:
        tools, main = f"org.apache.kafka:kafka-tools:{release}", "org.apache.kafka.tools.FeatureCommand"
        jars.append(str(maven.fetch([tools])[tools]))
    return ("java", "-XX:TieredStopAtLevel=1", QUIET, "-cp", os.pathsep.join(jars), main)


def options_of(event: tool.Event) -> tuple[str, ...] | None:
    """The command line of an operation; None: the tool has no such command."""
    if isinstance(event, tool.ToolDescribe):
        return ("describe",)
    if not isinstance(event, tool.ToolUpdate):
        return None
    levels = {"upgrade": event.upgrade, "downgrade": event.downgrade}
    given = {verb: [f"{each.feature}={each.level}" for each in listed] for verb, listed in levels.items()}
    given["disable"] = [*event.delete]
    named = [verb for verb, each in given.items() if each]
    if len(named) != 1:
        return None
    (verb,) = named
    features = [word for each in given[verb] for word in ("--feature", each)]
    return (verb, *features, *(("--dry-run",) if event.dry_run else ()))


@dataclass
class Recorded:
    """A controller, and the last request that it answered."""

    controller: Controller
    asked: Mapping[str, Any] | None = None
    answered: Mapping[str, Any] = field(default_factory=dict)

    def picture(self) -> Picture:
        return self.controller.picture()

    def update(self, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        found = self.controller.update(version, body)
        self.asked, self.answered = body, found
        return found


@dataclass
class ToolSession:
    info: TargetInfo
    command: tuple[str, ...]
    runner: asyncio.Runner
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()
    real: CommandsSession | None = None
    """On a cluster of the release."""

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        return [self._run(each) for each in cases]

    def _run(self, case: Case) -> tuple[Observation, ...]:
        if self.real is not None and case.steps[0].verb in commands.OPERATIONS.verbs:
            return self.real.played(case.steps)
        return self.runner.run(self._played(case.steps))

    async def _played(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """On a new cluster. Steps that the tool has no command for change nothing, and others follow them."""
        edition = edition_of(f"apache@{self.info.version}")
        broker = FeatureBroker(edition)
        recorded = Recorded(broker.controller)
        broker.controller = recorded
        front = Front(broker, edition)
        _, port = await front.listen(kafka_broker.HOST, 0)
        try:
            return tuple([await self._step(tool.OPERATIONS.event_of(each), recorded, port) for each in steps])
        finally:
            await front.close()

    async def _step(self, event: tool.Event, broker: Recorded, port: int) -> Observation:
        options = options_of(event)
        if options is None:
            return Unsupported(LIMITS[COMMAND], COMMAND)
        before, broker.asked = broker.picture(), None
        argv = [*self.command, "--bootstrap-server", f"{kafka_broker.HOST}:{port}", *options]
        loop = asyncio.get_running_loop()
        done = await loop.run_in_executor(None, partial(process_tree.run, argv, ENDS_S))
        output = done.stdout + done.stderr
        if isinstance(event, tool.ToolDescribe):
            return _replied(tool.Described(rows_of(output)))
        if broker.asked is None:
            return Refused("USAGE", " ".join(output.split())[-300:])
        return _replied(ran(before, broker.asked, broker.answered, done.returncode))


def ran(before: Picture, asked: Mapping[str, Any], answered: Mapping[str, Any], code: int) -> tool.Ran:
    """What was asked for and answered, and the exit code."""
    errors = {each["feature"]: name_of(each["errorCode"]) for each in answered.get("results", ())}
    top = name_of(answered["errorCode"])
    lines, sent = [], []
    for each in asked["featureUpdates"]:
        name, level, lowers = each["feature"], each["maxVersionLevel"], each["upgradeType"] != UPGRADE
        existing = before.finalized[name][1] if name in before.finalized else None
        change = "Delete" if level == 0 else "Downgrade" if lowers else "Add" if existing is None else "Upgrade"
        lines.append(tool.Line(change, name, existing, level or None, top if top != NONE else errors.get(name, NONE)))
        sent.append(Requested(name, level, lowers))
    return tool.Ran(tuple(lines), () if asked["validateOnly"] else tuple(sent), code)


def rows_of(output: str) -> tuple[tool.Row, ...]:
    """From lines with the name of a feature and, after their labels, ``COLUMNS``. Tabs or blanks separate them."""
    found = []
    for line in output.splitlines():
        words = line.split()
        if words[:1] == ["Feature:"]:
            low, high, level, epoch = (words[words.index(f"{each}:") + 1] for each in COLUMNS)
            finalized = level_of(level) or None
            row = tool.Row(words[1], level_of(low), level_of(high), finalized, finalized, int(epoch))
            found.append(row)
    return tuple(found)


COLUMNS: Final = ("SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel", "Epoch")


def _replied(answer: tool.Described | tool.Ran) -> Observation:
    return observed(tool.OPERATIONS.answer_of([answer]))
