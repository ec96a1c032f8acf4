"""The choice of strengths: paths, cross-validation, the strength that the noise asks for."""

from .chosen import CrossValidation as CrossValidation
from .cross_validation import cross_validate as cross_validate
from .noise import NoiseStrength as NoiseStrength
from .noise import noise_strength as noise_strength
from .path import Path as Path
from .path import path as path
from .scoring import is_probabilistic as is_probabilistic
from .scoring import node_scores as node_scores
from .warm import usual_method as usual_method
