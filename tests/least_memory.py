"""The least memory that a call can do with, by what its refusals name."""

import re

from treewright.errors import InputError

SMALLEST = 64
NAMED = re.compile(
    r"need at least ([\d,]+) \([\d,]+ MiB\); use a higher limit or (a higher threshold|fewer columns)$"
)


def with_least_memory(call):
    """Return the first limit that `call` takes, from the smallest on, and what it returns."""
    limit = SMALLEST
    while True:
        try:
            return limit, call(limit)
        except InputError as error:
            named = int(NAMED.search(str(error))[1].replace(",", ""))
            assert named > limit
            limit = named
