"""Released jars by Maven coordinates, from kipcheck's cache, ``~/.m2`` or the user's repository.

Cached jars are never downloaded again, so a filled cache works offline; ``jar_digests`` verifies them at each use. If a
repository is configured (the variable ``KIPCHECK_MAVEN_REPOSITORY``, or a mirror in ``~/.m2/settings.xml``), jars are
downloaded over plain HTTPS; otherwise ``mvn`` fetches them.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import jar_digests
from kipcheck.conformance.targets.toolchains.lock_files import warn
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder
from kipcheck.conformance.targets.transport import process_tree

CACHE: Final = "KIPCHECK_CACHE"
"""The variable with the cache directory; default ``~/.cache/kipcheck`` (or ``$XDG_CACHE_HOME/kipcheck``)."""
REPOSITORY: Final = "KIPCHECK_MAVEN_REPOSITORY"
"""The variable with the URL of a Maven repository (https, http or file)."""
FETCH_S: Final = 600
"""The time limit of one run of Maven."""
MISS_REMEMBERED_S: Final = 86_400
"""Seconds for which a repository that does not have a jar is not asked for it again."""
_PLUGIN: Final = (
    "<groupId>org.apache.maven.plugins</groupId>"
    "<artifactId>maven-dependency-plugin</artifactId><version>3.6.0</version>"
)


@dataclass(frozen=True, slots=True)
class Coordinate:
    """``group:artifact:version`` of one jar."""

    group: str
    artifact: str
    version: str

    @classmethod
    def parse(cls, text: str) -> "Coordinate":
        """Errors: ValueError for anything but three plain words separated by colons."""
        parts = text.split(":")
        if len(parts) != 3 or not all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*", part) for part in parts):
            raise ValueError(f"invalid coordinate {text!r}: use group:artifact:version")
        return cls(*parts)

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """The path of the jar in every Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file}"

    @property
    def jar(self) -> str:
        """The name that Maven prints, as a regular expression."""
        return re.escape(f"{self.group}:{self.artifact}:jar:{self.version}")

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def cache() -> Path:
    """The directory for what is downloaded and compiled; it may not exist yet."""
    if named := os.environ.get(CACHE):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kipcheck"


def cached(coordinate: str) -> Path | None:
    """The jar, if it is on this machine already. Uses no network."""
    return _cached(Coordinate.parse(coordinate))


def fetch(coordinates: Iterable[str]) -> dict[str, Path]:
    """The jar of each coordinate, in the given order.

    Errors: ``Unavailable`` if one of them is not available, or has a wrong digest; the others are then in the cache all
    the same.
    """
    found = _found(coordinates)
    if missing := {text: why for text, why in found.items() if isinstance(why, str)}:
        by_reason = {why: ", ".join(each for each in missing if missing[each] == why) for why in missing.values()}
        raise Unavailable("; ".join(f"{names}: {why}" for why, names in by_reason.items()))
    return {text: path for text, path in found.items() if isinstance(path, Path)}


def fetched(coordinates: Iterable[str]) -> dict[str, Path | str]:
    """For each coordinate its jar, or the reason why it cannot be had."""
    wanted = list(coordinates)
    try:
        return _found(wanted)
    except Unavailable as unavailable:
        return {each: _verified(Coordinate.parse(each)) or str(unavailable) for each in wanted}


def _found(coordinates: Iterable[str]) -> dict[str, Path | str]:
    """For each coordinate its jar, or why there is none. Errors: ``Unavailable`` if the cache cannot be written."""
    wanted = {str(each): each for each in map(Coordinate.parse, coordinates)}
    why = ""
    if any(_cached(each) is None for each in wanted.values()):
        with _lock():
            # Another process may have fetched them while this one waited.
            missing = [each for each in wanted.values() if _cached(each) is None]
            why = _fetch_unless_missed(missing) if missing else ""
    return {text: _verified(each) or why for text, each in wanted.items()}


def _verified(coordinate: Coordinate) -> Path | str | None:
    """The jar, or why it must not be used; None if it is not on this machine."""
    path = _cached(coordinate)
    return None if path is None else jar_digests.wrong(path) or path


def local_releases(group: str, artifact: str) -> set[str]:
    """The versions of an artifact whose jars are on this machine."""
    folders = (root / group.replace(".", "/") / artifact for root in roots())
    return {jar.parent.name for each in folders for jar in each.glob(f"*/{artifact}-*.jar") if _plain(jar)}


