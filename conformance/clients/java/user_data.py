"""User data of Streams groups from a file: what members send (``kipcheck subscribe``) and what their leader sends them
(``kipcheck assign --assignor stream``).

Errors everywhere: ``Unreadable`` for an invalid single file, before the target starts; ``Unavailable`` if a required
tool or jar is missing.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from kipcheck.conformance.clients.java.streams_members import Unanswerable, open_jars
from kipcheck.conformance.core.values.edition import KIP_268, Standing, edition as edition_named
from kipcheck.conformance.protocols.assignment.group_files import error_line, read_lines
from kipcheck.conformance.protocols.streams.blobs import EncodedBinary
from kipcheck.conformance.protocols.streams.group_files import Application, Member, application
from kipcheck.conformance.protocols.streams.model.members import Binary, Endless, Fatal, Memory, Misconfigured
from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.wire.workbench import Unreadable

REFERENCE: Final = "reference"
JAR: Final = "java:kafka-streams:"
Line: TypeAlias = tuple[str, bool]
"""A line of JSON, and whether it is a result."""
BinaryFactory: TypeAlias = Callable[[Member, Application], Binary]
"""Returns the binary of a member. Errors: those of ``Binary``."""
Computation: TypeAlias = Callable[[Application, BinaryFactory], dict[str, Any]]


class NoStreamsMembers(Exception):
    """The target or the edition does not support members of Streams groups; the message names those that do."""


def subscribed(text: str, target: Target, edition: str) -> Line:
    ((line, well),) = _answers([application(text)], target, edition, _subscriptions)
    return line, well


def subscribe_lines(lines: Iterable[str], target: Target, edition: str) -> Iterator[Line]:
    """One result for each line, also for unreadable ones."""
    return _answers(read_lines(application, lines), target, edition, _subscriptions)


def assigned(text: str, target: Target, edition: str) -> Line:
    ((line, well),) = _answers([_group(text)], target, edition, _assignments)
    return line, well


def assign_lines(lines: Iterable[str], target: Target, edition: str) -> Iterator[Line]:
    """One result for each line, also for unreadable ones."""
    return _answers(read_lines(_group, lines), target, edition, _assignments)


def _group(text: str) -> Application:
    streams_app = application(text)
    streams_app.joining()  # raises if a member has no user data
    return streams_app


def _answers(
    applications: Iterable[Application | Unreadable], target: Target, edition: str, compute: Computation
) -> Iterator[Line]:
    try:
        with binaries(target.name, edition) as made:
            for read in applications:
                yield error_line(read.kind, str(read)) if isinstance(read, Unreadable) else _answer(read, made, compute)
    except NoStreamsMembers as none:
        for read in applications:
            kind, why = (read.kind, str(read)) if isinstance(read, Unreadable) else ("Unsupported", str(none))
            yield error_line(kind, why)


def _answer(streams_app: Application, made: BinaryFactory, compute: Computation) -> Line:
    try:
        return json.dumps(compute(streams_app, made), ensure_ascii=False), True
    except Endless as none:
        return error_line("timeout", none.why)
    except (Fatal, _Failed) as thrown:
        return error_line(thrown.kind, thrown.why)
    except Unanswerable as cannot:
        return error_line("Unsupported", str(cannot))


class _Failed(Exception):
    """An exception of one member; the message names the member."""

    def __init__(self, member: Member, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.why = f"{member.id}: {why}"


def _subscriptions(streams_app: Application, made: BinaryFactory) -> dict[str, Any]:
    subscriptions = {}
    for member in streams_app.members:
        binary, memory = _started(member, streams_app, made)
        try:
            _, data = binary.subscribe(memory, member.topics)
        except Endless:
            raise
        except Fatal as thrown:
            raise _Failed(member, thrown.kind, thrown.why) from None
        assert isinstance(data, bytes)
        subscriptions[member.id] = {"userData": data.hex()}
    return subscriptions


def _assignments(streams_app: Application, made: BinaryFactory) -> dict[str, Any]:
    """The first member is the leader."""
    binary, memory = _started(streams_app.members[0], streams_app, made)
    _, shares = binary.lead(memory, streams_app.topics, streams_app.joining())
    sent: dict[str, Any] = {member.id: {"partitions": [], "userData": None} for member in streams_app.members}
    for id, share in shares.items():
        assert isinstance(share.data, bytes)
        partitions = [list(member) for member in sorted(share.partitions)]
        sent[id] = {"partitions": partitions, "userData": share.data.hex()}
    return dict(sorted(sent.items()))


def _started(member: Member, streams_app: Application, made: BinaryFactory) -> tuple[Binary, Memory]:
    try:
        binary = made(member, streams_app)
        return binary, member.remembers(binary.initial())
    except Misconfigured as refused:
        raise _Failed(member, refused.kind, str(refused)) from None


@contextmanager
def binaries(target: str, edition: str) -> Iterator[BinaryFactory]:
    """Errors: ``NoStreamsMembers``; LookupError for an unknown release; ``Unavailable``."""
    form = edition_named(edition)
    if form != KIP_268 and form.standing is not Standing.RELEASED:
        raise NoStreamsMembers(f"{edition} does not specify Streams groups: use apache@RELEASE or {KIP_268}")
    if target == REFERENCE:
        from kipcheck.conformance.protocols.streams.model.release_members import binary

        release = form.name if form.standing is Standing.DRAFT else form.release
        yield lambda member, streams_app: EncodedBinary(binary(streams_app.settings(member, release), form))
    elif target.startswith(JAR):
        release = target.removeprefix(JAR)
        if form.standing is Standing.DRAFT:
            raise NoStreamsMembers(f"{edition} is a draft, but a jar implements a release: use --edition apache")
        with open_jars([release]) as jars:
            yield lambda member, streams_app: jars.binary(streams_app.settings(member, release))
    else:
        raise NoStreamsMembers(f"{target} does not support Streams groups: use {REFERENCE} or {JAR}RELEASE")
