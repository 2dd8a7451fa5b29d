"""For a terminal or a log: quiet about what passed, one block for each distinct failure."""

import textwrap
from collections.abc import Iterator
from typing import Any

from conformance.core.ledger import Ledger, Line

WIDTH = 110
RESULTS = ("PASS", "FAIL", "WARN", "NOTE", "UNKNOWN", "SKIP")
DIFFERENCES = 40
"""At most so many rows tell where targets differ."""
AROUND = 6
"""So many rows are shown on each side of the guilty bytes of a long message."""


def render(ledger: Ledger) -> str:
    lines: list[str] = []
    order = {"MUST": 0, "SHOULD": 1, "INFO": 2}
    told: set[str] = set()
    for failure in sorted(ledger.failures, key=lambda each: order[each["grade"]]):
        lines += [*_block(failure, told), ""]
    lines += _table(ledger)
    lines += _differences(ledger)
    lines += [f"{each['target']}: {each['check']} skipped: {each['why']}" for each in ledger.skips]
    lines += [f"{each['target']}: {each['why']}" for each in ledger.troubles]
    lines.append(_last(ledger))
    return "\n".join(lines) + "\n"


def _block(failure: Line, told: set[str]) -> Iterator[str]:
    """``told``: the requirements whose text stands in the report already."""
    word = {"MUST": "FAIL", "SHOULD": "WARN", "INFO": "NOTE"}[failure["grade"]]
    yield f"{word} {failure['id']}  {failure['target']} {failure['version']}  {failure['check']}  ({failure['grade']})"
    yield from _wrapped("broken", failure["sentence"])
    for each in failure["requirements"]:
        text = f": {each['text']}" if each["id"] not in told else " (text above)"
        told.add(each["id"])
        yield from _wrapped(each["id"], f"{each['clause']}{text}")
    yield from _wrapped("what", failure["why"])
    if failure["expected"]:
        yield from _wrapped("expected", failure["expected"])
        yield from _wrapped("observed", failure["observed"])
    for number, step in enumerate(failure["steps"]):
        given = step.get("hex", step.get("value"))
        mark = ">" if number == failure["guilty_step"] and len(failure["steps"]) > 1 else " "
        asked = f"{step['verb']} {_about(step)}: {_given(given)}"
        yield from _wrapped(f"step {number + 1} {mark}".rstrip(), asked)
    for exhibit in failure["exhibits"]:
        if exhibit["kind"] == "bytes":
            yield from _bytes(exhibit["rows"])
    where = "; ".join(f"{name} v{versions}" if versions else name for name, versions in failure["where"].items())
    yield from _wrapped("seen", f"{failure['cases']} {'case' if failure['cases'] == 1 else 'cases'}: {where}")
    yield f"  {'again':<9} {failure['reproduce']}"


def _about(step: Line) -> str:
    return f"{step['message']} v{step['version']}" if "message" in step else str(step.get("assignor", ""))


def _given(given: Any) -> str:
    if isinstance(given, str):
        return given or "(no bytes)"
    return str(given)


def _wrapped(label: str, text: str) -> list[str]:
    room = WIDTH - 12
    lines = textwrap.wrap(text, room, break_on_hyphens=False, max_lines=6, placeholder=" ...") or [""]
    return [f"  {label:<9} {lines[0]}", *(f"  {'':<9} {line}" for line in lines[1:])]


def _bytes(rows: list[Line]) -> Iterator[str]:
    if not rows:
        return
    guilty = [index for index, row in enumerate(rows) if row["guilty"]]
    low, high = (min(guilty) - AROUND, max(guilty) + AROUND) if guilty else (0, 2 * AROUND)
    shown = rows[max(0, low) : high + 1]
    cells = [
        (
            ">" if row["guilty"] else " ", str(row["offset"]), _cut(row["bytes"], 34), _cut(row["path"], 40),
            _cut(row["type"], 22), _cut(row["value"], 40),
        )
        for row in shown
    ]  # fmt: skip
    cells.insert(0, ("", "at", "bytes", "field", "type", "value"))
    widths = [max(len(row[column]) for row in cells) for column in range(6)]
    if max(0, low) > 0:
        yield f"  {'':<9}   ({max(0, low)} fields before)"
    for row in cells:
        yield "  " + f"{'bytes' if row is cells[0] else '':<9} " + " ".join(
            cell.rjust(width) if column == 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
    if len(rows) > high + 1:
        yield f"  {'':<9}   ({len(rows) - high - 1} fields after)"


def _cut(text: str, size: int) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= size else text[: size - 3] + "..."


def _table(ledger: Ledger) -> Iterator[str]:
    if ledger.footer is None:
        return
    for target, checks in ledger.footer["counts"].items():
        rows = [("check", *RESULTS)]
        rows += [(check, *(str(counts.get(result, 0)) for result in RESULTS)) for check, counts in checks.items()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        yield target
        for row in rows:
            yield "  " + "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )


def _differences(ledger: Ledger) -> Iterator[str]:
    """Each way to differ: where some fail and some do not, and where all pass and yet answer otherwise."""
    if not ledger.differences:
        return
    targets = list(dict.fromkeys(name for row in ledger.differences for name in row["cells"]))
    alike: dict[tuple[str, ...], list[Line]] = {}
    for each in ledger.differences:
        alike.setdefault((each["check"], *(each["cells"].get(name, "SKIP") for name in targets)), []).append(each)
    yield "where targets differ"
    rows = [("check", "subject", "cases", *targets)]
    # Where somebody fails comes before where all pass, and there what is seen most often.
    order = sorted(alike.items(), key=lambda item: (_all_pass(item[1][0]), -_cases(item[1])))
    for (check, *cells), members in order:
        first, more = members[0], f" and {len(members) - 1} more" * (len(members) > 1)
        rows.append((check, f"{_named(first)}{more}", str(_cases(members)), *cells))
    shown = rows[: DIFFERENCES + 1]
    widths = [max(len(row[column]) for row in shown) for column in range(len(rows[0]))]
    for row in shown:
        yield "  " + "  ".join(
            cell.rjust(width) if column == 2 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
    if len(rows) > len(shown):
        yield f"  ({len(rows) - len(shown)} rows more in the ledger)"


def _named(row: Line) -> str:
    return f"{row['subject']} v{row['versions']}" if row["versions"] else str(row["subject"])


def _all_pass(row: Line) -> bool:
    return all(cell.startswith(("PASS", "SKIP")) for cell in row["cells"].values())


def _cases(rows: list[Line]) -> int:
    return sum(int(row["cases"]) for row in rows)


def _last(ledger: Ledger) -> str:
    if ledger.footer is None:
        return "INCOMPLETE: the ledger ends before its footer; the run was cut off"
    must = sum(each["grade"] == "MUST" for each in ledger.failures)
    should = sum(each["grade"] == "SHOULD" for each in ledger.failures)
    failures, warnings = "failure" if must == 1 else "failures", "warning" if should == 1 else "warnings"
    counted = f"{must} distinct {failures}, {should} {warnings}"
    head = "complete" if ledger.complete else f"INCOMPLETE ({ledger.footer['stopped_by']})"
    return f"{head}: {counted}; exit {ledger.footer['exit']}, {ledger.footer['meaning']}; {ledger.path}"
