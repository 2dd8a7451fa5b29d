"""Highlights the event in a history that completes the evidence of a violation, and the bytes that show it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core.history import History, Op, Replied
from kipcheck.conformance.matrix.play import Broken, Judged

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


class Place(NamedTuple):
    step: int
    seen: int
    """The index of the event in the step."""


def marked(told: Plain, judged: Judged) -> Plain:
    """``told``: the result of ``telling.told``. Returns a copy with guilty events and fields highlighted."""
    told = json.loads(json.dumps(told))  # equal events are one shared object
    steps = told["steps"]
    for broken in judged.broken[:1]:
        if (place := culprit(judged, broken)) is not None:
            seen = steps[place.step]["seen"][place.seen]
            seen["guilty"] = True
            fields = FIELDS.get(broken.invariant.id.partition("/")[2], ())
            _mark(_behind(steps, place, NAMED.search(broken.violation.why)), fields)
    for place in [*_places(steps)]:
        seen = steps[place.step]["seen"][place.seen]
        if seen["what"] == "died":
            _mark(_read_last(steps, place), USED)
    return told


def culprit(judged: Judged, broken: Broken) -> Place | None:
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
            return Place(step, length - 1)
    return None


def _places(steps: list[Plain]) -> Iterator[Place]:
    """The positions of all events, in order."""
    for number, step in enumerate(steps):
        yield from (Place(number, index) for index in range(len(step["seen"])))


def _behind(steps: list[Plain], place: Place, named: re.Match[str] | None) -> list[Plain]:
    """The user data that an event is about: its own, or the last that its member was sent."""
    seen = steps[place.step]["seen"][place.seen]
    if seen["blobs"]:
        about = [each for each in seen["blobs"] if named is not None and each["member"] == named[0]]
        return about or list(seen["blobs"])
    return _last(steps, place, "sent", seen["member"])


def _read_last(steps: list[Plain], place: Place) -> list[Plain]:
    """What a member read before it died: the last data sent to it; for a leader, the subscriptions with the newest
    version.
    """
    seen = steps[place.step]["seen"][place.seen]
    if "(leading)" not in seen["text"]:
        return _last(steps, place, "sent", seen["member"])
    blobs = _last(steps, place, "formed", None)
    newest = max((_version(each) for each in blobs), default=0)
    return [each for each in blobs if _version(each) == newest]


def _version(blob: Plain) -> int:
    return int(blob["hex"][:8] or "0", 16)


def _last(steps: list[Plain], before: Place, what: str, member: str | None) -> list[Plain]:
    for place in reversed([each for each in _places(steps) if each < before]):
        seen = steps[place.step]["seen"][place.seen]
        if seen["what"] == what and member in (None, seen["member"]):
            return list(seen["blobs"])
    return []


def _mark(blobs: list[Plain], fields: tuple[str, ...]) -> None:
    for blob in blobs:
        for row in blob["rows"]:
            if row["field"].partition("[")[0] in fields:
                row["guilty"] = True
