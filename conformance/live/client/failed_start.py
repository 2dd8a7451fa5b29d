"""Why a program never became a member of its group: what was seen of it on the wire, its output, and what to change."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.protocols.client.events import AnswerSeen, Closed, Event, Opened, RequestRefused, RequestSeen
from kipcheck.conformance.protocols.client.terms import HEARTBEATS
from kipcheck.conformance.wire.framing import requests

UNSERVED: Final = "is not served"
LAST: Final = 8
"""Requests that are named."""
JOINS: Final = frozenset({"JoinGroup", *HEARTBEATS})
READS: Final = frozenset({"Fetch", "ListOffsets"})
TRANSPORT: Final = "use the protocol of Kafka without TLS and SASL: security.protocol=PLAINTEXT"


def describe(events: Sequence[Event], how: str, output: str) -> str:
    """``how``: ``ended with code 7``. Several lines."""
    lines = [f"the program {how} before it was a member of the group;", f"on the wire: {seen(events)};"]
    lines += ["its stderr:", *output.splitlines(), ";"] if output else ["it wrote nothing to stderr;"]
    return "\n".join([*lines, f"what to change: {advice(events)}"])


def seen(events: Sequence[Event]) -> str:
    """The connections, the last requests, and what was refused."""
    opened = sum(isinstance(event, Opened) for event in events)
    if not opened:
        return "no connection"
    found = [f"{opened} connection{'s' if opened > 1 else ''}"]
    sent = [f"{event.api} v{event.version}" for event in events if isinstance(event, RequestSeen)]
    found.append(f"its last requests: {', '.join(sent[-LAST:])}" if sent else "no request")
    found += [f"closed by kipcheck: {why}" for why in _closed(events)][-1:]
    found += [f"refused: {event.message}, {event.why}" for event in events if isinstance(event, RequestRefused)][-1:]
    return "; ".join(found)


def _closed(events: Sequence[Event]) -> list[str]:
    """Why the broker closed connections."""
    return [event.why for event in events if isinstance(event, Closed) and event.why]


def unserved(events: Sequence[Event]) -> str:
    """The last reason for which a connection was closed, if that was a request or version that the broker does not
    serve; empty: there was none."""
    closed = [why for why in _closed(events) if why.endswith(UNSERVED)]
    return closed[-1] if closed else ""


def sent_what_is_gone(events: Sequence[Event], versions: Mapping[int, range]) -> bool:
    """Whether the last request that was not served has a version below the served ones, which no older broker excuses.

    ``versions``: those that are served, by API key.
    """
    found = [*map(int, re.findall(r"\d+", unserved(events)))]
    return bool(found) and found[1] < versions.get(found[0], range(0)).start


def was_a_member(events: Sequence[Event]) -> bool:
    """Whether the group took the program in, which then was not able to stay: a program that lacks a setting that it is
    given ends, ignores it, or is not taken in."""
    joined = (event for event in events if isinstance(event, AnswerSeen) and event.api == "JoinGroup")
    synced = (event for event in events if isinstance(event, AnswerSeen) and event.api == "SyncGroup")
    return any(not event.error for event in joined) and any(event.error for event in synced)


def advice(events: Sequence[Event]) -> str:
    """What the author of a program that did not join does next, by what it sent and was answered."""
    apis = {event.api for event in events if isinstance(event, RequestSeen)}
    refused = [event.why for event in events if isinstance(event, RequestRefused)]
    if not any(isinstance(event, Opened) for event in events):
        return "connect to {bootstrap}, without a proxy; if the program needs a library or a file, its stderr names it"
    if closed := unserved(events):
        return about_unserved(closed, "ApiVersions" in apis)
    if not apis:
        return f"write the request as its version says: {refused[-1]}" if refused else TRANSPORT
    if apis & JOINS:
        return _about_joining(events, apis)
    if apis & READS:
        return "subscribe to {topics} with group id {group}: the program reads partitions without a group"
    if "FindCoordinator" in apis:
        return "poll after the subscription: the program looked up its coordinator, and sent no JoinGroup"
    if apis <= {"ApiVersions"}:
        return "subscribe to {topics} with group id {group}, and poll: the program asked for versions alone"
    return "subscribe to {topics} with group id {group}, and poll: the program sent " + ", ".join(sorted(apis))


def about_unserved(closed: str, asked: bool) -> str:
    """``closed``: which key and version; ``asked``: whether the program sent ApiVersions."""
    first = "send requests and versions that ApiVersions offers" if asked else "send ApiVersions, and what it offers"
    known = (requests(APACHE).get(int(number)) for number in re.findall(r"key (\d+)", closed))
    named = "".join(f"{each.name.removesuffix('Request')}, " for each in known if each is not None)
    return f"{first}, or use another --edition: {named}{closed} by this one"


def _about_joining(events: Sequence[Event], apis: set[str]) -> str:
    answers = [event for event in events if isinstance(event, AnswerSeen) and event.api in JOINS]
    if answers and answers[-1].error:
        return f"handle {error_name(answers[-1].error)}, with which the last {answers[-1].api} was answered"
    if answers and apis.isdisjoint({"SyncGroup", *HEARTBEATS}):
        return "send SyncGroup: the program was answered JoinGroup, and sent none"
    return "poll until SIGTERM; a program that joins has to stay in the group, with whatever it is assigned"
