"""The leader of one share partition (KIP-932): which member has which record, how often it was delivered, and sessions.

Source: ``SharePartition``, ``SharePartitionManager`` and ``KafkaApis`` of the releases. In the log each record has a
batch of its own. What was fetched at once stays together: limits on how much is delivered again depend on it. What the
persister has is written with each acknowledgement, release and expired lock, not when a record is acquired.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, assert_never

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.reconciled.terms import Rejected
from kipcheck.conformance.protocols.share_partition import ops
from kipcheck.conformance.protocols.share_partition.rules import DEFAULT, OWED, Config, Rules

INVALID_RECORD_STATE: Final = "INVALID_RECORD_STATE"
SHARE_SESSION_NOT_FOUND: Final = "SHARE_SESSION_NOT_FOUND"
INVALID_SHARE_SESSION_EPOCH: Final = "INVALID_SHARE_SESSION_EPOCH"
UNKNOWN_SERVER_ERROR: Final = "UNKNOWN_SERVER_ERROR"
UNKNOWN_TOPIC_OR_PARTITION: Final = "UNKNOWN_TOPIC_OR_PARTITION"
NEVER: Final = 1 << 30


class Record(NamedTuple):
    times: int
    """How often it was delivered."""
    holder: str = ""
    """The member that has it; empty: none."""
    left_ms: int = 0
    done: bool = False
    """It is not delivered any more."""

    @property
    def is_free(self) -> bool:
        return not self.holder and not self.done


class Batch(NamedTuple):
    """Records that were acquired at once, or read at once from the persister."""

    first: int
    records: tuple[Record, ...]

    @property
    def after(self) -> int:
        return self.first + len(self.records)


class Saved(NamedTuple):
    """What the persister has."""

    start: int | None = None
    records: tuple[tuple[int, Record], ...] = ()


class State(NamedTuple):
    end: int = 0
    """The next offset of the log."""
    reset: str = "latest"
    start: int | None = None
    """The first offset that is not done; None: the partition is not loaded."""
    batches: tuple[Batch, ...] = ()
    """From the one with the start offset on. What is missing between two of them was never persisted."""
    saved: Saved = Saved()
    sessions: tuple[tuple[str, int], ...] = ()
    """Client and the epoch of its next request. Sorted."""
    clients: tuple[terms.Memory, ...] = ()

    def at(self, offset: int) -> Record | None:
        return next((each.records[offset - each.first] for each in self.batches if each.first <= offset < each.after),
                    None)  # fmt: skip


class ShareLeader:
    rules: Rules = OWED
    config: Config = DEFAULT

    def __init__(self, rules: Rules = OWED, config: Config = DEFAULT) -> None:
        self.rules = rules
        self.config = config

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Produce(count):
                return Transition(state._replace(end=state.end + count))
            case ops.Reset(to):
                return Transition(state._replace(reset=to))
            case ops.Fetch() | ops.Acknowledge():
                return self.asked(state, event)
            case ops.Disconnect(client):
                after = self.closed(with_epoch(state, client, 0), client)
                return Transition(after if after.sessions else unloaded(after))
            case ops.Reload():
                for client in ops.CLIENTS:
                    state = self.closed(with_epoch(state, client, 0), client)
                return Transition(unloaded(state))
            case ops.Pass(ms):
                return Transition(self.passed(state, ms))
            case _:
                assert_never(event)

    def enabled(self, state: State, /) -> Iterator[ops.Event]:
        """Events that the leader accepts, and acknowledgements of what others have."""
        yield from map(ops.Produce, (1, 2, 3))
        yield ops.Reset("earliest")
        for client in ops.CLIENTS:
            if client not in dict(state.sessions):
                yield ops.Fetch(client, terms.Says.JOIN)
                continue
            yield ops.Fetch(client, terms.Says.JOIN)
            yield from (ops.Fetch(client, terms.Says.STAY, most=most) for most in (1, 2, ops.MOST))
            yield ops.Fetch(client, terms.Says.STAY, most=1, strict=True)
            yield ops.Fetch(client, terms.Says.LEAVE)
            yield ops.Disconnect(client)
            for batch in state.batches:
                for first, last in {(batch.first, batch.after - 1), (batch.first, batch.first)}:
                    yield from (
                        ops.Acknowledge(client, terms.Says.STAY, kind, first, last)
                        for kind in ("accept", "release", "reject", "renew")
                    )  # fmt: skip
                    yield ops.Fetch(client, terms.Says.STAY, kind="accept", first=first, last=last)
        yield ops.Reload()
        yield from map(ops.Pass, ops.PASSES)

    # Sessions

    def asked(self, state: State, request: ops.Request) -> Transition[State, ops.Action]:
        client = request.client
        epoch = terms.memory_of(state.clients, client).epoch_in(request)
        if (error := self.session_error(state, request, epoch)) is not None:
            return Transition(state, (Rejected(client, error),))
        state, before = with_epoch(state, client, max(epoch + 1, 0)), state
        if self.fails(state, request):
            return Transition(state._replace(clients=before.clients), (Rejected(client, UNKNOWN_SERVER_ERROR),))
        refused: str | None = None
        acquired: ops.Acquired = ()
        if request.kind != "none":
            state, refused = self.acknowledged(state, request)
        if isinstance(request, ops.Fetch) and request.kind != "renew" and epoch != terms.LEAVING:
            state, acquired = self.fetched(state, request)
        if epoch == terms.LEAVING:
            state = self.closed(state, client)
        answer = (ops.Fetched(client, acquired, refused) if isinstance(request, ops.Fetch)
                  else ops.Acknowledged(client, refused))  # fmt: skip
        return Transition(state, (answer,))

    def session_error(self, state: State, request: ops.Request, epoch: int) -> str | None:
        due = dict(state.sessions).get(request.client)
        if epoch == 0:
            if isinstance(request, ops.Acknowledge):
                return INVALID_SHARE_SESSION_EPOCH
            return terms.INVALID_REQUEST if request.kind != "none" else None
        if due is None:
            return SHARE_SESSION_NOT_FOUND
        return INVALID_SHARE_SESSION_EPOCH if epoch not in (due, terms.LEAVING) else None

    def fails(self, state: State, request: ops.Request) -> bool:
        """Source: ``SharePartition.fetchSubMapForAcknowledgementBatch``, which finds no batch to begin with."""
        if not self.rules.fails_past_done or request.kind in ("none", "unknown") or state.start is None:
            return False
        found = any(batch.first <= state.start for batch in state.batches)
        return request.first < state.start <= request.last and not found

    def closed(self, state: State, client: str) -> State:
        """The session has ended: what the client has is released."""
        changed = {
            offset: self.unread(record)
            for offset, record in acquired_by(state, client)
        }  # fmt: skip
        return self.changed(state, changed)

    def unread(self, record: Record) -> Record:
        if self.rules.counts_released:
            return self.released(record)
        return record._replace(times=record.times - 1, holder="", left_ms=0)

    # Acquisition

    def fetched(self, state: State, fetch: ops.Fetch) -> tuple[State, ops.Acquired]:
        state = self.loaded(state)
        left = fetch.most
        first = position = self.next_offset(state)
        got, batches, ended = list[tuple[int, int, int]](), list[Batch](), False

        def added(upto: int) -> None:
            count = min(upto - position, left - len(got))
            if count > 0 and not ended:
                batches.append(Batch(position, (self.taken(Record(0), fetch.client),) * count))
                got.extend((position, position + n, 1) for n in range(count))

        for batch in state.batches:
            if batch.after > first:
                added(batch.first)
                position = max(position, batch.after)
                isolated = self.is_isolated(batch, first)
                ended = ended or len(got) >= left or (isolated and bool(got))
                if not ended:
                    numbers = [*self.chosen(batch, first, left - len(got) if fetch.strict else NEVER)]
                    batch = Batch(batch.first, tuple(
                        self.taken(record, fetch.client) if number in numbers else record
                        for number, record in enumerate(batch.records)
                    ))  # fmt: skip
                    got.extend((batch.first, batch.first + number, batch.records[number].times) for number in numbers)
                    ended = isolated and bool(numbers)
            batches.append(batch)
        added(state.end)
        return state._replace(batches=tuple(batches)), ranges(got)

    def loaded(self, state: State) -> State:
        """The partition with what the persister has, if it was not loaded; a new one begins where its group says."""
        if state.start is not None:
            return state
        start = state.saved.start
        if start is None:
            start = 0 if state.reset == "earliest" else state.end
            if not self.rules.chooses_again:
                state = state._replace(saved=state.saved._replace(start=start))
        batches = list[Batch]()
        for offset, record in state.saved.records:
            last = batches[-1] if batches else None
            if last is not None and last.after == offset and last.records[0] == record:
                batches[-1] = Batch(last.first, (*last.records, record))
            else:
                batches.append(Batch(offset, (record,)))
        return self.advanced(state._replace(start=start, batches=tuple(batches)))

    def next_offset(self, state: State) -> int:
        """The first offset that can be delivered."""
        assert state.start is not None
        position = state.start
        for batch in state.batches:
            if position < batch.first:
                return position
            for number, record in enumerate(batch.records):
                if record.is_free and batch.first + number >= state.start:
                    return batch.first + number
            position = batch.after
        return position

    def is_isolated(self, batch: Batch, first: int) -> bool:
        """Whether a batch has a record that was delivered often."""
        counts = [record.times for number, record in enumerate(batch.records)
                  if record.is_free and batch.first + number >= first]  # fmt: skip
        return self.rules.isolates and max(counts, default=0) >= self.often

    @property
    def often(self) -> int:
        """From so many deliveries on fewer records are delivered together."""
        return max(2, -(-self.config.limit // 2))

    def chosen(self, batch: Batch, first: int, most: int) -> Iterator[int]:
        """The records of a batch that are delivered again together, by their number in it."""
        limit, isolates, found, room = self.config.limit, self.rules.isolates, 0, NEVER
        for number, record in enumerate(batch.records):
            if not record.is_free or batch.first + number < first:
                continue
            is_alone = isolates and limit > 2 and record.times == limit - 1
            if found >= min(most, room) or (is_alone and found):
                return
            if isolates and record.times >= self.often and room == NEVER:
                room = max(1, len(batch.records) >> (record.times - self.often + 1))
            yield number
            found += 1
            if is_alone:
                return

    def taken(self, record: Record, client: str) -> Record:
        return Record(record.times + 1, client, self.config.lock_ms)

    # Acknowledgement

    def acknowledged(self, state: State, request: ops.Request) -> tuple[State, str | None]:
        """The state after the acknowledgement of a request, and its error."""
        if (error := self.acknowledgement_error(state, request)) is not None:
            return state, error
        assert state.start is not None
        offsets = range(max(request.first, state.start), request.last + 1)
        held = {offset: state.at(offset) for offset in offsets}
        if request.kind == "renew":
            renewed = {offset: self.renewed(each) for offset, each in held.items() if each is not None}
            return with_records(state, renewed), None
        return self.changed(state, {offset: self.ended(each, request) for offset, each in held.items() if each}), None

    def renewed(self, record: Record) -> Record:
        return record._replace(left_ms=self.config.lock_ms)

    def ended(self, record: Record, request: ops.Request) -> Record:
        if request.kind == "release":
            return self.released(record)
        return record._replace(holder="", left_ms=0, done=True)

    def released(self, record: Record) -> Record:
        """The record without its holder: it is free, unless it was delivered as often as it may be."""
        return record._replace(holder="", left_ms=0, done=record.times >= self.config.limit)

    def acknowledgement_error(self, state: State, request: ops.Request) -> str | None:
        if request.first > request.last or request.kind == "unknown":
            return terms.INVALID_REQUEST
        if request.kind == "renew" and not self.rules.renews:
            return terms.INVALID_REQUEST
        if state.start is None:
            return UNKNOWN_TOPIC_OR_PARTITION
        if request.last < state.start:
            return None
        if request.first >= state.start and not any(batch.first <= request.first for batch in state.batches):
            return INVALID_RECORD_STATE
        reached = [batch for batch in state.batches if batch.first <= request.last]
        if not reached or reached[-1].after <= request.last:
            return terms.INVALID_REQUEST
        return None if self.holds_all(state, request, state.start) else INVALID_RECORD_STATE

    def holds_all(self, state: State, request: ops.Request, start: int) -> bool:
        held = (state.at(offset) for offset in range(max(request.first, start), request.last + 1))
        return all(record is not None and record.holder == request.client for record in held)

    # State

    def passed(self, state: State, ms: int) -> State:
        """Locks expire."""
        records = [(offset, record) for offset, record in in_order(state.batches) if record.holder]
        aged = {offset: record._replace(left_ms=record.left_ms - ms) for offset, record in records}
        late = {offset: self.released(record) for offset, record in aged.items() if record.left_ms <= 0}
        return self.changed(with_records(state, aged), late)

    def changed(self, state: State, records: dict[int, Record]) -> State:
        """The state with other records, which the persister gets, and the start offset after those that are done."""
        if not records:
            return state
        saved = self.saved(state, records)
        return self.advanced(with_records(state, records)._replace(saved=saved))

    def saved(self, state: State, records: dict[int, Record]) -> Saved:
        start = state.start or 0
        known = {**dict(state.saved.records), **records}
        return Saved(start, tuple(sorted((offset, each) for offset, each in known.items() if offset >= start)))

    def advanced(self, state: State) -> State:
        start = state.start
        assert start is not None
        while (record := state.at(start)) is not None and record.done:
            start += 1
        return state._replace(start=start, batches=tuple(each for each in state.batches if each.after > start))


def with_epoch(state: State, client: str, epoch: int) -> State:
    """The state with the epoch of the next request of a client; 0: it has no session."""
    sessions = {**dict(state.sessions), client: epoch}
    return state._replace(
        sessions=tuple(sorted((name, each) for name, each in sessions.items() if each)),
        clients=terms.with_memory(state.clients, terms.Memory(client, epoch)),
    )


def unloaded(state: State) -> State:
    """The state when the leader has forgotten the partition."""
    return state._replace(start=None, batches=())


def acquired_by(state: State, client: str) -> Iterator[tuple[int, Record]]:
    return ((offset, record) for offset, record in in_order(state.batches) if record.holder == client)


def in_order(batches: Iterable[Batch]) -> Iterator[tuple[int, Record]]:
    for batch in batches:
        yield from enumerate(batch.records, batch.first)


def with_records(state: State, records: dict[int, Record]) -> State:
    batches = (
        Batch(batch.first, tuple(records.get(offset, record) for offset, record in in_order([batch])))
        for batch in state.batches
    )  # fmt: skip
    return state._replace(batches=tuple(batches))


def ranges(got: Iterable[tuple[int, int, int]]) -> ops.Acquired:
    """Offsets, each with the first one of its batch and its count, as ranges of one batch and one count."""
    found = list[tuple[int, int, int]]()
    known = -1
    for batch, offset, count in got:
        if batch == known and found[-1][1:] == (offset - 1, count):
            found[-1] = (found[-1][0], offset, count)
        else:
            found.append((offset, offset, count))
        known = batch
    return tuple(found)
