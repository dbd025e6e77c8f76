"""Programs call functions of a text, pass functions to them, differentiate and map them."""

from __future__ import annotations

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Fn, Int, Tensor, relay
from tests.relay.reading import HEADER

N = Dim("N")
VECTOR = "Tensor[(3), float32]"
MODULE = relay.parse(f"""{HEADER}
type Way {{ Up, Down(float32) }}
def @chosen(%up: bool) -> Way {{ if (%up) {{ Up }} else {{ Down(3f) }} }}
def @scaled(%x: float32, %up: bool) -> float32 {{
  match (@chosen(%up)) {{ Up => {{ %x * %x }}, Down(%by) => {{ %x * %by }} }} }}
def @power(%x: float32, %n: int64) -> float32 {{
  if (%n == 0i64) {{ 1f }} else {{ %x * @power(%x, %n - 1i64) }} }}
def @squared(%x: {VECTOR}) {{ %x * %x }}
def @twice(%f: fn ({VECTOR}) -> {VECTOR}, %x: {VECTOR}) {{ sum(%f(%f(%x))) }}
def @same[A](%x: A) -> A {{ %x }}
def @opened(%way: Way, %x: float32) -> float32 {{
  match (%way) {{ Up => {{ %x }}, Down(%by) => {{ %by * %by * %x }} }} }}
def @down(%by: float32) {{ Down(%by) }}
def @counted(%x: float32) -> float32 {{
  @foldl(fn (%a: float32, %b: float32) -> float32 {{ %a + %b }}, 0f,
         @map(fn (%c: float32) {{ %c * %x }}, Cons(%x, Cons(2f, Nil)))) }}
def @any(%x: Tensor[(?), float32]) {{ %x + %x }}
""")
scaled, power, squared = MODULE["scaled"], MODULE["power"], MODULE["squared"]
twice, same, counted, of_any = (MODULE[n] for n in ("twice", "same", "counted", "any"))
opened, down = MODULE["opened"], MODULE["down"]
twice_opened = relay.specialise(opened, x=2.0)
other_down = relay.parse(f"{HEADER} type Way {{ Down(float32) }} def @down() {{ Down(1f) }}")[
    "down"
]
X = torch.tensor([0.5, -1.0, 2.0])


@relay
def sines(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return relay.sin(x)


def test_a_function_with_data_and_recursion_inside_is_called_and_differentiated() -> None:
    @relay
    def total(x: Float, n: Int) -> Float:
        return scaled(x, up=True) + scaled(x, False) + power(x, n) + counted(x)

    assert total(2.0, 3) == 4.0 + 6.0 + 8.0 + 8.0
    assert relay.grad(total)(2.0, 3) == 4.0 + 3.0 + 12.0 + 6.0
    assert relay.grad(relay.grad(total))(2.0, 3) == 2.0 + 12.0 + 2.0
    assert total.interpret(2.0, 3) == 26.0


def test_functions_are_passed_to_a_function_of_a_text_that_is_differentiated() -> None:
    @relay
    def loss(x: Tensor[Float, (3,)], w: Float) -> Float:
        return twice(squared, x) + twice(sines, x) + twice(lambda z: z * w, x)

    leaf, w = X.clone().requires_grad_(), torch.tensor(1.5, requires_grad=True)
    expected = (leaf**4).sum() + leaf.sin().sin().sum() + (leaf * w * w).sum()
    torch.testing.assert_close(loss(X, 1.5), expected.detach())
    gradients = torch.autograd.grad(expected, (leaf, w))
    torch.testing.assert_close(relay.grad(loss)(X, 1.5), gradients)


def test_a_function_is_passed_as_a_value_and_mapped_over_a_batch() -> None:
    @relay
    def applied(f: Fn[[Float], Float], x: Float) -> Float:
        return f(f(x))

    @relay
    def both(xs: Tensor[Float, (N,)]) -> tuple[Tensor[Float, (N,)], Float]:
        slopes = relay.vmap(relay.grad(lambda x: power(x, 3)))(xs)
        return slopes, applied(counted, same(xs[0]))

    slopes, value = both(X)
    torch.testing.assert_close(slopes, 3 * X**2)
    once = 0.5 * 0.5 + 2 * 0.5
    torch.testing.assert_close(value, torch.tensor(once * once + 2 * once))


@relay
def through_data(by: Float, x: Float) -> Float:
    return opened(down(by), x) + twice_opened(down(by * 2.0))


def test_functions_of_one_text_share_its_data() -> None:
    @relay
    def made(by: Float):
        return [down(by), down(by + 1.0)]

    assert through_data(3.0, 1.0) == 9.0 + 72.0
    assert relay.grad(through_data)(3.0, 1.0) == (6.0 + 48.0, 9.0)
    first, second = made(3.0)
    way = MODULE.classes["Down"]
    assert (first, second) == (way(torch.tensor(3.0)), way(torch.tensor(4.0)))
    assert opened(first, 1.0) == 9.0
    assert relay.grad(opened, wrt="way")(first, 1.0) == way(torch.tensor(6.0))


def test_data_of_other_texts_differ() -> None:
    @relay
    def wrong(x: Float) -> Float:
        return opened(other_down(), x)

    with pytest.raises(CheckError, match="RL202"):
        wrong.check()


def test_what_is_left_of_a_program_is_mentioned_again() -> None:
    left = relay.specialise(through_data, x=1.0)
    kept = relay.specialise(opened)

    @relay
    def again(by: Float) -> Float:
        return left(by) + kept(down(by), 1.0)

    assert again(3.0) == 81.0 + 9.0


def test_a_size_that_a_text_leaves_open_is_that_of_the_argument() -> None:
    @relay
    def doubled(x: Tensor[Float, (N,)]) -> Float:
        return of_any(x).sum()

    torch.testing.assert_close(doubled(X), 2 * X.sum())
    torch.testing.assert_close(relay.grad(doubled)(X[:2]), torch.full((2,), 2.0))


def test_a_call_that_does_not_fit_is_refused_at_its_line() -> None:
    @relay
    def wrong(x: Float) -> Float:
        return power(x)

    with pytest.raises(CheckError, match="power"):
        wrong.check()
