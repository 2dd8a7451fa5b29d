"""Follows a trace of a classic group step by step, and collects what clients can know before each request.

Steps that may change the group without an answer (time, a failed write, a move) remove knowledge, later answers restore
it. After an answer that is not owed everything is unknown again: judging goes on in agreement with the observed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.protocols.group.invariants import view as group_view
from kipcheck.conformance.protocols.group.invariants.known import OWN_FAULTS, UNKNOWN, KnownGroup, Member
from kipcheck.conformance.protocols.group.invariants.requests import error_of, named
from kipcheck.conformance.protocols.group.invariants.required_errors import owed
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.service import By, Elapse, FailWrite
from kipcheck.conformance.protocols.group.trace import TracedRequest, TracedStep


class Observer:
    """Follows a trace step by step."""

    def __init__(self, group: group_view.GroupTrace) -> None:
        self.group = group
        self.now = KnownGroup()
        self.before: dict[int, KnownGroup] = {}
        """By step: the knowledge when it began."""
        self.requests = {each.index: each for each in group.trace.asked}
        self.doubted = -1
        """Requests that were parked before this step may never be answered."""
        self.index = -1
        self.superseding = {
            each.index: group_view.superseded_by(group, each)
            for each in group.served_requests
            if each.parked and isinstance(each.request, messages.Join | messages.Sync)
        }

    def follow(self) -> Mapping[int, KnownGroup]:
        for step in self.group.trace.steps:
            self.before[step.index] = before = self.now
            self.index = step.index
            self.step(step)
            if not self.agrees(step, before):
                self.forget()
            parked = [*self._open(step.index)]
            joining = tuple(each for each in parked if isinstance(each.request, messages.Join))
            self.now = replace(self.now, joining=joining)
            if joining and self.now.phase is not messages.Phase.PREPARING:
                self.now = replace(self.now, phase=messages.Phase.PREPARING, since_ms=step.to_ms)
            if any(isinstance(each.request, messages.Sync) for each in parked):
                self.now = replace(self.now, phase=messages.Phase.COMPLETING)
        return self.before

    def _open(self, index: int) -> Iterator[TracedRequest]:
        """Requests that are parked at the end of the step, except those that will have no answer of their own."""
        for number, newer in self.superseding.items():
            each = self.requests[number]
            if number > index or (each.by is not None and each.by <= index):
                continue
            moved = any(number <= move <= index for move in self.group.moves)
            if (
                number >= self.doubted
                and not moved
                and (newer is None or newer.index > index)
                and not self.group.dropped(each, index)
            ):
                yield each

    def agrees(self, step: TracedStep, before: KnownGroup) -> bool:
        """Is the answer to the step one that is owed?"""
        exchange = self.requests.get(step.index)
        if exchange is None:
            return True
        found = owed(exchange, before, self.group)
        return found is None or found.allows(error_of(exchange) if exchange.by == step.index else None)

    # Steps

    def step(self, step: TracedStep) -> None:
        if isinstance(step.event, FailWrite):
            self.now = replace(self.now, failing=True)
        if self.group.locations[step.index] is not group_view.Location.HERE:
            self.forget()
            return
        match step.event:
            case Elapse(ms) if ms > 0:
                self.answers_to_parked(step)
                self.age(step)
                self.after_writes()
            case By() if step.index in self.requests:
                exchange = self.requests[step.index]
                if not exchange.nameless:
                    self.request(exchange)
                self.answers_to_parked(step)
                if isinstance(exchange.request, messages.Join | messages.Leave | messages.Delete):
                    self.after_writes()
            case _:
                self.answers_to_parked(step)

    def forget(self) -> None:
        unsure = {**self.now.unsure, **self.now.reserved}
        self.doubted = self.index
        self.now = replace(UNKNOWN, failing=self.now.failing, unsure=unsure)

    def after_writes(self) -> None:
        """A write may have failed without an answer that shows it."""
        if self.now.failing:
            self.forget()

    def request(self, exchange: TracedRequest) -> None:
        error = error_of(exchange) if not exchange.parked else None
        if error is not None and error not in OWN_FAULTS and error is not Error.NONE:
            self.forget()
            self.now = replace(self.now, failing=False)  # the write that had to fail has failed
            return
        match exchange.request:
            case messages.Join() as join:
                self.join(exchange, join, error)
            case messages.Sync() if error is Error.REBALANCE_IN_PROGRESS and self.now.failing:
                self.forget()
            case messages.Sync() as sync if exchange.parked:
                self.touch(sync.member, exchange.at_ms, done=True)
                self.now = replace(self.now, phase=messages.Phase.COMPLETING, generation=sync.generation)
            case messages.Heartbeat() as beat if error is Error.NONE:
                self.touch(beat.member, exchange.at_ms)
            case messages.Leave():
                self.leave(exchange)
            case messages.Commit() as commit if error is Error.NONE:
                # Offsets that no member committed make a group in some releases, and none in others.
                self.now = replace(self.now, exists=True if commit.member else self.now.exists or None)
            case messages.Delete() if error is Error.NONE:
                self.now = KnownGroup(
                    gone=self.now.gone | {*self.now.members, *self.now.reserved}, failing=self.now.failing
                )
            case messages.Describe():
                self.described(exchange)

    def touch(self, id: str, at_ms: int, done: bool = False) -> None:
        """The session of the member starts again."""
        member = self.now.members.get(id, Member(self.instance_of(id), None, at_ms)) if id else None
        if member is not None:
            self.put(id, replace(member, since_ms=at_ms, done=member.done or done))

    def put(self, id: str, member: Member) -> None:
        members = {**self.now.members, id: member}
        reserved = {each: until for each, until in self.now.reserved.items() if each != id}
        unsure = {each: until for each, until in self.now.unsure.items() if each != id}
        self.now = replace(
            self.now, members=members, reserved=reserved, unsure=unsure, gone=self.now.gone - {id}, exists=True
        )

    def drop(self, ids: Iterable[str]) -> None:
        ids = frozenset(ids)
        members = {id: each for id, each in self.now.members.items() if id not in ids}
        reserved = {id: until for id, until in self.now.reserved.items() if id not in ids}
        self.now = replace(self.now, members=members, reserved=reserved, gone=self.now.gone | ids)

    # Joins

    def join(self, exchange: TracedRequest, join: messages.Join, error: Error | None) -> None:
        if exchange.parked:
            if join.instance is not None and not join.member:
                self.replace_holder(join.instance)
            if join.member:
                former = self.now.members.get(join.member)
                instance = join.instance if former is None else former.instance
                self.put(join.member, Member(instance, join, exchange.at_ms))
            self.now = replace(self.now, phase=messages.Phase.PREPARING, since_ms=exchange.at_ms, exists=True)
        elif error is Error.MEMBER_ID_REQUIRED and isinstance(exchange.answer, messages.Joined):
            until = exchange.at_ms + join.session_ms
            reserved = {**self.now.reserved, exchange.answer.member: until}
            self.now = replace(self.now, reserved=reserved, exists=True)
        elif error is Error.INCONSISTENT_GROUP_PROTOCOL and not self.now.exists:
            self.now = replace(self.now, exists=None)  # the group may have been created before the refusal
        elif error is Error.GROUP_MAX_SIZE_REACHED and join.member:
            self.refused_for_size(join.member)

    def refused_for_size(self, id: str) -> None:
        """A member may have been removed; an id may still be reserved."""
        now = self.now
        members = {each: member for each, member in now.members.items() if each != id}
        reserved = {each: until for each, until in now.reserved.items() if each != id}
        unsure = {**now.unsure, id: now.reserved[id]} if id in now.reserved else now.unsure
        phase = now.phase if id not in now.members else None
        complete = now.complete and id not in now.members
        self.now = replace(now, members=members, reserved=reserved, unsure=unsure, phase=phase, complete=complete)

    def instance_of(self, id: str) -> str | None:
        """The instance id with which the member joined."""
        found = self.group.identity(id)
        return found.removeprefix("instance ") if found != id else None

    def replace_holder(self, instance: str) -> None:
        """The ids of earlier members with this instance id are not valid any more."""
        self.drop(id for id, person in self.group.identities.items() if person == f"instance {instance}")

    def joined(self, results: list[group_view.JoinResult], step: TracedStep) -> None:
        """Members got a generation."""
        newest = {each.generation for each in results}
        ids = {each.answer.member for each in results}
        if len(newest) > 1 or "" in ids or self.left_in(step) & ids:
            self.forget()
            return
        first = results[0]
        fresh = first.exchange.parked or not self.was_formed(first)
        if fresh and not first.exchange.parked and self.was_given_before_a_move(first):
            self.forget()
            return
        now = self.now
        for each in results:
            join = each.exchange.request
            if isinstance(join, messages.Join) and join.instance is not None and not join.member:
                self.replace_holder(join.instance)
        if fresh:
            self.next_generation(results, now, step)
        for each in results:
            self.admit(each, step, fresh)
        if fresh and step.to_ms > step.from_ms:
            self.age(step)

    def left_in(self, step: TracedStep) -> frozenset[str]:
        """Members that left in this step: a LeaveGroup of several may end the join phase before the last one leaves."""
        return self.now.gone - self.before[step.index].gone

    def was_formed(self, result: group_view.JoinResult) -> bool:
        """Was the generation given before?"""
        first = self.group.first_join_result(result.generation, self.group.incarnation(result.by))
        return result.generation == self.now.generation or (first is not None and first.by < result.by)

    def was_given_before_a_move(self, result: group_view.JoinResult) -> bool:
        """Is it open whether the generation is the one of the log, or a new one with the same number?"""
        return self.now.generation is None and any(
            each.generation == result.generation and each.by < result.by for each in self.group.join_results
        )

    def next_generation(self, results: list[group_view.JoinResult], before: KnownGroup, step: TracedStep) -> None:
        first = results[0]
        listed = next((each.answer.members for each in results if each.answer.members), ())
        former = dict(before.members)
        kept = {
            id: replace(former[id], done=False) if id in former else Member(instance, None, 0)
            for id, instance, _ in listed
        }
        gone = before.gone | {id for id in former if listed and id not in kept}
        self.now = KnownGroup(
            phase=messages.Phase.COMPLETING,
            exists=True,
            generation=first.generation,
            since_ms=step.from_ms,
            protocol=first.answer.protocol,
            leader=first.answer.leader or None,
            members=kept,
            gone=gone,
            complete=bool(listed),
            reserved={id: until for id, until in before.reserved.items() if id not in kept},
            unsure=before.unsure,
            failing=before.failing,
        )

    def admit(self, result: group_view.JoinResult, step: TracedStep, fresh: bool) -> None:
        join = result.exchange.request
        assert isinstance(join, messages.Join)
        id = result.answer.member
        former = self.now.members.get(id)
        instance = join.instance if former is None or former.instance is None else former.instance
        done = former is not None and former.done and not fresh
        since_ms = step.from_ms
        if join.member == id and not fresh:  # no document says that such a JoinGroup extends the session
            since_ms = self.now.since_ms if former is None else former.since_ms
        self.put(id, Member(instance, join, since_ms, done))
        if not fresh:
            generation = result.generation
            self.now = replace(self.now, generation=generation, protocol=result.answer.protocol)

    # Other requests

    def leave(self, exchange: TracedRequest) -> None:
        if not isinstance(exchange.request, messages.Leave) or not isinstance(exchange.answer, messages.Left):
            return
        before = self.now
        results = exchange.answer.members or tuple(
            (id, instance, exchange.answer.error) for id, instance in exchange.request.members
        )
        unsure = len(results) != len(exchange.request.members)
        for id, instance, error in results:
            if error is not Error.NONE:
                continue
            held, holder = (False, None) if instance is None else self.now.holders(instance)
            leaves = holder if held else id
            if not leaves:
                if instance is not None:
                    self.replace_holder(instance)
                unsure = True
            elif leaves in self.now.members:
                self.drop([leaves])
            elif leaves in self.now.reserved:
                self.drop([leaves])  # no document says whether the members have to join again
                self.now = replace(
                    self.now, phase=None if self.now.phase is not messages.Phase.EMPTY else messages.Phase.EMPTY
                )
            else:
                self.drop([leaves])
                unsure = True
        if unsure:
            self.now = replace(self.now, phase=None, complete=False, exists=None)
        elif before.members.keys() != self.now.members.keys():
            self.after_removal(before)

    def after_removal(self, before: KnownGroup) -> None:
        """A member left: the others have to join again."""
        joining = [each for each in before.joining if not named(each) or named(each) & self.now.members.keys()]
        if self.now.members or joining or not self.now.complete:
            stable = before.phase in (messages.Phase.STABLE, messages.Phase.COMPLETING) and bool(self.now.members)
            phase = messages.Phase.PREPARING if stable else None
            self.now = replace(self.now, phase=phase)
            return
        settled = (
            before.phase in (messages.Phase.STABLE, messages.Phase.COMPLETING)
            and not before.reserved
            and not before.unsure
        )
        self.now = replace(
            self.now, phase=messages.Phase.EMPTY if settled else None, exists=None, generation=None, protocol=None
        )

    def described(self, exchange: TracedRequest) -> None:
        answer = exchange.answer
        if not isinstance(answer, messages.Described) or answer.error is not Error.NONE or self.now.phase is not None:
            return
        phase = next((each for each in messages.Phase if each.called == answer.state), None)
        if phase in (messages.Phase.EMPTY, messages.Phase.DEAD):
            gone = self.now.gone | {*self.now.members}
            self.now = replace(UNKNOWN, phase=messages.Phase.EMPTY, gone=gone, complete=True,
            reserved=self.now.reserved,
                               unsure=self.now.unsure, failing=self.now.failing)  # fmt: skip
        elif phase is not None:
            self.now = replace(self.now, phase=phase, since_ms=exchange.at_ms, exists=True)

    # Answers to parked requests, and time

    def answers_to_parked(self, step: TracedStep) -> None:
        answered = [each for each in self.group.served_requests if each.by == step.index]
        results = [each for each in self.group.join_results if each.by == step.index]
        for each in answered:
            error = error_of(each)
            if each.parked and error not in (None, Error.NONE):
                self.refused_later(each, error)
        if results:
            self.joined(results, step)
        synced = [each for each in answered if isinstance(each.request, messages.Sync) and error_of(each) is Error.NONE]
        for each in synced:
            assert isinstance(each.request, messages.Sync)
            self.synced(each, each.request, step)

    def synced(self, exchange: TracedRequest, sync: messages.Sync, step: TracedStep) -> None:
        if self.now.generation not in (None, sync.generation):
            self.forget()
            return
        if exchange.parked:
            self.touch(sync.member, step.from_ms, done=True)
        else:  # no document says that a repeated SyncGroup extends the session
            member = self.now.members.get(sync.member, Member(self.instance_of(sync.member), None, 0))
            self.put(sync.member, replace(member, done=True))
        self.now = replace(self.now, phase=messages.Phase.STABLE, generation=sync.generation)

    def refused_later(self, exchange: TracedRequest, error: Error | None) -> None:
        if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            self.drop(named(exchange))
        elif error is Error.REBALANCE_IN_PROGRESS and isinstance(exchange.request, messages.Sync):
            if self.now.phase is not messages.Phase.PREPARING:
                self.now = replace(self.now, phase=None)
        elif error is not Error.NOT_COORDINATOR:
            self.forget()
            self.now = replace(self.now, failing=False)

    def age(self, step: TracedStep) -> None:
        """Time passed: sessions and deadlines may have ended."""
        now, until = self.now, step.to_ms
        open_requests = [each for each in self._open(step.index)]
        waiting = {id for each in open_requests for id in named(each)}
        joining = any(isinstance(each.request, messages.Join) for each in open_requests)
        least = {id: self.group.shortest_wait_ms(id, step.index) for id in now.members}
        kept = {id: each for id, each in now.members.items() if id in waiting or until - each.since_ms < least[id]}
        if (
            now.phase is messages.Phase.STABLE
        ):  # who has not sent SyncGroup may be removed a rebalance timeout after its start
            in_time = {id for id in kept if until - now.since_ms < least[id]}
            kept = {id: each for id, each in kept.items() if each.done or id in waiting or id in in_time}
        sure = len(kept) == len(now.members) and now.complete
        if now.phase is messages.Phase.COMPLETING:
            sure = sure and all(until - now.since_ms < least[id] for id in now.members if id not in waiting)
            if not sure:
                kept = {id: each for id, each in kept.items() if id in waiting}
        if now.phase is None or (now.phase is messages.Phase.PREPARING and not joining):
            sure, kept = False, {id: each for id, each in kept.items() if id in waiting}
        phase = now.phase if sure or (joining and now.phase is messages.Phase.PREPARING) else None
        if now.phase is messages.Phase.EMPTY:
            phase, sure = messages.Phase.EMPTY, now.complete
        reserved = {id: end for id, end in now.reserved.items() if end > until}
        unsure = {id: end for id, end in now.unsure.items() if end >= until}
        spent = {id for id, end in now.reserved.items() if end < until}
        exists = True if kept or joining else None if now.exists else now.exists
        self.now = replace(
            now, phase=phase, members=kept, complete=sure, reserved=reserved, gone=now.gone | spent, exists=exists,
            unsure=unsure,
            generation=now.generation if sure else None, protocol=now.protocol if sure else None,
        )  # fmt: skip


@cached_on_history
def known_before(history: History) -> Mapping[int, KnownGroup]:
    """By the index of each step: what clients could know when it began."""
    return Observer(group_view.group_trace(history)).follow()


def longest_wait_ms(history: History, first: int, last: int) -> int:
    """The upper bound for a phase that lasts from one step to the other: the largest rebalance timeout of its members.

    Of the members that are known; if they are not all known, of all that ever joined.
    """
    group, known = group_view.group_trace(history), known_before(history)
    indexes = sorted(index for index in known if index <= last)
    while (
        first in indexes
        and known[first].phase in (messages.Phase.PREPARING, messages.Phase.COMPLETING, None)
        and first > indexes[0]
    ):
        first = indexes[indexes.index(first) - 1]  # members that left since it began count too
    during = [known[index] for index in indexes if index >= first]
    if not all(each.complete for each in during):
        return group.largest_wait_ms(last)
    waits = [group.settings.initial_delay_ms]
    for each in during:
        waits += [join.patience_ms for id in each.members for join in group.joins_as(id, last)]
        waits += [parked.request.patience_ms for parked in each.joining if isinstance(parked.request, messages.Join)]
    joins = [each.request for each in group.served_requests if first <= each.index <= last]
    return max([*waits, *(each.patience_ms for each in joins if isinstance(each, messages.Join))])
