"""The version of the library."""

__version__ = "1.0.0rc1"
