"""Values as cells of tables show them."""

SIGNIFICANT = 0.05
MINUTE, HOUR, DAY = 60, 3600, 86400

score = "{:.2f}".format
"""Percent."""
difference = "{:+.2f}".format
"""A difference of scores."""
count = "{:,}".format
"""How many."""
number = "{:g}".format
"""A number without zeros that say nothing."""
tenth = "{:,.1f}".format
"""A number with one decimal."""
three = "{:.3g}".format
"""A number with three digits."""
whole = "{:,.0f}".format
"""A number without decimals."""


def p_value(value: float) -> str:
    """Show a p-value, with a star if it is small."""
    return f"{value:.4f} {'*' if value < SIGNIFICANT else ' '}"


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
