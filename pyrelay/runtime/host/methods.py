"""Calls of operators that are chosen while the program runs: an implementation from outside, or the
fastest of several methods, each a function that a site calls.

    def conv2d__1__unfold(input, weight, bias): ...
    ...
    conv1 = conv2d__1[x.shape](x, w, b)

The functions differ in nothing but the method; the attributes of the call are written into them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...analysis.dim_availability import needed
from ...autotuning.methods import PLAIN, MeasuredCall, Site, may_choose
from ...ir.dims import Dim
from ...ir.expr import Call, type_of
from ...ir.op import Contraction, Library, Method, Op
from ...ir.types import UNIT, TensorType, Type, dtype_of, int64
from ...lower_torch.apply import run_time_attr
from ...lower_torch.terms import Form, Term, form_of, leaf, write
from ...lower_torch.trace import NotTraceable, term_of, trace
from .frame import Frame, Mode
from .names import identifier
from .writer import Writer


def chosen(writer: Writer, call: Call, operands: Sequence[Term | None]) -> Term | None:
    """Return the value of an operator's call by the fastest method; None where there is one
    only."""
    site = _site(writer, call)
    if site is None:
        return None
    code, types = writer.code, [type_of(a) for a in call.args]
    given = [term_of(code, t) for t in operands]
    shapes = [
        Term((given[i],), lambda value: code.attribute(value, "shape"), Form.OTHER)
        for i in _showing(types)
    ]

    def make(*nodes: ast.expr) -> ast.expr:
        sizes, values = nodes[: len(shapes)], nodes[len(shapes) :]
        key = sizes[0] if len(sizes) == 1 else code.tuple(sizes)
        return code.call(code.item(code.name(site), key), values)

    result = type_of(call)
    return Term((*shapes, *given), make, form_of(result), dtype_of(result))


def _showing(types: Sequence[Type]) -> list[int]:
    """Return the operands whose shapes show all sizes that the types leave open."""
    seen: set[Dim] = set()
    found: list[int] = []
    for index, ty in enumerate(types):
        dims = {d for d in _shape(ty) if d.constant is None}
        if not dims <= seen:
            found.append(index)
            seen |= dims
    return found


def _shape(ty: Type) -> tuple[Dim, ...]:
    return ty.shape if isinstance(ty, TensorType) else ()


def _site(writer: Writer, call: Call) -> str | None:
    """Return the name of the site of a call, written if there is none for such calls."""
    op = call.callee
    assert isinstance(op, Op)
    methods = op.lowering.methods if isinstance(op.lowering, Library | Contraction) else ()
    if not methods or writer.program.pool.device.type != "cpu" or not may_choose():
        return None
    types = tuple(type_of(a) for a in call.args)
    key = (op, types, repr(call.attrs))
    sites = writer.program.sites
    if key not in sites:
        fitting = tuple(m for m in methods if m.fits(types, call.attrs))
        sites[key] = _written(writer, call, fitting) if _is_known(call) and fitting else None
    return sites[key]


def _is_known(call: Call) -> bool:
    """Return whether the operands are tensors, and whether the attributes are known."""
    if next(needed(call), None) is not None:
        return False
    types = (type_of(a) for a in call.args)
    return all(isinstance(t, TensorType) and t.rank for t in types if t != UNIT)


def _written(writer: Writer, call: Call, methods: Sequence[Method]) -> str | None:
    """Write a function for each way to do a call; return the name of the site, or None where there
    is one way only: torch may have been built without a library."""
    op, pool = call.callee, writer.program.pool
    assert isinstance(op, Op)
    number = sum(known is op for known, *_ in writer.program.sites) + 1
    name = f"{identifier(op.name)}__{number}"
    bodies = {PLAIN: op.lowering.body, **{m.name: m.body for m in methods}}
    written: dict[str, ast.FunctionDef] = {}
    for method, body in bodies.items():
        try:
            written[method] = _function(writer, call, f"{name}__{method}", body)
        except NotTraceable:
            continue
    if PLAIN not in written or len(written) == 1:
        return None
    writer.written.extend(written.values())
    names = {method: f.name for method, f in written.items()}
    there = tuple(m for m in methods if m.name in names)
    is_open = tuple(tuple(d.constant is None for d in _shape(type_of(a))) for a in call.args)
    called = MeasuredCall(f"{op.name} {dict(call.attrs)}", there, is_open)
    return pool.site(name, Site(called, partial(_functions, pool.namespace, names)))


def _functions(namespace: dict[str, Any], names: dict[str, str]) -> dict[str, Callable[..., Any]]:
    return {method: namespace[name] for method, name in names.items()}


def _function(writer: Writer, call: Call, name: str, body: Callable[..., Any]) -> ast.FunctionDef:
    op, code = call.callee, writer.code
    assert isinstance(op, Op)
    types = [type_of(a) for a in call.args]
    names = [identifier(p.name) for p in op.operands]
    params = [
        None if ty == UNIT else leaf(partial(code.name, n), form_of(ty), dtype_of(ty))
        for n, ty in zip(names, types, strict=True)
    ]
    attrs = [run_time_attr(a, lambda dim: dim.constant or 0) for a in call.attrs.values()]
    term = trace(body, writer, [*params, *attrs], types)
    frame = Frame(Mode.SHALLOW, writes=set(names))
    with writer.inside(frame):
        writer.emit(code.returned(write(term, writer, "part")))
    return code.function(name, names, frame.statements)


def dispatched(writer: Writer, call: Call, operands: Sequence[Term | None]) -> Term:
    """Return the value of a dispatched call: operands first, then the sizes in its attributes."""
    code = writer.code
    name, found = writer.program.pool.dispatched(call)

    def size(dim: Dim) -> Term:
        return leaf(lambda: writer.size(dim), Form.NUMBER, int64)

    given = [term_of(code, t) for t in operands]
    inputs = (*given, *map(size, found.sizes))
    ty = type_of(call)
    return Term(inputs, lambda *nodes: code.call(code.name(name), nodes), form_of(ty), dtype_of(ty))
