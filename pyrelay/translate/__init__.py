"""Python to IR: sources, the fence, scopes, annotations, statements, expressions."""
