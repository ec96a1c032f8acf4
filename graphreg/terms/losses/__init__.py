"""The losses, one file per concept."""
