"""Shared by the leaders of Python clients: takes an operation apart, and builds its result.

Each operation uses a new assignor. Where a library keeps the state of its members in the class, as kafka-python 2 and
aiokafka do, each operation derives a class of its own from it, so what a member writes does not depend on earlier
operations. The defect that consumers of one process share that state (kafka-python #2170) therefore does not show here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias

from kipcheck.conformance.targets.error_mapping import rejected

LEADING = ("assign", "user-data")
"""The operations of a leader."""
EAGER = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
}
"""Name -> module and class, in kafka-python and in the libraries derived from it."""
Owned: TypeAlias = Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Member:
    """A member in an assignment, as the operation describes it."""

    id: str
    subscription: list[str]
    owned: Owned
    generation: int
    instance: str | None
    rack: str | None
    user_data: bytes | None
    """None: the library's own member writes it."""

    @property
    def was_assigned(self) -> bool:
        """Whether it has been assigned partitions before, even none."""
        return bool(self.owned) or self.generation >= 0

    @property
    def topics_owned(self) -> list[tuple[str, list[int]]]:
        """As assignments list them on the wire: each topic once, in the order of first occurrence."""
        found: dict[str, list[int]] = {}
        for topic, partition in self.owned:
            found.setdefault(topic, []).append(partition)
        return list(found.items())


class Cluster:
    """The part of a client's cluster metadata that its assignors read.

    It also contains topics without subscribers, as the metadata of a leader that subscribes by pattern does.
    """

    def __init__(self, topics: Iterable[Mapping[str, Any]]) -> None:
        self._counts = {each["name"]: each["partitions"] for each in topics}

    def topics(self, *_: object, **__: object) -> set[str]:
        return set(self._counts)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._counts[topic])) if topic in self._counts else None


@dataclass(frozen=True, slots=True)
class Share:
    """The assignment that the leader sends to one member."""

    member: str
    partitions: Iterable[tuple[str, int]]
    user_data: bytes | None


class Library(Protocol):
    """A client's assignors. Any exception of the library is passed on."""

    def names(self) -> Sequence[str]: ...
    def assign(self, name: str, cluster: Cluster, members: Sequence[Member]) -> Iterable[Share]: ...
    def user_data(self, name: str, member: Member) -> bytes | None:
        """The user data that its own member would write next, after it was assigned what it owns."""
        ...


def answer(library: Library, op: Mapping[str, Any]) -> dict[str, Any]:
    """The result of an operation of ``LEADING``."""
    name = op["assignor"]
    if name not in library.names():
        return {"status": "unsupported", "message": f"unknown assignor {name!r}"}
    if op["op"] == "user-data":
        lone = _member({**op, "id": ""})
        return _guarded(lambda: {"hex": _hex(library.user_data(name, lone))})
    cluster, members = Cluster(op["topics"]), [_member(each) for each in op["members"]]
    return _guarded(lambda: {"assignment": [_shown(each) for each in library.assign(name, cluster, members)]})


def present(package: str, places: Mapping[str, tuple[str, str]]) -> Mapping[str, Any]:
    """The classes of ``places`` in ``package`` that the release has."""
    return {
        name: getattr(import_module(f"{package}.{module}"), made)
        for name, (module, made) in places.items()
        if find_spec(f"{package}.{module.partition('.')[0]}") is not None
    }


def derived(assignor: type) -> Any:
    """A subclass, which keeps the state that class methods set."""
    return type(assignor)(assignor.__name__, (assignor,), {})


def _guarded(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"status": "accepted", **work()}
    except MemoryError:
        raise
    except Exception as refusal:  # noqa: BLE001 - the library may raise any exception
        return rejected(refusal)


def _member(given: Mapping[str, Any]) -> Member:
    data = given.get("userData")
    return Member(
        given["id"],
        list(given["subscription"]),
        [(topic, partition) for topic, partition in given["owned"]],
        given["generation"],
        given.get("instance"),
        given.get("rack"),
        None if data is None else bytes.fromhex(data),
    )


def _shown(share: Share) -> dict[str, Any]:
    partitions = [[topic, partition] for topic, partition in share.partitions]
    return {"id": share.member, "partitions": partitions, "userData": _hex(share.user_data)}


def _hex(data: bytes | None) -> str | None:
    """None for empty data: these libraries write an empty text where Kafka's own write null."""
    return bytes(data).hex() if data else None
