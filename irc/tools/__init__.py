"""Tools around a model: made-up inputs, checks against other runtimes, and what is known of an operator."""
