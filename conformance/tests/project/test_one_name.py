"""All of it is one package, ``kipcheck``: each module has one name, and every name of a module is that of one."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pytest

from kipcheck.conformance.campaign.executors import spark_worker
from kipcheck.conformance.campaign.process import shard_pool
from kipcheck.conformance.matrix import run as matrix
from kipcheck.conformance.targets.registry import KINDS, PREFIXES
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.toolchains import environments
from kipcheck.conformance.tests.support.own_packages import NAMES, project, runs_beside_packages_of_the_same_names

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(str(files("kipcheck")))
CALLED = re.compile(r"\bkipcheck\.(?:conformance|strategies|golden|reports)\b(?:\.(?!__)\w+)*")
TEXTS = {".py", ".toml", ".md", ".yml", ".ini"}
EXEMPT = {
    "conformance/tests/campaign/process/test_child_outcome.py: kipcheck.conformance.nowhere",
}


def python(*arguments: str, cwd: Path | None = None, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=100,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- what is imported


def test_the_package_imports_nothing() -> None:
    """It is imported by every pytest, wherever it is installed."""
    code = "import sys; before = {*sys.modules}; import kipcheck; print(*sorted({*sys.modules} - before))"
    assert python("-I", "-c", code).split() == ["kipcheck"]
    code = "import sys, kipcheck; kipcheck.layout; print('hypothesis' in sys.modules, 'construct' in sys.modules)"
    assert python("-I", "-c", code).split() == ["False", "False"]


def test_what_it_offers_is_imported_by_its_name() -> None:
    import kipcheck
    from kipcheck import layout
    from kipcheck.conformance import wire

    assert layout is wire.layout
    assert "layout" in dir(kipcheck)
    with pytest.raises(AttributeError, match="no attribute 'layuot'"):
        kipcheck.layuot  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("flag", ["-I", "-P"])
def test_children_find_it_whatever_the_folder_holds(flag: str, tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "kipcheck.py").write_text("raise SystemExit('not this one')\n")
    assert "usage: kipcheck" in python(flag, "-m", "kipcheck", "--help", cwd=tmp_path)


def test_in_an_environment_without_kipcheck_only_kipcheck_becomes_visible(tmp_path: Path) -> None:
    """As in one that is made for a release of a client: no packages but the client's."""
    client = find_spec("kafka")
    assert client is not None and client.origin is not None
    (tmp_path / "kafka").symlink_to(Path(client.origin).parent)
    (found,) = (each for each in metadata.distribution("kafka-python").files or () if each.name == "METADATA")
    info = Path(str(found.locate())).parent
    (tmp_path / info.name).symlink_to(info)
    asked = "".join(json.dumps(each) + "\n" for each in ({"type": "hello", "protocol": 1, "run": "-"}, {"type": "bye"}))
    for flag, env in (("-s", {"PYTHONPATH": str(tmp_path)}), ("-I", {})):
        done = subprocess.run(
            [sys.executable, "-S", "-P", flag, str(environments.BOOTSTRAP), "kafka-python"], input=asked, env=env,
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        hello = json.loads(done.stdout.splitlines()[0])
        if flag == "-I":
            assert hello["unavailable"].startswith("kafka-python is not installed")
        else:
            assert (hello["name"], hello["version"]) == ("kafka-python", metadata.version("kafka-python"))


# ---- one name


def test_no_module_of_ours_is_imported_under_another_name() -> None:
    assert not {name.partition(".")[0] for name in sys.modules} & {*NAMES}
    for name in NAMES:
        assert find_spec(name) is None, f"{name} can be imported as well, from {find_spec(name)}"


def test_tests_that_are_named_by_another_place_are_refused() -> None:
    """Their names would not be in the package, and what they import from each other would be there twice."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "conformance/tests/cli/test_cli.py"], cwd=ROOT, capture_output=True,
        text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "python -m pytest src/kipcheck/conformance/tests/cli/test_cli.py" in done.stderr


def test_imports_by_the_name_of_a_folder_are_banned() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]["lint"]
    assert config["flake8-tidy-imports"]["banned-api"].keys() == {*NAMES}
    assert "TID251" in config["extend-select"]


# ---- modules by name


def loaded_by_name() -> Iterator[str]:
    yield from PREFIXES.values()
    yield from KINDS.values()
    for entry in target_entries().values():
        if entry.kind not in KINDS:
            yield from filter(None, (entry.adapter, *entry.before.values()))
    yield shard_pool.RUN
    yield "kipcheck.conformance.campaign.process.fork_server"
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    yield from config["scripts"].values()
    yield from config["entry-points"]["pytest11"].values()


def test_what_is_loaded_by_name_is_there() -> None:
    names = [*loaded_by_name()]
    assert len(names) > 12
    for name in names:
        module, _, member = name.partition(":")
        found = find_spec(module)
        assert found is not None and found.origin is not None, name
        text = Path(found.origin).read_text("utf-8")
        assert not member or re.search(rf"^(def|class) {member}\b", text, re.MULTILINE), name


def test_the_module_that_spark_loads_is_there() -> None:
    # Not imported: that takes Spark.
    text = (PACKAGE / "conformance" / "campaign" / "executors" / "spark.py").read_text("utf-8")
    (named,) = re.findall(r'"spark\.python\.daemon\.module": "([\w.]+)"', text)
    assert find_spec(named) is not None


def test_every_module_that_a_text_names_is_there() -> None:
    """A name goes on after its module with what the module's text has."""
    wrong = []
    for path in texts():
        for name in {*CALLED.findall(path.read_text("utf-8"))}:
            place, rest = PACKAGE, name.split(".")[1:]
            while rest and (place / rest[0] / "__init__.py").is_file():
                place /= rest.pop(0)
            if rest and (place / f"{rest[0]}.py").is_file():
                place /= f"{rest.pop(0)}.py"
            module = place if place.suffix else place / "__init__.py"
            if rest and rest[0] not in re.findall(r"\w+", module.read_text("utf-8")) and not data(place, rest):
                wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert {*wrong} <= EXEMPT


def data(place: Path, rest: list[str]) -> bool:
    """A folder of data, or the beginning of a name that an f-string goes on with."""
    return place.is_dir() and ((place / rest[0]).is_dir() or any(place.glob(f"{rest[0]}*.py")))


def texts() -> Iterator[Path]:
    tops = ("README.md", "CONTRIBUTING.md", "pyproject.toml", "noxfile.py", "tox.ini")
    yield from (ROOT / each for each in tops)
    for folder in NAMES:
        found = (each for each in sorted((ROOT / folder).rglob("*")) if each.suffix in TEXTS and each.is_file())
        yield from (each for each in found if each != Path(__file__).resolve())


def test_no_text_names_a_module_without_the_package() -> None:
    """Nor a command of the name that the package had."""
    bare = "|".join(NAMES)
    old = re.compile(
        rf"\bfrom (?:{bare})(?:\.\w+)* import\b|^ *import (?:{bare})\b|\bfiles\(\"(?:{bare})\b"
        rf"|-m\"?,? \"?(?:{bare})\b|--pyargs (?:{bare})\b|[\"'](?:conformance|strategies)\.\w+[.:\"']"
    )
    schemas = 'names = ("conformance.core", "case"), ("conformance.targets", "testee"), ("golden", "regression")'
    wrong = []
    for path in texts():
        if path.name == "own_packages.py":
            continue
        for line in path.read_text("utf-8").splitlines():
            if old.search(line) and line.strip() != schemas:
                wrong.append(f"{path.relative_to(ROOT)}: {line.strip()}")
    assert not wrong


# ---- what hashes folders by name


def test_a_folder_that_is_missing_does_not_count_as_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(matrix.source_digest()) == 16
    monkeypatch.setattr(matrix, "files", lambda name: tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a package of kipcheck"):
        matrix.source_digest()


def test_the_digest_of_our_code_sees_every_package(tmp_path: Path) -> None:
    """Through the links of a checkout as well."""
    places = (
        "__main__.py",
        "conformance/wire/schema.py",
        "strategies/nodes.py",
        "golden/vector_files.py",
        "reports/text.py",
    )
    whole = spark_worker._code(PACKAGE)
    assert whole == spark_worker.fingerprint()["the code of kipcheck"]
    for name in places:
        (tmp_path / "kipcheck" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kipcheck" / name).write_bytes((PACKAGE / name).read_bytes())
    digests = {spark_worker._code(tmp_path / "kipcheck")}
    for name in places:
        (tmp_path / "kipcheck" / name).write_text("")
        digests.add(spark_worker._code(tmp_path / "kipcheck"))
    assert len(digests) == len(places) + 1


# ---- beside packages of the same names


@pytest.mark.integration
def test_a_project_with_packages_of_all_four_names_works(tmp_path: Path) -> None:
    runs_beside_packages_of_the_same_names(Path(sys.executable), tmp_path)
