"""Reconstructs the state of a classic group from requests and responses, as far as clients can know it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.protocols.group.invariants import requests
from kipcheck.conformance.protocols.group.invariants.known import OWN_FAULTS
from kipcheck.conformance.protocols.group.invariants.requests import granted
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.answers import Config
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.service import By
from kipcheck.conformance.protocols.group.trace import Trace, TracedRequest, TracedStep, settings, trace


class Location(Enum):
    """Where the partition of the group is, as seen from the broker that gets the requests."""

    HERE = "here"
    GONE = "gone"
    LOADING = "loading"


class JoinResult(NamedTuple):
    """A successful response to JoinGroup: a generation, as one member got it."""

    exchange: TracedRequest
    answer: messages.Joined
    by: int
    """The step that brought the response."""

    @property
    def generation(self) -> int:
        return self.answer.generation


class SyncResult(NamedTuple):
    """A successful response to SyncGroup: an assignment, as one member got it."""

    exchange: TracedRequest
    request: messages.Sync
    answer: messages.Synced
    by: int


@dataclass(frozen=True)
class GroupTrace:
    trace: Trace
    rules: Rules
    edition: str
    settings: Config

    @cached_property
    def locations(self) -> Mapping[int, Location]:
        """The partition's location at the end of each step."""
        found, now = {}, Location.HERE
        for each in self.trace.steps:
            match each.event:
                case messages.Unload():
                    now = Location.GONE
                case messages.Load() if now is Location.GONE:
                    now = Location.LOADING
                case messages.Loaded() if now is Location.LOADING:
                    now = Location.HERE
            found[each.index] = now
        return found

    @cached_property
    def served_requests(self) -> tuple[TracedRequest, ...]:
        """The requests for this group that reached the broker while it had the group."""
        return tuple(
            each for each in self.trace.asked if self.locations[each.index] is Location.HERE and not each.nameless
        )

    @cached_property
    def join_results(self) -> tuple[JoinResult, ...]:
        """Every successful response to a JoinGroup, in the order of the responses."""
        found = [
            JoinResult(each, each.answer, each.by)
            for each in self.trace.asked
            if isinstance(each.answer, messages.Joined) and each.answer.error == Error.NONE and each.by is not None
        ]
        return tuple(sorted(found, key=lambda result: (result.by, result.exchange.index)))

    @cached_property
    def sync_results(self) -> tuple[SyncResult, ...]:
        """Every assignment that a member got, in the order of the responses."""
        found = [
            SyncResult(each, each.request, each.answer, each.by)
            for each in self.trace.asked
            if isinstance(each.request, messages.Sync)
            and isinstance(each.answer, messages.Synced)
            and each.answer.error == Error.NONE
            and each.by is not None
            and self.locations[each.by] is Location.HERE
        ]
        return tuple(sorted(found, key=lambda given: (given.by, given.exchange.index)))

    @cached_property
    def deletions(self) -> tuple[int, ...]:
        """The steps at which the group was deleted."""
        return tuple(
            each.by
            for each in self.trace.asked
            if isinstance(each.request, messages.Delete)
            and requests.error_of(each) == Error.NONE
            and each.by is not None
            and not each.nameless
        )

    def has_nameless(self, until: int) -> bool | None:
        """Has the group with the empty name offsets before that step? None: not known."""
        found: bool | None = False
        for each in self.trace.asked:
            if not each.nameless or each.index >= until:
                continue
            match each.request:
                case messages.Commit(offsets=offsets) if found is not True:
                    granted = requests.error_of(each) == Error.NONE
                    found = True if granted and offsets else found if requests.error_of(each) in OWN_FAULTS else None
                case messages.Delete() if requests.error_of(each) == Error.NONE:
                    found = False
        return found

    @cached_property
    def moves(self) -> tuple[int, ...]:
        """The steps at which the group moved away."""
        found, before = [], Location.HERE
        for each in self.trace.steps:
            if before is Location.HERE and self.locations[each.index] is Location.GONE:
                found.append(each.index)
            before = self.locations[each.index]
        return tuple(found)

    @cached_property
    def memory_losses(self) -> tuple[int, ...]:
        """The steps that lose what was only in memory: the group moved away, was deleted, or started again."""
        return tuple(sorted({*self.deletions, *self.moves, *self._restarts}))

    @property
    def _restarts(self) -> Iterator[int]:
        """0.10.0 removes a group without members: the next one has generation 1 again."""
        if not self.rules.keeps_empty_groups:
            for each in self.join_results:
                if each.generation == 1 and enters(each) and each.by > self.join_results[0].by:
                    yield each.by

    def incarnation(self, index: int) -> int:
        """The number of memory losses up to a step: steps with the same number share the group's state in memory."""
        return sum(each <= index for each in self.memory_losses)

    @cached_property
    def identities(self) -> Mapping[str, str]:
        """By member id: the instance of the static member that has or had it."""
        found: dict[str, str] = {}
        for each in self.trace.asked:
            let_in = each.parked or granted(each)
            if isinstance(each.request, messages.Join) and each.request.instance is not None and let_in:
                for id in _ids(each, each.request):
                    found.setdefault(id, f"instance {each.request.instance}")
        return found

    def identity(self, id: str) -> str:
        return self.identities.get(id, id)

    @cached_property
    def joins(self) -> Mapping[str, tuple[TracedRequest, ...]]:
        """By member id: the JoinGroups that were not refused."""
        found: dict[str, list[TracedRequest]] = {}
        for each in self.trace.asked:
            if isinstance(each.request, messages.Join) and (each.answer is None or each.answer.error == Error.NONE):
                for id in _ids(each, each.request):
                    found.setdefault(id, []).append(each)
        return {id: tuple(joins) for id, joins in found.items()}

    def joining(self, id: str, until: int) -> TracedRequest | None:
        """The newest JoinGroup of the member."""
        return next((each for each in reversed(self.joins.get(id, ())) if each.index <= until), None)

    def joined(self, id: str, until: int) -> messages.Join | None:
        """The member's last JoinGroup request."""
        found = self.joining(id, until)
        return found.request if found is not None and isinstance(found.request, messages.Join) else None

    def instances_as(self, id: str) -> set[str | None]:
        """The instance ids in the member's JoinGroups; a member that joins again may omit its own."""
        found = {each.request.instance for each in self.joins.get(id, ()) if isinstance(each.request, messages.Join)}
        return found - {None} or found

    def names_own_instance(self, exchange: TracedRequest) -> bool:
        """Does the request name no instance id other than the member's own?"""
        own = {self.identity(id) for id in requests.named(exchange)}
        return all(f"instance {each}" in own for each in requests.instances(exchange))

    def failed_to_join(self, id: str, until: int) -> bool:
        """Was a JoinGroup of this member or instance refused? The coordinator may have kept its contents anyway."""
        return any(
            isinstance(each.request, messages.Join)
            and each.index <= until
            and requests.error_of(each) not in (None, Error.NONE)
            and (each.request.member == id or f"instance {each.request.instance}" == self.identity(id))
            for each in self.trace.asked
        )

    def first_join_result(self, generation: int, incarnation: int) -> JoinResult | None:
        return next(
            (
                each
                for each in self.join_results
                if (each.generation, self.incarnation(each.by)) == (generation, incarnation)
            ),
            None,
        )

    def leader(self, generation: int, until: int) -> str | None:
        """The leader that the responses name; None if no response of the generation is known."""
        found = [each for each in self.join_results if each.generation == generation and each.by <= until]
        if not found or not (
            self.rules.keeps_empty_groups or self.incarnation(found[-1].by) == self.incarnation(until)
        ):
            return None  # 0.10.0 may have had several generations with this number, and the log another than memory
        leader = found[-1].answer.leader
        return None if self.was_removed(leader, found[-1].by, until) else leader

    def was_removed(self, id: str, since: int, until: int) -> bool:
        """Was the member removed because the group was full? The other members get no response about that."""
        return any(
            since < each.index <= until
            and id in requests.named(each)
            and requests.error_of(each) == Error.GROUP_MAX_SIZE_REACHED
            for each in self.served_requests
        )

    def emptying_steps(self, since: int, until: int) -> int:
        """The number of steps that may have removed the last member, which ends a join phase without a response."""
        return sum(
            requests.passes_time(each)
            or (isinstance(each.event, By) and isinstance(each.event.request, messages.Leave))
            for each in self.between(since - 1, until + 1)
        )

    def current(self, until: int) -> tuple[int, int | None]:
        """The newest generation before that step, and the step that shows it; 0 if there was none."""
        incarnation = self.incarnation(until)
        known = [each for each in self.join_results if each.by < until and self.incarnation(each.by) == incarnation]
        if known:
            newest = max(known, key=lambda each: each.generation)
            return newest.generation, newest.by
        return self.logged_generation(until)

    def logged_generation(self, until: int) -> tuple[int, int | None]:
        """The generation of the last assignment that was handed out, and the step at which it was."""
        since = max((each for each in self.deletions if each <= until), default=-1)
        found = [(each.request.generation, each.by) for each in self.sync_results if since < each.by < until]
        return found[-1] if found else (0, None)

    def started_again(self, before: SyncResult, now: SyncResult) -> bool:
        """Did the generation start again between the two, after a move or with a new group?"""
        if any(before.by < each <= now.by for each in (*self.deletions, *self._restarts)):
            return True
        return any(
            before.by < each.by <= now.by
            and each.generation == now.request.generation
            and self.incarnation(each.by) != self.incarnation(before.by)
            and (each.exchange.parked or enters(each))
            for each in self.join_results
        )

    def largest_wait_ms(self, until: int) -> int:
        """The upper bound for a join phase that began by then."""
        waits = (
            each.request.patience_ms
            for each in self.trace.asked
            if isinstance(each.request, messages.Join) and each.index <= until
        )
        return max(*waits, self.settings.initial_delay_ms, 0)

    def has_parked_request(self, id: str, until: int) -> bool:
        """Does the member have a parked request? Then it counts as alive."""
        return any(
            id in requests.named(each) and each.index < until and (each.by is None or each.by >= until)
            for each in self.served_requests
        )

    def longest_session_ms(self, id: str, until: int) -> int:
        """The upper bound for its session timeout: which JoinGroup sets it depends on the state of the group."""
        return max((each.session_ms for each in self.admitted_joins(id, until)), default=0)

    def shortest_wait_ms(self, id: str, until: int) -> int:
        """The earliest time after which the member may be removed: for silence, or because it did not join again."""
        return min((min(each.session_ms, each.patience_ms) for each in self.admitted_joins(id, until)), default=0)

    def shortest_session_ms(self, id: str, until: int) -> int:
        """The lower bound for its session timeout."""
        return min((each.session_ms for each in self.admitted_joins(id, until)), default=0)

    def dropped(self, parked: TracedRequest, until: int) -> bool:
        """Did the member leave, or was it removed, since its request?"""
        for each in self.served_requests:
            if not parked.index < each.index <= until:
                continue
            same = bool(requests.named(each) & requests.named(parked))
            if isinstance(each.request, messages.Leave) and granted(each):
                if same or requests.instances(each) & self.instances_of(parked):
                    return True
            elif same and requests.error_of(each) == Error.GROUP_MAX_SIZE_REACHED:
                return True
        return False

    def instances_of(self, exchange: TracedRequest) -> frozenset[str]:
        """The instance ids in the request, and those of the members in it."""
        persons = (self.identity(id) for id in requests.named(exchange))
        return requests.instances(exchange) | {
            each.removeprefix("instance ") for each in persons if each.startswith("instance ")
        }

    def was_assigned_before(self, generation: int, until: int) -> bool:
        """Was an assignment of that generation handed out?"""
        return any(each.request.generation == generation and each.by < until for each in self.sync_results)

    def last_grant(self, member: str, generation: int, until: int) -> TracedRequest | None:
        """The last heartbeat or SyncGroup before that step that the member was granted in that generation, after it
        got its assignment."""
        given = [
            each.by
            for each in self.sync_results
            if each.request.member == member and each.request.generation == generation
        ]
        for each in reversed(self.served_requests):
            if not given or each.index >= until or each.by is None or not min(given) <= each.by < until:
                continue
            request = each.request
            if not isinstance(request, messages.Heartbeat | messages.Sync) or requests.error_of(each) != Error.NONE:
                continue
            if (request.member, request.generation) == (member, generation):
                return each
        return None

    def admitted_joins(self, id: str, until: int) -> Iterator[messages.Join]:
        """The JoinGroups of this member or instance, under any id, that were parked or granted."""
        for each in self.served_requests:
            join = each.request
            if not isinstance(join, messages.Join) or each.index > until or not (each.parked or granted(each)):
                continue
            if id in _ids(each, join) or f"instance {join.instance}" == self.identity(id):
                yield join

    def joins_as(self, id: str, until: int) -> Iterator[messages.Join]:
        """The same of this member alone, without those of members that had its instance id before."""
        for each in self.served_requests:
            join = each.request
            taken = each.index <= until and (each.parked or granted(each))
            if isinstance(join, messages.Join) and taken and id in _ids(each, join):
                yield join

    def last_sign_of(self, id: str, until: int) -> int:
        """When the member's session last started again before that step; the latest possible time if it is not exact.

        A session starts again with a request that was not refused for its member id, instance or generation, and with
        the response; for all members, when a join phase ends, an assignment is handed out or the group was loaded.
        """
        signs = [0]
        for each in self.served_requests:
            if each.index < until and id in requests.named(each) and requests.error_of(each) not in requests.REFUSED:
                signs.append(each.at_ms)
                if each.by is not None and each.by < until and each.to_ms is not None:
                    signs.append(each.to_ms)
        signs += [each.exchange.to_ms or 0 for each in self.join_results if each.by < until]
        signs += [each.exchange.to_ms or 0 for each in self.sync_results if each.by < until]
        signs += [
            each.to_ms for each in self.trace.steps if each.index < until and isinstance(each.event, messages.Loaded)
        ]
        return max(signs)

    @property
    def end(self) -> TracedStep | None:
        return self.trace.steps[-1] if self.trace.steps else None

    def between(self, first: int, last: int) -> Iterator[TracedStep]:
        """The steps strictly between the two."""
        return (each for each in self.trace.steps if first < each.index < last)


