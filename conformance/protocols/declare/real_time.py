"""What a target in real time adds to its answers: its own settings, and doubt about the time of its timers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.core.values.history import History, Observation, Replied

SETTINGS: Final = "settings"
"""In what was observed of a running broker: the settings that are not those that conversations count on."""
DOUBT: Final = "doubt"
"""In what was observed of a broker in real time: why a timer of the coordinator may have expired before or after the
step in which it should."""


def stated_settings(history: History) -> Mapping[str, Any]:
    """The settings that the target states; empty where they are those that conversations count on."""
    answers = (dict(op.observation.payload) for op in history.ops if isinstance(op.observation, Replied))
    return next((each[SETTINGS] for each in answers if SETTINGS in each), {})


def is_in_doubt(history: History) -> bool:
    """Whether timers of the coordinator may have expired at other steps than in the conversation, so that violations
    prove nothing."""
    return any(_is_doubtful(op.observation) for op in history.ops)


def before_doubt(history: History) -> History:
    """The history up to the first step in doubt: timers of the coordinator expired there as in the conversation."""
    end = next((at for at, op in enumerate(history.ops) if _is_doubtful(op.observation)), len(history.ops))
    ops = history.ops[:end]
    return replace(history, ops=ops, case=replace(history.case, steps=tuple(op.step for op in ops)))


def _is_doubtful(found: Observation) -> bool:
    return isinstance(found, Replied) and DOUBT in dict(found.payload)
