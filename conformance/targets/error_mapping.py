"""Reports an exception of a library under test as a result, with the place in the library where it was raised."""

import re
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final

OWN: Final = "kipcheck"
FRAME: Final = re.compile(r'^  File "([^"]*)", line (\d+) in ', re.MULTILINE)
"""A line of faulthandler."""
GENERATED: Final = re.compile(r"_?v?\d+(?=\W|$)")
"""The number in the name of generated code, such as a version: the code of all versions is generated alike."""


def class_name(raised: BaseException) -> str:
    """The class of an exception, with its module unless that is ``builtins``."""
    kind = type(raised)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def rejected(raised: Exception) -> dict[str, Any]:
    return {"status": "rejected", "class": class_name(raised), "message": str(raised)[:300], **place(raised)}


def place(raised: BaseException) -> dict[str, str]:
    """``at`` of a result; empty if no frame belongs to a library."""
    return _as_field(innermost(reversed(list(_frames(raised.__traceback__)))))


def place_in_dump(evidence: str) -> dict[str, str]:
    """The same for a process that died, by what ``faulthandler`` wrote of the thread that ran."""
    current = evidence.rpartition("Current thread ")[2]
    return _as_field(innermost((name, int(line)) for name, line in FRAME.findall(current.partition("\n\n")[0])))


def innermost(frames: Iterable[tuple[str, int]]) -> str:
    """File, relative to the folder that contains its package, and line of the first frame in a library.

    ``frames``: file and line, the innermost first. The standard library and kipcheck are no libraries under test. A
    frame of generated code belongs to the library that called it; it has a name without numbers, and no line.
    """
    generated = ""
    for name, line in frames:
        if name.startswith("<"):
            if not name.startswith("<frozen "):
                generated = generated or GENERATED.sub("", name)
            continue
        if (file := _in_a_library(name)) is not None:
            return generated or f"{file}:{line}"
        generated = ""
    return ""


def _as_field(at: str) -> dict[str, str]:
    return {"at": at} if at else {}


def _frames(traceback: TracebackType | None) -> Iterator[tuple[str, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next


@cache
def _in_a_library(name: str) -> str | None:
    """The file from the folder of its outermost package on; None for files of other kinds."""
    file = Path(name)
    top = file
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    if top.name == OWN or (not installed and file.is_relative_to(sysconfig.get_path("stdlib"))):
        return None
    return file.relative_to(top.parent).as_posix()
