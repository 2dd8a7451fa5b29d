"""``kipcheck features --bootstrap-server``: the tool for operators on a running cluster, with released semantics.

A cluster in KRaft mode has one level of each feature. ``upgrade-all`` asks for the levels that a new cluster of a
release has; ``downgrade-all`` lowers what is above the levels that its nodes support.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

from kipcheck.conformance.cli import feature_updates
from kipcheck.conformance.cli.feature_state import FeatureState
from kipcheck.conformance.cli.options import FAILED, OK, print_harmless
from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.live.connections.security import OPEN, read_security
from kipcheck.conformance.live.controller.admin import FeatureAdmin, feature_admin
from kipcheck.conformance.live.coordinator.address import is_loopback
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.model.cluster import Node
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.model.ranges import ranges
from kipcheck.conformance.protocols.features.model.tool import DELETE, DOWNGRADE, Change, downgrades, upgrades
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, TypedUpdate
from kipcheck.conformance.wire.workbench import Unreadable

LOWERS: Final = (DOWNGRADE, DELETE)


def of_cluster(options: argparse.Namespace) -> int:
    """The exit code. Errors: ``Unreadable`` for options, ``InvalidSecurity``, ``Unanswered``."""
    host, port = options.bootstrap_server
    if not (options.allow_remote or is_loopback(host)):
        raise Unreadable("options", f"{host} is not this machine: add --allow-remote")
    security = read_security(options.config) if options.config else OPEN
    allows = lambda each: options.allow_remote or is_loopback(each)
    with feature_admin(host, port, allows, security, options.timeout) as admin:
        picture = admin.picture()
        state = state_of(picture)
        if options.action == "describe":
            for line in feature_updates.described(state):
                print_harmless(line)
            return OK
        if options.dry_run and not picture.supported:
            raise Unreadable("options", "the cluster validates no updates without applying them: leave out --dry-run")
        return _update(admin, state, _changes(options, state, picture), options)


def _update(admin: FeatureAdmin, state: FeatureState, changes: Sequence[Change], options: argparse.Namespace) -> int:
    if not changes:
        return OK
    lowers = UNSAFE_DOWNGRADE if options.unsafe else SAFE_DOWNGRADE
    updates = [TypedUpdate(each.feature, each.level, lowers if each.kind in LOWERS else UPGRADE) for each in changes]
    refused = admin.update(updates, options.dry_run)
    for line in feature_updates.lines(state, changes, [refused[each.feature] or "OK" for each in changes]):
        print_harmless(line)
    return FAILED if any(refused.values()) else OK


def _changes(options: argparse.Namespace, state: FeatureState, picture: Picture) -> list[Change]:
    """Errors: ``Unreadable``."""
    release = options.from_kafka_release
    if options.action == "update":
        if release is not None:
            raise Unreadable("options", "--from-kafka-release belongs to upgrade-all and downgrade-all, not to update")
        return feature_updates.named_changes(state, options.upgrade, options.downgrade, options.delete)
    rules = rules_of(release or release_of(picture))
    if options.action == "upgrade-all":
        return upgrades(state, rules.defaults())
    return downgrades(state, {name: each.high for name, each in rules.declares()})


def state_of(picture: Picture) -> FeatureState:
    """A cluster as the draft's tool has it, with the broker that answered."""
    return FeatureState((ranges(picture.supported),), Node(picture.epoch, True, ranges(picture.finalized)))


def rules_of(release: str) -> Rules:
    """Errors: ``Unreadable``."""
    try:
        if release in patches():
            return Rules.of(release)
        why = f"unknown release {release!r}{hint(release, patches())}"
    except ValueError as too_old:
        why = str(too_old)
    raise Unreadable("options", f"--from-kafka-release: {why}")


def release_of(picture: Picture) -> str:
    """The newest release whose nodes support what the broker supports. Errors: ``Unreadable`` if none does."""
    wanted = {name: span for name, span in picture.supported.items() if span != (0, 0)}
    for each in reversed(patches()):
        try:
            declared: Mapping[str, tuple[int, int]] = {
                name: (span.low, span.high) for name, span in Rules.of(each).declares()
            }
        except ValueError:
            break
        if declared == wanted:
            return each
    raise Unreadable(
        "options", "the broker supports levels that no known release does: name the release with --from-kafka-release"
    )
