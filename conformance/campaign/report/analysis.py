"""Analyses the ledger of a campaign with Spark SQL; the queries are files of their own (``queries/*.sql``).

Only the results of the queries are read into this process, so a ledger may have any size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.campaign.executors.spark import session
from kipcheck.conformance.campaign.executors.spark_logging import one_line
from kipcheck.conformance.campaign.report import arrow, row_files

QUERIES: Final = ("coverage_growth", "verdicts", "time_to_find", "flakiness", "clashes")
CONSTANT_COLUMNS: Final = ("campaign", "target", "target_version")
"""Columns that are left out of the table if all their values are equal."""
WIDEST: Final = 60
"""The most characters of a column in text."""


class QueryFailed(ValueError):
    """The queries cannot be run; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    name: str
    about: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @property
    def plain(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def text(self) -> str:
        """For a terminal."""
        lines = [f"{self.name}: {self.about}"]
        if not self.rows:
            return "\n".join([*lines, "  none"])
        same = [at for at in range(len(self.columns)) if self.columns[at] in CONSTANT_COLUMNS and self._is_constant(at)]
        lines += [f"  {self.columns[at]} {self.rows[0][at]}" for at in same]
        shown = [at for at in range(len(self.columns)) if at not in same]
        cells = [[self.columns[at] for at in shown], *([_cell(row[at]) for at in shown] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        right = [all(isinstance(row[at], int | float | None) for row in self.rows) for at in shown]
        for row in cells:
            aligned = zip(row, widths, right, strict=True)
            lines.append("  " + "  ".join(f"{each:>{w}}" if r else f"{each:<{w}}" for each, w, r in aligned).rstrip())
        return "\n".join(lines)

    def _is_constant(self, at: int) -> bool:
        return len({row[at] for row in self.rows}) == 1


def _cell(value: Any) -> str:
    match value:
        case None:
            text = ""
        case int():
            text = f"{value:,}"
        case list():
            text = " ".join(map(str, value))
        case _:
            text = str(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."


def query(name: str) -> str:
    """The SQL text of a query."""
    return files("kipcheck.conformance.campaign.report").joinpath("queries", f"{name}.sql").read_text("utf-8")


def about(sql: str) -> str:
    """The comment on the first line, which describes the query."""
    return sql.partition("\n")[0].removeprefix("-- ").rstrip(".")


def analyse(folder: Path, master: str | None = None, remote: str | None = None) -> Mapping[str, Answer]:
    """Runs all queries on the ledger below the folder of a campaign, which the workers must be able to read.

    Errors: ``Unready`` if Spark is not available, ``QueryFailed``, ``Unreadable``, OSError.
    """
    place = (folder / row_files.NAME).resolve()
    waves = sorted(path for path in place.glob("round=*/wave-*") if path.suffix in (".parquet", ".jsonl"))
    if not waves:
        raise QueryFailed(f"{folder} contains no {row_files.NAME} of a campaign: use the --out of a kipcheck campaign")
    lines = [row for path in waves if path.suffix == ".jsonl" for row in row_files.rows_in(path)]
    with session(master, remote, 0) as (spark, _):
        try:
            parts = [spark.createDataFrame(arrow.table_of(lines))] if lines else []
            if any(path.suffix == ".parquet" for path in waves):
                reader = spark.read.option("recursiveFileLookup", True).option("pathGlobFilter", "wave-*.parquet")
                parts.append(reader.parquet(place.as_uri()))
            rows = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
            rows.createOrReplaceTempView("rows")
            spark.sql(query("shards")).createOrReplaceTempView("shards")
            return {name: _answer(name, query(name), spark) for name in QUERIES}
        except Exception as why:
            raise QueryFailed(f"the ledger in {folder} cannot be queried: {one_line(str(why))}") from why


def _answer(name: str, sql: str, spark: Any) -> Answer:
    table = spark.sql(sql).toArrow()
    rows = [tuple(each.values()) for each in table.to_pylist()]
    return Answer(name, about(sql), tuple(table.column_names), rows)
