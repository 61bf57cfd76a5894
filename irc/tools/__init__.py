"""Tools around a model: random inputs, checks against other runtimes, operator facts."""
