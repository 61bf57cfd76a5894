"""Work on several threads: a pool of workers, and the threads of NumPy's BLAS."""
