"""Pictures of trees in notebooks."""


class Drawn:
    """A tree that a notebook shows as a picture.

    Pictures are made of trees, so that `treewright.drawing` stands above this subpackage. It is imported
    here, and only here, when a notebook asks for a picture.
    """

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        from treewright.drawing.pictures import notebook_svg

        return notebook_svg(self)  # type: ignore[arg-type]
