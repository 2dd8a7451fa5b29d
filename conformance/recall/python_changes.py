"""Lists where a file in Python can be changed by a few characters so that it still compiles and acts in another way.

Left out is what a target's conduct does not depend on: docstrings, logging, metrics, warnings, assertions, annotations,
``__repr__``, and the texts of errors.
"""

import ast
import builtins
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Final

from kipcheck.conformance.recall.change import KINDS, Site
from kipcheck.conformance.recall.python_errors import error_groups, errors_of

SILENT: Final = re.compile(r"_*(log|logger|logging|warnings?|metrics|sensors?|_sensors|deprecat\w*)$", re.IGNORECASE)
"""Objects whose calls do not change conduct."""
NOT_CONDUCT: Final = ("cast", "TypeVar", "getLogger", "namedtuple", "acquire", "release")
"""Calls; without a lock a client only crashes or hangs."""
UNCHANGED: Final = ("__repr__", "__str__")
TIME: Final = re.compile(r"timeout|(_|^)(ms|seconds|secs)$|interval|backoff|delay|deadline|linger")
LARGE: Final = 100
"""A number from this on is changed tenfold, and not by one."""
IN_A_TUPLE: Final = "in a tuple"
"""Like a version, whose parts are not negative."""
RESETS: Final = re.compile(r"(reset|clear|discard|forget|invalidate)")
EMPTY: Final = re.compile(r"(NO_|UNKNOWN|DEFAULT|EMPTY|NONE)", re.IGNORECASE)
PURE: Final = frozenset(dir(builtins)) | {"time", "monotonic", "get", "items", "keys", "values", "copy"}
OPERATORS: Final[dict[type[ast.cmpop], tuple[str, tuple[str, ...]]]] = {
    ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)), ast.Is: (r"\bis\b", ("is not",)),
    ast.IsNot: (r"\bis\s+not\b", ("is",)), ast.In: (r"\bin\b", ("not in",)), ast.NotIn: (r"\bnot\s+in\b", ("in",)),
    ast.Lt: ("<", ("<=", ">=")), ast.LtE: ("<=", ("<", ">")), ast.Gt: (">", (">=", "<=")), ast.GtE: (">=", (">", "<")),
}  # fmt: skip
CLASSES: Final = (
    TIME,
    re.compile(r"(offset|epoch|generation|partition|version|position|port|count|size)(_id)?$"),
    re.compile(r"(_|^)(id|name|topic|instance|key|host|client)$"),
    re.compile(r"[a-z]s$"),
)
"""Two arguments whose names are of one class are of the same kind."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """A text, and the places of the nodes of its tree in it: a node states lines, and columns in bytes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0, *accumulate(len(each) + 1 for each in self.lines)]

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self._at(node.end_lineno or 0, node.end_col_offset or 0)

    def of(self, node: ast.expr | ast.stmt) -> str:
        return self.text[self.start(node) : self.end(node)]

    def between(self, start: int, end: int) -> str:
        """The text between two operands, with blanks in place of comments and continuations."""
        return re.sub(r"#[^\n]*|\\\n", lambda found: " " * len(found[0]), self.text[start:end])

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())


def functions(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, Function]]:
    """All functions by their names, with those of their classes."""
    for node in ast.iter_child_nodes(tree):
        name = f"{inside}.{node.name}".lstrip(".") if isinstance(node, Function | ast.ClassDef) else inside
        if isinstance(node, Function):
            yield name, node
        yield from functions(node, name)


def sites(text: str) -> list[Site]:
    """In the order of their places. Errors: SyntaxError."""
    source = Source(text)
    tree = ast.parse(text)
    found = list(_Scope(source, "", tree, errors=errors_of(tree)).block(tree.body))
    return sorted(found, key=lambda site: (site.start, KINDS.index(site.kind), site.end, site.becomes))


