from pyrelay import Float, Int, relay


@relay
def with_cells(x: Float, k: Int) -> Float:
    cell = relay.ref(x)
    count = relay.ref((k, relay.ref(x)))

    def add(y: Float) -> None:
        content = cell.value + y
        cell.value = content
        t_4 = count.value[1]
        t_4.value = y
    add(x)
    if k > 2:
        add(cell.value)
    return cell.value * relay.cast(count.value[0], dtype=relay.float32)
