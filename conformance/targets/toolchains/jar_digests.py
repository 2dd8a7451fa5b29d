"""Verifies jars each time they are used: by digests that come with kipcheck, or by the checksums of repositories.

``locks/jars.sha256`` has the SHA-256 of the jars of all releases in ``releases.toml``, and of what they need, by their
path in every Maven repository; ``python -m kipcheck.golden.jar_digests`` adds those of a new release. The checksum of
another jar is beside it, since it was downloaded: in a file of kipcheck's, or in Maven's (``.sha1``).
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains.lock_files import lock, warn

LOCK: Final = "jars.sha256"
OWN: Final = ".sha256"
"""After the name of a jar: kipcheck's file with the digest of a downloaded jar that the lock does not have."""
LEFT: Final = (OWN, ".sha1")
"""What may be beside a jar, the stronger one first."""


@cache
def locked() -> Mapping[str, str]:
    """Path in a repository -> SHA-256, in hex."""
    return {name: digest for digest, name in (line.split() for line in (lock(LOCK) or "").splitlines())}


def is_locked(jar: Path) -> bool:
    return _expected(jar) is not None


def sha256(path: Path) -> str:
    """In hex. A file is read again once it has changed."""
    now = path.stat()
    return _sha256(path, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


@cache
def _sha256(path: Path, *state: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def wrong(jar: Path) -> str:
    """Why the jar must not be used; empty if its digest is as stated. A jar without a stated one gets a warning."""
    if expected := _expected(jar):
        return _differs(jar, "sha256", expected, f"kipcheck's {LOCK} states")
    for ending in LEFT:
        try:
            expected = jar.with_name(jar.name + ending).read_text("utf-8").split()[0].lower()
        except (OSError, ValueError, IndexError):
            continue
        return _differs(jar, ending[1:], expected, f"{jar.name}{ending} beside it states")
    warn(jar, "is not verified: kipcheck has no digest of it, and no checksum of a repository is beside it")
    return ""


def verify(jar: Path) -> None:
    """Errors: ``Unavailable``."""
    if why := wrong(jar):
        raise Unavailable(why)


def refused(jar: Path, data: bytes, url: str) -> str:
    """Why a download must not become the jar; empty if it may."""
    found, expected = hashlib.sha256(data).hexdigest(), _expected(jar)
    if expected in (None, found):
        return ""
    return f"{url}: its sha256 is {found}, but kipcheck's {LOCK} states {expected}: try another repository"


def remember(jar: Path, digest: str) -> None:
    """Writes the digest of a downloaded jar beside it, unless kipcheck knows it. Errors: OSError."""
    if not is_locked(jar):
        jar.with_name(jar.name + OWN).write_text(f"{digest}\n", "utf-8")


def _differs(jar: Path, kind: str, expected: str, source: str) -> str:
    if kind == "sha256":
        found = sha256(jar)
    else:
        with jar.open("rb") as file:
            found = hashlib.file_digest(file, kind).hexdigest()
    if found == expected:
        return ""
    return (
        f"the {kind} of {jar} is {found}, but {source} {expected}: remove the jar, and it is downloaded again; "
        "a build of your own needs a version of its own"
    )


def _expected(jar: Path) -> str | None:
    """The digest in kipcheck's lock; None for a jar that it does not have."""
    parts = jar.parts
    return next((found for at in range(len(parts) - 4, -1, -1) if (found := locked().get("/".join(parts[at:])))), None)
