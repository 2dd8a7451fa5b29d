"""Profiles: what a target must claim, in addition to doing correctly what it claims."""

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from kipcheck.conformance.core.files.unreadable_file import not_text, unreadable
from kipcheck.conformance.core.ledger import Failure, TableExhibit, TableRow, spans
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.plain import short_digest
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.target_title import titled
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.engine.known.rules import SubjectVersion, numbers, places_in
from kipcheck.conformance.targets.command import LIVE, is_command
from kipcheck.conformance.targets.protocol import TargetInfo

CHECK = "profile"
"""Stands for a check in the ledger and in lists of known deviations."""
KEYS: Mapping[str, type] = {
    "sentence": str, "roles": list, "assignors": list, "machines": list, "messages": dict, "must": list,
    "options": list,
}  # fmt: skip
NAMES: Mapping[type, str] = {str: "a string", list: "a list of strings", dict: "a table of strings"}


class InvalidProfile(ValueError):
    """An invalid profile; the message names the file and the valid values."""


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    sentence: str
    roles: tuple[Role, ...] = ()
    messages: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    assignors: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    """Requirements of grade SHOULD whose violation is a failure in this profile."""
    options: tuple[str, ...] = ()
    """Words that end the command of a live client, as ``--option session.timeout.ms={session_ms}``."""
    given: str = ""
    """The name or path as given."""

    @property
    def invariant(self) -> str:
        return f"{CHECK}/{self.name}"


@dataclass(frozen=True, slots=True)
class ClaimRequirement:
    """One claim that a profile requires."""

    sort: str
    """role, message, assignor or machine"""
    name: str
    asked: str
    claimed: str
    missing: tuple[int | None, ...]
    """Versions of a message, or (None,); empty if the claim is made."""

    versions: tuple[int | None, ...] = (None,)
    """All required versions."""

    @property
    def places(self) -> list[SubjectVersion]:
        return [(self.name, version) for version in self.missing]

    @property
    def all_places(self) -> list[SubjectVersion]:
        return [(self.name, version) for version in self.versions]


def shipped() -> list[str]:
    """The names of the profiles shipped with kipcheck."""
    folder = files("kipcheck.conformance.engine") / "profiles"
    return sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml"))


def load(named: str) -> Profile:
    """A file, or the name of a shipped profile. Errors: ``InvalidProfile``."""
    try:
        if named in shipped():
            text = (files("kipcheck.conformance.engine") / "profiles" / f"{named}.toml").read_text("utf-8")
        else:
            text = Path(named).read_text("utf-8")
    except OSError as error:
        why = unreadable(error, named)
        raise InvalidProfile(f"profile {why}: use {', '.join(shipped())}, or a file") from None
    except UnicodeDecodeError as error:
        raise InvalidProfile(f"profile {named}: {not_text(error)}") from None
    try:
        listed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProfile(f"profile {named}: not valid TOML: {error}") from None
    return _profile(named, listed)


def with_options(target: str, profiles: Iterable[str]) -> str:
    """The command of a live client, which the options of these profiles end; another target as it is.

    Errors: ``InvalidProfile``.
    """
    words = [word for each in profiles for word in load(each).options]
    takes_them = target.startswith(LIVE) and is_command(target)
    return f"{target} {shlex.join(words)}" if words and takes_them else target


