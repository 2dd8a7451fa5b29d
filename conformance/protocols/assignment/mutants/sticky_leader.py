"""Leaders with one planted defect each that concerns previous ownership: stickiness, generations, user data."""

from dataclasses import replace

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.assignment.model import assignment
from kipcheck.conformance.protocols.assignment.model.sticky import owners, sticky
from kipcheck.conformance.protocols.assignment.mutants.leader import Leading, leads, numbered, turned
from kipcheck.conformance.protocols.assignment.ops import read_user_data, user_data_version

PLACE = 20

# Stickiness


@leads("order", "assign/any-order-sticky", assignment.STICKY, "sticky t0:1; a[t0]; b[t0] | sticky t0:1; b[t0]; a[t0]")
class FavoursTheFirst(Leading):
    """Of otherwise equal members the one that is listed first gets more partitions."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor != assignment.STICKY:
            return super().assign(assignor, group)
        given = sticky(numbered(group))
        return {each.id: given[f"{at:03}"] for at, each in enumerate(group.members)}


@leads("settled", "assign/stays", assignment.STICKY, "sticky t0:1; a[t0]; b[t0]=t0-0@10")
class RemembersNothing(Leading):
    """Previous ownership is ignored."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        return super().assign(assignor, _owning_nothing(group) if assignor == assignment.STICKY else group)


def _owning_nothing(group: assignment.Group) -> assignment.Group:
    return replace(group, members=tuple(replace(each, owned=()) for each in group.members))


@leads("one-round", "assign/keeps-most", assignment.STICKY, "sticky t0:2; a[t0]=t0-1@10; b[t0]")
class TakesBackTheLast(Leading):
    """If any partition is free, every member loses its last one."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor == assignment.STICKY and len(owners(group)) < len(group.wanted):
            group = replace(group, members=tuple(replace(each, owned=each.owned[:-1]) for each in group.members))
        return super().assign(assignor, group)


@leads("one-round", "assign/no-exchange", assignment.STICKY, "sticky t0:1 t1:2; a[t0 t1]=t1-0@10; b[t0 t1]=t1-1@10")
class Swaps(Leading):
    """At the end two owners exchange partitions of one topic."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        given = super().assign(assignor, group)
        before = owners(group)
        kept = [(p, member) for member, of in given.items() for p in of if before.get(p) == member]
        if assignor != assignment.STICKY or len(before) == len(group.wanted):
            return given
        for one, mine in kept:
            for other, its in kept:
                if one[0] == other[0] and mine != its:
                    swapped = {one: other, other: one}
                    return {member: tuple(swapped.get(p, p) for p in of) for member, of in given.items()}
        return given


@leads(
    "one-round",
    "assign/no-needless-move",
    assignment.STICKY,
    "sticky t0:1 t1:3 t2:1; a[t0 t1 t2]=t2-0@10; b[t0 t1 t2]=t1-1,t1-2@10",
)
class GivesOneMore(Leading):
    """A member with one partition more than another gives it one, which does not improve the balance."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        given = {member: list(of) for member, of in super().assign(assignor, group).items()}
        before = owners(group)
        if assignor == assignment.STICKY and len(before) < len(group.wanted):
            for giver in group.members:
                for receiver in group.members:
                    mine, its = given[giver.id], given[receiver.id]
                    movable = [p for p in mine if before.get(p) == giver.id and group.may_have(receiver, p)]
                    if len(mine) == len(its) + 1 and movable and receiver.owned:
                        mine.remove(movable[0])
                        its.append(movable[0])
                        return assignment.frozen(given)
        return assignment.frozen(given)


@leads("claims", "assign/newest-wins", assignment.STICKY, "sticky t0:1; a[t0]=t0-0@10; b[t0]=t0-0@9")
class BelievesTheOldest(Leading):
    """Of two claims the older one wins."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor == assignment.STICKY:
            group = replace(group, members=tuple(replace(e, generation=-e.generation) for e in group.members))
        return super().assign(assignor, group)


# Cooperation


