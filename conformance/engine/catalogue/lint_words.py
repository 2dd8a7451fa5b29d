"""Finds words that the project does not use in texts that people read: declarations, messages, help, docstrings, docs.

Of a Python file it reads every string with a blank in it that is not a docstring (help of options and messages among
them), and the docstrings of public things. In backticks, code blocks and targets of links stand names, which it skips.
"""

import ast
import re
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import kipcheck

_REPORT, _ROLE, _MUTANT = "report, render, describe", "name the role", "mutant, planted defect"
WORDS: Mapping[str, str] = {
    "told": _REPORT, "tell": _REPORT, "tells": _REPORT, "telling": _REPORT, "foretold": "predicted",
    "spoken": "used, supported", "befall": "happen to", "befalls": "happens to", "luck": "random",
    "nobody": _ROLE, "somebody": _ROLE, "whoever": _ROLE,
    "vice": _MUTANT, "vices": _MUTANT, "miniature": _MUTANT, "miniatures": _MUTANT,
}  # fmt: skip
"""Each word, with what to write instead."""
WORD = re.compile(rf"(?<![\w./-])({'|'.join(WORDS)})(?![\w/=(-])", re.IGNORECASE)

EXEMPT: tuple[tuple[str, str], ...] = (
    (r"```.*?```|``.+?``|`[^`\n]+`", "code and names in prose"),
    (r"\]\([^)\s]*\)|https?://\S+", "where a link leads: names of findings pages stay"),
    (r"\bminiature/[\w*-]+", "names of targets"),
    (r"\bkipcheck vices\b", "an alias of the command mutants"),
    (
        r"\b(?:beat|join|leave|away|classic-join) [a-z]+(?:[+-]\d+)?(?: on [a-z,]+)?(?: runs [a-z,]+ at \d)? told\b",
        "shorthand of the protocols of consumer groups and streams groups",
    ),
    (r"\bnone, told or before\b", "values of the field owned, in the consumer group protocol"),
    (r"\Arestarts, and forgets what it was told\Z", "an event by which play and counter-examples name a restart"),
    (
        r"\A(?:above told|not told|to nobody|known to nobody|told to skip)\Z",
        "shapes: stored failures are compared by them",
    ),
)
"""Patterns of what may contain a word, each with the reason."""
GIVEN: tuple[str, ...] = (
    "258-25", "268-30", "268-36", "268-48", "429-11", "429-15", "429-18", "429-22", "429-25",
    "584-30", "584-66", "584-69", "584-72",
)  # fmt: skip
"""Requirements whose statements were given to the project and are quoted as they are."""

_CUT = tuple(re.compile(pattern, re.DOTALL) for pattern, _ in EXEMPT)
_KEYS: Mapping[str, tuple[str, ...]] = {
    "requirements.toml": ("text",), "remedies.toml": ("fix", "means"), "known": ("reason", "title"),
}  # fmt: skip
"""Keys of a data file, or of the files of a folder, whose values people read; all values of the others."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    file: str = ""
    line: int = 0
    """From 1 on."""
    id: str = ""
    """Of the declaration that the text belongs to."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file else self.id


@dataclass(frozen=True, slots=True)
class Found:
    text: Text
    word: str

    def __str__(self) -> str:
        text = " ".join(self.text.text.split())
        at = max(0, text.lower().find(self.word) - 50)
        named = f" ({self.text.id})" if self.text.file and self.text.id else ""
        return f"{self.text.place}{named}: {self.word!r} in {text[at : at + 120]!r}: write {WORDS[self.word]}"


def words_in(texts: Iterable[Text]) -> Iterator[Found]:
    """Each word once for a text."""
    for each in texts:
        if each.id not in GIVEN and WORD.search(each.text):
            yield from (Found(each, word) for word in dict.fromkeys(map(str.lower, WORD.findall(prose(each.text)))))


def prose(text: str) -> str:
    """Without what is exempt."""
    for pattern in _CUT:
        text = pattern.sub(" ", text)
    return text


def found(declared: Iterable[Text] = ()) -> Iterator[Found]:
    """Words in files of the package, and in declared texts that stand in none of them: those made at run time."""
    seen = set()
    for each in words_in(package()):
        seen.add((each.word, " ".join(each.text.text.split())))
        yield each
    for each in words_in(declared):
        text = " ".join(each.text.text.split())
        if not any(word == each.word and text in there for word, there in seen):
            yield each


@cache
def package() -> tuple[Text, ...]:
    """All texts of the package, and the pages above it in a checkout; those of tests are left out."""
    return tuple(_package())


