"""Adding annotations to parameters of the user's, in libcst's lossless tree."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from ..diagnostics.diagnostic import ParameterFix


def with_annotation(text: str, fix: ParameterFix) -> str | None:
    """Return the text with the annotation of a parameter; None where there is none to annotate."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    param = _param_at(wrapper, len(text[: fix.span.start].encode()))
    if param is None or param.annotation is not None:
        return None
    annotation = cst.Annotation(cst.parse_expression(fix.annotation))
    equal = param.equal if param.default is None else cst.AssignEqual()
    changed = param.with_changes(annotation=annotation, equal=equal)
    tree = wrapper.module.deep_replace(param, changed)
    assert isinstance(tree, cst.Module)
    return tree.code


def _param_at(wrapper: MetadataWrapper, start: int) -> cst.Param | None:
    for node, span in wrapper.resolve(ByteSpanPositionProvider).items():
        if isinstance(node, cst.Param) and span.start == start:
            return node
    return None


def with_imports(text: str, names: Iterable[str]) -> str:
    """Return the text with names of pyrelay imported."""
    context = CodemodContext()
    for name in names:
        AddImportsVisitor.add_needed_import(context, "pyrelay", name)
    return AddImportsVisitor(context).transform_module(cst.parse_module(text)).code
