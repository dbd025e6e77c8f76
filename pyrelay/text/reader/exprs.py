"""Expressions of the text form: lark's tree becomes IR, names find what binds them.

`expected` is the type that the surroundings of a node imply, as in the printer; in a typed text a
node without a written type gets it, or the type its parts imply (`implied.py`). The walks are
generators driven by `traverse.run`, so the depth of a program does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar, final

from lark import Token

from ...diagnostics.catalogue.text import (
    DefinedTwice,
    MisplacedType,
    RecursiveValue,
    UnboundVariable,
    UnknownOperator,
)
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.misspelt import nearest
from ...diagnostics.source import Span
from ...ir.expr import (
    Assumption,
    Binding,
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
    RefCreate,
    RefRead,
    RefWrite,
    Rule,
    Tuple,
    TupleGet,
    Var,
)
from ...ir.op import Op
from ...ir.traverse import Steps, pattern_vars
from ...ir.types import BOOL, STR, TupleType, Type
from ...relay05.imported import Imported
from ..constants import constant_type
from ..implied import KNOWN_ALONE, Implied
from ..lexis import TRANSFORMS, variable_text
from . import literals as read_literals
from .attributes import AttributeReader
from .blocks import Groups, Nodes
from .chains import ChainReader
from .context import Syntax, tree_of, trees_of, word_of
from .patterns import pattern
from .transforms import transform_of
from .types import FunctionHead, TypeReader
from .vocabulary import Vocabulary

Made = TypeVar("Made", bound=Expr)
_Reading: TypeAlias = "Callable[[Syntax, Type | None], Steps[Expr]]"


@final
class ExprReader:
    """Reads the expressions of one text."""

    def __init__(
        self, words: Vocabulary, types: TypeReader, implied: Implied, *, typed: bool
    ) -> None:
        self._words: Final = words
        self._place: Final = words.place
        self._types: Final = types
        self._implied: Final = implied
        self._typed: Final = typed
        self._attributes: Final = AttributeReader(words.place, types, self._body)
        self._chains: Final = ChainReader(words, self.expr, self._operation)
        self._vars: Final[dict[str, list[Var]]] = {}
        self._nodes: Final = Nodes()
        self._mentioned: Final[set[Var]] = set()
        """The functions of `let`s that have been mentioned, while their bodies are read."""
        self._rules: Final[dict[str, _Reading]] = {
            "variable": self._node,
            "projection": self._projection,
            "call": self._call,
            "tuple": self._tuple,
            "infix": self._infix,
            "ascription": self._ascription,
            "function": self._lambda,
            "ref": self._ref,
            "ref_read": self._ref,
            "ref_write": self._ref,
            "transform": self._transform,
            "conditional": self._conditional,
            "match": self._match,
            "body": self._body,
            "block": self.block,
        }

    # Functions

    def signature(self, tree: Syntax) -> FunctionHead:
        """Return the signature of a function."""
        generics, params, result, where = tree.children
        type_params = self._types.params(None if generics is None else tree_of(generics))
        with self._types.scope.inside(type_params):
            binders = (b for b in trees_of(tree_of(params)) if b.data == "binder")
            found = tuple(self.binder(b) for b in binders)
            self._refuse_repeats(found)
            ty = None if result is None else self._types.type(tree_of(result))
            equations = [] if where is None else trees_of(tree_of(where))
            return FunctionHead(type_params, found, ty, tuple(map(self._assumption, equations)))

    def function(self, signature: FunctionHead, body: Syntax, span: Span, name: str) -> Steps[Expr]:
        """Return a function around its body."""
        with self._types.scope.inside(signature.type_params):
            self.bind(signature.params)
            inside = yield self._body(body, signature.result if self._typed else None)
            self._unbind(signature.params)
        made = Function(
            signature.params,
            inside,
            signature.result,
            signature.type_params,
            name,
            signature.assumptions,
            span=span,
        )
        return self._made(made, None)

    def binder(self, tree: Syntax) -> Var:
        """Return the variable of a parameter or binding, not yet in scope."""
        name, written, ty = tree.children
        assert isinstance(name, Token)
        return self._make_var(name, written, ty)

    def bind(self, variables: Iterable[Var]) -> None:
        """Bring variables into scope."""
        for var in variables:
            self._vars.setdefault(var.name, []).append(var)

    def _unbind(self, variables: Iterable[Var]) -> None:
        for var in variables:
            self._vars[var.name].pop()

    def _make_var(self, name: Token, written: Any, ty: Any) -> Var:
        found = None if ty is None else self._types.type(ty)
        return Var(self._place.name(name), found, span=self._place.of(name, written))

    def _refuse_repeats(self, variables: Iterable[Var]) -> None:
        seen: dict[str, Var] = {}
        for var in variables:
            if var.name in seen and var.name != "_":
                name = variable_text(var.name)
                raise CheckError(DefinedTwice(var.span, "variable", name, seen[var.name].span))
            seen[var.name] = var

    def _assumption(self, tree: Syntax) -> Assumption:
        left, right, inside, written = tree.children
        dims = self._types.dim(tree_of(left)), self._types.dim(tree_of(right))
        return Assumption(*dims, self._place.of(tree, written), inside is not None)

    def _lambda(self, tree: Syntax, _: Type | None) -> Steps[Expr]:
        return self._named_function(tree, self.signature(tree_of(tree.children[1])), "")

    def _named_function(self, tree: Syntax, signature: FunctionHead, name: str) -> Steps[Expr]:
        written, _, body = tree.children
        span = self._place.of(tree, written)
        return (yield self.function(signature, tree_of(body), span, name))

    # Blocks

    def _body(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        return self.block(tree_of(tree.children[0]), expected)

    def block(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        """Return a chain of let blocks and the expression under them."""
        *items, result = trees_of(tree)
        groups = Groups()
        self._nodes.blocks.append(groups)
        for item in items:
            if item.data == "boundary":
                groups.close()
                continue
            flavour, bindings = yield self._item(item)
            written = None if item.data in {"statement", "graph"} else item.children[0]
            groups.add(flavour, self._place.of(item, written), bindings)
        expr = self._leaf(result, expected) or (yield self.expr(result, expected))
        self._nodes.blocks.pop()
        for flavour, span, bindings in reversed(groups.found):
            self._unbind(b.var for b in bindings)
            expr = self._made(LetBlock(tuple(bindings), expr, flavour, span=span), expected)
        return expr

    def _item(self, item: Syntax) -> Steps[tuple[Flavour, list[Binding]]]:
        """Return the bindings of one item of a block, and bring them into scope."""
        if item.data == "statement":
            value = yield self.expr(tree_of(item.children[0]), None)
            var = Var("_", value.ty if self._typed else None, span=value.span)
            self.bind((var,))
            return Flavour.IMPURE, [Binding(var, value)]
        if item.data == "let_rec":
            return Flavour.REC, (yield self._recursive(trees_of(item)))
        if item.data == "graph":
            return Flavour.PURE, [(yield self._graph(item))]
        binder, value_tree = trees_of(tree_of(item.children[1]))
        if value_tree.data == "function" and self._place.dialect.recursive_lets:
            return (yield self._let_function(binder, value_tree))
        if value_tree.data == "function":
            signature = self.signature(tree_of(value_tree.children[1]))
            var = self._function_var(binder, signature)
            value = yield self._named_function(value_tree, signature, var.name)
        else:
            var = self.binder(binder)
            expected = var.ty if self._typed else None
            value = self._leaf(value_tree, expected) or (yield self.expr(value_tree, expected))
        self.bind((var,))
        return (Flavour.PURE if item.data == "let" else Flavour.IMPURE), [Binding(var, value)]

    def _graph(self, item: Syntax) -> Steps[Binding]:
        """Return the binding of `%0 = value`, a name that Relay's printer made up."""
        word, value_tree = item.children
        assert isinstance(word, Token)
        value = yield self.expr(tree_of(value_tree), None)
        var = Var(self._place.name(word), span=self._place.of(word))
        self.bind((var,))
        if self._words.is_relay:
            self._nodes.keep(var.name, tree_of(value_tree))
        return Binding(var, value)

    def _node(self, tree: Syntax, _: Type | None) -> Steps[Expr]:
        """Bind a node of a graph in the block that mentions it, which is not the one that it was
        written in."""
        token = word_of(tree)
        var = Var(self._place.name(token), span=self._place.of(token))
        value = yield self.expr(self._nodes.start(var.name), None)
        self._nodes.end(var.name)
        self.bind((var,))
        self._nodes.blocks[-1].add(Flavour.PURE, var.span, [Binding(var, value)])
        return var

    def _let_function(self, binder: Syntax, tree: Syntax) -> Steps[tuple[Flavour, list[Binding]]]:
        """Return the binding of a function that may call itself."""
        var = self.binder(binder)
        self.bind((var,))
        value = yield self._named_function(
            tree, self.signature(tree_of(tree.children[1])), var.name
        )
        flavour = Flavour.REC if var in self._mentioned else Flavour.PURE
        self._mentioned.discard(var)
        return flavour, [Binding(var, value)]

    def _recursive(self, items: list[Syntax]) -> Steps[list[Binding]]:
        found: list[tuple[Var, Syntax, FunctionHead]] = []
        for item in items:
            binder, value = trees_of(item)
            if value.data != "function":
                name = str(binder.children[0])
                raise CheckError(RecursiveValue(self._place.of(value), name))
            signature = self.signature(tree_of(value.children[1]))
            found.append((self._function_var(binder, signature), value, signature))
        self._refuse_repeats(var for var, _, _ in found)
        self.bind(var for var, _, _ in found)
        bindings: list[Binding] = []
        for var, value, signature in found:
            made = yield self._named_function(value, signature, var.name)
            bindings.append(Binding(var, made))
        return bindings

    def _function_var(self, binder: Syntax, signature: FunctionHead) -> Var:
        var = self.binder(binder)
        implied = self._typed and var.ty is None and signature.type is not None
        return replace(var, ty=signature.type) if implied else var

    # Expressions

    def expr(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        """Return an expression."""
        while tree.data == "group":
            tree = tree_of(tree.children[0])
        leaf = self._leaf(tree, expected)
        if leaf is not None:
            return leaf
        return (yield self._rules[tree.data](tree, expected))

    def _leaf(self, tree: Syntax, expected: Type | None) -> Expr | None:
        """Return an expression that has no expressions inside, or None if it has."""
        match tree.data:
            case "variable":
                name = self._place.name(word_of(tree))
                is_node = name in self._nodes and not self._vars.get(name)
                return None if is_node else self._variable(tree)
            case "global":
                span = self._place.of(tree, tree.children[1])
                return self._made(self._words.global_var(word_of(tree), span), None)
            case "name":
                span = self._place.of(tree, tree.children[1])
                return self._made(self._words.value(word_of(tree), span), None)
            case "qualified":
                adt, name, written = tree.children
                span = self._place.of(tree, written)
                return self._made(self._words.qualified(adt, name, span), None)  # pyright: ignore[reportArgumentType]
            case "tuple" if len(tree.children) == 1:
                span = self._place.of(tree, tree.children[0])
                return self._made(Tuple((), span=span), expected)
            case _:
                return self._constant(tree)

    def _constant(self, tree: Syntax) -> Constant | None:
        match tree.data:
            case "number":
                value, ty = read_literals.number(self._place, word_of(tree), negative=False)
            case "string":
                value, ty = self._place.string(word_of(tree)), STR if self._typed else None
            case "truth":
                value, ty = word_of(tree) == "True", BOOL if self._typed else None
            case "tensor":
                value, ty = read_literals.tensor(self._place, self._types, tree)
            case "meta":
                made = Constant(
                    read_literals.metadata(self._place, tree), span=self._place.of(tree)
                )
                return replace(made, ty=constant_type(made, typed=False))
            case _:
                return None
        return Constant(value, ty, span=self._place.of(tree, tree.children[-1]))

    def _variable(self, tree: Syntax) -> Var:
        token = word_of(tree)
        found = self._vars.get(self._place.name(token))
        if not found:
            known = [name for name, stack in self._vars.items() if stack]
            near = nearest(self._place.name(token), known, "%")
            raise CheckError(UnboundVariable(self._place.of(token), str(token), near))
        if self._place.dialect.recursive_lets:
            self._mentioned.add(found[-1])
        return found[-1]

    def _made(self, node: Made, expected: Type | None) -> Made:
        """Return a node with the type that its surroundings or its parts imply, in a typed text."""
        if not self._typed:
            return node
        alone = expected is None or isinstance(node, KNOWN_ALONE)
        ty = self._implied.type(node) if alone else expected
        return node if ty is None else replace(node, ty=ty)

    def _exprs(self, trees: Iterable[Syntax]) -> Steps[tuple[Expr, ...]]:
        found: list[Expr] = []
        for tree in trees:
            read = self._leaf(tree, None) or (yield self.expr(tree, None))
            found.append(read)
        return tuple(found)

    def _projection(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        inner, index, written = tree.children
        value = yield self.expr(tree_of(inner), None)
        span = self._place.of(tree, written)
        return self._made(TupleGet(value, int(str(index)[1:]), span=span), expected)

    def _tuple(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        *items, written = tree.children
        types: tuple[Type | None, ...] = (None,) * len(items)
        if isinstance(expected, TupleType) and len(expected.fields) == len(items):
            types = expected.fields
        fields: list[Expr] = []
        for item, ty in zip(items, types, strict=True):
            fields.append((yield self.expr(tree_of(item), ty)))
        return self._made(Tuple(tuple(fields), span=self._place.of(tree, written)), expected)

    def _infix(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        expr = yield self._chains.read(tree)
        return (
            expr if expected is None or isinstance(expr, Constant) else replace(expr, ty=expected)
        )

    def _operation(self, call: Call, expected: Type | None) -> Call:
        return self._made(self._words.finished(call, typed=self._typed), expected)

    def _ascription(self, tree: Syntax, _: Type | None) -> Steps[Expr]:
        inner, term = trees_of(tree)
        ty = self._types.type(term)
        expr = yield self.expr(inner, ty if self._typed else None)
        if isinstance(expr, Var):
            name = variable_text(expr.name)
            raise CheckError(MisplacedType(self._place.of(tree), name))
        return replace(expr, ty=ty)

    def _call(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        head, type_args, args, written = tree.children
        named = self._named_callee(tree_of(head))
        callee = named if named is not None else (yield self.expr(tree_of(head), None))
        terms = [] if type_args is None else trees_of(tree_of(type_args))
        types = tuple(self._types.argument(t) for t in terms)
        parts = trees_of(tree_of(args))
        values = yield self._exprs(p for p in parts if p.data != "attribute")
        given = [p for p in parts if p.data == "attribute"]
        attrs = (yield self._attributes.read(given)) if given else {}
        span = self._place.of(tree, written)
        if isinstance(callee, Rule):
            return self._transformed(callee, values, attrs, span, expected)
        if isinstance(callee, Op):
            return self._operation(Call(callee, values, attrs, types, span=span), expected)
        if isinstance(callee, Imported):
            return self._words.applied(callee, values, attrs, span)
        if self._typed and isinstance(callee, GlobalVar | Constructor):
            callee = replace(callee, ty=self._implied.callee(callee, types))
        self._words.refuse_attributes(Call(callee, values, attrs, span=span))
        return self._made(Call(callee, values, {}, types, span=span), expected)

    def _named_callee(self, tree: Syntax) -> Expr | Op | Imported | Rule | None:
        """Return the callee that a name resolves to; None if the callee is any other expression."""
        if tree.data != "name":
            return None
        word = word_of(tree)
        if word in TRANSFORMS and word not in self._words.operators:
            return TRANSFORMS[word]
        return self._words.callee(word, self._place.of(tree, tree.children[1]))

    def _transform(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        name, options, *functions, written = tree.children
        rule = TRANSFORMS.get(str(name))
        if rule is None:
            assert isinstance(name, Token)
            near = nearest(str(name), TRANSFORMS)
            raise CheckError(UnknownOperator(self._place.of(name), str(name), near))
        attrs = yield self._attributes.read(trees_of(tree_of(options)))
        values = yield self._exprs(map(tree_of, functions))
        span = self._place.of(tree, written)
        return self._transformed(rule, values, attrs, span, expected)

    def _transformed(
        self,
        rule: Rule,
        values: tuple[Expr, ...],
        options: dict[str, Any],
        span: Span,
        expected: Type | None,
    ) -> Expr:
        made = transform_of(rule, values, options, span)
        return self._made(made, expected)

    def _ref(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        *parts, written = tree.children
        values = yield self._exprs(map(tree_of, parts))
        span = self._place.of(tree, written)
        match tree.data:
            case "ref":
                return self._made(RefCreate(*values, span=span), expected)
            case "ref_read":
                return self._made(RefRead(*values, span=span), expected)
            case _:
                return self._made(RefWrite(*values, span=span), expected)

    def _conditional(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        written, condition, then, otherwise = tree.children
        test = yield self.expr(tree_of(condition), None)
        first = yield self.expr(tree_of(then), expected)
        second = yield self.expr(tree_of(otherwise), expected)
        return self._made(If(test, first, second, span=self._place.of(tree, written)), expected)

    def _match(self, tree: Syntax, expected: Type | None) -> Steps[Expr]:
        word, written, scrutinee, *clauses = tree.children
        values = yield self._exprs(trees_of(tree_of(scrutinee)))
        value = values[0]
        if len(values) > 1:
            value = self._made(Tuple(values, span=self._place.of(tree_of(scrutinee))), None)
        found: list[Clause] = []
        for clause in clauses:
            read = yield self._clause(tree_of(clause), expected)
            found.append(read)
        partial = str(word) == "match?"
        span = self._place.of(tree, written)
        return self._made(Match(value, tuple(found), partial, span=span), expected)

    def _clause(self, tree: Syntax, expected: Type | None) -> Steps[Clause]:
        head, guard_tree, body = tree.children
        read = pattern(self._words, tree_of(head), self._make_var)
        variables = pattern_vars(read)
        self._refuse_repeats(variables)
        self.bind(variables)
        guard = None if guard_tree is None else (yield self.expr(tree_of(guard_tree), None))
        inside = yield self.expr(tree_of(body), expected)
        self._unbind(variables)
        return Clause(read, inside, guard)
