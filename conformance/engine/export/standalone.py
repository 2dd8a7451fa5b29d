"""Reproduces a failure that kipcheck found: sends its steps to a testee and compares the answer with the expected one.

It implements the testee protocol itself and needs only the standard library, besides the testee.
"""

import json
import os
import shlex
import subprocess
import sys

COMMAND: list[str] = []
ROLE = "codec"
EDITION = "apache"
STEPS: list[dict[str, object]] = []
GUILTY = 0
WANTED: dict[str, object] = {"status": "accepted"}
# ---- from here on as it stands

SECONDS = 60


def ask(command: list[str]) -> list[dict[str, object]]:
    """The testee's answers to all steps. A testee that crashes, hangs or breaks the protocol gives no further
    answers.
    """
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as testee:
        cases = [{"n": n, "case": 0, **step} for n, step in enumerate(STEPS)]
        asked = (
            {"type": "hello", "protocol": 1, "run": "exported"},
            {"type": "configure", "role": ROLE, "edition": EDITION, "framing": "lines"},
            {"type": "batch", "id": 1, "deadline_ms": SECONDS * 1000, "cpu_ms": 10_000, "cases": cases},
            {"type": "bye"},
        )
        try:
            said, _ = testee.communicate("".join(json.dumps(each) + "\n" for each in asked).encode(), SECONDS)
        except subprocess.TimeoutExpired:
            testee.kill()
            return [{"status": "died", "cause": "timeout"}] * len(STEPS)
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    told = [json.loads(line) for line in lines]
    for each in told:
        for key in ("unavailable", "unsupported"):
            if key in each:
                raise SystemExit(shown(f"the testee cannot run the steps: {each[key]!r}"))
    results: list[dict[str, object]] = next((each["results"] for each in told if each.get("type") == "results"), [])
    by_number = {each["n"]: each for each in results}
    return [by_number.get(n, {"status": "died", "cause": "crashed"}) for n in range(len(STEPS))]


def shown(text: str) -> str:
    """The text without sequences that a terminal or a CI service takes for a command."""
    return text.replace("##", "# #").replace("\x7f", "\\x7f")


def bare(value: object) -> object:
    """The value without unknown tagged fields, which have an invariant of their own."""
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items() if key != "_unknownTaggedFields"}
    return [bare(each) for each in value] if isinstance(value, list) else value


def trouble(answers: list[dict[str, object]]) -> str | None:
    """The error in the answer to the failing step; None if it is right."""
    got = answers[GUILTY]
    seen = {key: each for key, each in got.items() if key != "n"}
    if got["status"] in ("died", "internal"):
        return f"expected an answer, got {seen}"
    if WANTED.get("any"):
        return None
    if "same_as" in WANTED:
        first = answers[int(str(WANTED["same_as"]))]
        same = {key: each for key, each in first.items() if key != "n"} == seen
        return None if same else f"expected the same answer as before, {first}, got {seen}"
    for key, wanted in WANTED.items():
        found = got.get(key)
        # Compared as text, because in Python True == 1 == 1.0.
        if json.dumps(bare(found), sort_keys=True) != json.dumps(bare(wanted), sort_keys=True):
            return f"expected {key} {json.dumps(wanted)}, got {json.dumps(found)}: {seen}"
    return None


def command() -> list[str]:
    """The testee's command: the arguments, or the variable KIPCHECK_TESTEE, or the command with which the failure was
    found.
    """
    given = sys.argv[1:] if __name__ == "__main__" else []
    found = given or shlex.split(os.environ.get("KIPCHECK_TESTEE", "")) or COMMAND
    if not found:
        raise SystemExit("no testee: set KIPCHECK_TESTEE to its command")
    return [sys.executable, *found[1:]] if found[0] == "python" else found


def test_it_fails_no_more() -> None:
    found = trouble(ask(command()))
    assert found is None, shown(found)


def main() -> int:
    answers = ask(command())
    for number, (step, answer) in enumerate(zip(STEPS, answers, strict=True)):
        print(shown(f"{'>' if number == GUILTY else ' '} {json.dumps(step)}\n    {json.dumps(answer)}"))
    found = trouble(answers)
    print(shown(f"fails: {found}") if found else "gone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
