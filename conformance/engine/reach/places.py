"""Finds the branches of invariants in their sources, and compiles copies that count them.

A branch is a place where a violation is made. Its guard is the innermost condition in front of it: the test of an
``if`` or ``while``, the condition of a comprehension, the test of an ``if`` before it that ends in ``continue``,
``return``, ``break`` or ``raise``; where there is none, the iterable of a ``for`` or the subject of a ``match``. A
branch applied if another answer could have made it fail: its guard was evaluated, and at most one of the conditions
that are joined in it was false.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

MADE: Final = "Violation"
HIT: Final = "__reach__"
"""The name, in a counting copy, of what is called with the guards."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension: TypeAlias = ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
LEAVES = (ast.Continue, ast.Return, ast.Break, ast.Raise)
APART = (ast.NamedExpr, ast.Await, ast.Yield)
"""What a function of its own cannot have, because it means another thing there."""


@dataclass(frozen=True, slots=True)
class Place:
    """A branch: where a violation is made."""

    module: str
    function: str
    """With the classes and functions around it."""
    digest: str
    """Of the function and the guard: other lines, and other words in the violation, do not change it."""
    line: int
    guard: str

    @property
    def id(self) -> str:
        return f"{self.module.removeprefix(PROTOCOLS)}:{self.function}/{self.digest}"


PROTOCOLS: Final = "kipcheck.conformance.protocols."


@dataclass(frozen=True, slots=True)
class _Guard:
    """``holder`` and ``name`` are the attribute of the node that has the condition, which a copy replaces."""

    kind: str
    """``and``: all of the conditions have to be true; ``or``: all have to be false; ``once``: it is evaluated."""
    holder: ast.AST
    name: str
    text: str


@dataclass(slots=True)
class Source:
    """A module: its tree, and what it imports."""

    module: str
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name -> the module that it comes from, and its name there."""
    functions: dict[str, list[Function]] = field(default_factory=dict)
    """By name, methods and nested functions too."""

    @classmethod
    def of(cls, module: str, text: str) -> "Source":
        found = cls(module, ast.parse(text))
        for node in ast.walk(found.tree):
            for child in ast.iter_child_nodes(node):
                found.parents[child] = node
            if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                for each in node.names:
                    found.imports[each.asname or each.name] = node.module, each.name
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.functions.setdefault(node.name, []).append(node)
        return found

    def around(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Each node that contains another, with the part of it that does, from the inside."""
        while (parent := self.parents.get(node)) is not None:
            yield parent, node
            node = parent

    def function_of(self, node: ast.AST) -> Function | None:
        return next((each for each, _ in self.around(node) if isinstance(each, Function)), None)

    def qualified(self, function: Function) -> str:
        named = (each.name for each, _ in self.around(function) if isinstance(each, Function | ast.ClassDef))
        return ".".join([*reversed([*named]), function.name])


Made: TypeAlias = set[tuple[str, str]]
"""Module and name of each function whose call makes a violation."""


@dataclass(frozen=True, slots=True)
class Sources:
    """All modules in which violations are made."""

    of: Mapping[str, Source]
    makers: Made
    places: Mapping[str, Place]
    """By id."""
    guards: Mapping[str, tuple[str, _Guard]]
    """Place -> module and guard."""

    @classmethod
    def read(cls, texts: Mapping[str, str]) -> "Sources":
        sources = {module: Source.of(module, text) for module, text in texts.items() if MADE in text}
        makers = {
            (module, function.name)
            for module, source in sources.items()
            for functions in source.functions.values()
            for function in functions
            if isinstance(function.returns, ast.Name) and function.returns.id == MADE
        }
        while True:  # a function that always makes one makes one for its callers
            found = [*_found(sources, makers)]
            always = {(module, function.name) for module, function, _, guard in found if guard is None}
            if always <= makers:
                break
            makers |= always
        places, guards = _numbered(sources, found)
        return cls(sources, makers, places, guards)

    def of_search(self, module: str, function: str) -> frozenset[str]:
        """The places in a function, and in all functions that it names."""
        waiting, seen = [(module, function)], set[tuple[str, str]]()
        while waiting:
            at = waiting.pop()
            source = self.of.get(at[0])
            if at in seen or source is None:
                continue
            seen.add(at)
            for each in source.functions.get(at[1], ()):
                waiting += _named(source, each)
        return frozenset(id for id, each in self.places.items() if (each.module, each.function.split(".")[-1]) in seen)

    @property
    def counted(self) -> frozenset[str]:
        """The modules with places."""
        return frozenset(module for module, _ in self.guards.values())

    def counting(self, module: str) -> ast.Module:
        """A tree of the module that calls ``HIT`` with the guards; the source cannot be used afterwards."""
        source = self.of[module]
        by_guard: dict[tuple[ast.AST, str], list[tuple[str, _Guard]]] = {}
        for id, (there, guard) in self.guards.items():
            if there == module:
                by_guard.setdefault((guard.holder, guard.name), []).append((id, guard))
        for (holder, name), several in by_guard.items():
            _replace(holder, name, several)
        return ast.fix_missing_locations(source.tree)


