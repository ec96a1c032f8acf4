"""The method that is taken where none is named."""
