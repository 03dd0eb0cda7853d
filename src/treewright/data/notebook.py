"""Drawings of trees in notebooks and terminals."""


class Drawn:
    """A tree that a notebook displays as a drawing.

    The subpackage `treewright.drawing` depends on this one. It is imported here, and only here, when a
    notebook or a terminal requests a drawing.
    """

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        from treewright.drawing.pictures import notebook_svg

        return notebook_svg(self)  # type: ignore[arg-type]

    def _draw_text(self) -> str:
        from treewright.drawing.pictures import draw

        return draw(self) or ""  # type: ignore[arg-type]
