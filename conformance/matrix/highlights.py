"""Highlights the event in a history that completes the evidence of a violation, and the bytes that show it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.matrix.play import Broken, JudgedScript

Plain = dict[str, Any]
USED: Final = ("version",)
SECOND: Final = ("latestSupportedVersion", "commonlySupportedVersion")
TASKS: Final = ("activeTasks",)
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "decodable": USED,
    "errors-decodable": (*USED, "errCode"),
    "leads-the-future": USED,
    "old-leader-fails": USED,
    "lowest-version": USED,
    "second-int": SECOND[1:],
    "future-gets": (*USED, *TASKS, "standbyTasks", "partitionsByHost"),
    "others-get": TASKS,
    "hard-mix": ("errCode",),
    "successive-differ": ("uniqueField",),
    "one-owner": TASKS,
    "shared-while-probing": TASKS,
    "handed-over": TASKS,
    "tasks-match": TASKS,
    "pairs": TASKS,
    "standbys": ("standbyTasks",),
    "idle-standbys": ("standbyTasks",),
    "hosts": ("partitionsByHost", "standbyPartitionsByHost"),
    "restarts-afresh": USED,
    "upgrade-from": USED,
    "used-within-own": SECOND[1:],
    "adopts-blindly": SECOND[1:],
    "used-within-told": (*USED, *SECOND[1:]),
    "follows": (*USED, *SECOND[1:]),
    "last-rebalance": (*USED, *SECOND[1:]),
    "old-data-moves-nobody": USED,
    "refuses-newer": (*USED, *SECOND[1:]),
}
"""The user data fields of an invariant of Streams groups (without ``streams/``)."""
NAMED: Final = re.compile(r"[a-z](?= \()")
"""The member that a sentence is about: the first ``a (2.0.1)``."""


class EventPosition(NamedTuple):
    step: int
    event: int
    """The index of the event in the step."""


def with_highlights(history_json: Plain, judged: JudgedScript) -> Plain:
    """``told``: the result of ``telling.told``. Returns a copy with guilty events and fields highlighted."""
    history_json = json.loads(json.dumps(history_json))  # equal events are one shared object
    steps = history_json["steps"]
    for broken in judged.broken[:1]:
        if (position := guilty_event(judged, broken)) is not None:
            event = steps[position.step]["seen"][position.event]
            event["guilty"] = True
            fields = FIELDS.get(broken.invariant.id.partition("/")[2], ())
            _highlight(_data_behind(steps, position, NAMED.search(broken.violation.why)), fields)
    for position in [*_positions(steps)]:
        event = steps[position.step]["seen"][position.event]
        if event["what"] == "died":
            _highlight(_read_last(steps, position), USED)
    return history_json


def guilty_event(judged: JudgedScript, broken: Broken) -> EventPosition | None:
    """The event that completes the evidence. None if one step alone does not show it."""
    if not broken.violation.at:
        return None
    step = max(broken.violation.at)
    history, happenings = judged.history, judged.history.ops[step].observation
    assert isinstance(happenings, Replied)
    actions = dict(happenings.payload)["actions"]
    for length in range(1, len(actions) + 1):
        op = history.ops[step]
        part = Replied((("status", "accepted"), ("actions", actions[:length])))
        ops = (*history.ops[:step], Op(op.index, op.step, part, op.after))
        so_far = History(history.case, history.target, ops)
        if any(each.why == broken.violation.why for each in broken.invariant.search(so_far)):
            return EventPosition(step, length - 1)
    return None


def _positions(steps: list[Plain]) -> Iterator[EventPosition]:
    """The positions of all events, in order."""
    for number, step in enumerate(steps):
        yield from (EventPosition(number, index) for index in range(len(step["seen"])))


def _data_behind(steps: list[Plain], position: EventPosition, named: re.Match[str] | None) -> list[Plain]:
    """The user data that an event is about: its own, or the last that its member was sent."""
    event = steps[position.step]["seen"][position.event]
    if event["blobs"]:
        about = [each for each in event["blobs"] if named is not None and each["member"] == named[0]]
        return about or list(event["blobs"])
    return _last(steps, position, "sent", event["member"])


def _read_last(steps: list[Plain], position: EventPosition) -> list[Plain]:
    """What a member read before it died: the last data sent to it; for a leader, the subscriptions with the newest
    version.
    """
    event = steps[position.step]["seen"][position.event]
    if "(leading)" not in event["text"]:
        return _last(steps, position, "sent", event["member"])
    blobs = _last(steps, position, "formed", None)
    newest = max((_version(each) for each in blobs), default=0)
    return [each for each in blobs if _version(each) == newest]


def _version(blob: Plain) -> int:
    return int(blob["hex"][:8] or "0", 16)


def _last(steps: list[Plain], before: EventPosition, what: str, member: str | None) -> list[Plain]:
    for position in reversed([each for each in _positions(steps) if each < before]):
        event = steps[position.step]["seen"][position.event]
        if event["what"] == what and member in (None, event["member"]):
            return list(event["blobs"])
    return []


def _highlight(blobs: list[Plain], fields: tuple[str, ...]) -> None:
    for blob in blobs:
        for row in blob["rows"]:
            if row["field"].partition("[")[0] in fields:
                row["guilty"] = True
