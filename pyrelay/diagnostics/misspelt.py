"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(
    name: str, known: Iterable[str], prefix: str = "", *, cutoff: float = 0.6
) -> str | None:
    """Return the known name that is most like one, with a prefix; None where none is alike.

    Two letters in the wrong order are one edit: `tahn` is nearer to `tanh` than to `tan`.
    """
    import difflib  # only a mistake pays for it

    known = list(known)
    swapped = {name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(len(name) - 1)}
    one_edit = [k for k in known if k in swapped]
    # `int` is not like `Point`.
    long = [k for k in known if 3 * len(k) >= 2 * len(name) or name.startswith(k)]
    found = one_edit or difflib.get_close_matches(name, long, 1, cutoff)
    return prefix + found[0] if found else None


def nearest_in(namespace: object, name: str, prefix: str = "") -> str | None:
    """Return the name that is most like one in a namespace, which lists its groups in `__groups__`:
    `random.uniform` for `random_uniform` and `uniform`. None where none is alike."""
    for group in getattr(namespace, "__groups__", ()):
        members = dir(getattr(namespace, group))
        for member in (name.removeprefix(f"{group}_"), name):
            if member in members:
                return f"{prefix}{group}.{member}"
    return nearest(name, dir(namespace), prefix)


def did_you_mean(near: str | None) -> str | None:
    """Return the help `did you mean NAME?`; None without a name."""
    return None if near is None else f"did you mean `{near}`?"
