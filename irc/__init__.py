"""irc: a compiler toolkit for a graph IR, with alias analysis at its heart.

Importing it imports next to nothing, not even ``typing``: names are looked up when they are first needed. So the
command can be interrupted from its first line on without a traceback, and prints its version at once.
"""

from irc.support.lazy import lazy_getattr, provide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irc import alias as alias
    from irc import backend as backend
    from irc import check as check
    from irc import demo as demo
    from irc import frontend as frontend
    from irc import fuser as fuser
    from irc import ir as ir
    from irc import passes as passes
    from irc import runtime as runtime
    from irc.compiler import compile as compile
    from irc.compiler import export as export
    from irc.errors import Error as Error
    from irc.runtime.limits import Limits as Limits
    from irc.runtime.model import CompiledModel as CompiledModel
    from irc.runtime.model import Options as Options
    from irc.runtime.model import load as load
    from irc.runtime.session import Session as Session
    from irc.support.remarks import Remark as Remark
    from irc.tools.bisect import bisect as bisect
    from irc.tools.comparison import diff as diff
    from irc.tools.extract import extract as extract
    from irc.tools.inspection import inspect as inspect

__version__ = "0.1.0"

__all__ = ["CompiledModel", "Error", "Limits", "Options", "Remark", "Session", "__version__", "compile", "export"]
__all__ += ["bisect", "diff", "extract", "inspect", "load"]

__getattr__, __dir__ = lazy_getattr(
    __name__,
    {
        "CompiledModel": "irc.runtime.model",
        "Error": "irc.errors",
        "Limits": "irc.runtime.limits",
        "Options": "irc.runtime.model",
        "Remark": "irc.support.remarks",
        "Session": "irc.runtime.session",
        "bisect": "irc.tools.bisect",
        "compile": "irc.compiler",
        "diff": "irc.tools.comparison",
        "export": "irc.compiler",
        "extract": "irc.tools.extract",
        "inspect": "irc.tools.inspection",
        "load": "irc.runtime.model",
        **dict.fromkeys(("alias", "backend", "check", "demo", "errors"), ""),
        **dict.fromkeys(("frontend", "fuser", "ir", "passes", "runtime"), ""),
    },
)

provide("evaluate", "irc.runtime.plan")
provide("fuse", "irc.fuser.fuse")
provide("schemas", "irc.ops.schema_rules")
provide("check", "irc.tools.check.models")
provide("costs", "irc.tools.costs")
provide("explain", "irc.tools.explain")
provide("report-text", "irc.tools.report_text")
