"""Proposals of the search: random trees and variations of trees, from random bits and the schema.

A proposal never reads records, so better proposals cost no loss. A random tree has no test that
earlier answers on its path decide. Where both answers would lead to equal trees, one of them gets
the opposite labels. Variations are simplified. A test with one possible answer is replaced by the
subtree of that answer, and a test whose answers lead to equal trees by that tree. Such trees are
called tidy. A tidy tree that labels everything alike is a single leaf. It tells nothing and yet is
best at one of the two rates, so it is never proposed unless all trees have depth 0.

Source: Differentially Private Multi-Objective Selection, section 6.2 (operators of DP-MOET).
"""

from dataclasses import dataclass
from typing import cast

from mechanisms.trees.dice import Dice
from mechanisms.trees.evolutionary.questions import ANYTHING, Cells, Questions, Test

#: A tree: a leaf is True for the positive class, and an inner node is (test, tree if yes, tree if
#: no).
Tree = bool | tuple[Test, "Tree", "Tree"]
#: A position in a tree: the answers on its path from the root, 1 for yes and 0 for no.
Position = tuple[int, ...]


def least_depth(initial_depth: int, max_depth: int) -> int:
    """The depth of random trees: the initial depth, and at least 1 where trees may have a test."""
    return max(initial_depth, min(1, max_depth))


@dataclass(frozen=True)
class Proposals:
    """Draws and varies trees: first of ``initial_depth``, and never deeper than ``max_depth``."""

    questions: Questions
    initial_depth: int
    max_depth: int
    dice: Dice

    def random(self) -> Tree:
        """A full tree of the initial depth, or less deep where no undecided test remains."""
        return self._full(ANYTHING, self._least)

    @property
    def _least(self) -> int:
        return least_depth(self.initial_depth, self.max_depth)

    def child(self, parents: list[Tree]) -> Tree:
        """Cross two uniformly drawn parents; with some probability mutate or prune the result."""
        dice = self.dice
        first, second = (parents[dice.below(len(parents))] for _ in range(2))
        tree = self.crossed(first, second)
        if dice.coin():
            tree = self.mutated(tree)
        if dice.below(4) == 0:
            tree = self.pruned(tree)
        # A tree of a single leaf tests nothing. Mutation redraws its root, because it has no other
        # node, and so gives the tree a test again.
        return self.mutated(tree) if isinstance(tree, bool) and self.max_depth else tree

    def crossed(self, first: Tree, second: Tree) -> Tree:
        """Replace a subtree of the first tree by that of the second at the same position."""
        other = set(positions(second))
        common = [position for position in positions(first) if position in other]
        at = common[self.dice.below(len(common))]
        return grafted(first, at, self.tidied(subtree(second, at), self._reached(first, at)))

    def mutated(self, tree: Tree) -> Tree:
        """Redraw the subtree at a uniform position: full, of a uniform allowed depth."""
        every = positions(tree)
        at = every[self.dice.below(len(every))]
        least = min(max(self._least, len(at)), self.max_depth)
        depth = least + self.dice.below(self.max_depth - least + 1)
        fresh = self._full(self._reached(tree, at), depth - len(at))
        return grafted(tree, at, fresh)

    def pruned(self, tree: Tree) -> Tree:
        """Turn a uniformly drawn inner node into a leaf; a tree of one leaf stays as it is."""
        inner = [at for at in positions(tree) if not isinstance(subtree(tree, at), bool)]
        if not inner:
            return tree
        at = inner[self.dice.below(len(inner))]
        return grafted(tree, at, self.dice.coin())

    def tidied(self, tree: Tree, possible: Cells = ANYTHING) -> Tree:
        """The same labels for every row, without tests that have one possible answer or no
        effect."""
        if isinstance(tree, bool):
            return tree
        test, yes, no = tree
        after_yes, after_no = self.questions.answered(possible, test)
        if after_yes is None or after_no is None:
            return self.tidied(no if after_yes is None else yes, possible)
        yes, no = self.tidied(yes, after_yes), self.tidied(no, after_no)
        return yes if yes == no else (test, yes, no)

    def _full(self, possible: Cells, depth: int) -> Tree:
        test = self.questions.draw(possible, self.dice) if depth else None
        if test is None:
            return self.dice.coin()
        after_yes, after_no = self.questions.answered(possible, test)
        # ``draw`` returns only tests that can still have both answers on this path of the tree. So
        # some values are possible after either answer, and neither variable is None.
        assert after_yes is not None
        assert after_no is not None
        yes = self._full(after_yes, depth - 1)
        no = self._full(after_no, depth - 1)
        if yes == no or (isinstance(yes, bool) and isinstance(no, bool)):
            no = flipped(yes)
        return test, yes, no

    def _reached(self, tree: Tree, at: Position) -> Cells:
        """The possible cells at a position of a tidy tree."""
        possible = ANYTHING
        for answer in at:
            test, yes, no = cast("tuple[Test, Tree, Tree]", tree)
            after = self.questions.answered(possible, test)[0 if answer else 1]
            # In a tidied tree, some record of the domain can reach every branch, so the possible
            # values of a branch are never None.
            assert after is not None
            possible, tree = after, yes if answer else no
        return possible


def positions(tree: Tree) -> list[Position]:
    """All positions of a tree, the root's first."""
    visited: list[Position] = []
    pending: list[tuple[Tree, Position]] = [(tree, ())]
    while pending:
        here, at = pending.pop()
        visited.append(at)
        if not isinstance(here, bool):
            pending += [(here[2], (*at, 0)), (here[1], (*at, 1))]
    return visited


def subtree(tree: Tree, at: Position) -> Tree:
    for answer in at:
        _, yes, no = cast("tuple[Test, Tree, Tree]", tree)
        tree = yes if answer else no
    return tree


def flipped(tree: Tree) -> Tree:
    """The tree with the opposite labels."""
    if isinstance(tree, bool):
        return not tree
    test, yes, no = tree
    return test, flipped(yes), flipped(no)


def grafted(tree: Tree, at: Position, by: Tree) -> Tree:
    """Replace the subtree at a position of a tidy tree; tidy if ``by`` is tidy at that position."""
    if not at:
        return by
    test, yes, no = cast("tuple[Test, Tree, Tree]", tree)
    if at[0]:
        yes = grafted(yes, at[1:], by)
    else:
        no = grafted(no, at[1:], by)
    return yes if yes == no else (test, yes, no)
