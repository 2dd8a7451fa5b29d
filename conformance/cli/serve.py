"""The command ``serve``: a broker on loopback, for any client."""

import argparse
from pathlib import Path

from kipcheck.conformance.cli.options import (
    FAILED,
    OK,
    USAGE,
    Commands,
    complain,
    edition_name,
    print_harmless,
    release,
)
from kipcheck.conformance.core.files.unreadable_file import unwritable

ABOUT = "play a broker on loopback, whose groups or features a model runs, for clients that are not changed"
EPILOG = """\
kipcheck serve --topic orders:3 --log

The first line of output is the address: listening 127.0.0.1:PORT. Each topic has a few records in each partition.
Settings have the defaults of the release; stderr shows those that differ, such as group.initial.rebalance.delay.ms=0. A
request that kipcheck's decoder refuses is shown with --log, and counted at the end.

kipcheck serve --script "answer JoinGroup NOT_COORDINATOR at next; rebalance" --http 0

plays the steps of run --script while clients come and go; --http lets tests in any language play steps, and wait for
requests by name: JSON at the second address that is printed, which GET describes. With either, there are two nodes.

kipcheck serve --model features --edition apache@3.9.2

answers ApiVersions, Metadata and UpdateFeatures as the controller of that release would, from 2.7.0 on: with ZooKeeper
up to 3.2, in KRaft from 3.3 on; --edition kip-584 is the controller of the draft. It takes no --topic and --config.

exit codes: 0 ended by SIGTERM or Ctrl-C, 1 the address or a file cannot be used, 2 usage"""
MODELS = ("group", "features")
ANY_ADDRESS = ("0.0.0.0", "::")


def add(commands: Commands) -> None:
    made = commands.add("serve", _serve, ABOUT, EPILOG)
    made.add_argument("--model", default="group", metavar="M", help="group (the default) or features")
    which = made.add_mutually_exclusive_group()
    which.add_argument(
        "--release", type=release, metavar="R", help="an exact release of Apache Kafka (default: the newest)"
    )
    which.add_argument(
        "--edition",
        type=edition_name,
        metavar="E",
        help="apache@R, apache or a draft; --release R is --edition apache@R",
    )
    made.add_argument("--host", default="127.0.0.1", metavar="H", help="default 127.0.0.1")
    made.add_argument("--port", type=_port, default=0, metavar="N", help="default 0: a free one")
    made.add_argument("--topic", action="append", metavar="T:N", help="topic and partitions; repeatable (default t:3)")
    made.add_argument("--config", action="append", default=[], metavar="KEY=VALUE",
                      help="a setting of the broker, such as group.max.size=2; repeatable")  # fmt: skip
    made.add_argument("--script", metavar="STEPS|FILE", help="steps, as for run --script, or a file with one script")
    made.add_argument("--http", type=_port, metavar="N",
                      help="a port, 0 for a free one, at which tests play steps and expect requests")  # fmt: skip
    made.add_argument("--log", action="store_true", help="print each request and response on a line")
    made.add_argument("--pcap", type=Path, metavar="FILE", help="write all traffic for Wireshark")
    made.add_argument("--allow-remote", action="store_true", help="accept a --host that other machines can reach")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 0xFFFF:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, got {text!r}")
    return int(text)


def _serve(options: argparse.Namespace) -> int:
    from kipcheck.conformance.core.values.nearest import hint
    from kipcheck.conformance.live.server.listener import is_loopback

    if options.model not in MODELS:
        known = f"; models that can be served: {', '.join(MODELS)}"
        return complain(f"unknown model {options.model!r}{hint(options.model, MODELS) or known}", USAGE)
    if not (options.allow_remote or is_loopback(options.host)):
        return complain(f"other machines can reach {options.host}: add --allow-remote to listen there", USAGE)
    if options.model == "features" and (options.topic or options.config):
        return complain("--model features has no topics and settings: leave out --topic and --config", USAGE)
    serve = _serve_machine if options.script is None and options.http is None else _serve_script
    try:
        found = serve(options)
    except (LookupError, ValueError) as wrong:
        return complain(wrong.args[0], USAGE)
    except KeyboardInterrupt:  # before it listens
        return OK
    except OSError as unusable:
        where = f"{options.host}:{options.port}"
        why = f"{where} cannot be listened at: {unusable.strerror}: leave out --port, or name another"
        return complain(unwritable(unusable, options.pcap) if unusable.filename else why, FAILED)
    complain(found, OK)
    return OK


def _serve_machine(options: argparse.Namespace) -> str:
    """Serves until it is interrupted; returns a summary. Errors: ValueError, LookupError for wrong usage; OSError."""
    from kipcheck.conformance.core.values.edition import edition
    from kipcheck.conformance.core.values.release import NEWEST
    from kipcheck.conformance.live.server.serve import Serving, serve
    from kipcheck.conformance.live.server.topics import parse_topic

    serving = Serving(
        edition(options.edition or f"apache@{options.release or NEWEST}"),
        options.host,
        options.port,
        tuple(map(parse_topic, options.topic or ["t:3"])),
        config=tuple(options.config),
        log=options.log,
        pcap=options.pcap,
        features=options.model == "features",
    )
    return serve(serving, print_harmless, lambda line: complain(line, OK))


def _serve_script(options: argparse.Namespace) -> str:
    """The same with a script, or the port at which other languages play some. Errors: as of ``_serve_machine``."""
    from kipcheck.conformance.core.values.release import NEWEST
    from kipcheck.conformance.engine.execution import scripts
    from kipcheck.conformance.live.server.listener import is_loopback
    from kipcheck.conformance.live.server.topics import parse_topic
    from kipcheck.conformance.live.testing.serve import ServedScript, serve
    from kipcheck.conformance.live.testing.stage import Setting

    edition = options.edition or f"apache@{options.release or NEWEST}"
    if options.model != "group" or not edition.startswith("apache@"):
        raise ValueError("--script and --http are for brokers of a release: use --release, without --model")
    if options.host in ANY_ADDRESS:
        raise ValueError(f"--script and --http serve one address, at which clients are: not {options.host}")
    if options.http is not None and not is_loopback(options.host):
        raise ValueError("--http is for this machine: leave out --host")
    given = () if options.script is None else scripts.given(options.script)
    if len(given) > 1:
        why = "and one is played: end its lines with semicolons"
        raise ValueError(f"{options.script} has {len(given)} scripts, {why}")
    topics = tuple(map(parse_topic, options.topic or ["t:3"]))
    setting = Setting(edition, topics, tuple(options.config), "".join(given))
    served = ServedScript(setting, options.host, options.port, options.http, options.log, options.pcap)
    return serve(served, print_harmless, lambda line: complain(line, OK))
