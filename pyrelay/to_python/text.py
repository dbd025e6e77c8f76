"""A module of the IR as a Python file in the language."""

from __future__ import annotations

import ast
from collections.abc import Set as AbstractSet

from ..analysis.bindings import uses
from ..ir.expr import Var
from ..ir.module import Module
from ..ir.traverse import free_globals
from .body import Surroundings, printed_function
from .file import File
from .patterns import with_tuples
from .sayable import sayable
from .sizes import witnesses


def to_python(module: Module, kept: AbstractSet[Var]) -> str:
    """Return a module in A-normal form as Python that compiles to the same functions.

    `kept` are the variables that stay variables; the others may become parts of expressions. The
    functions are equal in A-normal form, up to second names of one value and to what
    `sayable` puts in other words.
    """
    module = sayable(module)
    file = File(module)
    functions = [_function(file, module, name, kept) for name in module.functions]
    return "\n\n\n".join([file.head(), *functions]) + "\n"


def _function(file: File, module: Module, name: str, kept: AbstractSet[Var]) -> str:
    function = module.functions[name]
    determined = witnesses(function)
    # Static arguments mention the witnesses of their sizes by name.
    kept = kept | {t.var for several in determined.values() for t in several}
    around = Surroundings(file, file.names.inside(), kept, uses(function), determined)
    title = file.functions[name]
    printed = printed_function(around, function, title, 0, [file.use("relay")])
    if printed.returns is None and function.result is not None and name in free_globals(function):
        # It may call itself at other sizes only where what it returns is annotated.
        printed.returns = file.annotation(function.result)
    return with_tuples(ast.unparse(ast.fix_missing_locations(printed)).strip())
