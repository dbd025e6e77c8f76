"""Models that compiled code creates: `relay.create_model(net, seed=0, dims={K: 784}, width=9)`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ...diagnostics.catalogue.model import UnknownDim
from ...diagnostics.catalogue.names import UnknownAttribute
from ...diagnostics.catalogue.signatures import BadValue
from ...diagnostics.catalogue.sites import UnknownModel
from ...diagnostics.source import Span
from ...ir.dims import Dim, DimVar
from ...ir.expr import Binding, Call, Expr, RefCreate, Tuple, Var
from ...ir.op import HiddenKind
from ...ir.traverse import Steps, let, run
from ...operators.composite.model import KEY_INIT, initial
from ..calls.attributes import attribute_value, static_argument
from ..names.atoms import again, atom, into
from ..names.static import static_meaning, static_value
from ..program.context import Context
from ..program.instances import complete_statics
from ..program.model_origins import CreatedOrigin
from ..program.models import ModelInstance, ModelSpec, SubModelSpec, ValueSpec
from ..source.definition import Definition, DefinitionKind
from ..source.scope import nearest
from ..source.syntax import is_none, keyword_argument
from .tied_shapes import tied
from .updates import fresh_memory


def create_model(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `relay.create_model(net, seed=0, ...)` to the cell of its parameters, its state."""
    model = created(cx, node)
    span = cx.span(node)
    if model is None:
        return cx.refuse(UnknownModel(span))
    seed_node = _argument(node, 1, "seed")
    seed: Any = 0
    if seed_node is not None:
        seed = yield attribute_value(cx, seed_node, initial.attributes[1], "create_model")
    spec = cx.program.spec(model)

    def start(path: str, value: ValueSpec) -> Expr:
        init = KEY_INIT if value.holder is HiddenKind.KEY else value.init.name.lower()
        attrs = {
            "init": init, "seed": seed, "path": path, "size": None, "dtype": None, "fan_in": None
        }  # fmt: skip
        found = Call(initial, (), attrs, span=span)
        return found if value.holder is HiddenKind.PARAMETER else RefCreate(found, span=span)

    bindings: list[Binding] = []
    params: Expr = run(_tree(spec, "", start, span, state=False))
    state: Expr = run(_tree(spec, "", start, span, state=True))
    sizes = _sizes(cx, node, model.definition)
    params = atom(params, "params", into(bindings))
    if sizes:
        state = atom(state, "state", into(bindings))
        bindings.append(Binding(Var("sizes", span=span), tied(cx, model, params, state, sizes)))
    places = (created_place(cx, node),)
    memory = cx.program.later(
        places, span, lambda found: fresh_memory(cx, spec, again(params), found, span)
    )
    content = Tuple((params, memory), span=span)
    return let(bindings, Tuple((RefCreate(content, span=span), state), span=span))


def _sizes(cx: Context, node: ast.Call, definition: Definition) -> dict[str, Dim]:
    """Return the sizes that `dims={K: 784}` fixes, by name; what cannot be one is reported."""
    written = keyword_argument(node, "dims")
    if written is None or is_none(written):
        return {}
    if not isinstance(written, ast.Dict):
        why = "they are written out where the model is made: `dims={K: 784}`"
        cx.program.report(BadValue(cx.span(written), "`dims` of `create_model`", why))
        return {}
    open_sizes = [
        p.name for p in cx.program.signature(definition).type_params if isinstance(p, DimVar)
    ]
    found: dict[str, Dim] = {}
    for key, value in zip(written.keys, written.values, strict=True):
        place = value if key is None else key
        known = None if key is None else static_value(cx, key)
        if known is None or not isinstance(known.value, Dim | str):
            why = "a key is a `Dim` or its name"
            cx.program.report(BadValue(cx.span(place), "`dims` of `create_model`", why))
            continue
        name = str(known.value)
        if name not in open_sizes:
            cx.program.report(UnknownDim(cx.span(place), definition.name, name, tuple(open_sizes)))
            continue
        size = static_argument(cx, value, f"the size `{name}`", "a number")
        if size is None:
            continue
        if type(size) is not int or size < 0:
            why = f"it cannot be {size!r}"
            cx.program.report(BadValue(cx.span(value), f"the size `{name}`", why))
            continue
        found[name] = Dim.of(size)
    return found


def created(cx: Context, node: ast.Call) -> ModelInstance | None:
    """Return the model that a call of `create_model` makes: new models are in training mode."""
    definition = static_meaning(cx, node.args[0] if node.args else None)
    if not isinstance(definition, Definition) or definition.kind is not DefinitionKind.MODEL:
        return None
    signature = cx.program.signature(definition)
    names = {p.name for p in signature.statics}
    given: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg in names:
            what = f"`{keyword.arg}` of `{definition.name}`"
            given[keyword.arg] = static_argument(cx, keyword.value, what, "a number")
        elif keyword.arg not in ("seed", "dims"):
            near = nearest(str(keyword.arg), [*names, "seed", "dims"])
            cx.program.report(
                UnknownAttribute(
                    cx.span(keyword), "relay.create_model in compiled code", str(keyword.arg), near
                )
            )
    statics = complete_statics(cx.program, definition, given, cx.span(node))
    cx.program.updates.create(created_place(cx, node))
    return ModelInstance(definition, statics, training=True)


def created_place(cx: Context, node: ast.Call) -> CreatedOrigin:
    """Return the place of a call of `create_model`."""
    return CreatedOrigin(cx.definition, cx.instance.statics, cx.span(node))


def _argument(node: ast.Call, place: int, name: str) -> ast.expr | None:
    if len(node.args) > place:
        return node.args[place]
    return keyword_argument(node, name)


def _tree(
    spec: ModelSpec, prefix: str, leaf: Callable[[str, ValueSpec], Expr], span: Span, *, state: bool
) -> Steps[Expr]:
    """Return a tuple shaped like the parameters (or the state) of a model, leaf by leaf."""
    fields: list[Expr] = []
    for part in spec.state if state else spec.params:
        path = f"{prefix}{part.name}"
        if isinstance(part, SubModelSpec):
            fields.append((yield _tree(part.model, f"{path}.", leaf, span, state=state)))
        else:
            fields.append(leaf(path, part))
    return Tuple(tuple(fields), span=span)
