"""How far estimates are from the truth."""
