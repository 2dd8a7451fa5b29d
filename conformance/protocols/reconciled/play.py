"""Declares the models of reconciled groups for ``play`` and ``explore``."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.machine import Driven
from kipcheck.conformance.machines.product import Law, StepLaw
from kipcheck.conformance.protocols.declare.machine_adapter import ReleasedMachine
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine


def all_orders(
    machine: Driven[Any, Any, Any],
    operations: Operations[Any, Any],
    laws: tuple[Law[Any] | StepLaw[Any, Any, Any], ...],
    within: Callable[[Any], bool],
    tried: Callable[[Any], Iterable[Any]],
) -> Product:
    """All orders of the events that ``tried`` has for a state, from the states ``within`` bounds."""
    return SingleMachine("coordinator", machine, within, tried, operations.step_of, operations.shorthand, laws)


def playable(
    released: ReleasedMachine[Any], about: str, world: Callable[[Any, Scope], Product], dials: Mapping[str, Bound]
) -> Playable:
    """The model of a machine. ``world``: the search of the machine of an edition in a scope."""
    operations = released.operations
    return Playable(
        name=operations.machine,
        about=about,
        editions=released.others,
        world=lambda edition, scope: world(released.of(edition), scope),
        verbs=verbs(operations),
        conversation=lambda edition: Conversation(
            "coordinator", released.of(edition), operations.event_of, operations.parse_shorthand
        ),
        dials=dials,
    )
