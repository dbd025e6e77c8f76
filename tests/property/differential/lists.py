"""Random changes of a list, by Python's methods, and what is asked of its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.property.differential.expressions import Expressions, Scope
    from tests.property.differential.statements import Place, Statements


def change_list(writer: Statements, scope: Scope, place: Place) -> None:
    """Write a list that is changed, perhaps in each round of a loop."""
    make = writer.make
    name, taken = make.fresh("g"), make.fresh("x")
    items = [make.float(scope, 1) for _ in range(writer.random.randint(1, 3))]
    writer.line(place.indent, f"{name} = [{', '.join(items)}]")
    writer.line(place.indent, f"{taken} = {make.float(scope, 1)}")
    inner, indent = scope.inner(), place.indent
    inner.names.update({name: "Floats", taken: "Float"})
    if make.chance(0.5):
        index = make.fresh("i")
        writer.line(indent, f"for {index} in range({make.small(scope, 0)}):")
        inner.names[index] = "Small"
        indent += 1
    for _ in range(writer.random.randint(1, 3)):
        _change(writer, inner, indent, name, taken)
    scope.names.update({name: "Floats", taken: "Float"})


def _change(writer: Statements, scope: Scope, indent: int, name: str, taken: str) -> None:
    make = writer.make
    value = make.float(scope, 1)
    match writer.random.randrange(9):
        case 0 | 1:
            writer.line(indent, f"if len({name}) > 1:")
            writer.line(indent + 1, f"{taken} = {name}.pop({writer.random.choice(('', '0'))})")
        case 2:
            writer.line(indent, f"if len({name}) > 1:")
            writer.line(indent + 1, f"{name}[0], {name}[1] = {name}[1], {name}[0]")
        case 3:
            writer.line(indent, f"{name}.insert({make.small(scope, 0)}, {value})")
        case 4:
            writer.line(indent, f"{name}.{writer.random.choice(('reverse', 'sort'))}()")
        case 5:
            writer.line(indent, f"{name}.extend({make.floats(scope, 1)})")
        case 6:
            writer.line(indent, f"{name}[{writer.random.choice(('0', '-1'))}] = {value}")
        case 7:
            writer.line(indent, f"{name} += {make.floats(scope, 1)}")
        case _:
            writer.line(indent, f"{name}.append({value})")


def sorted_floats(make: Expressions, scope: Scope) -> str:
    """Return a list in order, perhaps by a key."""
    values = make.floats(scope, 0)
    key = f", key={_key(make, scope)}" if make.chance(0.5) else ""
    return f"sorted({values}{key})"


def chosen_float(make: Expressions, scope: Scope) -> str:
    """Return the element of a list with the least or greatest key, or the sum of a generator."""
    name = make.random.choice(scope.of("Floats"))
    if make.chance(0.5):
        choose = make.random.choice(("min", "max"))
        picked = f"{choose}({name}, key={_key(make, scope)})"
        return f"({picked} if len({name}) > 0 else {make.float_leaf(scope, weak=True)})"
    element, inner = _element(make, scope)
    guard = f" if {make.bool(inner, 0)}" if make.chance(0.3) else ""
    return f"sum({make.float(inner, 1)} for {element} in {name}{guard})"


def asked_of_all(make: Expressions, scope: Scope) -> str:
    """Return whether elements of a list are as a condition says."""
    name = make.random.choice(scope.of("Floats"))
    element, inner = _element(make, scope)
    return f"{make.random.choice(('any', 'all'))}({make.bool(inner, 0)} for {element} in {name})"


def _element(make: Expressions, scope: Scope) -> tuple[str, Scope]:
    name, inner = make.fresh("e"), scope.inner()
    inner.names[name] = "Float"
    return name, inner


def _key(make: Expressions, scope: Scope) -> str:
    name, inner = make.lambda_scope(scope)
    return f"lambda {name}: {make.random.choice(('-', '', 'abs'))}({make.float(inner, 1)})"
