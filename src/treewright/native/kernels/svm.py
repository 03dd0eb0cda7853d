"""Inner loops of a decomposition solver for support vector machines (Joachims 1999; Fan et al. 2005).

The dual problem is to find values v that sum to zero, each within its bounds, with minimal v K v / 2 + linear
v. Its gradient is K v + linear. At the optimum, there is an intercept b such that the gradient is -b for
values between their bounds, at least -b at a lower bound, and at most -b at an upper bound. A classifier has
one value per example, with the sign of its class; a regressor has two.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place

SMALLEST_CURVATURE = 1e-12
"""Minimum curvature; replaces zero or negative curvature between examples that the kernel cannot
distinguish."""
STRIP = 1024
"""Number of scores that stay in the processor's cache while kernel rows are added to them."""


class DualProblem(NamedTuple):
    """Variable i belongs to example `rows[i]` and lies between `low[i]` and `high[i]`."""

    rows: np.ndarray
    linear: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Dual(NamedTuple):
    """The value of each variable, and K v for each example."""

    values: np.ndarray
    scores: np.ndarray


class Heaps(NamedTuple):
    """Variables to add to a working set: those to increase in the first half, the others in the second."""

    variables: np.ndarray
    keys: np.ndarray


class Working(NamedTuple):
    """A working set: variables that are optimised while the others are fixed.

    `diagonal` is the kernel value of each example with itself; the other arrays hold the entries of these
    variables.
    """

    variables: np.ndarray
    rows: np.ndarray
    diagonal: np.ndarray
    gradient: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray


@in_place
def measure(problem, dual, slots):
    """Measure how far the optimality conditions are violated.

    Returns the largest -gradient of the variables that can increase and the smallest -gradient of the
    variables that can decrease, first over all variables, then over those whose kernel row is available (a
    slot of 0 or more).
    """
    rise, fall, ready_rise, ready_fall = -np.inf, np.inf, -np.inf, np.inf
    for variable in range(problem.rows.size):
        row = problem.rows[variable]
        slope = -dual.scores[row] - problem.linear[variable]
        if dual.values[variable] < problem.high[variable]:
            rise = max(rise, slope)
            if slots[row] >= 0:
                ready_rise = max(ready_rise, slope)
        if dual.values[variable] > problem.low[variable]:
            fall = min(fall, slope)
            if slots[row] >= 0:
                ready_fall = min(ready_fall, slope)
    return rise, fall, ready_rise, ready_fall


@in_place
def find_intercept(problem, dual):
    """Return the intercept: the mean -gradient of the values that are between their bounds.

    If there are no such values, the middle of the range of possible intercepts is returned.
    """
    total, n_free = 0.0, 0
    rise, fall = -np.inf, np.inf
    for variable in range(problem.rows.size):
        slope = -dual.scores[problem.rows[variable]] - problem.linear[variable]
        can_rise = dual.values[variable] < problem.high[variable]
        can_fall = dual.values[variable] > problem.low[variable]
        if can_rise:
            rise = max(rise, slope)
        if can_fall:
            fall = min(fall, slope)
        if can_rise and can_fall:
            total += slope
            n_free += 1
    return total / n_free if n_free else (rise + fall) / 2


@in_place
def choose_new(problem, dual, slots, rise, fall, heaps):
    """Fill the most violating variables among those without a kernel row, and return their number.

    A variable violates the optimality conditions if it can increase and its -gradient is above `fall`, or if
    it can decrease and its -gradient is below `rise`.
    """
    half = heaps.variables.size // 2
    n_rising, n_falling = 0, 0
    for variable in range(problem.rows.size):
        row = problem.rows[variable]
        if slots[row] < 0:
            slope = -dual.scores[row] - problem.linear[variable]
            if slope > fall and dual.values[variable] < problem.high[variable]:
                n_rising = push(heaps, 0, n_rising, slope, variable)
            if slope < rise and dual.values[variable] > problem.low[variable]:
                n_falling = push(heaps, half, n_falling, -slope, variable)
    for place in range(n_falling):
        heaps.variables[n_rising + place] = heaps.variables[half + place]
    return n_rising + n_falling