@dataclass(frozen=True, slots=True)
class _Scope:
    """A function, or what stands outside of all."""

    source: Source
    name: str
    tree: ast.Module | Function
    classes: str = ""
    errors: Sequence[str] = ()
    """The errors that it names; of the file where it names less than two."""
    stored: dict[str, int] = field(default_factory=dict)
    """Local names, and where each is assigned first."""

    def block(self, body: Sequence[ast.stmt]) -> Iterator[Site]:
        for statement in body:
            if not _is_silent(statement):
                yield from self.statement(statement)
        if self.is_function and not self.name.endswith("__init__"):
            for one, other in pairwise(body):
                if _can_swap(one, other):
                    yield self.site("order", one, other, one, f"{self.source.of(other)}{self.gap(one, other)}")

    def gap(self, one: ast.stmt | ast.expr, other: ast.stmt | ast.expr) -> str:
        """What stands between two nodes, and then the first of them: the end of the text in which they are swapped."""
        return self.source.text[self.source.end(one) : self.source.start(other)] + self.source.of(one)

    @property
    def is_function(self) -> bool:
        return not isinstance(self.tree, ast.Module)

    def statement(self, node: ast.stmt) -> Iterator[Site]:
        match node:
            case ast.ClassDef():
                name = f"{self.classes}.{node.name}".lstrip(".")
                scope = _Scope(self.source, self.name, self.tree, name, self.errors, self.stored)
                yield from scope.block(node.body)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self.function(node)
                return
        yield from self.dropped(node)
        yield from self.errors_in(node, node)
        if isinstance(node, ast.Raise):  # what it is raised with is a text
            return
        for field_name, value in ast.iter_fields(node):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.expr) and field_name not in ("annotation", "decorator_list"):
                    is_test = field_name == "test"
                    yield from self.expression(each, node, is_test, _hint(node))
                elif isinstance(each, ast.withitem):
                    yield from self.expression(each.context_expr, node)
                elif isinstance(each, ast.ExceptHandler | ast.match_case):
                    yield from self.block(each.body)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self.block(value)

    def function(self, node: Function) -> Iterator[Site]:
        for value in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            yield from self.expression(value, node)
        if node.name in UNCHANGED:
            return
        name = ".".join(filter(None, (self.classes or self.name, node.name)))
        errors = errors_of(node)
        stored = {each.arg: 0 for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                at = self.source.start(each)
                stored[each.id] = min(at, stored.get(each.id, at))
        scope = _Scope(self.source, name, node, name, errors if len(errors) > 1 else self.errors, stored)
        yield from scope.block(node.body)

    def dropped(self, node: ast.stmt) -> Iterator[Site]:
        if not self.is_function:
            return
        match node:
            case ast.Assign(targets=targets) if self.can_drop(targets, node):
                yield self.site("dropped reset" if _is_reset(targets[0], node.value) else "dropped statement", node)
            case ast.AnnAssign(target=ast.Attribute() as target, value=ast.expr()) if self.can_drop([target], node):
                yield self.site("dropped statement", node)
            case ast.Expr(value=ast.Call(func=func) | ast.Await(value=ast.Call(func=func))):
                if not self.source.of(func).startswith("super()"):
                    yield self.site(
                        "dropped reset" if RESETS.match(_last(func).lstrip("_")) else "dropped statement", node
                    )
            case ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Return(value=None) | ast.Raise():
                yield self.site("dropped statement", node)

    def can_drop(self, targets: Sequence[ast.expr], node: ast.stmt) -> bool:
        """Whether what is assigned has a value without this assignment."""
        return not self.name.endswith("__init__") and all(
            isinstance(each, ast.Attribute | ast.Subscript)
            or (isinstance(each, ast.Name) and self.stored.get(each.id, 0) < self.source.start(node))
            for each in targets
        )

    def errors_in(self, holder: ast.AST, statement: ast.stmt) -> Iterator[Site]:
        """Errors that a statement or its expressions compare with or catch: one for another, and one less."""
        for group, taken in error_groups(holder):
            for at, each in enumerate(group.elements):
                if other := _sibling(self.source.of(each), self.errors, {self.source.of(one) for one in taken}):
                    yield self.site("swapped error", each, None, statement, other)
                if group.whole is not None and len(group.elements) == len(group.whole.elts) > 1:
                    left = [self.source.of(one) for one in group.elements if one is not each]
                    if len(left) == 1 and isinstance(group.whole, ast.Tuple):
                        yield self.site("swapped error", group.whole, None, statement, f"({left[0]},)")
                    else:
                        yield self.without(group.elements, at, statement, "swapped error")

    def without(self, elements: Sequence[ast.expr], at: int, statement: ast.stmt, kind: str) -> Site:
        """A list without one of its elements."""
        last = at == len(elements) - 1
        start = self.source.end(elements[at - 1]) if last else self.source.start(elements[at])
        end = self.source.end(elements[at]) if last else self.source.start(elements[at + 1])
        return Site(start, end, "", kind, self.name, _lines(statement))

    def expression(self, node: ast.expr, statement: ast.stmt, is_test: bool = False, hint: str = "") -> Iterator[Site]:
        """``hint``: the name of what it is assigned or passed to."""
        match node:
            case ast.JoinedStr():  # in 3.11 the places of its parts are wrong
                return
            case ast.UnaryOp(op=ast.Not()):
                yield self.site("branch", node, None, statement, self.source.of(node)[len("not") :].lstrip())
                yield from self.expression(node.operand, statement)
                return
            case ast.BoolOp():
                yield from self.operands(node, statement)
            case ast.Compare():
                yield from self.comparison(node, statement)
            case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
                if not is_test:
                    for value in _other_values(node, hint):
                        yield self.site("constant", node, None, statement, value)
                return
            case ast.Call():
                if _is_silent_call(node):
                    return
                yield from self.arguments(node, statement)
            case _ if is_test and not isinstance(node, ast.Constant):
                text = self.source.of(node)
                plain = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Await)
                yield self.site("branch", node, None, statement, f"not {text}" if plain else f"not ({text})")
        if is_test and isinstance(node, ast.Call):
            yield self.site("branch", node, None, statement, f"not {self.source.of(node)}")
        yield from self.parts(node, statement)

    def parts(self, node: ast.expr, statement: ast.stmt) -> Iterator[Site]:
        keys = [*node.keys] if isinstance(node, ast.Dict) else []
        for field_name, value in ast.iter_fields(node):
            for at, each in enumerate(value if isinstance(value, list) else [value]):
                match each:
                    case ast.keyword():
                        yield from self.expression(each.value, statement, hint=each.arg or "")
                    case ast.comprehension():
                        yield from self.expression(each.iter, statement)
                        for test in each.ifs:
                            yield from self.expression(test, statement, is_test=True)
                    case ast.expr():
                        key = keys[at] if field_name == "values" and at < len(keys) else None
                        hint = IN_A_TUPLE if isinstance(node, ast.Tuple) else _text(key)
                        yield from self.expression(each, statement, field_name == "test", hint)

    def operands(self, node: ast.BoolOp, statement: ast.stmt) -> Iterator[Site]:
        source, word = self.source, "and" if isinstance(node.op, ast.And) else "or"
        begins, ends = [source.start(node)], []
        for one, other in pairwise(node.values):
            between = source.between(source.end(one), source.start(other))
            found = re.search(rf"\b{word}\b", between)
            assert found is not None, ast.dump(node)
            token = source.end(one) + found.start()
            swapped = "or" if word == "and" else "and"
            yield Site(token, token + len(word), swapped, "branch", self.name, _lines(statement))
            ends.append(source.end(one) + len(between[: found.start()].rstrip()))
            rest = between[found.end() :]
            begins.append(source.end(one) + found.end() + len(rest) - len(rest.lstrip()))
        ends.append(source.end(node))
        last = len(node.values) - 1
        for at in range(last + 1):
            start, end = (begins[at], begins[at + 1]) if at < last else (ends[at - 1], ends[at])
            yield Site(start, end, "", "branch", self.name, _lines(statement))

    def comparison(self, node: ast.Compare, statement: ast.stmt) -> Iterator[Site]:
        for op, one, other in zip(node.ops, (node.left, *node.comparators), node.comparators, strict=False):
            pattern, others = OPERATORS[type(op)]
            start = self.source.end(one)
            found = re.search(pattern, self.source.between(start, self.source.start(other)))
            assert found is not None, ast.dump(node)
            for each in others:
                yield Site(start + found.start(), start + found.end(), each, "branch", self.name, _lines(statement))

    def arguments(self, node: ast.Call, statement: ast.stmt) -> Iterator[Site]:
        keywords = [(each.value, each.arg or "") for each in node.keywords if each.arg]
        for passed in ([(each, "") for each in node.args], keywords):
            for value, hint in passed:
                name = _last(value)
                if name and (TIME.search(hint) or TIME.search(name)):
                    yield self.site("constant", value, None, statement, f"{self.source.of(value)} * 10")
            for (one, _), (other, _) in pairwise(passed):
                if _class(one) is not None and _class(one) == _class(other) and _last(node.func) not in PURE:
                    text = f"{self.source.of(other)}{self.gap(one, other)}"
                    yield self.site("order", one, other, statement, text)

    def site(
        self, kind: str, node: ast.expr | ast.stmt, to: ast.expr | ast.stmt | None = None,
        statement: ast.stmt | None = None, becomes: str = "pass",
    ) -> Site:  # fmt: skip
        """From the beginning of a node to the end of the other one, or of itself. ``statement``: which has to run."""
        statement = statement or (node if isinstance(node, ast.stmt) else None)
        assert statement is not None
        start, end = self.source.start(node), self.source.end(to or node)
        return Site(start, end, becomes, kind, self.name, _lines(statement))


