"""Files about TLS and SASL, and a released broker whose listeners have them: run, inspect, watch, and their errors."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote

import pytest

from kipcheck.conformance.cli.main import run as kipcheck
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Replied
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.connections.security import InvalidSecurity, Sasl, read_security
from kipcheck.conformance.live.coordinator.address import Address
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.live.watch.proxy import Proxy
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.tests.support.loops import for_each


def test_a_file_of_a_java_client_is_read(tmp_path: Path) -> None:
    file = tmp_path / "my client.properties"
    file.write_text(
        "# of the operator\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism: SCRAM-SHA-512\n"
        "sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '   username="alice" \\\n   password="a;b=\\\\"c\\\\" ";\n'
    )
    found = read_security(str(file))
    assert (found.tls, found.sasl) == (None, Sasl("SCRAM-SHA-512", "alice", 'a;b="c" '))
    assert "a;b" not in repr(found)
    assert Address.parse(f"localhost:1?config={str(file).replace(' ', '%20')}").security == found


SASL = "security.protocol=SASL_PLAINTEXT\n"


@for_each(
    [
        ("security.protocol=SSL\nsasl.mecanism=PLAIN\n", r"c:2: unknown key 'sasl.mecanism'; the nearest: sasl.mech"),
        ("security.protocol=TLS\n", r"c:1: invalid security.protocol 'TLS': use PLAINTEXT, SSL"),
        (SASL, r"c: sasl.mechanism is missing: use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        (f"{SASL}\nsasl.mechanism=GSSAPI", r"c:3: invalid sasl.mechanism 'GSSAPI': use PLAIN"),
        (f"{SASL}sasl.mechanism=PLAIN\nsasl.username=a", r"c: sasl.password is missing"),
        (f"{SASL}sasl.mechanism=PLAIN\nsasl.jaas.config=secret", r"c:3: invalid sasl.jaas.config: use the form"),
        (f'{SASL}sasl.mechanism=PLAIN\nsasl.jaas.config=M required username="a";', r"c:3: .* it lacks username"),
        ("security.protocol=SSL\nssl.truststore.location=/no.pem", r"c:2: .*'/no.pem': it cannot be read: No such"),
        ("security.protocol=SSL\nssl.truststore.type=JKS", r"c:2: .* 'JKS': use PEM: keytool -exportcert -rfc"),
        ("security.protocol=SSL\nssl.truststore.location={}", r"c:2: .* it is not PEM"),
        ("security.protocol=SSL\nssl.truststore.certificates=x", r"c:2: .* no certificates that can be read"),
        ("a=\\u12", r"c:1: "),
    ]
)
def test_a_file_that_cannot_be_used_is_refused(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text(text.format(file))
    with pytest.raises(InvalidSecurity, match=why) as found:
        read_security(str(file))
    assert "secret" not in str(found.value)


def test_a_file_that_is_missing_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["run", "--target", "broker:localhost:1", "--check", "group/errors"],
                    ["inspect", "broker:localhost:1"], ["watch", "--upstream", "localhost:1"]):  # fmt: skip
        assert kipcheck([*command, "--config", "/no/such"]) == 2
        assert "--config /no/such cannot be read: No such file" in capsys.readouterr().err


# A released broker

RELEASE = "4.4.0"
EDITION = f"apache@{RELEASE}"
SCRAM, PLAIN = (
    "org.apache.kafka.common.security." + each for each in ("scram.ScramLoginModule", "plain.PlainLoginModule")
)
USERS = {"alice": "red green"}


@dataclass(frozen=True)
class Place:
    """The listeners of a broker, and the files with which clients reach them."""

    ports: Mapping[str, int]
    folder: Path

    def config(self, name: str, protocol: str, **more: str) -> str:
        """A file of a client that trusts the certificate; ``more``: _ for the dots of keys."""
        keys = {"security_protocol": protocol, "ssl_truststore_location": str(self.folder / "trusted.pem"), **more}
        file = self.folder / f"{name}.properties"
        file.write_text("".join(f"{key.replace('_', '.')}={value}\n" for key, value in keys.items()))
        return str(file)

    def scram(self, name: str, protocol: str = "SASL_SSL", password: str = USERS["alice"], **more: str) -> str:
        login = f'{SCRAM} required username="alice" password="{password}";'
        return self.config(name, protocol, **{"sasl_mechanism": "SCRAM-SHA-256", "sasl_jaas_config": login, **more})


def certificate(folder: Path, name: str) -> None:
    """A key store of a broker called localhost, and its certificate as PEM."""
    store = ["-keystore", str(folder / f"{name}.p12"), "-storepass", "changeit", "-alias", "broker"]
    made = ["-genkeypair", "-keyalg", "RSA", "-dname", f"CN={name}", "-ext", "san=dns:localhost", "-ext", "bc=ca:true"]
    for command in (made, ["-exportcert", "-rfc", "-file", str(folder / f"{name}.pem")]):
        process_tree.run(["keytool", *command, *store], 60).check_returncode()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    try:
        kafka_broker.class_path(RELEASE)
    except Unavailable as why:
        pytest.skip(str(why))
    folder = tmp_path_factory.mktemp("secured")
    for name in ("trusted", "other"):
        certificate(folder, name)
    settings = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "trusted.p12"),
        "ssl.keystore.password": "changeit",
        "ssl.key.password": "changeit",
        "connections.max.reauth.ms": "1000",
        "group.initial.rebalance.delay.ms": "100",
        "group.min.session.timeout.ms": "500",
    }
    for each in ("sasl_ssl", "sasl_plaintext"):
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"listener.name.{each}.{mechanism}.sasl.jaas.config"] = f"{SCRAM} required;"
        settings[f"listener.name.{each}.plain.sasl.jaas.config"] = f'{PLAIN} required user_bob="pass";'
    secured = kafka_broker.Secured(("SASL_SSL", "SSL", "SASL_PLAINTEXT"), USERS)
    with kafka_broker.running(RELEASE, settings, secured) as broker:
        yield Place({**broker.secured, "PLAINTEXT": broker.port}, folder)


def reached(place: Place, protocol: str, config: str, host: str = "localhost") -> str:
    """Why a listener cannot be reached with a file; empty: it can."""

    async def main() -> str:
        connections = Connections(host, place.ports[protocol], read_security(config))
        try:
            await versions_of(connections)
        except Closed as why:
            return str(why)
        finally:
            await connections.close()
        return ""

    return asyncio.run(main())


@pytest.mark.jars
def test_tls_and_sasl_reach_a_released_broker_and_what_is_wrong_is_named(place: Place) -> None:
    plain = {"sasl_username": "bob", "sasl_password": "pass", "sasl_mechanism": "PLAIN"}
    assert reached(place, "SSL", place.config("ssl", "SSL")) == ""
    assert reached(place, "SASL_SSL", place.config("plain", "SASL_SSL", **plain)) == ""
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert reached(place, "SASL_SSL", place.scram("s", sasl_mechanism=mechanism)) == ""
        assert reached(place, "SASL_PLAINTEXT", place.scram("s", "SASL_PLAINTEXT", sasl_mechanism=mechanism)) == ""
    bad = reached(place, "SASL_SSL", place.scram("bad", password="blue"))
    assert "bad.properties: the user or the password is another: " in bad and "blue" not in bad
    bob = {**plain, "sasl_password": "no"}
    assert "the user or the password is another" in reached(place, "SASL_SSL", place.config("p", "SASL_SSL", **bob))
    other = place.config("other", "SSL", ssl_truststore_location=str(place.folder / "other.pem"))
    assert "is not trusted: self-signed certificate; name the one" in reached(place, "SSL", other)
    no_store = place.config("no_store", "SSL", ssl_truststore_location="")
    assert "is not trusted: self-signed certificate; name the one" in reached(place, "SSL", no_store)
    ssl = place.config("ssl", "SSL")
    assert "is of another host: IP address mismatch" in reached(place, "SSL", ssl, host="127.0.0.1")
    any_host = place.config("any", "SSL", ssl_endpoint_identification_algorithm="")
    assert reached(place, "SSL", any_host, host="127.0.0.1") == ""
    assert "ends the TLS handshake" in reached(place, "PLAINTEXT", ssl)
    assert "the listener has TLS" in reached(place, "SSL", place.scram("s", "SASL_PLAINTEXT"))
    assert "the listener has no SASL" in reached(place, "PLAINTEXT", place.scram("s", "SASL_PLAINTEXT"))


@pytest.mark.jars
def test_a_secured_broker_is_run_and_inspected(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, asked = f"broker:localhost:{place.ports['SASL_SSL']}", ["--config", place.scram("good")]
    check = CHECKS["group/errors"]
    drawn = check.samples(next(iter(check.family.subjects(EDITION))), 0, 6)
    cases = [
        replace(each.case, steps=tuple(takewhile(lambda one: one.verb != "elapse", each.case.steps))) for each in drawn
    ]
    with registry.target(f"{target}?config={quote(asked[1])}").open(EDITION, Role.COORDINATOR) as session:
        found = session.run(cases[:6])
    replies = [each for observed in found for each in observed if isinstance(each, Replied)]
    assert len(replies) > 6, found
    assert "could not delete" not in capsys.readouterr().err
    # It was connected, and every group is deleted again: there is none to judge.
    assert kipcheck(["inspect", target, *asked]) == 7
    assert "list no group" in capsys.readouterr().out
    assert kipcheck(["inspect", target]) == 3
    assert "the listener has TLS: use SSL or SASL_SSL" in capsys.readouterr().err
    wrong = ["--config", place.scram("wrong", password="no")]
    options = ["--check", "group/errors", "--edition", EDITION, "--out", str(tmp_path)]
    assert kipcheck(["run", "--target", target, *options, *wrong]) == 3
    assert "the user or the password is another" in capsys.readouterr().err


@pytest.mark.jars
def test_watch_authenticates_for_its_clients(place: Place) -> None:
    async def main() -> None:
        security, stated = read_security(place.scram("good")), list[str]()
        proxy = Proxy(("localhost", place.ports["SASL_SSL"]), Watcher(edition("apache"), stated.append), security)
        connections = Connections(*await proxy.listen("127.0.0.1", 0))
        assert 11 in await versions_of(connections)
        found = await connections.ask("Metadata", 5, "kipcheck", {"topics": [], "allowAutoTopicCreation": False})
        assert [(each["host"], each["port"]) for each in found["brokers"]] != [("localhost", place.ports["SASL_SSL"])]
        await connections.close()
        await proxy.close()

    asyncio.run(main())
