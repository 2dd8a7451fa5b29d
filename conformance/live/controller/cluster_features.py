"""Features of a running cluster, as the tool for operators reads and changes them (``kipcheck features``).

A cluster in KRaft mode has one level of each feature. ``upgrade-all`` requests the levels that a new cluster of a
release has; ``downgrade-all`` lowers what is above the levels that its nodes support.
"""

from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.model.cluster import Node
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.model.ranges import ranges
from kipcheck.conformance.protocols.features.model.tool import Change, downgrades, upgrades
from kipcheck.conformance.protocols.features.state_file import FeatureState
from kipcheck.conformance.wire.workbench import Unreadable


def state_of(picture: Picture) -> FeatureState:
    """A cluster as the draft's tool has it, with the broker that answered."""
    return FeatureState((ranges(picture.supported),), Node(picture.epoch, True, ranges(picture.finalized)))


def changes_to(picture: Picture, release: str | None, *, upgrade: bool) -> list[Change]:
    """Of ``upgrade-all`` or ``downgrade-all``, with the tool of a release; None: that of the broker.

    Errors: ``Unreadable`` for a release without features, or a broker of none that is known.
    """
    rules = _rules_of(release or _release_of(picture))
    if upgrade:
        return upgrades(state_of(picture), rules.defaults())
    return downgrades(state_of(picture), {name: span.high for name, span in rules.declares()})


def _rules_of(release: str) -> Rules:
    try:
        if release in patches():
            return Rules.of(release)
        why = f"unknown release {release!r}{hint(release, patches())}"
    except ValueError as too_old:
        why = str(too_old)
    raise Unreadable("options", f"--from-kafka-release: {why}")


def _release_of(picture: Picture) -> str:
    """The newest release whose nodes support what the broker supports."""
    supported = {name: span for name, span in picture.supported.items() if span != (0, 0)}
    for release in reversed(patches()):
        try:
            if Rules.of(release).declares_only(supported):
                return release
        except ValueError:
            break
    raise Unreadable(
        "options", "the broker supports levels that no known release does: name the release with --from-kafka-release"
    )
