"""Rewrites that preserve values and make programs cheaper to run."""
