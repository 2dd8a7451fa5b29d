"""Why a program never became a member of its group: what was seen of it on the wire, its output, and what to change."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

UNSERVED: Final = "is not served"
LAST: Final = 8
"""Requests that are named."""


def describe(events: Sequence[Mapping[str, Any]], how: str, output: str) -> str:
    """``how``: ``ended with code 7``. Several lines."""
    lines = [f"the program {how} before it was a member of the group;", f"on the wire: {seen(events)};"]
    lines += ["its stderr:", *output.splitlines(), ";"] if output else ["it wrote nothing to stderr;"]
    return "\n".join([*lines, f"what to change: {advice(events)}"])


def seen(events: Sequence[Mapping[str, Any]]) -> str:
    """The connections, the last requests, and what was refused."""
    opened = sum(each["what"] == "opened" for each in events)
    if not opened:
        return "no connection"
    found = [f"{opened} connection{'s' if opened > 1 else ''}"]
    requests = [f"{each['api']} v{each['version']}" for each in events if each["what"] == "request"]
    found.append(f"its last requests: {', '.join(requests[-LAST:])}" if requests else "no request")
    found += [f"closed by kipcheck: {each['why']}" for each in events if each["what"] == "closed" and each["why"]][-1:]
    found += [f"refused: {each['message']}, {each['why']}" for each in events if each["what"] == "refused"][-1:]
    return "; ".join(found)


def unoffered(events: Sequence[Mapping[str, Any]]) -> str:
    """The last reason for which a connection was closed, if that was a request or version that ApiVersions did not
    offer; empty: there was none, or the program was not offered any."""
    offered, found = False, ""
    for each in events:
        offered |= each["what"] == "answer" and each["api"] == "ApiVersions" and not each.get("error")
        if offered and each["what"] == "closed" and each["why"].endswith(UNSERVED):
            found = each["why"]
    return found


def advice(events: Sequence[Mapping[str, Any]]) -> str:
    """What the author of a program that did not join does next."""
    apis = {each["api"] for each in events if each["what"] == "request"}
    if not any(each["what"] == "opened" for each in events):
        return "connect to {bootstrap}, without a proxy; if the program needs a library or a file, its stderr names it"
    if not apis:
        return "use the protocol of Kafka without TLS and SASL: security.protocol=PLAINTEXT"
    if closed := [each["why"] for each in events if each["what"] == "closed" and each["why"].endswith(UNSERVED)]:
        return f"send requests and versions that ApiVersions offers, or use another --edition: {closed[-1]} by this one"
    if not apis & {"JoinGroup", "ConsumerGroupHeartbeat"}:
        return "subscribe to {topics} with group id {group}, and poll: the program asked for metadata alone"
    return "poll until SIGTERM; a program that joins has to stay in the group, with whatever it is assigned"
