"""Names of conjunctions; conditions on the same numeric column are merged into one interval."""

import math
import re
from collections.abc import Iterable
from functools import lru_cache

from treewright.mining.binning import Interval

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
ONE_SIDED = re.compile(rf"(?P<negated>not )?(?P<column>.+) (?P<sign>>=|<) (?P<number>{NUMBER})")
TWO_SIDED = re.compile(rf"(?P<column>.+) in \[(?P<low>{NUMBER}), (?P<high>{NUMBER})\)")


def format_number(number: float) -> str:
    """Format a number for display.

    Examples
    --------
    >>> format_number(30.0), format_number(0.25), format_number(1e6)
    ('30', '0.25', '1000000')
    """
    return f"{number:.15g}"


def name_interval(column: str, interval: Interval) -> str:
    """Return an interval as a condition on a column.

    Examples
    --------
    >>> name_interval("age", Interval(30, 42)), name_interval("age", Interval(65, float("inf")))
    ('age in [30, 42)', 'age >= 65')
    """
    low, high = interval
    if math.isinf(high):
        return f"{column} >= {format_number(low)}"
    if math.isinf(low):
        return f"{column} < {format_number(high)}"
    return f"{column} in [{format_number(low)}, {format_number(high)})"


@lru_cache(maxsize=1 << 16)
def parse_interval(name: str) -> tuple[str, Interval] | None:
    """Return the column and the interval of a numeric condition; None for any other name."""
    if (found := ONE_SIDED.fullmatch(name)) is not None:
        number = float(found["number"])
        is_low = (found["sign"] == ">=") != bool(found["negated"])
        return found["column"], Interval(number, math.inf) if is_low else Interval(-math.inf, number)
    if (found := TWO_SIDED.fullmatch(name)) is not None:
        return found["column"], Interval(float(found["low"]), float(found["high"]))
    return None


def merge_intervals(names: Iterable[str]) -> list[str]:
    """Merge the conditions of a conjunction, so that each numeric column has one interval.

    Examples
    --------
    >>> merge_intervals(["age >= 30", "city = Oslo", "age < 42"])
    ['age in [30, 42)', 'city = Oslo']
    """
    merged: dict[str, Interval | None] = {}
    columns: dict[str, str] = {}
    names = list(names)
    for name in names:
        parsed = parse_interval(name)
        if parsed is None:
            merged[name] = None
            continue
        column, interval = parsed
        key = columns.setdefault(column, name)
        known = merged.get(key)
        merged[key] = (
            Interval(max(known.low, interval.low), min(known.high, interval.high)) if known else interval
        )
        if known and not merged[key].low < merged[key].high:  # type: ignore[union-attr]
            return names  # never true together; kept as given
    by_key = {key: column for column, key in columns.items()}
    return [
        name if interval is None else name_interval(by_key[name], interval)
        for name, interval in merged.items()
    ]


def source_column(name: str) -> str:
    """Return the table column that a condition refers to, or the name itself if there is none.

    Examples
    --------
    >>> source_column("age in [30, 42)"), source_column("not city = Oslo"), source_column("word=bank")
    ('age', 'city', 'word=bank')
    """
    name = name.removeprefix("not ")
    parsed = parse_interval(name)
    if parsed is not None:
        return parsed[0]
    return re.sub(r"(?: = .*| is missing| is rare)$", "", name)
