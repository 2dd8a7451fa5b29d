"""``java:kafka-streams:RELEASE`` as an operator tool: a group of its members.

The group is a model, without sockets, broker or clock. The jar provides its StreamsPartitionAssignor for every member
of its own release; members of a future release use kipcheck's assignor, since no jar has them.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.clients.java.streams_members import Jars, Unanswerable, open_jars
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.streams.model.group_model import StreamsMembers
from kipcheck.conformance.protocols.streams.model.members import FUTURE, Binary, Settings
from kipcheck.conformance.protocols.streams.ops import STREAMS
from kipcheck.conformance.protocols.streams.target import in_bytes, machine_adapter
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Claims, Session, Target, TargetInfo
from kipcheck.conformance.targets.session_wrapper import SessionWrapper, TargetWrapper

TOPOLOGIES: Final = "topologies"
LIMITS: Final[Mapping[str, str]] = {TOPOLOGIES: "a release cannot represent topologies of later releases"}
"""The limits of a jar in a group."""


class StreamsJar(TargetWrapper):
    """``java:kafka-streams:RELEASE`` with all its roles, and a group of its members as operator tool."""

    def __init__(self, target: Target, release: str) -> None:
        super().__init__(target)
        self._release = release

    def open(self, edition: str, role: Role, /) -> AbstractContextManager[Session]:
        return self._streams_group(edition) if role is Role.OPERATOR_TOOL else self._itself(edition, role)

    @contextmanager
    def _itself(self, edition: str, role: Role) -> Iterator[Session]:
        with self._target.open(edition, role) as session:
            yield _SessionWithInfo(session, with_streams_groups(session.info))

    @contextmanager
    def _streams_group(self, edition: str) -> Iterator[Session]:
        with self._target.open(edition, Role.CODEC) as session:
            info = with_streams_groups(session.info)
        adapter = _Adapter(info, self._release)
        with open_jars([self._release]) as jars:
            adapter.jars = jars
            with InProcess(adapter).open(edition, Role.OPERATOR_TOOL) as session:
                yield _SessionWithInfo(session, info)


def with_streams_groups(info: TargetInfo) -> TargetInfo:
    machines = (*info.claims.machines, STREAMS)
    claims = replace(info.claims, machines=machines, limits={**info.claims.limits, **LIMITS})
    return replace(info, claims=claims, roles=claims.roles)


class _SessionWithInfo(SessionWrapper):
    """Reports the target's own information."""

    def __init__(self, session: Session, info: TargetInfo) -> None:
        super().__init__(session)
        self._info = info
        self.run = session.run

    @property
    def info(self) -> TargetInfo:
        return self._info


class _Adapter:
    issues = ""

    def __init__(self, info: TargetInfo, release: str) -> None:
        self.name = info.name
        self.version = info.version
        self._claims = info.claims
        self._release = release
        self.jars: Jars

    def claims(self) -> Claims:
        return self._claims

    def configure(self, edition_name: str, /) -> str | None:
        # A future member has the rebalance protocols of the release that it meets.
        ours = in_bytes(edition(f"apache@{self._release}"))

        def made(settings: Settings) -> Binary:
            return ours(settings) if settings.release == FUTURE else self.jars.binary(settings)

        self._player = machine_adapter(StreamsMembers(made, self._release))
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        try:
            return self._player.answer(op)
        except Unanswerable as why:
            return {"status": "unsupported", "message": str(why), "capability": TOPOLOGIES}
        except LookupError as stranger:
            return {"status": "unsupported", "message": str(stranger), "capability": TOPOLOGIES}
