"""Every release that is used where none is named has a lock file, with a digest of all that it needs."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from kipcheck.conformance.live.client.built_in import BUILT_IN
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.toolchains import environments, go, node
from kipcheck.conformance.targets.toolchains.lock_files import lock, of_node, of_python

PYPROJECT = Path(__file__).resolve().parents[4] / "pyproject.toml"
PYTHON = {name: BUILT_IN[name].default() for name in ("kafka-python", "aiokafka", "confluent-kafka")}
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def test_the_default_releases_in_python_have_hashes_of_all_files() -> None:
    pinned = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]["targets"]
    for name, version in [*PYTHON.items(), *(each.split("==") for each in pinned)]:
        text = lock(of_python(name, version))
        assert text is not None, f"python -m kipcheck.golden.package_locks python {name} {version}"
        requirements = text.replace("\\\n", " ").splitlines()
        assert any(each.startswith(f"{name}=={version} ") for each in requirements)
        assert all(HASH.search(each) for each in requirements)


def test_the_default_releases_in_node_have_the_integrity_of_all_packages() -> None:
    entry = target_entries()["platformatic-kafka"]
    wanted = [("kafkajs", BUILT_IN["kafkajs"].default())]
    wanted += [(node.PACKAGES["platformatic-kafka"], each) for each in (entry.default, *entry.before.values())]
    for name, version in wanted:
        text = lock(of_node(name, version))
        assert text is not None, f"python -m kipcheck.golden.package_locks node {name} {version}"
        packages = json.loads(text)["packages"]
        assert packages.pop("")["dependencies"] == {name: version}
        assert packages[f"node_modules/{name}"]["version"] == version
        assert all(each["integrity"].startswith("sha512-") for each in packages.values())


def test_the_default_releases_in_go_have_sums() -> None:
    entries = target_entries()
    modules = {
        "github.com/twmb/franz-go": entries["franz-go"].default, "github.com/IBM/sarama": BUILT_IN["sarama"].default(),
        "github.com/twmb/franz-go/pkg/kfake": entries["kfake"].default,
        "github.com/segmentio/kafka-go": BUILT_IN["kafka-go"].default(),
    }  # fmt: skip
    for module, version in modules.items():
        assert f"\n{module} v{version} h1:" in f"\n{lock(go.SUMS)}", "python -m kipcheck.golden.package_locks go"


def tampered(path: str) -> str | None:
    text = lock(path)
    return text and re.sub(r"(?<=h1:)..|(?<=sha512-)..|(?<=sha256:)..", "00", text)


@pytest.mark.integration
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", [pytest.param("sarama", marks=pytest.mark.go), pytest.param("kafkajs", marks=pytest.mark.node), "aiokafka"]
)
def test_what_another_digest_has_is_not_installed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what registries really serve."""
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path))
    for module in (environments, go, node):
        monkeypatch.setattr(module, "lock", tampered)
    with pytest.raises(Unavailable, match=r"the digest of .* is \S+, but kipcheck's lock file states \S+: ") as refused:
        BUILT_IN[name].command(BUILT_IN[name].default())
    assert "\n" not in str(refused.value)
