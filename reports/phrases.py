"""Texts that several forms share: steps, places, counts, and entries of lists of known deviations."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kipcheck.conformance.core.ledger import Cause, Failure, Flaky, Follower, KnownEntry, SequenceExhibit, SequenceStep
from kipcheck.conformance.core.values.untrusted_text import WATCHED

SMALLER = "the search for the least case was cut, so a smaller one may fail too"
"""About a failure."""


def remarks(failure: Failure) -> str:
    """What is to be known of its least case, to end a sentence."""
    parts = [SMALLER] if failure.cut_early else []
    if failure.rate is not None:
        parts.append(
            "a race: it occurs in {} of {} plays beside copies of its case, and not alone".format(*failure.rate)
        )
    return "".join(f"; {part}" for part in parts)


def played_again(failure: Failure) -> str:
    """The command that plays the conversation of a failure, to be varied; empty: it is none."""
    if not failure.script or failure.opened.startswith(WATCHED):
        return ""
    edition = f"apache@{failure.played}" if failure.played else failure.edition
    words = ["--target", failure.opened, *(["--edition", edition] if edition != "apache" else [])]
    return shlex.join(["kipcheck", "run", *words, "--message", failure.subject, "--script", failure.script])


def leaves_events_out(failure: Failure) -> bool:
    """Whether a row counts events that are not shown, and a replay can show them."""
    if not failure.reproduce or failure.opened.startswith(WATCHED):
        return False
    shown = (each for each in failure.exhibits if isinstance(each, SequenceExhibit))
    return any(step.says.endswith(" not shown") for each in shown for step in each.steps)


def some(number: int, what: str) -> str:
    """``1 case``, ``2 cases``"""
    return f"{number:,} {what if number == 1 else f'{what}s'}"


def named_once(target: str, why: str) -> str:
    """A line about a target; its name is in front unless the text begins with it."""
    return why if why.startswith(target) else f"{target}: {why}"


def where(failure: Failure | KnownEntry) -> str:
    """``HeartbeatResponse v0-4; range``"""
    return "; ".join(named(subject, versions) for subject, versions in (failure.where or {}).items())


def followed(follower: Follower) -> str:
    """``client/comes-back in 3 cases: 10000 ms after the rebalance the client is no stable member``"""
    return f"{follower.invariant} in {some(follower.cases, 'case')}: {follower.why}"


def reason(entry: KnownEntry | Flaky) -> str:
    """Why a deviation is expected, and where that is discussed."""
    return " ".join(each for each in (entry.reason, entry.link) if each)


def expected(failure: Failure) -> str:
    """How lists of known deviations cover a failure; empty if they do not."""
    if known := failure.known:
        more = f" It also occurs on {where(known)}, which the list does not name." if known.where else ""
        return f"a known deviation: {reason(known)}{more}"
    if beyond := failure.beyond:
        more = f" It is not expected on {where(beyond)}." if beyond.where else ""
        return f"in part a known deviation: {reason(beyond)}.{more}"
    if changed := failure.changed:
        return f"not as {changed.file}:{changed.line} expects it: {reason(changed)}"
    return ""


def about_cause(cause: Cause) -> list[tuple[str, str]]:
    """What is known about a cause besides its title: name and text."""
    parts = [f"{cause.severity}; {some(len(cause.failures), 'failure')}, {some(cause.cases, 'case')}"]
    if cause.at:
        parts.append(f"at {cause.at}")
    rows = [("severity", "; ".join(parts))]
    if cause.reason:
        rows.append(("reason", cause.reason))
    if cause.kafka:
        rows.append(("Kafka", f"Kafka's own clients do the same: {', '.join(cause.kafka)}"))
    if cause.page:
        rows.append(("page", f"{cause.page}{f' ({cause.status})' if cause.status else ''}"))
    return rows


def numbered(steps: Sequence[SequenceStep]) -> Iterator[tuple[str, SequenceStep]]:
    """Each message with the number of its step, ``3.``; empty if it follows from the step before."""
    number = 0
    for each in steps:
        number += not each.follows
        yield "" if each.follows else f"{number}.", each


def named(subject: str, versions: str | int | None) -> str:
    return subject if versions in (None, "") else f"{subject} v{versions}"


def operation(step: Mapping[str, Any]) -> tuple[str, str]:
    """A step of a failure: the operation in a few words, and its input."""
    about = named(step["message"], step.get("version")) if "message" in step else str(step.get("assignor", ""))
    given: Any = step.get("hex", step.get("value"))
    if given is None and "members" in step and "assignor" in step:
        given = _group(step)
    if given is None:
        shown = {"verb", "actor", "assignor", "message", *(["version"] if "message" in step else [])}
        given = {key: each for key, each in step.items() if key not in shown} or None
    text = "" if given is None else given if isinstance(given, str) else _plain(given)
    return f"{step['verb']} {about}".strip(), text or ("(no bytes)" if "hex" in step else "")


def _group(step: Mapping[str, Any]) -> str:
    """Topics and members of a group, abridged: the file of the failure has them in full."""
    topics = " ".join(f"{each['name']}:{each['partitions']}" for each in step.get("topics", ()))
    members = "; ".join(_member(each) for each in step["members"])
    return f"{topics or 'no topics'}; {members}{'; the round after' if step.get('rejoin') else ''}"


def _member(member: Mapping[str, Any]) -> str:
    parts = [f"{member['id']} subscribes to {' '.join(member['subscription']) or 'nothing'}"]
    if member.get("owned"):
        owned = " ".join(f"{topic}-{partition}" for topic, partition in member["owned"])
        parts.append(f"owned {owned} in {member.get('generation', -1)}")
    names = {"instance": "instance", "rack": "rack", "userData": "user data"}
    parts += [f"{name} {member[key]}" for key, name in names.items() if member.get(key) is not None]
    return ", ".join(parts)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


TO_DO: Mapping[int, str] = {
    0: "Nothing.",
    1: "Begin with the first cause, the gravest: it has a minimal case and a command. List what you accept: kipcheck "
    "known update.",
    2: "Correct the arguments: --help shows them.",
    3: "Look at what the target reported under Troubles. For a testee: kipcheck doctor --target T.",
    4: "Look at the flaky failures: run the case alone several times, and look for state that is left over.",
    5: "Correct the stale entries below: kipcheck known update.",
    6: "Run it again without --budget, or with a longer one. What was not reached is undecided, and did not pass.",
    7: "Look at what was skipped: it proves nothing.",
    70: "Report the bug with the text under Troubles. The results are not reliable.",
}
"""What a user does after a run, by exit code."""


def to_do(exit_code: int | None) -> str:
    return "Run it again: it was cut off." if exit_code is None else TO_DO.get(exit_code, "")
