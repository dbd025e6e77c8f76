"""Programs of the language run by Python itself, with torch's tensors: what their source means.

The source is executed unchanged but for its integer literals, which become `Int64`, and for the
names that `pyrelay` gives a program, which come from here. Literals of Python are weak against
torch's tensors of rank 0 exactly as they are in the language, so no rule about dtypes is repeated.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import reduce, wraps
from types import ModuleType
from typing import Any, Final

import torch

from pyrelay import Float

LARGEST: Final = 2**63 - 1
FUEL: Final = 20_000
"""The most calls and iterations of a program: one that takes more is left out."""


class UndefinedError(Exception):
    """The program depends on an integer that does not exist."""


class SpentError(Exception):
    """The program takes too long."""


class Undefined:
    """What does not exist, and whatever is computed of it: an integer too large for int64 or
    divided by zero, an element that a tensor has not."""

    made = 0
    """How many there were: a program may fail where one was made, though it is never used."""

    def __init__(self) -> None:
        Undefined.made += 1

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return cls()

    def __bool__(self) -> bool:
        raise UndefinedError

    def __index__(self) -> int:
        raise UndefinedError

    def __float__(self) -> float:
        raise UndefinedError

    def __format__(self, spec: str) -> str:
        raise UndefinedError

    __int__ = __index__
    __hash__: Any = None


class Int64(int):
    """An integer whose arithmetic notices that its result does not fit into int64."""


def _checked(name: str) -> Callable[..., Any]:
    compute = getattr(int, name)

    def method(self: int, *others: Any) -> Any:
        try:
            return int64(compute(self, *others))
        except ZeroDivisionError:
            return Undefined()

    return method


def int64(value: Any) -> Any:
    """Return an integer as `Int64`, or as `Undefined`; anything else unchanged."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return Int64(value) if -LARGEST - 1 <= value <= LARGEST else Undefined()


_BINARY: Final = ("add", "sub", "mul", "floordiv", "mod", "pow")
for _name in (*_BINARY, *(f"r{n}" for n in _BINARY), "neg", "abs"):
    setattr(Int64, f"__{_name}__", _checked(f"__{_name}__"))
_OTHERS: Final = ("truediv", "rtruediv", "lt", "le", "gt", "ge", "eq", "ne", "pos")
for _name in (*_BINARY, *(f"r{n}" for n in _BINARY), "neg", "abs", *_OTHERS):
    setattr(Undefined, f"__{_name}__", lambda self, *others: Undefined())


def whole_quotient(left: Any, right: Any) -> Any:
    """Return `left // right`; torch has no derivative of it, which is 0."""
    left, right = (v.detach() if isinstance(v, torch.Tensor) else v for v in (left, right))
    return left // right


