"""The address of a running broker, as names of targets have it."""

import ipaddress
import re
import socket
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from kipcheck.conformance.live.connections.connections import ANSWERED_S
from kipcheck.conformance.live.connections.security import OPEN, Security, read_security

FORM: Final = "broker:HOST:PORT"
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Address:
    """``HOST:PORT?topic=NAME&allow-remote&config=FILE&timeout=SECONDS``: the options of the command line are part of
    the target's name, so that replays have them."""

    host: str
    port: int
    topic: str = ""
    allow_remote: bool = False
    security: Security = OPEN
    allow_changes: bool = False
    """Whether updates of features may be applied, and not only validated."""
    timeout_s: float = ANSWERED_S
    """The time for an answer."""

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Errors: LookupError for another form, for a file that cannot be used, and for a host that is not this
        machine, if that is not allowed."""
        where, _, options = text.partition("?")
        host, _, port = where.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise LookupError(f"invalid address {where!r}: use {FORM}, such as broker:localhost:9092")
        found = cls(host, int(port))
        for each in filter(None, options.split("&")):
            key, _, value = each.partition("=")
            if key == "topic" and TOPIC.fullmatch(value):
                found = replace(found, topic=value)
            elif each == "allow-remote":
                found = replace(found, allow_remote=True)
            elif each == "allow-changes":
                found = replace(found, allow_changes=True)
            elif key == "config" and value:
                found = replace(found, security=read_security(unquote(value)))
            elif key == "timeout" and value.isascii() and value.isdigit() and int(value):
                found = replace(found, timeout_s=float(value))
            else:
                options = "topic=NAME, allow-remote, allow-changes, config=FILE and timeout=SECONDS"
                raise LookupError(f"invalid option {each!r} of {FORM}: use {options}")
        if not found.allow_remote and not is_loopback(host):
            raise LookupError(
                f"{host} is not this machine: conversations create and delete groups on that broker; "
                "add --allow-remote if it is yours and meant for tests"
            )
        return found


def is_loopback(host: str) -> bool:
    """Whether all addresses of a host are loopback; a name without address is not."""
    try:
        found = {each[4][0] for each in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return all(ipaddress.ip_address(str(each).partition("%")[0]).is_loopback for each in found)
