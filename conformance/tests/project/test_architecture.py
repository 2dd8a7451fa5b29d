"""The drawing in docs/internals/architecture.md names the packages that exist, and each of its arrows is an import."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

ROOT = Path(str(files("kipcheck")))
PAGE = ROOT / "conformance" / "docs" / "internals" / "architecture.md"
TOPS = ("strategies", "golden", "reports")
"""Packages beside ``conformance`` that the drawing shows."""
NOT_DRAWN = frozenset({"tests", "benchmarks"})
NODE = re.compile(r'\b(\w+)\["([^"]*)"\]')
EDGE = re.compile(r"^(\w+) --> (\w+)$")


def drawing(page: str) -> tuple[Mapping[str, str], tuple[tuple[str, str], ...]]:
    """Nodes with their labels, and edges, of the one Mermaid block. Errors: ValueError for a line of another form."""
    (block,) = re.findall(r"^```mermaid\nflowchart LR\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    nodes: dict[str, str] = {}
    edges = []
    for line in block.splitlines():
        nodes |= {node: label for node, label in NODE.findall(line)}
        bare = NODE.sub(r"\1", line).strip()
        edge = EDGE.match(bare)
        if edge:
            edges.append((edge[1], edge[2]))
        elif bare not in nodes:
            raise ValueError(f"neither a node nor an arrow: {line.strip()!r}")
    return nodes, tuple(edges)


def packages(root: Path = ROOT) -> Mapping[str, Path]:
    """Every package that has to be in the drawing, by the name of its node."""
    rooms = {path.parent.name: path.parent for path in sorted((root / "conformance").glob("*/__init__.py"))}
    return {name: path for name, path in rooms.items() if name not in NOT_DRAWN} | {top: root / top for top in TOPS}


def imports(path: Path) -> Iterator[str]:
    """Full names that a module imports, those inside of functions included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def package_of(module: str) -> str:
    """The node of a module's package, or an empty text."""
    match module.split("."):
        case ["kipcheck", "conformance", room, *_]:
            return room
        case ["kipcheck", top, *_] if top in TOPS:
            return top
    return ""


@cache
def imported_by(root: Path = ROOT) -> Mapping[str, frozenset[str]]:
    """Package -> the packages that it imports."""
    return {
        name: frozenset(package_of(each) for path in folder.rglob("*.py") for each in imports(path))
        for name, folder in packages(root).items()
    }


def faults(page: str, root: Path = ROOT) -> list[str]:
    """What the drawing on a page has that the source has not, or the other way round."""
    nodes, edges = drawing(page)
    there = packages(root)
    found = [f"{node}: no such package" for node in nodes if node not in there]
    found += [f"{name}: this package is not drawn" for name in there if name not in nodes]
    found += [f"{node}: its label does not begin with its name" for node in nodes if not nodes[node].startswith(node)]
    found += [f"{end}: an arrow to or from an unnamed node" for edge in edges for end in edge if end not in nodes]
    found += [f"{one} --> {other}: {other} does not import {one}" for one, other in edges
              if one not in imported_by(root).get(other, ())]  # fmt: skip
    return found


def test_the_drawing_agrees_with_the_source() -> None:
    assert faults(PAGE.read_text("utf-8")) == []


def test_a_wrong_drawing_is_found() -> None:
    page = PAGE.read_text("utf-8")
    reports, cli = 'reports["reports: render a ledger"]', 'cli["cli: commands"]'
    assert reports in page and cli in page and "    golden --> protocols\n" in page
    assert faults(page.replace(reports, 'render["render: reports"]').replace("reports -->", "render -->"))
    assert faults(page.replace(cli, "cli"))
    assert "cli --> golden: golden does not import cli" in faults(
        page.replace("golden --> protocols", "cli --> golden")
    )
