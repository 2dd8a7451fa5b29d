"""Groups whose members have several releases: the versions they support, and the messages they send.

As nodes, so that they can be drawn and reduced without Hypothesis. The release table contains the supported versions.
"""

from collections.abc import Iterable, Sequence
from functools import cache

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.release import Release, releases as releases_of
from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.schema import Layout, Versions, release_table, spec, stable_versions
from kipcheck.strategies.arguments import names as names_of, number_of
from kipcheck.strategies.body import body_node
from kipcheck.strategies.messages import embedded, from_layout, layouts
from kipcheck.strategies.nodes import Blob, Embedded, Integer, Node, OneOf, Pick, Record, Row, Seq, record, with_fields
from kipcheck.strategies.typical_values import PROTOCOLS, TOPICS

GROUP_MESSAGES = ("JoinGroupRequest", "SyncGroupRequest", "ConsumerProtocolSubscription", "SubscriptionInfo")
"""Messages that decide whether members of several releases understand each other."""
NOT_OF_BROKERS = frozenset({"BrokerRegistration"})
"""APIs that only controllers announce."""

Members = tuple[int, int]
Announced = tuple[tuple[int, int, int], ...]
"""Key, lowest and highest version of each API that a broker has."""


def version_mix(
    messages: str | Sequence[str] = GROUP_MESSAGES, *, members: Members = (2, 4), releases: str | None = None
) -> Seq:
    """Members of a group: ``{"release": RELEASE, "versions": {"JoinGroupRequest": 5, ...}}`` each, the oldest first.

    A member may use any version that its release supports; messages that its release lacks are left out. Releases with
    the same versions of all messages are represented by the first. ``releases`` limits them: ``2.3.0-3.9.2, 4.0.1+``.
    Errors: LookupError where no message is given, or no release in it supports any of them; ValueError for invalid
    syntax.
    """
    names = (messages,) if isinstance(messages, str) else names_of("messages", messages)
    if not names:
        raise LookupError("no message was given")
    members_of: dict[tuple[Versions | None, ...], Record] = {}
    for release in _within(releases):
        spans = tuple(stable_versions(name, release) for name in names)
        if any(spans):
            versions = tuple((name, _of(span)) for name, span in zip(names, spans, strict=True) if span)
            members_of.setdefault(spans, record(release=Pick((release,)), versions=Record(versions)))
    if not members_of:
        raise LookupError(f"no release in {releases or 'the table'} supports {' or '.join(names)}")
    return Seq(OneOf(tuple(members_of.values())), *number_of("members", members))


def subscription_stream(
    *, versions: int | Iterable[int] | None = None, members: Members = (2, 4), edition: str = "apache"
) -> Seq:
    """Bodies of ConsumerProtocolSubscription of one group: topics in common, mixed versions; their user data includes
    Streams subscriptions of mixed versions, used and supported, up to one that no release knows yet."""
    chosen = layouts(edition, "ConsumerProtocolSubscription", versions)
    return Seq(OneOf(tuple(body_node(each, subscription(each)) for each in chosen)), *number_of("members", members))


def assignment_stream(
    *, versions: int | Iterable[int] | None = None, members: Members = (2, 4), edition: str = "apache"
) -> Seq:
    """Bodies of ConsumerProtocolAssignment of one group; their user data includes Streams assignments."""
    chosen = layouts(edition, "ConsumerProtocolAssignment", versions)
    names = {"topic": Pick(TOPICS)}
    return Seq(
        OneOf(tuple(body_node(each, from_layout(each, names)) for each in chosen)), *number_of("members", members)
    )


def join_group_stream(
    *, versions: int | Iterable[int] | None = None, members: Members = (2, 4), edition: str = "apache"
) -> Seq:
    """Bodies of JoinGroupRequest of one group, with members at several versions of the API and of the subscription."""
    kinds = layouts(edition, "ConsumerProtocolSubscription")
    subscriptions = OneOf(tuple(_embedded(each, subscription(each)) for each in kinds))
    same: dict[str, Node] = {
        "groupId": Pick(("g",)),
        "protocolType": Pick(("consumer",)),
        "protocols.name": Pick(PROTOCOLS),
        "protocols.metadata": subscriptions,
    }
    chosen = layouts(edition, "JoinGroupRequest", versions)
    return Seq(
        OneOf(tuple(body_node(each, from_layout(each, same)) for each in chosen)), *number_of("members", members)
    )


