"""What a docstring, a comment or a page names in backquotes exists: a module, class, function, field, file or id."""

import ast
import builtins
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

TOP = (Path(str(files("kipcheck"))) / "conformance").resolve().parent
FOLDERS = ("conformance", "strategies", "golden", "reports")
WORD = re.compile(r"[A-Za-z_]\w*")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*(?:\(\))?")
"""Other texts in backquotes are values, shorthand, commands and code."""
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.(?:py|toml)")
"""Of the names on a page only those of source files are ours without doubt: findings name code of others."""
DATA = {".toml", ".json", ".java", ".go", ".mjs", ".lock", ".txt"}
KAFKA_AND_JAVA = """
    AbstractApiMessageSerde AbstractLegacyRecordBatch AssignorError BootstrapDirectory BrokerMetadataCheckpoint
    ByteUtils CRC32C ConsumerGroupMember ControlRecordUtils DataInput DefaultRecord DefaultRecordBatch
    FileBasedStateStore FileQuorumStateStore KafkaMetadataLog LazyDownConversionRecordsSend LegacyRecord
    MetaProperties QuorumStateData Readable ReplicaManager RocksDBMigratingSessionStoreWithHeaders
    RocksDBMigratingWindowStoreWithHeaders UnifiedLog Writable expireClassicGroupMemberHeartbeat getErrorResponse
    handleTopicMetadataRequest legacyFetchOffsetsBefore partitionFor readUTF validateOffsetCommit
    validateOnlineDowngradeWithReplacedMember metadata.max.age.ms java.util.zip.CRC32C log_format.h version_edit.h
    java.io.DataOutput org.apache.spark internal.leave.group.on.close members.metadata
"""
CLIENTS_PROGRAMS_AND_EXAMPLES = """
    KafkaNetClient NotCoordinatorError isEnabledFor nohup sha256sum sum.golang.org STEM_from_RELEASE name__0_2 rr
    __del__ tmp_path rare nth
"""
OF_OTHERS = frozenset((KAFKA_AND_JAVA + CLIENTS_PROGRAMS_AND_EXAMPLES).split())


def sources(pattern: str) -> Iterator[Path]:
    """Without this file, which names what is gone."""
    found = (path for folder in FOLDERS for path in sorted((TOP / folder).rglob(pattern)))
    return (path for path in found if "__pycache__" not in path.parts and path.name != Path(__file__).name)


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Texts that stand alone: docstrings, and those below a field or a constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def names_in_python(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each name in double backquotes of a docstring or comment."""
    texts = [(each.lineno, str(each.value)) for each in docstrings(ast.parse(text))]
    if re.search(r"#.*``", text):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        texts += [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    for line, prose in texts:
        names = re.findall(r"``([^`]+)``", prose)
        yield from ((line, name) for name in names if NAME.fullmatch(name) or FILE.fullmatch(name))


def names_on_page(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, name) for name in re.findall(r"`([^`]+)`", line) if FILE.fullmatch(name))


def words_of(tree: ast.AST) -> Iterator[str]:
    """What a program names, and its strings that are no sentences."""
    prose = {id(each) for each in docstrings(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if " " not in text and id(node) not in prose:
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.alias(asname=str(name)):
                yield name


@cache
def known() -> tuple[frozenset[str], frozenset[str], dict[str, set[str]]]:
    """All words of programs and data; all paths, with their ends; module, class or folder -> the words in it."""
    found, paths, members = {*dir(builtins), *sys.stdlib_module_names}, set[str](), dict[str, set[str]]()
    for path in sources("*"):
        parts = path.relative_to(TOP).parts
        paths |= {"/".join(parts[at:]) for at in range(len(parts))}
        members.setdefault(path.parent.name, set()).add(path.stem)
        found.update(*map(WORD.findall, parts))
        if path.suffix == ".py":
            tree = ast.parse(path.read_text("utf-8"))
            words = {*words_of(tree)}
            found |= words
            members.setdefault(path.parent.name if path.stem == "__init__" else path.stem, set()).update(words)
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    members.setdefault(node.name, set()).update(words_of(node))
        elif path.suffix in DATA and path.is_file():
            text = path.read_text("utf-8", errors="replace")
            found.update(WORD.findall(text), NAME.findall(text))
    found.update(word for text in [*found] if not NAME.fullmatch(text) for word in WORD.findall(text))
    return frozenset(found) | OF_OTHERS, frozenset(paths), members


def is_there(name: str) -> bool:
    words, paths, members = known()
    if name in words:
        return True
    if FILE.fullmatch(name):
        is_pattern = any(WORD.fullmatch(word) and word.isupper() for word in re.split(r"[./]", name))
        return name in paths or is_pattern or (TOP / name).is_file()
    parts = [word for word in name.removesuffix("()").split(".") if word != "kipcheck"]
    return words.issuperset(parts) and all(part in OF_OTHERS or part in members.get(of, {part})
                                           for of, part in pairwise(parts))  # fmt: skip


def gone() -> list[str]:
    pages = [TOP / "CONTRIBUTING.md", *(TOP / "conformance" / "docs").glob("*.md")]
    found = [(path, names_in_python(path.read_text("utf-8"))) for path in sources("*.py")]
    found += [(path, names_on_page(path.read_text("utf-8"))) for path in pages if path.is_file()]
    return [f"{path.relative_to(TOP)}:{line}: {name}" for path, names in found for line, name in names
            if not is_there(name)]  # fmt: skip


def test_every_name_in_backquotes_exists() -> None:
    assert gone() == []


def test_a_name_that_is_gone_is_found() -> None:
    text = '"""Uses ``group_observer`` and ``known``."""\nX = 1  # ``Range.holds``, ``Range.opens``, ``core/no.py``\n'
    names = [name for _, name in names_in_python(text)]
    assert [name for name in names if not is_there(name)] == ["group_observer", "Range.opens", "core/no.py"]
    page = "`a b`, `group/model/rules.py`, `group_gone.py`"
    assert [name for _, name in names_on_page(page) if not is_there(name)] == ["group_gone.py"]
