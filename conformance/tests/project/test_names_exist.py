"""What a docstring, a comment or a page names in backquotes exists: a module, class, function, field, file or id."""

import builtins
import re
import sys
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
DOCSTRING = re.compile(r'^ *r?"""(.*?)"""', re.DOTALL | re.MULTILINE)
"""Those of modules, classes and functions, and those below a field or a constant: each begins a line."""
COMMENT = re.compile(r"#.*``.*")
SENTENCE = re.compile(r'"[^"\n]* [^"\n]*"|#.*')
CLASS = re.compile(r"^( *)class (\w+)\b.*\n((?:(?:\1 .*)?\n)*)", re.MULTILINE)
DATA = {".toml", ".json", ".java", ".go", ".mjs", ".lock", ".txt"}
KAFKA_AND_JAVA = """
    AbstractApiMessageSerde AbstractLegacyRecordBatch AssignorError BootstrapDirectory BrokerMetadataCheckpoint
    ByteUtils CRC32C ConsumerGroupMember ControlRecordUtils DataInput DefaultRecord DefaultRecordBatch
    FileBasedStateStore FileQuorumStateStore KafkaMetadataLog LazyDownConversionRecordsSend LegacyRecord
    MetaProperties QuorumStateData Readable ReplicaManager RocksDBMigratingSessionStoreWithHeaders
    RocksDBMigratingWindowStoreWithHeaders UnifiedLog Writable expireClassicGroupMemberHeartbeat getErrorResponse
    handleTopicMetadataRequest legacyFetchOffsetsBefore partitionFor readUTF validateOffsetCommit
    validateOnlineDowngradeWithReplacedMember metadata.max.age.ms log_format.h version_edit.h
    directory.id spark.python.daemon.module
    MetadataCache LeaderEpochFileCache FetchSessionHandler FetchManager FetchContext FetchSession endOffsetFor
    getLocalLog getPartitionMetadata max.incremental.fetch.session.cache.slots
    OffsetMetadataManager validateOffsetFetch internal.leave.group.on.close members.metadata
    SharePartition fetchSubMapForAcknowledgementBatch acquireSubsetBatchRecords ConfigResource ReplicationControlManager
    createTopic
"""
CLIENTS_PROGRAMS_AND_EXAMPLES = """
    KIPCHECK_BOOTSTRAP KafkaNetClient NotCoordinatorError isEnabledFor nohup sha256sum sum.golang.org
    STEM_from_RELEASE name__0_2 rr __del__ tmp_path rare nth
"""
OF_OTHERS = frozenset((KAFKA_AND_JAVA + CLIENTS_PROGRAMS_AND_EXAMPLES).split())


def sources(pattern: str) -> Iterator[Path]:
    """Without this file, which names what is gone."""
    found = (path for folder in FOLDERS for path in sorted((TOP / folder).rglob(pattern)))
    return (path for path in found if "__pycache__" not in path.parts and path.name != Path(__file__).name)


def names_in_python(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each name in double backquotes of a docstring or comment."""
    for found in (*DOCSTRING.finditer(text), *COMMENT.finditer(text)):
        line = text.count("\n", 0, found.start()) + 1
        names = re.findall(r"``([^`]+)``", found[0])
        yield from ((line, name) for name in names if NAME.fullmatch(name) or FILE.fullmatch(name))


def names_on_page(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, name) for name in re.findall(r"`([^`]+)`", line) if FILE.fullmatch(name))


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
            text = SENTENCE.sub("", DOCSTRING.sub("", path.read_text("utf-8")))
            members.setdefault(path.parent.name if path.stem == "__init__" else path.stem, set()).update(words_in(text))
            for each in CLASS.finditer(text):
                members.setdefault(each[2], set()).update(words_in(each[3]))
            found.update(words_in(text))
        elif path.suffix in DATA and path.is_file():
            found.update(words_in(path.read_text("utf-8", errors="replace")))
    return frozenset(found) | OF_OTHERS, frozenset(paths), members


def words_in(text: str) -> set[str]:
    """Words, and several that dots join."""
    return {*WORD.findall(text), *NAME.findall(text)}


def is_there(name: str) -> bool:
    words, paths, members = known()
    if name in words or name in paths or name.startswith(("java.", "org.apache.")):
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
