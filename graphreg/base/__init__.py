"""The ground of every room: checks, messages, files, the clock, memory, display."""
