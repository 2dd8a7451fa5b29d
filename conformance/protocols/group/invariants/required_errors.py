"""The errors that a classic group coordinator owes for a request, by what clients can know about the group.

An error is certain if the request has that fault whatever else is true, and possible if clients cannot know. A request
with certain errors gets one of them (no document orders them) or a possible one; a request without is granted, or gets
a possible error. The meaning of each error is that of the protocol guide, Error Codes.
"""

from dataclasses import dataclass, replace
from typing import Final

from kipcheck.conformance.protocols.group.invariants.known import OWN_FAULTS, KnownGroup
from kipcheck.conformance.protocols.group.invariants.requests import in_force, named
from kipcheck.conformance.protocols.group.invariants.view import GroupTrace, Location
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.answers import SYNC_TYPE_SINCE, Config
from kipcheck.conformance.protocols.group.model.decisions import IDS_REQUIRED_SINCE
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.trace import TracedRequest

OF_THE_LOG: Final = frozenset({*Error} - OWN_FAULTS - {Error.NONE} | {Error.REBALANCE_IN_PROGRESS})
"""Errors of a request whose write failed."""

ORDER: Final = (
    Error.INVALID_GROUP_ID, Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID,
    Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS, Error.GROUP_MAX_SIZE_REACHED,
    Error.MEMBER_ID_REQUIRED, Error.INCONSISTENT_GROUP_PROTOCOL, Error.INVALID_SESSION_TIMEOUT,
    Error.NON_EMPTY_GROUP, Error.GROUP_ID_NOT_FOUND,
)  # fmt: skip
"""Errors that requests can be owed."""


@dataclass(frozen=True, slots=True)
class Owed:
    certain: frozenset[Error]
    possible: frozenset[Error]
    parks: bool = False
    """May the request be parked?"""

    def allows(self, error: Error | None) -> bool:
        """None: the request is parked."""
        if error is None:
            return self.parks and not self.certain
        return error in self.certain or error in self.possible or (error is Error.NONE and not self.certain)

    @property
    def first(self) -> str:
        """One name for all sets of errors with the same first member of an order, for shapes."""
        return next((each.name for each in ORDER if each in self.certain), "NONE")

    def __str__(self) -> str:
        return " or ".join(sorted(each.name for each in self.certain)) or "NONE"


class Faults:
    """Collects errors."""

    def __init__(self) -> None:
        self.certain: set[Error] = set()
        self.possible: set[Error] = set()

    def add(self, error: Error, applies: bool | None) -> None:
        """None: not known."""
        if applies is None:
            self.possible.add(error)
        elif applies:
            self.certain.add(error)

    def owed(self, parks: bool = False) -> Owed:
        return Owed(frozenset(self.certain), frozenset(self.possible), parks)


def owed(exchange: TracedRequest, known: KnownGroup, group: GroupTrace) -> Owed | None:
    """None: no verdict. A batch of LeaveGroup has an error for each member: ``leave_errors``."""
    request, where = exchange.request, group.locations[exchange.index]
    if exchange.nameless:
        return _nameless(request, group.has_nameless(exchange.index))
    if where is not Location.HERE:
        return _elsewhere(request, where, group.settings)
    match request:
        case messages.Join():
            found = _join(request, known, group)
        case messages.Sync():
            found = _sync(request, known)
        case messages.Heartbeat():
            found = _heartbeat(request, known)
        case messages.Commit():
            if not request.offsets:
                return None
            found = _commit(request, known)
        case messages.Delete():
            found = _delete(known)
        case messages.Describe():
            found = Faults()
            found.add(Error.GROUP_ID_NOT_FOUND, None if known.exists is not True else False)
        case messages.Fetch() | messages.ListGroups():
            found = Faults()
        case _:
            return None
    if known.failing and not isinstance(
        request, messages.Describe | messages.Fetch | messages.ListGroups | messages.Heartbeat
    ):
        found.possible |= OF_THE_LOG
    return found.owed(
        isinstance(request, messages.Join)
        or (isinstance(request, messages.Sync) and known.phase is not messages.Phase.STABLE)
    )


def _nameless(request: messages.Request, exists: bool | None) -> Owed | None:
    """What is owed in the group with the empty name, which has no members. ``exists``: whether it has offsets."""
    found = Faults()
    match request:
        case messages.Join() | messages.Sync() | messages.Heartbeat():
            found.add(Error.INVALID_GROUP_ID, applies=True)
            found.add(
                Error.INCONSISTENT_GROUP_PROTOCOL,
                isinstance(request, messages.Sync) and _lacks_protocol(request),
            )
        case messages.Delete():
            refused = {Error.INVALID_GROUP_ID, Error.GROUP_ID_NOT_FOUND}
            if exists is False:
                found.certain |= refused
            else:
                found.possible |= refused | OF_THE_LOG
        case messages.Commit(generation=generation) if request.offsets and generation >= 0:
            found.certain |= {
                Error.UNKNOWN_MEMBER_ID,
                Error.ILLEGAL_GENERATION,
                Error.GROUP_ID_NOT_FOUND,
            }
        case messages.Commit(member="", instance=None) if request.offsets:
            found.possible |= OF_THE_LOG
        case _:
            return None
    return found.owed()


