"""``kipcheck features --bootstrap-server``: the tool for operators on a running cluster, with released semantics."""

import argparse
from collections.abc import Sequence
from typing import Final

from kipcheck.conformance.cli.options import FAILED, OK, print_harmless
from kipcheck.conformance.live.connections.security import OPEN, read_security
from kipcheck.conformance.live.controller.admin import FeatureAdmin, feature_admin
from kipcheck.conformance.live.controller.cluster_features import changes_to, state_of
from kipcheck.conformance.live.coordinator.address import is_loopback
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features import tool_report
from kipcheck.conformance.protocols.features.model.tool import DELETE, DOWNGRADE, Change
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, TypedUpdate
from kipcheck.conformance.protocols.features.state_file import FeatureState
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
            for line in tool_report.described(state):
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
    for line in tool_report.lines(state, changes, [refused[each.feature] or "OK" for each in changes]):
        print_harmless(line)
    return FAILED if any(refused.values()) else OK


def _changes(options: argparse.Namespace, state: FeatureState, picture: Picture) -> list[Change]:
    """Errors: ``Unreadable``."""
    release = options.from_kafka_release
    if options.action != "update":
        return changes_to(picture, release, upgrade=options.action == "upgrade-all")
    if release is not None:
        raise Unreadable("options", "--from-kafka-release belongs to upgrade-all and downgrade-all, not to update")
    return tool_report.named_changes(state, options.upgrade, options.downgrade, options.delete)
