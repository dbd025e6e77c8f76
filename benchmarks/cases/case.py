"""Cases of the benchmark as data: a program of pyrelay, and the same work for its peers.

A peer's function gets a `Library` first: the operators of torch or of JAX by the names that both
share, so that the work is written once for all peers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

Library: TypeAlias = Any
"""Operators by name: `libraries.TORCH` or `libraries.jax_library()`."""

Peer: TypeAlias = Callable[..., Any]
"""A function of a `Library` and of the arguments of the work."""


@final
@dataclass(frozen=True, kw_only=True)
class Work:
    """What all cases have. `args` makes arguments, after a seed was set; `limit` is how many times
    faster than eager torch kernels written by hand for the work are on a processor with AVX-512, by
    2 threads; `skips` are peers that take no part, with the reason; `others` are functions of torch
    that do the same by a library of its own."""

    args: Callable[[], tuple[Any, ...]]
    limit: float | None = None
    skips: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    tolerance: float = 1e-4


@final
@dataclass(frozen=True)
class Calling:
    """The call of a function."""

    name: str
    relay: Callable[..., Any]
    peer: Peer
    work: Work


@final
@dataclass(frozen=True)
class Gradient:
    """The value of a function and its gradients for the first `wrt` parameters, by their names."""

    name: str
    relay: Callable[..., Any]
    peer: Peer
    work: Work
    wrt: tuple[str, ...]


@final
@dataclass(frozen=True)
class Training:
    """A step of training a model on a batch: the loss, its gradient, and the update.

    `step(model, x, y)` is the program; the peer's function gets the list of parameters after the
    library, and returns the loss.
    """

    name: str
    model: Callable[[], Any]
    step: Callable[..., Any]
    peer: Peer
    work: Work
    optimizer: str = "sgd"


Case: TypeAlias = Calling | Gradient | Training
