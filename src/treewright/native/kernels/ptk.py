"""Partial trees (Moschitti 2006, equations 3 and 4): one tree against all of a forest, and pairs of trees.

Two nodes with the same symbol have `leaf` in common, and more if children have the same symbol: the sum over
all pairs of subsequences of their children is computed in one pass over the pairs of children with the same
symbol, for subsequences of any length. Against a forest, symbols are counted first; then only pairs of
subtrees with a child of the same symbol are visited.
"""

from typing import NamedTuple

import numpy as np

from treewright.native.compiling import in_place, inlined
from treewright.native.kernels.semirings import one_plus, plus, times, zero
from treewright.native.kernels.sst import spread

MOST_MATCHES = 16
MISSING = -(1 << 62)
"""No offset."""


class PartialRows(NamedTuple):
    """Trees as bags of distinct subtrees, in the numbering of the forest that they are compared with.

    `symbols` are those of subtrees, -1 for symbols that the forest lacks. `productions` are numbered within
    these trees, -1 for leaves, with the symbols of children from `production_indptr` + 1; `pairs` are pairs
    of a parent's and a child's symbol, -1 for pairs that the forest lacks.
    """

    indptr: np.ndarray
    values: np.ndarray
    symbols: np.ndarray
    productions: np.ndarray
    production_indptr: np.ndarray
    production_symbols: np.ndarray
    pairs: np.ndarray
    bag_indptr: np.ndarray
    bag_ids: np.ndarray
    bag_counts: np.ndarray


class Blocks(NamedTuple):
    """Blocks of positions of a listing with the same production, by chunk and symbol.

    Symbol s of chunk c has the blocks from `indptr[c, s]`; `places` are their starts. `child_symbols` and
    `child_places` are those in the slots of the listing; the position of a leaf is the one after the last of
    its symbol. The blocks with a child of pair p in chunk c start at `pair_indptr[c, p]`, those with the
    latest last tree first.
    """

    indptr: np.ndarray
    places: np.ndarray
    child_symbols: np.ndarray
    child_places: np.ndarray
    pair_indptr: np.ndarray
    pair_blocks: np.ndarray


class ChildMatches(NamedTuple):
    """Pairs of children with the same symbol.

    Their positions among the children, the decay of the gaps between two pairs, the value of each pair, and
    the sum over all subsequences that end with it; `offsets` has the positions of the values of children.
    """

    mine: np.ndarray
    others: np.ndarray
    gaps: np.ndarray
    offsets: np.ndarray
    deltas: np.ndarray
    totals: np.ndarray


class PartialScratch(NamedTuple):
    """Scratch for one row: as for subset trees, plus sums by position, blocks seen, and ranges of values."""

    values: np.ndarray
    offsets: np.ndarray
    sums: np.ndarray
    stamps: np.ndarray
    touched: np.ndarray
    matches: ChildMatches
    grid: np.ndarray


class Decays(NamedTuple):
    """The decay of gaps, the depth decay, the weight of a leaf, and the longest subsequence (0: any).

    With `is_log`, these three and all values are logarithms. `powers` are those of the decay of gaps.
    """

    gap: float
    depth: float
    leaf: float
    longest: int
    is_log: bool
    powers: np.ndarray


@inlined
def _match(mine, begin, n_mine, others, slot, n_others, matches):
    """List the pairs of children with the same symbol; return their number, or one more than fit."""
    n = 0
    for one in range(n_mine):
        symbol = mine[begin + one]
        for other in range(n_others):
            if others[slot + other] == symbol:
                if n == MOST_MATCHES:
                    return n + 1
                matches.mine[n] = one
                matches.others[n] = other
                n += 1
    return n


@inlined
def weigh_gaps(matches, n, powers):
    """Set the weight of the gaps between two pairs: zero if one is not after the other in both trees."""
    for later in range(1, n):
        for earlier in range(later):
            gap = matches.mine[later] - matches.mine[earlier] - 1
            other_gap = matches.others[later] - matches.others[earlier] - 1
            matches.gaps[later, earlier] = powers[gap + other_gap] if gap >= 0 and other_gap >= 0 else 0.0


@inlined
def sum_matches(matches, n):
    """Sum over all subsequences of pairs of children."""
    total = 0.0
    for later in range(n):
        before = 1.0
        for earlier in range(later):
            before += matches.gaps[later, earlier] * matches.totals[earlier]
        value = matches.deltas[later] * before
        matches.totals[later] = value
        total += value
    return total


@in_place
def clear_grid(grid, n_others, is_log):
    """Prepare the sums over subsequences that end in the rows before the first."""
    for length in range(len(grid) - 1):
        for other in range(n_others + 1):
            grid[length, other] = zero(is_log)


@in_place
def add_grid_row(grid, n_others, decays):
    """Add the subsequences that end in one more child; return their sum.

    The last row of the grid has what this child has in common with each other one, from column 1; row p, for
    subsequences of p + 1 children (of all lengths, if there is no longest), the sums over those that end in
    earlier children, column j in the first j others, with gaps up to there.
    """
    deltas = grid[len(grid) - 1]
    n_lengths = len(grid) - 1
    gap, is_log = decays.gap, decays.is_log
    total = zero(is_log)
    for length in range(n_lengths - 1, -1, -1):
        sums = grid[length]
        shorter = grid[max(length - 1, 0)]
        diagonal, along = zero(is_log), zero(is_log)
        for other in range(1, n_others + 1):
            if decays.longest == 0:
                value = times(deltas[other], one_plus(diagonal, is_log), is_log)
            elif length == 0:
                value = deltas[other]
            else:
                value = times(deltas[other], shorter[other - 1], is_log)
            diagonal = sums[other]
            along = plus(value, times(gap, along, is_log), is_log)
            sums[other] = plus(along, times(gap, diagonal, is_log), is_log)
            total = plus(total, value, is_log)
    return total


