"""Selects the model of a member by its release and the edition."""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.release import Release, judged_lines, releases
from kipcheck.conformance.protocols.streams.model.deviations import ALWAYS_TWO, UNOWED
from kipcheck.conformance.protocols.streams.model.draft import VERSIONS, Draft
from kipcheck.conformance.protocols.streams.model.members import FUTURE, OWN, Binary, Settings
from kipcheck.conformance.protocols.streams.model.released import Released
from kipcheck.conformance.protocols.streams.model.rules import LINES, NEWEST_VERSION, Rules

NEWEST_RULES: Final = judged_lines("streams")[-1]
"""The release whose rules the simulated future version uses."""
PATCHED: Final = "0.10.1.2-0.10.1.99"
"""The draft's fix release of the 0.10.1 line, which was never released (268-09, 268-41, 268-53)."""


@lru_cache(maxsize=4096)
def binary(settings: Settings, edition: Edition, fitted: bool = True) -> Binary:
    """The model for ``settings.release``: ``own`` or the edition's name, ``FUTURE``, or an exact patch release.

    ``fitted``: see ``Rules.of``. Errors: LookupError for a release that the edition does not have.
    """
    draft = edition.standing is Standing.DRAFT
    if settings.release in (OWN, edition.name, str(edition)):
        settings = replace(settings, release=edition.name if draft else edition.release)
    if draft and settings.release in VERSIONS:
        return Draft(settings)
    if settings.release == FUTURE:
        return Released(settings, future(edition.release, fitted))
    try:
        rules = Rules.of(settings.release, fitted)
    except ValueError as wrong:
        raise LookupError(f"{edition} has no members of release {settings.release}: {wrong}") from None
    return Released(settings, old(rules) if draft else rules)


@lru_cache(maxsize=4096)
def owed_binary(settings: Settings, edition: Edition) -> Binary:
    """The model in ``apache``, which names no release: a member of any release that does what it owes. In other
    editions that of ``binary``. Errors: as ``binary``."""
    made = binary(settings, edition)
    return made if edition.exact or not isinstance(made, Released) else _mended(made)


@lru_cache(maxsize=4096)
def owed_beside(settings: Settings, edition: Edition) -> Binary:
    """A member that does what it owes, beside one of the edition's release. Errors: as ``binary``."""
    made = binary(settings, edition)
    assert isinstance(made, Released)
    return _mended(made)


def _mended(made: Released) -> Released:
    if made.rules.release == FUTURE:
        rules = replace(made.rules, departures=made.rules.departures - UNOWED, mended=True)
        return Released(made.settings, rules)
    return Released(made.settings, made.rules.owed())


def future(over: str, fitted: bool = True) -> Rules:
    """The newest release's rules, with one more version (268-27), and the rebalance protocols of the release ``over``,
    so that a single bounce suffices."""
    protocols = Rules.of(over).protocols
    return replace(
        Rules.of(NEWEST_RULES, fitted), release=FUTURE, latest=NEWEST_VERSION + 1, accepts=LINES, protocols=protocols
    )


def old(rules: Rules) -> Rules:
    """The rules of a member older than the draft. Errors: LookupError for a newer release."""
    at = Release.parse(rules.release)
    if at >= Release.parse(since("kip-268")):
        raise LookupError(f"release {rules.release} is newer than the draft: use a release before 2.0.0")
    if at in releases(PATCHED):
        return replace(rules, accepts=LINES[:1], departures=rules.departures - {ALWAYS_TWO})
    return rules
