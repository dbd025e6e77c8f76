"""Cotangents of each type, and how they are added."""
