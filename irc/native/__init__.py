"""Machine code for fusion groups and loops, compiled with llvmlite (the extra ``native``)."""
