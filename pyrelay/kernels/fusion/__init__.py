"""Groups of tensor code, found and taken out as functions."""
