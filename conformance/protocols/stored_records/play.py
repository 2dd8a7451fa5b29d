"""Declares the model ``stored-records``: what the coordinators of a release write and load."""

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.declare.package import released
from kipcheck.conformance.protocols.declare.play import Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.stored_records.model import ENVIRONMENT_EVENTS, StoredRecords
from kipcheck.conformance.protocols.stored_records.ops import OPERATIONS


def _product(edition: Edition, scope: Scope) -> Product:
    return SingleMachine(
        "broker",
        StoredRecords(edition.release, edition.exact),
        within=lambda state: True,
        tried=lambda state: ENVIRONMENT_EVENTS,
        step_of=OPERATIONS.step_of,
        shorthand=OPERATIONS.shorthand,
        laws=(),
    )


PLAYABLES = (
    Playable(
        name="stored-records",
        about="a broker that writes and loads the records of its coordinators, in the versions of its release",
        editions=lambda edition: None if released(edition) else "apache or apache@RELEASE",
        world=_product,
        verbs=verbs(OPERATIONS),
        conversation=lambda edition: Conversation(
            "broker", StoredRecords(edition.release, edition.exact), OPERATIONS.event_of, OPERATIONS.parse_shorthand
        ),
    ),
)
