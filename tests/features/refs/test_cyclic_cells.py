"""Cells that hold themselves: made in programs and in scripts, shown, passed, differentiated."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pyrelay import Float, Ref, relay


@dataclass(frozen=True)
class Ring:
    """A number, and what comes after it."""

    x: Float
    next: Ref[Link]


@dataclass(frozen=True)
class End:
    """Nothing comes after this."""


Link = Ring | End


@relay
def closed(y: Float) -> Ring:
    after: Ref[Link] = relay.ref(End())
    ring = Ring(y, after)
    after.value = ring
    return ring


@relay
def around(link: Link) -> Float:
    """Add the numbers of two links."""
    match link:
        case Ring(x, after):
            match after.value:
                case Ring(z, _):
                    return x * z
                case End():
                    return x
        case End():
            return 0.0


@relay
def squared(y: Float) -> Float:
    return around(closed(y))


def test_a_program_gives_and_takes_a_cell_that_holds_itself() -> None:
    for ring in (closed(3.0), closed.interpret(3.0)):
        assert float(around(ring)) == float(around.interpret(ring)) == 9.0
        assert repr(ring).endswith("next=ref(...))))")
        inner = ring.next.value
        assert isinstance(inner, Ring)
        assert inner.next is ring.next


def test_a_script_makes_a_cell_that_holds_itself() -> None:
    after = relay.ref(End())
    ring = Ring(torch.tensor(2.0), after)
    after.value = ring
    assert float(around(ring)) == 4.0
    assert repr(ring).count("Ring") == 2


def test_gradients_go_around() -> None:
    assert float(relay.grad(squared)(3.0)) == 6.0
    assert float(relay.grad(around)(closed(3.0)).x) == 3.0
