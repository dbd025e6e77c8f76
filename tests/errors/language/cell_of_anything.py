from pyrelay import Float, Ref, relay


@relay
def read(total: Ref) -> Float:
    return total.value


read.check()
