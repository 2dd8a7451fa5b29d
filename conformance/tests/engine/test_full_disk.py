"""A disk that is full in the middle of a run: one sentence, and what was judged."""

import errno
from pathlib import Path

import pytest

from kipcheck.conformance.core.ledger import LedgerLine, Trouble, Verdict, Writer, read
from kipcheck.conformance.engine.execution.run import run
from kipcheck.conformance.engine.execution.selection import Options
from kipcheck.conformance.engine.ledger import lines

ROOM = 30
"""Verdicts."""


class Full(Writer):
    verdicts = 0

    def write(self, line: LedgerLine, /) -> None:
        self.verdicts += isinstance(line, Verdict)
        if self.verdicts > ROOM:
            self._file.write('{"type":"verdict","ta')
            self._file.flush()
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(line)


def test_the_ledger_has_its_complete_lines_and_the_report_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lines, "Writer", Full)
    checks, messages = ("wire/round-trip",), ("HeartbeatRe*",)
    options = Options(("reference",), checks=checks, messages=messages, cases=20, workers=1, out=tmp_path)
    outcome = run(options)
    assert outcome.exit_code == 2
    path = tmp_path / "ledger.jsonl"
    why = f"{path} cannot be written: No space left on device; what was judged before is in it. "
    assert outcome.why == why + "Make room, or name another folder with --out, and run again"
    assert "Traceback" not in capsys.readouterr().err
    ledger = read(path)
    assert ledger.footer is None
    assert sum(counts.total() for counts in ledger.cases.values()) == ROOM
    assert f"{ROOM + 1} cases in 1 check" in outcome.text
    assert "INCOMPLETE" in outcome.text


def test_a_writer_that_gives_up_leaves_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Writer(path) as writer:
        writer.write(Trouble(target="t", why="first"))
        writer._file.write('{"half')
        writer.flush()
        writer.cut()
        writer.write(Trouble(target="t", why="later"))
    assert path.read_text("utf-8") == '{"type":"trouble","target":"t","why":"first"}\n'
