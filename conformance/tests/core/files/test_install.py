"""What errors and texts advise to install can be installed: from a clone, a URL, or by the packages themselves."""

import re
import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from kipcheck.conformance.campaign.executors import preflight
from kipcheck.conformance.core.files.install import advice

ROOT = Path(__file__).resolve().parents[4]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def parsed(texts: list[str]) -> set[tuple[str, frozenset[str], str]]:
    found = map(Requirement, texts)
    return {(each.name, frozenset(each.extras), str(each.specifier)) for each in found}


def test_advice_is_what_the_project_declares() -> None:
    for extra in ("spark", "pytest", "go", "node", "targets", "completion"):
        pip, install, *words = shlex.split(advice(extra))
        assert (pip, install) == ("pip", "install")
        assert parsed(words) == parsed(EXTRAS[extra])
    assert advice("spark", "pyarrow") == "pip install pyarrow"
    assert advice("targets", "kio") == f"pip install {next(each for each in EXTRAS['targets'] if each[:3] == 'kio')}"
    assert Requirement(shlex.split(advice("targets", "kafka-python"))[2]).name == "kafka-python"


def test_a_kipcheck_that_is_not_installed_advises_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", none)
    assert advice("spark") == "pip install '.[spark]' in a clone of kipcheck"


def test_what_spark_needs_is_named_by_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_found", lambda name: False)
    with pytest.raises(preflight.Unready) as why:
        preflight.libraries(remote=False)
    assert advice("spark") in str(why.value)


def test_no_text_advises_to_install_kipcheck_from_an_index() -> None:
    wrong = []
    tops = ("README.md", "pyproject.toml", "noxfile.py", "src", "conformance", "strategies", "golden", "reports")
    for folder in tops:
        place = ROOT / folder
        for path in [place] if place.is_file() else place.rglob("*"):
            if path.suffix not in (".py", ".md", ".toml", ".yml", ".html", ".js") or path == Path(__file__).resolve():
                continue
            for line in path.read_text("utf-8", "replace").splitlines():
                # By a URL, or within the project's own declaration of its extras, it needs no index.
                named = re.sub(
                    r'kipcheck(\[[\w,]+\])? @ (git\+)?https://|^ +"kipcheck\[completion,docs,targets,spark\]",$',
                    "",
                    line,
                )
                if re.search(r"kipcheck\[[\w,]+\]|pip install( -\S+)* [\"']?kipcheck\b|INSTALL: \"?kipcheck\b", named):
                    wrong.append(f"{path.relative_to(ROOT)}: {line.strip()}")
    assert not wrong
