"""The verifier accepts what passes give and names what is wrong with anything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.infer import infer
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Transform,
    Tuple,
    TupleGet,
    Var,
)
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.traverse import rewrite
from pyrelay.ir.types import (
    BOOL,
    FLOAT,
    INT,
    AdtType,
    DTypeHole,
    FnType,
    SizeType,
    TensorType,
    TupleType,
    TypeHole,
    float32,
)
from pyrelay.ir.verify import INVARIANTS, Stage, VerifyError, verify, verify_conversions
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.operators.primitive.reduce import sum_
from pyrelay.passes.closures import first_order
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.steps import calls_of

TEXT = """
type List[a] { Nil, Cons(a, List[a]) }
def @total(%xs: List[float32]) -> float32 {
  match (%xs) { Nil() => 0.0, Cons(%h, %t) => %h + @total(%t) }
}
def @scale[N: Dim](%x: Tensor[(N, 3), float32], %n: int64) -> Tensor[(N,), float32] {
  let rec %loop = fn (%i: int64, %acc: Tensor[(N,), float32]) -> Tensor[(N,), float32] {
    if (%i < %n) { %loop(%i + 1, %acc + sum(%x, dim=1)) } else { %acc }
  };
  %loop(0, full(size=(N,), fill_value=0.0, dtype=float32))
}
def @main[M: Dim](%x: Tensor[(M, 3), float32], %r: ref(float32)) -> float32 {
  let %s = sum(@scale(%x, 2));
  let %w = ref_write(%r, %s);
  let %pair = (%s, 4);
  %pair.0 + @total(Cons(%s, Nil()))
}
"""


def typed() -> Module:
    return infer(parse_module(TEXT))


def normal() -> Module:
    return to_anf(typed())


def changed(module: Module, change: Callable[[Expr], Expr], name: str = "main") -> Module:
    """Return a module with every node of a function changed."""
    function = rewrite(module.functions[name], change)
    assert isinstance(function, Function)
    assert function is not module.functions[name]
    return module.with_functions({name: function})


def of_kind(kind: type, **fields: Any) -> Callable[[Expr], Expr]:
    """Return the change of every node of a kind to one with other fields."""
    return lambda node: replace(node, **fields) if isinstance(node, kind) else node


def of_call(name: str, **fields: Any) -> Callable[[Expr], Expr]:
    """Return the change of the calls of an operator or function."""

    def change(node: Expr) -> Expr:
        callee = node.callee if isinstance(node, Call) else None
        return replace(node, **fields) if getattr(callee, "name", None) == name else node

    return change


def broken(module: Module, stage: Stage) -> str:
    """Return the name of the invariant that a module breaks."""
    with pytest.raises(VerifyError) as caught:
        verify(module, stage)
    assert caught.value.invariant in INVARIANTS[stage]
    assert f"in `{caught.value.function}`" in str(caught.value)
    return caught.value.invariant.name


def test_each_stage_accepts_what_its_pass_gives() -> None:
    translated = parse_module(TEXT)
    verify(translated, Stage.TRANSLATED)
    verify(infer(translated), Stage.TYPED)
    module = normal()
    verify(module, Stage.ANF)
    verify(first_order(module, "main"), Stage.FIRST_ORDER)
    verify(with_flavours(module), Stage.FLAVOURED)


def test_a_stage_holds_what_the_stages_before_it_hold() -> None:
    order = (Stage.TRANSLATED, Stage.TYPED, Stage.ANF, Stage.DERIVED, Stage.FLAVOURED)
    for before, after in pairwise(order):
        assert set(INVARIANTS[before]) < set(INVARIANTS[after])


def test_a_variable_bound_twice_is_found() -> None:
    module = typed()
    main = module.functions["main"]
    assert broken(module.with_functions({"copy": main}), Stage.TYPED) == (
        "every variable is bound once"
    )


def test_a_variable_out_of_scope_is_found() -> None:
    stray = Var("stray", FLOAT, span=NOWHERE)
    module = changed(normal(), of_call("total", args=(stray,)))
    assert broken(module, Stage.ANF) == "variables are used in scope"


def test_a_variable_is_not_in_scope_of_its_own_binding() -> None:
    def twist(node: Expr) -> Expr:
        if not isinstance(node, LetBlock):
            return node
        return replace(node, bindings=tuple(Binding(b.var, b.var) for b in node.bindings))

    assert broken(changed(normal(), twist), Stage.TRANSLATED) == "variables are used in scope"


def test_a_pattern_variable_is_in_scope_of_its_own_arm_only() -> None:
    def twist(node: Expr) -> Expr:
        if not isinstance(node, Match):
            return node
        nil, cons = node.clauses
        return replace(node, clauses=(replace(nil, body=cons.body), replace(cons, body=nil.body)))

    module = changed(typed(), twist, "total")
    assert broken(module, Stage.TRANSLATED) == "variables are used in scope"


@pytest.mark.parametrize("kind", [Tuple, Call, Constant])
def test_a_node_without_a_span_is_found(kind: type) -> None:
    module = changed(typed(), of_kind(kind, span=None))
    assert broken(module, Stage.TRANSLATED) == "every node has a span"


def test_unknown_functions_constructors_and_types_are_found() -> None:
    name = "what is mentioned exists"
    module = typed()
    assert broken(changed(module, of_kind(GlobalVar, name="nobody")), Stage.TYPED) == name
    assert broken(changed(module, of_kind(Constructor, name="Snoc")), Stage.TYPED) == name
    ghost = of_kind(Tuple, ty=TupleType((AdtType("Ghost"),)))
    assert broken(changed(module, ghost), Stage.TYPED) == name
    assert broken(replace(module, adts={}), Stage.TYPED) == name


def test_a_recursive_block_that_binds_a_number_is_found() -> None:
    module = changed(typed(), of_kind(LetBlock, flavour=Flavour.REC))
    assert broken(module, Stage.TRANSLATED) == "recursive blocks bind functions"


@pytest.mark.parametrize(
    "ty", [None, TypeHole(3), TensorType((), DTypeHole(1, None)), TupleType((TypeHole(1),))]
)
def test_a_type_that_is_missing_or_open_is_found(ty: Any) -> None:
    module = changed(typed(), of_kind(TupleGet, ty=ty))
    assert broken(module, Stage.TYPED) == "types are complete"


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"dim": 1, "keepdim": False, "dtype": None},
        {"keepdim": False, "dim": (1,), "dtype": None},
        {"dim": (1,), "keepdim": False, "dtype": None, "axis": 1},
        {"dim": (DTypeHole(1, None),), "keepdim": False, "dtype": None},
    ],
)
def test_attributes_out_of_their_normal_form_are_found(attrs: dict[str, Any]) -> None:
    module = changed(typed(), of_call("sum", attrs=attrs), "scale")
    assert broken(module, Stage.TYPED) == "attributes are in normal form"


def test_an_attribute_that_is_still_an_expression_is_found() -> None:
    attrs = {"dim": (Constant(1, INT, span=NOWHERE),), "keepdim": False, "dtype": None}
    module = changed(typed(), of_call("sum", attrs=attrs), "scale")
    assert broken(module, Stage.TYPED) == "attributes are in normal form"


def test_an_operator_at_another_type_than_its_rule_gives_is_found() -> None:
    module = changed(typed(), of_call("sum", ty=TensorType((), float32)), "scale")
    assert broken(module, Stage.TYPED) == "operators follow their type rules"
    refused = changed(
        typed(), of_call("sum", attrs={"dim": (7,), "keepdim": False, "dtype": None}), "scale"
    )
    assert broken(refused, Stage.TYPED) == "operators follow their type rules"
    too_many = changed(typed(), of_call("sum", args=()), "scale")
    assert broken(too_many, Stage.TRANSLATED) == "calls of operators are whole"


@pytest.mark.parametrize(
    "fields",
    [
        {"args": ()},
        {"type_args": ()},
        {"type_args": (FLOAT,)},
        {"type_args": (Dim.of("M") + 1,)},
        {"ty": FLOAT},
    ],
)
def test_a_call_that_does_not_agree_is_found(fields: dict[str, Any]) -> None:
    module = changed(typed(), of_call("scale", **fields))
    assert broken(module, Stage.TYPED) == "calls agree with what they call"


def test_sizes_that_differ_agree_only_if_the_function_assumes_so() -> None:
    text = """def @f[N: Dim, M: Dim](%x: Tensor[(N,), float32], %y: Tensor[(M,), float32]) {
      %x + %y
    }"""
    module = infer(parse_module(text))
    verify(module, Stage.TYPED)
    function = module.functions["f"]
    assert [str(a.left) for a in function.assumptions]
    bare = module.with_functions({"f": replace(function, assumptions=())})
    assert broken(bare, Stage.TYPED) == "operators follow their type rules"


@pytest.mark.parametrize(
    ("function", "change"),
    [
        ("main", of_kind(TupleGet, index=1)),
        ("main", of_kind(Tuple, ty=BOOL)),
        ("main", of_kind(LetBlock, ty=BOOL)),
        ("main", of_kind(Function, result=BOOL)),
        ("main", of_kind(Constant, value=True)),
        ("total", of_kind(Constant, value=1)),
        ("total", of_kind(Match, ty=BOOL)),
        ("scale", of_kind(If, condition=Constant(1, INT, span=NOWHERE))),
    ],
)
def test_a_node_that_does_not_agree_with_its_parts_is_found(
    function: str, change: Callable[[Expr], Expr]
) -> None:
    module = changed(typed(), change, function)
    assert broken(module, Stage.TYPED) == "types agree with their parts"


def test_a_size_agrees_with_an_integer_and_with_its_own_value_only() -> None:
    module = infer(parse_module("def @f() -> int64 { 3 }"))
    verify(module, Stage.TYPED)
    wrong = changed(module, of_kind(Constant, ty=SizeType(Dim.of(4))), "f")
    assert broken(wrong, Stage.TYPED) == "types agree with their parts"


def test_a_pattern_of_another_type_is_found() -> None:
    def twist(node: Expr) -> Expr:
        if not isinstance(node, Match):
            return node
        odd = BindPattern(Var("odd", BOOL, span=NOWHERE), span=NOWHERE)
        return replace(node, clauses=(*node.clauses, Clause(odd, node.clauses[0].body)))

    assert broken(changed(typed(), twist, "total"), Stage.TYPED) == "patterns fit their values"


def test_a_tree_is_not_in_normal_form() -> None:
    assert broken(typed(), Stage.ANF) == "operands are atoms"


def test_a_let_block_as_the_value_of_a_binding_is_found() -> None:
    def twist(node: Expr) -> Expr:
        if not isinstance(node, Tuple) or not node.fields:
            return node
        return LetBlock((), node, Flavour.PURE, ty=node.ty, span=node.span)

    assert broken(changed(normal(), twist), Stage.ANF) == "bindings are flat"


def test_an_operator_call_that_ends_a_body_is_found() -> None:
    x = Var("x", FLOAT, span=NOWHERE)
    attrs = {"dim": None, "keepdim": False, "dtype": None}
    body = Call(sum_, (x,), attrs, ty=FLOAT, span=NOWHERE)
    function = Function((x,), body, FLOAT, ty=FnType((FLOAT,), FLOAT), span=NOWHERE)
    assert broken(Module({"f": function}, {}), Stage.ANF) == "bodies end in tails"


def test_a_local_function_is_not_first_order() -> None:
    assert broken(normal(), Stage.FIRST_ORDER) == "functions are global"


def test_a_value_that_holds_a_function_is_not_first_order() -> None:
    text = "def @f(%g: fn (float32) -> float32, %x: float32) -> float32 { %g(%x) }"
    module = to_anf(infer(parse_module(text)))
    assert broken(module, Stage.FIRST_ORDER) == "values are first-order"


def test_a_transform_that_is_left_is_found() -> None:
    text = """def @f(%x: float32) -> float32 { %x }
    def @main(%x: float32) -> float32 { grad(@f)(%x) }"""
    module = to_anf(infer(parse_module(text)))
    assert any(isinstance(b.value, Transform) for b in module.functions["main"].body.bindings)
    assert broken(module, Stage.DERIVED) == "transforms are expanded"


def test_flavours_that_are_not_the_effects_are_found() -> None:
    assert broken(normal(), Stage.FLAVOURED) == "flavours are effects"
    flavoured = with_flavours(normal())
    all_impure = changed(flavoured, of_kind(LetBlock, flavour=Flavour.IMPURE))
    assert broken(all_impure, Stage.FLAVOURED) == "flavours are effects"


WRITTEN = """def @f(%x: float32, %y: float32) -> float32 {
  let %a = cast(%x, dtype=int64);
  let %b = cast(%a, dtype=float32);
  %b + %y
}"""


def test_a_cast_that_the_program_wrote_may_drop_a_fraction() -> None:
    translated = parse_module(WRITTEN)
    verify_conversions(translated, infer(translated))
    verify_conversions(infer(translated), to_anf(infer(translated)))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_a_pass_that_casts_a_float_to_a_lower_family_is_found(dtype: str) -> None:
    translated = parse_module(WRITTEN)
    lowered = parse_module(f"def @g(%x: float32) {{ cast(%x, dtype={dtype}) }}")
    cast = infer(lowered).functions["g"].body
    made = changed(infer(translated), lambda n: cast if isinstance(n, Call) else n, "f")
    with pytest.raises(VerifyError, match="only the program itself drops fractions"):
        verify_conversions(translated, made)


def test_an_operator_that_is_written_out_may_drop_a_fraction_within() -> None:
    images = "%x: Tensor[(1, 1, H, H), float32]"
    text = f"def @f[H: Dim]({images}) {{ interpolate(%x, scale_factor=(2.0,)) }}"
    before = to_anf(infer(parse_module(text)))
    after = decompose(before, "f")
    assert after is not before
    assert "dtype=int64" in to_text(after)
    verify_conversions(before, after)


def test_a_cast_to_a_higher_family_needs_no_words_in_the_program() -> None:
    translated = parse_module("def @f(%x: float32, %n: int64) { %x + %n }")
    verify_conversions(translated, infer(translated))


def test_functions_that_a_pass_left_as_they_were_are_not_looked_at_again() -> None:
    before = normal()
    verify(before, Stage.ANF)
    main = before.functions["main"]
    after = before.with_functions({"main": replace(main, name="main")})
    anew = calls_of(lambda: verify(after, Stage.ANF))
    assert calls_of(lambda: verify(after, Stage.ANF, before)) < anew / 2
    assert calls_of(lambda: verify(before, Stage.ANF, before)) < anew / 20


def without(module: Module, name: str) -> Module:
    """Return a module without a function."""
    return replace(module, functions={n: f for n, f in module.functions.items() if n != name})


def with_other_total(module: Module) -> Module:
    """Return the module with a `total` that takes and gives another type."""
    other = parse_module("def @total(%x: int64) -> int64 { %x }")
    return module.with_functions({"total": to_anf(infer(other)).functions["total"]})


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (lambda m: without(m, "total"), "what is mentioned exists"),
        (lambda m: replace(m, adts={}), "what is mentioned exists"),
        (
            lambda m: m.with_functions({"other": m.functions["total"]}),
            "every variable is bound once",
        ),
        (with_other_total, "calls agree with what they call"),
    ],
)
def test_what_a_pass_breaks_in_functions_that_it_left_as_they_were_is_found(
    change: Callable[[Module], Module], invariant: str
) -> None:
    before = normal()
    verify(before, Stage.ANF)
    with pytest.raises(VerifyError) as caught:
        verify(change(before), Stage.ANF, before)
    assert caught.value.invariant.name == invariant


def test_a_later_stage_is_checked_of_functions_that_a_pass_left_as_they_were() -> None:
    before = normal()
    verify(before, Stage.ANF)
    with pytest.raises(VerifyError, match="flavours are effects"):
        verify(before, Stage.FLAVOURED, before)
