"""Explores the state space of a product machine: every reachable state, breadth first, each packed in one integer.

Each state of a component has a number; the numbers of all components, side by side, are the packed state. Tables give
the moves of a component by its number, the hub's reaction to a message by the hub's number, and another component's by
that component's number. The machine computes each table entry once, and a transition is an addition. ``SimpleProduct``
of ``product`` defines the same transitions in a slower, readable way, and tests compare the two.

A machine of a single component may have a symmetry: then only its canonical states are explored, and a counter-example
is renumbered to a path of the machine itself.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Generic, Literal, NamedTuple, TypeAlias

from kipcheck.conformance.machines.product import (
    COORDINATOR_INDEX,
    ContractViolation,
    Event,
    G,
    Law,
    P,
    ProductMachine,
    Sent,
    SimpleProduct,
    Step,
    V,
    broken_laws,
    broken_step_laws,
    checked,
)
from kipcheck.conformance.machines.symmetry import Symmetry, original

BITS: Final = 20
"""Bits of the number of a component state: a component can have about a million states."""
MASK: Final = (1 << BITS) - 1

Delta: TypeAlias = int
"""The change of a packed state when one component changes."""
Takes: TypeAlias = dict[int, Delta]
"""For one message: number of the receiver's state -> its change."""
Outs: TypeAlias = tuple[tuple[int, Takes], ...]
"""For each message: bit position of the receiver, and its table of changes."""
Replies: TypeAlias = dict[int, tuple[Delta, Outs] | Literal[False]]
"""For one message: number of the hub's state -> its change and messages; False: it refuses the message."""
Edge: TypeAlias = tuple[Delta, Outs, Replies | None]


class Breach(NamedTuple, Generic[V]):
    """A counter-example of minimal length."""

    law: str
    """Its id."""
    why: str
    path: tuple[Event[V], ...]


class _Part(Generic[P]):
    """The states of one component by number, and its moves in each."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.shift = index * BITS
        self.numbers: dict[P, int] = {}
        self.states: list[P] = []
        self.views: list[int] = []
        """By number: the view of the laws, shifted to the component's position."""
        self.does: list[tuple[int, tuple[Delta, ...], tuple[Edge, ...]] | None] = []
        """By number: view, moves without messages, and moves with messages; None if not computed yet."""


