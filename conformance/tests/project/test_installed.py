"""What is installed, however it is: one package, which works beside others with the names of our folders."""

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.campaign.executors import spark_worker
from kipcheck.conformance.tests.support.own_packages import NAMES, RUN, runs_beside_packages_of_the_same_names
from kipcheck.conformance.tests.targets.toolchains.test_environments import wheel

pytestmark = pytest.mark.integration

ROOT: Final = Path(__file__).resolve().parents[3]
WAYS: Final = ("wheel", "sdist", "folder", "editable")


def run(*words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def pip(*words: str | Path, python: Path | None = None) -> None:
    whose = ("--python", python) if python is not None else ()
    run(sys.executable, "-P", "-m", "pip", *whose, "--no-input", "--disable-pip-version-check", "-q", *words)


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path
    again: Path
    """The wheel that the source distribution builds."""


def build(tools: Path, source: Path, out: Path, *targets: str) -> None:
    words = [word for target in targets for word in ("-t", target)]
    run(sys.executable, "-m", "hatchling", "build", "-d", out, *words, cwd=source, env={"PYTHONPATH": str(tools)})


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the build backend is."""
    place = tmp_path_factory.mktemp("tools")
    pip("install", "--target", place, "hatchling")
    return place


@pytest.fixture(scope="module")
def built(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    out = tmp_path_factory.mktemp("dist")
    build(tools, ROOT, out, "sdist", "wheel")
    (sdist,) = out.glob("*.tar.gz")
    # Not `extractall(filter=...)`: Python has that from 3.11.4 on, and kipcheck is for 3.11.0.
    run(sys.executable, "-P", "-m", "tarfile", "-e", sdist, out / "unpacked")
    (source,) = (out / "unpacked").iterdir()
    build(tools, source, out / "again", "wheel")
    (first,), (again,) = out.glob("*.whl"), (out / "again").glob("*.whl")
    return Built(first, sdist, again)


def environment(folder: Path) -> Path:
    """The Python of a new one, which finds what kipcheck depends on where this one has it, but no kipcheck."""
    run(sys.executable, "-P", "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    places = (each for each in sys.path if Path(each).name == "site-packages")
    (own,) = (folder / "lib").glob("python*/site-packages")
    (own / "dependencies.pth").write_text("".join(f"{each}\n" for each in places), "utf-8")
    return python


@pytest.fixture(scope="module", params=WAYS)
def installed(request: pytest.FixtureRequest, built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with kipcheck."""
    python = environment(tmp_path_factory.mktemp(request.param) / "env")
    ways: dict[str, tuple[str | Path, ...]] = {
        "wheel": (built.wheel,), "sdist": (built.sdist,), "folder": (ROOT,), "editable": ("-e", ROOT)
    }  # fmt: skip
    pip("install", "--no-deps", *ways[request.param], python=python)
    return python


def contents(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as packed:
        return {name: hashlib.sha256(packed.read(name)).hexdigest() for name in packed.namelist()}


def test_a_wheel_holds_one_package_and_all_of_it(built: Built) -> None:
    names = contents(built.wheel).keys()
    assert {name.partition("/")[0] for name in names} == {"kipcheck", "kipcheck-0.2.0.dist-info"}
    ours = {name.removeprefix("kipcheck/") for name in names if name.startswith("kipcheck/")}
    assert {name.partition("/")[0] for name in ours} == {"__init__.py", "__main__.py", "py.typed", "testing.py", *NAMES}
    docs = "conformance/docs/report.png", "conformance/docs/site/"
    apart = ("conformance/tests/", "conformance/benchmarks/", "reports/out/", *docs)
    tracked = run("git", "ls-files", *NAMES, cwd=ROOT).splitlines()
    assert {name for name in ours if name.startswith(NAMES)} == {n for n in tracked if not n.startswith(apart)}


def test_a_source_distribution_builds_the_same_wheel(built: Built) -> None:
    assert contents(built.again) == contents(built.wheel)


def test_it_is_found_and_it_works(installed: Path, tmp_path: Path) -> None:
    program = (
        "import kipcheck\nfrom kipcheck import layout\nfrom kipcheck.strategies import values\n"
        "from kipcheck.conformance.campaign.executors.spark_worker import fingerprint\n"
        "for name in ('conformance', 'strategies', 'golden', 'reports'):\n"
        "    try:\n        __import__(name)\n"
        "    except ModuleNotFoundError:\n        continue\n"
        "    raise SystemExit(name)\n"
        "print(kipcheck.__file__, fingerprint()['the code of kipcheck'])\n"
    )
    for flag in ("-I", "-P"):
        place, code = run(installed, flag, "-c", program, cwd=tmp_path).split()
        assert code == spark_worker.fingerprint()["the code of kipcheck"], (
            "driver and workers are taken for different versions"
        )
        editable = ROOT / "src" in Path(place).parents
        assert editable or installed.parents[1] in Path(place).parents
    run(installed.with_name("kipcheck"), "--help", cwd=tmp_path)
    run(installed, "-I", "-m", "kipcheck", "requirements", "--json", cwd=tmp_path)


def test_it_works_beside_packages_of_the_same_names(installed: Path, tmp_path: Path) -> None:
    runs_beside_packages_of_the_same_names(installed, tmp_path)


def test_another_wheel_with_a_package_of_one_name_comes_and_goes(installed: Path, tmp_path: Path) -> None:
    """A trading bot's strategies, installed over ours in silence, took them along when they went."""
    for name in NAMES:
        wheel(tmp_path, name, "1.0", f"OWNER = 'another, {name}'\n")
    pip("install", "--no-deps", "--no-index", *sorted(tmp_path.glob("*.whl")), python=installed)
    ask = "; ".join((f"import {', '.join(NAMES)}", "print(strategies.OWNER)", "from kipcheck.strategies import values"))
    assert run(installed, "-I", "-c", ask, cwd=tmp_path) == "another, strategies\n"
    run(installed.with_name("kipcheck"), *RUN, cwd=tmp_path)
    pip("uninstall", "-y", *NAMES, python=installed)
    assert run(installed, "-I", "-c", "from kipcheck.strategies import values; print(values)", cwd=tmp_path)
    run(installed.with_name("kipcheck"), *RUN, "--seed", "1", cwd=tmp_path)


def test_it_goes_and_leaves_nothing(built: Built, tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    (place,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    before = {each.name for each in place.iterdir()}
    pip("install", "--no-deps", built.wheel, python=python)
    assert {each.name for each in place.iterdir()} - before == {"kipcheck", "kipcheck-0.2.0.dist-info"}
    pip("uninstall", "-y", "kipcheck", python=python)
    assert {each.name for each in place.iterdir()} == before
