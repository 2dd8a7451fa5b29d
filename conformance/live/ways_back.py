"""Plays ways back: a cluster of an old release, restarted with a new one, raises a level and lowers it, and the old
release is started on its data: at once, and once each node has a snapshot of the metadata from after the lowering.

With ZooKeeper the level is inter.broker.protocol.version, and the old release has to read the groups, offsets and
producers that the new one wrote at each version.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NamedTuple

from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.live import log_directory, metadata_snapshots
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.controller.admin import FeatureAdmin, Unanswered, feature_admin
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, UPGRADE, TypedUpdate
from kipcheck.conformance.protocols.features.upgrades import ways_back
from kipcheck.conformance.protocols.features.upgrades.upgrade_plan import plan
from kipcheck.conformance.protocols.features.upgrades.ways_back import NONE, Played, Return, Way
from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.toolchains.kafka_broker import ENDS_S, HOST, Programs
from kipcheck.conformance.targets.toolchains.kafka_nodes import BOTH, CONTROLLER, Nodes, cluster
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder
from kipcheck.conformance.wire.stored_records import InterBroker

LATEST_S: Final = 120.0
"""How long nodes may take to register, to read all records, and to write a snapshot, on a busy machine."""
ENDS_WITHIN_S: Final = 5.0
"""A node that cannot read the log of metadata ends within this time after it answers."""
FATAL: Final = re.compile("Encountered fatal fault|Exiting Kafka due to fatal exception")
"""A node that logs it ends, or cannot: the shutdown of 3.3 waits for its startup."""
EXCEPTION: Final = re.compile(r"^(?:Caused by: )?(?:\w+\.)+\w*(?:Exception|Error): (.+)$", re.MULTILINE)


def play(way: Way) -> Played:
    """Errors: ``Unavailable``; ``Broken`` for an unclear outcome, such as a node that neither answers nor ends."""
    match way.feature:
        case ways_back.INTER_BROKER | ways_back.PINNED:
            return _with_zookeeper(way)
        case ways_back.BINARIES:
            return _binaries(way)
        case _:
            return _with_kraft(way)


def _binaries(way: Way) -> Played:
    with log_directory.directory() as folder:
        there, back = log_directory.there_and_back(way.old, way.new, folder)
    if not there.opened or there.lost:
        raise Broken(f"the upgrade to {way.new} fails: {there.why or ', '.join(there.lost)}")
    found = Return(back.opened and not back.lost, back.why or ", ".join(back.lost))
    return Played(way, 0, 0, NONE, NONE, found, None)


# KRaft


def _with_kraft(way: Way) -> Played:
    old, new = Rules.of(way.old), Rules.of(way.new)
    names = table()["feature-levels"]["metadata-names"]
    roles = {1: BOTH} | {number: CONTROLLER for number in range(2, way.nodes + 1)}
    steps, lowered = _steps(way, old, new), NONE
    with cluster(names[old.newest - 1], roles) as nodes:
        _start(nodes, way.old)
        _restart(nodes, way.new)
        raised = _refusal(_update(nodes, TypedUpdate(each.feature, each.after, UPGRADE), LATEST_S) for each in steps)
        if raised == NONE:
            lowered = _refusal(
                _update(nodes, TypedUpdate(each.feature, each.before, SAFE_DOWNGRADE))
                for each in reversed(steps) if each.lowers
            )  # fmt: skip
        end = _end(nodes)
        at_once, after_snapshot = _return(nodes, way.old), None
        if raised == lowered == NONE:
            nodes.settings = metadata_snapshots.SOON
            _restart(nodes, way.new)
            await_snapshots(nodes, end)
            after_snapshot = _return(nodes, way.old)
    return Played(way, *_shown(way, steps), raised, lowered, at_once, after_snapshot)


class _Step(NamedTuple):
    feature: str
    before: int
    after: int
    lowers: bool
    """Whether it is requested that the level falls again."""


def _steps(way: Way, old: Rules, new: Rules) -> list[_Step]:
    if way.feature == ways_back.TOGETHER:
        return [_Step(each.feature, each.before, each.after, each.lowered) for each in plan(way.old, way.new).steps]
    return [_Step(way.feature, old.defaults().get(way.feature, 0), new.supported[way.feature].high, True)]


def _shown(way: Way, steps: list[_Step]) -> tuple[int | str, int | str]:
    """The levels before and after, as a row has them."""
    if way.feature != ways_back.TOGETHER:
        return steps[0].before, steps[0].after
    before = ", ".join(f"{each.feature} {each.before}" for each in steps)
    return before, ", ".join(f"{each.feature} {each.after}" for each in steps)


def _refusal(errors: Iterator[str]) -> str:
    """The first refusal, after which no update is sent, or NONE."""
    return next((each for each in errors if each != NONE), NONE)


def _start(nodes: Nodes, release: str) -> None:
    for number in sorted(nodes.nodes, reverse=True):
        nodes.start(number, release)
    for number in nodes.nodes:
        nodes.wait(number)


def _restart(nodes: Nodes, release: str) -> None:
    """One node after the other, the broker last. Errors: ``Broken``."""
    for number in sorted(nodes.nodes, reverse=True):
        nodes.stop(number)
        nodes.start(number, release)
        nodes.wait(number)
    _end(nodes)


def _return(nodes: Nodes, release: str) -> Return:
    """Restarts with the old release, up to the first node that ends.

    Errors: ``Broken`` if a node neither runs nor ends.
    """
    written = {number: _size(nodes, number) for number in nodes.nodes}
    unclear: Broken | None = None
    try:
        for number in sorted(nodes.nodes, reverse=True):
            nodes.stop(number)
            nodes.start(number, release)
            nodes.wait(number)
            if nodes.ended(number, ENDS_WITHIN_S)[0] is not None:
                break
        else:
            _end(nodes)
    except Broken as wrong:
        unclear = wrong
    for number, size in written.items():
        if (why := _why_ended(nodes, number, size)) is not None:
            return Return(False, why)
    if unclear is not None:
        raise unclear
    return Return(True)


def _size(nodes: Nodes, number: int) -> int:
    """Of the log of a node, in characters: nodes append to it."""
    return len((nodes.nodes[number].folder / "log").read_text("utf-8", "replace"))


def _why_ended(nodes: Nodes, number: int, written: int) -> str | None:
    """The first exception in the log of a node that ended, after the first ``written`` characters; None: it runs."""
    code, log = nodes.ended(number, ENDS_WITHIN_S)
    if code is None and not FATAL.search(log, written):
        return None
    found = EXCEPTION.search(log, written)
    return found[1].strip() if found else f"exit code {code} without an exception"


@contextmanager
def _admin(nodes: Nodes) -> Iterator[FeatureAdmin]:
    with feature_admin(HOST, nodes.nodes[1].port, lambda host: True) as found:
        yield found


def _end(nodes: Nodes) -> int:
    """The end of the log of metadata, once the broker has read all of it. Errors: ``Broken``, also without a leader."""
    until = monotonic() + LATEST_S
    while True:
        try:
            with _admin(nodes) as admin:
                admin.asked(lambda: requests.settled(admin.broker, admin.versions))
                return admin.asked(lambda: requests.quorum_of(admin.broker)).end
        except Unanswered as why:
            if monotonic() > until or nodes.ended(1, 0)[0] is not None:
                raise Broken(f"the metadata are not read within {LATEST_S:.0f} s: {why}") from None
        sleep(0.5)


def _update(nodes: Nodes, update: TypedUpdate, within_s: float = 0.0) -> str:
    """NONE, or the last refusal: a controller refuses a level until the last node has registered."""
    until = monotonic() + within_s
    while True:
        with _admin(nodes) as admin:
            found = admin.update([update], validate_only=False)[update.feature] or NONE
        if found == NONE or monotonic() > until:
            return found
        sleep(1)


def await_snapshots(nodes: Nodes, end: int) -> None:
    """Until each node has a snapshot of all records before ``end``. Errors: ``Broken``."""
    until = monotonic() + LATEST_S
    waiting = set(nodes.nodes)
    while waiting:
        waiting = {
            each for each in waiting if max(metadata_snapshots.ends(nodes.nodes[each].folder / "data"), default=0) < end
        }
        if waiting and monotonic() > until:
            raise Broken(f"no snapshot of the metadata up to {end} on nodes {sorted(waiting)} in {LATEST_S:.0f} s")
        sleep(0.5)


# ZooKeeper


def _with_zookeeper(way: Way) -> Played:
    """The old release writes, then the new one at the old version, and unless it is pinned at its own and the old."""
    low, high = (InterBroker.of(Release.parse(each)) for each in (way.old, way.new))
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("broker"))
        (client,) = stack.enter_context(kafka_broker.reserved_ports(1))
        zookeeper = folder / "zookeeper"
        zookeeper.mkdir()
        kafka_broker.start_zookeeper(Programs(zookeeper, kafka_broker.java_command(zookeeper, way.new), stack), client)
        left: list[log_directory.Written] = []
        visits = [(way.old, low), (way.new, low)]
        if way.feature == ways_back.INTER_BROKER:
            visits += [(way.new, high), (way.new, low)]
        else:
            high = low
        for release, version in visits:
            with _broker(folder, client, release, version) as port:
                missing = _missing(port, left)
                if missing:
                    raise Broken(f"{release} at {version} lost {', '.join(missing)}")
                left.append(log_directory.write(port, f"{release} at {version}, visit {len(left)}"))
        try:
            with _broker(folder, client, way.old, low) as port:
                lost = _missing(port, left)
        except Broken as wrong:
            lost = [str(wrong)]
    return Played(way, str(low), str(high), NONE, NONE, Return(not lost, ", ".join(lost)), None)


@contextmanager
def _broker(folder: Path, client: int, release: str, version: InterBroker) -> Iterator[int]:
    """Its port. It is stopped at the end, and its data stay."""
    with ExitStack() as stack:
        (port,) = stack.enter_context(kafka_broker.reserved_ports(1))
        place = folder / release
        place.mkdir(exist_ok=True)
        command = kafka_broker.java_command(place, release)
        run = Programs(place, command, stack, folder / "data", ENDS_S)
        settings = {**log_directory.SETTINGS, ways_back.INTER_BROKER: str(version)}
        kafka_broker.start_beside_zookeeper(run, port, client, settings)
        kafka_broker.wait_until_ready(run, release, port, coordinates=True)
        yield port


def _missing(port: int, left: list[log_directory.Written]) -> Sequence[str]:
    """What a broker does not find of what is ``left``, whose producers have new epochs afterwards."""
    lost = []
    for place, each in enumerate(left):
        missing, left[place] = log_directory.read(port, each)
        lost += [f"{what} of {each.by}" for what in missing]
    return lost
