"""Invariants of the metadata versions that members of a Streams group use: at the start, and after assignments."""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.streams.invariants import CONFIGURED, VERSIONS, trace
from kipcheck.conformance.protocols.streams.model.members import FUTURE, AssignmentInfo, Misconfigured
from kipcheck.conformance.protocols.streams.model.rules import LINES, Rules
from kipcheck.conformance.protocols.streams.ops import Began, Refused

PLACE = 10

of_versions = partial(trace.streams_invariant, checks=(VERSIONS,))
of_configured = partial(trace.streams_invariant, checks=(CONFIGURED,))

BEFORE_PROBING = LINES[: LINES.index("2.0")]
"""Values of ``upgrade.from`` that lower the used version."""
DRAFTED = BEFORE_PROBING
"""The values that the draft's release accepts (268-08)."""


def values(release: str) -> tuple[str, ...] | None:
    """The values of ``upgrade.from`` that a release accepts; None if it does not check them, or they are unknown."""
    if trace.is_draft(release):
        return DRAFTED
    return None if release == FUTURE else _rules(release).accepts or None


def _rules(release: str) -> Rules:
    """The settings of a release, without its slips: 268-55 names the values that it refuses by mistake."""
    return Rules.of(release).owed()


def begins_in(life: trace.Life) -> int | None:
    """The version of its first subscription; None if it must not start at all."""
    if trace.is_draft(life.release) or life.release == FUTURE:
        if life.upgrade_from not in BEFORE_PROBING:
            return life.latest
        return 1 if life.upgrade_from == LINES[0] else 2
    try:
        return _rules(life.release).used(life.upgrade_from)
    except Misconfigured:
        return None


def has_fixed_version(life: trace.Life) -> bool:
    """Does ``upgrade.from`` fix an older version for as long as the process runs?"""
    begins = begins_in(life)
    return begins is not None and begins < life.latest


# How they begin


@impact(
    "A restarted process subscribes in an old version", "refused peer", "versions", "stuck-upgrade", links=("KIP-268",)
)
@of_versions("streams/restarts-afresh", "268-47", "268-08", "268-13", "268-23")
def restarts_afresh(history: History) -> Iterator[Violation]:
    """A process that starts subscribes in its latest version, whatever version it used before it ended."""
    known: set[trace.Life] = set()
    for round in trace.streams_trace(history).rounds:
        for each in round.members:
            if each.life is None or each.life in known:
                continue
            known.add(each.life)
            wanted = begins_in(each.life)
            if wanted is not None and not has_fixed_version(each.life) and each.info.used != wanted:
                why = (
                    f"{each.life} starts in step {each.life.began + 1}, and subscribes in version {each.info.used} in "
                    f"generation {round.number}; its latest is {wanted}, and no upgrade.from lowers it"
                )
                yield Violation(why, (each.life.began, round.at), f"version {wanted}", f"version {each.info.used}",
                                shape=("begins", "below" if each.info.used < wanted else "above"))  # fmt: skip


@impact(
    "upgrade.from does not have its effect",
    "refused peer",
    "negotiation",
    "crash",
    "stuck-upgrade",
    links=("KIP-268", "KAFKA-6054"),
)
@of_configured("streams/upgrade-from", "268-10", "268-13", "268-41")
def upgrade_from(history: History) -> Iterator[Violation]:
    """If upgrade.from names a release before version probing, a member subscribes in the version of that release."""
    for round in trace.streams_trace(history).rounds:
        for each in round.members:
            if each.life is None or not has_fixed_version(each.life):
                continue
            wanted = begins_in(each.life)
            if each.info.used != wanted:
                why = (
                    f"{each.life} subscribes in version {each.info.used} in generation {round.number}; "
                    f"the version of {each.life.upgrade_from} is {wanted}"
                )
                yield Violation(why, (each.life.began, round.at), f"version {wanted}", f"version {each.info.used}",
                                shape=("upgrade.from", "ignored"))  # fmt: skip