def _elsewhere(request: messages.Request, where: Location, settings: Config) -> Owed | None:
    found = Faults()
    if isinstance(request, messages.ListGroups):
        return None
    if where is Location.GONE:
        found.add(Error.NOT_COORDINATOR, applies=True)
    else:
        found.add(Error.COORDINATOR_LOAD_IN_PROGRESS, applies=True)
        match request:
            case messages.Heartbeat():
                return Owed(frozenset(), frozenset(found.certain))
            case messages.Sync():  # so that the member joins again without a search for the coordinator
                found.certain.add(Error.REBALANCE_IN_PROGRESS)
    found.add(Error.INVALID_SESSION_TIMEOUT, isinstance(request, messages.Join) and not _may_last(request, settings))
    found.add(Error.INCONSISTENT_GROUP_PROTOCOL, isinstance(request, messages.Sync) and _lacks_protocol(request))
    return found.owed()


def _may_last(join: messages.Join, settings: Config) -> bool:
    return settings.min_session_ms <= join.session_ms <= settings.max_session_ms


def _lacks_protocol(sync: messages.Sync) -> bool:
    return sync.version >= SYNC_TYPE_SINCE and (sync.protocol_type is None or sync.protocol is None)


def identity(found: Faults, known: KnownGroup, id: str, instance: str | None) -> None:
    """The errors of a member id and an instance id, which both have to be those of one member."""
    is_member = known.is_member(id)
    if instance is None:
        found.add(Error.UNKNOWN_MEMBER_ID, None if is_member is None else not is_member)
        return
    held, holder = known.holders(instance)
    if held:
        same = None if holder is None and is_member is None else holder == id
        found.add(Error.FENCED_INSTANCE_ID, None if same is None else not same)
        found.add(Error.UNKNOWN_MEMBER_ID, None if is_member is not False else True)
    elif known.is_free(instance):
        found.add(Error.UNKNOWN_MEMBER_ID, applies=True)
    else:
        found.add(Error.UNKNOWN_MEMBER_ID, None if is_member is not False else True)
        found.add(Error.FENCED_INSTANCE_ID, None)


# JoinGroup


def _join(join: messages.Join, known: KnownGroup, group: GroupTrace) -> Faults:
    found = Faults()
    found.add(Error.INVALID_SESSION_TIMEOUT, not _may_last(join, group.settings))
    _protocols(found, join, known)
    if in_force("grp-43", group.edition):
        found.add(Error.GROUP_MAX_SIZE_REACHED, _is_full(join, known, group.settings.max_size))
    if join.instance is not None and known.was_given_to_dynamic(join.member):
        found.add(Error.UNKNOWN_MEMBER_ID, applies=True)
        found.add(Error.FENCED_INSTANCE_ID, True if known.holders(join.instance)[0] else None)
    elif join.member and join.member not in known.reserved:
        identity(found, known, join.member, join.instance)
    elif not join.member and join.instance is None and in_force("grp-33", group.edition):
        found.add(Error.MEMBER_ID_REQUIRED, join.version >= IDS_REQUIRED_SINCE)
    return found


def _protocols(found: Faults, join: messages.Join, known: KnownGroup) -> None:
    """Without members any protocols will do, with members one that all of them list, of the same type."""
    error, names = Error.INCONSISTENT_GROUP_PROTOCOL, {name for name, _ in join.protocols}
    found.add(error, not join.protocol_type or not names)
    others = [each.join for id, each in known.members.items() if id != join.member and each.join is not None]
    others += [each.request for each in known.newcomers if isinstance(each.request, messages.Join)]
    for each in others:
        found.add(error, each.protocol_type != join.protocol_type or names.isdisjoint(dict(each.protocols)))
    everybody = known.known_joins
    if everybody is None or (known.empty and known.phase is not messages.Phase.EMPTY):
        found.add(error, None)
    elif everybody:
        common = set.intersection(*({name for name, _ in each.protocols} for each in everybody))
        same_type = all(each.protocol_type == join.protocol_type for each in everybody)
        found.add(error, None if not same_type or names.isdisjoint(common) else False)


def _is_full(join: messages.Join, known: KnownGroup, max_size: int) -> bool | None:
    full = _has_no_room(join, known, max_size)
    takes_a_place = join.instance is not None and known.holders(join.instance)[0]
    return None if full and takes_a_place else full


def _has_no_room(join: messages.Join, known: KnownGroup, max_size: int) -> bool | None:
    others = [each for each in known.joining if join.member not in named(each)]
    if len(others) < len(known.joining):
        return False  # it waits for this join phase already
    match known.phase:
        case messages.Phase.EMPTY:
            return False
        case messages.Phase.PREPARING:
            return True if len(others) >= max_size else None if not known.complete else False
        case messages.Phase.COMPLETING | messages.Phase.STABLE if known.is_member(join.member):
            return False
        case messages.Phase.COMPLETING | messages.Phase.STABLE if known.complete:
            return len(known.members) >= max_size
    return None


