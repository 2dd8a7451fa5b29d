"""Declares the model ``group``: the coordinator of a classic group.

``play`` drives it as its clients do; ``explore`` joins it with clients that may send any request at any time.
"""

from functools import partial

from kipcheck.conformance.core.values.edition import KIP_429, Edition
from kipcheck.conformance.protocols.declare.play import (
    FLAG,
    Bound,
    Conversation,
    Field,
    Kind,
    Playable,
    Product,
    Scope,
    Verb,
    verbs,
)
from kipcheck.conformance.protocols.group.laws import laws
from kipcheck.conformance.protocols.group.model.clients import CONFIG, VERBS, Clients, Scope as ClientScope, has_static
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.service import Service
from kipcheck.conformance.protocols.group.ops import CLIENTS, OPERATIONS

ERROR = Kind("name of an error", Error.__members__.__contains__)
FIRE = Verb("fire", ("coordinator",), "a timer expires", (
    Field("timer", Kind("object", lambda value: isinstance(value, dict)), "kind; for a session also the member id"),
))  # fmt: skip
STORE = Verb("store", ("coordinator",), "the oldest append is committed, or fails", (
    Field("error", ERROR.or_null(), "null if the append is committed"),
))  # fmt: skip
DOES = Verb("does", CLIENTS, "a client sends a request, or restarts", (
    Field("verb", Kind(f"one of {', '.join((*VERBS, 'restart'))}", (*VERBS, "restart").__contains__), "request"),
    Field("lost", FLAG, "the response never reaches the client"),
))  # fmt: skip


def _conversation(edition: Edition) -> Conversation:
    found = coordinator(edition)
    assert found is not None, "callers check the edition first"
    newest = {each.verb: max(found.rules.versions[each.made], default=0) for each in OPERATIONS.requests.values()}
    return Conversation(
        "coordinator", Service(found), OPERATIONS.event_of, partial(OPERATIONS.parse_shorthand, newest=newest)
    )


def _product(edition: Edition, scope: Scope) -> Product:
    made = DraftCoordinator(CONFIG) if edition == KIP_429 else Coordinator(Rules.of(edition.release), CONFIG)
    return Clients(made, ClientScope(**scope), laws(made))


def _edition_bounds(edition: Edition) -> Scope:
    """Defaults for editions without static members."""
    found = coordinator(edition)
    return {} if found is None or has_static(found) else {"static": 0, "dynamic": 2}


GROUP = Playable(
    name="group",
    about="the coordinator of a classic group",
    editions=lambda edition: None if coordinator(edition) else "apache, apache@RELEASE and kip-429",
    world=_product,
    verbs=verbs(OPERATIONS),
    moves=(DOES, FIRE, STORE),
    conversation=_conversation,
    dials={
        "static": Bound(2, "number of clients with a group instance id", (0, 1, 2, 3)),
        "dynamic": Bound(1, "number of clients without a group instance id", (0, 1, 2, 3)),
        "crashes": Bound(1, "number of client restarts; a restarted client has lost its member id", (0, 1, 2)),
        "losses": Bound(0, "number of responses that are lost", (0, 1, 2)),
        "failures": Bound(0, "number of appends that fail; above 0, appends are asynchronous", (0, 1, 2)),
        "twins": Bound(0, "1: the first two static clients have the same group instance id", (0, 1)),
    },
    unlike=_edition_bounds,
)
PLAYABLES = (GROUP,)
