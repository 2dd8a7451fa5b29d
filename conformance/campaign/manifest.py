"""``manifest.json``: the plan and settings of a campaign, written before its first round and read by ``--resume``."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Self

from kipcheck.conformance.campaign.files import put
from kipcheck.conformance.campaign.plan import Plan
from kipcheck.conformance.campaign.rows import digest_of
from kipcheck.conformance.core.files.output_folder import OutputFolder
from kipcheck.conformance.core.operations.field_kinds import from_json, to_json

NAME: Final = "manifest.json"
FORMAT: Final = 2
"""That of the failures in the rows: a campaign is continued with shapes of the same format only."""


class UnusableCampaign(Exception):
    """There is no usable manifest or corpus; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    plan: Plan
    kipcheck: str
    python: str
    """Major and minor version: another one draws the same values, but may give other results."""
    begun: str
    """UTC, ISO 8601."""
    host: Mapping[str, Any]
    settings: Mapping[str, Any]
    """Executor, workers, master: settings that do not influence what is drawn."""
    known: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    """Targets that were not available, and why."""
    complete: bool = False
    """Whether the whole plan was run, or the budget used up."""
    stopped_by: str = "it was cut off"
    """``the plan``, or the reason of the end. While the campaign runs, the default stays in the file."""
    hash: str = ""
    """The hash of the ledger's rows."""
    seconds: Mapping[int, float] = field(default_factory=dict)
    """Round -> its duration, over all drivers."""

    @classmethod
    def of(cls, plan: Plan, settings: Mapping[str, Any], known: tuple[str, ...], skipped: Mapping[str, str]) -> Self:
        return cls(
            plan, metadata.version("kipcheck"), ".".join(map(str, sys.version_info[:2])),
            datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), host(), settings, known, tuple(skipped.items()),
        )  # fmt: skip

    def write(self, folder: Path) -> None:
        """Writes the file atomically. Errors: ``Full``; OSError; ``output_folder.Unusable``."""
        text = json.dumps({"format": FORMAT, **to_json(self)}, indent=1) + "\n"
        put(OutputFolder(folder).claim(NAME, durable=True), text.encode())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Errors: ``Unfit``."""
        path = folder / NAME
        try:
            fields_read = json.loads(path.read_text("utf-8"))
            if fields_read.pop("format") != FORMAT:
                raise UnusableCampaign(
                    f"{path} has another format, in which the same failure has another shape: start a new campaign in "
                    f"another folder; --corpus {shlex.quote(str(folder))} begins it with the corpus of this one"
                )
            return from_json(cls, fields_read)
        except FileNotFoundError:
            raise UnusableCampaign(f"{folder} contains no {NAME}: use the --out of a kipcheck campaign") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise UnusableCampaign(f"{path} cannot be read: {wrong}") from None

    def require_same_versions(self) -> Self:
        """Itself, if the installed versions may continue the campaign. Errors: ``Unfit``."""
        here = metadata.version("kipcheck"), ".".join(map(str, sys.version_info[:2]))
        there = self.kipcheck, self.python
        if here != there:
            raise UnusableCampaign(
                f"it was started by kipcheck {there[0]} on Python {there[1]}, but this is kipcheck {here[0]} on "
                f"Python {here[1]}, which may draw other values: use those versions, or start a new campaign"
            )
        return self

    def ended(self, complete: bool, stopped_by: str, hash_: str) -> Self:
        return replace(self, complete=complete, stopped_by=stopped_by, hash=hash_)


def with_id(plan: Plan) -> Plan:
    """The plan with its id, a digest of all other fields: equal plans of equal releases are one campaign."""
    about = {each.name: getattr(plan, each.name) for each in fields(plan) if each.name != "campaign"}
    # A name in results changes nothing that is drawn.
    named = ("label", "states_version")
    about["aims"] = [{key: value for key, value in to_json(each).items() if key not in named} for each in plan.aims]
    return replace(plan, campaign=digest_of([metadata.version("kipcheck"), about]))


def host() -> Mapping[str, Any]:
    return {"name": platform.node(), "system": platform.platform(), "processors": os.cpu_count()}
