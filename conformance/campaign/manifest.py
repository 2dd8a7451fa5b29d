"""``manifest.json``: what a campaign is made of. Written before its first round, read by whoever goes on with it."""

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Self

from kipcheck.conformance.campaign.files import put
from kipcheck.conformance.campaign.plan import Aim, Plan
from kipcheck.conformance.campaign.rows import digest_of
from kipcheck.conformance.core.output_folder import OutputFolder

NAME: Final = "manifest.json"
FORMAT: Final = 1


class Unfit(Exception):
    """There is no manifest, or none that can be gone on with. Says why, and what would do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    plan: Plan
    kipcheck: str
    python: str
    """Major and minor version: another one draws the same, and may answer otherwise."""
    begun: str
    """UTC, ISO 8601."""
    host: Mapping[str, Any]
    settings: Mapping[str, Any]
    """Executor, workers, master: what has no say in what is drawn."""
    known: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    """Targets that were not there, and why."""
    complete: bool = False
    """All that was planned was held, or the time that was given is over."""
    stopped_by: str = "it was cut off"
    """``the plan``, or what else. As long as it goes on, this says what would be so if nothing more were written."""
    hash: str = ""
    """Of the ledger."""
    seconds: Mapping[int, float] = field(default_factory=dict)
    """Round -> how long it took, whoever drove it."""

    @classmethod
    def of(cls, plan: Plan, settings: Mapping[str, Any], known: tuple[str, ...], skipped: Mapping[str, str]) -> Self:
        return cls(
            plan, metadata.version("kipcheck"), ".".join(map(str, sys.version_info[:2])),
            datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), host(), settings, known, tuple(skipped.items()),
        )  # fmt: skip

    def write(self, folder: Path) -> None:
        """Whole or not at all. Errors: ``Full``; OSError; ``output_folder.Unusable``."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"
        put(OutputFolder(folder).claim(NAME, durable=True), text.encode())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Errors: ``Unfit``."""
        path = folder / NAME
        try:
            told = json.loads(path.read_text("utf-8"))
            if told.pop("format") != FORMAT:
                raise Unfit(f"{path} is of a format that this kipcheck does not read")
            plan = told.pop("plan")
            aims = tuple(Aim(**each) for each in plan.pop("aims"))
            made = Plan(aims=aims, checks=tuple(plan.pop("checks")), **plan)
            known, skipped = tuple(told.pop("known")), tuple((name, why) for name, why in told.pop("skipped"))
            seconds = {int(number): float(each) for number, each in told.pop("seconds").items()}
            return cls(plan=made, known=known, skipped=skipped, seconds=seconds, **told)
        except FileNotFoundError:
            raise Unfit(f"{folder} holds no {NAME}: a folder is wanted that kipcheck campaign wrote") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise Unfit(f"{path} cannot be read: {wrong}") from None

    def fitting(self) -> Self:
        """Itself, where what is installed here may go on with it. Errors: ``Unfit``."""
        here = metadata.version("kipcheck"), ".".join(map(str, sys.version_info[:2]))
        there = self.kipcheck, self.python
        if here != there:
            raise Unfit(
                f"it was begun by kipcheck {there[0]} on Python {there[1]}, and this is kipcheck {here[0]} on "
                f"Python {here[1]}: what is drawn may differ, so go on with those, or begin another one"
            )
        return self

    def ended(self, complete: bool, stopped_by: str, hash_: str) -> Self:
        return replace(self, complete=complete, stopped_by=stopped_by, hash=hash_)


def named(plan: Plan) -> Plan:
    """With the name that follows from all the rest: equal plans of equal releases are one campaign."""
    about = {each.name: getattr(plan, each.name) for each in fields(plan) if each.name != "campaign"}
    about["aims"] = [asdict(each) for each in plan.aims]
    return replace(plan, campaign=digest_of([metadata.version("kipcheck"), about]))


def host() -> Mapping[str, Any]:
    return {"name": platform.node(), "system": platform.platform(), "processors": os.cpu_count()}
