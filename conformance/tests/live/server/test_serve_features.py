"""The command ``serve --model features``: clients read and update feature versions on it."""

import os
import socket
import subprocess
from typing import Any

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.live.server.features import controller_of, features_of
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker, maven
from kipcheck.conformance.tests.live.server.test_serve import served
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire.framing import decode_response, encode_request, frame


def serving(name: str) -> Any:
    return served("--model", "features", "--edition", name)


def asked(client: socket.socket, name: str, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """The response to a request of an edition."""
    client.sendall(frame(encode_request(name, f"{api}Request", version, 7, "me", body)))
    with client.makefile("rb") as stream:
        payload = stream.read(int.from_bytes(stream.read(4), "big"))
    return decode_response(payload, name, f"{api}Response", version).body


def test_a_client_of_the_draft_updates_a_feature() -> None:
    software = {"clientSoftwareName": "x", "clientSoftwareVersion": "1"}

    def levels() -> tuple[int, dict[str, int]]:
        found = asked(client, "kip-584", "ApiVersions", 3, software)
        assert [each["apiKey"] for each in found["apiKeys"]] == [3, 18, 52]
        finalized = {each["name"]: each["maxVersionLevel"] for each in found["finalizedFeatures"]}
        return found["finalizedFeaturesEpoch"], finalized

    def updated(feature: str, level: int, lowers: bool = False) -> int:
        update = {"feature": feature, "maxVersionLevel": level, "allowDowngrade": lowers}
        found = asked(client, "kip-584", "UpdateFeatures", 0, {"timeoutMs": 1000, "featureUpdates": [update]})
        assert found["errorCode"] == 0
        (result,) = found["results"]
        return int(result["errorCode"])

    with serving("kip-584") as (_, port), socket.create_connection(("127.0.0.1", port), 5) as client:
        assert levels() == (0, {"group_coordinator": 1})
        assert updated("group_coordinator", 3) == 0
        assert levels() == (1, {"group_coordinator": 3})
        assert updated("group_coordinator", 2) == 42
        assert updated("transaction_coordinator", 3) == 96
        assert levels() == (1, {"group_coordinator": 3})
        assert updated("group_coordinator", 0, lowers=True) == 0
        assert levels() == (2, {})


def test_lowest_levels_of_0_are_shown_from_version_4_of_api_versions_on() -> None:
    picture = controller_of(edition("apache@3.9.2")).picture()
    shown = {
        version: [each["name"] for each in features_of(picture, version)["supportedFeatures"]] for version in (3, 4)
    }
    assert shown == {3: ["metadata.version"], 4: ["kraft.version", "metadata.version"]}
    assert features_of(picture, 2) == {}


def test_with_zookeeper_every_update_is_refused() -> None:
    controller = controller_of(edition("apache@2.8.2"))
    update = {"feature": "a", "maxVersionLevel": 1, "allowDowngrade": False}
    found = controller.update(0, {"featureUpdates": [update]})
    assert (found["errorCode"], [each["errorCode"] for each in found["results"]]) == (0, [42])
    assert controller.picture().finalized == {}


@for_each(
    [
        (("--edition", "apache@2.6.0"), "no controller of features"),
        (("--edition", "kip-429"), "no controller of features"),
        (("--topic", "t:1"), "leave out --topic"),
        (("--config", "group.max.size=1"), "leave out --topic and --config"),
    ]
)
def test_wrong_options_exit_with_2(options: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--model", "features", *options]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.integration
@for_each([("3.3.2", 7, False), ("3.9.2", 21, True), ("4.0.0", 25, True), ("4.4.0", 33, False)])
def test_kafka_pythons_admin_client_updates_features(release: str, newest: int, falls: bool) -> None:
    """``falls``: whether the newest level of metadata.version changed no record."""
    kafka_admin = pytest.importorskip("kafka.admin")
    with serving(f"apache@{release}") as (_, port):
        admin = kafka_admin.KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
        try:
            before = admin.describe_features()
            assert before["metadata.version"]["finalized"] == (newest, newest)
            lower = {"metadata.version": ("SAFE_DOWNGRADE", newest - 1)}
            for validate_only in (True, False):
                try:
                    found = admin.update_features(lower, validate_only=validate_only)
                    assert (set(found.values()) <= {"OK"}) is falls
                except Exception as refused:  # noqa: BLE001 - a top-level error, whose class is the client's own
                    assert not falls, refused
                level = newest - 1 if falls and not validate_only else newest
                after = admin.describe_features()
                assert after["metadata.version"]["finalized"] == (level, level)
        finally:
            admin.close()


@pytest.mark.jars
@for_each([("3.9.2", "3.9-IV0", "metadata.version", 20, "3.8-IV0"), ("4.3.1", "4.3-IV0", "group.version", 0, "0")])
def test_kafkas_own_tool_updates_features(release: str, newest: str, feature: str, level: int, shown: str) -> None:
    tools = f"org.apache.kafka:kafka-tools:{release}"
    try:
        jars = os.pathsep.join((kafka_broker.class_path(release), str(maven.fetch([tools])[tools])))
    except Unavailable as why:
        pytest.skip(str(why))

    def tool(*arguments: str) -> tuple[int, str]:
        """Exit code and output."""
        main = "org.apache.kafka.tools.FeatureCommand"
        argv = ["java", "-cp", jars, main, "--bootstrap-server", f"127.0.0.1:{port}", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, " ".join(f"{done.stdout}{done.stderr}".split())

    def level_of(name: str) -> str:
        code, text = tool("describe")
        assert code == 0, text
        return text.partition(f"Feature: {name} ")[2].partition("FinalizedVersionLevel: ")[2].split()[0]

    with serving(f"apache@{release}") as (_, port):
        assert level_of("metadata.version") == newest
        code, text = tool("downgrade", "--feature", f"{feature}={level}")
        assert (code, f"{feature} was downgraded to {level}." in text) == (0, True), text
        assert level_of(feature) == shown
        code, text = tool("upgrade", "--feature", f"{feature}=99")
        assert (code, "1 out of 1 operation(s) failed." in text) == (1, True), text
        assert level_of(feature) == shown


@pytest.mark.jars
@pytest.mark.all_jars
@pytest.mark.parametrize("release", ["2.7.2", "3.3.2"])
def test_the_tool_in_the_core_jar_updates_features(release: str) -> None:
    """``kafka.admin.FeatureCommand``; that of 2.7 knows no feature, so that there is nothing to update."""
    jars = kafka_broker.class_path(release)

    def tool(*arguments: str) -> tuple[int, str]:
        argv = [
            "java",
            "-cp",
            jars,
            "kafka.admin.FeatureCommand",
            "--bootstrap-server",
            f"127.0.0.1:{port}",
            *arguments,
        ]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, " ".join(f"{done.stdout}{done.stderr}".split())

    with serving(f"apache@{release}") as (_, port):
        if release == "2.7.2":
            assert [tool(each)[0] for each in ("--describe", "--upgrade-all", "--downgrade-all")] == [0, 0, 0]
            assert tool("--upgrade")[0] == 1
            return
        code, text = tool("describe")
        assert code == 0 and "FinalizedVersionLevel: 3.3-IV3" in text, text
        code, text = tool("downgrade", "--metadata", "3.3-IV2")
        assert (code, "1 out of 1 operation(s) failed." in text) == (1, True), text
        code, text = tool("upgrade", "--metadata", "3.3-IV3", "--dry-run")
        assert code == 0, text
