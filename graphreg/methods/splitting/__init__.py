"""Methods that split losses from penalties: fixed-point maps, and what makes them faster."""
