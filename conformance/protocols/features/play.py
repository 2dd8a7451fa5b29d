"""Declares the model ``features``: the feature controller of KIP-584's draft."""

from kipcheck.conformance.core.edition import KIP_584, Edition
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.features.laws import COUNTS, SUITS
from kipcheck.conformance.protocols.features.model.controller import ENVIRONMENT_EVENTS, FeatureController
from kipcheck.conformance.protocols.features.ops.controller import OPERATIONS


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


PLAYABLES = (
    Playable(
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
    ),
)
