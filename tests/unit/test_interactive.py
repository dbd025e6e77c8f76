"""What `help`, `inspect` and `dir` show of the objects that users work with."""

import dataclasses
import inspect
import pydoc
from types import ModuleType

import pytest

import pyrelay
from pyrelay import Any, Dim, Float, Fn, Int, Model, Ref, Tensor, relay, relay_model
from pyrelay.operators.table import UNLISTED

pytestmark = pytest.mark.host("runs no program")
N, K = Dim("N"), Dim("K")


@relay_model
def net(x: Tensor[Float, (N, 8)]) -> Tensor[Float, (N, 3)]:
    """Return three scores for each row."""
    return relay.linear(x, out_features=3)


@relay
def weighed(x: Tensor[Float, (N, 2 * K)], scale: Float, *, times: int = 2) -> Float:
    """Return the sum, `times` times."""
    return x.sum() * scale * times


@relay
def square(x: Float) -> Float:
    """Return the square."""
    return x * x


@relay
def step(
    model: Model[net], cell: Ref[Float], f: Fn[[Float], Float], rows: Tensor[(3, Any), Int]
) -> Float:
    return cell.value


def test_a_function_has_the_signature_that_it_is_written_with() -> None:
    written = "(x: Tensor[Float, (N, 2*K)], scale: Float, *, times: int = 2) -> Float"
    assert str(inspect.signature(weighed)) == written
    assert str(inspect.signature(net)) == "(x: Tensor[Float, (N, 8)]) -> Tensor[Float, (N, 3)]"
    assert str(inspect.signature(step)) == (
        "(model: Model[net], cell: Ref[Float], f: Fn[[Float], Float], rows: Tensor[(3, Any), Int])"
        " -> Float"
    )


def test_a_transform_has_the_parameters_of_its_function_and_the_type_of_its_result() -> None:
    assert str(inspect.signature(relay.grad(square))) == "(x: Float) -> Float"
    both = relay.value_and_grad(square)
    assert str(inspect.signature(both)) == "(x: Float) -> tuple[Float, Float]"
    assert str(inspect.signature(relay.grad(relay.grad(square)))) == "(x: Float) -> Float"
    pair = inspect.signature(relay.grad(weighed, wrt=("x", "scale"))).return_annotation
    assert str(pair) == "tuple[Tensor[Float, (N, 2*K)], Float]"
    found_by_inference = inspect.signature(relay.grad(weighed)).return_annotation
    assert found_by_inference is inspect.Signature.empty


def test_help_shows_name_signature_and_documentation() -> None:
    for thing, shown in (
        (square, "square(x: Float) -> Float\n    Return the square.\n"),
        (net, "net(x: Tensor[Float, (N, 8)]) -> Tensor[Float, (N, 3)]\n    Return three scores"),
        (relay.grad(square), "grad.square(x: Float) -> Float\n    Return the square.\n"),
        (relay.tanh, "tanh(input)\n    Hyperbolic tangent"),
        (relay.equal, "equal(input, other)\n"),
        (relay.create_model, "create_model(net: "),
    ):
        assert shown in pydoc.plain(pydoc.render_doc(thing))


def test_the_source_of_a_function_is_found() -> None:
    assert inspect.getsource(square).startswith("@relay\ndef square(x: Float)")
    assert (square.__module__, square.__qualname__) == (__name__, "square")


def test_a_function_in_a_class_body_stays_itself() -> None:
    class Holder:
        held = square

    assert Holder.held is square
    assert Holder().held is square


def test_the_namespace_lists_what_users_call_and_nothing_else() -> None:
    listed = dir(relay)
    assert {"tanh", "linear", "grad", "create_model", "float64", "map", "optim"} <= set(listed)
    assert dir(relay.optim) == ["adam", "adamw", "sgd"]
    assert "normal" in dir(relay.random)
    assert not [n for n in listed if n.startswith("_") or n.endswith(("h_grad", "_backward"))]
    assert "solved_size" not in listed
    assert not {op.name for op in UNLISTED} & set(listed)
    assert all(hasattr(relay, op.name) for op in UNLISTED)


def test_a_star_import_leaves_the_names_of_the_standard_library_alone() -> None:
    names: dict[str, object] = {}
    exec("from dataclasses import dataclass\nfrom pyrelay import *", names)
    assert names["dataclass"] is dataclasses.dataclass
    assert names["relay"] is relay
    assert not {"config", "ir", "text", "files"} & set(names)
    public = {n for n, v in vars(pyrelay).items() if n[0] != "_" and not isinstance(v, ModuleType)}
    assert public <= set(names)


def test_the_package_knows_its_version() -> None:
    assert pyrelay.__version__[0].isdigit()


@pytest.mark.parametrize("function", [square, net, relay.grad(square)])
def test_functions_list_what_users_call(function: object) -> None:
    listed = ["cache_info", "check", "diff", "explain", "interpret", "module", "show", "type"]
    assert dir(function) == listed


def test_help_documents_everything_in_the_namespace() -> None:
    for name in dir(relay):
        thing = getattr(relay, name)
        if not callable(thing) or isinstance(thing, type):
            continue
        assert inspect.signature(thing) is not None, name
        documentation = inspect.getdoc(thing)
        assert documentation, name
        assert "; see `" not in documentation, name
    assert "whose gradient computes again" in pydoc.plain(pydoc.render_doc(relay.checkpoint))
    assert "parse(source: " in pydoc.plain(pydoc.render_doc(relay.parse))
