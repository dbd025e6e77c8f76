"""Functions of texts with type parameters: their gradients look into what was passed."""

from __future__ import annotations

import torch

from pyrelay import relay

X = torch.tensor(1.5)
LISTS = """
type List[A] { Nil, Cons(A, List[A]) }
def @power[A](%xs: List[A], %y: float32) -> float32 {
  match (%xs) { Nil => %y, Cons(_, %t) => %y * @power(%t, %y) }
}
def @head[A](%xs: List[A], %f: fn (A) -> A) -> List[A] {
  match (%xs) { Nil => %xs, Cons(%h, %t) => Cons(%f(%h), %t) }
}
def @first(%xs: List[float32]) -> float32 {
  match? (@head(%xs, fn (%y: float32) { %y * %y })) { Cons(%h, _) => %h }
}
def @squared[A](%p: (A, float32)) -> float32 { %p.1 * %p.1 }
def @both[A, B](%a: A, %b: (B, A), %y: Tensor[(N,), float32]) -> float32 { sum(%y * %y) }
"""


def test_the_gradient_of_a_function_that_is_passed_anything() -> None:
    module = relay.parse(LISTS)
    cons, nil = module.classes["Cons"], module.classes["Nil"]
    power = module["power"]
    xs = cons(1, cons(2, nil()))
    assert relay.grad(power, wrt="y")(xs, X).item() == 3 * 1.5**2
    assert relay.grad(power, wrt="y")(cons(X, nil()), X).item() == 3.0
    grads, slope = relay.grad(power)(cons(torch.ones(2, 3), nil()), X)
    assert torch.equal(grads.field0, torch.zeros(2, 3))
    assert slope.item() == 3.0
    assert relay.grad(module["squared"])((3, X))[1].item() == 3.0


def test_a_call_joins_torchs_graph() -> None:
    module = relay.parse(LISTS)
    y = X.clone().requires_grad_()
    module["power"](module.classes["Cons"](7, module.classes["Nil"]()), y).backward()
    assert y.grad is not None
    assert y.grad.item() == 3.0
    v = torch.arange(3.0, requires_grad=True)
    module["both"]("a", (1, "b"), v).backward()
    assert v.grad is not None
    assert torch.equal(v.grad, 2 * v.detach())


def test_instances_serve_all_sizes_and_evaluate_alike() -> None:
    both = relay.grad(relay.parse(LISTS)["both"], wrt="y")
    for n in (1, 4):
        v = torch.randn(n)
        assert torch.equal(both(torch.ones(n), (3, torch.ones(n)), v), 2 * v)
        assert torch.equal(both.interpret(torch.ones(n), (3, torch.ones(n)), v), 2 * v)


def test_through_a_generic_function() -> None:
    module = relay.parse(LISTS)
    cons, nil = module.classes["Cons"], module.classes["Nil"]
    slope = relay.grad(module["first"])(cons(X, nil()))
    assert slope.field0.item() == 3.0


def test_second_derivatives_are_taken_at_the_types_of_the_arguments() -> None:
    power = relay.parse(LISTS + "def @two[A](%x: A, %y: float32) -> float32 { %y * %y * %y }")[
        "two"
    ]
    first = relay.grad(power, wrt="y")
    assert relay.grad(first, wrt="y")("any", X).item() == 9.0