def _plain(jar: Path) -> bool:
    """Whether it is the jar itself, and not a jar of sources or tests."""
    return jar.stem.endswith(f"-{jar.parent.name}")


def roots() -> tuple[Path, Path]:
    """The folders of jars: kipcheck's, and Maven's."""
    return cache() / "maven", _local_repository()


def _cached(coordinate: Coordinate) -> Path | None:
    for root in roots():
        path = root / coordinate.path
        if path.is_file() and path.stat().st_size:
            return path
    return None


def _fetch_unless_missed(missing: list[Coordinate]) -> str:
    """``_fetch``, except for jars that the same repository did not have within the last day."""
    where = _repository() or "mvn"
    known = [each for each in missing if _recent(each, where)]
    to_fetch = [each for each in missing if each not in known]
    why = [_fetch(to_fetch)] if to_fetch else []
    if known:
        files = ", ".join(str(_miss(each)) for each in known)
        why.append(f"the repository did not have it at the last attempt, within a day: remove {files} to try again now")
    return "; ".join(filter(None, why))


def _fetch(missing: list[Coordinate]) -> str:
    """Puts the available jars into the cache; for the others returns the reason and what to do."""
    if repository := _repository():
        return _download(repository, missing)
    if mvn := shutil.which("mvn"):
        return _fetch_with_maven(mvn, missing)
    return f"mvn is not on the PATH and no repository is configured: install Maven, or set {REPOSITORY} to a URL"


def _download(repository: str, missing: list[Coordinate]) -> str:
    def one(coordinate: Coordinate) -> str:
        url = f"{repository.rstrip('/')}/{coordinate.path}"
        try:
            data = _read(url)
            stated = _is_stated(url, data)
        except (OSError, ValueError) as wrong:
            # Only a definite answer counts as missing; a wrong host or path says nothing about this jar.
            if isinstance(wrong, urllib.error.HTTPError) and wrong.code in (404, 410):
                _remember(coordinate, repository)
            return f"{url}: {wrong}"
        jar = cache() / "maven" / coordinate.path
        if why := jar_digests.refused(jar, data, url):
            return why
        if not stated and not jar_digests.is_locked(jar):
            warn(jar, f"is not verified: {repository} states no checksum over https")
        _place(jar, data)
        return ""

    with ThreadPoolExecutor(4) as pool:
        return "; ".join(filter(None, pool.map(one, missing)))


def _place(jar: Path, data: bytes) -> None:
    with placing(jar) as staged:
        staged.write_bytes(data)
    jar_digests.remember(jar, hashlib.sha256(data).hexdigest())


def _read(url: str) -> bytes:
    from urllib.request import urlopen  # With its HTTP and TLS it takes a tenth of the start of a testee.

    with urlopen(url, timeout=60) as answer:
        data: bytes = answer.read()
        return data


def _is_stated(url: str, data: bytes) -> bool:
    """Whether the repository states this checksum, on a way that nobody else can change. Errors: ValueError for another
    checksum."""
    for kind in ("sha512", "sha256", "sha1"):
        try:
            stated = _read(f"{url}.{kind}").split()[0].decode().lower()
        except (urllib.error.URLError, IndexError):
            continue
        found = hashlib.new(kind, data).hexdigest()
        if stated != found:
            raise ValueError(f"its {kind} is {found}, but the repository states {stated}")
        return not url.startswith("http:")
    return False


def _fetch_with_maven(mvn: str, missing: list[Coordinate]) -> str:
    """One run for all jars: a module per jar, so that a missing one does not affect the others."""
    with temporary_folder("mvn") as folder:
        root, out = folder, folder / "jars"
        for at, coordinate in enumerate(missing):
            module = root / f"m{at}"
            module.mkdir()
            (module / "pom.xml").write_text(_pom(f"m{at}", _copying(coordinate, out / str(at))))
        modules = "".join(f"<module>m{at}</module>" for at in range(len(missing)))
        (root / "pom.xml").write_text(_pom("all", f"<packaging>pom</packaging><modules>{modules}</modules>"))
        command = [mvn, "-B", "-q", "-C", "--fail-at-end", "-Dstyle.color=never", "-f", f"{root}/pom.xml", "validate"]
        try:
            done = process_tree.run(command, FETCH_S)
        except subprocess.TimeoutExpired:
            return f"mvn did not finish within {FETCH_S} s: is the network reachable?"
        for at, coordinate in enumerate(missing):
            jar = out / str(at) / coordinate.file
            # Maven's local repository usually has it now; the copy is for users whose Maven stores it elsewhere.
            if jar.is_file() and _cached(coordinate) is None:
                _place(cache() / "maven" / coordinate.path, jar.read_bytes())  # Maven compared it with the checksum
            elif re.search(rf"(?:not find artifact {coordinate.jar}|{coordinate.jar} was not found) in ", done.stdout):
                _remember(coordinate, "mvn")
        return f"mvn: {cause_of(done)}"


