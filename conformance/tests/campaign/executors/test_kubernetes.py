"""The manifests of docs/ci/kubernetes.yaml: Kubernetes' own schemas accept them, and what they start works together."""

import os
import re
import socket
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from kipcheck.conformance.campaign.manifest import Manifest
from kipcheck.conformance.tests.campaign.executors.test_spark import ROOT, ready
from kipcheck.conformance.tests.support.spark_cluster import Part, environment, started

__all__ = ["ready"]
FILE: Final = ROOT / "conformance" / "docs" / "ci" / "kubernetes.yaml"
DOCUMENTS: Final = list(yaml.safe_load_all(FILE.read_text("utf-8")))
EVERY_NIGHT: Final = "--target kafka-python --known default --budget 8h"
IN_A_TEST: Final = "--target reference --check wire/round-trip --cases 200 --rounds 1"


def containers() -> Mapping[str, Any]:
    """By their name."""
    pods = [each["spec"]["template"]["spec"] for each in DOCUMENTS if "template" in each["spec"]]
    return {each["name"]: each for pod in pods for each in pod["containers"]}


@pytest.mark.integration
def test_the_manifests_fit_the_schemas_of_kubernetes() -> None:
    from kubernetes_validate import ValidationError, validate  # type: ignore[import-untyped]

    assert [each["kind"] for each in DOCUMENTS] == [
        "Service",
        "Deployment",
        "Deployment",
        "PersistentVolumeClaim",
        "Job",
    ]
    for version in ("1.28", "1.33"):
        for each in DOCUMENTS:
            validate(each, version, strict=True)
        with pytest.raises(ValidationError, match="replica"):
            validate({**DOCUMENTS[2], "spec": {**DOCUMENTS[2]["spec"], "replica": 4}}, version, strict=True)


def test_parts_name_each_other_and_one_image() -> None:
    (release,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert {each["image"] for each in containers().values()} == {f"REGISTRY/kipcheck:{release}"}
    service = DOCUMENTS[0]
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in DOCUMENTS if each["kind"] == "Deployment"]
    assert service["spec"]["selector"] == labels[0]
    url = f"spark://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert url == containers()["worker"]["args"][-1] and url in containers()["driver"]["args"][0]


def run(folder: Path, container: Mapping[str, Any], here: Mapping[str, str]) -> AbstractContextManager[Part]:
    """The container's command on this machine, with other words in the places that are of a cluster."""
    command = [*container["command"], *container["args"]]
    for name, value in here.items():
        command = [each.replace(name, value) for each in command]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return started(command, folder / f"{container['name']}.log", {**environment(folder), "PATH": path})


@pytest.mark.faults
@pytest.mark.spark
@pytest.mark.usefixtures("ready")
def test_what_the_containers_run_is_a_campaign(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    here = {
        "kipcheck-master": "127.0.0.1", "7077": port, "/work": str(tmp_path / "work"), "/night": str(tmp_path),
        EVERY_NIGHT: IN_A_TEST,
    }  # fmt: skip
    parts = containers()
    assert EVERY_NIGHT in parts["driver"]["args"][0]
    with ExitStack() as stack:
        master = stack.enter_context(run(tmp_path, parts["master"], here))
        master.says(f"Starting Spark master at spark://127.0.0.1:{port}")
        # A pod has four cores; this machine has two, and the least memory of an executor is enough.
        worker = stack.enter_context(run(tmp_path, parts["worker"], {**here, "4g": "1g"}))
        worker.says("Successfully registered with master")
        for _ in range(2):  # the second is the pod that follows a lost one
            with run(tmp_path, parts["driver"], here) as driver:
                assert driver.process.wait(300) == 0, driver.log.read_text("utf-8")
    manifest = Manifest.read(tmp_path / "out")
    assert manifest.complete and manifest.settings["executor"] == "spark"