class Search(Generic[P, V, G]):
    """One search. Call ``run`` until it returns True; the attributes have the results."""

    def __init__(self, made: ProductMachine[P, V, G], symmetry: Symmetry[P, V] | None = None) -> None:
        """``symmetry``: that of the only component."""
        if symmetry is not None and len(made.names) != 1:
            raise ContractViolation(f"{len(made.names)} components: a symmetry is that of a single one")
        self.made = made
        self._symmetry = symmetry
        self.transitions = 0
        self.depth = 0
        """Length of the shortest path to the deepest state."""
        self.complete = False
        """All reachable states were expanded."""
        self.breach: Breach[V] | None = None
        self._laws = [law for law in made.laws if isinstance(law, Law)]
        self._parts = [_Part[P](index) for index in range(len(made.names))]
        self._takes: dict[tuple[int, G], Takes] = {}
        self._replies: dict[tuple[G, bool], Replies] = {}
        self._table_keys: dict[int, tuple[G, bool]] = {}
        """Id of a table of takes or replies -> its message, and whether sending it breaks a law."""
        self._views: dict[tuple[Hashable, ...], int] = {}
        self._kept: set[int] = set()
        """Packed views that break no law."""
        self._violating_state: int | None = None
        """The first state with a step that breaks a step law. It is reported after the whole level was checked, since
        a state of this level that breaks a state law has a shorter path."""
        self._parents: dict[int, int] = {}
        """State -> the state from which it was first reached; the initial state maps to itself."""
        self._level: list[int] = []
        self._at = 0
        """Number of states of the level that were expanded."""
        self._deeper: list[int] = []
        self.restart()

    def restart(self) -> None:
        """Restarts the search, and keeps the computed tables."""
        start = self._packed(self.made.initial())
        self._parents, self._level, self._at, self._deeper = {start: start}, [start], 0, []
        self.transitions, self.depth, self.complete, self.breach, self._violating_state = 0, 0, False, None, None

    @property
    def states(self) -> int:
        return len(self._parents)

    @property
    def asked(self) -> int:
        """Number of computed table entries: component states, and reactions to messages."""
        moved = sum(each is not None for part in self._parts for each in part.does)
        return moved + sum(map(len, self._replies.values())) + sum(map(len, self._takes.values()))

    def run(self, leaving: int) -> bool:
        """Expands up to ``leaving`` states. Returns True when the search has ended."""
        while leaving > 0 and self.breach is None and not self.complete:
            until = min(len(self._level), self._at + leaving)
            leaving -= until - self._at
            self._expand(until)
            if self.breach is None and self._at == len(self._level):
                self._next_level()
        return self.complete or self.breach is not None

    def _next_level(self) -> None:
        if self._violating_state is not None:
            self.breach = self._step_breach(self._violating_state)
        elif self._deeper:
            self._level, self._deeper, self._at = self._deeper, [], 0
            self.depth += 1
        else:
            self.complete = True

    def _expand(self, until: int) -> None:
        """Expands the level up to index ``until``. The hot loop: uses the machine for new entries only."""
        parents, deeper, kept = self._parents, self._deeper, self._kept
        parts = tuple((each, each.shift, each.does) for each in self._parts)
        transitions = 0
        for state in self._level[self._at : until]:
            view, before = 0, transitions
            hub = state & MASK
            for part, shift, does in parts:
                number = state >> shift & MASK
                known = does[number]
                if known is None:
                    known = self._compute_moves(part, number, state)
                seen, deltas, edges = known
                view += seen
                transitions += len(deltas)
                for delta in deltas:
                    after = state + delta
                    if after not in parents:
                        parents[after] = state
                        deeper.append(after)
                for delta, outs, replies in edges:
                    after = state + delta
                    if replies is not None:
                        reply = replies.get(hub)
                        if not reply:
                            reply = self._compute_reply(replies, hub, state) if reply is None else reply
                            if not reply:
                                continue
                        after += reply[0]
                        outs += reply[1]
                    for place, takes in outs:
                        change = takes.get(after >> place & MASK)
                        if change is None:
                            change = self._compute_take(takes, place, after, state)
                        after += change
                    transitions += 1
                    if after not in parents:
                        parents[after] = state
                        deeper.append(after)
            if view not in kept or transitions == before:
                self._check_state(state, view, resting=transitions == before)
                if self.breach is not None:
                    break
        self._at = until
        self.transitions += transitions

    # Table entries, each computed once

    def _number(self, part: _Part[P], state: P) -> int:
        found = part.numbers.get(state)
        if found is None:
            if self._symmetry is not None and (kept := self._symmetry.canonical(state)[0]) != state:
                found = part.numbers[state] = self._number(part, kept)
                return found
            found = part.numbers[state] = len(part.states)
            if found > MASK:
                raise OverflowError(f"component {self.made.names[part.index]} has more than {MASK:,} states")
            part.states.append(state)
            part.does.append(None)
            seen = tuple(law.view(part.index, state) for law in self._laws)
            part.views.append(self._views.setdefault(seen, len(self._views)) << part.shift)
        return found

    def _compute_moves(
        self, part: _Part[P], number: int, state: int
    ) -> tuple[int, tuple[Delta, ...], tuple[Edge, ...]]:
        """Computes the moves of a component in a state."""
        before = part.states[number]
        local: list[Delta] = []
        sending: list[Edge] = []
        for move in self.made.moves(part.index, before):
            did = checked(part.index, self.made.act(part.index, before, move), acting=True)
            delta = (self._number(part, did.part) - number) << part.shift
            wrong = any(broken_step_laws(self.made, Step(part.index, before, move, did)))
            asked = next((sent.message for sent in did.sends if sent.to == COORDINATOR_INDEX), None)
            if asked is not None:
                sending.append((delta, self._outs(did.sends), self._table(asked, wrong)))
                continue
            if wrong:
                self._note_misdeed(state)
            if did.sends:
                sending.append((delta, self._outs(did.sends), None))
            else:
                local.append(delta)
        known = part.does[number] = part.views[number], tuple(local), tuple(sending)
        return known

    def _table(self, message: G, wrong: bool) -> Replies:
        """``wrong``: sending the message breaks a law, unless the hub refuses the message."""
        found = self._replies.get((message, wrong))
        if found is None:
            found = self._replies[message, wrong] = {}
            self._table_keys[id(found)] = message, wrong
        return found

    def _outs(self, sends: Sequence[Sent[G]]) -> Outs:
        """Messages to components other than the hub."""
        return tuple(
            (self._parts[to].shift, self._takers(to, message)) for to, message in sends if to != COORDINATOR_INDEX
        )

    def _takers(self, to: int, message: G) -> Takes:
        found = self._takes.get((to, message))
        if found is None:
            found = self._takes[to, message] = {}
            self._table_keys[id(found)] = message, False
        return found

    def _compute_reply(self, replies: Replies, hub: int, state: int) -> tuple[Delta, Outs] | Literal[False]:
        """Computes the hub's reaction to a message in a state."""
        message, wrong = self._table_keys[id(replies)]
        before = self._parts[COORDINATOR_INDEX].states[hub]
        did = self.made.take(COORDINATOR_INDEX, before, message)
        if did is None:
            replies[hub] = False
            return False
        if wrong or any(
            broken_step_laws(
                self.made, Step(COORDINATOR_INDEX, before, message, checked(COORDINATOR_INDEX, did, acting=False))
            )
        ):
            self._note_misdeed(state)
        found = replies[hub] = (self._number(self._parts[COORDINATOR_INDEX], did.part) - hub, self._outs(did.sends))
        return found

    def _compute_take(self, takes: Takes, place: int, state: int, left: int) -> Delta:
        """Computes the reaction of another component to a message, in a transition out of the state ``left``."""
        message, _ = self._table_keys[id(takes)]
        part = self._parts[place // BITS]
        number = state >> place & MASK
        before = part.states[number]
        did = self.made.take(part.index, before, message)
        if did is None:
            raise ContractViolation(f"{self.made.names[part.index]} refuses {message!r}, but only the hub may refuse")
        if any(broken_step_laws(self.made, Step(part.index, before, message, checked(part.index, did, acting=False)))):
            self._note_misdeed(left)
        change = takes[number] = (self._number(part, did.part) - number) << place
        return change

    # Counter-examples

    def _note_misdeed(self, state: int) -> None:
        if self._violating_state is None:
            self._violating_state = state

    def _check_state(self, state: int, view: int, resting: bool) -> None:
        """``view``: the packed views of all components. Views that keep the laws are not checked again."""
        for law, why in broken_laws(self.made, self._unpacked(state), resting):
            path = self._original(self._path(state))
            found = dict(broken_laws(self.made, self._after(path), resting)) if self._symmetry else {}
            self.breach = Breach(law.id, found.get(law, why), path)
            return
        self._kept.add(view)

    def _step_breach(self, state: int) -> Breach[V]:
        """The counter-example for a state with a step that breaks a step law."""
        for event in SimpleProduct(self.made).enabled(self._unpacked(state)):
            if any(self._broken_steps(self._unpacked(state), event)):
                path = self._original([*self._path(state), event])
                for law, why in self._broken_steps(self._after(path[:-1]), path[-1]):
                    return Breach(law, why, path)
        raise ContractViolation(f"{self.made.names[0]} and the others do not do the same twice")

    def _broken_steps(self, parts: tuple[P, ...], event: Event[V]) -> Iterator[tuple[str, str]]:
        for step in SimpleProduct(self.made).run_move(parts, event) or ():
            for law, why in broken_step_laws(self.made, step):
                yield law.id, why

    def _path(self, state: int) -> list[Event[V]]:
        """The shortest path to the state, computed with ``SimpleProduct``, which confirms it."""
        chain = [state]
        while self._parents[chain[-1]] != chain[-1]:
            chain.append(self._parents[chain[-1]])
        chain.reverse()
        whole = SimpleProduct(self.made)
        return [self._between(whole, *pair) for pair in pairwise(chain)]

    def _between(self, whole: SimpleProduct[P, V, G], before: int, after: int) -> Event[V]:
        parts = self._unpacked(before)
        for event in whole.enabled(parts):
            if self._packed(whole.step(parts, event).state) == after:
                return event
        raise ContractViolation(f"{self.made.names[0]} and the others do not do the same twice")

    def _original(self, path: Sequence[Event[V]]) -> tuple[Event[V], ...]:
        """A path through canonical states as one of the machine itself."""
        if self._symmetry is None:
            return tuple(path)
        (initial,), act = self.made.initial(), self.made.act
        moves = original(self._symmetry, initial, lambda state, move: act(0, state, move).part, (e.move for e in path))
        return tuple(Event(0, move) for move in moves)

    def _after(self, path: Sequence[Event[V]]) -> tuple[P, ...]:
        """The state at the end of a path, without the test whether each move is among those that are tried."""
        state, whole = self.made.initial(), SimpleProduct(self.made)
        for event in path:
            parts = list(state)
            for step in whole.run_move(state, event) or ():
                parts[step.index] = step.did.part
            state = tuple(parts)
        return state

    def _packed(self, state: tuple[P, ...]) -> int:
        return sum(self._number(part, each) << part.shift for part, each in zip(self._parts, state, strict=True))

    def _unpacked(self, state: int) -> tuple[P, ...]:
        return tuple(part.states[state >> part.shift & MASK] for part in self._parts)