def cause_of(run: subprocess.CompletedProcess[str]) -> str:
    """Why Maven failed, in a line: the first error, with what follows its colon; the rest is advice on Maven."""
    cause = ""
    for line in re.sub(r"\x1b\[[0-9;]*m", "", run.stdout).splitlines():
        if error := re.match(r"\[ERROR\]\s*(?:Failed to execute goal \S+ \(\S+\) on project \S+: )?(\S.*)", line):
            cause += f" {error[1].strip()}"
            if not cause.endswith(":"):
                break
    return cause.split("-> [Help")[0].strip()[:400] or f"exit code {run.returncode}"


def _pom(name: str, inside: str) -> str:
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>kipcheck</groupId><artifactId>{name}</artifactId><version>1</version>{inside}</project>"
    )


def _copying(coordinate: Coordinate, to: Path) -> str:
    item = (
        f"<groupId>{coordinate.group}</groupId><artifactId>{coordinate.artifact}</artifactId>"
        f"<version>{coordinate.version}</version>"
    )
    return (
        f"<build><plugins><plugin>{_PLUGIN}<executions><execution><phase>validate</phase><goals><goal>copy</goal></goals>"
        f"<configuration><artifactItems><artifactItem>{item}</artifactItem></artifactItems>"
        f"<outputDirectory>{escape(str(to))}</outputDirectory></configuration></execution></executions></plugin></plugins></build>"
    )


def _miss(coordinate: Coordinate) -> Path:
    return cache() / "maven" / f"{coordinate.path}.missing"


def _remember(coordinate: Coordinate, where: str) -> None:
    with placing(_miss(coordinate)) as staged:
        staged.write_text(where, "utf-8")


def _recent(coordinate: Coordinate, where: str) -> bool:
    """Whether this repository lacked the jar at the last attempt, less than a day ago."""
    try:
        stated = _miss(coordinate).read_text("utf-8")
        age = time.time() - _miss(coordinate).stat().st_mtime
    except OSError:
        return False
    return stated == where and 0 <= age < MISS_REMEMBERED_S


@contextmanager
def placing(target: Path) -> Iterator[Path]:
    """A path beside ``target`` that replaces it atomically at the end; on an error it is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    os.close(handle)
    staged = Path(name)
    try:
        yield staged
        staged.chmod(0o644)
        staged.replace(target)
    finally:
        staged.unlink(missing_ok=True)


@contextmanager
def _lock() -> Iterator[None]:
    """Lets one process at a time fetch; the others then find its jars in the cache."""
    try:
        cache().mkdir(parents=True, exist_ok=True)
        file = (cache() / "fetch.lock").open("w")
    except OSError as wrong:
        raise Unavailable(f"the cache {cache()} cannot be written ({wrong}): set {CACHE} to another one") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _settings() -> ElementTree.Element | None:
    try:
        root = ElementTree.parse(Path.home() / ".m2" / "settings.xml").getroot()
    except (OSError, ElementTree.ParseError):
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def _local_repository() -> Path:
    settings = _settings()
    named = settings.findtext("localRepository") if settings is not None else None
    if not named:
        return Path.home() / ".m2" / "repository"
    return Path(named.strip().replace("${user.home}", str(Path.home())))


def _repository() -> str | None:
    if named := os.environ.get(REPOSITORY):
        return named
    settings = _settings()
    for mirror in settings.iter("mirror") if settings is not None else ():
        url, of = (mirror.findtext("url") or "").strip(), (mirror.findtext("mirrorOf") or "").strip()
        # A mirror with credentials is left to Maven.
        private = settings is not None and any(
            server.findtext("id") == mirror.findtext("id") for server in settings.iter("server")
        )
        if url.startswith(("https://", "http://", "file:")) and of in ("*", "central", "external:*") and not private:
            return url
    return None
