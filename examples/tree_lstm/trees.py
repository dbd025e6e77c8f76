"""The data: conditions of Python, parsed by Python's own parser, and whether they are true.

A condition is made of `True`, `False`, `and`, `or`, `not` and `==`. Whether it holds depends on
how it is nested: `not (a and b)` and `not a and b` have the same words. Its tree is `ast.parse`'s,
written as the phrases of a binary tree: an operation is its word, joined to the phrase of its
operands.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass
from typing import Final

from pyrelay.models.tree_lstm import Leaf, Node, Tree

WORDS: Final = ("False", "True", "not", "and", "or", "==")


@dataclass(frozen=True)
class Condition:
    """A condition: its text, its tree, and whether it is true."""

    text: str
    tree: Tree
    holds: int


def conditions(count: int, seed: int, most: int = 12) -> list[Condition]:
    """Return different random conditions of up to `most` operands, as many true as false ones."""
    chance = random.Random(seed)
    found: dict[str, Condition] = {}
    wanted = {True: count - count // 2, False: count // 2}
    while any(wanted.values()):
        text = _text(chance, chance.randint(2, most))
        holds = bool(eval(text, {"__builtins__": {}}))
        if text not in found and wanted[holds]:
            wanted[holds] -= 1
            found[text] = Condition(text, tree_of(text), int(holds))
    mixed = list(found.values())
    chance.shuffle(mixed)
    return mixed


def tree_of(text: str) -> Tree:
    """Return the tree of a condition."""
    return _phrase(ast.parse(text, mode="eval").body)


def words_of(tree: Tree) -> list[int]:
    """Return the words of a tree, left to right."""
    found: list[int] = []
    pending = [tree]
    while pending:
        match pending.pop():
            case Leaf(word):
                found.append(word)
            case Node(left, right):
                pending += (right, left)
    return found


def _text(chance: random.Random, operands: int) -> str:
    if operands == 1:
        return chance.choice(("True", "False"))
    if chance.random() < 0.3:
        return f"not ({_text(chance, operands)})"
    left = chance.randint(1, operands - 1)
    word = chance.choice(("and", "or", "=="))
    return f"({_text(chance, left)}) {word} ({_text(chance, operands - left)})"


def _phrase(node: ast.expr) -> Tree:
    """Return the tree of an expression; conditions are shallow, so recursion is enough here."""
    match node:
        case ast.Constant(value=constant):
            return _word(str(constant))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Node(_word("not"), _phrase(operand))
        case ast.BoolOp(op=op, values=values):
            word = _word("and" if isinstance(op, ast.And) else "or")
            phrase = _phrase(values[-1])
            for value in reversed(values[:-1]):
                phrase = Node(word, Node(_phrase(value), phrase))
            return phrase
        case ast.Compare(left=left, comparators=[right]):
            return Node(_word("=="), Node(_phrase(left), _phrase(right)))
        case _:
            raise ValueError(f"a condition has no {type(node).__name__}")


def _word(word: str) -> Tree:
    return Leaf(WORDS.index(word))