@leads("one-round", "assign/hand-over", assignment.COOPERATIVE, "cooperative-sticky t0:2; a[t0]=t0-0,t0-1@10; b[t0]")
class HandsOverAtOnce(Leading):
    """Cooperative sticky assigns owned partitions to other members at once."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        return sticky(group) if assignor == assignment.COOPERATIVE else super().assign(assignor, group)


@leads(
    "claims",
    "assign/hand-over-older",
    assignment.COOPERATIVE,
    "cooperative-sticky t0:1 t1:1; a[t0]=t0-0@9; b[t0 t1]=t0-0@10",
)
class TrustsAnyClaim(Leading):
    """A member that claims a partition gets it at once, in whatever generation it claims it."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor != assignment.COOPERATIVE:
            return super().assign(assignor, group)
        given = sticky(group)
        owned = {each.id: {*each.owned} for each in group.members}
        return {
            member: tuple(p for p in of if p in owned[member] or p not in group.claims) for member, of in given.items()
        }


@leads(
    "rounds",
    "assign/converges",
    assignment.COOPERATIVE,
    "cooperative-sticky ; b[] | "
    "cooperative-sticky again t0:1; a[t0]; b[t0] | "
    "cooperative-sticky again t0:1; a[t0]; b[t0] | "
    "cooperative-sticky again t0:1; a[t0]; b[t0] | "
    "cooperative-sticky again t0:1; a[t0]; b[t0]",
)
class NeverRests(Leading):
    """All partitions are assigned again in every generation, in alternating order."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor != assignment.COOPERATIVE:
            return super().assign(assignor, group)
        bare = _owning_nothing(group)
        odd = max((each.generation for each in group.members), default=0) % 2
        given = turned(bare, sticky) if odd else sticky(bare)
        owned = {each.id: {*each.owned} for each in group.members}
        return {
            member: tuple(p for p in of if p in owned[member] or p not in group.claims) for member, of in given.items()
        }


# User data


PREFIX = b"\0\1"


@leads("user-data", "assign/writes-user-data", assignment.STICKY, "sticky user-data=@10")
class WritesAPrefix(Leading):
    """A version is written before the user data."""

    def user_data(self, assignor: str, owned: tuple[assignment.Partition, ...], generation: int) -> bytes | None:
        data = super().user_data(assignor, owned, generation)
        return None if data is None else PREFIX + data


@leads("user-data", "assign/writes-user-data", assignment.STICKY, "sticky user-data=t0-0@10")
class ForgetsItsGeneration(Leading):
    """The generation is always written as -1."""

    def user_data(self, assignor: str, owned: tuple[assignment.Partition, ...], generation: int) -> bytes | None:
        return super().user_data(assignor, owned, -1)


@leads("user-data", "assign/writes-generation", assignment.COOPERATIVE, "cooperative-sticky user-data=@10")
class WritesTheOther(Leading):
    """A cooperative member writes the user data of sticky."""

    def user_data(self, assignor: str, owned: tuple[assignment.Partition, ...], generation: int) -> bytes | None:
        return super().user_data(assignment.STICKY, owned, generation)


class UserDataReader(Leading):
    """Ignores user data that ``knows`` rejects."""

    def knows(self, data: bytes) -> bool:
        return True

    def group(self, step: Step) -> assignment.Group:
        members = [{**each, "userData": self._read(each["userData"])} for each in step["members"]]
        return super().group(Step(step.actor, step.verb, {**step.body, "members": members}))

    def _read(self, data: str | None) -> str | None:
        return data if data is None or self.knows(bytes.fromhex(data)) else ""


@leads(
    "user-data",
    "assign/reads-user-data",
    assignment.STICKY,
    "sticky t0:3; a[t0]=00000001000274300000000200000000000000010000000a; "
    "b[t0]=000000010002743000000001000000020000000a",
)
class ReadsAPrefix(UserDataReader):
    """User data without a version prefix is ignored."""

    def knows(self, data: bytes) -> bool:
        return data.startswith(PREFIX) and read_user_data(data[2:]) is not None


@leads(
    "user-data",
    "assign/reads-old-user-data",
    assignment.STICKY,
    "sticky t0:3; a[t0]=0000000100027430000000020000000000000001; b[t0]=00000001000274300000000100000002",
)
class WantsAGeneration(UserDataReader):
    """User data without a generation is ignored."""

    def knows(self, data: bytes) -> bool:
        return user_data_version(data) == 1
