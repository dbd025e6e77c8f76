"""Source places, diagnostics as data, the catalogue of mistakes, and their rendering."""