@in_place
def _sum_block_grid(rows, subtree, blocks, slot, n_others, decays, scratch):
    """Sum over all subsequences of children of a subtree and of one place, pair by pair."""
    grid = scratch.grid
    n_lengths = len(grid) - 1
    clear_grid(grid, n_others, False)
    total = 0.0
    begin = rows.production_indptr[rows.productions[subtree]] + 1
    first = rows.indptr[subtree] + 1
    for mine in range(rows.indptr[subtree + 1] - first):
        offset = scratch.offsets[rows.values[first + mine]]
        for other in range(n_others):
            delta = 0.0
            if blocks.child_symbols[slot + other] == rows.production_symbols[begin + mine]:
                delta = decays.leaf
                if offset != MISSING:
                    delta += scratch.values[offset + blocks.child_places[slot + other]]
            grid[n_lengths, other + 1] = delta
        total += add_grid_row(grid, n_others, decays)
    return total


@inlined
def _visit_block(rows, at, listing, blocks, block, lowest, decays, scratch):
    """Evaluate a subtree of a bag with all subtrees of a block, and sum what they share below the root."""
    matches = scratch.matches
    subtree, count = rows.bag_ids[at], rows.bag_counts[at]
    own = scratch.offsets[subtree]
    first = rows.indptr[subtree] + 1
    begin = rows.production_indptr[rows.productions[subtree]] + 1
    n_mine = rows.indptr[subtree + 1] - first
    start = blocks.places[block]
    slot = listing.indptr[start]
    n_others = listing.indptr[start + 1] - slot
    n = _match(rows.production_symbols, begin, n_mine, blocks.child_symbols, slot, n_others, matches)
    is_wide = n > MOST_MATCHES or (decays.longest > 0 and n > 1)
    if not is_wide:
        weigh_gaps(matches, n, decays.powers)
        for number in range(n):
            matches.offsets[number] = scratch.offsets[rows.values[first + matches.mine[number]]]
    for place in range(start, blocks.places[block + 1]):
        if listing.last[place] < lowest:
            break
        if is_wide:
            value = _sum_block_grid(rows, subtree, blocks, slot, n_others, decays, scratch)
        else:
            for number in range(n):
                matches.deltas[number] = decays.leaf
                if matches.offsets[number] != MISSING:
                    child = blocks.child_places[slot + matches.others[number]]
                    matches.deltas[number] += scratch.values[matches.offsets[number] + child]
            value = matches.deltas[0] if n == 1 else sum_matches(matches, n)
        value *= decays.depth
        scratch.values[own + place] = value
        scratch.sums[place] += count * value
        slot += n_others


@in_place
def add_partial_trees(rows, numbers, listing, blocks, decays, is_half, scratch, out):
    """Add to each row of `out` the weight of partial trees of more than one node.

    `numbers` are the trees of the rows. With `is_half`, rows start at their own tree.
    """
    tick = 0
    for number in range(numbers.size):
        row, line = numbers[number], out[number]
        lowest = row if is_half else 0
        for chunk in range(listing.chunks.size - 1):
            if listing.chunks[chunk + 1] <= lowest:
                continue
            used, n_touched = 0, 0
            for at in range(rows.bag_indptr[row], rows.bag_indptr[row + 1]):
                subtree = rows.bag_ids[at]
                symbol, production = rows.symbols[subtree], rows.productions[subtree]
                scratch.offsets[subtree] = MISSING
                if symbol < 0 or production < 0:
                    continue
                begin = blocks.places[blocks.indptr[chunk, symbol]]
                end = blocks.places[blocks.indptr[chunk, symbol + 1]]
                own = used - begin
                scratch.offsets[subtree] = own
                used += end - begin + 1
                tick += 1
                first, last = rows.production_indptr[production] + 1, rows.production_indptr[production + 1]
                for child in range(first, last):
                    pair = rows.pairs[child]
                    if pair < 0:
                        continue
                    for place in range(blocks.pair_indptr[chunk, pair], blocks.pair_indptr[chunk, pair + 1]):
                        block = blocks.pair_blocks[place]
                        start = blocks.places[block]
                        if listing.last[start] < lowest:
                            break
                        if scratch.stamps[block] == tick:
                            continue
                        scratch.stamps[block] = tick
                        scratch.touched[n_touched, 0] = own
                        scratch.touched[n_touched, 1] = block
                        n_touched += 1
                        _visit_block(rows, at, listing, blocks, block, lowest, decays, scratch)
            for at in range(n_touched):
                own, block = scratch.touched[at, 0], scratch.touched[at, 1]
                for place in range(blocks.places[block], blocks.places[block + 1]):
                    scratch.values[own + place] = 0.0
                    amount = scratch.sums[place]
                    if amount != 0:
                        scratch.sums[place] = 0.0
                        spread(listing, place, amount, lowest, line)
    # Ticks of one call must not be mistaken for those of the next.
    scratch.stamps[:] = 0
