"""Alias analysis: which values may share memory, and which nodes write it.

>>> from irc.alias import analyze
>>> db = analyze(graph)
>>> db.may_alias(graph.value("x"), graph.value("y"))
"""

from __future__ import annotations

from irc.alias.builder import AliasDbBuilder, Analyses, analyze
from irc.alias.db import AliasDb
from irc.alias.facts import Kind, Location
from irc.alias.memory_types import overlap
from irc.alias.rules import register as register_rule

__all__ = ["AliasDb", "AliasDbBuilder", "Analyses", "Kind", "Location", "analyze", "overlap", "register_rule"]
