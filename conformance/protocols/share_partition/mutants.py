"""Leaders of share partitions with one planted defect each. Least cases are in shorthand."""

from dataclasses import replace

from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.share_partition.model import Record, Saved, ShareLeader, State
from kipcheck.conformance.protocols.share_partition.ops import MOST, OPERATIONS, Acquired, Fetch, Request
from kipcheck.conformance.protocols.share_partition.rules import OWED


class MutantLeader(MachineMutant, ShareLeader):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS


records = mutants_of("share-partition/records", OPERATIONS.machine)
BEGUN = "reset earliest; produce 1; fetch a; "


@records("one-holder", f"{BEGUN}fetch b")
class GivesWhatIsHeld(MutantLeader):
    """What a member has is delivered to others."""

    def fetched(self, state: State, fetch: Fetch) -> tuple[State, Acquired]:
        after, acquired = super().fetched(state, fetch)
        return after, acquired or tuple((at, at, each.times + 1) for at, each in _held(after)[:1])


def _held(state: State) -> list[tuple[int, Record]]:
    return [(at, each) for at in range(state.end) if (each := state.at(at)) is not None and each.holder]


@records("one-holder", f"{BEGUN}pass 10000; ack a renew 0-0; pass 10000; pass 10000; fetch b")
class RenewsNothing(MutantLeader):
    """A renewal is accepted, and the lock expires when it would have."""

    def renewed(self, record: Record) -> Record:
        return record


@records("nothing-skipped", "reset earliest; produce 2; fetch a most 1")
class DeliversTheNewestFirst(MutantLeader):
    """What is new is delivered from the end of the log on."""

    def next_offset(self, state: State) -> int:
        first = super().next_offset(state)
        return first if state.at(first) is not None else max(first, state.end - 1)


@records("keeps-its-start", "fetch a; reload; produce 1; fetch a")
class ChoosesItsStartAgain(MutantLeader):
    """The start offset is persisted with the first acknowledgement."""

    rules = replace(OWED, chooses_again=True)


@records("counts-deliveries", f"{BEGUN}ack a release 0-0; fetch a")
class CountsNoDelivery(MutantLeader):
    """Each delivery has count 1."""

    def taken(self, record: Record, client: str) -> Record:
        return super().taken(record, client)._replace(times=1)


@records("counts-deliveries", f"{BEGUN}{3 * 'pass 30000; fetch a; '}")
class DeliversWithoutEnd(MutantLeader):
    """There is no limit of deliveries."""

    def released(self, record: Record) -> Record:
        return record._replace(holder="", left_ms=0)


@records("done-stays-done", f"{BEGUN}ack a reject 0-0; fetch a")
class ReleasesWhatIsRejected(MutantLeader):
    """A record that was rejected is delivered again."""

    def ended(self, record: Record, request: Request) -> Record:
        return self.released(record) if request.kind == "reject" else super().ended(record, request)


@records("done-stays-done", "reset earliest; produce 2; fetch a; ack a accept 1-1; reload; fetch a")
class PersistsTheStartOnly(MutantLeader):
    """The persister has the start offset, and no state of a record after it."""

    def saved(self, state: State, records: dict[int, Record]) -> Saved:
        return super().saved(state, records)._replace(records=())


@records("delivers-what-is-free", f"{BEGUN}pass 30000; fetch b")
class LocksForEver(MutantLeader):
    """The lock of a record never expires."""

    def passed(self, state: State, ms: int) -> State:
        return state


@records("delivers-what-is-free", f"{BEGUN}close a; fetch b")
class KeepsWhatAClosedSessionHas(MutantLeader):
    """The end of a session releases nothing."""

    def closed(self, state: State, client: str) -> State:
        return state


@records("refuses-others", f"{BEGUN}open b; ack b accept 0-0")
class LetsOthersAcknowledge(MutantLeader):
    """A member may acknowledge what another one has."""

    def holds_all(self, state: State, request: Request, start: int) -> bool:
        held = (state.at(offset) for offset in range(max(request.first, start), request.last + 1))
        return all(record is not None and record.holder for record in held)


@records("accepts-its-own", f"{BEGUN}pass 10000; ack a accept 0-0")
class RefusesTheLate(MutantLeader):
    """A member has a third of the lock time for an acknowledgement."""

    def holds_all(self, state: State, request: Request, start: int) -> bool:
        held = [state.at(offset) for offset in range(max(request.first, start), request.last + 1)]
        late = any(record is not None and record.left_ms < self.config.lock_ms for record in held)
        return super().holds_all(state, request, start) and not late


@records("session-epochs", "fetch a; fetch a; fetch a-1")
class TakesAnySessionEpoch(MutantLeader):
    """The epoch of a session is not compared."""

    def session_error(self, state: State, request: Request, epoch: int) -> str | None:
        due = dict(state.sessions).get(request.client)
        return super().session_error(state, request, due if epoch > 0 and due is not None else epoch)


@records("session-epochs", "fetch a; fetch a")
class ForgetsSessions(MutantLeader):
    """A session is not kept after the request that opens it."""

    def session_error(self, state: State, request: Request, epoch: int) -> str | None:
        return super().session_error(state._replace(sessions=()), request, epoch)


@records("refuses-invalid", "fetch a; ack a unknown 0-0")
class TakesUnknownTypes(MutantLeader):
    """An acknowledgement of an unknown type ends the delivery."""

    def acknowledgement_error(self, state: State, request: Request) -> str | None:
        error = super().acknowledgement_error(state, request)
        return None if error == terms.INVALID_REQUEST and request.kind == "unknown" else error


@records("keeps-to-the-limit", "reset earliest; produce 2; fetch a most 1 strictly")
class FetchesWholeBatches(MutantLeader):
    """A fetch gets all records, however few it asks for."""

    def fetched(self, state: State, fetch: Fetch) -> tuple[State, Acquired]:
        return super().fetched(state, replace(fetch, most=MOST))
