"""Points and flows moved to where every constraint and every balance holds."""
