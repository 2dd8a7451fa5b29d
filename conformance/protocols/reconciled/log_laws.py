"""Invariants of what a coordinator has after it has read its log, whatever the kind of the group is.

A coordinator determines its answers by its state and the requests: a round of requests that was answered alike twice
changes nothing, so it is answered alike once more, and by the coordinator that reads the records of that state.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.trace import payload
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.reconciled.log_ops import Commit, Offset
from kipcheck.conformance.protocols.reconciled.terms import UNAVAILABLE

NOT_AS_BEFORE: Final = (
    "A group is not there, or is another one, after its coordinator has read the log", "stuck group", "durability",
    "stuck-group", "needless-move",
)  # fmt: skip
OFFSETS_LOST: Final = "Committed offsets are lost or changed", "double processing", "durability", "lost-offsets"
"""What a violation of each of the two laws means, for ``impact``."""
RELOAD: Final = "-reload"
COMMIT: Final = "-commit"
FETCH: Final = "-fetch"
"""How the verbs of all machines end."""
CLASSIC: Final = "classic-heartbeat"
SYNC: Final = "classic-sync"
RECEIVE: Final = "classic-receive"
RECEIVED: Final = "received"
UNREAD: Final = "unread"
"""Where reading the log failed, of a target that sees that."""
UNCHANGED: Final = ("NONE", terms.UNKNOWN_MEMBER_ID)
"""What a classic member is answered where no rebalance is under way, or that is no member."""
NOT_WRITTEN: Final = ("endpoint_epoch", "endpoints")
"""Keys of answers that rest on what no record of the log has: a coordinator counts changes of endpoints in memory
(``StreamsGroup``)."""


def reads(case: Case, step: Step) -> bool:
    """Whether an answer to a step shows what a coordinator has read."""
    return not step.verb.endswith("-elapse")


def fetches(case: Case, step: Step) -> bool:
    return step.verb.endswith((COMMIT, FETCH))


def outlived(history: History) -> Iterator[Violation]:
    """The differences between answers before and after the log is read."""
    ops = history.ops
    reloads = [at for at, op in enumerate(ops) if op.step.verb.endswith(RELOAD)]
    for at, following in pairwise((*reloads, len(ops))):
        for op in ops[at + 1 : following]:
            # A client may receive an answer to an earlier request.
            if op.step.verb != RECEIVE and (error := _error(op)) in UNAVAILABLE:
                why = f"the coordinator read its log at step {at + 1}, and answers step {op.index + 1} with {error}"
                while_read = ops[at].step.body.get("since", 0) > 0
                kind = "compacted meanwhile" if while_read else "compacted" if ops[at].step.body else "whole log"
                place = payload(ops[at]).get(UNREAD)
                observed = f"{error}: {place} failed at a record" if place else error
                yield Violation(why, (at, op.index), "the group is served", observed, shape=("not loaded", kind))
                return
        for was, now in zip(_round(ops[:at]), ops[at + 1 : following], strict=False):
            if was.step != now.step or not _is_written(ops[:at], was):
                break
            if not _alike(was, now):
                why = (
                    f"step {was.index + 1} was answered like the same one before it, the log was read at step {at + 1},"
                    f" and step {now.index + 1} is answered otherwise"
                )
                shape = (now.step.verb, _difference(was, now))
                yield Violation(why, (was.index, at, now.index), _text(was), _text(now), shape=shape)
                break


def served(history: History) -> History:
    """The history up to the first answer of a coordinator that could not read its log."""
    loaded = False
    for at, op in enumerate(history.ops):
        loaded = loaded or op.step.verb.endswith(RELOAD)
        if loaded and op.step.verb != RECEIVE and _error(op) in UNAVAILABLE:
            return replace(history, ops=history.ops[:at])
    return history


def _round(before: Sequence[Op]) -> Sequence[Op]:
    """The longest last round of requests that were all answered like those of the round before it."""
    asked = next((len(before) - at - 1 for at in reversed(range(len(before))) if not _asks(before[at])), len(before))
    for length in range(asked // 2, 0, -1):
        last = before[-length:]
        if all(one.step == other.step and one.observation == other.observation
               for one, other in zip(before[-2 * length : -length], last, strict=True)):  # fmt: skip
            return last
    return ()


def _is_written(before: Sequence[Op], op: Op) -> bool:
    """Whether the log has what an answer rests on: a classic group is written with its first SyncGroup."""
    if op.step.verb != CLASSIC or _error(op) != "NONE":
        return True
    steps = (each for each in before if each.step.body.get("client") == op.step.body["client"])
    rounds = [each.step.verb for each in steps if each.step.verb != CLASSIC and _error(each) == "NONE"]
    return bool(rounds) and rounds[-1] == SYNC


def _asks(op: Op) -> bool:
    """Whether a step need not change anything, and says the same when it is repeated."""
    says, verb = op.step.body.get("says"), op.step.verb
    if verb == CLASSIC:
        return payload(op).get(RECEIVED) in UNCHANGED
    return verb.endswith((FETCH, "-describe")) or (says == "stay" and op.step.body.get("owned") != "before")


def _error(op: Op) -> str:
    if isinstance(op.observation, Refused):
        return op.observation.error
    return str(payload(op).get(RECEIVED, ""))


def _text(op: Op) -> str:
    if isinstance(op.observation, Refused):
        return f"refused: {op.observation.error}"
    return ", ".join(f"{key} {value}" for key, value in payload(op).items()) or "accepted"


def _written(op: Op) -> dict[str, Any]:
    """The fields of an answer that rest on the log."""
    return {key: value for key, value in payload(op).items() if key not in NOT_WRITTEN}


def _alike(was: Op, now: Op) -> bool:
    if isinstance(was.observation, Replied) and isinstance(now.observation, Replied):
        return _written(was) == _written(now)
    return was.observation == now.observation


def _difference(was: Op, now: Op) -> str:
    """What differs first, in words for a shape."""
    if not isinstance(now.observation, Replied) or not isinstance(was.observation, Replied):
        return _error(now) or "accepted"
    before, after = _written(was), _written(now)
    return next((key for key in (*before, *after) if before.get(key) != after.get(key)), "answer")


def kept(history: History, commit_of: Callable[[Step], Any]) -> Iterator[Violation]:
    """The offsets that are not those of the last accepted commits. ``commit_of``: the event of a step."""
    accepted: dict[tuple[str, int], tuple[Offset, int]] = {}
    for op in history.ops:
        if not isinstance(op.observation, Replied):
            continue
        if op.step.verb.endswith(COMMIT):
            commit = commit_of(op.step)
            assert isinstance(commit, Commit)
            accepted[commit.row[:2]] = commit.row, op.index
        if not op.step.verb.endswith(FETCH):
            continue
        found = {(row[0], row[1]): tuple(row) for row in payload(op).get("offsets", ())}
        for place in sorted(accepted.keys() | found.keys()):
            wanted, at = accepted.get(place, (None, op.index))
            got = found.get(place)
            if got != wanted:
                last = f"the last accepted commit for {place[0]}-{place[1]} is {_row(wanted)}"
                why = f"{last}, and step {op.index + 1} returns {_row(got)}"
                kind = "lost" if got is None else "from nowhere" if wanted is None else _field(got, wanted)
                yield Violation(why, (at, op.index), _row(wanted), _row(got), shape=("offset", kind))


def _row(row: Sequence[Any] | None) -> str:
    return "none" if row is None else f"offset {row[2]}, leader epoch {row[3]}, metadata {row[4]!r}"


def _field(got: Sequence[Any], wanted: Sequence[Any]) -> str:
    names = ("offset", "leader epoch", "metadata")
    return next(name for name, one, other in zip(names, got[2:], wanted[2:], strict=True) if one != other)
