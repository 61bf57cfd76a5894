"""Where time and memory of a run go."""
