"""Python to IR: sources, the subset, scopes, annotations, statements, expressions."""
