"""How connections to a broker are secured: TLS and SASL, by a properties file such as Java's clients take.

The keys are those of Java's clients, and where librdkafka has others for certificates and names, those too.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from kipcheck.conformance.core.values.nearest import hint

PROTOCOL: Final = "security.protocol"
MECHANISM: Final = "sasl.mechanism"
JAAS: Final = "sasl.jaas.config"
USER, PASSWORD = "sasl.username", "sasl.password"
TRUSTED: Final = "ssl.truststore.location"
TRUSTED_INLINE: Final = "ssl.truststore.certificates"
OWN: Final = "ssl.keystore.location"
OWN_KEY: Final = "ssl.key.location"
OWN_KEY_PASSWORD: Final = "ssl.key.password"
CHECKED: Final = "ssl.endpoint.identification.algorithm"
TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
ALIASES: Final[Mapping[str, str]] = {
    "sasl.mechanisms": MECHANISM,
    "ssl.ca.location": TRUSTED,
    "ssl.certificate.location": OWN,
}
"""librdkafka's names."""
KEYS: Final = (
    PROTOCOL, MECHANISM, JAAS, USER, PASSWORD, TRUSTED, TRUSTED_INLINE, OWN, OWN_KEY, OWN_KEY_PASSWORD, CHECKED,
    *TYPES, *ALIASES,
)  # fmt: skip
PROTOCOLS: Final[Mapping[str, tuple[bool, bool]]] = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
"""Whether connections have TLS, and SASL."""
PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")
PEM: Final = b"-----BEGIN "


class InvalidSecurity(LookupError):
    """The file cannot be used; the text says where, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Sasl:
    mechanism: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Security:
    """Without arguments: plaintext, and no authentication."""

    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None
    file: str = ""
    """Where it was read."""


OPEN: Final = Security()


def read_security(path: str) -> Security:
    """Errors: ``InvalidSecurity``."""
    given = _Given(path, _properties(path))
    protocol = given.get(PROTOCOL, "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        given.refuse(PROTOCOL, f"use {', '.join(PROTOCOLS)}")
    tls, sasl = PROTOCOLS[protocol]
    return Security(_context(given) if tls else None, _sasl(given) if sasl else None, path)


@dataclass(frozen=True, slots=True)
class _Given:
    path: str
    values: Mapping[str, tuple[str, int]]
    """By key: the value, and its line."""

    def get(self, key: str, default: str = "") -> str:
        return self.values.get(key, (default, 0))[0]

    def refuse(self, key: str, what: str) -> NoReturn:
        """Errors: always ``InvalidSecurity``. A password is not shown."""
        value, line = self.values.get(key, ("", 0))
        if not line:
            raise InvalidSecurity(f"{self.path}: {key} is missing: {what}")
        shown = "" if key in (JAAS, PASSWORD, OWN_KEY_PASSWORD) else f" {value!r}"
        raise InvalidSecurity(f"{self.path}:{line}: invalid {key}{shown}: {what}")


def _properties(path: str) -> dict[str, tuple[str, int]]:
    """By key, of the main names: the last value, and its line. Errors: ``InvalidSecurity``."""
    from javaproperties import InvalidUEscapeError, KeyValue, parse

    try:
        text = Path(path).read_text("utf-8")
    except OSError as wrong:
        raise InvalidSecurity(f"--config {path} cannot be read: {wrong.strerror or wrong}") from None
    except UnicodeDecodeError as wrong:
        raise InvalidSecurity(f"--config {path} is not UTF-8 at byte {wrong.start}") from None
    found, line = dict[str, tuple[str, int]](), 1
    try:
        for each in parse(text):
            if isinstance(each, KeyValue):
                if each.key not in KEYS:
                    known = hint(each.key, KEYS) or f"; known: {', '.join(KEYS)}"
                    raise InvalidSecurity(f"{path}:{line}: unknown key {each.key!r}{known}")
                found[ALIASES.get(each.key, each.key)] = each.value.strip(), line
            line += each.source.count("\n")
    except InvalidUEscapeError as wrong:
        raise InvalidSecurity(f"{path}:{line}: {wrong}") from None
    return found


# SASL


def _sasl(given: _Given) -> Sasl:
    mechanism = given.get(MECHANISM).upper()
    if mechanism not in MECHANISMS:
        given.refuse(MECHANISM, f"use {', '.join(MECHANISMS)}")
    user, password = given.get(USER), given.get(PASSWORD)
    if JAAS in given.values:
        options = _jaas(given, given.get(JAAS))
        user, password = options.get("username", user), options.get("password", password)
        if not user or not password:
            given.refuse(JAAS, 'it lacks username="..." or password="..."')
    if not user:
        given.refuse(USER, f"name the user there, or in {JAAS}")
    if not password:
        given.refuse(PASSWORD, f"state the password there, or in {JAAS}")
    return Sasl(mechanism, user, password)


def _jaas(given: _Given, text: str) -> dict[str, str]:
    """The options of ``org...LoginModule required username="u" password="p";``."""
    import shlex

    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.quotes = True, "", '"'
    lexer.whitespace += ";"
    try:
        words = [*lexer]
    except ValueError:
        words = []
    if len(words) < 2 or words[1] not in ("required", "requisite", "sufficient", "optional"):
        given.refuse(JAAS, 'use the form LoginModule required username="..." password="...";')
    return dict(each.partition("=")[::2] for each in words[2:])


# TLS


def _context(given: _Given) -> ssl.SSLContext:
    """What the certificate of a broker is checked by; without a trust store, the certificates of this machine."""
    for each in TYPES:
        if given.get(each, "PEM").upper() != "PEM":
            given.refuse(each, f"use PEM: {_CONVERTED}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    checked = given.get(CHECKED, "https")
    if checked.lower() not in ("https", "none", ""):
        given.refuse(CHECKED, "use https, or nothing to accept any host name")
    context.check_hostname = checked.lower() == "https"
    if given.get(TRUSTED_INLINE):
        _trust(given, context, TRUSTED_INLINE, given.get(TRUSTED_INLINE))
    elif given.get(TRUSTED):
        _trust(given, context, TRUSTED, _pem(given, TRUSTED))
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if given.get(OWN):
        _pem(given, OWN)
        key = given.get(OWN_KEY)
        if key:
            _pem(given, OWN_KEY)
        try:
            context.load_cert_chain(given.get(OWN), key or None, lambda: given.get(OWN_KEY_PASSWORD))
        except (OSError, ValueError):
            given.refuse(OWN, f"it has no certificate with its private key, or {OWN_KEY_PASSWORD} is another")
    return context


def _trust(given: _Given, context: ssl.SSLContext, key: str, certificates: str) -> None:
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError):
        given.refuse(key, "it has no certificates that can be read")


def _pem(given: _Given, key: str) -> str:
    """The text of a file in PEM. Errors: ``InvalidSecurity``."""
    try:
        data = Path(given.get(key)).read_bytes()
    except OSError as wrong:
        given.refuse(key, f"it cannot be read: {wrong.strerror or wrong}")
    if PEM not in data:
        given.refuse(key, f"it is not PEM: {_CONVERTED}")
    return data.decode("utf-8", "replace")


_CONVERTED: Final = "keytool -exportcert -rfc writes the certificates of a Java key store as PEM"
