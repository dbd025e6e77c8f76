"""Operators on values whose types inference has not found yet: loops, maps of trees,
comparisons, operators of Relay.

A loop over something of unknown type keeps a *place*: the number of the round where it runs over a
tensor, what is left where it runs over a list. Inference puts the operators of the one or the other
in the place of these, so no checked program has them.
"""

from __future__ import annotations

from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import Host, NoGradient, Op, Param, RuleCall, Sample, attribute, operand
from ...ir.types import Type


def _undecided(call: RuleCall) -> Type:
    call.type(0)
    raise AssertionError("inference has put another operator in the place of this one")


def _never(*_: object) -> object:
    raise AssertionError("no checked program calls this")


def _operator(name: str, doc: str, *params: Param) -> Op:
    return Op(
        name=name,
        doc=doc,
        params=(operand("items"), *params),
        type_rule=_undecided,
        lowering=Host(_never),
        grad=NoGradient("no checked program has it"),
        samples=lambda: (Sample((0,) * (1 + len(params))),),
    )


first_place: Final = _operator("first_place", "The place before a first round.")
is_inside: Final = _operator(
    "is_inside",
    "Whether there is a round at a place; `length` is the number of rounds.",
    operand("place"),
    operand("length"),
)
element_at: Final = _operator("element_at", "The element of a round.", operand("place"))
next_place: Final = _operator("next_place", "The place of the round after one.", operand("place"))
backwards: Final = _operator("backwards", "The elements the other way round.")

bound: Final = _operator("bound", "An argument of `range`, which must be an integer.")


def _undecided_of(
    name: str,
    doc: str,
    *params: Param,
    sample: tuple[Any, ...],
    attrs: dict[str, Any] | None = None,
) -> Op:
    return Op(
        name=name,
        doc=doc,
        params=params,
        type_rule=_undecided,
        lowering=Host(_never),
        grad=NoGradient("no checked program has it"),
        samples=lambda: (Sample(sample, attrs or {}),),
    )


contains: Final = _undecided_of(
    "contains",
    "Whether a list or a tuple has an element that is equal to a value, or a string a part.",
    operand("value"),
    operand("items"),
    sample=(0, (0,)),
)
index_of: Final = _undecided_of(
    "index_of",
    "The place of the first element of a list that is equal to a value.",
    operand("items"),
    operand("value"),
    sample=((0,), 0),
)
count_of: Final = _undecided_of(
    "count_of",
    "How many elements of a list are equal to a value.",
    operand("items"),
    operand("value"),
    sample=((0,), 0),
)
is_before: Final = _undecided_of(
    "is_before",
    "Whether a value comes before another in a sorted list: numbers, and tuples of them.",
    operand("input"),
    operand("other"),
    sample=(0, 0),
)
truth: Final = _undecided_of(
    "truth",
    "Whether a condition holds: a bool itself, and of a list whether it has elements.",
    operand("input"),
    sample=(True,),
)
unpacked: Final = _undecided_of(
    "unpacked",
    "The elements of what is assigned to several names, as a tuple.",
    operand("items"),
    attribute("count", convert=kinds.whole),
    sample=((0, 0),),
    attrs={"count": 2},
)
as_tensor: Final = _undecided_of(
    "as_tensor",
    "The argument of `relay.tensor`: a tensor itself, the rows of a list or tuple stacked.",
    operand("data"),
    sample=(0,),
)
map_leaves: Final = _undecided_of(
    "map_leaves",
    "A function applied to the tensors of floats in trees of one structure.",
    operand("function"),
    operand("trees"),
    sample=(0, (0,)),
)
by_type: Final = _undecided_of(
    "by_type",
    "A method call or the read of a property: `choices` are functions of the value, the first for "
    "values of the first data type in `types`, and one more for values of any other type, if that "
    "means something.",
    operand("choices"),
    operand("value"),
    attribute("name", convert=kinds.text),
    attribute("types", convert=kinds.texts),
    sample=((0,), 0),
    attrs={"name": "depth", "types": ("Tree",)},
)
gradient_for: Final = _undecided_of(
    "gradient_for",
    "A gradient that moves parameters, which has their structure.",
    operand("params"),
    operand("grads"),
    sample=((0,), (0,)),
)
equal_values: Final = _undecided_of(
    "equal_values",
    "`relay.equal` as it is written: of tensors element by element, of data as a whole.",
    operand("input"),
    operand("other"),
    sample=(0, 0),
)

relay_call: Final = Op(
    name="relay_call",
    doc="A call of an operator of Relay, whose meaning depends on the types of its operands.",
    params=(
        operand("operands"),
        attribute("operator", convert=kinds.text),
        attribute("attributes", (), kinds.named),
    ),
    type_rule=_undecided,
    lowering=Host(_never),
    grad=NoGradient("no checked program has it"),
    samples=lambda: (Sample(((0,),), {"operator": "sum"}),),
)

UNDECIDED: Final = (
    first_place,
    is_inside,
    element_at,
    next_place,
    backwards,
    bound,
    contains,
    map_leaves,
    by_type,
    equal_values,
    gradient_for,
    relay_call,
    index_of,
    count_of,
    is_before,
    truth,
    unpacked,
    as_tensor,
)
