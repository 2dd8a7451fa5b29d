"""The command ``watch``: judges what clients and coordinators of a cluster send, through a proxy or from a capture."""

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TextIO

from kipcheck.conformance.cli.options import (
    FAILED,
    NOT_STARTED,
    USAGE,
    Commands,
    add_json,
    add_out,
    address,
    complain,
    edition_name,
    print_harmless,
)
from kipcheck.conformance.core.values.untrusted_text import one_line

if TYPE_CHECKING:
    from kipcheck.conformance.live.watch.watcher import Watcher

ABOUT = "watch a running cluster through a proxy, or a capture of one, and report broken rules of groups"
EPILOG = """\
kipcheck watch --upstream localhost:9092
kipcheck watch --pcap traffic.pcap
tcpdump -U -w - port 9092 | kipcheck watch --pcap -

The first line of output is the address: listening 127.0.0.1:PORT. Clients that use it as bootstrap.servers reach every
broker through the proxy. What kipcheck does not know passes unchanged. A broken requirement is shown when it is seen,
and all are in the reports that Ctrl-C writes to --out.

The last lines count the exchanges that were judged, and name the others by API with the reason.

exit codes: 0 exchanges were judged, and broke no requirement of grade MUST, 1 one was broken, or an address cannot be
used, 2 usage, or a capture that cannot be read, 3 the broker cannot be reached, 6 the rest of a capture was not read,
7 no exchange was judged, 70 a bug in kipcheck"""


def add(commands: Commands) -> None:
    made = commands.add("watch", _watch, ABOUT, EPILOG)
    what = made.add_mutually_exclusive_group()
    what.add_argument("--pcap", metavar="FILE", help="judge a capture (pcap or pcapng) instead; - for standard input")
    what.add_argument("--upstream", type=address, metavar="HOST:PORT", help="a broker of the cluster")
    made.add_argument("--listen", type=address, metavar="HOST:PORT", help="default 127.0.0.1:0, a free port")
    made.add_argument("--config", metavar="FILE", help="TLS and SASL to the brokers, as properties of Java's clients")
    made.add_argument("--allow-remote", action="store_true", help="accept a --listen that other machines can reach")
    made.add_argument(
        "--edition", type=edition_name, default="apache", metavar="E", help="the text that applies: apache, apache@R"
    )
    add_json(made, "print the report as JSON to standard output, and lines before it to standard error")
    add_out(made, "where ledger and reports are written at the end", "--out", "--output")


def _watch(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.values.edition import edition
    from kipcheck.conformance.engine.ledger import watch_ledger
    from kipcheck.conformance.live.connections.security import OPEN, read_security
    from kipcheck.conformance.live.server.listener import is_loopback
    from kipcheck.conformance.live.watch.capture_input import NoCapture, watch_capture
    from kipcheck.conformance.live.watch.watch import Unreachable, Watching, watch

    listen = options.listen or ("127.0.0.1", 0)
    if why := _wrong(options, listen, is_loopback(listen[0])):
        return complain(why, USAGE)
    begun = time.monotonic()
    print_line = partial(_print_line, sys.stderr if options.json else sys.stdout)
    try:
        found = edition(options.edition)
        if not found.name.startswith("apache"):
            return complain(f"edition {options.edition}: clients are watched in editions of Apache Kafka", USAGE)
        watch_ledger.usable(options.out)
        if options.pcap is not None:
            watcher = watch_capture(options.pcap, found, print_line)
        else:
            security = read_security(options.config) if options.config else OPEN
            watcher = watch(Watching(found, options.upstream, listen, security), print_line)
        return _report(watcher, options, begun)
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    except Unreachable as gone:
        return complain(gone, NOT_STARTED)
    except (watch_ledger.Unusable, NoCapture) as why:
        return complain(why, USAGE)
    except OSError as unusable:
        if options.pcap is not None:
            return complain(f"--pcap {options.pcap} cannot be read: {unusable.strerror or unusable}", USAGE)
        return complain(unusable, FAILED)


def _print_line(stream: TextIO, text: str) -> None:
    """Ids that clients choose cannot begin a line."""
    print_harmless(one_line(text), stream)


def _wrong(options: argparse.Namespace, listen: tuple[str, int], is_local: bool) -> str:
    """What is wrong with the options; empty: nothing."""
    if options.pcap is None and options.upstream is None:
        return "nothing to watch: name a broker with --upstream HOST:PORT, or a capture with --pcap FILE"
    if options.pcap is not None and options.listen is not None:
        return "--pcap reads a file and listens nowhere: leave out --listen"
    if options.pcap is not None and options.config is not None:
        return "--pcap reads a file and connects to no broker: leave out --config"
    if options.upstream is not None and not options.upstream[1]:
        return "--upstream has port 0: name the port on which the broker listens"
    if not (options.allow_remote or is_local):
        return f"other machines can reach {listen[0]}: add --allow-remote to listen there"
    return ""


def _report(watcher: "Watcher", options: argparse.Namespace, begun: float) -> int:
    from kipcheck.conformance.cli.reports import print_written_report
    from kipcheck.conformance.core.ledger import Exchanges
    from kipcheck.conformance.engine.execution import interrupts
    from kipcheck.conformance.engine.ledger import watch_ledger
    from kipcheck.conformance.live.watch.coordinator import LAWS
    from kipcheck.conformance.live.watch.verdicts import COORDINATOR, seen_by_client
    from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_GROUPS

    interrupts.finish()
    seen = [watch_ledger.Seen(*each) for each in seen_by_client(watcher.judging)]
    of_clients, laws = watcher.judging.judged or {"no client": 0}, watcher.judging.laws
    judged = [
        watch_ledger.Judged(name, SURVIVES_GROUPS, number, laws.get(name, {})) for name, number in of_clients.items()
    ]
    answers = watcher.coordinators
    for check, number in answers.judged.items():
        read = {law: answers.laws[law] for law in LAWS[check]}
        judged += [watch_ledger.Judged(COORDINATOR, check, number, read)] if number else []
    exchanges = Exchanges(judged=dict(watcher.exchanges.judged), left=watcher.exchanges.left)
    made = watch_ledger.Watched(
        str(watcher.edition), judged, seen, SURVIVES_GROUPS, begun, exchanges, "; ".join(_unseen(watcher)),
        unread=watcher.unread, has_defect=bool(watcher.counts["our bugs"]), unseen_must=watcher.judging.unreported_must,
    )  # fmt: skip
    code, text, ledger = watch_ledger.write(made, options.out)
    print_written_report(ledger, text, options.json)
    counts = watcher.counts
    told = f"{counts['connections']} connections, {counts['requests']} requests, {counts['members']} members"
    complain("; ".join([told, *_unseen(watcher)]), code)
    return code


def _unseen(watcher: "Watcher") -> Sequence[str]:
    """What passed and was not judged, in words."""
    names = (
        "our bugs", "gaps", "forgotten members", "answers that cannot be read",
        "connections that began before the capture",
        "places where segments are missing", "captures that end amid a packet",
    )  # fmt: skip
    found = [f"{watcher.counts[name]} {name}" for name in names if watcher.counts[name]]
    if watcher.judging.unreported:
        found.append(f"{watcher.judging.unreported} violations beyond the limits are not in the reports")
    return found
