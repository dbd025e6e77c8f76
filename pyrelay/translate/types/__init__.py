"""Annotations as types."""
