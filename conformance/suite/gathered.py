"""All items together: one ledger and one set of reports, as a run of the gate leaves them."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

ITEMS = "items"
"""The folder below ``--kipcheck-out`` with a run for each item."""


def out_of(config: pytest.Config) -> Path:
    out: Path = config.getoption("--kipcheck-out")
    return out if out.is_absolute() else config.invocation_params.dir / out


def forget(config: pytest.Config) -> None:
    """The items of an earlier session."""
    shutil.rmtree(out_of(config) / ITEMS, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Told:
    exit_code: int
    line: str


def gathered(config: pytest.Config) -> Told | None:
    """One ledger and one report of all items that were held; None where none was."""
    import reports
    from conformance.core import exits
    from conformance.core.ledger import NAME
    from conformance.merging import Unlike, merge

    out = out_of(config)
    folders = sorted(path.parent for path in (out / ITEMS).glob(f"*/{NAME}"))
    if not folders:
        return None
    try:
        found = merge(folders, out)
        reports.write(found.ledger)
    except (Unlike, OSError) as wrong:
        return Told(exits.OURS, f"no report: {wrong}")
    return Told(found.exit_code, f"{exits.MEANINGS[found.exit_code]}; reports in {out}")
