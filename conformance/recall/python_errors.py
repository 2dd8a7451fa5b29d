"""Lists the errors that a text in Python compares with or catches: ``error is E.NotCoordinator``, ``except (A, B)``."""

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

NONE: Final = ("NoError", "CancelledError", "TimeoutError")
"""Names that are no errors of the protocol."""
Elements = ast.Tuple | ast.List | ast.Set


@dataclass(frozen=True, slots=True)
class Group:
    """Errors that are treated alike in one place."""

    elements: Sequence[ast.expr]
    whole: Elements | None
    """The list that they are in; None: there is one."""


def errors_of(tree: ast.AST) -> list[str]:
    """The errors that are compared with or caught anywhere in it, as they are written, in the order of the alphabet."""
    return sorted({
        ast.unparse(each)
        for node in ast.walk(tree) if isinstance(node, ast.stmt)
        for group, _ in error_groups(node) for each in group.elements
    })  # fmt: skip


def error_groups(statement: ast.AST) -> Iterator[tuple[Group, Sequence[ast.expr]]]:
    """Of one statement without those in it, each with all errors that cannot stand in place of one of its own."""
    if isinstance(statement, ast.Try | ast.TryStar):
        groups = [_group(each.type) for each in statement.handlers if each.type is not None]
        taken = [each for group in groups for each in group.elements]
        yield from ((group, taken) for group in groups if group.elements)
        return
    for node in _own(statement):
        match node:
            case ast.Compare(left=left, comparators=comparators):
                groups = [_group(each) for each in (left, *comparators)]
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                groups = [_group(kinds)]
            case _:
                continue
        yield from ((group, group.elements) for group in groups if group.elements)


def _own(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that are in no statement inside it, and in no f-string, whose places are wrong."""
    for each in ast.iter_child_nodes(statement):
        if not isinstance(each, ast.stmt | ast.ExceptHandler | ast.match_case | ast.JoinedStr):
            yield each
            yield from _own(each)


def _group(node: ast.expr) -> Group:
    if isinstance(node, Elements):
        return Group([each for each in node.elts if is_error(each)], node)
    return Group([node] if is_error(node) else [], None)


def is_error(node: ast.AST) -> TypeGuard[ast.expr]:
    """A name like ``NotCoordinatorError``: none of Python's own, and not that of no error."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.endswith(("Error", "Exception")) and name not in NONE and not hasattr(builtins, name)
    return False
