"""What the papers prove, computed on the user's problem: strengths, recovery, spectra, bounds, mixing."""