def _lines(node: ast.stmt) -> range:
    """Of a statement without the statements in it."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    last = node.end_lineno or node.lineno
    if body:
        first = body[0].body[0] if isinstance(body[0], ast.match_case) else body[0]
        last = max(node.lineno, first.lineno - 1)
    return range(node.lineno, last + 1)


def _is_silent(node: ast.stmt) -> bool:
    match node:
        case ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.ClassDef(name=name):
            return name.endswith("Metrics")
        case ast.FunctionDef(decorator_list=[*decorators]) | ast.AsyncFunctionDef(decorator_list=[*decorators]):
            return any(SILENT.match(_last(each)) for each in decorators)
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
            return _is_silent_call(call)
        case ast.If(test=test):
            return _last(test) == "TYPE_CHECKING" or "__name__" in {_last(each) for each in ast.walk(test)}
    return False


def _is_silent_call(node: ast.Call) -> bool:
    """A call of something like ``self._log.debug``, and of ``isEnabledFor``."""
    return (
        any(
            SILENT.match(name)
            for name in (_last(each) for each in ast.walk(node.func) if isinstance(each, ast.Name | ast.Attribute))
        )
        or _last(node.func) in NOT_CONDUCT
    )


def _last(node: ast.AST | None) -> str:
    """The last identifier of a name, an attribute or a call; empty: it is none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return _last(func)
    return ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _hint(node: ast.stmt) -> str:
    """The name of what a statement assigns."""
    match node:
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return _last(target).lower()
    return ""


