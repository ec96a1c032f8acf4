"""Which strength to use: paths, cross-validation, the strength that the noise asks for."""

from .path import Path as Path
from .path import path as path
