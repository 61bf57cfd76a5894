"""Goldens: what programs compute on one commit, kept in a file that later commits are compared with.

``python -m benchmarks.goldens record FILE`` and ``compare FILE``; nothing but irc's public API is used.
"""
