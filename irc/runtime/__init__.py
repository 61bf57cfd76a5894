"""The runtime: lowering graphs to plans, running them on NumPy, compiled models and their files."""
