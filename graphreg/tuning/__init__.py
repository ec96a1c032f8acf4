"""Which strength to use: paths, cross-validation, the strength that the noise asks for."""

from .chosen import CrossValidation
from .cross_validation import cross_validate

__all__ = ["CrossValidation", "cross_validate"]
