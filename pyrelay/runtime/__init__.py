"""Running programs: evaluator, host code, values, models, dispatch. Owns torch."""
