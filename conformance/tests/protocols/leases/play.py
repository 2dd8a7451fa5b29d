"""Declares the model ``leases``."""

from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.tests.protocols.leases.laws import ONE_HOLDER
from kipcheck.conformance.tests.protocols.leases.model import ENVIRONMENT_EVENTS, LeaseBroker
from kipcheck.conformance.tests.protocols.leases.ops import OPERATIONS


def _product(edition: Edition, scope: Scope) -> Product:
    return SingleMachine(
        "broker",
        LeaseBroker(),
        within=lambda state: state.epoch < scope["leases"],
        tried=lambda state: ENVIRONMENT_EVENTS,
        step_of=OPERATIONS.step_of,
        shorthand=OPERATIONS.shorthand,
        laws=(ONE_HOLDER,),
    )


PLAYABLES = (
    Playable(
        name="leases",
        about="a broker that leases a partition to one client at a time",
        editions=lambda edition: None if edition.standing is not Standing.DRAFT else "apache",
        world=_product,
        verbs=verbs(OPERATIONS),
        conversation=lambda edition: Conversation(
            "broker", LeaseBroker(), OPERATIONS.event_of, OPERATIONS.parse_shorthand
        ),
        dials={"leases": Bound(3, "number of granted leases", (1, 2, 3, 4))},
    ),
)