@cached_on_history
def group_trace(history: History) -> GroupTrace:
    return GroupTrace(trace(history), _rules(history.case.edition), history.case.edition, settings(history))


def _rules(edition_name: str) -> Rules:
    """Errors: LookupError where the edition has no coordinator."""
    found = coordinator(edition(edition_name))
    if found is None:
        raise LookupError(f"edition {edition_name} has no model of a group coordinator")
    return found.rules


def _ids(exchange: TracedRequest, join: messages.Join) -> set[str]:
    """The member ids of the request and of the response."""
    answer = exchange.answer
    result = answer.member if isinstance(answer, messages.Joined) and answer.error == Error.NONE else ""
    return {id for id in (join.member, result) if id}


def enters(result: JoinResult) -> bool:
    """Did the JoinGroup come from a new dynamic member?"""
    join = result.exchange.request
    return isinstance(join, messages.Join) and not join.member and join.instance is None


def superseded_by(group: GroupTrace, parked: TracedRequest) -> TracedRequest | None:
    """The first later request of the same kind and member that is parked itself, or granted."""
    for each in group.served_requests:
        if (
            each.index > parked.index
            and type(each.request) is type(parked.request)
            and requests.named(each) & requests.named(parked)
            and (parked.by is None or each.index <= parked.by)
            and (each.parked or requests.error_of(each) == Error.NONE)
        ):
            return each
    return None
