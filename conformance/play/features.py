"""Declares the model ``features``: the feature controller of KIP-584's draft."""

from kipcheck.conformance.apis.features import event_of, parse_shorthand, shorthand, step_of
from kipcheck.conformance.core.edition import KIP_584, Edition
from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.models.features import ENVIRONMENT_EVENTS, Event, FeatureController, State, Update
from kipcheck.conformance.play.declare import FLAG, INTEGER, Bound, Conversation, Field, Playable, Product, Scope, Verb
from kipcheck.conformance.play.single_machine import SingleMachine

BROKER = Field("broker", INTEGER, "its number")
LEVEL = INTEGER.or_null()


def _suits(views: tuple[State]) -> str | None:
    (state,) = views
    unsuited = [each.number for each in state.brokers if state.level and not each.supports(state.level)]
    return f"level {state.level} is finalized, but broker {unsuited[0]} does not support it" if unsuited else None


SUITS: Law[State] = Law(
    "features/level-suits-brokers",
    ("584-06", "584-10"),
    "Every live broker supports the finalized level.",
    lambda index, state: state,
    _suits,
)


def _counts(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    after = did.part
    grown = after.epoch - before.epoch
    if grown == (isinstance(event, Update) and after.level != before.level):
        return None
    return f"the epoch goes from {before.epoch} to {after.epoch}, the level from {before.level} to {after.level}"


COUNTS: StepLaw[State, Event, Event] = StepLaw(
    "features/epoch-grows",
    ("584-16",),
    "The epoch rises by one with every change of the level, and at no other time.",
    _counts,
)


def _product(edition: Edition, scope: Scope) -> Product:
    brokers, updates = scope["brokers"], scope["updates"]
    events = [each for each in ENVIRONMENT_EVENTS if getattr(each, "broker", 0) < brokers]
    return SingleMachine(
        "controller",
        FeatureController(),
        within=lambda state: state.epoch < updates,
        tried=lambda state: events,
        step_of=step_of,
        shorthand=shorthand,
        laws=(SUITS, COUNTS),
    )


FEATURES = Playable(
    name="features",
    about="the controller of KIP-584's draft: brokers support levels of a feature, the operator finalizes one",
    editions=lambda edition: None if edition == KIP_584 else str(KIP_584),
    world=_product,
    verbs=(
        Verb("update", ("operator",), "the operator requests that a level be finalized", (
            Field("level", INTEGER, "the level; below 1 deletes the feature"),
            Field("allow_downgrade", FLAG, "the allowDowngrade flag"),
        ), "update 2; update 1!"),
        Verb("broker-up", ("broker",), "a broker registers; with the number of a live broker, it replaces that one", (
            BROKER,
            Field("low", LEVEL, "lowest supported level; null if the broker does not know the feature"),
            Field("high", LEVEL, "highest supported level; null if the broker does not know the feature"),
        ), "up 0 1-3; up 1 -"),
        Verb("broker-down", ("broker",), "a broker goes down", (BROKER,), "down 0"),
        Verb("restart", ("controller",), "all controllers restart", shorthand="restart"),
        Verb("describe", ("operator",), "the operator requests the finalized level", shorthand="describe"),
    ),
    conversation=lambda edition: Conversation("controller", FeatureController(), event_of, parse_shorthand),
    dials={
        "brokers": Bound(3, "number of brokers", (1, 2, 3)),
        "updates": Bound(2, "number of accepted updates", (1, 2, 3, 4, 5)),
    },
)  # fmt: skip
