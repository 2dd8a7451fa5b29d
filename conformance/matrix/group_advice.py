"""What a running group can be upgraded to, and what that takes: advice of ``kipcheck inspect``."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from kipcheck.conformance.live.inspect.group import ConsumerGroup, Group, StreamsGroup, streams_subscription
from kipcheck.conformance.live.inspect.inspection import Inspected
from kipcheck.conformance.live.inspect.report import newest_of, release_span
from kipcheck.conformance.matrix.advice import Route, routes
from kipcheck.conformance.matrix.release_lines import line_of
from kipcheck.conformance.matrix.scenario_names import BOUNCE, OFFLINE, TWO_BOUNCE
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, RANGE, ROUNDROBIN, STICKY
from kipcheck.conformance.protocols.streams.model.members import STREAM, SubscriptionInfo
from kipcheck.conformance.wire.embedded import Subscription

EAGER = (RANGE, ROUNDROBIN, STICKY)


def advice(inspected: Inspected) -> Iterator[str]:
    group = inspected.group
    if isinstance(group, ConsumerGroup | StreamsGroup):
        classic = [member.id for member in group.members if member.is_classic]
        protocol = "consumer (KIP-848)" if isinstance(group, ConsumerGroup) else "streams (KIP-1071)"
        if classic:
            yield f"to be finished: {', '.join(classic)} still use the classic protocol; restart them with " \
                  f"group.protocol={protocol}"  # fmt: skip
        return
    if not isinstance(group, Group) or inspected.judged.unjudged or not group.members:
        return
    if group.protocol == STREAM:
        yield from _of_streams(group)
        return
    if group.protocol in EAGER:
        yield from _to_cooperative(group)
    if group.protocol == COOPERATIVE:
        yield "to cooperative rebalances: done"
    if group.has_consumer_groups:
        yield (
            "to a group of KIP-848: restart the members one by one with group.protocol=consumer. The broker turns the "
            "group into one when the first has joined, unless group.consumer.migration.policy forbids it"
        )
    else:
        yield "to a group of KIP-848: its coordinator does not serve them; brokers do from 4.0 on"


def _to_cooperative(group: Group) -> Iterator[str]:
    old = [
        member.id
        for member in group.members
        if isinstance(member.subscription, Subscription) and not member.subscription.version
    ]
    if old:
        yield (
            f"to cooperative rebalances: {', '.join(old)} sent a subscription of version 0, which does not name what a "
            "member owns. Make sure first that the client has cooperative rebalances, as Java's from 2.4 on"
        )
    yield (
        f"to cooperative rebalances: two rolling bounces. First add {COOPERATIVE} to the assignors of each member, "
        f"beside {group.protocol}; when all have it, remove {group.protocol} (KIP-429)"
    )


def _of_streams(group: Group) -> Iterator[str]:
    subscriptions = [streams_subscription(group, member) for member in group.members]
    infos = [info for info in subscriptions if isinstance(info, SubscriptionInfo)]
    newest = {newest_of(info) for info in infos}
    common = min(newest)
    behind = [info for info in infos if info.used < common]
    if len(newest) > 1:
        spans = "; ".join(f"{version} of {release_span(version)}" for version in sorted(newest))
        yield f"an upgrade is under way: the members' latest metadata versions are {spans}. Finish it first"
    elif behind:
        yield f"{len(behind)} of {len(infos)} members use a metadata version below {common}, which all support: " \
              "finish the upgrade by a rolling bounce without upgrade.from (KIP-268)"  # fmt: skip
    ways = [*routes(common)]
    if not ways:
        yield f"the matrix has no release with metadata version {common} as its latest ({release_span(common)}): " \
              "kipcheck matrix --from RELEASE --to RELEASE --scenario bounce"  # fmt: skip
    for old, by_release in groupby(ways, lambda route: route.old):
        for _, alike in groupby(by_release, lambda route: (route.way, route.broken, route.fragile)):
            yield f"from {old.name}: {_way([*alike])}"
    if ways:
        yield "these ways are predictions: kipcheck matrix --from RELEASE --to RELEASE runs them"


def _way(ways: Sequence[Route]) -> str:
    way, broken, fragile = ways[0].way, ways[0].broken, ways[0].fragile
    old, to = ways[0].old, ", ".join(route.new.name for route in ways)
    text = {
        BOUNCE: f"one rolling bounce to {to}",
        TWO_BOUNCE: f"two rolling bounces to {to}, the first with upgrade.from={line_of(old.patch)}",
        OFFLINE: f"stop all members, then start all as {to}",
        None: f"no way to {to} works",
    }[way]
    worse = [f"{', '.join(broken)}: broken"] if broken else []
    worse += [f"{', '.join(fragile)}: broken if a member fails"] if fragile else []
    return text + (f" ({'; '.join(worse)})" if worse and way else "")
