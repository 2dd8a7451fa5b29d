"""Which metadata version members of a Streams group use: in which they begin, and what they make of what they hear."""

from collections.abc import Iterator

from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Grade, Violation
from kipcheck.conformance.invariants.streams_trace import FIRST_PROBED, Life, heard, is_draft, promised, story
from kipcheck.conformance.models.membership import COOPERATIVE
from kipcheck.conformance.models.streams.members import FUTURE, AssignmentInfo, Misconfigured
from kipcheck.conformance.models.streams.observed_events import Began, Refused
from kipcheck.conformance.models.streams.rules import LINES, Rules

BEFORE_PROBING = LINES[: LINES.index("2.0")]
"""Values of ``upgrade.from`` that lower the version."""
DRAFTED = BEFORE_PROBING
"""What the draft's release takes (268-08)."""


def values(release: str) -> tuple[str, ...] | None:
    """Of ``upgrade.from``, that a release takes; None where it does not look at it, or nobody knows."""
    if is_draft(release):
        return DRAFTED
    return None if release == FUTURE else Rules.of(release).accepts or None


def begins_in(life: Life) -> int | None:
    """The version in which it has to subscribe first; None where it must not run at all."""
    if is_draft(life.release) or life.release == FUTURE:
        if life.upgrade_from not in BEFORE_PROBING:
            return life.latest
        return 1 if life.upgrade_from == "0.10.0" else 2
    try:
        return Rules.of(life.release).used(life.upgrade_from)
    except Misconfigured:
        return None


def is_held_back(life: Life) -> bool:
    """Does ``upgrade.from`` make it speak an old version, for as long as it runs?"""
    begins = begins_in(life)
    return begins is not None and begins < life.latest


# How they begin


@promised("streams/restarts-afresh", "268-47", "268-08")
def restarts_afresh(history: History) -> Iterator[Violation]:
    """A process that starts subscribes in its newest version: what it was told before it ended is forgotten."""
    known: set[Life] = set()
    for round in story(history).rounds:
        for each in round.members:
            if each.life is None or each.life in known:
                continue
            known.add(each.life)
            wanted = begins_in(each.life)
            if wanted is not None and not is_held_back(each.life) and each.info.used != wanted:
                why = (
                    f"{each.life} starts in step {each.life.began + 1}, and subscribes in version {each.info.used} in "
                    f"generation {round.number}: it knows {wanted}, and nothing tells it otherwise"
                )
                yield Violation(why, (each.life.began, round.at), f"version {wanted}", f"version {each.info.used}",
                                shape=("begins", "below" if each.info.used < wanted else "above"))  # fmt: skip


@promised("streams/upgrade-from", "268-10", "268-41")
def upgrade_from(history: History) -> Iterator[Violation]:
    """With upgrade.from of a release before version probing a member subscribes in the version of that release."""
    for round in story(history).rounds:
        for each in round.members:
            if each.life is None or not is_held_back(each.life):
                continue
            wanted = begins_in(each.life)
            if each.info.used != wanted:
                why = (
                    f"{each.life} subscribes in version {each.info.used} in generation {round.number}; "
                    f"{each.life.upgrade_from} speaks {wanted}"
                )
                yield Violation(why, (each.life.began, round.at), f"version {wanted}", f"version {each.info.used}",
                                shape=("upgrade.from", "ignored"))  # fmt: skip


@promised("streams/refuses-values", "268-08", "268-09", "268-39", "268-41", "268-55")
def refuses_values(history: History) -> Iterator[Violation]:
    """A value of upgrade.from that the release does not know is a configuration error, and any other is none."""
    found = story(history)
    for scene in found.scenes:
        match scene.moment.seen:
            case Began(member, upgrade_from=str(value)) if scene.life is not None:
                taken = values(scene.life.release)
                if taken is not None and value not in taken:
                    why = f"{member} starts as {scene.life.release} with upgrade.from={value}, which that does not know"
                    yield Violation(why, (scene.at,), "a configuration error", "it starts", shape=("value", "taken"))
            case Refused(member, release, value, said):
                taken = values(release)
                if taken is None or value is None or value in taken:
                    what = "no upgrade.from" if value is None else f"upgrade.from={value}"
                    why = f"{member} does not start as {release} with {what}: {said}"
                    yield Violation(why, (scene.at,), "it starts", said, shape=("value", "refused"))


@promised("streams/protocols", "268-38", "268-39")
def protocols(history: History) -> Iterator[Violation]:
    """Cooperative rebalancing is offered from 2.4 on where upgrade.from names no older release, and in 4.x always."""
    for round in story(history).rounds:
        for each in round.members:
            if each.life is None or each.life.release == FUTURE:
                continue  # A future member offers what those offer that it is made to meet: no release says what.
            if each.told.cooperative != (wanted := cooperates(each.life)):
                what = {True: "cooperative", False: "eager"}
                why = f"{each.life} joins generation {round.number} as {what[not wanted]} member"
                yield Violation(why, (each.life.began, round.at), what[wanted], what[not wanted],
                                shape=("protocol", what[not wanted]))  # fmt: skip


def cooperates(life: Life) -> bool:
    return not is_draft(life.release) and COOPERATIVE in Rules.of(life.release).supports(life.upgrade_from)


# What they make of what they hear


@promised("streams/used-within-own", "268-19", "268-35")
def used_within_own(history: History) -> Iterator[Violation]:
    """Nobody uses a metadata version above its own latest."""
    yield from _above_own(history, known=False)


