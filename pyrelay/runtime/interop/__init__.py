"""Autograd, export and files."""
