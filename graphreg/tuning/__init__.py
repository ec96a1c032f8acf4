"""Which strength to use: paths, cross-validation, the strength that the noise asks for."""

from .chosen import CrossValidation as CrossValidation
from .cross_validation import cross_validate as cross_validate
from .path import Path as Path
from .path import path as path
