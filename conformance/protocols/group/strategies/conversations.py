"""Draws conversations with the coordinator of a classic group, using its model.

Events that make progress are likely in the phase where they do: members join, sync what their leader assigns, time
advances to the next deadline. Between them come the usual faults: members fall silent, return with the same instance
id, are late, repeat requests; writes fail; the partition moves.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from random import Random
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.group.model.answers import DEFAULT
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.messages import Commit, Heartbeat, Join, Leave, Phase, Request, Sync
from kipcheck.conformance.protocols.group.model.names import OLD
from kipcheck.conformance.protocols.group.model.possible import possible_event
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE, Ranges
from kipcheck.conformance.protocols.group.model.service import Event, Served, Service
from kipcheck.conformance.protocols.group.model.state import Standing, State
from kipcheck.conformance.protocols.group.ops import OPERATIONS, usual_version
from kipcheck.conformance.protocols.group.strategies.episodes import (
    Episode,
    Focus,
    draw_episode,
    fitting_participants,
)
from kipcheck.conformance.protocols.group.strategies.events import (
    MOST,
    NAMES,
    PROTOCOL_VERSIONS,
    REBALANCES,
    TEXTS,
    TYPES,
    declared,
    distinct_versions,
)
from kipcheck.conformance.protocols.group.strategies.participants import (
    GroupView,
    Participants,
    draw_participants,
)
from kipcheck.conformance.protocols.group.strategies.steps import (
    broker_step,
    drawn_offsets,
    failed_write,
    stale,
    with_long_timeout,
)
from kipcheck.conformance.protocols.group.strategies.waits import expire, nearly_expire, outwait, stay_silent, wait
from kipcheck.strategies.events import Conversations, Swarm

INVALID_SESSIONS = (5_999, 1_800_001)
PROGRESS = frozenset({"join", "sync", "heartbeat", "elapse", "load", "loaded"})
TENDENCY: Final = 0.85
"""The share of the steps that lead to the situation of an episode, where some do."""
ANY: Final = {Phase.EMPTY: 0.5, Phase.PREPARING: 0.25, Phase.COMPLETING: 0.5, Phase.STABLE: 0.25, Phase.DEAD: 0.5}
"""By the phase: the share of the steps with any request, where these come at any moment. Groups are seldom empty."""
Move: TypeAlias = tuple[int, str, Callable[[Random], Step]]
"""Weight, verb, and the step."""


class Likely:
    """Steps that a group of some release is likely to get next."""

    def __init__(self, versions: Ranges, draft: bool) -> None:
        self._versions = versions
        self._draft = draft

    def __call__(self, served: Served[State], swarm: Swarm, random: Random) -> Step | None:
        episode, participants = swarm.traits
        scene = GroupView(served, participants)
        at_any_moment = episode is Episode.EXTREMES and scene.group.standing is Standing.OURS
        if at_any_moment and random.random() < ANY[scene.group.phase]:
            return self._of_anyone(scene, random.choice([*filter(self._has, OPERATIONS.requests)]))(random)
        near = self._of_episode(scene, episode) if random.random() < TENDENCY else ()
        moves = [each for each in near if self._has(each[1])]
        moves = moves or [each for each in self._moves(scene) if each[1] in swarm.verbs]
        if not moves:
            return None
        forming = scene.group.standing is Standing.OURS and scene.group.phase not in (Phase.COMPLETING, Phase.STABLE)
        profile = {} if forming else scene.participants.profile
        (chosen,) = random.choices(moves, [weight * profile.get(verb, 1) for weight, verb, _ in moves])
        return chosen[2](random)

    def _has(self, verb: str) -> bool:
        """Whether the edition has the request, if it is one."""
        return verb not in OPERATIONS.requests or bool(self._versions[OPERATIONS.requests[verb].made])

    def _moves(self, scene: GroupView) -> Iterator[Move]:
        group = scene.group
        match group.standing:
            case Standing.AWAY:
                yield 20, "load", partial(broker_step, "load")
                yield from self._of_non_members(scene, scene.participants.clients, 3)
            case Standing.LOADING:
                yield 20, "loaded", partial(broker_step, "loaded")
                yield from self._of_non_members(scene, scene.participants.clients, 3)
            case _:
                waiting = any(each.join is not None or each.sync is not None for each in group.members)
                yield 6 if waiting else 2, "unload", partial(broker_step, "unload")
        calm = group.phase in (Phase.DEAD, Phase.EMPTY)
        if scene.newcomers:
            weight = {Phase.PREPARING: 20, Phase.COMPLETING: 3, Phase.STABLE: 6}.get(group.phase, 30)
            yield weight, "join", partial(self._join_anew, scene, scene.newcomers)
        if scene.expected:
            yield 25, "join", partial(self._join_with_id, scene)
        if scene.members:
            yield from self._of_members(scene)
        static_clients = [each for each in scene.participants.clients if self._is_static_member(scene, each)]
        if static_clients and self._versions[Join].stop > INSTANCE_SINCE[Join]:
            yield 5, "join", partial(self._join_anew, scene, static_clients)
        if scene.served.clock.timers:
            late = scene.participants.sessions_outlast_rebalances and group.phase in (Phase.PREPARING, Phase.COMPLETING)
            soon = 30 if late else 15 if group.initial else 6
            yield soon, "elapse", partial(wait, scene)
        yield 2, "commit", partial(self._commit_from_outside, scene)
        for verb, weight in (("fetch", 2), ("describe-group", 4), ("list-groups", 1)):
            yield weight, verb, partial(self._look, scene, verb)
        yield 5 if calm else 1, "delete-group", partial(self._look, scene, "delete-group")
        yield 6 if group.phase is Phase.COMPLETING else 1, "fail-write", failed_write
        if scene.participants.appends_fail:
            yield from self._of_failed_appends(scene, calm)

    def _of_failed_appends(self, scene: GroupView, calm: bool) -> Iterator[Move]:
        """A commit, an append that replaces or removes it and fails, and a look at all offsets or groups."""
        again = partial(self._commit_again, scene, calm)
        if not scene.group.offsets:
            yield 30, "commit", again
        elif scene.served.failing is None:
            yield 20, "fail-write", failed_write
            yield 20, "fetch", partial(self._look, scene, "fetch")
            yield 5, "list-groups", partial(self._look, scene, "list-groups")
        else:
            yield 60, "commit", again
            yield 10 if calm else 0, "delete-group", partial(self._look, scene, "delete-group")

    def _of_episode(self, scene: GroupView, episode: Episode | None) -> Iterator[Move]:
        """The moves that lead to the situation; none where it is not near."""
        group = scene.group
        if group.standing is not Standing.OURS:
            if episode is Episode.MOVE:
                verb = "load" if group.standing is Standing.AWAY else "loaded"
                yield 1, verb, partial(broker_step, verb)
            return
        if episode is not None and group.phase is Phase.PREPARING and group.initial:
            yield from self._of_growth(scene, self._grows(scene, episode))
            return
        if episode is Episode.EXTREMES and scene.removed:
            yield 2, "heartbeat", partial(self._beat, scene, scene.removed)  # so a client learns of it
        match episode:
            case Episode.MOVE | Episode.SESSION | Episode.REFUSAL if group.phase is Phase.STABLE and scene.members:
                yield from self._of_stable_group(scene, episode)
            case Episode.UNUSED if group.phase in (Phase.DEAD, Phase.EMPTY):
                yield from self._of_unused_id(scene)
            case Episode.UNUSED if scene.members:
                yield from self._of_rejoins_beside_unused_id(scene)
            case Episode.ABSENCE if group.phase is Phase.PREPARING:
                yield from self._of_growth(scene, grows=not scene.members)
            case (
                Episode.ABSENCE | Episode.MOVE | Episode.END | Episode.SESSION | Episode.REFUSAL | Episode.EXTREMES
            ) if group.phase is Phase.COMPLETING and scene.members:
                leading = [client for client, each in scene.members.items() if each.id == group.leader]
                yield 1, "sync", partial(self._sync, scene, leading or [*scene.members])
            case Episode.ABSENCE | Episode.EXTREMES if group.phase is Phase.STABLE and scene.newcomers:
                yield 1, "join", partial(self._join_anew, scene, scene.newcomers)
            case Episode.EXTREMES if group.phase is Phase.PREPARING and (late := _late(scene)):
                yield 1, "heartbeat", partial(self._beat, scene, late)  # so a client learns that it has to join again
                yield 1, "join", partial(self._rejoin, scene, late, 0.2)
            case Episode.END:
                yield from self._of_end(scene)
            case Episode.RETURN:
                yield from self._of_return(scene)
            case Episode.DEPARTURE if group.phase is Phase.COMPLETING and len(scene.members) > 1:
                parked = [client for client, each in scene.members.items() if each.sync is not None]
                followers = [client for client, each in scene.members.items() if each.id != group.leader]
                if parked:
                    yield 1, "leave", partial(self._leave, scene, parked)
                elif followers:
                    yield 1, "sync", partial(self._sync, scene, followers)
            case Episode.SILENCE if group.phase is Phase.COMPLETING and len(scene.members) > 1:
                followers = [client for client, each in scene.members.items() if each.id != group.leader]
                if any(each.sync is not None for each in group.members):
                    yield 1, "elapse", partial(expire, scene)
                elif followers:
                    yield 1, "sync", partial(self._sync, scene, followers)
            case Episode.PREFERENCE if group.phase in (Phase.COMPLETING, Phase.STABLE) and scene.members:
                unsynced = [client for client, each in scene.members.items() if each.sync is None]
                if unsynced and group.phase is Phase.COMPLETING:
                    yield 2, "sync", partial(self._sync, scene, unsynced)
                yield 1, "join", partial(self._rejoin, scene, [*scene.members], 0.8)
            case Episode.SUCCESSION if group.phase is Phase.STABLE:
                others = [each for each in scene.participants.clients if each not in scene.members]
                if former := [each for each in others if self._is_static_member(scene, each)]:
                    yield 2, "join", partial(self._join_anew, scene, former)
                    yield from self._of_non_members(scene, former, 1)
                    yield 2, "leave", partial(self._leave, scene, former)

    def _grows(self, scene: GroupView, episode: Episode) -> bool:
        """Whether another member joins the initial rebalance."""
        match episode:
            case Episode.GROWTH:
                return not scene.group.grown
            case Episode.SILENCE | Episode.PREFERENCE | Episode.DEPARTURE:
                return len(scene.group.members) < 2
            case Episode.ABSENCE | Episode.EXTREMES:
                return not scene.members
            case _:
                return False

    def _of_end(self, scene: GroupView) -> Iterator[Move]:
        """A member commits, all leave, and the group is deleted."""
        group, clients = scene.group, scene.participants.clients
        match group.phase:
            case Phase.STABLE if scene.members:
                moves = self._leave if group.offsets else self._commit
                yield 1, "leave" if group.offsets else "commit", partial(moves, scene, [*scene.members])
            case Phase.EMPTY if group.offsets:
                yield 2, "delete-group", partial(self._look, scene, "delete-group")
                yield 1, "heartbeat", partial(self._beat, scene, clients)
            case Phase.DEAD:
                yield 1, "fetch", partial(self._look, scene, "fetch")
                yield 1, "join", partial(self._join_anew, scene, clients)

    def _of_return(self, scene: GroupView) -> Iterator[Move]:
        """The first client, a static member, restarts with a shorter rebalance timeout, and others wait for it."""
        first, *others = scene.participants.clients
        starts = partial(self._join_anew, scene, [first])
        has_returned = len(scene.served.names.of(first).ids) > 1
        match scene.group.phase:
            case _ if scene.expected:
                yield 1, "join", partial(self._join_with_id, scene)
            case Phase.DEAD | Phase.EMPTY:
                yield 1, "join", partial(with_long_timeout, starts)
            case Phase.COMPLETING if first in scene.members:
                yield 1, "sync", partial(self._sync, scene, [first])
            case Phase.STABLE if first in scene.members:
                yield 1, "join", partial(self._join_anew, scene, others) if has_returned else starts
            case Phase.PREPARING:
                yield 1, "elapse", partial(outwait, scene)

    def _of_stable_group(self, scene: GroupView, episode: Episode) -> Iterator[Move]:
        members, describe = [*scene.members], partial(self._look, scene, "describe-group")
        match episode:
            case Episode.MOVE:
                yield 4, "describe-group", describe
                yield 4, "unload", partial(broker_step, "unload")
                yield 1, "heartbeat", partial(self._beat, scene, members)
                yield 3, "join", partial(self._rejoin, scene, members, 1.0)
                if scene.group.offsets:
                    yield 2, "fetch", partial(self._look, scene, "fetch")
                else:
                    yield 2, "commit", partial(self._commit, scene, members)
            case Episode.SESSION:
                silent, left_ms, session_ms = scene.most_silent
                if 2 * left_ms > session_ms:
                    yield 1, "elapse", partial(stay_silent, left_ms)
                else:
                    yield 1, "heartbeat", partial(self._beat, scene, [silent])
            case Episode.REFUSAL:
                yield 5, "describe-group", describe
                yield 4, "join", partial(self._refused_join, scene)
                for verb, made in (("sync", self._sync), ("heartbeat", self._beat), ("commit", self._commit)):
                    yield 1, verb, partial(stale, partial(made, scene, members))

    def _refused_join(self, scene: GroupView, random: Random) -> Step:
        """A JoinGroup of a member or another client that the coordinator refuses, or a newer one would."""
        client = random.choice(scene.participants.clients)
        made = self._rejoin(scene, [client], 0.0, random)
        flaws: tuple[dict[str, Any], ...] = (
            {"protocols": [[NAMES[-1], TEXTS[0]]]}, {"protocols": []}, {"protocol_type": TYPES[1]}, {"member": "?"},
            {"session_ms": random.choice(INVALID_SESSIONS)},
        )  # fmt: skip
        return Step(made.actor, made.verb, {**made.body, **random.choice(flaws)})

    def _of_unused_id(self, scene: GroupView) -> Iterator[Move]:
        """The first client gets a member id, time passes, and another one joins just before the id expires."""
        first, *others = scene.participants.clients
        clock = scene.served.clock
        if first not in scene.expected:
            yield 1, "join", partial(self._join_anew, scene, [first])
        elif clock.timers and clock.timers[0][0] - clock.now_ms > DEFAULT.initial_delay_ms:
            yield 1, "elapse", partial(nearly_expire, scene)
        elif others:
            yield 1, "join", partial(self._join_anew, scene, others)

    def _of_rejoins_beside_unused_id(self, scene: GroupView) -> Iterator[Move]:
        """The first client gets a member id, all members join again, and wait for it until it expires."""
        first = scene.participants.clients[0]
        late = [client for client, each in scene.members.items() if each.join is None and client != first]
        if first not in scene.expected:
            yield 1, "join", partial(self._join_anew, scene, [first])
        elif late:
            yield 1, "join", partial(self._rejoin, scene, late, 0.9)
        elif scene.served.clock.timers:
            yield 1, "elapse", partial(expire, scene)

    def _of_growth(self, scene: GroupView, grows: bool) -> Iterator[Move]:
        """Another member joins, or the initial rebalance goes on."""
        if grows and scene.expected:
            yield 1, "join", partial(self._join_with_id, scene)
        elif grows and scene.newcomers:
            yield 1, "join", partial(self._join_anew, scene, scene.newcomers)
        elif scene.served.clock.timers:
            yield 1, "elapse", partial(expire, scene)

    def _of_members(self, scene: GroupView) -> Iterator[Move]:
        group, members = scene.group, scene.members
        late = _late(scene)
        asked = [client for client, each in members.items() if each.join is not None]
        unsynced = [client for client, each in members.items() if each.sync is None]
        all_clients = [*members]
        match group.phase:
            case Phase.PREPARING:
                if late:
                    yield 25, "join", partial(self._rejoin, scene, late, 0.2)
                if asked:
                    yield 3, "join", partial(self._rejoin, scene, asked, 0.2)
                yield 2, "sync", partial(self._sync, scene, all_clients)
            case Phase.COMPLETING:
                if unsynced:
                    yield 80, "sync", partial(self._sync, scene, unsynced)
                yield 3, "sync", partial(self._sync, scene, all_clients)
                yield 4, "join", partial(self._rejoin, scene, all_clients, 0.3)
            case Phase.STABLE:
                yield 6, "sync", partial(self._sync, scene, all_clients)
                yield 10, "join", partial(self._rejoin, scene, all_clients, 0.5)
        yield 6, "heartbeat", partial(self._beat, scene, all_clients)
        yield 6, "commit", partial(self._commit, scene, all_clients)
        yield 4, "leave", partial(self._leave, scene, all_clients)
        non_members = [each for each in scene.participants.clients if each not in members]
        if non_members:  # clients whose members were removed or replaced
            fenced = [each for each in non_members if self._is_static_member(scene, each)]
            yield from self._of_non_members(scene, fenced or non_members, 3 if fenced else 1)

    def _of_non_members(self, scene: GroupView, clients: Sequence[str], weight: int) -> Iterator[Move]:
        yield weight, "heartbeat", partial(self._beat, scene, clients)
        yield weight, "sync", partial(self._sync, scene, clients)
        yield weight, "commit", partial(self._commit, scene, clients)
        yield weight, "leave", partial(self._leave, scene, clients)
        yield weight, "join", partial(self._rejoin, scene, clients, 0.2)

    def _of_anyone(self, scene: GroupView, verb: str) -> Callable[[Random], Step]:
        """A request of a member, or a JoinGroup of a client that is none; without members, a request of any client."""
        clients = [*scene.members] or scene.participants.clients
        match verb:
            case "join" if scene.newcomers:
                return partial(self._join_anew, scene, scene.newcomers)
            case "join":
                return partial(self._rejoin, scene, clients, 0.2)
            case "sync":
                return partial(self._sync, scene, clients)
            case "heartbeat":
                return partial(self._beat, scene, clients)
            case "leave":
                return partial(self._leave, scene, clients)
            case "commit":
                return partial(self._commit, scene, clients)
            case _:
                return partial(self._look, scene, verb)

    def _is_static_member(self, scene: GroupView, client: str) -> bool:
        """Whether its instance id belongs to a member."""
        instance = scene.participants.instances[client]
        return instance is not None and scene.group.static(instance) is not None

    # Steps

    def _join_anew(self, scene: GroupView, clients: Sequence[str], random: Random) -> Step:
        client = random.choice(clients)
        instance = scene.participants.instances[client]
        version = self._join_version(scene, client, instance)
        names = scene.names(random)
        metadata = TEXTS[0] if random.random() < 0.7 else random.choice(TEXTS)
        protocols = [[name, metadata] for name in names]
        return self._join(scene, client, "", version, instance, protocols, random)

    def _join_with_id(self, scene: GroupView, random: Random) -> Step:
        client = random.choice(scene.expected)
        version = self._join_version(scene, client, None)
        names = scene.names(random)
        return self._join(scene, client, client, version, None, [[name, TEXTS[0]] for name in names], random)

    def _rejoin(self, scene: GroupView, clients: Sequence[str], changed: float, random: Random) -> Step:
        """The same join, or one with other metadata, or with another preference."""
        client = random.choice(clients)
        member = scene.members.get(client)
        reference = scene.references.get(member.id, client) if member else client
        instance = member.instance if member else scene.participants.instances[client]
        protocols = [list(each) for each in member.protocols] if member else [["p", TEXTS[0]]]
        if random.random() < changed:
            if len(protocols) > 1 and random.random() < 0.5:
                protocols.reverse()
            else:
                protocols = [[name, random.choice(TEXTS)] for name, _ in protocols]
        version = self._join_version(scene, client, instance)
        return self._join(scene, client, reference, version, instance, protocols, random)

    def _join(
        self,
        scene: GroupView,
        client: str,
        member: str,
        version: int,
        instance: str | None,
        protocols: list[list[Any]],
        random: Random,
    ) -> Step:
        body: dict[str, Any] = {
            "version": version,
            "member": member,
            "instance": instance if version >= INSTANCE_SINCE[Join] and not self._draft else None,
            "protocol_type": "consumer",
            "protocols": protocols,
            "session_ms": scene.participants.sessions[client]
            if random.random() < 0.97
            else random.choice(INVALID_SESSIONS),
            "rebalance_ms": scene.participants.rebalance_ms
            if scene.participants.uniform or random.random() < 0.8
            else random.choice(REBALANCES),
        }
        if self._draft and version == self._versions[Join].stop - 1:
            body["protocol_version"] = random.choice(PROTOCOL_VERSIONS)
        return Step(client, "join", body)

    def _sync(self, scene: GroupView, clients: Sequence[str], random: Random) -> Step:
        client, body = self._member_request(scene, "sync", Sync, clients, random)
        member = scene.members.get(client)
        leads = member is not None and member.id == scene.group.leader
        given: list[list[str]] = []
        if leads if random.random() < 0.95 else not leads:
            given = [[each, random.choice(TEXTS)] for each in scene.references.values() if random.random() < 0.95]
            given = [each for each in given if each[0] in scene.participants.clients]
        kind = name = None
        if body["version"] >= 5 and random.random() < 0.95:
            kind, name = scene.group.protocol_type or "consumer", scene.group.protocol or "p"
            if random.random() < 0.15:
                kind, name = random.choice(((kind, random.choice(NAMES)), (random.choice(TYPES), name)))
        return Step(client, "sync", {**body, "assignments": given, "protocol_type": kind, "protocol": name})

    def _beat(self, scene: GroupView, clients: Sequence[str], random: Random) -> Step:
        client, body = self._member_request(scene, "heartbeat", Heartbeat, clients, random)
        return Step(client, "heartbeat", body)

    def _commit(self, scene: GroupView, clients: Sequence[str], random: Random) -> Step:
        client, body = self._member_request(scene, "commit", Commit, clients, random)
        return Step(client, "commit", {**body, "offsets": drawn_offsets(random)})

    def _commit_again(self, scene: GroupView, calm: bool, random: Random) -> Step:
        """A commit of a partition that has an offset, or of any."""
        clients = [*scene.members] or scene.participants.clients
        made = self._commit_from_outside(scene, random) if calm else self._commit(scene, clients, random)
        if not scene.group.offsets:
            return made
        topic, partition, *_ = random.choice(scene.group.offsets)
        return Step(made.actor, made.verb, {**made.body, "offsets": [[topic, partition, random.randint(0, MOST)]]})

    def _commit_from_outside(self, scene: GroupView, random: Random) -> Step:
        version = self._version(scene, Commit, random)
        body = {"version": version, "member": "", "instance": None, "behind": None, "offsets": drawn_offsets(random)}
        return Step(random.choice(scene.participants.clients), "commit", body)

    def _member_request(
        self, scene: GroupView, verb: str, request: type[Request], clients: Sequence[str], random: Random
    ) -> tuple[str, dict[str, Any]]:
        """The client, and the fields that such requests have in common."""
        client = random.choice(clients)
        member = scene.members.get(client)
        reference = scene.references.get(member.id, client) if member else client
        instance = member.instance if member else scene.participants.instances[client]
        version = self._version(scene, request, random)
        if random.random() < 0.04:
            reference = random.choice(("?", f"{client}{OLD}", *scene.participants.clients))
        if version < INSTANCE_SINCE[request] or random.random() < 0.15:
            instance = None
        behind = 0 if random.random() < 0.88 else random.choice((1, -1))
        return client, {"version": version, "member": reference, "instance": instance, "behind": behind}

    def _leave(self, scene: GroupView, clients: Sequence[str], random: Random) -> Step:
        client = random.choice(clients)
        version = self._version(scene, Leave, random)
        if version < INSTANCE_SINCE[Leave]:
            return Step(client, "leave", {"version": version, "members": [[client, None]]})
        some = [client] if random.random() < 0.6 else random.sample(clients, random.randint(1, min(3, len(clients))))
        members: list[list[str | None]] = []
        for each in some:
            instance = scene.participants.instances[each] if random.random() < 0.8 else None
            by_instance = instance is not None and random.random() < 0.5
            members.append(["" if by_instance else each, instance])
        return Step(client, "leave", {"version": version, "members": members})

    def _look(self, scene: GroupView, verb: str, random: Random) -> Step:
        version = self._version(scene, OPERATIONS.requests[verb].made, random)
        return Step(random.choice(scene.participants.clients), verb, {"version": version})

    def _version(self, scene: GroupView, request: type[Request], random: Random) -> int:
        span, participants = self._versions[request], scene.participants
        if participants.lowest is not None:
            return span[0] if random.random() < participants.lowest else span[-1]
        return random.choice(span) if participants.mixed else min(_USUAL[request], span[-1])

    def _join_version(self, scene: GroupView, client: str, instance: str | None) -> int:
        span = self._versions[Join]
        if instance is not None and not self._draft:
            span = range(INSTANCE_SINCE[Join], span.stop) or span
        return span[int(scene.participants.versions[client] * len(span))]


_USUAL: Final[Mapping[type[Request], int]] = {
    each.made: usual_version(each.verb) for each in OPERATIONS.requests.values()
}


def _late(scene: GroupView) -> list[str]:
    """Clients whose members have not joined again."""
    return [client for client, each in scene.members.items() if each.join is None]


def _draw_traits(focus: Focus, random: Random) -> tuple[Episode | None, Participants]:
    episode = draw_episode(random, focus)
    return episode, fitting_participants(episode, draw_participants(random), random)


@cache
def group_conversations(edition_name: str, focus: Focus = ()) -> Conversations[Served[State], Event]:
    """With the coordinator of an edition. Errors: LookupError where it has none."""
    found = coordinator(edition(edition_name))
    if found is None:
        raise LookupError(f"edition {edition_name} has no coordinator of classic groups")
    draft = isinstance(found, DraftCoordinator)
    versions = found.rules.versions
    return Conversations(
        Service(found),
        OPERATIONS.step_of,
        OPERATIONS.event_of,
        declared(versions, draft),
        PROGRESS,
        max_steps=40,
        usual_steps=10,
        likely=Likely(distinct_versions(versions), draft),
        traits=partial(_draw_traits, focus),
        possible=lambda served, event: possible_event(served.group.standing, event),
        enabled_shares=(0.98, 0.95, 0.8),
        near_shares=(0.0, 0.1, 0.3),
    )
