"""Values as cells of tables show them."""

SIGNIFICANT = 0.05
MINUTE, HOUR, DAY = 60, 3600, 86400


def score(score: float) -> str:
    """Show percent."""
    return f"{score:.2f}"


def difference(points: float) -> str:
    """Show a difference of scores."""
    return f"{points:+.2f}"


def p_value(value: float) -> str:
    """Show a p-value, with a star if it is small."""
    return f"{value:.4f} {'*' if value < SIGNIFICANT else ' '}"


def count(count: int) -> str:
    """Show how many."""
    return f"{count:,}"


def number(value: float) -> str:
    """Show a number without zeros that say nothing."""
    return f"{value:g}"


def tenth(value: float) -> str:
    """Show a number with one decimal."""
    return f"{value:,.1f}"


def three(value: float) -> str:
    """Show a number with three digits."""
    return f"{value:.3g}"


def whole(value: float) -> str:
    """Show a number without decimals."""
    return f"{value:,.0f}"


def time(seconds: float) -> str:
    """Show a time in the unit that suits it.

    Examples
    --------
    >>> time(8), time(754), time(130_000)
    ('8.0 s', '12.6 min', '36.1 h')
    """
    units = ((DAY, "days", 3 * DAY), (HOUR, "h", 2 * HOUR), (MINUTE, "min", 2 * MINUTE), (1, "s", 0))
    size, name = next((size, name) for size, name, least in units if seconds >= least)
    return f"{seconds / size:.1f} {name}"


def memory(n_bytes: int) -> str:
    """Show bytes in GiB."""
    return f"{n_bytes / (1 << 30):.2f} GiB"
