"""Opens connections to brokers, with TLS and SASL where they are asked for.

Of SASL it has PLAIN and SCRAM (KIP-152: SaslHandshake v1, then SaslAuthenticate, which brokers have from 1.0 on).
"""

import asyncio
import ssl
import struct
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.security import CHECKED, MECHANISM, PLAIN, TRUSTED, Sasl, Security
from kipcheck.conformance.wire.framing import LARGEST, frame

CONNECTS_S: Final = 10.0
"""For connection, TLS and SASL together."""
NAME: Final = b"kipcheck"
API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 33, 34, 58
TLS_ALERT: Final = b"\x15\x03"
BEFORE_END: Final = 0.8
"""The part of the lifetime of an authentication after which a connection is not used any more."""
HOST_MISMATCH: Final = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


class Closed(Exception):
    """The broker closed the connection instead of answering, or accepts none."""


class NotOpened(Closed):
    """No connection was opened; the text says why."""


class Rejected(NotOpened):
    """TLS or SASL failed; the text says why, and what to do."""


@dataclass(slots=True, eq=False)
class Opened:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ends_s: float = float("inf")
    """When the broker wants another authentication (KIP-368), in the time of the event loop."""


async def open_secured(host: str, port: int, security: Security, limit: int = 1 << 16) -> Opened:
    """``limit``: bytes that are buffered for reading. Errors: ``NotOpened``; ``Rejected``."""
    where = f"{host}:{port}"
    try:
        async with asyncio.timeout(CONNECTS_S):
            opened = Opened(*await asyncio.open_connection(
                host, port, limit=limit, ssl=security.tls, server_hostname=host if security.tls else None
            ))  # fmt: skip
            if security.sasl is not None:
                try:
                    await _Login(opened, where, security).run(security.sasl)
                except BaseException:
                    opened.writer.transport.abort()
                    raise
            return opened
    except ssl.SSLError as wrong:
        raise Rejected(_of_tls(where, wrong, security)) from None
    except ConnectionResetError as wrong:
        if security.tls is None:
            raise NotOpened(f"{where} accepts no connection: {wrong}") from None
        raise Rejected(f"{where} ends the TLS handshake: {_NO_TLS}") from None
    except TimeoutError:
        tls = f", in TLS: {_NO_TLS}" if security.tls is not None else ""
        raise NotOpened(f"{where} accepts no connection: no answer in time{tls}") from None
    except ConnectionRefusedError:
        raise NotOpened(f"{where} accepts no connection: nothing listens there") from None
    except OSError as wrong:
        raise NotOpened(f"{where} accepts no connection: {wrong}") from None


_NO_TLS: Final = "is it a listener with TLS, and does it want a client certificate (ssl.keystore.location)?"


def _of_tls(where: str, wrong: ssl.SSLError, security: Security) -> str:
    if isinstance(wrong, ssl.SSLCertVerificationError):
        if wrong.verify_code in HOST_MISMATCH:
            return (
                f"the certificate of {where} is of another host: {wrong.verify_message}; use a name that it has, or "
                f"accept any with an empty {CHECKED} in {security.file}"
            )
        return (
            f"the certificate of {where} is not trusted: {wrong.verify_message}; name the one that signed it with "
            f"{TRUSTED} in {security.file}"
        )
    return f"{where} ends the TLS handshake ({wrong.reason or wrong}): {_NO_TLS}"


