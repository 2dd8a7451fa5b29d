"""Whether a program can be tested: it starts, connects, joins, fetches, and leaves when it is stopped."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.client import failed_start
from kipcheck.conformance.live.client.built_in import OPTIONAL
from kipcheck.conformance.live.client.launch import NEEDED
from kipcheck.conformance.live.client.play import Play
from kipcheck.conformance.live.client.played_release import Played
from kipcheck.conformance.live.client.program_settings import INSTANCE
from kipcheck.conformance.live.client.target import LiveClient, served
from kipcheck.conformance.protocols.client.events import Ended, Event, FirstJoined, Opened, RequestSeen, Signalled
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.premises import NEVER_READ, reads
from kipcheck.conformance.targets.protocol import Broken

SCRIPT: Final = OPERATIONS.parse_shorthand("pass 1000; stop")
FETCHES: Final = (
    "poll in a loop, and begin at the earliest offset (auto.offset.reset=earliest): its topics have ten records before"
    " it starts; a program that pauses its partitions cannot be tested"
)
STATIC: Final = OPERATIONS.parse_shorthand("static; pass 200; stop")
INSTANCE_NAME: Final = "instance"
WRONG: Final = "wrong"
CLOSE: Final = (
    "close the consumer at SIGTERM, and end the process after that: its group waits for its session otherwise; a"
    " framework may have a handler of SIGTERM in place of the program's; a client that cannot leave is tested as it is"
)
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
    """Runs a script of a second in which nothing happens; and again with an instance id, if the command takes one."""
    chosen = target.played(edition)
    if chosen.broken:
        events, why = [*chosen.events], chosen.broken
    else:
        events, why = asyncio.run(_played(target, chosen.edition, SCRIPT))
    found = [*_lines(events, why), _about_placeholders(target), _about_release(chosen)]
    if INSTANCE_NAME in target.taken and all(each.state != WRONG for each in found):
        given, failed = asyncio.run(_played(target, chosen.edition, STATIC))
        found.insert(-2, _about_instance(events, given, failed))
    return found


async def _played(target: LiveClient, edition: str, steps: Sequence[Step]) -> tuple[list[Event], str]:
    """What was observed, and why the program is no consumer."""
    script, events = Play(served(edition), target.launcher), list[Event]()
    try:
        for step in steps:
            answer = await script.step(step)
            events += answer.get("actions", script.recorder.take())
            if "actions" not in answer:
                return events, str(answer["message"])
    except Broken as wrong:
        return [*events, *script.recorder.take()], str(wrong)
    finally:
        await script.close()
    return events, ""


def _about_instance(without: Sequence[Event], given: Sequence[Event], failed: str) -> Line:
    """Compares the instance ids of both starts with those that the program was given: none, and one."""
    tried = "it is a static member if it is given an instance id, and else a dynamic one"
    unasked = _instances(without) - {None}
    if unasked:
        found = f"without an instance id it joins as {_listed(unasked)}"
        fix = "take an empty {instance} for none, or write --instance={instance?}, which is left out if there is none"
        return Line(INSTANCE_NAME, tried, WRONG, found, fix)
    if failed:
        found, fix = _wrong(INSTANCE_NAME, given, failed)
        return Line(INSTANCE_NAME, tried, WRONG, f"with an instance id it does not join: {found}", fix)
    shown = _instances(given)
    if shown != {INSTANCE}:
        found = f"given the instance id {INSTANCE!r} it joins as {_listed(shown)}"
        fix = "pass {instance} to the consumer as group.instance.id, which JoinGroup has from version 5 on"
        return Line(INSTANCE_NAME, tried, WRONG, found, fix)
    return Line(INSTANCE_NAME, tried, "ok", f"a dynamic member, and static member {INSTANCE!r}")


def _instances(events: Sequence[Event]) -> set[str | None]:
    """The instance ids with which a program joins; None: without one."""
    joins = (event for event in events if isinstance(event, RequestSeen) and event.api in JOINS)
    return {join.instance for join in joins if join.api == "JoinGroup" or join.generation == 0}


def _listed(instances: set[str | None]) -> str:
    shown = sorted(f"static member {each!r}" for each in instances if each is not None)
    return ", ".join([*shown, *(["a dynamic member"] if None in instances else [])])


def _lines(events: Sequence[Event], why: str) -> Iterator[Line]:
    """The probes in order, up to the first that fails."""
    requests = {event.api for event in events if isinstance(event, RequestSeen)}
    kinds = {type(event) for event in events}
    ids = _instances(events) - {None}
    left = "sent LeaveGroup" if requests & {*LEAVES} else f"{_listed(ids)} sends none"
    probes = (
        ("connects", "it connects to {bootstrap}", Opened in kinds, failed_start.seen(events)),
        ("joins", "it joins the group", FirstJoined in kinds, "a stable member of the group"),
        ("fetches", "it fetches what it is assigned", reads(events), "it was given records"),
        ("ends", "it ends within 30 s of SIGTERM", {Ended, Signalled} <= kinds, _end(events)),
        ("leaves", "it leaves the group", bool(requests & {*LEAVES}) or bool(ids), left),
    )
    for id, tried, passed, found in probes:
        yield Line(id, tried, "ok", found) if passed else Line(id, tried, WRONG, *_wrong(id, events, why))
        if not passed:
            return


def _end(events: Sequence[Event]) -> str:
    """Its exit code, and how long after SIGTERM it ended."""
    stopped_ms = next((event.ms for event in events if isinstance(event, Signalled)), None)
    for event in events:
        if isinstance(event, Ended):
            after = "" if stopped_ms is None else f", {(event.ms - stopped_ms) / 1000:.2f} s after SIGTERM"
            killed = ", for which it has no handler" if event.code == -signal.SIGTERM else ""
            return f"exit code {event.code}{after}{killed}"
    return "it did not end"


def _wrong(id: str, events: Sequence[Event], why: str) -> tuple[str, str]:
    """What was found, and what to change."""
    if why:
        first, _, rest = why.partition("what to change: ")
        return first.rstrip("\n;").replace("\n", " "), rest or "give a command that can be started from this folder"
    if id == "joins":
        return failed_start.seen(events), failed_start.advice(events)
    if id == "fetches":
        fetches = any(isinstance(event, RequestSeen) and event.api == "Fetch" for event in events)
        sent = "Fetch, and no record in the answers" if fetches else "no Fetch"
        return f"{NEVER_READ}: {sent}; {failed_start.seen(events)}", FETCHES
    if id == "ends":
        return _end(events), "handle SIGTERM: close the consumer, and end the process"
    return f"no LeaveGroup; {_end(events)}", CLOSE


def _about_placeholders(target: LiveClient) -> Line:
    tried = f"its command has {', '.join(NEEDED)}, which are needed, and the optional placeholders"
    lacking = [f"{{{each}}}" for each in OPTIONAL if each not in target.taken]
    if not lacking:
        return Line("placeholders", tried, "ok", "all of them")
    found = f"it lacks {', '.join(lacking)}: scripts that need one are skipped"
    return Line("placeholders", tried, "told", found)


def _about_release(chosen: Played) -> Line:
    why = f", since Kafka {NEWEST} does not serve {chosen.unserved}, which it sends" if chosen.unserved else ""
    return Line("release", "the broker that is played for it", "told", f"Kafka {chosen.release}{why}")
