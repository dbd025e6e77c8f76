"""A call of an operator, as the declaration of the operator determines it."""
