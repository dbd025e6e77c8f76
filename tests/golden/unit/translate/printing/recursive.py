from pyrelay import Bool, Dim, Float, Fn, Int, Tensor, relay
N = Dim('N')


@relay
def recursive(x: Tensor[Float, (N,)], k: Int) -> Tensor[Float, (N,)]:
    if k <= 0:
        return x

    def even(n: Int) -> Bool:
        if n == 0:
            return True
        return odd(n - 1)

    def odd(n_1: Int) -> Bool:
        if n_1 != 0:
            return even(n_1 - 1)
        return False
    if even(k):
        return relay.sin(recursive(x, k - 1))
    return twice(recursive, x, k // 2)


@relay
def twice(f: Fn[[Tensor[Float, (N,)], Int], Tensor[Float, (N,)]], x: Tensor[Float, (N,)], k: Int) -> Tensor[Float, (N,)]:
    return f(f(x, k), k)