@impact(
    "A wrong value of upgrade.from is accepted, or a right one refused",
    "refused peer",
    "guards",
    "stuck-upgrade",
    "misled-operator",
    links=("KIP-268",),
)
@of_configured("streams/refuses-values", "268-08", "268-09", "268-39", "268-41", "268-55")
def refuses_values(history: History) -> Iterator[Violation]:
    """A value of upgrade.from is a configuration error exactly if the release does not know it."""
    found = trace.streams_trace(history)
    for scene in found.observed:
        match scene.observation.seen:
            case Began(member, upgrade_from=str(value)) if scene.life is not None:
                taken = values(scene.life.release)
                if taken is not None and value not in taken:
                    why = f"{member} starts as {scene.life.release} with upgrade.from={value}, an unknown value"
                    yield Violation(why, (scene.at,), "a configuration error", "it starts", shape=("value", "taken"))
            case Refused(member, release, value, message):
                taken = values(release)
                if taken is None or value is None or value in taken:
                    what = "no upgrade.from" if value is None else f"upgrade.from={value}"
                    why = f"{member} fails to start as {release} with {what}: {message}"
                    yield Violation(why, (scene.at,), "it starts", message, shape=("value", "refused"))


@impact(
    "A member uses another rebalance protocol than configured",
    "double processing",
    "negotiation",
    "double-processing",
    "stuck-upgrade",
    links=("KIP-429",),
)
@of_configured("streams/protocols", "268-38", "268-39")
def protocols(history: History) -> Iterator[Violation]:
    """Members from 2.4 on are cooperative unless upgrade.from names an older release, and in 4.x always."""
    for round in trace.streams_trace(history).rounds:
        for each in round.members:
            if each.life is None or each.life.release == FUTURE:
                continue  # No release defines what a future member supports: it follows the members that it meets.
            if each.joining.cooperative != (wanted := cooperates(each.life)):
                what = {True: "cooperative", False: "eager"}
                why = f"{each.life} joins generation {round.number} as a member that is {what[not wanted]}"
                yield Violation(why, (each.life.began, round.at), what[wanted], what[not wanted],
                                shape=("protocol", what[not wanted]))  # fmt: skip


def cooperates(life: trace.Life) -> bool:
    return not trace.is_draft(life.release) and COOPERATIVE in Rules.of(life.release).supports(life.upgrade_from)


# After an assignment


@impact(
    "A member uses a metadata version that it cannot read",
    "refused peer",
    "versions",
    "crash",
    "stuck-upgrade",
    links=("KIP-268", "KAFKA-8649"),
)
@of_versions("streams/used-within-own", "268-19", "268-35")
def used_within_own(history: History) -> Iterator[Violation]:
    """No member uses a metadata version above its own latest."""
    for _, violation in _above_own(history):
        yield violation


@impact(
    "A member adopts a version without a check",
    "refused peer",
    "versions",
    "crash",
    "stuck-upgrade",
    links=("KAFKA-8649",),
)
@of_versions("streams/adopts-blindly", "268-33", grade=Grade.INFO)
def adopts_blindly(history: History) -> Iterator[Violation]:
    """Releases that adopt a supported version without a check may use a version above their own latest."""
    for life, violation in _above_own(history):
        if life.bound("268-33"):
            yield violation


def _above_own(history: History) -> Iterator[tuple[trace.Life, Violation]]:
    """Each process once."""
    found: set[trace.Life] = set()
    for round in trace.streams_trace(history).rounds:
        for each in round.members:
            if each.life is not None and each.life not in found and each.info.used > each.life.latest:
                found.add(each.life)
                why = f"{each.life} knows up to {each.life.latest}; it uses {each.info.used} in {round.where}"
                yield each.life, Violation(why, (round.at,), f"at most {each.life.latest}", str(each.info.used),
                                           shape=("above own", "says"))  # fmt: skip
        for one in round.processed:
            if one.life not in found and one.event.used > one.life.latest:
                found.add(one.life)
                sent = one.given.info if one.given is not None else None
                assigned = "" if sent is None else f" was sent {_two(sent)} in generation {round.number} and"
                why = f"{one.life} knows up to {one.life.latest},{assigned} uses {one.event.used} from now on"
                yield one.life, Violation(why, (round.at, one.at), f"at most {one.life.latest}", str(one.event.used),
                                          shape=("above own", "uses"))  # fmt: skip


def _two(info: AssignmentInfo) -> str:
    return (
        f"version {info.used} with supported version {info.supported}"
        if info.used >= trace.FIRST_PROBED
        else f"version {info.used}"
    )


