"""Merges the items of a pytest session into one ledger and one set of reports, like those of a run."""

from dataclasses import dataclass
from pathlib import Path

import pytest

ITEMS = "items"
"""The folder below ``--kipcheck-out`` that contains a run for each item."""


def output_folder(config: pytest.Config) -> Path:
    out: Path = config.getoption("--kipcheck-out")
    return out if out.is_absolute() else config.invocation_params.dir / out


def remove_earlier(config: pytest.Config) -> None:
    """Removes the items of an earlier session. Errors: ``pytest.UsageError`` if kipcheck did not write a file there."""
    from kipcheck.conformance.core.files.output_folder import FLAKY, LINK, OF_A_RUN, UNLISTED, OutputFolder, Unusable

    out = output_folder(config)
    items = out / ITEMS
    try:
        OutputFolder(out).check(*OF_A_RUN, FLAKY)
        if items.is_symlink():
            raise Unusable.by(items, LINK)
        for each in sorted(items.iterdir()) if items.is_dir() else ():
            if each.is_symlink() or not each.is_dir():
                raise Unusable.by(each, LINK if each.is_symlink() else UNLISTED)
            OutputFolder(each).remove_all()
    except (Unusable, OSError) as wrong:
        raise pytest.UsageError(str(wrong).replace("--out", "--kipcheck-out")) from None


@dataclass(frozen=True, slots=True)
class SessionResult:
    exit_code: int
    line: str


def merged_result(config: pytest.Config) -> SessionResult | None:
    """One ledger and one report of all executed items; None if there are none."""
    from kipcheck import reports
    from kipcheck.conformance.core.files.output_folder import Unusable
    from kipcheck.conformance.core.ledger import NAME
    from kipcheck.conformance.core.values import exits
    from kipcheck.conformance.engine.ledger.merge import Unlike, merge

    out = output_folder(config)
    folders = sorted(path.parent for path in (out / ITEMS).glob(f"*/{NAME}"))
    if not folders:
        return None
    try:
        found = merge(folders, out)
        reports.write(found.ledger)
    except (Unlike, Unusable, OSError) as wrong:
        return SessionResult(exits.OURS, f"no report: {wrong}")
    return SessionResult(found.exit_code, f"{exits.MEANINGS[found.exit_code]}; reports in {out}")
