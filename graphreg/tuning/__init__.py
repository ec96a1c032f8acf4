"""Which strength to use: paths, cross-validation, the strength that the noise asks for."""
