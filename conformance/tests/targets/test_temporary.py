"""Temporary folders: removed at the end, and after a kill by the next process."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kipcheck.conformance.targets.toolchains.temporary import remove_orphans, temporary_folder

MAKES_ONE = """
import sys, time
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder
with temporary_folder("test") as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_folder_is_empty_and_removed_at_the_end(tmp_path: Path) -> None:
    with temporary_folder("test") as folder:
        assert folder.is_relative_to(tmp_path)
        assert [*folder.iterdir()] == []
        assert remove_orphans(tmp_path) == []
        assert folder.is_dir()
    assert [*tmp_path.iterdir()] == []


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_running_one_is_not(tmp_path: Path) -> None:
    def made() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", MAKES_ONE]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    killed, running = made(), made()
    with killed, running:
        folders = []
        for each in (killed, running):
            assert each.stdout is not None
            folders.append(Path(each.stdout.readline().strip()))
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert all(each.is_dir() for each in folders)
        assert remove_orphans(tmp_path) == [folders[0].parent]
        assert [each.is_dir() for each in folders] == [False, True]
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait() == 0
    assert [*tmp_path.iterdir()] == []


def test_the_folders_of_programs_in_java_have_their_process(tmp_path: Path) -> None:
    space = "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    names = (f"{ended.pid}-{space}-17", f"{os.getpid()}-{space}-17", f"{ended.pid}-{int(space) + 1}-17", "17")
    dead, *others = (tmp_path / f"kipcheck-store-{each}" for each in names)
    for each in (dead, *others):
        each.mkdir()
    assert remove_orphans(tmp_path) == [dead]
    assert all(each.is_dir() for each in others)


def test_a_folder_without_a_lock_and_a_link_stay(tmp_path: Path) -> None:
    (tmp_path / "kipcheck-of-a-user").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".lock").touch()
    (tmp_path / "kipcheck-link").symlink_to(elsewhere)
    assert remove_orphans(tmp_path) == []
    assert (elsewhere / ".lock").exists()
