"""Whether a program can be tested: it starts, connects, joins, fetches, and leaves when it is stopped."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.core.release import NEWEST
from kipcheck.conformance.live.client import unjoined
from kipcheck.conformance.live.client.built_in import OPTIONAL
from kipcheck.conformance.live.client.play import Play
from kipcheck.conformance.live.client.target import LiveClient, served
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.premises import NEVER_READ, reads
from kipcheck.conformance.targets.protocol import Broken

SCRIPT: Final = OPERATIONS.parse_shorthand("pass 1000; stop")
FETCHES: Final = "poll in a loop; a program that pauses its partitions cannot be tested"
JOINS: Final = ("JoinGroup", "ConsumerGroupHeartbeat")
LEAVES: Final = ("LeaveGroup", "ConsumerGroupHeartbeat")


@dataclass(frozen=True, slots=True)
class Line:
    """The result of one probe."""

    id: str
    tried: str
    state: str
    """``ok``, ``wrong`` or ``told``."""
    found: str
    fix: str = ""


def examine(target: LiveClient, edition: str) -> list[Line]:
    """Runs a script of a second in which nothing happens."""
    chosen = target.played(edition)
    if chosen.broken:
        events, why = [*chosen.events], chosen.broken
    else:
        events, why = asyncio.run(_played(target, f"apache@{chosen.release}"))
    return [*_lines(events, why), _about_placeholders(target), _about_release(chosen.release)]


async def _played(target: LiveClient, edition: str) -> tuple[list[Mapping[str, Any]], str]:
    """What was observed, and why the program is no consumer."""
    script, events = Play(served(edition), target.launcher), list[Mapping[str, Any]]()
    try:
        for step in SCRIPT:
            events += (await script.step(step))["actions"]
    except Broken as wrong:
        return [*events, *script.recorder.take()], str(wrong)
    finally:
        await script.close()
    return events, ""


def _lines(events: Sequence[Mapping[str, Any]], why: str) -> Iterator[Line]:
    """The probes in order, up to the first that fails."""
    requests = {each["api"] for each in events if each["what"] == "request"}
    whats = {each["what"] for each in events}
    probes = (
        ("connects", "it connects to {bootstrap}", "opened" in whats, unjoined.seen(events)),
        ("joins", "it joins the group", "joined" in whats, "a stable member of the group"),
        ("fetches", "it fetches what it is assigned", reads(events), "it was given records"),
        ("ends", "it ends within 10 s of SIGTERM", "ended" in whats and "signalled" in whats, _end(events)),
        ("leaves", "it leaves the group", bool(requests & {*LEAVES}), "sent LeaveGroup"),
    )
    for id, tried, passed, found in probes:
        yield Line(id, tried, "ok", found) if passed else Line(id, tried, "wrong", *_wrong(id, events, why))
        if not passed:
            return


def _is_fetch(event: Mapping[str, Any]) -> bool:
    return bool(event["what"] == "request" and event["api"] == "Fetch")


def _end(events: Sequence[Mapping[str, Any]]) -> str:
    return next((f"exit code {each['code']}" for each in events if each["what"] == "ended"), "it did not end")


def _wrong(id: str, events: Sequence[Mapping[str, Any]], why: str) -> tuple[str, str]:
    """What was found, and what to change."""
    if why:
        first, _, rest = why.partition("what to change: ")
        return first.rstrip("\n;").replace("\n", " "), rest or "give a command that can be started from this folder"
    if id == "fetches":
        sent = "Fetch, and no record in the answers" if any(_is_fetch(each) for each in events) else "no Fetch"
        return f"{NEVER_READ}: {sent}; {unjoined.seen(events)}", FETCHES
    if id == "ends":
        return _end(events), "handle SIGTERM: close the consumer, and end the process"
    return "no LeaveGroup", "close the consumer before the process ends: its group waits for its session otherwise"


def _about_placeholders(target: LiveClient) -> Line:
    tried = "its command has the optional placeholders"
    lacking = [f"{{{each}}}" for each in OPTIONAL if each not in target.taken]
    if not lacking:
        return Line("placeholders", tried, "ok", "all of them")
    found = f"it lacks {', '.join(lacking)}: scripts that need one are skipped"
    return Line("placeholders", tried, "told", found)


def _about_release(release: str) -> Line:
    why = (
        "the newest one that it fits" if release == NEWEST else "the newest one that serves all versions that it sends"
    )
    return Line("release", "the broker that is played for it", "told", f"Kafka {release}, {why}")