@promised("streams/adopts-blindly", "268-33", grade=Grade.INFO)
def adopts_blindly(history: History) -> Iterator[Violation]:
    """A release that raises its used version without a look at its own latest comes above it."""
    yield from _above_own(history, known=True)


def _above_own(history: History, known: bool) -> Iterator[Violation]:
    """``known``: of releases of which that is known, or of all others. Each process once."""
    found: set[Life] = set()
    for round in story(history).rounds:
        for each in round.members:
            if each.life is not None and each.life not in found and each.info.used > each.life.latest:
                found.add(each.life)
                if each.life.bound("268-33") == known:
                    why = f"{each.life} knows {each.life.latest}, and subscribes in {each.info.used} in {round.where}"
                    yield Violation(why, (round.at,), f"at most {each.life.latest}", str(each.info.used),
                                    shape=("above own", "says"))  # fmt: skip
        for one in round.heard:
            if one.life not in found and one.seen.used > one.life.latest:
                found.add(one.life)
                if one.life.bound("268-33") == known:
                    sent = one.given.info if one.given is not None else None
                    told = "" if sent is None else f" was sent {_two(sent)} in generation {round.number} and"
                    why = f"{one.life} knows {one.life.latest},{told} uses {one.seen.used} from now on"
                    yield Violation(why, (round.at, one.at), f"at most {one.life.latest}", str(one.seen.used),
                                    shape=("above own", "uses"))  # fmt: skip


def _two(info: AssignmentInfo) -> str:
    return (
        f"version {info.used} with {info.supported} behind it" if info.used >= FIRST_PROBED else f"version {info.used}"
    )


@promised("streams/used-within-told", "268-17", "268-19", "268-35")
def used_within_told(history: History) -> Iterator[Violation]:
    """Nobody subscribes in a version above the one that it was last told."""
    told: dict[Life, tuple[int, int]] = {}
    for round in story(history).rounds:
        for each in round.members:
            at, most = told.get(each.life, (0, each.info.used)) if each.life is not None else (0, each.info.used)
            if each.info.used > most:
                why = (
                    f"{each.life} was told in step {at + 1} that its leader supports {most}, and subscribes in "
                    f"{each.info.used} in generation {round.number}"
                )
                yield Violation(why, (at, round.at), f"at most {most}", str(each.info.used), shape=("above told",))
        for one in round.heard:
            info = one.given.info if one.given is not None else None
            if info is not None and not info.error and info.used >= FIRST_PROBED and one.life.bound("268-17"):
                told[one.life] = one.at, info.supported


@promised("streams/follows", "268-17", "268-19", "268-35", "268-36")
def follows(history: History) -> Iterator[Violation]:
    """After an assignment a member uses the version that follows from its two numbers."""
    for round, each, info in heard(history):
        subscribed = round.told(each.life)
        if info.used < FIRST_PROBED or subscribed is None or not each.life.bound("268-17"):
            continue
        used = subscribed.info.used
        wanted = follows_from(each.life, used, info)
        if each.seen.used != wanted:
            why = (
                f"{each.life} subscribed in {used}, was sent {_two(info)} in generation {round.number}, and uses "
                f"{each.seen.used} from now on"
            )
            how = "falls" if wanted < used else "rises" if wanted > used else "stays"
            yield Violation(why, (round.at, each.at), f"version {wanted}", f"version {each.seen.used}",
                            shape=("follows", how))  # fmt: skip


def follows_from(life: Life, used: int, info: AssignmentInfo) -> int:
    """By the draft: as far as the leader and it itself know. As released: the second number, if there is cause."""
    if is_draft(life.release):
        return min(info.supported, life.latest)
    return info.supported if has_cause(used, info) else used


def has_cause(used: int, info: AssignmentInfo) -> bool:
    """To change the used version, as released (268-35, 268-36)."""
    return info.used < used or info.supported > used


@promised("streams/old-data-moves-nobody", "268-48")
def old_data_moves_nobody(history: History) -> Iterator[Violation]:
    """An assignment in version 1 or 2 changes nobody's used version."""
    for round, each, info in heard(history):
        subscribed = round.told(each.life)
        if info.used >= FIRST_PROBED or subscribed is None or not each.life.bound("268-48"):
            continue
        used = subscribed.info.used
        if each.seen.used != used:
            why = (
                f"{each.life} subscribed in {used}, was sent version {info.used} in generation {round.number}, and "
                f"uses {each.seen.used} from now on"
            )
            yield Violation(why, (round.at, each.at), f"version {used}", f"version {each.seen.used}",
                            shape=("old data", "moves"))  # fmt: skip


@promised("streams/refuses-newer", "268-35")
def refuses_newer(history: History) -> Iterator[Violation]:
    """An assignment above the used version, or a second number above the own latest, is refused."""
    for round, each, info in heard(history):
        subscribed = round.told(each.life)
        if info.used < FIRST_PROBED or subscribed is None or not each.life.bound("268-35"):
            continue
        if is_to_be_refused(each.life, subscribed.info.used, info):
            why = (
                f"{each.life} subscribed in {subscribed.info.used} and knows {each.life.latest}; it was sent "
                f"{_two(info)} in generation {round.number}, and takes it"
            )
            what = "version" if info.used > subscribed.info.used else "second number"
            yield Violation(why, (round.at, each.at), "an error", "it is taken", shape=("taken", what))


def is_to_be_refused(life: Life, used: int, info: AssignmentInfo) -> bool:
    return info.used > used or (info.used >= FIRST_PROBED and info.supported > life.latest)
