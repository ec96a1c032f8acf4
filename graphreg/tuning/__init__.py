"""Which strength to use: paths, cross-validation, the strength that the noise asks for."""

from .noise import NoiseStrength as NoiseStrength
from .noise import noise_strength as noise_strength