def _profile(named: str, listed: Mapping[str, Any]) -> Profile:
    for key, value in listed.items():
        if key not in KEYS:
            raise InvalidProfile(f"profile {named}: unknown key {key!r}: use {', '.join(KEYS)}")
        texts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if type(value) is not KEYS[key] or not all(isinstance(each, str) for each in texts):
            raise InvalidProfile(f"profile {named}: {key} must be {NAMES[KEYS[key]]}, got {value!r}")
    if not listed.get("sentence"):
        raise InvalidProfile(f"profile {named}: it needs a sentence that describes its targets")
    known = {role.value: role for role in Role}
    for role in listed.get("roles", ()):
        if role not in known:
            raise InvalidProfile(f"profile {named}: unknown role {role!r}: use {', '.join(known)}")
    for id in listed.get("must", ()):
        if id not in requirements() or requirements()[id].grade is not Grade.SHOULD:
            raise InvalidProfile(f"profile {named}: {id!r} is not a requirement of grade SHOULD")
    messages: dict[str, tuple[int, ...]] = {}
    for message, text in listed.get("messages", {}).items():
        try:
            ranges = places_in(text)
        except ValueError as error:
            raise InvalidProfile(f"profile {named}: messages.{message}: {error}") from None
        if not ranges or any(high is None for _, high in ranges):
            raise InvalidProfile(f"profile {named}: messages.{message}: versions need an upper end, for example 0-9")
        messages[message] = tuple(each for each in numbers(ranges) if each is not None)
    required = Profile(
        re.sub(r"\.toml$", "", Path(named).name), listed["sentence"],
        tuple(known[each] for each in listed.get("roles", ())), messages, tuple(listed.get("assignors", ())),
        tuple(listed.get("machines", ())), tuple(listed.get("must", ())), tuple(listed.get("options", ())), named,
    )  # fmt: skip
    if not any(listed.get(each) for each in KEYS if each != "sentence"):
        raise InvalidProfile(f"profile {named}: it requires nothing")
    return required


def requirements_of(profile: Profile, info: TargetInfo) -> Iterator[ClaimRequirement]:
    """All claims that the profile requires, and which of them the target does not make."""
    claims = info.claims
    listed = (
        ("role", [each.value for each in profile.roles], sorted(each.value for each in info.roles)),
        ("assignor", profile.assignors, claims.assignors),
        ("machine", profile.machines, claims.machines),
    )
    for sort, names, there in listed:
        for name in names:
            yield ClaimRequirement(sort, name, name, ", ".join(there) or "none", () if name in there else (None,))
    for message, versions in profile.messages.items():
        missing = tuple(version for version in versions if not claims.has(message, version))
        low, high = claims.messages.get(message, (0, -1))
        ranges = spans(version for version in range(low, high + 1) if claims.has(message, version))
        yield ClaimRequirement(
            "message", message, f"v{spans(versions)}", f"v{ranges}" if ranges else "none", missing, versions
        )


def unmet_lines(profile: Profile, info: TargetInfo, required: Sequence[ClaimRequirement]) -> Iterator[Failure]:
    """A failure for each required claim that is missing."""
    for claim in required:
        if not claim.missing:
            continue
        versions = [each for each in claim.missing if each is not None]
        what = f"{claim.name} v{spans(versions)}" if versions else f"the {claim.sort} {claim.name}"
        row = TableRow(cells=(claim.sort, claim.name, claim.asked, claim.claimed), guilty=True)
        columns = ("sort", "name", "required by the profile", "claimed")
        yield Failure(
            id=short_digest([info.name, profile.invariant, claim.sort, claim.name]),
            target=info.name,
            version=info.version,
            command=info.command or None,
            check=CHECK,
            checks=(CHECK,),
            shrunk=True,
            invariant=profile.invariant,
            grade=Grade.MUST.value,
            sentence=f"A target of the profile {profile.name} claims {claim.name}: {profile.sentence}",
            requirements=(),
            tags=(),
            edition="",
            subject=claim.name,
            subject_version=versions[0] if versions else None,
            why=f"{titled(info.name, info.version)} does not claim {what}, which the profile {profile.name} requires",
            expected=f"{claim.sort} {claim.name} {claim.asked}" if versions else f"{claim.sort} {claim.name}",
            observed=f"claimed: {claim.claimed}",
            path="",
            offset=None,
            shape=("not claimed", claim.sort),
            cases=0,
            where={claim.name: spans(versions)},
            steps=(),
            guilty_step=0,
            exhibits=(TableExhibit(columns=columns, rows=(row,)),),
            case_id="",
            reproduce=f"kipcheck run --target {shlex.quote(info.opened)} --profile {shlex.quote(profile.given)}",
        )


def raise_grade(profile: Profile, line: Failure) -> Failure:
    """The failure, raised from SHOULD to MUST if the profile requires what it breaks."""
    broken = {each.id for each in line.requirements}
    if line.grade == Grade.SHOULD.value and broken & set(profile.must):
        return line.update(grade=Grade.MUST.value, raised_by=profile.name)
    return line
