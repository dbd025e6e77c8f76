from __future__ import annotations

from dataclasses import dataclass

from pyrelay import relay


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@dataclass(frozen=True)
class Name:
    text: str


@dataclass(frozen=True)
class Number:
    value: float


Word = Name | Number


@relay
def show(w: Word) -> str:
    match w:
        case Name(x) | Number(x):
            return f"{x}"
