"""What is imported when it is first needed: layers may need what those above them register, and know nothing of."""

_MODULES: list[str] = []


def put_off(module: str) -> None:
    """Leave it to `complete` to import ``module``."""
    _MODULES.append(module)


def complete() -> None:
    """Import what has been put off."""
    from importlib import import_module

    for module in _MODULES:  # again, if another thread has only begun: it is waited for
        import_module(module)
