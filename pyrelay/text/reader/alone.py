"""A text that is one expression, as Relay writes a function without a module: the function is the
module's `main`, any other expression what `main` gives; free variables are its parameters."""

from __future__ import annotations

from typing import Final

from lark import Token, Tree

from .context import Syntax, tree_of, trees_of

NAME: Final = "main"


def as_module(tree: Syntax) -> Syntax:
    """Return the tree of the module that the tree of an expression stands for."""
    pragmas = [t for t in trees_of(tree) if t.data == "pragma"]
    *free, block = trees_of(tree)[len(pragmas) :]
    value = tree_of(block.children[-1])
    if value.data == "function" and not free and _are_nodes_of(block):
        written, signature, body = value.children
        inner = tree_of(tree_of(body).children[0])
        whole = Tree[Token]("block", [*block.children[:-1], *inner.children], inner.meta)
        parts = [written, signature, Tree[Token]("body", [whole], inner.meta)]
    else:
        params = Tree[Token]("params", [tree_of(f.children[0]) for f in free], block.meta)
        signature = Tree[Token]("signature", [None, params, None, None], block.meta)  # pyright: ignore[reportArgumentType]
        parts = [None, signature, Tree[Token]("body", [block], block.meta)]
    name = Token("GLOBAL", f"@{NAME}", block.meta.start_pos, end_pos=block.meta.start_pos)
    main = Tree[Token]("function_def", [name, *parts], block.meta)  # pyright: ignore[reportArgumentType]
    return Tree("module", [*pragmas, main], tree.meta)


def _are_nodes_of(block: Syntax) -> bool:
    """Return whether all that stands in front of a function are nodes of its graph, which its
    parameters do not hide."""
    *items, function = trees_of(block)
    _, params, _, _ = tree_of(function.children[1]).children
    hidden = {str(binder.children[0]) for binder in trees_of(tree_of(params))}
    return all(i.data == "graph" and str(i.children[0]) not in hidden for i in items)
