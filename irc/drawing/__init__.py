"""Drawing boxes and arrows: a layered layout, and SVG that needs no other program.

It knows nothing of graphs of a model: `irc.ir.drawing` and `irc.alias.explain` say what their pictures show.
"""

from irc.drawing.svg import Arrow, Box, Picture, to_svg

__all__ = ["Arrow", "Box", "Picture", "to_svg"]
