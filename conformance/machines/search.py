"""The fast exploration of a composed machine: every reachable state, breadth first, as one integer each.

Each state that a part was ever in has a number; the numbers of all parts, side by side, are the state of the whole.
What a part may do is looked up by its number, what the hub makes of a message by the hub's number, what another part
makes of it by that part's: the machine itself is asked once for each of these, and a transition is an addition.
``Whole`` of ``composed`` says the same slowly, and tests hold the two against each other.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Final, Generic, Literal, NamedTuple, TypeAlias

from kipcheck.conformance.machines.product import (
    HUB,
    Composed,
    Disobeyed,
    Event,
    G,
    Law,
    P,
    Sent,
    Step,
    V,
    Whole,
    broken,
    checked,
    misdone,
)

BITS: Final = 20
"""Of the number of a part's state: a search does not end with more than a million states of one part."""
MASK: Final = (1 << BITS) - 1

Delta: TypeAlias = int
"""What is added to a state when one part changes."""
Takes: TypeAlias = dict[int, Delta]
"""What becomes of a part on one message, by the part's number."""
Outs: TypeAlias = tuple[tuple[int, Takes], ...]
"""For each message where the number of its receiver stands, and what becomes of that."""
Replies: TypeAlias = dict[int, tuple[Delta, Outs] | Literal[False]]
"""What the hub makes of one message, by the hub's number; False: it does not take it."""
Edge: TypeAlias = tuple[Delta, Outs, Replies | None]


class Breach(NamedTuple, Generic[V]):
    """A contradiction; none is nearer to the beginning."""

    law: str
    requirements: tuple[str, ...]
    sentence: str
    why: str
    path: tuple[Event[V], ...]