def api_versions_stream(
    *, versions: int | Iterable[int] | None = None, members: Members = (2, 4), releases: str | None = None
) -> Seq:
    """Bodies of ApiVersionsResponse of one cluster: each from a broker of some release, with that release's ranges.

    Only APIs declared here are announced. Errors: LookupError where no release in ``releases`` supports the versions.
    """
    wanted = {each.version for each in layouts(APACHE, "ApiVersionsResponse", versions)}
    brokers: dict[tuple[Announced, int], Record] = {}
    for release in _within(releases):
        announced, span = _announced(release), stable_versions("ApiVersionsResponse", release)
        for version in sorted(wanted):
            if span and version in span and (announced, version) not in brokers:
                layout = layout_of(APACHE, "ApiVersionsResponse", version)
                value = with_fields(from_layout(layout), apiKeys=_keys(announced, layout))
                brokers[announced, version] = body_node(layout, value)
    if not brokers:
        raise LookupError(f"no release in {releases or 'the table'} supports ApiVersions at {sorted(wanted)}")
    return Seq(OneOf(tuple(brokers.values())), *number_of("members", members))


def subscription(layout: Layout) -> Record:
    """ConsumerProtocolSubscription of a member: topics shared by the group, and user data of assignors."""
    sticky = embedded(layout.edition, ("StickyAssignorUserData", "CooperativeStickyAssignorUserData"))
    user_data = OneOf((Blob(0, 32), *sticky, *streams_subscriptions(layout.edition)))
    return from_layout(layout, {"topics": Pick(TOPICS), "topic": Pick(TOPICS), "userData": user_data})


def streams_subscriptions(edition: str) -> tuple[Embedded, ...]:
    """At every version a release has used, by a member that supports this version, a later one, or one to come.

    The last is a future member: it uses a version of which only the number can be read (KIP-268). Empty in an edition
    that does not declare the record, such as the definitions in a jar.
    """
    try:
        known = layouts(edition, "SubscriptionInfo")
    except LookupError:
        return ()
    last = known[-1].version
    supported = {each.version: Integer(each.version, last + 1, (each.version, last)) for each in known}
    supported[last + 1] = Integer(last + 1, last + 1)
    return tuple(
        _embedded(each, from_layout(each, {"latestSupportedVersion": supported[each.version]}))
        for each in (*known, layout_of(edition, "SubscriptionInfo", last + 1))
    )


def _embedded(layout: Layout, body: Node) -> Embedded:
    return Embedded(layout.edition, layout.message, layout.version, body)


def _within(limit: str | None) -> tuple[str, ...]:
    wanted = releases_of(limit or "all")
    return tuple(each for each in release_table()["releases"] if Release.parse(each) in wanted)


def _of(span: Versions) -> Integer:
    assert span.high is not None
    return Integer(span.low, span.high, (span.high,))


def _announced(release: str) -> Announced:
    found = []
    for name in release_table()["messages"]:
        span = stable_versions(name, release)
        key = None if name in NOT_OF_BROKERS else _key(name)
        if key is not None and span is not None and span.high is not None:
            found.append((key, span.low, span.high))
    return tuple(sorted(found))


@cache
def _key(name: str) -> int | None:
    try:
        return spec(APACHE, f"{name}Request").api_key
    except LookupError:  # a record
        return None


def _keys(announced: Announced, layout: Layout) -> Row:
    (slot,) = (slot for slot in layout.slots if slot.name == "apiKeys")
    assert slot.item is not None
    one = from_layout(slot.item)
    return Row(
        tuple(
            with_fields(one, apiKey=Pick((key,)), minVersion=Pick((low,)), maxVersion=Pick((high,)))
            for key, low, high in announced
        )
    )
