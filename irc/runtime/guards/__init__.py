"""What a run may use of steps, memory and time."""
