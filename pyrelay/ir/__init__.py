"""The typed functional IR: types, sizes, expressions, operators, text, and walks over them."""
