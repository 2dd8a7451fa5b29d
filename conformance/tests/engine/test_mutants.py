"""Mutants: adapters with one planted defect. Each is found by its check, and its least case breaks its invariant.

Every mutant is tested here, in three ways: found at seed 0 (one of each invariant in the default tier, the others in
integration); its least case breaks its invariant, no step can be left out, and the reference passes it (default tier);
shrunk to that least case (tier ``mutants``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import Died, History
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge, possible_part
from kipcheck.conformance.engine.execution.worker import Finding, Unit, Worker
from kipcheck.conformance.engine.search.shrink import shrunk
from kipcheck.conformance.engine.strength.mutation_test import subject_of
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.assignment.ops import shorthand as assignment_shorthand
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER_GROUP
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.group.ops import OPERATIONS as GROUP_OPERATIONS
from kipcheck.conformance.protocols.group.target import CoordinatorAdapter, DraftCoordinatorAdapter
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.member.ops import OPERATIONS as MEMBER_OPERATIONS
from kipcheck.conformance.protocols.member.target import ConsumerAdapter
from kipcheck.conformance.protocols.mutants import MUTANTS, Mutant
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh, InProcess
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.testee import Limits
from kipcheck.conformance.tests.support.groups import case as group_of_leader

QUICK: Final = Limits(cpu_s=0.3, batch_s=20)
"""For mutants that end their process: no sound codec needs as long."""
NOT_BY_ITS_CHECK: Final[Mapping[str, str]] = {
    "walks-for-ever": "hangs by the number of its steps, which only a deadline ends",
    "tells-errors-in-its-own-version": "an invariant of grade INFO describes it",
}
"""Mutants that their own check does not find at seed 0, and why: their least case has to do here."""
AS_RELEASED: Final = {"echoes-by-instance": {"streams/shared-while-probing", "streams/one-owner"}}
"""The release does the same, so the reference breaks these too; the invariant of the mutant describes it."""
GROUP_SHRUNK: Final = {"leaps-over", "takes-twins"}
"""Of ``group/*``: shrinking takes seconds for each, and ``kipcheck mutants --check 'group/*'`` shrinks the others."""


def reference_coordinator(edition: str) -> Adapter:
    return DraftCoordinatorAdapter() if edition == "kip-429" else CoordinatorAdapter()


@dataclass(frozen=True, slots=True)
class Conversations:
    """How the least cases of one kind of check are read and played."""

    parse: Callable[[str], tuple[Step, ...]]
    shorthand: Callable[[Sequence[Step]], str]
    reference: Callable[[str], Adapter] = field(default=lambda edition: Reference())
    another_shape: bool = False
    """May a case with a step less break the invariant in another shape?"""


CONVERSATIONS: Final[Mapping[str, Conversations]] = {
    **{
        each.machine: Conversations(each.parse_shorthand, each.shorthand, another_shape=each.role is Role.OPERATOR_TOOL)
        for each in registry.operations().values()
        if each.role is not Role.CLIENT
    },
    "group": Conversations(GROUP_OPERATIONS.parse_shorthand, GROUP_OPERATIONS.shorthand, reference_coordinator),
    "member": Conversations(
        MEMBER_OPERATIONS.parse_shorthand, MEMBER_OPERATIONS.shorthand, lambda edition: ConsumerAdapter()
    ),
}
"""By the first part of the ids of checks. Scripts of live clients take real time: tests/protocols/client plays theirs,
many at once."""


def kind_of(mutant: Mutant) -> str:
    return mutant.check.partition("/")[0]


def of_kind(*kinds: str) -> list[str]:
    return [name for name, mutant in MUTANTS.items() if kind_of(mutant) in kinds]


def made(name: str) -> Any:
    mutant = MUTANTS[name]
    in_a_child = mutant.deadly or mutant.remembers
    return target(f"miniature/{name}", QUICK) if in_a_child else Afresh(f"miniature/{name}", mutant.made)


def unit_of(name: str, values: int | None = None) -> Unit:
    mutant, subject = MUTANTS[name], subject_of(MUTANTS[name])
    return Unit(name, subject.edition, mutant.check, mutant.subject, mutant.version, 0, 1 if mutant.deadly else values)


def invariant_of(mutant: Mutant) -> Invariant:
    return next(each for each in all_invariants(CHECKS[mutant.check].role) if each.id == mutant.invariant)


# ---- the list


def test_each_check_and_each_invariant_has_a_mutant() -> None:
    assert {mutant.check for mutant in MUTANTS.values()} == set(CHECKS)
    for role in {check.role for check in CHECKS.values()}:
        missing = {each.id for each in all_invariants(role)} - {mutant.invariant for mutant in MUTANTS.values()}
        assert not missing, f"no mutant breaks {missing}"


def test_each_invariant_is_checked() -> None:
    asked = {id for check in CHECKS.values() for id in check.invariants}
    of_roles = {each.id for role in {check.role for check in CHECKS.values()} for each in all_invariants(role)}
    assert of_roles - asked == {"keeps-its-claims"}, "which holds for every check"


def test_each_mutant_is_made_for_an_invariant_and_a_subject_of_its_check() -> None:
    for name, mutant in MUTANTS.items():
        check = CHECKS[mutant.check]
        assert mutant.invariant in (*check.invariants, "survives", "keeps-its-claims"), name
        assert check.about(subject_of(mutant)), name
        assert mutant.sentence.endswith("."), name


# ---- found


FOUND: Final = [name for name in MUTANTS if name not in NOT_BY_ITS_CHECK]
FIRST: Final = {MUTANTS[name].check: name for name in reversed(FOUND)}
"""Check -> the mutant that the default tier finds by drawing; the nightly part mutants finds the others."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in FIRST.values() else pytest.mark.mutants) for name in FOUND],
)
def test_a_mutant_is_found_by_its_check(name: str) -> None:
    with Worker(name, made(name)) as worker:
        assert worker.first(unit_of(name), invariant_of(MUTANTS[name])) is not None


OF_FEATURES: Final = ("feature-cluster", "feature-client", "feature-app", "feature-tool", "kraft-features",
                      "kraft-brokers", "zookeeper-features", "feature-commands", "kraft-quorum")  # fmt: skip


@pytest.mark.mutants
@pytest.mark.parametrize("name", of_kind(*OF_FEATURES))
def test_a_mutant_of_feature_versions_is_found_with_other_seeds(name: str) -> None:
    for seed in range(1, 5):
        with Worker(name, made(name)) as worker:
            found = worker.first(replace(unit_of(name), seed=seed), invariant_of(MUTANTS[name]))
            assert found is not None, f"with seed {seed}"


def test_a_leader_that_never_ends_is_stopped_at_its_deadline() -> None:
    least = MUTANTS["walks-for-ever"].least
    assert isinstance(least, str)
    with target("miniature/walks-for-ever", QUICK).open("apache", Role.LEADER) as session:
        ((answer,),) = session.run([group_of_leader(least)])
    assert isinstance(answer, Died) and answer.cause == "timeout"


# ---- the least case


def played(adapter: Adapter, mutant: Mutant, *conversations: Sequence[Step]) -> list[History]:
    edition, role = subject_of(mutant).edition, CHECKS[mutant.check].role
    cases = [Case(mutant.check, edition, role, tuple(steps)) for steps in conversations]
    with InProcess(adapter).open(edition, role) as session:
        return [*converse(cases, session)]


@pytest.mark.parametrize("name", [each for each in of_kind(*CONVERSATIONS) if isinstance(MUTANTS[each].least, str)])
def test_the_least_case_of_a_mutant_is_least_and_the_reference_passes_it(name: str) -> None:
    mutant = MUTANTS[name]
    assert isinstance(mutant.least, str)
    about, invariant = CONVERSATIONS[kind_of(mutant)], invariant_of(mutant)
    steps = about.parse(mutant.least)
    fewer = [steps[:n] + steps[n + 1 :] for n in range(len(steps))] if len(steps) > 1 else []
    whole, *parts = played(mutant.made(), mutant, steps, *fewer)
    shapes = [each.shape for each in invariant.search(possible_part(whole))]
    assert shapes and all(shapes), "it shows nothing, or a failure without a shape, which has no id"
    granted = CHECKS[mutant.check].family.granted(possible_part(whole))
    assert not invariant.after or invariant.after & granted, "it can be violated in a case that is not judged"
    for left_out, each in enumerate(parts):
        found = [violation.shape for violation in invariant.search(possible_part(each))]
        assert shapes[0] not in found if about.another_shape else not found, f"step {left_out} can be left out"
    ours = [each for each in all_invariants(CHECKS[mutant.check].role) if each.id.startswith(f"{kind_of(mutant)}/")]
    (sound,) = played(about.reference(subject_of(mutant).edition), mutant, steps)
    broken = {each.invariant for each in judge(sound, ours) if each.result is Result.FAIL}
    assert broken == AS_RELEASED.get(name, set())
    assert name not in AS_RELEASED or invariant.grade is Grade.INFO


@pytest.mark.parametrize("name", [each for each in of_kind("streams") if not isinstance(MUTANTS[each].least, str)])
def test_a_mutant_that_needs_a_deployment_is_found_in_the_first_cases(name: str) -> None:
    mutant, check = MUTANTS[name], CHECKS[MUTANTS[name].check]
    samples = check.samples(subject_of(mutant), 0, len(check.first))
    histories = played(mutant.made(), mutant, *(each.case.steps for each in samples))
    assert any(any(invariant_of(mutant).search(each)) for each in histories)


# ---- shrunk: found with all values of its check, and shrunk to the case that its declaration names


def found_and_shrunk(name: str, values: int | None = None) -> tuple[list[Finding], Finding]:
    mutant = MUTANTS[name]
    with Worker(name, made(name)) as worker:
        findings = worker.run(unit_of(name, values)).findings
        least = shrunk(worker, next(each for each in findings if each.invariant == mutant.invariant))
    assert least is not None, "run alone the case does not fail"
    return findings, least


@pytest.mark.mutants
@pytest.mark.parametrize("name", of_kind("wire", "nodes"))
def test_a_codec_breaks_its_own_invariant_alone_and_is_shrunk(name: str) -> None:
    mutant = MUTANTS[name]
    findings, least = found_and_shrunk(name)
    assert {each.invariant for each in findings} == {mutant.invariant}
    if mutant.least is not ...:
        guilty = least.case.steps[least.violation.at[-1]]
        assert (guilty.body["hex"] if "hex" in guilty.body else guilty.body["value"]) == mutant.least


@pytest.mark.mutants
@pytest.mark.parametrize("name", [each for each in of_kind("assign") if not MUTANTS[each].deadly])
def test_a_leader_is_shrunk(name: str) -> None:
    mutant = MUTANTS[name]
    _, least = found_and_shrunk(name, values=80)
    assert assignment_shorthand(least.case.steps) == mutant.least
    adapter = Reference()
    assert adapter.configure(least.case.edition) is None
    (sound,) = played(adapter, mutant, least.case.steps)
    laws = [each for each in all_invariants(Role.LEADER) if each.role is Role.LEADER]
    drafted = subject_of(mutant).edition == "kip-429"
    ours = [each for each in laws if each.id.startswith("mixed/") == drafted]
    assert not [each.invariant for each in judge(sound, ours) if each.violations]


@pytest.mark.mutants
@pytest.mark.parametrize("name", of_kind("consumer-group"))
def test_a_coordinator_of_consumer_groups_is_shrunk(name: str) -> None:
    mutant = MUTANTS[name]
    with Worker(name, made(name)) as worker:
        found = worker.first(unit_of(name), invariant_of(mutant))
        assert found is not None
        least = shrunk(worker, found)
    assert least is not None
    assert CONSUMER_GROUP.shorthand(least.case.steps) == mutant.least


@pytest.mark.mutants
@pytest.mark.parametrize("name", [*of_kind("features"), *sorted(GROUP_SHRUNK)])
def test_a_controller_or_coordinator_is_shrunk_to_as_few_steps(name: str) -> None:
    mutant = MUTANTS[name]
    assert isinstance(mutant.least, str)
    about = CONVERSATIONS[kind_of(mutant)]
    _, least = found_and_shrunk(name, values=12 if name in GROUP_SHRUNK else None)
    assert len(least.case.steps) == len(about.parse(mutant.least)), about.shorthand(least.case.steps)
