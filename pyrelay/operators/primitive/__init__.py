"""Operators that backends implement, each with a type rule and a derivative of its own."""
