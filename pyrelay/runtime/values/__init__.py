"""Run-time values, and their forms inside and outside of compiled code."""
