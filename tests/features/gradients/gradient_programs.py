"""Programs whose gradients are hard: each runs in Python as it stands, with torch's tensors.

Data that decides what runs, recursion of several kinds, closures, cells, lists, indexing that adds
up, early exits, integers among the values.
"""

from dataclasses import dataclass

from pyrelay import Dim, Float, Fn, Int, Tensor, relay
from pyrelay.prelude import List

N, M = Dim("N"), Dim("M")


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: "Tree"
    right: "Tree"
    weight: Float
    tag: Int


Tree = Leaf | Node


@dataclass(frozen=True)
class Num:
    value: Float


@dataclass(frozen=True)
class Get:
    place: int


@dataclass(frozen=True)
class Add:
    left: "Expr"
    right: "Expr"


@dataclass(frozen=True)
class Mul:
    left: "Expr"
    right: "Expr"


@dataclass(frozen=True)
class Let:
    value: "Expr"
    body: "Expr"


Expr = Num | Get | Add | Mul | Let


@relay
def newton(a: Float) -> Float:
    x = a
    steps = 0
    while abs(x * x - a) > 1e-4 and steps < 50:
        x = 0.5 * (x + a / x)
        steps += 1
    return x


@relay
def collatz_like(x: Float, n: Int) -> Float:
    while n != 1:
        if n % 2 == 0:
            n = n // 2
            x = x * 0.9
        else:
            n = 3 * n + 1
            x = relay.sin(x) + 1.0
    return x


@relay
def ackermann_like(m: Int, n: Int, x: Float) -> Float:
    if m == 0:
        return x * n
    if n == 0:
        return ackermann_like(m - 1, 1, x)
    return ackermann_like(m - 1, n - 1, x) + relay.tanh(ackermann_like(m, n - 1, x * 0.5))


@relay
def tree_sum(t: Tree, scale: Float) -> Float:
    match t:
        case Leaf(v):
            return v * scale
        case Node(l, r, w, tag) if tag > 2:
            return tree_sum(l, scale * w)
        case Node(l, r, w, tag):
            a = tree_sum(l, scale)
            b = tree_sum(r, a)
            return a * b + w * tag


@relay
def patterns(t: Tree, k: Float) -> Float:
    match t:
        case Node(Leaf(v), _, w, 1 | 3) if v > k:
            return v * w * k
        case Node(Leaf(v), Node(_, _, w, _), _, _) | Node(Node(Leaf(v), _, _, _), _, w, 1 | 2):
            return v * w * k * k + w
        case Node(left, _, w, _):
            return relay.sin(patterns(left, k * w))
        case Leaf(v):
            return v * v * k


@relay
def rebuild(t: Tree, k: Float) -> Tree:
    match t:
        case Leaf(v):
            return Leaf(relay.exp(v * k))
        case Node(l, r, w, tag):
            return Node(rebuild(r, k), rebuild(l, w), w * k, tag + 1)


@relay
def rebuilt(t: Tree, k: Float) -> Float:
    return tree_sum(rebuild(rebuild(t, k), k), k)


@relay
def evaluate(e: Expr, env: List[Float]) -> Float:
    match e:
        case Num(v):
            return v
        case Get(i):
            return env[i]
        case Add(a, b):
            return evaluate(a, env) + evaluate(b, env)
        case Mul(a, b):
            return evaluate(a, env) * evaluate(b, env)
        case Let(v, b):
            return evaluate(b, [evaluate(v, env), *env])


@relay
def cps(xs: List[Float], k: Fn[[Float], Float]) -> Float:
    if len(xs) == 0:
        return k(1.0)
    head = xs[0]
    return cps(xs[1:], lambda acc: k(acc * head + head))


@relay
def run_cps(xs: List[Float], a: Float) -> Float:
    return cps(xs, lambda v: v * a + v * v)


@relay
def compose(f: Fn[[Float], Float], n: Int) -> Fn[[Float], Float]:
    if n == 0:
        return lambda x: x
    g = compose(f, n - 1)
    return lambda x: f(g(x))


@relay
def composed(x: Float, a: Float, n: Int) -> Float:
    return compose(lambda v: relay.sin(v * a) + v, n)(x)


@relay
def histogram(x: Tensor[Float, (N,)], idx: Tensor[Int, (N,)]) -> Float:
    bins = relay.zeros(4)
    for i in range(len(x)):
        bins[idx[i]] += x[i] * x[i]
    total = 0.0
    for b in bins:
        total += b * b
    return total


@relay
def prefix(x: Tensor[Float, (N,)]) -> Float:
    y = x * 1.0
    for i in range(1, len(y)):
        y[i] = y[i - 1] * y[i] + x[i]
    return y.sum()


@relay
def running_best(x: Tensor[Float, (N,)]) -> Float:
    best = x * 1.0
    for i in range(1, len(best)):
        if best[i] < best[i - 1]:
            best[i] = best[i - 1]
        best[0] = best[i] * x[0]
    return (best * best).sum()


@relay
def swap_sort(x: Tensor[Float, (N,)]) -> Float:
    y = x * 1.0
    n = len(y)
    for i in range(n):
        for j in range(n - 1 - i):
            if y[j] > y[j + 1]:
                a = y[j] * 1.0
                b = y[j + 1] * 1.0
                y[j] = b
                y[j + 1] = a
    total = 0.0
    for i, v in enumerate(y):
        total += v * (i + 1)
    return total


@relay
def viterbi(s: Tensor[Float, (N, M)], t: Tensor[Float, (M, M)]) -> Float:
    best = s[0]
    for row in s[1:]:
        scores = []
        for j in range(len(best)):
            top = best[0] + t[0, j]
            for i in range(1, len(best)):
                c = best[i] + t[i, j]
                if c > top:
                    top = c
            scores.append(top + row[j])
        best = relay.stack(scores)
    return relay.logsumexp(best, dim=0)


