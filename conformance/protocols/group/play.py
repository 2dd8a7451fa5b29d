"""Declares the model ``group``: the coordinator of a classic group.

``play`` drives it as its clients do; ``explore`` joins it with clients that may send any request at any time.
"""

from functools import partial
from typing import Final

from kipcheck.conformance.core.edition import KIP_429, Edition
from kipcheck.conformance.protocols.declare.play import (
    FLAG,
    INTEGER,
    TEXT,
    Bound,
    Conversation,
    Field,
    Kind,
    Playable,
    Product,
    Scope,
    Verb,
    tuple_of,
)
from kipcheck.conformance.protocols.group.laws import laws
from kipcheck.conformance.protocols.group.model.clients import CONFIG, VERBS, Clients, Scope as ClientScope, has_static
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.service import Service
from kipcheck.conformance.protocols.group.ops import BROKER, REQUESTS, TIME, event_of
from kipcheck.conformance.protocols.group.shorthand import parse_shorthand

CLIENTS: Final = ("a", "b", "c", "d", "e")
VERSION = Field("version", INTEGER, "version of the request")
MEMBER = Field(
    "member", TEXT, "reference: a is the id most recently given to client a, a-old the id before it, ? an unknown id"
)
INSTANCE = Field("instance", TEXT.or_null(), "group instance id", needed=False)
NAMELESS = Field("nameless", FLAG, "the request has an empty group id", needed=False)
BEHIND = Field(
    "behind",
    INTEGER.or_null(),
    "its generation: 0 the last one that its client received, 1 one older, null none",
    needed=False,
)
ERROR = Kind("name of an error", lambda value: value in Error.__members__)


def _request_verb(name: str, meaning: str, example: str, *fields: Field) -> Verb:
    return Verb(name, CLIENTS, meaning, (VERSION, *fields, NAMELESS), example)


def _optional(name: str, kind: Kind, meaning: str) -> Field:
    return Field(name, kind, meaning, needed=False)


EVENTS = (
    _request_verb(
        "join", "JoinGroup", "join a; rejoin a; join b as i lists=p:x,q:y", MEMBER, INSTANCE,
        Field("protocol_type", TEXT, "for example consumer"),
        Field("protocols", tuple_of(TEXT, TEXT).listed(), "name and metadata, preferred first"),
        _optional("session_ms", INTEGER, "session timeout, ms; default 10000"),
        _optional("rebalance_ms", INTEGER, "rebalance timeout, ms; default 30000"),
        _optional("protocol_version", INTEGER.or_null(), "only in KIP-429's draft"),
    ),
    _request_verb(
        "sync", "SyncGroup", "sync a a=x b=y; sync b", MEMBER, INSTANCE, BEHIND,
        _optional("assignments", tuple_of(TEXT, TEXT).listed(), "from the leader: member reference and assignment"),
        _optional("protocol_type", TEXT.or_null(), "since version 5"),
        _optional("protocol", TEXT.or_null(), "since version 5"),
    ),
    _request_verb("heartbeat", "Heartbeat", "beat a; beat a behind=1", MEMBER, INSTANCE, BEHIND),
    _request_verb(
        "leave", "LeaveGroup", "leave a; leave a b/i",
        Field("members", tuple_of(TEXT, TEXT.or_null()).listed(), "member references and group instance ids"),
    ),
    _request_verb(
        "commit", "OffsetCommit", "commit a 5", MEMBER, INSTANCE, BEHIND,
        Field("offsets", tuple_of(TEXT, INTEGER, INTEGER).listed(), "topic, partition, offset"),
    ),
    _request_verb("fetch", "OffsetFetch, of all offsets", "fetch"),
    _request_verb("describe-group", "DescribeGroups", "describe"),
    _request_verb("list-groups", "ListGroups", "list"),
    _request_verb("delete-group", "DeleteGroups", "delete"),
    Verb("elapse", (TIME,), "time passes", (Field("ms", INTEGER, "milliseconds"),), "elapse 3000"),
    Verb("fail-write", (BROKER,), "the next append to the log fails", (Field("error", ERROR, "error of the log"),),
         "fail NOT_ENOUGH_REPLICAS"),
    Verb("unload", (BROKER,), "the partition of the group moves to another broker", shorthand="unload"),
    Verb("load", (BROKER,), "this broker takes over the partition of the group", shorthand="load"),
    Verb("loaded", (BROKER,), "this broker has read the log of the group", shorthand="loaded; move is all three"),
)  # fmt: skip

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
    newest = {verb: max(found.rules.versions[asked], default=0) for verb, (asked, _) in REQUESTS.items()}
    return Conversation("coordinator", Service(found), event_of, partial(parse_shorthand, newest=newest))


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
    verbs=EVENTS,
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
