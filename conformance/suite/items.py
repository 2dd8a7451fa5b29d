"""Items of the pytest suite: each is a run of the gate, with targets that stay open from one item to the next."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

import pytest

from kipcheck import reports
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.untrusted_text import harmless_line
from kipcheck.conformance.engine.execution import run as engine_run
from kipcheck.conformance.engine.execution.selection import NOTHING_SELECTED, InvalidOptions, Options, Selection
from kipcheck.conformance.engine.execution.target_names import UNLABELED, labels_of, require_distinct
from kipcheck.conformance.engine.execution.worker import Worker
from kipcheck.conformance.suite.combined import ITEMS, output_folder
from kipcheck.conformance.targets.protocol import Broken, Session, Target, Unavailable
from kipcheck.conformance.targets.registry import target as target_of


@dataclass(frozen=True)
class Item:
    """A check on a subject with a target."""

    session: "SessionTargets" = field(repr=False)
    target: str
    check: str
    subject: str
    missing: str = ""
    """Why it cannot be run: the target is not available."""
    label: str = ""
    """The target's name in results, if it is another."""

    @property
    def id(self) -> str:
        return "-".join(filter(None, (self.label or self.target, self.check, self.subject)))

    def hold(self) -> None:
        """Fails with the report of its run; a violation of a SHOULD is a warning; skipped if nothing was judged."""
        __tracebackhide__ = True
        if self.missing:
            pytest.fail(self.missing, pytrace=False)
        outcome = self.session.run(self)
        if outcome.ledger is None:
            pytest.fail(harmless_line(outcome.why), pytrace=False)
        if outcome.exit_code not in (exits.CONFORMANT, exits.INCONCLUSIVE):  # all items together are conclusive or not
            pytest.fail(f"{harmless_line(outcome.why)}\n{reports.render(outcome.ledger)}".strip(), pytrace=False)
        ledger = read(outcome.ledger)
        if outcome.warnings:
            warnings.warn(self.session.warning(reports.render(outcome.ledger)), stacklevel=2)
        came = {result for counts in ledger.cases.values() for result in counts}
        if came <= {"SKIP"}:
            skips = [harmless_line(each.why) for each in ledger.skips]
            pytest.skip("; ".join(skips) or f"{self.target} does not support {self.check} on {self.subject}")


class SessionTargets:
    """The targets in the options, open during the session, and the other options.

    ``names`` are those of the options that may be repeated; a breach of a SHOULD is a ``warning``.
    """

    def __init__(self, config: pytest.Config, names: Iterable[str], warning: type[Warning]) -> None:
        self.warning = warning
        lists = {name: tuple(config.getoption(f"--kipcheck-{name}") or config.getini(f"kipcheck_{name}"))
                 for name in names}  # fmt: skip
        if not lists["target"]:
            raise pytest.UsageError(
                "no target: use --kipcheck-target, for example kafka-python, or kipcheck_target in the ini file"
            )
        self.options = Options(
            targets=lists["target"],
            edition=str(config.getoption("--kipcheck-edition") or config.getini("kipcheck_edition")),
            checks=lists["check"] or ("*",),
            messages=lists["message"] or ("*",),
            seed=config.getoption("--kipcheck-seed"),
            cases=config.getoption("--kipcheck-cases"),
            workers=1,
            out=output_folder(config),
            known=lists["known"],
            names=lists["name"],
        )
        if self.options.cases is not None and self.options.cases < 1:
            raise pytest.UsageError(f"--kipcheck-cases must be a positive integer, got {self.options.cases}")
        self._targets: dict[str, _SharedTarget] = {}
        self._items: list[Item] | None = None

    def names(self) -> list[str]:
        return [*dict.fromkeys(self.options.targets)]

    def find(self, name: str) -> Target:
        """Errors: LookupError, ``Unavailable``."""
        if name not in self._targets:
            self._targets[name] = _SharedTarget(target_of(name))
        return self._targets[name]

    def items(self) -> list[Item]:
        """Errors: ``pytest.UsageError``."""
        if self._items is None:
            try:
                selection = Selection.of(self.options)
                self._items = [item for name in self.names() for item in self._of(name, selection)]
                require_distinct({item.target: item.label or item.target for item in self._items})
            except InvalidOptions as why:
                raise pytest.UsageError(str(why)) from None
            if not self._items:
                raise pytest.UsageError(NOTHING_SELECTED)
        return self._items

    def _of(self, name: str, selection: Selection) -> Iterator[Item]:
        try:
            label = labels_of(self.options).get(name, UNLABELED)
            info = Worker(name, self.find(name), *label).info(str(selection.edition), selection.checks[0].role)
        except LookupError as unknown:
            raise pytest.UsageError(str(unknown)) from None
        except (Unavailable, Broken) as gone:
            yield Item(self, name, "", "", harmless_line(gone))
            return
        for check in selection.checks:
            if check.role in info.roles:
                units = selection.units(name, info, check)
                for subject in dict.fromkeys(unit.subject for unit in units):
                    yield Item(self, name, check.id, subject, label=info.name if info.command else "")

    def run(self, item: Item) -> engine_run.Outcome:
        label = labels_of(self.options).get(item.target)
        options = replace(
            self.options, targets=(item.target,), names=() if label is None else (str(label),), checks=(item.check,),
            messages=(item.subject,),
            out=self.options.out / ITEMS / _file_name(item.id),
        )  # fmt: skip
        lasting = self._targets[item.target]
        lasting.begin()
        outcome = engine_run.execute(options, self.find)
        if outcome.exit_code in (exits.BROKEN, exits.UNSTABLE, exits.OURS):
            lasting.close()  # the next item starts it again
        return outcome

    def close(self) -> None:
        for each in self._targets.values():
            each.close()


class _SharedTarget:
    """A target whose sessions stay open between items; an item that opens one twice gets a new one."""

    def __init__(self, target: Target) -> None:
        self.name = target.name
        self._target = target
        self._open: dict[tuple[str, Role], tuple[AbstractContextManager[Session], Session]] = {}
        self._opened: set[tuple[str, Role]] = set()

    def begin(self) -> None:
        self._opened.clear()

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        key = edition, role
        if key in self._opened and key in self._open:
            self._open.pop(key)[0].__exit__(None, None, None)
        self._opened.add(key)
        if key not in self._open:
            manager = self._target.open(edition, role)
            self._open[key] = manager, manager.__enter__()
        yield self._open[key][1]

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1][0].__exit__(None, None, None)


def _file_name(id: str) -> str:
    return "".join(each if each.isalnum() or each in "-_.@" else "_" for each in id)
