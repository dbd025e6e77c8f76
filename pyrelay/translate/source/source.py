"""Where a Python function's text is: the whole file parsed once, the `def` picked by its place.

A file is read through `linecache` (so notebooks and doctests work) and parsed whole: spans are
absolute and no text is ever cut out and re-indented. The code object that Python runs is compared
with the one that the text compiles to, so a file edited after import is an error and never a
different program.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import sys
from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import SourceFile, Span
from .flow import all_statements, inner_statements

if TYPE_CHECKING:
    from ...diagnostics.catalogue.language import NoSource, SourceChanged


@final
@dataclass(frozen=True, slots=True)
class FunctionSource:
    """The text of one function: its file and its `def`."""

    file: SourceFile
    node: ast.FunctionDef

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.pattern) -> Span:
        """Return the span of a syntax node of the file."""
        return self.file.span_of_ast(node)

    @property
    def text(self) -> str:
        """The text of the function, decorators included."""
        first = min([self.node.lineno, *(d.lineno for d in self.node.decorator_list)])
        last = self.node.end_lineno or self.node.lineno
        return "\n".join(self.file.line(n) for n in range(first, last + 1))

    @property
    def head(self) -> Span:
        """The span of the line that names the function."""
        start = self.file.offset(self.node.lineno, self.node.col_offset)
        return Span(self.file, start, start + len(f"def {self.node.name}"))


@final
class _ParsedFile:
    """A file as it was read: its functions, and the code objects it compiles to."""

    def __init__(self, name: str, text: str) -> None:
        self.file: Final = SourceFile(name, text, is_python=True)
        tree = ast.parse(text, name)
        statements = list(all_statements(tree.body))
        self.defs: Final = {_place(n): n for n in statements if isinstance(n, _DEFS)}
        classes = [s for s in statements if isinstance(s, ast.ClassDef)]
        self.methods: Final = {_place(n) for c in classes for n in c.body if isinstance(n, _DEFS)}
        # The text once more: a syntax tree that nests deeply, Python compiles only from its text.
        module = compile(text, name, "exec", dont_inherit=True)
        self.codes: Final = {(c.co_name, c.co_firstlineno): c for c in _codes(module)}
        self._body: Final = tree.body

    def code_alone(self, place: _Place, flags: int) -> CodeType | None:
        """Return the code of a function as a notebook compiles it, each statement of a cell by
        itself: calls of what the same cell imports are compiled in another way then."""
        line = place[1]
        outer = next(s for s in self._body if s.end_lineno is not None and line <= s.end_lineno)
        first = _first_line(outer)
        lines = [self.file.line(n) for n in range(first, (outer.end_lineno or first) + 1)]
        text = "\n" * (first - 1) + "\n".join(lines) + "\n"
        module = compile(text, self.file.name, "exec", flags & _ANNOTATIONS, dont_inherit=True)
        return next((c for c in _codes(module) if (c.co_name, c.co_firstlineno) == place), None)

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes by qualified name; of several with one name the last."""
        found: dict[str, ast.ClassDef] = {}
        pending: list[tuple[ast.AST, str]] = [(s, "") for s in reversed(self._body)]
        while pending:
            node, prefix = pending.pop()
            if isinstance(node, ast.ClassDef):
                found[prefix + node.name] = node
                prefix += f"{node.name}."
            elif isinstance(node, _DEFS):
                prefix += f"{node.name}.<locals>."
            pending += ((s, prefix) for s in reversed(list(inner_statements(node))))
        return found


@final
@dataclass(frozen=True, slots=True)
class ClassSource:
    """The text of one class: its file and its `class`."""

    file: SourceFile
    node: ast.ClassDef

    @property
    def head(self) -> Span:
        """The span of the line that names the class."""
        start = self.file.offset(self.node.lineno, self.node.col_offset)
        return Span(self.file, start, start + len(f"class {self.node.name}"))

    def field(self, name: str) -> Span | None:
        """Return the span of a field's line; None if it is not written in the class."""
        for stmt in self.node.body:
            match stmt:
                case ast.AnnAssign(target=ast.Name(id=written)) if written == name:
                    return self.file.span_of_ast(stmt)
                case _:
                    pass
        return None


def load_class(cls: type, near: SourceFile) -> ClassSource | None:
    """Return the text of a class, for messages: from the file of its module, or from the file of
    the function that uses it, as in a notebook. None where it is in neither."""
    module = sys.modules.get(cls.__module__)
    names = [near.name] if cls.__module__ == "__main__" else []
    for name in (*names, getattr(module, "__file__", None), near.name):
        text = "".join(linecache.getlines(name, vars(module) if module else None)) if name else ""
        try:
            parsed = _parsed(name, text) if name and text else None
        except SyntaxError:
            parsed = None
        if parsed is not None and cls.__qualname__ in parsed.classes:
            return ClassSource(parsed.file, parsed.classes[cls.__qualname__])
    return None