class _Part(Generic[P]):
    """The states of one part by number, and what it does in each."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.shift = index * BITS
        self.numbers: dict[P, int] = {}
        self.states: list[P] = []
        self.views: list[int] = []
        """By number: what laws look at, in its place."""
        self.does: list[tuple[int, tuple[Delta, ...], tuple[Edge, ...]] | None] = []
        """By number: its view, the moves that send nothing, and the others; None where it was not asked yet."""


class Search(Generic[P, V, G]):
    """One search. ``go`` until it says True; what it found stands in the attributes."""

    def __init__(self, made: Composed[P, V, G]) -> None:
        self.made = made
        self.transitions = 0
        self.depth = 0
        """Of the deepest state: the number of moves of the shortest way there."""
        self.complete = False
        """All states were reached, and all that leads out of them was tried."""
        self.breach: Breach[V] | None = None
        self._laws = [law for law in made.laws if isinstance(law, Law)]
        self._parts = [_Part[P](index) for index in range(len(made.names))]
        self._takes: dict[tuple[int, G], Takes] = {}
        self._replies: dict[tuple[G, bool], Replies] = {}
        self._about: dict[int, tuple[G, bool]] = {}
        """The message that a table of takes or replies is about, by the table's id; and whether it is wrong."""
        self._views: dict[tuple[Hashable, ...], int] = {}
        self._kept: set[int] = set()
        """The views of all parts, side by side, that break no law."""
        self._misdeed: int | None = None
        """The state in which a part first does what a law of steps forbids: it is told when all states of this level
        were looked at, since one that breaks a law by itself is nearer."""
        self._parents: dict[int, int] = {}
        """Of each state the one from which it was reached first; of the first, itself."""
        self._level: list[int] = []
        self._at = 0
        """How many of the level were left already."""
        self._deeper: list[int] = []
        self.again()

    def again(self) -> None:
        """From the beginning, with all that was learnt of the machine."""
        start = self._packed(self.made.initial())
        self._parents, self._level, self._at, self._deeper = {start: start}, [start], 0, []
        self.transitions, self.depth, self.complete, self.breach, self._misdeed = 0, 0, False, None, None

    @property
    def states(self) -> int:
        return len(self._parents)

    @property
    def asked(self) -> int:
        """How often the machine was asked: what a part may do in a state, or makes of a message."""
        moved = sum(each is not None for part in self._parts for each in part.does)
        return moved + sum(map(len, self._replies.values())) + sum(map(len, self._takes.values()))

    def go(self, leaving: int) -> bool:
        """Leave so many states more, or all there are. True: the search is over."""
        while leaving > 0 and self.breach is None and not self.complete:
            until = min(len(self._level), self._at + leaving)
            leaving -= until - self._at
            self._leave(until)
            if self.breach is None and self._at == len(self._level):
                self._descend()
        return self.complete or self.breach is not None

    def _descend(self) -> None:
        if self._misdeed is not None:
            self.breach = self._misdone(self._misdeed)
        elif self._deeper:
            self._level, self._deeper, self._at = self._deeper, [], 0
            self.depth += 1
        else:
            self.complete = True

    def _leave(self, until: int) -> None:
        """The hot loop: nothing in it is asked of the machine that was asked before."""
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
                    known = self._opened(part, number, state)
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
                            reply = self._replied(replies, hub, state) if reply is None else reply
                            if not reply:
                                continue
                        after += reply[0]
                        outs += reply[1]
                    for place, takes in outs:
                        change = takes.get(after >> place & MASK)
                        if change is None:
                            change = self._taken(takes, place, after, state)
                        after += change
                    transitions += 1
                    if after not in parents:
                        parents[after] = state
                        deeper.append(after)
            if view not in kept or transitions == before:
                self._judge(state, view, resting=transitions == before)
                if self.breach is not None:
                    break
        self._at = until
        self.transitions += transitions

    # What is asked of the machine, once

    def _number(self, part: _Part[P], state: P) -> int:
        found = part.numbers.get(state)
        if found is None:
            found = part.numbers[state] = len(part.states)
            if found > MASK:
                raise OverflowError(f"{self.made.names[part.index]} has more than {MASK:,} states")
            part.states.append(state)
            part.does.append(None)
            seen = tuple(law.view(part.index, state) for law in self._laws)
            part.views.append(self._views.setdefault(seen, len(self._views)) << part.shift)
        return found

    def _opened(self, part: _Part[P], number: int, state: int) -> tuple[int, tuple[Delta, ...], tuple[Edge, ...]]:
        """The moves of a part that is in such a state for the first time."""
        before = part.states[number]
        quiet: list[Delta] = []
        telling: list[Edge] = []
        for move in self.made.moves(part.index, before):
            did = checked(part.index, self.made.act(part.index, before, move), acting=True)
            delta = (self._number(part, did.part) - number) << part.shift
            wrong = any(misdone(self.made, Step(part.index, before, move, did)))
            asked = next((sent.message for sent in did.sends if sent.to == HUB), None)
            if asked is not None:
                telling.append((delta, self._outs(did.sends), self._table(asked, wrong)))
                continue
            if wrong:
                self._accuse(state)
            if did.sends:
                telling.append((delta, self._outs(did.sends), None))
            else:
                quiet.append(delta)
        known = part.does[number] = part.views[number], tuple(quiet), tuple(telling)
        return known

    def _table(self, message: G, wrong: bool) -> Replies:
        """``wrong``: it was wrong to send it. Whether it was sent at all, the hub decides."""
        found = self._replies.get((message, wrong))
        if found is None:
            found = self._replies[message, wrong] = {}
            self._about[id(found)] = message, wrong
        return found

    def _outs(self, sends: Sequence[Sent[G]]) -> Outs:
        """But for what goes to the hub."""
        return tuple((self._parts[to].shift, self._takers(to, message)) for to, message in sends if to != HUB)

    def _takers(self, to: int, message: G) -> Takes:
        found = self._takes.get((to, message))
        if found is None:
            found = self._takes[to, message] = {}
            self._about[id(found)] = message, False
        return found

    def _replied(self, replies: Replies, hub: int, state: int) -> tuple[Delta, Outs] | Literal[False]:
        """The hub takes a message in such a state for the first time."""
        message, wrong = self._about[id(replies)]
        before = self._parts[HUB].states[hub]
        did = self.made.take(HUB, before, message)
        if did is None:
            replies[hub] = False
            return False
        if wrong or any(misdone(self.made, Step(HUB, before, message, checked(HUB, did, acting=False)))):
            self._accuse(state)
        found = replies[hub] = (self._number(self._parts[HUB], did.part) - hub, self._outs(did.sends))
        return found

    def _taken(self, takes: Takes, place: int, state: int, left: int) -> Delta:
        """Another part takes a message in such a state for the first time, on the way out of the state ``left``."""
        message, _ = self._about[id(takes)]
        part = self._parts[place // BITS]
        number = state >> place & MASK
        before = part.states[number]
        did = self.made.take(part.index, before, message)
        if did is None:
            raise Disobeyed(f"{self.made.names[part.index]} refuses {message!r}: only the hub may")
        if any(misdone(self.made, Step(part.index, before, message, checked(part.index, did, acting=False)))):
            self._accuse(left)
        change = takes[number] = (self._number(part, did.part) - number) << place
        return change

    # What breaks a law

    def _accuse(self, state: int) -> None:
        if self._misdeed is None:
            self._misdeed = state

    def _judge(self, state: int, view: int, resting: bool) -> None:
        """``view``: of all parts, side by side, so that what keeps the laws once is not looked at again."""
        for law, why in broken(self.made, self._unpacked(state), resting):
            self.breach = Breach(law.id, law.requirements, law.sentence, why, tuple(self._path(state)))
            return
        self._kept.add(view)

    def _misdone(self, state: int) -> Breach[V]:
        """By what is done in this state."""
        whole = Whole(self.made)
        parts = self._unpacked(state)
        for event in whole.enabled(parts):
            for step in whole.followed(parts, event) or ():
                for law, why in misdone(self.made, step):
                    return Breach(law.id, law.requirements, law.sentence, why, (*self._path(state), event))
        raise Disobeyed(f"{self.made.names[0]} and the others do not do the same twice")

    def _path(self, state: int) -> list[Event[V]]:
        """The shortest way there; found again in the readable form, which so confirms it."""
        chain = [state]
        while self._parents[chain[-1]] != chain[-1]:
            chain.append(self._parents[chain[-1]])
        chain.reverse()
        whole = Whole(self.made)
        return [self._between(whole, *pair) for pair in pairwise(chain)]

    def _between(self, whole: Whole[P, V, G], before: int, after: int) -> Event[V]:
        parts, wanted = self._unpacked(before), self._unpacked(after)
        for event in whole.enabled(parts):
            if whole.step(parts, event).state == wanted:
                return event
        raise Disobeyed(f"{self.made.names[0]} and the others do not do the same twice")

    def _packed(self, state: tuple[P, ...]) -> int:
        return sum(self._number(part, each) << part.shift for part, each in zip(self._parts, state, strict=True))

    def _unpacked(self, state: int) -> tuple[P, ...]:
        return tuple(part.states[state >> part.shift & MASK] for part in self._parts)
