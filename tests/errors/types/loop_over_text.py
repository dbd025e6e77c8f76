"""A loop over the characters of a string."""

from pyrelay import Float, relay


@relay
def vowels(text: str) -> Float:
    found = 0.0
    for letter in text:
        found += 1.0
    return found
