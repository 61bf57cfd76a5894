"""Control flow: branches, loops, scans, calls."""
