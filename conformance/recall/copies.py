"""Gives each client that can be changed one form: its source, and a cache folder in which it has a change."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.recall import go_copies, python_copies
from kipcheck.conformance.recall.change import MISTAKE, Change
from kipcheck.conformance.recall.go_copies import DoesNotBuild, GoCopy
from kipcheck.conformance.recall.python_copies import PythonCopy
from kipcheck.conformance.targets.registry import target as target_of
from kipcheck.conformance.targets.toolchains import environments

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "wire": ("wire/*",), "assign": ("assign/*",), "member": ("member/*",), "client": ("client/*",),
    "coordinator": ("group/*", "damage/*"),
}  # fmt: skip
"""The checks of each part."""
TARGETS: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka-python": ("wire", "assign", "member"),
    "aiokafka": ("wire", "assign"),
    "franz-go": ("wire", "assign"),
    "kfake": ("coordinator",),
    "client:kafka-python": ("client",),
    "client:aiokafka": ("client",),
    "client:franz-go": ("client",),
    "client:sarama": ("client",),
    "client:kafka-go": ("client",),
}
"""Target -> the parts that it has."""
Reached: TypeAlias = Mapping[str, Mapping[str, frozenset[int]]]
"""Check -> file of a client -> the lines that its default cases run."""


class Copies(Protocol):
    """A release of a client that can be changed."""

    @property
    def target(self) -> str:
        """As ``kipcheck run --target`` takes it, with its release."""
        ...

    @property
    def client(self) -> str: ...
    @property
    def release(self) -> str: ...
    def sources(self) -> Mapping[str, str]:
        """The text of each file, by its path. Errors: ``Unavailable``."""
        ...

    def changed(self, change: Change | None, place: Path, *more: Change) -> AbstractContextManager[Path]:
        """A cache folder in which the client has the change. ``place``: a folder that one process uses at a time.
        ``more``: further changes; one to the same file changes the text that the one before it leaves.

        Errors: ``DoesNotBuild``, ``Unavailable``, OSError.
        """
        ...

    def counts(self, change: Change) -> bool:
        """Whether the change counts in which cases it is run."""
        ...

    def spoiled(self) -> Change:
        """A change with which the client cannot work."""
        ...


def copies(name: str) -> Copies:
    """Of a target like ``kafka-python``, ``client:aiokafka@0.14.0``. Errors: LookupError; ``Unavailable``."""
    target, _, release = name.partition("@")
    if target not in TARGETS:
        raise LookupError(f"unknown target {name!r}: use one of {', '.join(TARGETS)}, or one of these with @RELEASE")
    if release and not environments.RELEASE.fullmatch(release):
        raise LookupError(f"invalid release {release!r} of {target}: use a form like {target}@2.3.0")
    client = target.removeprefix("client:")
    if client in python_copies.PACKAGES:
        return PythonCopies(client, release or built_in.release(client), target)
    if target != client:
        built_in.release(client)  # errors for an unknown client name those that are known
    found = go_copies.copied(name)
    return GoCopies(found, f"{target}@{found.release}")


@dataclass(frozen=True, slots=True)
class PythonCopies:
    client: str
    release: str
    name: str
    """The target without its release."""
    made: dict[Path, PythonCopy] = field(default_factory=dict, compare=False)
    """By place, in this process."""

    @property
    def target(self) -> str:
        return f"{self.name}@{self.release}"

    def sources(self) -> Mapping[str, str]:
        return python_copies.sources(self.client, self.release)

    @contextmanager
    def changed(self, change: Change | None, place: Path, *more: Change) -> Iterator[Path]:
        if place not in self.made:
            self.made[place] = python_copies.copied(self.client, self.release, place)
        with ExitStack() as changes:
            for each in filter(None, (change, *more)):
                changes.enter_context(self.made[place].changed(each))
            yield self.made[place].cache

    def counts(self, change: Change) -> bool:
        return python_copies.NOTE in python_copies.instrumented(change)

    def spoiled(self) -> Change:
        text = self.sources()["__init__.py"]
        return Change("__init__.py", 1, MISTAKE, "", text, 0, 0, "raise ImportError('a client that cannot work')\n")


@dataclass(frozen=True, slots=True)
class GoCopies:
    copy: GoCopy
    target: str

    @property
    def client(self) -> str:
        return self.copy.client

    @property
    def release(self) -> str:
        return self.copy.release

    def sources(self) -> Mapping[str, str]:
        target_of(self.target)  # builds the program
        return self.copy.sources()

    @contextmanager
    def changed(self, change: Change | None, place: Path, *more: Change) -> Iterator[Path]:
        yield self.copy.build(place, change, more=more)

    def counts(self, change: Change) -> bool:
        return go_copies.instrumented(change) is not None

    def spoiled(self) -> Change:
        path, text = next(iter(self.copy.sources().items()))
        return Change(path, text.count("\n") + 1, MISTAKE, "", text, len(text), len(text), "\n}\n")


__all__ = ["PARTS", "TARGETS", "Copies", "DoesNotBuild", "Reached", "copies"]
