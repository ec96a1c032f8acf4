"""What every room stands on: checks, messages, files, the clock, memory, display."""
