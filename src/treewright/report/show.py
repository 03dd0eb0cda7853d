"""Formatting of values in table cells."""

SIGNIFICANT = 0.05
MINUTE, HOUR, DAY = 60, 3600, 86400

score = "{:.2f}".format
"""Percent."""
difference = "{:+.2f}".format
"""A difference between scores."""
count = "{:,}".format
"""A count."""
number = "{:g}".format
"""A number without trailing zeros."""
tenth = "{:,.1f}".format
"""A number with one decimal."""
three = "{:.3g}".format
"""A number with three significant digits."""
whole = "{:,.0f}".format
"""A number without decimals."""


def p_value(value: float) -> str:
    """Format a p-value, with a star if it is significant."""
    return f"{value:.4f} {'*' if value < SIGNIFICANT else ' '}"


def time(seconds: float) -> str:
    """Format a time in a suitable unit.

    Examples
    --------
    >>> time(8), time(754), time(130_000)
    ('8.0 s', '12.6 min', '36.1 h')
    """
    units = ((DAY, "days", 3 * DAY), (HOUR, "h", 2 * HOUR), (MINUTE, "min", 2 * MINUTE), (1, "s", 0))
    size, name = next((size, name) for size, name, least in units if seconds >= least)
    return f"{seconds / size:.1f} {name}"


def memory(n_bytes: int) -> str:
    """Format bytes in GiB."""
    return f"{n_bytes / (1 << 30):.2f} GiB"
