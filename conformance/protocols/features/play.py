"""Declares the model ``features``: the feature controller of KIP-584's draft."""

from kipcheck.conformance.core.edition import KIP_584, Edition
from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.features.model import ENVIRONMENT_EVENTS, FeatureController, State
from kipcheck.conformance.protocols.features.ops import OPERATIONS, Event, Update


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
        step_of=OPERATIONS.step_of,
        shorthand=OPERATIONS.shorthand,
        laws=(SUITS, COUNTS),
    )


PLAYABLE = Playable(
    name="features",
    about="the controller of KIP-584's draft: brokers support levels of a feature, the operator finalizes one",
    editions=lambda edition: None if edition == KIP_584 else str(KIP_584),
    world=_product,
    verbs=verbs(OPERATIONS),
    conversation=lambda edition: Conversation(
        "controller", FeatureController(), OPERATIONS.event_of, OPERATIONS.parse_shorthand
    ),
    dials={
        "brokers": Bound(3, "number of brokers", (1, 2, 3)),
        "updates": Bound(2, "number of accepted updates", (1, 2, 3, 4, 5)),
    },
)