class _Login:
    """The exchange of one authentication. Errors of its methods: ``Rejected``."""

    def __init__(self, opened: Opened, where: str, security: Security) -> None:
        self._opened, self._where, self._file = opened, where, security.file

    async def run(self, sasl: Sasl) -> None:
        try:
            version = await self._version()
            await self._handshake(sasl.mechanism)
            if sasl.mechanism == PLAIN:
                await self._token(version, b"\0".join((b"", sasl.user.encode(), sasl.password.encode())))
            else:
                await self._scram(version, sasl)
        except (asyncio.IncompleteReadError, ConnectionError, struct.error):
            raise self._rejected(
                "the broker closed the connection: is it a listener with SASL, of Kafka 1.0 or newer, and does "
                "security.protocol name its protocol?"
            ) from None

    def _rejected(self, why: str) -> Rejected:
        return Rejected(f"{self._where} does not authenticate kipcheck by {self._file}: {why}")

    async def _version(self) -> int:
        """The version of SaslAuthenticate: 1 has the lifetime."""
        body = await self._ask(API_VERSIONS, 0, b"")
        (error,) = struct.unpack_from(">h", body)
        if error:
            raise self._rejected(f"ApiVersions v0 is answered with error {error}")
        ranges: dict[int, int] = {key: high for key, _, high in struct.iter_unpack(">hhh", body[6:])}
        if AUTHENTICATE not in ranges:
            raise self._rejected("it has no SaslAuthenticate: kipcheck authenticates with Kafka 1.0 and newer")
        return min(ranges[AUTHENTICATE], 1)

    async def _handshake(self, mechanism: str) -> None:
        body = await self._ask(HANDSHAKE, 1, _text(mechanism))
        error, count = struct.unpack_from(">hi", body)
        if not error:
            return
        at, names = 6, []
        for _ in range(count):
            (size,) = struct.unpack_from(">h", body, at)
            names.append(body[at + 2 : at + 2 + size].decode("utf-8", "replace"))
            at += 2 + size
        if error == UNSUPPORTED_MECHANISM:
            raise self._rejected(f"{MECHANISM} {mechanism} is not enabled; the broker has {', '.join(names) or 'none'}")
        without = " (the listener has no SASL: use PLAINTEXT or SSL)" if error == ILLEGAL_STATE else ""
        raise self._rejected(f"SaslHandshake is answered with error {error}{without}")

    async def _scram(self, version: int, sasl: Sasl) -> None:
        from scramp import ScramClient, ScramException

        try:
            client = ScramClient([sasl.mechanism], sasl.user, sasl.password)
            first = await self._token(version, client.get_client_first().encode())
            client.set_server_first(first.decode("utf-8", "replace"))
            final = await self._token(version, client.get_client_final().encode())
            client.set_server_final(final.decode("utf-8", "replace"))
        except ScramException as wrong:
            raise self._rejected(f"{sasl.mechanism}: {wrong}") from None

    async def _token(self, version: int, token: bytes) -> bytes:
        body = await self._ask(AUTHENTICATE, version, struct.pack(">i", len(token)) + token)
        error, size = struct.unpack_from(">hh", body)
        why = body[4 : 4 + max(size, 0)].decode("utf-8", "replace")
        at = 4 + max(size, 0)
        if error:
            user = "the user or the password is another: " if error == FAILED else f"error {error}: "
            raise self._rejected(user + (why or "it does not say why"))
        (length,) = struct.unpack_from(">i", body, at)
        at += 4 + max(length, 0)
        if version:
            (lifetime_ms,) = struct.unpack_from(">q", body, at)
            if lifetime_ms:
                self._opened.ends_s = now() + BEFORE_END * lifetime_ms / 1000
        return body[at - max(length, 0) : at]

    async def _ask(self, key: int, version: int, body: bytes) -> bytes:
        header = struct.pack(">hhih", key, version, 0, len(NAME)) + NAME
        self._opened.writer.write(frame(header + body))
        await self._opened.writer.drain()
        start = await self._opened.reader.readexactly(4)
        if why := wrong_size(start):
            raise self._rejected(why)
        return (await self._opened.reader.readexactly(int.from_bytes(start, "big")))[4:]


def wrong_size(start: bytes) -> str:
    """Why the first bytes of a response are no size; empty: they are one."""
    if start.startswith(TLS_ALERT):
        return "the listener has TLS: use SSL or SASL_SSL as security.protocol, in --config FILE"
    size = int.from_bytes(start, "big", signed=True)
    return "" if 4 <= size <= LARGEST else f"a response announces a size of {size} bytes"


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data
