"""The partial-tree kernel (Moschitti 2006, equations 3 and 4) of a tree with all trees of a forest.

Two nodes with the same symbol contribute `leaf`, and more if some of their children have the same symbol. The
sum over all pairs of subsequences of children, of any length, is computed in one pass over the pairs of
children with the same symbol. Symbols are counted first; then only pairs of subtrees that have children with
the same symbol are visited.
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

    `symbols` are the symbols of subtrees, -1 if the forest lacks them. `productions` are numbered within
    these trees, -1 for leaves; the symbols of the children of production p start after
    `production_indptr[p]`. `pairs` are the numbers of the pairs of a parent's and a child's symbol, -1 if the
    forest lacks them.
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
    """Blocks of adjacent places in a listing that have the same production, sorted by chunk and symbol.

    Symbol s of chunk c has the blocks from `indptr[c, s]`; `places` are their starts. `child_symbols` and
    `child_places` are the symbol and the place of the child in each slot of the listing; a leaf gets the
    place after the last place of its symbol. The blocks of chunk c that have pair p (the symbols of a parent
    and a child) start at `pair_indptr[c, p]`, in descending order of their last trees.
    """

    indptr: np.ndarray
    places: np.ndarray
    child_symbols: np.ndarray
    child_places: np.ndarray
    pair_indptr: np.ndarray
    pair_blocks: np.ndarray


class ChildMatches(NamedTuple):
    """Pairs of children with the same symbol.

    `mine` and `others` are the positions of the two children, `gaps` the decays of the gaps between two
    pairs, `deltas` the value of each pair, and `totals` the sum over all subsequences that end with it.
    `offsets` are the offsets of the values of the children in `mine`.
    """

    mine: np.ndarray
    others: np.ndarray
    gaps: np.ndarray
    offsets: np.ndarray
    deltas: np.ndarray
    totals: np.ndarray


class PartialScratch(NamedTuple):
    """Scratch space for one row.

    `values` and `offsets` are as in `SubsetScratch`. `sums` are by place, `stamps` mark the blocks that have
    been visited, and `touched` lists the blocks whose values must be reset.
    """

    values: np.ndarray
    offsets: np.ndarray
    sums: np.ndarray
    stamps: np.ndarray
    touched: np.ndarray
    matches: ChildMatches
    grid: np.ndarray


class Decays(NamedTuple):
    """The decay of gaps, the depth decay, the weight of a leaf, and the maximum subsequence length (0: any).

    With `is_log`, the first three and all values are logarithms. `powers` are powers of the decay of gaps.
    """

    gap: float
    depth: float
    leaf: float
    longest: int
    is_log: bool
    powers: np.ndarray


@inlined
def _match(mine, begin, n_mine, others, slot, n_others, matches):
    """List pairs of children with the same symbol; return their number, at most `MOST_MATCHES` + 1."""
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
    """Set the weight of the gaps between two pairs; 0 unless one pair follows the other in both trees."""
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
    """Set the sums over subsequences to zero, before the first row is added."""
    for length in range(len(grid) - 1):
        for other in range(n_others + 1):
            grid[length, other] = zero(is_log)


@in_place
def add_grid_row(grid, n_others, decays):
    """Add the subsequences that end in one more child; return their sum.

    The last row of the grid has the values of this child with each child of the other node, from column 1 on.
    Row p is for subsequences of p + 1 children (of any length, if there is no maximum). Its column j is the
    sum over subsequences that end in earlier children and in the first j children of the other node,
    including the decay of the gaps up to there.
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
    """Sum over all pairs of subsequences of the children of a subtree and of a place, row by row."""
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
    """Evaluate a subtree of a bag with all subtrees of a block, and add up the values.

    The values do not include those of the roots alone.
    """
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
    """Add to each row of `out` the weight of shared partial trees with more than one node.

    `numbers` has the tree of each row. With `is_half`, a row is filled only from its own tree's column on.
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