def _named(source: Source, function: Function) -> Iterator[tuple[str, str]]:
    """The functions that a function refers to: those of its module, and imported ones."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in source.functions:
            yield source.module, node.attr
        elif isinstance(node, ast.Name):
            if node.id in source.imports:
                yield source.imports[node.id]
            elif node.id in source.functions:
                yield source.module, node.id


def _found(sources: Mapping[str, Source], makers: Made) -> Iterator[tuple[str, Function, ast.Call, _Guard | None]]:
    """Each call that makes a violation, outside the functions that do nothing else, and its guard."""
    methods = {name for module, name in makers if module in sources for name in [name]}
    for module, source in sources.items():
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Call) or not _makes(source, node.func, makers, methods):
                continue
            function = source.function_of(node)
            if function is None or any(
                (module, each.name) in makers and _returns_one(each)
                for each, _ in source.around(node) if isinstance(each, Function)
            ):  # fmt: skip
                continue
            yield module, function, node, _guard(source, node)


def _returns_one(function: Function) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == MADE


def _makes(source: Source, called: ast.expr, makers: Made, methods: set[str]) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr in methods and any(
            isinstance(source.parents.get(each), ast.ClassDef) for each in source.functions.get(called.attr, ())
        )
    if not isinstance(called, ast.Name):
        return False
    if called.id == MADE:
        return True
    return source.imports.get(called.id, (source.module, called.id)) in makers


def _numbered(
    sources: Mapping[str, Source], found: Iterable[tuple[str, Function, ast.Call, _Guard | None]]
) -> tuple[dict[str, Place], dict[str, tuple[str, _Guard]]]:
    places: dict[str, Place] = {}
    guards: dict[str, tuple[str, _Guard]] = {}
    times: Counter[str] = Counter()
    for module, function, call, guard in found:
        if guard is None:
            continue
        name = sources[module].qualified(function)
        key = f"{module}:{name}:{guard.kind}:{guard.text}"
        times[key] += 1
        digest = sha256(f"{key}:{times[key]}".encode()).hexdigest()[:6]
        place = Place(module, name, digest, call.lineno, guard.text)
        places[place.id], guards[place.id] = place, (module, guard)
    return places, guards


def _guard(source: Source, node: ast.AST) -> _Guard | None:
    """The innermost condition in front of a node; None if its function has none."""
    for parent, part in source.around(node):
        if isinstance(parent, Function):
            return _exit_before(parent.body, part)
        if isinstance(parent, Comprehension) and not isinstance(part, ast.comprehension):
            last = parent.generators[-1]
            return _condition(last, "ifs", True) if last.ifs else _once(last, "iter")
        if isinstance(parent, ast.IfExp) and part is not parent.test:
            return _condition(parent, "test", part is parent.body)
        if isinstance(parent, ast.stmt | ast.match_case | ast.ExceptHandler) and (
            found := _of_block(source, parent, part)
        ):
            return found
    return None


def _of_block(source: Source, parent: ast.AST, part: ast.AST) -> _Guard | None:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and part in block:
            if (found := _exit_before(block, part)) is not None:
                return found
            if isinstance(parent, ast.If | ast.While):
                return _condition(parent, "test", name == "body")
            if isinstance(parent, ast.For) and name == "body":
                return _once(parent, "iter")
            if isinstance(parent, ast.match_case):
                if parent.guard is not None:
                    return _condition(parent, "guard", True)
                return _once(source.parents[parent], "subject")
    return None


def _exit_before(block: Sequence[ast.stmt], part: ast.AST) -> _Guard | None:
    """The nearest ``if`` before a statement of a block that ends in leaving the block."""
    before = block[: block.index(part)] if isinstance(part, ast.stmt) and part in block else ()
    for each in reversed(before):
        if isinstance(each, ast.If) and isinstance(each.body[-1], LEAVES) and not each.orelse:
            return _condition(each, "test", False)
    return None


def _condition(holder: ast.AST, name: str, wanted: bool) -> _Guard:
    tests = getattr(holder, name)
    text = " and ".join(map(ast.unparse, tests)) if isinstance(tests, list) else ast.unparse(tests)
    return _Guard("and" if wanted else "or", holder, name, text if wanted else f"not ({text})")


def _once(holder: ast.AST, name: str) -> _Guard:
    return _Guard("once", holder, name, ast.unparse(getattr(holder, name)))


def _replace(holder: ast.AST, name: str, several: Sequence[tuple[str, _Guard]]) -> None:
    """Puts a call of ``HIT`` in the place of a condition: the ids by kind, and the joined conditions as functions."""
    old = getattr(holder, name)
    tests = old if isinstance(old, list) else [old]
    test: ast.expr = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    by_kind = {kind: [id for id, guard in several if guard.kind == kind] for kind in ("and", "or", "once")}
    named = ast.Tuple(
        [ast.Tuple([ast.Constant(id) for id in by_kind[kind]], ast.Load()) for kind in by_kind], ast.Load()
    )
    if not isinstance(test, ast.BoolOp):
        new = _call("single", named, test)
    else:
        operator = ast.Constant("and" if isinstance(test.op, ast.And) else "or")
        if any(isinstance(each, APART) for each in ast.walk(test)):
            counted = [_call("part", ast.Constant(number), part) for number, part in enumerate(test.values)]
            new = _call("whole", named, operator, ast.Constant(len(counted)), ast.BoolOp(test.op, counted))
        else:
            nothing = ast.arguments([], [], None, [], [], None, [])
            new = _call("joined", named, operator, *(ast.Lambda(nothing, part) for part in test.values))
    setattr(holder, name, [new] if isinstance(old, list) else new)


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(HIT, ast.Load()), name, ast.Load()), [*arguments], [])


def texts_of(folder: Path, package: str) -> dict[str, str]:
    """The source of each module of a folder, by name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))
        found[name] = path.read_text("utf-8")
    return found
