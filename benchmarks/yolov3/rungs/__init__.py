"""The designs that a fast alias analysis replaced, as plain implementations: rungs of a ladder, and oracles.

They differ in how facts are indexed and searched, and in when the analysis is
built. What operators do to memory, and the questions that are asked, are
irc's own: so all must give the same answers.
"""
