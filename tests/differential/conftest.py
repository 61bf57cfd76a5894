"""These tests compare with PyTorch: without it there is nothing to do."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
