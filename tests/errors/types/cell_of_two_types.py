from pyrelay import Float, relay


@relay
def program(x: Float) -> Float:
    cell = relay.ref(x)
    cell.value = x > 0.0
    return cell.value


program.check()
