"""A limit to the memory that mining takes: what is held counts, and what would go beyond it is refused."""

import ctypes
import sys

from treewright._naming import named
from treewright.errors import InputError

MEBIBYTE = 1 << 20
ALLOWANCE = 8
"""One part in so many of a limit is left to the allocator, which rounds up."""


class Memory:
    """The bytes that mining may take, and what is held of them.

    Parameters
    ----------
    limit : int, optional
        Without it, any number.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._held: dict[str, int] = {}

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.limit is not None

    @property
    def free(self) -> int:
        """What is left to take; only where there is a limit."""
        limit = self.limit or 0
        return limit - limit // ALLOWANCE - sum(self._held.values())

    def hold(self, what: str, n_bytes: int) -> None:
        """Note how much something takes from now on."""
        self._held[what] = n_bytes

    def require(self, what: str, n_bytes: int, *, remedy: str = "a higher threshold") -> None:
        """Refuse what there is no room for, with the limit that it needs, or what else would help."""
        if self.limit is None or n_bytes <= self.free:
            return
        needed = -(-(n_bytes + sum(self._held.values())) * ALLOWANCE // (ALLOWANCE - 1))
        raise InputError(
            f"{named('memory_limit')} is {self.limit:,} bytes; {what} need at least {needed:,} "
            f"({-(-needed // MEBIBYTE):,} MiB) or {remedy}"
        )

    def trim(self) -> None:
        """Where there is a limit, let the allocator of Linux return freed memory to the system."""
        # Each thread keeps what it has freed. Mining 40,000 rows with 4 threads and a limit of 48 MiB takes
        # 34 to 40 MiB, without this call 91 to 93 MiB; with one thread and 24 MiB, 24.0 and 25.7 MiB.
        if self.is_limited and sys.platform == "linux":
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is not None:
                trim(0)