@in_place
def push(heaps, begin, size, key, variable):
    """Push a variable onto a min-heap that keeps only the largest keys; return its size."""
    keys, variables = heaps.keys[begin:], heaps.variables[begin:]
    if size < heaps.keys.size // 2:
        place = size
        while place > 0 and keys[(place - 1) // 2] > key:
            above = (place - 1) // 2
            keys[place], variables[place] = keys[above], variables[above]
            place = above
        size += 1
    elif key > keys[0]:
        place = 0
        while 2 * place + 1 < size:
            below = 2 * place + 1
            if below + 1 < size and keys[below + 1] < keys[below]:
                below += 1
            if keys[below] >= key:
                break
            keys[place], variables[place] = keys[below], variables[below]
            place = below
    else:
        return size
    keys[place], variables[place] = key, variable
    return size


@in_place
def load_working(problem, dual, slots, rise, fall, kept, working):
    """Load the violating variables whose kernel rows are available; return their number.

    Values that are at the correct bound for every intercept from `fall` to `rise` are left out.
    """
    size = 0
    for variable in range(problem.rows.size):
        row = problem.rows[variable]
        if slots[row] >= 0:
            gradient = dual.scores[row] + problem.linear[variable]
            value, low, high = dual.values[variable], problem.low[variable], problem.high[variable]
            if (value < high and -gradient >= fall) or (value > low and -gradient <= rise):
                working.variables[size] = variable
                working.rows[size] = row
                working.diagonal[size] = kept[slots[row], row]
                working.gradient[size] = gradient
                working.values[size] = value
                working.low[size] = low
                working.high[size] = high
                size += 1
    return size


@in_place
def optimize(working, size, slots, kept, tolerance, max_steps):
    """Optimise pairs of values until no violation exceeds the tolerance; return the number of steps.

    A pair consists of the value with the largest -gradient among those that can increase, and the value whose
    decrease improves the objective most.
    """
    first = find_rising(working, size)
    for step in range(max_steps):
        if first < 0:
            return step
        row_first = kept[slots[working.rows[first]]]
        second, violation = find_falling(working, size, first, row_first)
        if violation < tolerance:
            return step
        row_second = kept[slots[working.rows[second]]]
        change = move_pair(working, first, second, row_first)
        first = update_gradient(working, size, change, row_first, row_second)
    return max_steps


@in_place
def find_rising(working, size):
    """Return the value with the largest -gradient among those that can increase, or -1."""
    first, rise = -1, -np.inf
    for place in range(size):
        if working.values[place] < working.high[place] and -working.gradient[place] > rise:
            first, rise = place, -working.gradient[place]
    return first


@in_place
def find_falling(working, size, first, row_first):
    """Return the value whose decrease improves the objective most, and the largest violation."""
    rise, own = -working.gradient[first], working.diagonal[first]
    second, largest, best = -1, 0.0, -1.0
    for place in range(size):
        gap = rise + working.gradient[place]
        if gap > 0 and working.values[place] > working.low[place]:
            largest = max(largest, gap)
            curvature = own + working.diagonal[place] - 2 * np.float64(row_first[working.rows[place]])
            gain = gap * gap / max(curvature, SMALLEST_CURVATURE)
            if gain > best:
                second, best = place, gain
    return second, largest


@in_place
def move_pair(working, first, second, row_first):
    """Increase one value and decrease another by the best amount within their bounds; return the amount."""
    values = working.values
    shared = np.float64(row_first[working.rows[second]])
    curvature = max(working.diagonal[first] + working.diagonal[second] - 2 * shared, SMALLEST_CURVATURE)
    room_above = working.high[first] - values[first]
    room_below = values[second] - working.low[second]
    step = min((working.gradient[second] - working.gradient[first]) / curvature, room_above, room_below)
    values[first] = working.high[first] if step == room_above else values[first] + step
    values[second] = working.low[second] if step == room_below else values[second] - step
    return step


@in_place
def update_gradient(working, size, change, row_first, row_second):
    """Update the gradient after a change of two values, and return the result of `find_rising`."""
    first, rise = -1, -np.inf
    for place in range(size):
        row = working.rows[place]
        gradient = working.gradient[place] + change * (
            np.float64(row_first[row]) - np.float64(row_second[row])
        )
        working.gradient[place] = gradient
        if -gradient > rise and working.values[place] < working.high[place]:
            first, rise = place, -gradient
    return first


@in_place
def store_working(working, size, slots, kept, dual, changed):
    """Store the values of a working set, and add the changes to the scores of all examples.

    `changed` is filled with the examples of values that have changed; returns their number.
    """
    n_changed = 0
    for place in range(size):
        variable = working.variables[place]
        change = working.values[place] - dual.values[variable]
        if change != 0:
            dual.values[variable] = working.values[place]
            changed[n_changed] = working.rows[place]
            working.gradient[n_changed] = change
            n_changed += 1
    for begin in range(0, dual.scores.size, STRIP):
        strip = dual.scores[begin : begin + STRIP]
        for place in range(n_changed):
            row = kept[slots[changed[place]], begin : begin + STRIP]
            for at in range(strip.size):
                strip[at] += working.gradient[place] * row[at]
    return n_changed
