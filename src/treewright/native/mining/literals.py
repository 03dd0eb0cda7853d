"""Conjunctions of literals (features that are present or absent), scored by the residuals of a model.

A literal is the number of an item that must be present, or `~item` for an item that must be absent. The score
of a conjunction is its squared score statistic, (sum of residuals)² / (sum of squared residuals + ridge),
over the rows where it is true; with several outputs, it is the largest of their scores.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined


class SortedRows(NamedTuple):
    """Rows of items in ascending order, and for each item its rows and the position after it in each row."""

    indptr: np.ndarray
    items: np.ndarray
    item_indptr: np.ndarray
    item_rows: np.ndarray
    item_starts: np.ndarray


class LiteralLimits(NamedTuple):
    """The limits for conjunctions.

    Attributes
    ----------
    score : float
        Minimum score.
    margin : float
        Minimum difference between the score of a conjunction and that of the conjunction it extends.
    n_rows : int
        Minimum number of rows where a conjunction is true.
    ridge : float
    first_negated : int
        Items from this number on may also be negated.
    """

    score: float
    margin: float
    n_rows: int
    ridge: float
    first_negated: int


class Totals(NamedTuple):
    """Sums over the rows of each item, zero between calls, and the items with non-zero sums.

    `sums[item]` has the sums of the residuals of each output, followed by the sums of their squares.
    """

    sums: np.ndarray
    n_rows: np.ndarray
    n_after: np.ndarray
    met: np.ndarray
    own: np.ndarray


class Parents(NamedTuple):
    """Conjunctions of items and their numbers of rows."""

    items: np.ndarray
    n_rows: np.ndarray


class LiteralPlaces(NamedTuple):
    """The rows where conjunctions are true, and the position after the last item in each row.

    `rows`, `starts` and `sizes` are for each prefix of a conjunction. `spread_rows` and `spread_starts` are
    for conjunctions that differ only in the last item; the places for a last item start at `begins[item]`,
    which is -1 for all other items.
    """

    rows: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    spread_rows: np.ndarray
    spread_starts: np.ndarray
    begins: np.ndarray


class Scored(NamedTuple):
    """Buffers for conjunctions: parents, last literals and scores."""

    parents: np.ndarray
    literals: np.ndarray
    scores: np.ndarray


class Extendable(NamedTuple):
    """Buffers for conjunctions to extend: their numbers of rows and the cost of extending them."""

    parents: np.ndarray
    items: np.ndarray
    n_rows: np.ndarray
    work: np.ndarray
    scores: np.ndarray


class LiteralTally(NamedTuple):
    """The next parent of a search, and the numbers of conjunctions found and counted."""

    next_parent: int
    n_scored: int
    n_extendable: int
    n_counted: int


@inlined
def score_sums(sums, n_outputs, ridge):
    """Return the largest score over outputs, given sums of residuals and of their squares."""
    best = 0.0
    for output in range(n_outputs):
        best = max(best, sums[output] * sums[output] / (sums[n_outputs + output] + ridge))
    return best


@in_place
def extend_literals(parents, span, rows, residuals, rule, places, totals, scored, extendable):
    """Score the extensions of parents by one later item; write those within the limits.

    `parents` are sorted conjunctions of items, with the number of rows of each; parents with the same prefix
    share its places. If `extendable` has size 0, nothing is written to it. Stops before the first parent
    whose extensions might not fit.
    """
    items, n_true = parents
    n_outputs = residuals.shape[1]
    n_scored, n_extendable, n_counted = 0, 0, 0
    order = items.shape[1]
    end_of_group = span[0]
    for parent in range(span[0], span[1]):
        if parent == end_of_group:
            shared = 0
            if parent > span[0]:
                close_group(items, parent, places)
                while shared < order - 1 and items[parent, shared] == items[parent - 1, shared]:
                    shared += 1
            for depth in range(shared, order - 1):
                find_places(items[parent, depth], depth, rows, places)
            end_of_group = spread_places(items, n_true, parent, span[1], rows, places)
        n_met, n_here = count_later(
            places.begins[items[parent, order - 1]], n_true[parent], rows, residuals, places, totals
        )
        if n_scored + 2 * n_met > scored.scores.size or (
            extendable.scores.size > 0 and n_extendable + n_met > extendable.scores.size
        ):
            forget(totals, n_met)
            close_group(items, end_of_group, places)
            return LiteralTally(parent, n_scored, n_extendable, n_counted)
        n_counted += n_here
        wanted = rule.score
        if order > 1:
            wanted = max(wanted, score_sums(totals.own, n_outputs, rule.ridge) + rule.margin)
        for at in range(n_met):
            item = totals.met[at]
            sums = totals.sums[item]
            n_both = totals.n_rows[item]
            if n_both >= rule.n_rows:
                score = score_sums(sums, n_outputs, rule.ridge)
                if score > wanted:
                    n_scored = write_scored(scored, n_scored, parent, item, score)
                if extendable.scores.size > 0 and totals.n_after[item] > 0:
                    extendable.parents[n_extendable] = parent
                    extendable.items[n_extendable] = item
                    extendable.n_rows[n_extendable] = n_both
                    extendable.work[n_extendable] = totals.n_after[item]
                    extendable.scores[n_extendable] = score
                    n_extendable += 1
                if item >= rule.first_negated and n_true[parent] - n_both >= rule.n_rows:
                    score = score_difference(totals.own, sums, n_outputs, rule.ridge)
                    if score > wanted:
                        n_scored = write_scored(scored, n_scored, parent, ~item, score)
        forget(totals, n_met)
    close_group(items, end_of_group, places)
    return LiteralTally(span[1], n_scored, n_extendable, n_counted)


@in_place
def close_group(items, end, places):
    """Reset the places of the conjunctions before `end` that differ only in the last item."""
    order = items.shape[1]
    for parent in range(end - 1, -1, -1):
        for depth in range(order - 1):
            if items[parent, depth] != items[end - 1, depth]:
                return
        places.begins[items[parent, order - 1]] = -1


@inlined
def score_difference(whole, part, n_outputs, ridge):
    """Return the score of the rows in `whole` that are not in `part`, given the sums of both."""
    best = 0.0
    for output in range(n_outputs):
        total = whole[output] - part[output]
        squares = max(0.0, whole[n_outputs + output] - part[n_outputs + output])
        best = max(best, total * total / (squares + ridge))
    return best


@inlined
def write_scored(scored, number, parent, literal, score):
    """Write a conjunction and return the next index."""
    scored.parents[number] = parent
    scored.literals[number] = literal
    scored.scores[number] = score
    return number + 1


@in_place
def find_places(item, depth, rows, places):
    """Find where a conjunction is true, given where the conjunction without its last item is true."""
    n_found = 0
    if depth == 0:
        for place in range(rows.item_indptr[item], rows.item_indptr[item + 1]):
            places.rows[0, n_found] = rows.item_rows[place]
            places.starts[0, n_found] = rows.item_starts[place]
            n_found += 1
    else:
        for place in range(places.sizes[depth - 1]):
            row = places.rows[depth - 1, place]
            position, end = places.starts[depth - 1, place], rows.indptr[row + 1]
            while position < end and rows.items[position] < item:
                position += 1
            if position < end and rows.items[position] == item:
                places.rows[depth, n_found] = row
                places.starts[depth, n_found] = position + 1
                n_found += 1
    places.sizes[depth] = n_found


@in_place
def spread_places(items, n_true, first, end, rows, places):
    """Find the places of all conjunctions that differ from the first only in the last item.

    Returns the end of these conjunctions. `places.begins` is filled with the start of the places of each last
    item.
    """
    order = items.shape[1]
    last, n_before = first, 0
    while last < end:
        for depth in range(order - 1):
            if items[last, depth] != items[first, depth]:
                end = last
        if last < end:
            places.begins[items[last, order - 1]] = n_before
            n_before += n_true[last]
            last += 1
    if order == 1:
        for parent in range(first, end):
            item = items[parent, 0]
            begin = places.begins[item]
            for number in range(n_true[parent]):
                places.spread_rows[begin + number] = rows.item_rows[rows.item_indptr[item] + number]
                places.spread_starts[begin + number] = rows.item_starts[rows.item_indptr[item] + number]
        return end
    for place in range(places.sizes[order - 2]):
        row = places.rows[order - 2, place]
        for position in range(places.starts[order - 2, place], rows.indptr[row + 1]):
            to = places.begins[rows.items[position]]
            if to >= 0:
                places.spread_rows[to] = row
                places.spread_starts[to] = position + 1
                places.begins[rows.items[position]] = to + 1
    for parent in range(first, end):
        places.begins[items[parent, order - 1]] -= n_true[parent]
    return end


@in_place
def count_later(begin, size, rows, residuals, places, totals):
    """Sum the residuals for each item after a conjunction; return the numbers of items and of entries."""
    n_outputs = residuals.shape[1]
    n_met, n_counted = 0, 0
    sums, n_rows, n_after = totals.sums, totals.n_rows, totals.n_after
    for output in range(2 * n_outputs):
        totals.own[output] = 0.0
    for place in range(begin, begin + size):
        row = places.spread_rows[place]
        end = rows.indptr[row + 1]
        for output in range(n_outputs):
            totals.own[output] += residuals[row, output]
            totals.own[n_outputs + output] += residuals[row, output] * residuals[row, output]
        begin_here = places.spread_starts[place]
        n_counted += end - begin_here
        if n_outputs == 1:
            value = residuals[row, 0]
            square = value * value
            for position in range(begin_here, end):
                item = rows.items[position]
                if n_rows[item] == 0:
                    totals.met[n_met] = item
                    n_met += 1
                n_rows[item] += 1
                n_after[item] += end - position - 1
                sums[item, 0] += value
                sums[item, 1] += square
            continue
        for position in range(begin_here, end):
            item = rows.items[position]
            if n_rows[item] == 0:
                totals.met[n_met] = item
                n_met += 1
            n_rows[item] += 1
            n_after[item] += end - position - 1
            for output in range(n_outputs):
                value = residuals[row, output]
                sums[item, output] += value
                sums[item, n_outputs + output] += value * value
    return n_met, n_counted


@in_place
def forget(totals, n_met):
    """Reset the sums of items to zero."""
    for at in range(n_met):
        item = totals.met[at]
        totals.n_rows[item] = 0
        totals.n_after[item] = 0
        for number in range(totals.sums.shape[1]):
            totals.sums[item, number] = 0.0


class LiteralSums(NamedTuple):
    """Sums over all rows, and over the rows of items, of pairs, and of triples with a given first item.

    The first index is 0 for sums of residuals and 1 for sums of their squares.
    """

    whole: np.ndarray
    singles: np.ndarray
    pairs: np.ndarray
    triples: np.ndarray


@inlined
def score_sum(total, squares, ridge):
    """Return the score of a sum of residuals."""
    return total * total / (max(0.0, squares) + ridge)


@in_place
def score_pairs(sums, rule, pair_scores, scored):
    """Fill `pair_scores` for all pairs of literals; return the number of pairs written to `scored`.

    The first index of `pair_scores` is 1 if the first item is absent, plus 2 if the second is. Only pairs
    within the limits are written to `scored`, as long as there is space.
    """
    whole, singles, pairs, _ = sums
    n_scored = 0
    for one in range(singles.shape[1]):
        for other in range(one + 1, singles.shape[1]):
            both, square = pairs[0, one, other], pairs[1, one, other]
            pair_scores[0, one, other] = score_sum(both, square, rule.ridge)
            pair_scores[1, one, other] = score_sum(
                singles[0, other] - both, singles[1, other] - square, rule.ridge
            )
            pair_scores[2, one, other] = score_sum(
                singles[0, one] - both, singles[1, one] - square, rule.ridge
            )
            pair_scores[3, one, other] = score_sum(
                whole[0] - singles[0, one] - singles[0, other] + both,
                whole[1] - singles[1, one] - singles[1, other] + square,
                rule.ridge,
            )
            for signs in range(4):
                score = pair_scores[signs, one, other]
                if score > rule.score and n_scored < scored.scores.size:
                    parent = one * 2 + (signs & 1)
                    last = ~other if signs & 2 else other
                    n_scored = write_scored(scored, n_scored, parent, last, score)
    return n_scored


@in_place
def score_triples(item, sums, rule, pair_scores, values, scored, n_scored):
    """Score all triples of literals with a given first item; return the number written to `scored` so far.

    `values` is scratch space for the sums of the eight triples of three items. The parent of a triple is
    written as four times the number of the pair of its first two items, plus 1 if the first item is absent,
    plus 2 if the second is.
    """
    whole, singles, pairs, triples = sums
    n_items = singles.shape[1]
    for second in range(item + 1, n_items):
        for third in range(second + 1, n_items):
            for kind in range(2):
                all_three = triples[kind, second - item - 1, third - item - 1]
                ij, ik, jk = pairs[kind, item, second], pairs[kind, item, third], pairs[kind, second, third]
                i, j, k = singles[kind, item], singles[kind, second], singles[kind, third]
                values[kind, 0] = all_three
                values[kind, 1] = jk - all_three
                values[kind, 2] = ik - all_three
                values[kind, 3] = k - ik - jk + all_three
                values[kind, 4] = ij - all_three
                values[kind, 5] = j - ij - jk + all_three
                values[kind, 6] = i - ij - ik + all_three
                values[kind, 7] = whole[kind] - i - j - k + ij + ik + jk - all_three
            for signs in range(8):
                score = score_sum(values[0, signs], values[1, signs], rule.ridge)
                if score <= rule.score:
                    continue
                parts = max(
                    pair_scores[signs & 3, item, second],
                    pair_scores[(signs & 1) | ((signs >> 1) & 2), item, third],
                    pair_scores[signs >> 1, second, third],
                )
                if score > parts + rule.margin and n_scored < scored.scores.size:
                    parent = 4 * (item * n_items + second) + (signs & 3)
                    last = ~third if signs & 4 else third
                    n_scored = write_scored(scored, n_scored, parent, last, score)
    return n_scored


@in_place
def find_rows(literals, items, n_rows, room):
    """Write the rows where a conjunction of literals is true into `room`; return their number."""
    first, n_found = -1, 0
    for number in range(literals.size):
        item = literals[number]
        if item >= 0:
            size = items.indptr[item + 1] - items.indptr[item]
            if first < 0 or size < n_found:
                first, n_found = number, size
    if first < 0:
        n_found = n_rows
        for row in range(n_rows):
            room[row] = row
    else:
        begin = items.indptr[literals[first]]
        for place in range(n_found):
            room[place] = items.rows[begin + place]
    for number in range(literals.size):
        if number == first or n_found == 0:
            continue
        item = literals[number]
        is_wanted = item >= 0
        if not is_wanted:
            item = ~item
        begin, end = items.indptr[item], items.indptr[item + 1]
        n_kept = 0
        if (end - begin) > 16 * n_found:
            for place in range(n_found):
                low, high = begin, end
                while low < high:
                    middle = (low + high) >> 1
                    if items.rows[middle] < room[place]:
                        low = middle + 1
                    else:
                        high = middle
                begin = low
                if (low < end and items.rows[low] == room[place]) == is_wanted:
                    room[n_kept] = room[place]
                    n_kept += 1
        else:
            for place in range(n_found):
                while begin < end and items.rows[begin] < room[place]:
                    begin += 1
                if (begin < end and items.rows[begin] == room[place]) == is_wanted:
                    room[n_kept] = room[place]
                    n_kept += 1
        n_found = n_kept
    return n_found


@in_place
def match_literals(conjunctions, items, n_rows, room, found):
    """Write the rows of conjunctions of one order, and where they end, into `found`.

    Stops when there is no space left. Returns the numbers of conjunctions and of rows written.
    """
    indptr, rows = found
    n_found = 0
    for number in range(conjunctions.shape[0]):
        n_true = find_rows(conjunctions[number], items, n_rows, room)
        if n_found + n_true > rows.size:
            return number, n_found
        for place in range(n_true):
            rows[n_found + place] = room[place]
        n_found += n_true
        indptr[number + 1] = n_found
    return conjunctions.shape[0], n_found


@in_place
def score_columns(columns, residuals, ridge, scores):
    """Write the score of each column."""
    for number in range(scores.size):
        scores[number] = score_column(columns, number, residuals, ridge)


@in_place
def score_column(columns, number, residuals, ridge):
    """Return the score of a column."""
    best = 0.0
    for output in range(residuals.shape[1]):
        total, squares = 0.0, 0.0
        for place in range(columns.indptr[number], columns.indptr[number + 1]):
            value = residuals[columns.rows[place], output]
            total += value
            squares += value * value
        best = max(best, total * total / (squares + ridge))
    return best


@in_place
def accept(columns, residuals, curvatures, rule, ridge, limit, accepted):
    """Accept conjunctions one by one, updating the residuals of their rows; return the number accepted.

    A conjunction is accepted if its score under the current residuals is at least `rule.score`. A Newton
    step, damped by `ridge`, is then taken for each output.
    """
    n_outputs = residuals.shape[1]
    n_accepted = 0
    for number in range(columns.indptr.size - 1):
        begin, end = columns.indptr[number], columns.indptr[number + 1]
        if score_column(columns, number, residuals, rule.ridge) < rule.score:
            continue
        accepted[n_accepted] = number
        n_accepted += 1
        if n_accepted == limit:
            break
        for output in range(n_outputs):
            total, curvature = 0.0, 0.0
            for place in range(begin, end):
                row = columns.rows[place]
                total += residuals[row, output]
                curvature += curvatures[row, output]
            move = total / (curvature + ridge)
            for place in range(begin, end):
                row = columns.rows[place]
                residuals[row, output] -= curvatures[row, output] * move
    return n_accepted
