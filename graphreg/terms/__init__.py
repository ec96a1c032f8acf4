"""The terms that a model is a sum of."""