@impact(
    "A member subscribes in a version that its leader cannot read",
    "refused peer",
    "negotiation",
    "crash",
    "stuck-upgrade",
    links=("KIP-268",),
)
@trace.streams_invariant(
    "streams/used-within-told", "268-17", "268-19", "268-35", checks=(VERSIONS, "streams/failures")
)
def used_within_supported(history: History) -> Iterator[Violation]:
    """No member subscribes in a version above the supported version in its last assignment."""
    assigned: dict[trace.Life, tuple[int, int]] = {}
    for round in trace.streams_trace(history).rounds:
        for each in round.members:
            at, most = assigned.get(each.life, (0, each.info.used)) if each.life is not None else (0, each.info.used)
            if each.info.used > most:
                why = (
                    f"{each.life} got supported version {most} in step {at + 1}, and subscribes in {each.info.used} in "
                    f"generation {round.number}"
                )
                yield Violation(why, (at, round.at), f"at most {most}", str(each.info.used), shape=("above told",))
        for one in round.processed:
            info = one.given.info if one.given is not None else None
            if info is not None and not info.error and info.used >= trace.FIRST_PROBED and one.life.bound("268-17"):
                assigned[one.life] = one.at, info.supported


@impact(
    "A member uses an unexpected version after an assignment",
    "refused peer",
    "negotiation",
    "stuck-upgrade",
    links=("KIP-268",),
)
@of_versions("streams/follows", "268-17", "268-19", "268-35", "268-36")
def follows(history: History) -> Iterator[Violation]:
    """After an assignment a member uses the version that follows from the used and supported version in it."""
    for round, each, info in trace.processed(history):
        subscribed = round.subscribed(each.life)
        if info.used < trace.FIRST_PROBED or subscribed is None or not each.life.bound("268-17"):
            continue
        used = subscribed.info.used
        wanted = follows_from(each.life, used, info)
        if each.event.used > each.life.latest:
            continue  # That is another invariant's: used-within-own.
        if each.event.used != wanted:
            why = (
                f"{each.life} subscribed in {used}, was sent {_two(info)} in generation {round.number}, and uses "
                f"{each.event.used} from now on"
            )
            how = "falls" if wanted < used else "rises" if wanted > used else "stays"
            yield Violation(why, (round.at, each.at), f"version {wanted}", f"version {each.event.used}",
                            shape=("follows", how))  # fmt: skip


def follows_from(life: trace.Life, used: int, info: AssignmentInfo) -> int:
    """The version to use: never above the own latest (268-19); as released the supported one if it changes."""
    if trace.is_draft(life.release):
        return min(info.supported, life.latest)
    return min(info.supported, life.latest) if has_cause(used, info) else used


def has_cause(used: int, info: AssignmentInfo) -> bool:
    """Does the assignment change the used version, as released (268-35, 268-36)?"""
    return info.used < used or info.supported > used


@impact(
    "An assignment in an old version changes the version of a member",
    "refused peer",
    "versions",
    "stuck-upgrade",
    links=("KIP-268",),
)
@of_versions("streams/old-data-moves-nobody", "268-48")
def old_data_changes_no_version(history: History) -> Iterator[Violation]:
    """An assignment in version 1 or 2 does not change a member's used version."""
    for round, each, info in trace.processed(history):
        subscribed = round.subscribed(each.life)
        if info.used >= trace.FIRST_PROBED or subscribed is None or not each.life.bound("268-48"):
            continue
        used = subscribed.info.used
        if each.event.used != used:
            why = (
                f"{each.life} subscribed in {used}, was sent version {info.used} in generation {round.number}, and "
                f"uses {each.event.used} from now on"
            )
            yield Violation(why, (round.at, each.at), f"version {used}", f"version {each.event.used}",
                            shape=("old data", "moves"))  # fmt: skip


@impact("An assignment that is too new is accepted", "wrong data", "versions", "wrong-data", links=("KIP-268",))
@of_versions("streams/refuses-newer", "268-35")
def refuses_newer(history: History) -> Iterator[Violation]:
    """An assignment above the used version, or with a supported version above the own latest, is refused."""
    for round, each, info in trace.processed(history):
        subscribed = round.subscribed(each.life)
        if info.used < trace.FIRST_PROBED or subscribed is None or not each.life.bound("268-35"):
            continue
        if is_to_be_refused(each.life, subscribed.info.used, info):
            why = (
                f"{each.life} subscribed in {subscribed.info.used} and knows up to {each.life.latest}; it was sent "
                f"{_two(info)} in generation {round.number}, and accepts it"
            )
            what = "version" if info.used > subscribed.info.used else "second number"
            yield Violation(why, (round.at, each.at), "an error", "accepted", shape=("taken", what))


def is_to_be_refused(life: trace.Life, used: int, info: AssignmentInfo) -> bool:
    return info.used > used or (info.used >= trace.FIRST_PROBED and info.supported > life.latest)