@relay
def edit(a: Tensor[Float, (N,)], b: Tensor[Float, (M,)]) -> Float:
    previous = [0.0 + j for j in range(len(b) + 1)]
    for i in range(len(a)):
        current = [i + 1.0]
        for j in range(len(b)):
            cost = (a[i] - b[j]) * (a[i] - b[j])
            current.append(min(min(previous[j + 1] + 1.0, current[j] + 1.0), previous[j] + cost))
        previous = current
    return previous[-1]


@relay
def early(x: Tensor[Float, (N,)], limit: Float) -> Float:
    total = 0.0
    for i in range(len(x)):
        if total > limit:
            return total * x[i]
        for v in x:
            if v < 0.0:
                continue
            total += v * x[i]
            if total > 3 * limit:
                return total - v
    return total * limit


@relay
def refs(x: Float, n: Int) -> Float:
    r = relay.ref(x)
    s = relay.ref(x * x)
    for i in range(n):
        old = r.value
        r.value = s.value * 0.5 + i
        s.value = old * x
    return r.value + s.value


@relay
def ref_closure(x: Float, n: Int) -> Float:
    r = relay.ref(1.0)

    def bump(v: Float) -> Float:
        r.value = r.value * v
        return r.value + v

    total = 0.0
    for i in range(n):
        total += bump(x + i)
    return total * r.value


@relay
def power_tower(x: Float, n: Int) -> Float:
    def up(k: Int) -> Float:
        if k == 0:
            return x
        return x ** up(k - 1)

    return up(n)


@relay
def mutual(x: Float, n: Int) -> Float:
    def even(k: Int, y: Float):
        if k == 0:
            return y
        return odd(k - 1, y * x)

    def odd(k: Int, y: Float):
        if k == 0:
            return y + 1.0
        return even(k - 1, y + x)

    return even(n, x)


@relay
def bisect(a: Float, x: Float) -> Float:
    low, high = 0.0, x
    for _ in range(20):
        mid = (low + high) / 2
        if mid * mid * mid > a:
            high = mid
        else:
            low = mid
    return low * a + high * x


@relay
def interp(xs: Tensor[Float, (N,)], ys: Tensor[Float, (N,)], q: Float) -> Float:
    i = 0
    while i < len(xs) - 2 and q > xs[i + 1]:
        i += 1
    t = (q - xs[i]) / (xs[i + 1] - xs[i])
    return ys[i] * (1 - t) + ys[i + 1] * t


@relay
def pairwise(x: Tensor[Float, (N, 2)]) -> Float:
    e = 0.0
    for i in range(len(x)):
        for j in range(i):
            d = x[i] - x[j]
            r2 = (d * d).sum()
            e += 1 / (r2 * r2) - 1 / r2
    return e


@relay
def memo(n: Int, x: Float) -> Float:
    table = [x, x * x]
    for i in range(2, n):
        table.append(table[i - 1] * table[i - 2] + table[i // 2])
    return table[-1]


@relay
def stackm(codes: List[Int], x: Float, y: Float) -> Float:
    stack = [x]
    for c in codes:
        if c == 0:
            stack.append(y)
        elif c == 1:
            a = stack.pop()
            b = stack.pop()
            stack.append(a * b)
        elif c == 2:
            stack.append(stack[-1])
        else:
            a = stack.pop()
            stack.append(relay.tanh(a))
    return stack[-1]


@relay
def optional(xs: List[Float], k: Float) -> Float:
    best = None
    for x in xs:
        if best is None or x * k > best:
            best = x * k
    return best * best if best is not None else k


@relay
def softmaxed(x: Tensor[Float, (N,)], n: Int) -> Float:
    p = x
    for i in range(n):
        p = relay.softmax(p, dim=0) * x + p[i] * 0.1
    return (p * p).sum()


@relay
def string_switch(x: Float, n: Int) -> Float:
    mode = "a"
    for _ in range(n):
        if mode == "a":
            x = x * x
            mode = "b"
        elif mode == "b":
            x = relay.sin(x)
            mode = "c"
        else:
            x = x + 1
            mode = "a"
    return x


@relay
def tuples(p: tuple[Float, tuple[Float, Int]], n: Int) -> Float:
    a, (b, k) = p
    for _ in range(n):
        a, b = b * a, a + b * k
    return a - b


@relay
def strides(x: Tensor[Float, (N, M)], k: Int) -> Float:
    y = x[::2, 1:] * 2.0
    z = x[1:, :-1][::-1] if False else x[-2:, 0]
    return (y * y).sum() + z.prod() + x[k, -1] ** 3


@relay
def abs_kinks(x: Tensor[Float, (N,)]) -> Float:
    total = 0.0
    for v in x:
        total += abs(v) * max(v, 0.5) + min(v, -0.25) + relay.relu(v)
    return total


@relay
def while_break(x: Float, limit: Float) -> Float:
    n = 0
    while True:
        x = x * 1.3 + 0.1
        n += 1
        if x > limit:
            break
        if n > 40:
            return x * x
    return x * n


@relay
def lists_of_lists(xss: List[List[Float]], k: Float) -> Float:
    best = 0.0
    for xs in xss:
        ys = sorted([x * k for x in xs])
        total = 0.0
        for i, y in enumerate(reversed(ys)):
            total += y / (i + 1)
        if total > best:
            best = total
    return best


@relay
def two_of_them(p: Tensor[Float, (N,)]) -> Float:
    limit = 0.75
    for _ in range(1):
        limit *= 14.0
        limit -= relay.mean(0.01 * p)
    return relay.where(p > limit, p, p * 10)[:2].sum()
