"""Values for the inputs of a model, made up from a seed."""
