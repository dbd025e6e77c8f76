"""The entry of a program: its signature, the ranks it takes, the checks of arguments, autograd."""