def load_source(function: object, *, is_method: bool = False) -> FunctionSource:
    """Return the text of a function. Raises CheckError where there is none or it has changed, and
    for a method in a class, unless it `is_method` that is asked for."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        raise _no_function(function)
    code = function.__code__
    if code.co_name == "<lambda>":
        raise CheckError(_no_source(code.co_name, code.co_filename))
    parsed = _parse(function)
    place = (code.co_name, code.co_firstlineno)
    node = parsed.defs.get(place)
    if node is None or not _is_written(code, parsed, place, node):
        raise CheckError(_changed(function, parsed.file))
    if isinstance(node, ast.AsyncFunctionDef):
        raise _refuse(parsed.file, node, "an `async def`", "write a plain `def`")
    if place in parsed.methods and not is_method:
        instead = (
            "leave the decorator out: methods of frozen dataclasses need none. Those of other "
            "classes become functions outside of the class"
        )
        raise _refuse(parsed.file, node, "a method", instead)
    return FunctionSource(parsed.file, node)


_DEFS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_ANNOTATIONS: Final = __future__.annotations.compiler_flag
_Place: TypeAlias = tuple[str, int]
"""The name of a function, and the line where it begins."""
_files: Final[dict[str, _ParsedFile]] = {}


def _parse(function: FunctionType) -> _ParsedFile:
    name = function.__code__.co_filename
    linecache.checkcache(name)
    text = "".join(linecache.getlines(name, function.__globals__))
    if not text:
        raise CheckError(_no_source(function.__name__, name))
    try:
        return _parsed(name, text)
    except SyntaxError:
        raise CheckError(_changed(function, SourceFile(name, text, is_python=True))) from None


def _parsed(name: str, text: str) -> _ParsedFile:
    known = _files.get(name)
    if known is None or known.file.text != text:
        known = _files[name] = _ParsedFile(name, text)
    return known


# Only a mistake pays for the catalogue, whose many classes take time to make.


def _no_source(function: str, file: str) -> NoSource:
    from ...diagnostics.catalogue.language import NoSource

    if function == "<lambda>":
        return NoSource(function, "it is a lambda", "write a `def` with annotated parameters")
    if file in ("<stdin>", "<string>"):
        why = "it was typed into the interpreter, which keeps no text"
        return NoSource(function, why, "write it into a file or a notebook")
    if file == "<timed exec>":
        why = "a notebook keeps no text of a cell that starts with %%time"
        return NoSource(function, why, "define it in a cell of its own")
    return NoSource(
        function,
        f"there is no text of {file}",
        "keep the .py file beside the program; for generated code put its text into "
        "`linecache.cache`",
    )


def _no_function(found: object) -> CheckError:
    """Return the refusal of a decorator's argument that is no plain function: mostly what another
    decorator gave."""
    from ...diagnostics.catalogue.language import NoSource

    what = "a function that another decorator has wrapped"
    instead = "put `@relay` or `@relay_model` right above the `def`"
    inner: Any = found
    if hasattr(found, "__relay__"):
        what, instead = "a function of the language once more", "decorate it once"
        inner = getattr(inner.__relay__, "function", None)
    inner = inspect.unwrap(inner)
    if not isinstance(inner, FunctionType) or inner is found:
        name = getattr(found, "__name__", "what is decorated")
        why = f"it is of type {type(found).__name__}, not a function"
        return CheckError(NoSource(name, why, "write a `def` with annotated parameters"))
    parsed = _parse(inner)
    node = parsed.defs.get((inner.__code__.co_name, inner.__code__.co_firstlineno))
    if node is None:
        return CheckError(_changed(inner, parsed.file))
    return _refuse(parsed.file, node, what, instead)


def _changed(function: FunctionType, file: SourceFile) -> SourceChanged:
    from ...diagnostics.catalogue.language import SourceChanged

    line = min(function.__code__.co_firstlineno, max(1, file.text.count("\n")))
    start = file.offset(line, 0)
    return SourceChanged(
        Span(file, start, start + len(file.line(line))), function.__name__, file.name
    )


def _refuse(file: SourceFile, node: ast.stmt, what: str, instead: str) -> CheckError:
    from ...diagnostics.catalogue.language import Unsupported

    start = file.offset(node.lineno, node.col_offset)
    head = Span(file, start, start + len(file.text[start:].split("\n", 1)[0]))
    return CheckError(Unsupported(head, what, instead))


def _place(node: ast.FunctionDef | ast.AsyncFunctionDef) -> _Place:
    return node.name, _first_line(node)


def _first_line(node: ast.stmt) -> int:
    """Return the line from which a code object counts: that of the first decorator."""
    decorators = node.decorator_list if isinstance(node, _DEFS) else []
    return min((d.lineno for d in decorators), default=node.lineno)


def _codes(code: CodeType) -> Iterator[CodeType]:
    pending = [code]
    while pending:
        current = pending.pop()
        yield current
        pending += (c for c in current.co_consts if isinstance(c, CodeType))


def _is_written(
    code: CodeType,
    parsed: _ParsedFile,
    place: _Place,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
) -> bool:
    """Return whether the code that runs is that of the text."""
    if _same_code(code, parsed.codes[place], node):
        return True
    alone = parsed.code_alone(place, code.co_flags)
    return alone is not None and _same_code(code, alone, node)


def _same_code(
    running: CodeType, written: CodeType, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> bool:
    """Return whether the code that runs is compiled from the text."""
    if _signature(running) != _signature(written):
        return False
    if any(isinstance(s, ast.Assert) for s in all_statements(node.body)):
        # pytest rewrites the asserts of test files: their functions hold more than is written.
        return set(_constants(written)) <= set(_constants(running))
    pairs = zip(_codes(running), _codes(written), strict=False)
    return all(
        a.co_code == b.co_code
        and a.co_names == b.co_names
        and _constants(a) == _constants(b)
        and _lines(a) == _lines(b)
        for a, b in pairs
    )


def _signature(code: CodeType) -> tuple[object, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[:count], code.co_argcount, code.co_freevars


def _lines(code: CodeType) -> list[int | None]:
    return [position[0] for position in code.co_positions()]


def _constants(code: CodeType) -> tuple[object, ...]:
    # An equal number of another type differs; docstrings are ignored.
    return tuple((type(c).__name__, repr(c)) for c in code.co_consts if not isinstance(c, CodeType))