def _package() -> Iterator[Text]:
    root = Path(kipcheck.__file__).parent
    for top in ("conformance", "strategies", "golden", "reports"):
        yield from folder((root / top).resolve(), top)
    above = (root / "conformance").resolve().parent
    if (above / "pyproject.toml").is_file():
        for name in ("README.md", "CONTRIBUTING.md"):
            if (above / name).is_file():
                yield from markdown((above / name).read_text("utf-8"), name)


def folder(path: Path, shown: str) -> Iterator[Text]:
    """``shown``: how findings name the folder."""
    for each in sorted(path.rglob("*.*")):
        if each.name == Path(__file__).name:  # its patterns name the words
            continue
        parts = each.relative_to(path).parts
        reader = _READERS.get(".schema.json" if each.name.endswith(".schema.json") else each.suffix)
        if reader is not None and parts[0] not in ("tests", "benchmarks") and each.is_file():
            text = each.read_text("utf-8", errors="replace")
            if WORD.search(text):  # few files have one: the others need not be parsed
                yield from reader(text, "/".join((shown, *parts)))


def options(parser: ArgumentParser) -> Iterator[Text]:
    """Help of a command, its options and its subcommands."""
    yield from (Text(each, id=parser.prog) for each in (parser.description, parser.epilog, parser.usage) if each)
    for action in parser._actions:
        if isinstance(action.help, str):
            yield Text(action.help, id=f"{parser.prog} {'/'.join(action.option_strings) or action.dest}")
        if isinstance(action.choices, Mapping):
            for each in {id(each): each for each in action.choices.values()}.values():
                yield from options(each)


def markdown(text: str, file: str) -> Iterator[Text]:
    """Paragraphs, table rows and list entries line by line, without blocks of code."""
    fence = re.compile(r"^ *(```|~~~).*?^ *\1", re.DOTALL | re.MULTILINE)
    plain = fence.sub(lambda block: "\n" * block[0].count("\n"), text)
    yield from (Text(line, file, number) for number, line in enumerate(plain.splitlines(), 1))


def python(text: str, file: str) -> Iterator[Text]:
    tree = ast.parse(text)
    yield from _docstrings(tree.body, file)
    yield from _strings(tree, file)


def _docstrings(body: list[ast.stmt], file: str) -> Iterator[Text]:
    """Of public things; that of a constant or a field stands below it."""
    private = False
    for each in body:
        match each:
            case ast.Expr(value=ast.Constant(value=str(text))) if not private:
                yield Text(text, file, each.lineno)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("_"):
                    yield from _docstrings(each.body, file)
            case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
                private = name.startswith("_")
                continue
        private = False


def _strings(tree: ast.AST, file: str) -> Iterator[Text]:
    """Those with a blank in it; what an f-string puts in is ``{}``."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        match node:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Constant(value=str(text)) if " " in text:
                yield Text(text, file, node.lineno)
            case ast.JoinedStr(values=values):
                parts = [str(each.value) if isinstance(each, ast.Constant) else "{}" for each in values]
                if " " in (text := "".join(parts)):
                    yield Text(text, file, node.lineno)
                todo += [each for each in values if isinstance(each, ast.FormattedValue)]
                continue
        todo += ast.iter_child_nodes(node)


def toml(text: str, file: str) -> Iterator[Text]:
    """Values with a blank in it; ``id``: of their table, where it has one, or its name."""
    folder, _, name = file.rpartition("/")
    keys = _KEYS.get(name) or _KEYS.get(folder.rpartition("/")[2])
    lines = text.splitlines()
    for path, value in _values(tomllib.loads(text)):
        if " " in value and WORD.search(value) and (keys is None or path[-1] in keys):
            first = next(each for each in value.splitlines() if WORD.search(each))
            number = next((n for n, line in enumerate(lines, 1) if first[:40].strip() in line), 1)
            yield Text(value, file, number, path[-2] if len(path) > 1 else path[-1])


def _values(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    match value:
        case str():
            yield path, value
        case dict():
            named = (str(value["id"]),) if "id" in value else ()
            for key, each in value.items():
                yield from _values(each, (*path, *named, key))
        case list():
            for each in value:
                yield from _values(each, path)


def quoted(text: str, file: str) -> Iterator[Text]:
    """Strings with a blank in it, of schemas and of programs in other languages."""
    for number, line in enumerate(text.splitlines(), 1):
        for each in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
            if " " in each:
                yield Text(each, file, number)


_READERS = {
    ".py": python, ".md": markdown, ".toml": toml,
    ".schema.json": quoted, ".java": quoted, ".go": quoted, ".mjs": quoted,
}  # fmt: skip
