"""A consumer of a classic group: played as its user, its coordinator and time meet it, explored by itself."""

from typing import Final

from conformance.apis.member import ANSWERS, COORDINATOR, TIME, TOLD, USER, event_of, rules_of
from conformance.apis.member_shorthand import spoken
from conformance.core.edition import Edition
from conformance.models.assignment import Topic
from conformance.models.group.words import Error
from conformance.models.lone_member import TOPIC, LoneMember
from conformance.models.member.client import Client
from conformance.models.member.consumer import Consumer
from conformance.models.member.rules import ASSIGNORS, Config
from conformance.models.membership import COOPERATIVE, EAGER
from conformance.playable.declared import (
    INTEGER,
    TEXT,
    Conversation,
    Dial,
    Field,
    Kind,
    Playable,
    Scope,
    Verb,
    World,
    together,
)

ANYTHING: Final = Kind("as the answer has it", lambda value: True)
TOPICS: Final = together(TEXT, INTEGER).listed()


def _optional(name: str, kind: Kind, meaning: str) -> Field:
    return Field(name, kind, meaning, needed=False)


ANSWER = Field("answer", Kind(f"one of {', '.join(ANSWERS)}", ANSWERS.__contains__), "to the request of that kind")
FIELDS = {name: None for _, readers in ANSWERS.values() for name in readers}
EVENTS = (
    Verb("member-open", (USER,), "a process begins with a new consumer", (
        _optional("assignors", TEXT.listed(), "the preferred one first; range"),
        _optional("topics", TOPICS, "what the brokers tell: name and partitions"),
        _optional("instance", TEXT.or_null(), "group instance id"),
        _optional("rack", TEXT.or_null(), "where it runs"),
        _optional("protocol", TEXT.or_null(), "rebalance.protocol, of KIP-429's draft alone"),
    ), "open range,sticky"),
    Verb("member-subscribe", (USER,), "to these topics", (Field("topics", TEXT.listed(), "names"),), "subscribe t"),
    Verb("member-unsubscribe", (USER,), "from all", shorthand="unsubscribe"),
    Verb("member-poll", (USER,), "callbacks are called and joins sent in it", shorthand="poll"),
    Verb("member-commit", (USER,), "commits, until it is known what became of it", (
        Field("offsets", together(TEXT, INTEGER, INTEGER).listed(), "topic, partition, offset"),
    ), "commit t:0=5"),
    Verb("member-close", (USER,), "closes the consumer", shorthand="close"),
    Verb("member-metadata", (COORDINATOR,), "the brokers tell of topics", (
        Field("topics", TOPICS, "as of member-open"),
    ), "metadata t:3"),
    Verb("member-disconnected", (COORDINATOR,), "all that is under way is lost", shorthand="disconnected"),
    Verb("member-elapse", (TIME,), "time passes", (Field("ms", INTEGER, "milliseconds"),), "elapse 3000"),
    Verb(TOLD, (COORDINATOR,), "an answer", (
        ANSWER,
        *(_optional(name, ANYTHING, "the name of an error; NONE" if name == "error" else "of the answer")
          for name in FIELDS),
    ), "joined 1; synced t:0; beat"),
)  # fmt: skip

ERROR = _optional("error", Kind("name of an error", Error.__members__.__contains__), "NONE where it went well")
MOVES = (
    Verb("poll", ("member",), "its user polls"),
    Verb("subscribe", ("member",), "its user subscribes", (Field("topics", TEXT.listed(), "names"),)),
    Verb("unsubscribe", ("member",), "its user takes that back"),
    Verb("close", ("member",), "its user closes it"),
    Verb("disconnected", ("member",), "all that is under way is lost"),
    Verb("fired", ("member",), "one of its timers runs out", (Field("timer", ANYTHING, "kind and member"),)),
    Verb("joined", ("member",), "its JoinGroup is answered", (ERROR,)),
    Verb("synced", ("member",), "its SyncGroup is answered", (ERROR, _optional("assignment", ANYTHING, "partitions"))),
    Verb("beat", ("member",), "its heartbeat is answered", (ERROR,)),
    Verb("left", ("member",), "its LeaveGroup is answered", (ERROR,)),
)


def _conversation(edition: Edition) -> Conversation:
    rules = rules_of(edition)
    assert rules is not None, "asked only in editions in which it is played"
    return Conversation("member", Client(rules), event_of, spoken)


def _world(edition: Edition, scope: Scope) -> World:
    rules = rules_of(edition)
    assert rules is not None, "asked only in editions in which it is played"
    cooperates = scope["protocol"] == COOPERATIVE
    if cooperates and not rules.incremental:
        raise LookupError("there are no cooperative members before 2.4.0: ask for protocol=eager")
    assignor = ASSIGNORS["cooperative-sticky" if cooperates else "range"]
    config = Config(
        rules, (assignor,), rebalance_protocol=scope["protocol"], topics=(Topic(TOPIC, scope["partitions"]),)
    )
    return LoneMember(Consumer(config), scope["partitions"], scope["generations"])


MEMBER = Playable(
    name="member",
    about="a consumer of a classic group",
    editions=lambda edition: None if rules_of(edition) else "apache, apache@RELEASE from 0.10.1 on, and kip-429",
    world=_world,
    verbs=EVENTS,
    moves=MOVES,
    conversation=_conversation,
    dials={
        "protocol": Dial(EAGER, "what it speaks", (EAGER, COOPERATIVE)),
        "partitions": Dial(2, "of its topic", (1, 2, 3)),
        "generations": Dial(2, "that are told from each other", (1, 2, 3)),
    },
)
