from pyrelay import Float, relay


@relay
def total(x: Float) -> Float:
    row = [x]
    rows = []
    for _ in range(3):
        row.append(x)
        rows.append(row)
    return sum(rows[0])
