"""Real consumers against a front in this process, and what is seen of them on the wire."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kipcheck.conformance.live.client.built_in import Settings, command
from kipcheck.conformance.live.recording.fetch_sessions import ObservedSessions
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.recording.traffic import Finding, Observer
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.tests.support.live import World

Partition = tuple[str, int]
SHARED_WITHIN_S = 40.0
"""Time limit for consumers to share all partitions, on a busy machine."""
ENDS_WITHIN_S = 10.0


@dataclass
class Watch(Observer):
    """What consumers ask, by client id."""

    topics: Topics
    fetches: dict[str, tuple[float, dict[Partition, int]]] = field(default_factory=dict)
    """Time, and partitions with offsets, of the last Fetch."""
    committed: dict[Partition, int] = field(default_factory=dict)
    re_read: list[tuple[str, Partition, int, int]] = field(default_factory=list)
    """Fetches of an offset below the committed one: client, partition, offset, committed offset."""
    apis: dict[str, dict[str, int]] = field(default_factory=dict)
    """Client id -> API -> the highest version that it sent."""
    left: set[str] = field(default_factory=set)
    generations: list[tuple[str, int]] = field(default_factory=list)
    """Client and generation of each successful JoinGroup."""
    findings: list[Finding] = field(default_factory=list)
    sessions: ObservedSessions = field(default_factory=ObservedSessions)
    lines: list[str] = field(default_factory=list)

    def closed(self, at_s: float, connection: int, why: str) -> None:
        if why:
            self.lines.append(f"{at_s:.3f} #{connection} closed: {why}")

    def found(self, finding: Finding) -> None:
        self.findings.append(finding)

    def received(self, request: Received) -> None:
        request = self.sessions.whole(request)
        who, body = request.client_id or "", request.body
        apis = self.apis.setdefault(who, {})
        apis[request.api] = max(apis.get(request.api, -1), request.version)
        if request.api not in ("Fetch", "Metadata", "ApiVersions"):
            self.lines.append(f"{request.at_s:.3f} {who} > {request.api} v{request.version} {str(body)[:300]}")
        match request.api:
            case "Fetch" if body["topics"]:
                asked = {
                    (self._name(each), part["partition"]): part["fetchOffset"]
                    for each in body["topics"]
                    for part in each["partitions"]
                }
                self.fetches[who] = (request.at_s, asked)
                for at, offset in asked.items():
                    if offset < self.committed.get(at, 0):
                        self.re_read.append((who, at, offset, self.committed[at]))
            case "LeaveGroup":
                self.left.add(who)
            case "ConsumerGroupHeartbeat" if body["memberEpoch"] < 0:
                self.left.add(who)

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None:
        self.sessions.answered(request, body)
        who = request.client_id or ""
        if request.api not in ("Fetch", "Metadata", "ApiVersions"):
            self.lines.append(f"{at_s:.3f} {who} < {request.api} {str(body)[:300]}")
        if request.api == "JoinGroup" and body["errorCode"] == 0:
            self.generations.append((who, body["generationId"]))
        if request.api == "OffsetCommit":
            for topic, done in zip(request.body["topics"], body["topics"], strict=True):
                for part, result in zip(topic["partitions"], done["partitions"], strict=True):
                    if result["errorCode"] == 0:
                        self.committed[self._name(topic), part["partitionIndex"]] = part["committedOffset"]

    def _name(self, topic: Mapping[str, Any]) -> str:
        found = self.topics.find(topic.get("topic") or topic.get("name"), topic.get("topicId"))
        assert found is not None, topic
        return found.name

    def shared(self, *clients: str) -> bool:
        """Whether just these consumers fetch, each something, all partitions together, and none is fetched twice."""
        last = {who: asked for who, (_, asked) in self.fetches.items() if who in clients}
        wanted = sorted((each.name, n) for each in self.topics.by_name.values() for n in range(each.partitions))
        return (
            set(last) == set(clients) and all(last.values()) and sorted(at for a in last.values() for at in a) == wanted
        )

    def share(self, client: str) -> set[Partition]:
        return set(self.fetches.get(client, (0.0, {}))[1])


class Consumers:
    """Processes of one kind of client in one group, by client id."""

    def __init__(self, world: World, watch: Watch, client: str, place: Path, **settings: Any) -> None:
        self.world = world
        self.watch = watch
        self.client = client
        self.place = place
        self.settings = settings
        self.processes: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, *names: str, **settings: Any) -> None:
        argv = command(self.client)
        for name in names:
            given = Settings(f"127.0.0.1:{self.world.port}", "group", tuple(self.watch.topics.by_name), client_id=name,
                             **{**self.settings, **settings})  # fmt: skip
            kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "KIPCHECK_"))}
            with (self.place / f"{name}.txt").open("ab") as output:
                self.processes[name] = await asyncio.create_subprocess_exec(
                    *argv, env={**kept, **given.environment}, stdin=asyncio.subprocess.DEVNULL, stdout=output,
                    stderr=output, cwd=self.place,
                )  # fmt: skip

    async def kill(self, name: str) -> None:
        self.watch.fetches.pop(name, None)
        self.processes[name].kill()
        await self.processes.pop(name).wait()
        self.watch.fetches.pop(name, None)

    async def stop(self, *names: str) -> None:
        """Ends consumers with SIGTERM, on which each has to close and to end in time."""
        for name in names:
            self.processes[name].send_signal(signal.SIGTERM)
        for name in names:
            code = await asyncio.wait_for(self.processes[name].wait(), ENDS_WITHIN_S)
            assert code in (0, 128 + signal.SIGTERM, -signal.SIGTERM), (name, code, self.seen())
            del self.processes[name]
            self.watch.fetches.pop(name, None)

    async def until(self, what: Callable[[], bool], seconds: float = SHARED_WITHIN_S) -> float:
        """Waits until something holds; returns the seconds. Errors: AssertionError with what was seen."""
        began = time.monotonic()
        while not what():
            ended = [name for name, each in self.processes.items() if each.returncode is not None]
            assert not ended, (ended, self.seen())
            assert time.monotonic() - began < seconds, self.seen()
            await asyncio.sleep(0.02)
        return time.monotonic() - began

    def seen(self) -> str:
        """The end of what was seen on the wire and of what the consumers printed."""
        texts = [f"== {path.name}\n{path.read_text('utf-8')[-1500:]}" for path in sorted(self.place.glob("*.txt"))]
        fetches = {who: asked for who, (_, asked) in self.watch.fetches.items()}
        return "\n".join([*self.watch.lines[-40:], f"last fetches: {fetches}", f"{self.watch.committed}", *texts])

    async def close(self) -> None:
        for each in self.processes.values():
            if each.returncode is None:
                each.kill()
            await each.wait()
