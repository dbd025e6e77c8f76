"""Products, inverses, determinants and factors of matrices."""
