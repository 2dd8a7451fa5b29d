"""Exact releases in environments of their own: made once, whole or not at all, and refused in one line."""

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.registry import target, targets_table
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.toolchains import environments

pytestmark = pytest.mark.integration


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place with wheels, the only one that pip may look at; the cache is empty."""
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


def wheel(shelf: Path, name: str, version: str, code: str = "", python: str = ">=3.8") -> None:
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: {python}\n"
    with zipfile.ZipFile(shelf / f"{name}-{version}-py3-none-any.whl", "w") as file:
        info = f"{name}-{version}.dist-info"
        file.writestr(f"{name}/__init__.py", code)
        file.writestr(f"{info}/METADATA", about)
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


def test_a_release_is_installed_alone_and_only_once(shelf: Path) -> None:
    wheel(shelf, "doll", "1.5", "size = 15")
    wheel(shelf, "doll", "1.6", "size = 16")
    with ThreadPoolExecutor(2) as two:
        pythons = set(two.map(environments.interpreter, ["doll"] * 2, ["1.5"] * 2))
    (python,) = pythons
    printed = subprocess.run(
        [python, "-I", "-c", "import doll, importlib.util as u; print(doll.size, u.find_spec('hypothesis'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert printed.stdout.split() == ["15", "None"]
    assert list(environments.made()) == [("doll", "1.5")]
    (shelf / "doll-1.5-py3-none-any.whl").unlink()
    assert environments.interpreter("doll", "1.5") == python


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("9", "doll==9 cannot be installed: there is no release 9 for Python 3"),
        ("7", "doll==7 cannot be installed: it needs Python >=9, and this is 3"),
    ],
)
def test_what_cannot_be_had_is_said_in_one_line_and_leaves_nothing(shelf: Path, version: str, why: str) -> None:
    wheel(shelf, "doll", "1.5")
    wheel(shelf, "doll", "7", python=">=9")
    with pytest.raises(Unavailable) as raised:
        environments.interpreter("doll", version)
    assert str(raised.value).startswith(why)
    assert "\n" not in str(raised.value)
    assert list(environments.made()) == []
    left = [each.name for each in (shelf.parent / "cache" / "environments").iterdir()]
    assert [name for name in left if not name.endswith(".lock")] == []


def test_a_locked_release_is_installed_with_its_digest_only(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(shelf, "doll", "1.5")
    digest = hashlib.sha256((shelf / "doll-1.5-py3-none-any.whl").read_bytes()).hexdigest()
    other = "0" * 64
    monkeypatch.setattr(environments, "lock", lambda path: f"doll==1.5 --hash=sha256:{other}\n")
    with pytest.raises(Unavailable) as refused:
        environments.interpreter("doll", "1.5")
    assert str(refused.value).startswith(
        f"doll==1.5 cannot be installed: the digest of doll==1.5 is {digest}, but kipcheck's lock file states {other}: "
    )
    assert list(environments.made()) == []
    monkeypatch.setattr(environments, "lock", lambda path: f"doll==1.5 --hash=sha256:{other} --hash=sha256:{digest}\n")
    environments.interpreter("doll", "1.5")


@pytest.mark.parametrize("locked", [False, True])
def test_code_of_a_source_distribution_runs_for_releases_without_a_lock_only(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], locked: bool
) -> None:
    ran = shelf / "ran"
    with tarfile.open(shelf / "doll-1.5.tar.gz", "w:gz") as file:
        for name, text in {
            "PKG-INFO": "Metadata-Version: 2.1\nName: doll\nVersion: 1.5\n",
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            "backend.py": f"open({str(ran)!r}, 'w').close()\nraise SystemExit('built')\n",
        }.items():
            about = tarfile.TarInfo(f"doll-1.5/{name}")
            about.size = len(text)
            file.addfile(about, io.BytesIO(text.encode()))
    digest = hashlib.sha256((shelf / "doll-1.5.tar.gz").read_bytes()).hexdigest()
    monkeypatch.setattr(environments, "lock", lambda path: f"doll==1.5 --hash=sha256:{digest}\n" if locked else None)
    with pytest.raises(Unavailable):  # the build fails, where it runs
        environments.interpreter("doll", "1.5")
    assert ran.exists() is not locked


def test_a_client_that_no_index_has_is_unavailable(shelf: Path) -> None:
    with pytest.raises(Unavailable, match="no release of it was found"):
        target("kafka-python@2.3.0")


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (
            "WARNING: Retrying after connection broken\nERROR: Could not find a version (from versions: none)",
            "the package index cannot be reached",
        ),
        ("ERROR: something else\nand more", "ERROR: something else"),
        ("", "pip gave no reason"),
    ],
)
def test_what_pip_says_is_put_into_one_line(printed: str, why: str) -> None:
    assert environments._reason("doll==1", printed) == why


@pytest.mark.parametrize("name", ["kafka-python@", "kafka-python@../..", "kio@latest", "reference@1", "nobody@1"])
def test_a_release_that_is_none_is_wrong_usage(name: str) -> None:
    with pytest.raises(LookupError):
        target(name)


def test_the_table_tells_what_is_here_without_importing_it(shelf: Path) -> None:
    rows = {row["name"]: row for row in targets_table()}
    assert rows.keys() >= target_entries().keys()
    assert rows["reference"]["available"]
    assert rows["kafka-python"]["version"].startswith("3.")
    for row in rows.values():
        assert row.keys() == {"name", "version", "roles", "available", "why"}
        assert row["available"] == (not row["why"])
        assert row["version"] or not row["available"]
    code = (
        "import sys; from kipcheck.conformance.targets.registry import targets_table; targets_table(); "
        "print([each for each in ('kafka', 'aiokafka', 'kio') if each in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_target_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(distribution: str) -> str:
        raise metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(Unavailable, match=r"kio is not installed \(pip install kio==\S+\)"):
        target("kio")


def test_a_child_finds_the_same_order_in_sets_each_time_and_nothing_of_the_users(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(shelf, "doll", "1.5")
    monkeypatch.setenv("PYTHONPATH", str(shelf))
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    python, *flags, _, _ = environments.command("doll", "1.5", "doll")
    code = f"import sys; print(hash('t'), {str(shelf)!r} in sys.path)"
    argv = [python, *flags, "-c", code]
    printed = {
        subprocess.run(argv, env=environments.child_environment(), capture_output=True, check=True).stdout for _ in "ab"
    }
    (only,) = printed
    assert only.endswith(b" False\n")
