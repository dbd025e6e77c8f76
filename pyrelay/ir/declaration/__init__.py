"""The shape of an operator's declaration: signature, type rule, meaning, derivative."""