# Requests of members


def _generation(found: Faults, generation: int, known: KnownGroup) -> None:
    found.add(Error.ILLEGAL_GENERATION, None if known.generation is None else generation != known.generation)


def _busy(found: Faults, known: KnownGroup, phase: messages.Phase) -> None:
    found.add(Error.REBALANCE_IN_PROGRESS, None if known.phase is None else known.phase is phase)


def _sync(sync: messages.Sync, known: KnownGroup) -> Faults:
    found = Faults()
    found.add(Error.INCONSISTENT_GROUP_PROTOCOL, _lacks_protocol(sync))
    identity(found, known, sync.member, sync.instance)
    _generation(found, sync.generation, known)
    _busy(found, known, messages.Phase.PREPARING)
    if sync.version >= SYNC_TYPE_SINCE:
        of_members = {each.join.protocol_type for each in known.members.values() if each.join is not None}
        settled = known.phase in (messages.Phase.COMPLETING, messages.Phase.STABLE)
        other_name = None if known.protocol is None or not settled else sync.protocol != known.protocol
        other_type = None if not of_members else sync.protocol_type not in of_members
        found.add(Error.INCONSISTENT_GROUP_PROTOCOL, other_name)
        found.add(Error.INCONSISTENT_GROUP_PROTOCOL, other_type)
    return found


def _heartbeat(beat: messages.Heartbeat, known: KnownGroup) -> Faults:
    """That a heartbeat is granted while only the assignment is pending is another requirement (grp-51)."""
    found = Faults()
    identity(found, known, beat.member, beat.instance)
    _generation(found, beat.generation, known)
    _busy(found, known, messages.Phase.PREPARING)
    if known.phase is messages.Phase.COMPLETING and not found.certain:
        found.add(Error.REBALANCE_IN_PROGRESS, None)
    return found


def _commit(commit: messages.Commit, known: KnownGroup) -> Faults:
    found = Faults()
    if commit.generation < 0 and not known.occupied:
        if not known.empty or known.phase is not messages.Phase.EMPTY:
            found.possible |= {
                Error.UNKNOWN_MEMBER_ID,
                Error.FENCED_INSTANCE_ID,
                Error.ILLEGAL_GENERATION,
            }
            _busy(found, known, messages.Phase.COMPLETING)
        elif commit.member or commit.instance is not None:
            found.possible |= {
                Error.UNKNOWN_MEMBER_ID,
                Error.FENCED_INSTANCE_ID,
                Error.ILLEGAL_GENERATION,
            }
        return found
    identity(found, known, commit.member, commit.instance)
    _generation(found, commit.generation, known)
    _busy(found, known, messages.Phase.COMPLETING)
    if known.exists is not True:
        found.possible |= {Error.ILLEGAL_GENERATION, Error.GROUP_ID_NOT_FOUND}
    return found


def _delete(known: KnownGroup) -> Faults:
    found = Faults()
    found.add(
        Error.NON_EMPTY_GROUP,
        True if known.occupied else False if known.phase is messages.Phase.EMPTY else None,
    )
    found.add(Error.GROUP_ID_NOT_FOUND, None if known.exists is None else not known.exists)
    return found


# LeaveGroup


def leave_errors(
    members: tuple[tuple[str, str | None], ...], known: KnownGroup, granted: frozenset[int] = frozenset()
) -> list[Owed]:
    """The errors for each member of a batch, in its order: those before it have left.

    ``granted``: the positions of members that have left by their answers, also where an error is owed.
    """
    owed_to_each, left, vacated = [], set[str](), set[str | None]()
    for position, (id, instance) in enumerate(members):
        found = Faults()
        held, holder = (False, None) if instance is None else known.holders(instance)
        leaving = holder if held and (not id or id == holder) else id
        if id in known.reserved and id not in left and instance is not None:
            found.possible |= {
                Error.UNKNOWN_MEMBER_ID,
                Error.FENCED_INSTANCE_ID,
                Error.UNKNOWN_SERVER_ERROR,
            }
        elif (leaving and leaving in left) or (not id and instance in vacated):
            found.certain.add(Error.UNKNOWN_MEMBER_ID)
            found.add(Error.FENCED_INSTANCE_ID, None)
        elif instance in vacated:
            found.possible |= {Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID}
        elif id in known.reserved:
            found.possible.add(Error.UNKNOWN_MEMBER_ID)
        elif id:
            identity(found, known, id, instance)
        elif instance is None:
            found.certain.add(Error.UNKNOWN_MEMBER_ID)
        elif not held:
            found.add(Error.UNKNOWN_MEMBER_ID, True if known.is_free(instance) else None)
        if leaving and (not found.certain or position in granted):
            left.add(leaving)
            others = {each: member for each, member in known.members.items() if each != leaving}
            known = replace(known, members=others)
        if held and not id and not found.certain:
            vacated.add(instance)  # its member may not know its id yet
        owed_to_each.append(found.owed())
    return owed_to_each
