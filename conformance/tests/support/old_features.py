"""The codec of feature updates before its operations were declared once, to compare with."""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.protocols.features.ops import (
    Action,
    Applied,
    BrokerDown,
    BrokerUp,
    Describe,
    Event,
    Rejected,
    Restart,
    ShutDown,
    Told,
    Update,
)

INCOMPATIBLE = "INCOMPATIBLE_BROKER"
"""Error class for a broker that has to stop. It is not an error code of Kafka: the broker gets no response."""


def step_of(event: Event) -> Step:
    match event:
        case Update(level, allow_downgrade):
            return step("operator", "update", level=level, allow_downgrade=allow_downgrade)
        case BrokerUp(broker, low, high):
            return step("broker", "broker-up", broker=broker, low=low, high=high)
        case BrokerDown(broker):
            return step("broker", "broker-down", broker=broker)
        case Restart():
            return step("controller", "restart")
        case Describe():
            return step("operator", "describe")
        case _:
            assert_never(event)


EVENTS: Mapping[str, type[Event]] = {
    "update": Update,
    "broker-up": BrokerUp,
    "broker-down": BrokerDown,
    "restart": Restart,
    "describe": Describe,
}


def event_of(step: Step) -> Event:
    """Errors: LookupError for an unknown verb; TypeError for wrong fields."""
    if step.verb not in EVENTS:
        raise LookupError(f"unknown event {step.verb!r}: use one of {', '.join(EVENTS)}")
    return EVENTS[step.verb](**step.body)


def shorthand(steps: Iterable[Step]) -> str:
    """``up 0 1-3; update 2; update 1!; up 1 -``: ``!`` is the downgrade flag, ``-`` a broker without the feature."""
    return "; ".join(map(_step_text, steps))


def parse_shorthand(text: str) -> tuple[Step, ...]:
    """Parses shorthand into steps. Errors: ValueError."""
    return tuple(step_of(_event(word.split())) for word in text.split(";") if word.strip())


def _event(words: list[str]) -> Event:
    match words:
        case ["update", level]:
            return Update(int(level.removesuffix("!")), level.endswith("!"))
        case ["up", broker, "-"]:
            return BrokerUp(int(broker), None, None)
        case ["up", broker, span]:
            low, _, high = span.partition("-")
            return BrokerUp(int(broker), int(low), int(high))
        case ["down", broker]:
            return BrokerDown(int(broker))
        case ["restart"]:
            return Restart()
        case ["describe"]:
            return Describe()
    raise ValueError(
        "use update LEVEL, update LEVEL!, up BROKER LOW-HIGH, up BROKER -, down BROKER, restart or describe"
    )


def _step_text(step: Step) -> str:
    match event_of(step):
        case Update(level, allow_downgrade):
            return f"update {level}{'!' * allow_downgrade}"
        case BrokerUp(broker, low, high):
            return f"up {broker} {'-' if low is None else f'{low}-{high}'}"
        case BrokerDown(broker):
            return f"down {broker}"
        case other:
            return step_of(other).verb


def answer_of(actions: Iterable[Action]) -> dict[str, Any]:
    """The answer of the testee protocol; without fields if there is no action."""
    for action in actions:
        match action:
            case Applied(epoch):
                return {"status": "accepted", "epoch": epoch}
            case Told(level, epoch):
                return {"status": "accepted", "level": level, "epoch": epoch}
            case Rejected(error):
                return {"status": "rejected", "class": error}
            case ShutDown(broker):
                return {"status": "rejected", "class": INCOMPATIBLE, "message": f"broker {broker} has to stop"}
            case _:
                assert_never(action)
    return {"status": "accepted"}
