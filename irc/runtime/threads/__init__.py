"""Work on several threads: a pool of workers, units of independent branches."""