def _class(node: ast.expr) -> int | None:
    """The class of an argument by its name; None: it has none."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return None
    return next((at for at, each in enumerate(CLASSES) if each.search(_last(node).lower())), None)


def _other_values(node: ast.expr, hint: str) -> Iterator[str]:
    sign, constant = (-1, node.operand) if isinstance(node, ast.UnaryOp) else (1, node)
    match constant:
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() as value):
            if value and (value >= LARGE or TIME.search(hint)):
                yield str(sign * value * 10)
            else:
                yield str(sign * value + 1)
                if value or hint != IN_A_TUPLE:
                    yield str(sign * value - 1)
        case ast.Constant(value=float() as value) if value:
            yield str(sign * value * 10)


def _is_reset(target: ast.expr, value: ast.expr) -> bool:
    if not isinstance(target, ast.Attribute):
        return False
    match value:
        case ast.Constant(value=given):
            return not given
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)):
            return True
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]) | ast.Call(args=[], keywords=[]):
            return not isinstance(value, ast.Call) or _last(value) in PURE
        case ast.Name() | ast.Attribute():
            return bool(EMPTY.match(_last(value)))
    return False


def _can_swap(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether two statements can be swapped so that no local name lacks its value, and it may make a difference."""
    simple = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)
    if not (isinstance(one, simple) and isinstance(other, simple)) or _is_silent(one) or _is_silent(other):
        return False
    names = [
        {kind: {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, kind)}
         for kind in (ast.Store, ast.Load, ast.Del)}
        for node in (one, other)
    ]  # fmt: skip
    for a, b in (names, names[::-1]):
        if (a[ast.Store] | a[ast.Del]) & (b[ast.Store] | b[ast.Load] | b[ast.Del]):
            return False
    return all(map(_has_effects, (one, other))) and any(map(_calls, (one, other)))


def _calls(node: ast.stmt) -> bool:
    return any(isinstance(each, ast.Await) or (isinstance(each, ast.Call) and _last(each) not in PURE)
               for each in ast.walk(node))  # fmt: skip


def _has_effects(node: ast.stmt) -> bool:
    """Whether it may call the client's own functions, or changes an object."""
    kept = any(isinstance(each, ast.Attribute | ast.Subscript) and not isinstance(each.ctx, ast.Load)
               for each in ast.walk(node))  # fmt: skip
    return kept or _calls(node)


def _sibling(error: str, errors: Sequence[str], taken: set[str]) -> str:
    """The next error of its module, by the alphabet, that is not there already; empty: there is none."""
    if error not in errors:
        return ""
    at = bisect_left(errors, error)
    module = error.rpartition(".")[0]
    others = (each for each in (*errors[at + 1 :], *errors[:at]) if each.rpartition(".")[0] == module)
    return next((each for each in others if each not in taken), "")
