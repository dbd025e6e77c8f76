"""Records and data as pytrees: `tree_map` of optree, torch and JAX goes through them.

The children of a record of parameters or gradients are its tensors, by name, those of a list its
elements, and those of an instance of a data type its fields but for texts. What a caller's function
returns takes the place of a leaf unchecked, as these libraries expect. JAX learns of them only
where the program has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, final

import optree
from optree import registry

from ...dataclass import dataclass
from ...prelude.values import Cons, List, Nil

trees: Final[Any] = import_module("torch.utils._pytree")
"""The pytrees of torch, which have no public name."""
_EVERYWHERE: Final[Any] = getattr(registry, "__GLOBAL_NAMESPACE", "pyrelay")
"""The namespace of optree that needs no name in calls."""

_known: Final[dict[type, Node]] = {}
_known_to_jax: Final[set[type]] = set()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """How values of a class are taken apart into children with names and the rest, and made."""

    cls: type
    flatten: Callable[[Any], tuple[Sequence[Any], Any, Sequence[Any]]]
    unflatten: Callable[[Any, Iterable[Any]], Any]
    entry: Any
    """How optree names a child."""
    key: Any
    """How torch names a child."""


def _list_of(cls: type[List[Any]]) -> Node:
    def flatten(items: List[Any]) -> tuple[Sequence[Any], Any, Sequence[int]]:
        return items.to_list(), None, range(len(items))

    def unflatten(_: None, children: Iterable[Any]) -> List[Any]:
        return List.of(children)

    return Node(cls, flatten, unflatten, optree.SequenceEntry, trees.SequenceKey)


def register_data(cls: type, names: Sequence[str], texts: Sequence[str]) -> None:
    """Make the instances of a data type pytrees, unless somebody has; `texts` are no children."""
    if cls in _known:
        return
    own = tuple(n for n in names if n not in texts)

    def flatten(value: Any) -> tuple[Sequence[Any], Any, Sequence[str]]:
        rest = tuple((n, getattr(value, n)) for n in texts)
        return [getattr(value, n) for n in own], rest, own

    def unflatten(rest: tuple[tuple[str, str], ...], children: Iterable[Any]) -> Any:
        made = object.__new__(cls)
        for name, value in (*zip(own, children, strict=True), *rest):
            object.__setattr__(made, name, value)
        return made

    register(Node(cls, flatten, unflatten, optree.GetAttrEntry, trees.GetAttrKey))


def register(node: Node) -> None:
    """Make the values of a class pytrees of each library that is imported."""
    _known[node.cls] = node
    _tell(_to_optree, node)
    _tell(_to_torch, node)
    if "jax" in sys.modules:
        for each in [n for c, n in _known.items() if c not in _known_to_jax]:
            _known_to_jax.add(each.cls)
            _tell(_to_jax, each)


def _tell(library: Callable[[Node], None], node: Node) -> None:
    try:
        library(node)
    except ValueError:  # the caller has registered the class
        return


def _to_optree(node: Node) -> None:
    optree.register_pytree_node(
        node.cls, node.flatten, node.unflatten, path_entry_type=node.entry, namespace=_EVERYWHERE
    )


def _to_torch(node: Node) -> None:
    def flatten(value: Any) -> tuple[list[Any], Any]:
        children, rest, _ = node.flatten(value)
        return list(children), rest

    def with_keys(value: Any) -> tuple[list[tuple[Any, Any]], Any]:
        children, rest, names = node.flatten(value)
        return [(node.key(n), c) for n, c in zip(names, children, strict=True)], rest

    trees.register_pytree_node(
        node.cls,
        flatten,
        lambda children, rest: node.unflatten(rest, children),
        flatten_with_keys_fn=with_keys,
    )


def _to_jax(node: Node) -> None:
    jax_trees: Any = sys.modules["jax"].tree_util
    jax_trees.register_pytree_node(node.cls, lambda value: node.flatten(value)[:2], node.unflatten)


for _class in (Cons, Nil):
    register(_list_of(_class))
