"""Feature updates: a machine's event as the step that carries it, its actions as an answer, and back."""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.models.features import (
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
"""Said of a broker that has to stop: no error code of Kafka's, for nobody answers it."""


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
    """Errors: LookupError where no event is called so; TypeError where it has other fields."""
    if step.verb not in EVENTS:
        raise LookupError(f"no event is called {step.verb!r}; there are {', '.join(EVENTS)}")
    return EVENTS[step.verb](**step.body)


def shorthand(steps: Iterable[Step]) -> str:
    """``up 0 1-3; update 2; update 1!``: the mark stands for the downgrade flag, a dash for not knowing the feature."""
    return "; ".join(map(_word, steps))


def spoken(text: str) -> tuple[Step, ...]:
    """The steps of a shorthand. Errors: ValueError for what is none."""
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
    raise ValueError(f"{' '.join(words)!r} is no event of features")


def _word(step: Step) -> str:
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
    """In the words of the testee protocol. No action: there is nothing to tell."""
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
