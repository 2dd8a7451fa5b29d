"""Editions: which text applies, a KIP draft, one exact release of Apache Kafka, or the definitions in a jar."""

from dataclasses import dataclass, replace
from enum import Enum

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.release import NEWEST, Release


class Standing(Enum):
    DRAFT = "draft"
    RELEASED = "released"
    DEFINITIONS = "definitions"


@dataclass(frozen=True, slots=True)
class Edition:
    name: str
    """``apache``, ``kip-584``; with path or version ``jar:/a/b.jar``, ``maven:4.1.0``."""
    standing: Standing
    release: str
    """The exact release whose layouts apply; for a draft, the release it was written against; for a jar, empty."""
    exact: bool = True
    """False for ``apache`` alone: every version that any release supported, not those of one release."""
    choices: tuple[str, ...] = ()
    """How kipcheck reads the text where it is ambiguous."""

    def __str__(self) -> str:
        return f"{self.name}@{self.release}" if self.standing is Standing.RELEASED and self.exact else self.name


APACHE = Edition("apache", Standing.RELEASED, NEWEST, exact=False)
KIP_258 = Edition(
    "kip-258",
    Standing.DRAFT,
    named("kip-258-base"),
    choices=(
        "a roll-over is marked by one byte, 01, behind the fields of any metadata version (258-25)",
        "metadata version 4 is simulated: the fields of KIP-268's version 3 under another number (258-19)",
        "null means that upgrade.mode is unset; roll_over_new is no value of it (258-25)",
        "a converter returns value bytes: 8 bytes of timestamp, most significant first, and the value (258-24)",
        "the header of a changelog record names version 2; a record without one has version 1 (258-02)",
        "no record is written back: one of the old format has its own timestamp (258-17)",
        "values go to the changelog in the new format once no member has a jar from before KIP-258 (258-03)",
        "the proxy over an old store fills in timestamp -1 (258-16)",
        "an offline upgrade is one bounce without a mode, and has no roll-over instances (258-26)",
    ),
)
KIP_268 = Edition(
    "kip-268",
    Standing.DRAFT,
    named("kip-268-base"),
    choices=(
        "both version numbers and every array count are int32, in v2 and v3 alike (268-49)",
        "strings are as 0.10.1 to 1.1 write them: endpoint int32 + UTF-8, others uint16 + modified UTF-8 (268-50)",
        "a standby task is followed by its partitions, an active task stands once per partition (268-51)",
        "version 1 is the exact layout of 0.10.0 (268-56)",
    ),
)
KIP_384 = Edition("kip-384", Standing.DRAFT, named("kip-384-base"))
KIP_429 = Edition(
    "kip-429",
    Standing.DRAFT,
    named("kip-429-base"),
    choices=("JoinGroup v5 is answered in the layout of v4: the text gives the request only",),
)
KIP_584 = Edition(
    "kip-584",
    Standing.DRAFT,
    named("kip-584-base"),
    choices=(
        "feature versions are int16, as in the schemas, not int64 as in the prose (584-60)",
        "both levels of a node are at least 1, against the example that shows a 0 (584-61)",
        "the two levels are integers; other keys of an entry may be text or numbers and are ignored (584-64)",
        "ApiVersions has three new tagged fields, as in the schema, not one or two (584-65)",
    ),
)
EDITIONS = {each.name: each for each in (APACHE, KIP_258, KIP_268, KIP_384, KIP_429, KIP_584)}


def edition(text: str) -> Edition:
    """``apache``, ``apache@3.9.2``, ``kip-584``, ``jar:PATH``, ``maven:4.1.0``.

    Errors: LookupError with the known editions.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind in ("jar", "maven"):
        if not rest:
            raise LookupError(f"{text!r} needs a {'path' if kind == 'jar' else 'version'} after the colon")
        return Edition(text, Standing.DEFINITIONS, rest if kind == "maven" else "")
    name, at, release = text.partition("@")
    if name not in EDITIONS:
        known = ", ".join([*EDITIONS, "apache@RELEASE", "jar:PATH", "maven:VERSION"])
        raise LookupError(f"unknown edition {text!r}; known editions: {known}")
    found = EDITIONS[name]
    if not at:
        return found
    if found.standing is Standing.DRAFT:
        raise LookupError(f"{name} is a draft written against {found.release}: omit @{release}")
    try:
        return replace(found, release=str(Release.parse(release)), exact=True)
    except ValueError as wrong:
        raise LookupError(f"{text}: {wrong}") from None
