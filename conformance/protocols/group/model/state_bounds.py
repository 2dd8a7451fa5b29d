"""Bounds the growing values in a coordinator's state, generations and ids, so that searches end."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from kipcheck.conformance.protocols.group.model import state as group_state
from kipcheck.conformance.protocols.group.model.messages import Blob, GroupRecord


def older(generation: int, by: int) -> int:
    """A generation lowered by ``by``, at least 1: very old generations become equal."""
    return generation if generation < 1 else max(generation - by, 1)


def aged(state: group_state.State, by: int, blob: Callable[[Blob, int], Blob]) -> group_state.State:
    """The state with all generations lowered by ``by``. ``blob`` lowers those in metadata and assignments."""

    def member(each: group_state.Member) -> group_state.Member:
        protocols = tuple([(name, blob(data, by)) for name, data in each.protocols])
        return each._replace(protocols=protocols, assignment=blob(each.assignment, by))

    def record(found: GroupRecord) -> GroupRecord:
        members = [(*each[:4], blob(each[4], by), blob(each[5], by)) for each in found.members]
        return replace(found, generation=older(found.generation, by), members=tuple(members))

    def write(each: group_state.Write) -> group_state.Write:
        match each:
            case group_state.Replacing(before=before):
                return replace(each, record=record(each.record), before=member(before))
            case group_state.Assigning() | group_state.Emptying() | group_state.Founding():
                return replace(each, record=record(each.record))
            case group_state.Deleting(generation=generation):
                return replace(each, generation=older(generation, by))
            case group_state.Committing():
                return each
            case _:
                assert_never(each)

    return state._replace(
        generation=older(state.generation, by),
        members=tuple(map(member, state.members)),
        writes=tuple(map(write, state.writes)),
        log=group_state.Log(record(state.log.group), state.log.offsets) if state.log.group else state.log,
    )


def ids(state: group_state.State) -> Iterator[str]:
    """All member ids in the state, including those of former members."""
    yield from (each.id for each in state.members)
    yield from state.pending
    yield from state.owing
    yield from state.lapsing
    records = [each.record for each in state.writes] if state.writes else []
    for record in (*records, state.log.group):
        if isinstance(record, GroupRecord):
            yield from (each[0] for each in record.members)
    for each in state.writes:
        if isinstance(each, group_state.Replacing):
            yield each.before.id
