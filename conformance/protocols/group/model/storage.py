"""The records of a classic group: results of appends, and loading by the next coordinator."""

from collections.abc import Iterable
from typing import assert_never

from kipcheck.conformance.protocols.group.model import messages, state as group_state
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rounds import Out
from kipcheck.conformance.protocols.group.model.static import StaticMembers


class Storage(StaticMembers):
    def founded(self, state: group_state.State, out: Out) -> group_state.State:
        """Creates the group. Java appends a first record."""
        state = self.without_all_pending(state, out)._replace(phase=messages.Phase.EMPTY)
        return self.append(state, group_state.Founding(self.group_record(state)), out) if self.rules.java else state

    # Results of appends

    def written(self, state: group_state.State, out: Out) -> group_state.State:
        if state.unnamed is not None and state.unnamed.writes:
            return state._replace(unnamed=self.written(state.unnamed, out))
        write, *rest = state.writes
        state = state._replace(writes=tuple(rest), log=state.log.with_(write.record))
        return self.kept(state, write, out)

    def kept(self, state: group_state.State, write: group_state.Write, out: Out) -> group_state.State:
        match write:
            case group_state.Assigning(record):
                return self.assigned(state, record, out) if self.still_awaited(state, record) else state
            case group_state.Replacing(before=before, after=id, leader=leader):
                return self.answer_replacement(state, id, leader, before.session_ms, out)
            case group_state.Committing(batch, to, counts):
                out.append(messages.Committed(to, Error.NONE))
                return self.committed(state, batch) if counts else state
            case group_state.Deleting(to=to):
                if self.rules.deletes_unwritten:
                    return state
                out.append(messages.Deleted(to, Error.NONE))
                return self.without_all_pending(state, out) if self.is_deleted(state) else state
            case group_state.Emptying(_, reply):
                out += [] if reply is None else [reply]
                return state
            case group_state.Founding():
                return state
            case _:
                assert_never(write)

    def write_failed(self, state: group_state.State, error: Error, out: Out) -> group_state.State:
        if state.unnamed is not None and state.unnamed.writes:
            return state._replace(unnamed=self.write_failed(state.unnamed, error, out))
        write, *rest = state.writes
        state = state._replace(writes=tuple(rest))
        match write:
            case group_state.Assigning(record):
                return self.assignment_failed(state, error, out) if self.still_awaited(state, record) else state
            case group_state.Replacing():
                return self.replacement_failed(state, write, error, out)
            case group_state.Committing(to=to):
                out.append(messages.Committed(to, self.commit_error(error)))
                return self.unfounded(state, out) if self.never_written(state) else state
            case group_state.Deleting(to=to):
                if self.rules.deletes_unwritten:
                    return state
                out.append(messages.Deleted(to, self.write_error(error)))
                return self.undeleted(state, write) if self.is_deleted(state) else state
            case group_state.Founding():
                return self.founding_failed(state, error, out)
            case group_state.Emptying(_, reply):
                out += [] if reply is None else [messages.Left(reply.to, self.write_error(error))]
                return state
            case _:
                assert_never(write)

    def undeleted(self, state: group_state.State, write: group_state.Deleting) -> group_state.State:
        """The group before the deletion, with offsets committed since."""
        return state._replace(
            phase=messages.Phase.EMPTY,
            generation=write.generation,
            protocol_type=write.protocol_type,
            offsets=state.log.offsets,
        )

    def is_deleted(self, state: group_state.State) -> bool:
        """Whether the deleted group has not been created again. Java restores it if the write fails."""
        return state.phase is messages.Phase.DEAD and state.standing is group_state.Standing.OURS

    def committed(self, state: group_state.State, batch: messages.OffsetBatch) -> group_state.State:
        unknown = state.phase is messages.Phase.DEAD and self.rules.keeps_empty_groups
        offsets = group_state.merged(state.offsets, batch.records)
        return state._replace(phase=messages.Phase.EMPTY if unknown else state.phase, offsets=offsets)

    def still_awaited(self, state: group_state.State, record: messages.GroupRecord) -> bool:
        """Whether the assignment is still for the current generation."""
        return state.phase is messages.Phase.COMPLETING and state.generation == record.generation

    def never_written(self, state: group_state.State) -> bool:
        """Whether the failed offsets would have created the group. Java then removes it."""
        return (
            self.rules.java
            and state.phase is messages.Phase.EMPTY
            and not state.writes
            and state.log == group_state.Log()
        )

    def founding_failed(self, state: group_state.State, error: Error, out: Out) -> group_state.State:
        """Removes the group, and answers the parked joins with an error."""
        for each in state.members:
            if each.join is not None:
                out.append(self.join_refusal(each.join.to, self.write_error(error), ""))
        return self.unfounded(state, out)

    def gone(self, state: group_state.State, out: Out) -> group_state.State:
        """Removes the group, and disarms all its timers."""
        out += map(messages.Disarm, group_state.armed(state, self.rules.sync_deadline))
        return self.forgotten(state)

    def unfounded(self, state: group_state.State, out: Out) -> group_state.State:
        """Removes the group. Pending offsets that are written later create it again."""
        commits = {
            place: write for place, write in enumerate(state.writes) if isinstance(write, group_state.Committing)
        }
        state = self.gone(state, out)
        return state._replace(writes=tuple([commits.get(place, each) for place, each in enumerate(state.writes)]))

    # The partition moves

    def unload(self, state: group_state.State, out: Out) -> group_state.State:
        """Answers all parked requests with NOT_COORDINATOR, and drops the group."""
        for each in state.members:
            if each.join is not None:
                out.append(self.join_refusal(each.join.to, Error.NOT_COORDINATOR, each.id))
            if each.sync is not None:
                out.append(messages.Synced(each.sync.to, Error.NOT_COORDINATOR))
        return self.gone(state, out)._replace(standing=group_state.Standing.AWAY)

    def load(self, state: group_state.State) -> group_state.State:
        return state._replace(standing=group_state.Standing.LOADING)

    def loaded(self, state: group_state.State, out: Out) -> group_state.State:
        """Restores the group from its records. A group that exceeds the maximum size rebalances."""
        state = self.recall(state, out)
        if self.rules.size_limit and len(state.members) > self.config.max_size:
            return self.prepare(state, out)
        return state

    def recall(self, state: group_state.State, out: Out) -> group_state.State:
        """Restores the group from the log, and starts the sessions of its members."""
        state = self.recalled(state.log)._replace(writes=state.writes, unnamed=state.unnamed)
        out += [group_state.arm_session(each.id, each.session_ms) for each in state.members]
        return state

    def replayed(self, records: Iterable[messages.Record]) -> group_state.State:
        """The state of a coordinator that has read these records, oldest first."""
        log = group_state.Log()
        for each in records:
            log = log.with_(each)
        return self.recalled(log)

    def recalled(self, log: group_state.Log) -> group_state.State:
        record = log.group
        if not self.rules.keeps_empty_groups and (record is None or not record.members):
            return group_state.State(offsets=log.offsets, log=log)
        if record is None:
            return group_state.State(
                phase=messages.Phase.EMPTY if log.offsets else messages.Phase.DEAD, offsets=log.offsets, log=log
            )
        return group_state.State(
            phase=messages.Phase.STABLE if record.members else messages.Phase.EMPTY,
            generation=record.generation,
            protocol_type=record.protocol_type or None,
            protocol=record.protocol,
            leader=record.leader,
            members=tuple(self.recalled_member(record, each) for each in record.members),
            offsets=log.offsets,
            log=log,
        )

    def recalled_member(
        self, record: messages.GroupRecord, member: tuple[str, str | None, int, int, object, object]
    ) -> group_state.Member:
        """A member with the chosen protocol; the log does not contain its other protocols."""
        id, instance, session_ms, rebalance_ms, metadata, assignment = member
        return group_state.Member(
            id, instance, session_ms, rebalance_ms, ((record.protocol or "", metadata),), assignment
        )
