"""What several forms say in the same words: of steps, places, counts, and of what is listed as known."""

import json
from typing import Any

from kipcheck.conformance.core.ledger import Line


def some(number: int, what: str) -> str:
    """``1 case``, ``2 cases``"""
    return f"{number:,} {what if number == 1 else f'{what}s'}"


def where(failure: Line) -> str:
    """``HeartbeatResponse v0-4; range``"""
    return "; ".join(named(subject, versions) for subject, versions in failure["where"].items())


def reason(entry: Any) -> str:
    """Why a deviation is expected, and where that is discussed."""
    return " ".join(str(entry[key]) for key in ("reason", "link") if entry.get(key))


def expected(failure: Line) -> str:
    """What the lists of known deviations say of a failure; empty where they say nothing."""
    if known := failure.get("known"):
        return f"a known deviation: {reason(known)}"
    if beyond := failure.get("beyond"):
        more = f" It is not expected on {where(beyond)}." if beyond.get("where") else ""
        return f"in part a known deviation: {reason(beyond)}.{more}"
    if changed := failure.get("changed"):
        return f"not as {changed.get('file')}:{changed.get('line')} expects it: {reason(changed)}"
    return ""


def named(subject: str, versions: str | int | None) -> str:
    return subject if versions in (None, "") else f"{subject} v{versions}"


def asked(step: Line) -> tuple[str, str]:
    """What a step of a failure asks for, in a few words, and what it gives."""
    about = named(step["message"], step.get("version")) if "message" in step else str(step.get("assignor", ""))
    given: Any = step.get("hex", step.get("value"))
    if given is None and "members" in step and "assignor" in step:
        given = _group(step)
    if given is None:
        told = {"verb", "actor", "assignor", "message", *(["version"] if "message" in step else [])}
        given = {key: each for key, each in step.items() if key not in told} or None
    text = "" if given is None else given if isinstance(given, str) else _plain(given)
    return f"{step['verb']} {about}".strip(), text or ("(no bytes)" if "hex" in step else "")


def _group(step: Line) -> str:
    """Topics and members of a group, as short as they can be told: the file of the failure has them in full."""
    topics = " ".join(f"{each['name']}:{each['partitions']}" for each in step.get("topics", ()))
    members = "; ".join(_member(each) for each in step["members"])
    return f"{topics or 'no topics'}; {members}{'; the round after' if step.get('rejoin') else ''}"


def _member(member: Line) -> str:
    parts = [f"{member['id']} subscribes to {' '.join(member['subscription']) or 'nothing'}"]
    if member.get("owned"):
        owned = " ".join(f"{topic}-{partition}" for topic, partition in member["owned"])
        parts.append(f"owned {owned} in {member.get('generation', -1)}")
    told = {"instance": "instance", "rack": "rack", "userData": "user data"}
    parts += [f"{name} {member[key]}" for key, name in told.items() if member.get(key) is not None]
    return ", ".join(parts)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