def extreme(choose: Callable[..., Any], pairwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return Python's `min` or `max`; of an integer and a float it is a float, and where two floats
    are equal both have a part in the gradient, as in torch's."""

    def chosen(*values: Any, **named: Any) -> Any:
        values = tuple(values[0]) if len(values) == 1 else values
        found = choose(values, **named)
        if named or isinstance(found, Undefined):
            return found
        if any(isinstance(v, torch.Tensor) and _is_float(v) for v in values):
            return reduce(pairwise, map(tensor, values))
        return float(found) if any(isinstance(v, float) for v in values) else found

    return chosen


def scrutinee(value: Any) -> Any:
    """Return what is matched, with Python's booleans."""
    if isinstance(value, tuple):
        return tuple(map(scrutinee, value))
    if isinstance(value, Undefined):
        raise UndefinedError
    return bool(value) if isinstance(value, torch.Tensor) and value.dtype == torch.bool else value


def element(value: Any, index: Any) -> Any:
    """Return an element; one that a tensor has not may go unnoticed where it is not used."""
    try:
        return value[index]
    except IndexError:
        if isinstance(value, torch.Tensor):
            return Undefined()
        raise


class Fuel:
    """Counts what a program does, and ends it."""

    def __init__(self) -> None:
        self.left = FUEL

    def spend(self) -> None:
        """Count a call or an iteration."""
        self.left -= 1
        if self.left < 0:
            raise SpentError


class Cell:
    """A cell, `relay.ref`."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Operators:
    """`relay`: a decorator that changes nothing, and torch's functions."""

    ref = Cell

    def __init__(self, fuel: Fuel) -> None:
        self._fuel = fuel

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that counts its calls."""

        @wraps(function)
        def counted(*args: Any) -> Any:
            self._fuel.spend()
            return function(*args)

        return counted

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(torch, name)
        return lambda *args, **named: function(*[tensor(a) for a in args], **named)

    def stack(self, values: Iterable[Any]) -> Any:
        """Return a tensor of the elements of a list."""
        return torch.stack([tensor(v).float() for v in values])

    def where(self, condition: Any, one: Any, other: Any) -> Any:
        """Return elements of one tensor or another."""
        return torch.where(tensor(condition), one, other)

    def grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the gradient of a function by all its arguments that are floats."""

        def gradient(*args: Any) -> Any:
            kinds = function.__annotations__.values()
            places = [float_leaf(a) if k is Float else a for a, k in zip(args, kinds, strict=False)]
            wanted = [p for p in places if _is_float(p)]
            value = tensor(function(*places))
            found = gradients(value, wanted)
            return found[0] if len(found) == 1 else tuple(found)

        return gradient


def gradients(value: torch.Tensor | Undefined, wanted: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return derivatives, which may be derived again; 0 where there is no dependence."""
    if isinstance(value, Undefined):
        raise UndefinedError
    if not wanted or not value.requires_grad:
        return [torch.zeros_like(w) for w in wanted]
    found = torch.autograd.grad(value, wanted, create_graph=True, allow_unused=True)
    # torch may give a zero without storage, which nothing can read.
    return [
        torch.zeros_like(w) if g is None or g._is_zerotensor() else g
        for g, w in zip(found, wanted, strict=True)
    ]


def float_leaf(value: Any) -> Any:
    """Return a float as a tensor of its own that gradients may be taken by."""
    if isinstance(value, Undefined):
        raise UndefinedError
    made = tensor(value).float()
    return made.view_as(made) if made.requires_grad else made.detach().clone().requires_grad_()


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def tensor(value: Any) -> Any:
    """Return a number as a tensor."""
    if isinstance(value, bool | int | float):
        return torch.as_tensor(int(value) if isinstance(value, Int64) else value)
    return value


def builtins_of(fuel: Fuel, printed: list[str]) -> dict[str, Any]:
    """Return Python's functions, with integers that know their limits."""

    def counted(values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            fuel.spend()
            yield int64(value)

    def numbered(values: Iterable[Any]) -> Iterator[Any]:
        return ((int64(i), v) for i, v in enumerate(counted(values)))

    def whole(value: Any) -> Any:
        # A float that is computed of literals alone is a float32 where nothing else decides.
        return value if isinstance(value, Undefined) else int64(int(tensor(value)))

    return {
        "range": lambda *bounds: _Range([int64(i) for i in counted(range(*bounds))]),
        "enumerate": numbered,
        "len": lambda values: int64(len(values)),
        "min": extreme(min, torch.minimum),
        "max": extreme(max, torch.maximum),
        "sum": lambda values: sum(values, int64(0)),
        "int": whole,
        "print": lambda text: printed.append(text),
        "_int64": int64,
        "_scrutinee": scrutinee,
        "_element": element,
        "_owned": lambda value: value.clone() if isinstance(value, torch.Tensor) else value,
        "_whole_quotient": whole_quotient,
        "_spend": fuel.spend,
    }


class _Range(list[Any]):
    """The numbers of a range, which may be reversed."""


class _Literals(ast.NodeTransformer):
    """Wraps integer literals of bodies; counts the iterations of while loops."""

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = self._all(node.body)
        return node

    def _all(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        holder = self.generic_visit(ast.Module(statements, []))
        assert isinstance(holder, ast.Module)
        return holder.body

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.value = self.visit(node.value) if node.value else None
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        node.guard = self.visit(node.guard) if node.guard else None
        node.body = self._all(node.body)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        old: ast.expr = ast.parse(ast.unparse(node.target), mode="eval").body
        return self.visit_Assign(ast.Assign([node.target], ast.BinOp(old, node.op, node.value)))

    def visit_Assign(self, node: ast.Assign) -> Any:
        # The language gives the name a new value; torch changes a tensor that others may hold.
        self.generic_visit(node)
        match node.targets:
            case [ast.Subscript(value=ast.Name(id=name))]:
                # What the new value is made of is read first: a gradient may need it as it was.
                first = ast.Assign([ast.Name("_value", ast.Store())], node.value)
                node.value = ast.Name("_value", ast.Load())
                return [first, ast.parse(f"{name} = _owned({name})").body[0], node]
            case _:
                return node

    def visit_Match(self, node: ast.Match) -> ast.Match:
        self.generic_visit(node)
        # A pattern compares with False by identity.
        node.subject = ast.Call(ast.Name("_scrutinee", ast.Load()), [node.subject], [])
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store) or isinstance(node.slice, ast.Slice):
            return node
        return ast.Call(ast.Name("_element", ast.Load()), [node.value, node.slice], [])

    def visit_While(self, node: ast.While) -> ast.While:
        self.generic_visit(node)
        node.body.insert(0, ast.parse("_spend()").body[0])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.FloorDiv):
            return node
        return ast.Call(ast.Name("_whole_quotient", ast.Load()), [node.left, node.right], [])

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is not int:
            return node
        return ast.Call(ast.Name("_int64", ast.Load()), [ast.Constant(node.value)], [])


class _Perturbed(ast.NodeTransformer):
    """Moves float literals and quotients a little."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.BinOp:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.BinOp(node, ast.Mult(), ast.Constant(1 + NUDGE))

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(node.value * (1 + NUDGE)) if type(node.value) is float else node


NUDGE: Final = 2e-6
"""How much numbers are moved to see whether the value of a program hangs on their last digits."""


class Reference:
    """The functions of a source, run by Python."""

    def __init__(self, source: str, *, nudged: bool = False) -> None:
        self.fuel: Final = Fuel()
        self.printed: Final[list[str]] = []
        tree = ast.parse(source)
        if nudged:
            _Perturbed().visit(tree)
        top = [n for n in tree.body if not isinstance(n, ast.FunctionDef)]
        functions = [_Literals().visit(n) for n in tree.body if isinstance(n, ast.FunctionDef)]
        module = ModuleType("reference")
        sys.modules["reference"] = module
        self.names: Final = vars(module)
        self.names["relay"] = Operators(self.fuel)
        exec(compile(ast.Module(top, []), "<reference>", "exec", dont_inherit=True), self.names)
        self.names.update(builtins_of(self.fuel, self.printed), relay=Operators(self.fuel))
        body = ast.fix_missing_locations(ast.Module(functions, []))
        exec(compile(body, "<reference>", "exec", dont_inherit=True), self.names)

    def run(self, entry: str, args: list[Any]) -> Any:
        """Call a function. Raises what Python raises, UndefinedError and SpentError."""
        self.fuel.left = FUEL
        Undefined.made = 0
        self.printed.clear()
        return self.names[entry](*args)


def contains_undefined(value: Any) -> bool:
    """Return whether a part of a value is an integer that does not exist."""
    if isinstance(value, Undefined):
        return True
    if isinstance(value, list | tuple):
        return any(contains_undefined(v) for v in value)
    fields = getattr(value, "__dataclass_fields__", ())
    return any(contains_undefined(getattr(value, name)) for name in fields)


def is_close(found: float, expected: float, rtol: float) -> bool:
    """Compare two floats; both may be NaN."""
    if math.isnan(expected) or math.isinf(expected):
        return found == expected or (math.isnan(expected) and math.isnan(found))
    return math.isclose(found, expected, rel_tol=rtol, abs_tol=rtol)
