"""Writes each line of a package to a file when it is run for the first time.

It is copied into the environment of a client, where a ``.pth`` file starts it, and imports nothing that the client does
not import anyway. Lines are written at once: programs are killed, and processes forked from this one end without
cleaning up. They share the file.
"""

import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Final

FOLDER: Final = "KIPCHECK_LINES"
"""The variable with the folder of the files, one for each process that is started."""

AT_IMPORT: Final = "import "
"""Before a line that is in no function."""
CO_OPTIMIZED: Final = 1
"""The flag of the code of functions."""


class _Tracer:
    def __init__(self, package: str, file: int) -> None:
        self.package, self.file = package, file
        self.paths: dict[str, str] = {}
        """File name of code -> its path in the package; empty: it is of another one."""
        self.left: dict[int, set[int]] = {}
        """Id of a code object -> its lines that have not run."""
        self.codes: list[CodeType] = []
        """So that no other gets its id."""

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Is called for each function that is called."""
        code = frame.f_code
        path = self.paths.get(code.co_filename)
        if path is None:
            inside = code.co_filename.startswith(self.package)
            path = self.paths[code.co_filename] = code.co_filename[len(self.package) :] if inside else ""
        if not path:
            return None
        left = self.left.get(id(code))
        if left is None:
            left = self.left[id(code)] = {line for *_, line in code.co_lines() if line}
            self.codes.append(code)
        return self.trace_line if left else None

    def trace_line(self, frame: FrameType, event: str, argument: object) -> Any:
        left, line = self.left[id(frame.f_code)], frame.f_lineno
        if event == "line" and line in left:
            left.discard(line)
            mark = "" if frame.f_code.co_flags & CO_OPTIMIZED else AT_IMPORT
            os.write(self.file, f"{mark}{self.paths[frame.f_code.co_filename]}:{line}\n".encode())
        return self.trace_line


def start(package: str) -> None:
    """``package``: its folder, with a slash at the end."""
    folder = os.environ.get(FOLDER)
    if folder:
        path = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}.lines")
        tracer = _Tracer(package, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644))
        threading.settrace(tracer.trace)
        sys.settrace(tracer.trace)
