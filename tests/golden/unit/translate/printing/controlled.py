from pyrelay import Dim, Float, Int, Tensor, relay
N = Dim('N')


@relay
def controlled(x: Tensor[Float, (N,)], k: Int) -> tuple[Float, Tensor[Float, (N,)]]:

    def squared(y: Tensor[Float, (N,)]) -> Float:
        return relay.sum(y * y)
    fields = relay.value_and_grad(squared, wrt=('y',))(x)
    v = fields[0]
    fields_1 = fields[1]
    g = fields_1[0]
    relay.check(v > 0.0, message='negative')
    if v > 100.0:
        return relay.fail(message='ValueError: big')

    def for_loop(i: Int, v_1: Float) -> Float:
        if i < 3:
            if v_1 > relay.cast(i, dtype=relay.float32):
                return v_1
            v_2 = v_1 + 1.0 if k < i and v_1 < 3.0 else v_1 - 1.0
            return for_loop(i + 1, v_2)
        return v_1
    v_3 = for_loop(0, v)
    return (v_3 * relay.grad(relay.grad(cube, wrt='x'), wrt=0)(v_3), g)


@relay
def cube(x: Float) -> Float:
    return x * x * x
