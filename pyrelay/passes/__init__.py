"""IR to IR: inference, normal form, gradients, simplification. Nothing here runs a program."""
