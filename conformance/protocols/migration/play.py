"""Declares the model ``migration``: a group whose members use the classic protocol, KIP-848's, or both.

``play`` drives it as its clients do; ``explore`` lets them send requests in any order.
"""

from functools import partial

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.consumer_group.rules import CURRENT, Rules
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.group.model.rules import Rules as ClassicRules
from kipcheck.conformance.protocols.migration.laws import LAWS
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.protocols.migration.search_model import ReleasedGroup, newest, tried, untimed
from kipcheck.conformance.protocols.migration.target import MACHINE


def _machine(edition: Edition, owed: type[MixedGroup], released: type[MixedGroup]) -> MixedGroup:
    """As an exact release has it, or as it is owed."""
    if not edition.exact:
        return owed(CURRENT)
    return released(Rules.of(edition.release), classic=ClassicRules.of(edition.release))


def product(machine: MixedGroup, scope: Scope) -> Product:
    """All orders of events of an untimed machine."""
    return SingleMachine(
        "coordinator",
        machine,
        within=lambda state: newest(state) < scope["epochs"],
        tried=partial(tried, scope=scope),
        step_of=OPERATIONS.step_of,
        shorthand=OPERATIONS.shorthand,
        laws=LAWS,
    )


PLAYABLES = (
    Playable(
        name="migration",
        about="a group whose members use the classic protocol, KIP-848's, or both",
        editions=MACHINE.others,
        world=lambda edition, scope: product(_machine(edition, untimed(MixedGroup), untimed(ReleasedGroup)), scope),
        verbs=verbs(OPERATIONS),
        conversation=lambda edition: Conversation(
            "coordinator",
            _machine(edition, MixedGroup, ReleasedGroup),
            OPERATIONS.event_of,
            OPERATIONS.parse_shorthand,
        ),
        dials={
            "classic": Bound(1, "number of clients that use the classic protocol", (1, 2)),
            "consumers": Bound(1, "number of clients that use KIP-848's", (1, 2)),
            "static": Bound(0, "1: the first consumer and the last classic client are one instance", (0, 1)),
            "epochs": Bound(5, "states with this epoch or generation are not expanded", (3, 4, 5, 6)),
        },
    ),
)
