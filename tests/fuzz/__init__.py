"""Random programs run on real memory, against the alias analysis: ``make fuzz N=20000 SEED=1``."""
