"""Coercions: values become optionals, lists or numbers of a dtype where they flow into them."""
