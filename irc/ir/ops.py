"""The former place of `irc.ops`, for packages that still import it."""

raise ImportError("irc.ir.ops is irc.ops now: register operators with irc.ops.register")
