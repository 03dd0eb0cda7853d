"""The space of sub feature trees of dependency trees (Qian & Liu 2015, section 5.2).

A fragment is a connected part of a tree; siblings that are adjacent in it are also adjacent in the tree. A
sub feature tree is a fragment with one basic feature per arc; its order is the number of its arcs. Rows are
the candidates of all lists; the candidates of a list are trees of the same sentence. Features shared by all
candidates of a list cannot distinguish them and are not matched. Only features near the differences between
the correct and the wrong tree are counted.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from treewright._typing import IntArray, Integers, Keys
from treewright._validate import count_jobs
from treewright.data.arcs import ArcEncoder
from treewright.data.deptree import DepTree
from treewright.data.plain_words import say_subtree
from treewright.errors import InputError
from treewright.mining.memory import Memory
from treewright.mining.merged import MergedHits
from treewright.mining.patterns import Patterns, make_index
from treewright.mining.space import Growth, Violations
from treewright.mining.store import ArrayStore, Kept, OnDisk, load
from treewright.mining.subtree_counting import ROOM, Room, SubtreeCounting, are_first
from treewright.mining.subtree_levels import FilteredRoom
from treewright.native.data.arcs import find_keys
from treewright.native.mining.forests import ArcForest, Features, Grids, Lists, build_forest, select_pairs
from treewright.native.mining.matching import (
    FREE,
    N_SIGNS,
    Hits,
    Marked,
    Met,
    Walk,
    match_lists,
    spread_hits,
    weigh_hits,
)
from treewright.native.mining.subtrees import (
    GAIN,
    LOSS,
    MINUS,
    N_COLUMNS,
    N_DEPTHS,
    PLACE,
    PLUS,
    SIZE,
    Job,
    Roots,
    SelectedSubtrees,
    count_basic,
    fill_distances,
    fill_roots,
    mark_selected,
)
from treewright.progress import track
from treewright.scale import Client, map_jobs

MAX_TREES = 64
"""Maximum number of candidates per list."""
MAX_DEGREE = N_DEPTHS
LISTS_AT_ONCE = 500
"""Number of lists in which one job matches features."""
N_BLOCKS = 64
"""Minimum number of jobs for the occurrences of all features that can be selected."""
KEYS_AT_ONCE = 1 << 20
"""Number of basic features that are sorted together."""
N_TASKS = 256
"""Approximate number of jobs of a search."""
FOUND_BYTES = 1 << 20
"""If memory is limited, maximum bytes of found features in memory; the rest is written to disk."""
FEATURES_AT_ONCE = 1 << 18
"""If memory is limited, approximate number of features that are loaded from disk together."""
ROW_BYTES, MATCH_BYTES = 4 * N_COLUMNS + 16, 5
"""Bytes per row of the counting table, and per occurrence of a selected feature."""


def _number(found: Keys) -> tuple[Keys, IntArray]:
    """Return the distinct keys in ascending order, and the index of each given key among them."""
    # Sorting all at once, with the origin of each, would take ten times the memory of the numbers.
    parts = [np.unique(found[at : at + KEYS_AT_ONCE]) for at in range(0, len(found), KEYS_AT_ONCE)]
    keys = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]))
    numbers = np.empty(len(found), dtype=np.int32)
    find_keys(keys, make_index(keys), found, numbers)
    return keys, numbers


class SubtreeSpace:
    """The feature space of all sub feature trees of lists of dependency trees.

    A feature of order r is a row of r codes, ``basic feature * 8 + depth``, in the order of rightmost
    extension.

    Parameters
    ----------
    trees : sequence of DepTree
        The sentences; their heads are ignored.
    heads : sequence of ndarray of int, (n_trees, n_words)
        The heads of the candidate trees of each sentence, with at most 64 candidates per sentence.
    encoder : ArcEncoder, optional
        Computes the basic features of arcs; by default, an encoder for these sentences.
    patterns : Patterns, optional
        Features to look for; all other basic features are left out. By default, none are left out.
    root : bool
        Treat the root as a node, with an arc to the top word of the sentence.
    copies : int, optional
        Maximum number of features selected in one round among those that occur in the same trees of the same
        violating lists; features with fewer arcs are preferred. Such features get the same updates, and most
        fragments have thousands of them. By default, all are selected, as in the paper.
    n_jobs : int
        Number of threads (-1: all processors); results do not depend on it.
    client : distributed.Client, optional
        Cluster that counts the features. Results are the same.
    filter_memory : int, optional
        Size in bytes of the Bloom filter of each job, which removes rare features of two or more arcs before
        counting; no filter by default. Results are the same.
    memory_limit : int, optional
        Memory limit in bytes, not counting the trees and their basic features. Beyond one mebibyte, the
        features found are written to disk. If the limit is too small, the error gives the minimum. The
        positions of features within jobs are not counted either.

    Attributes
    ----------
    keys : ndarray of uint64
        The key of each basic feature.
    memory : Memory
        The memory in use, and its limit.

    See Also
    --------
    GradientMiner : Selects features from a space.
    DependencyReranker : Reranks trees with mined subtrees.
    PolynomialSpace : The space of all conjunctions.

    Examples
    --------
    A sentence with two candidate trees; the first is correct:

    >>> import numpy as np
    >>> tree = tw.DepTree("a dog barks".split(), [2, 3, 0], xpos=["DT", "NN", "VBZ"])
    >>> space = tw.SubtreeSpace([tree], [np.array([[2, 3, 0], [3, 3, 0]])])
    >>> mined = tw.GradientMiner(degree=1, threshold=0).fit(space, tw.list_problem([0, 2], [0]))
    >>> space.name(mined.features[1][0])
    'barks → a'
    """

    def __init__(
        self,
        trees: Sequence[DepTree],
        heads: Sequence[npt.NDArray[np.integer]],
        *,
        encoder: ArcEncoder | None = None,
        patterns: Patterns | None = None,
        root: bool = True,
        copies: int | None = None,
        n_jobs: int = 1,
        client: Client | None = None,
        filter_memory: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.encoder = encoder or ArcEncoder.from_trees(trees)
        self.copies = copies
        self.n_jobs = count_jobs(n_jobs)
        self.client = client
        self.filter_memory = filter_memory
        self.memory = Memory(memory_limit)
        self._lists = _flatten(trees, heads)
        self.indptr = np.concatenate([[0], np.cumsum(self._lists.n_trees)])
        self.forest = _make_forest(self._lists, root)
        arcs = self.forest.owners.astype(np.int64), self.forest.heads, self.forest.modifiers
        indptr, found = self.encoder.keys(self.encoder.encode(trees), *arcs)
        if patterns is None:
            self.keys, ids = _number(found)
            self.features = Features(indptr, ids)
        else:
            self.keys = patterns.keys
            self.features = patterns.known(indptr, found)

    @property
    def n_rows(self) -> int:
        """Number of candidates."""
        return int(self.indptr[-1])

    @property
    def n_words(self) -> int:
        """Number of words of the longest sentence."""
        return int(self._lists.n_words.max(initial=0))

    @property
    def can_merge(self) -> bool:
        """Whether features with the same occurrences may be treated as one: if all of them are selected."""
        return self.copies is None

    def search(self, violations: Violations, threshold: float, degree: int) -> "SubtreeSearch":
        """Start a search with the basic features of the violating candidates, up to order `degree`.

        Parameters
        ----------
        violations : Violations
            The candidates to learn from, and the counters of each.
        threshold : float
            A feature is extended only if one of its counts exceeds this.
        degree : int
            Maximum number of arcs in a feature; at most 8.

        Returns
        -------
        SubtreeSearch
            The search. Each call of its method `grow` counts the features of the next order.
        """
        if degree > MAX_DEGREE:
            raise InputError(f"degree is {degree}; expected at most {MAX_DEGREE}")
        pairs, origins = _select(self, violations)
        rights, both = (np.full(len(pairs.indptr) - 1, mask, dtype=np.int8) for mask in (1, 3))
        samples = SearchedTrees(pairs, _take_features(self.features, origins), rights, both, is_any=False)
        return SubtreeSearch(self, samples, threshold, degree)

    def search_lists(self, right: Integers, threshold: float, degree: int) -> "SubtreeSearch":
        """Start a search for all features that a round of mining can select, whatever the violators are.

        Parameters
        ----------
        right : ndarray of int64, (n_lists,)
            The row of the correct tree of each list.
        threshold : float
            A feature is found if it can distinguish the correct tree from a wrong tree in more lists than
            this: either in favour of the correct trees or against them.
        degree : int
            Maximum number of arcs in a feature; at most 8.

        Returns
        -------
        SubtreeSearch
            The search, in which all lists are samples.
        """
        if degree > MAX_DEGREE:
            raise InputError(f"degree is {degree}; expected at most {MAX_DEGREE}")
        rights = np.uint64(1) << (right - self.indptr[:-1]).astype(np.uint64)
        everywhere = ~np.uint64(0) >> (64 - self._lists.n_trees).astype(np.uint64)
        samples = SearchedTrees(self.forest, self.features, rights, everywhere, is_any=True)
        return SubtreeSearch(self, samples, threshold, degree)

    def match(self, features: Sequence[IntArray]) -> csr_matrix:
        """Return where features are present, except features shared by all candidates of a list.

        Parameters
        ----------
        features : sequence of ndarray of int32, (n_features, order)
            One array per order, with one feature per row.

        Returns
        -------
        csr_matrix of int8, (n_rows, n_features)
            1 where the feature is present in the candidate, with the columns in the order of `features`.
        """
        return self.find(Patterns(self.keys, features))

    def find(self, patterns: Patterns) -> csr_matrix:
        """Return where features are present, except features shared by all candidates of a list.

        Parameters
        ----------
        patterns : Patterns
            Features to look for. Their basic features must be those of this space.

        Returns
        -------
        csr_matrix of int8, (n_rows, n_features)
            1 where the feature is present in the candidate, with the columns in the order of `patterns`.
        """
        return self._as_matrix(*self._match_all(patterns), patterns.n_features)

    def score(self, patterns: Patterns, coef: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum of the weights of the features that `find` finds in each candidate.

        Parameters
        ----------
        patterns : Patterns
            Features to look for. Their basic features must be those of this space.
        coef : ndarray of float, (n_features,)
            Weights of the features.

        Returns
        -------
        ndarray of float, (n_rows,)
            The score of each candidate.
        """
        scores = np.zeros(self.n_rows)
        weigh_hits(self._lists.n_trees, self.indptr, *self._match_all(patterns), coef, scores)
        return scores

    def hits(self, features: IntArray) -> list[MergedHits]:
        """Return where features are present, except features shared by all candidates of a list.

        Parameters
        ----------
        features : ndarray of int32, (n_features, order)
            Features of one order, one per row.

        Returns
        -------
        list of MergedHits
            The occurrences in consecutive lists.
        """
        marked = Patterns(self.keys, [features]).marked
        n_lists = len(self._lists.n_trees)
        size = max(1, min(LISTS_AT_ONCE, -(-n_lists // N_BLOCKS)))
        dtype = np.min_scalar_type((1 << int(self._lists.n_trees.max(initial=1))) - 1)

        def find(begin: int) -> MergedHits:
            numbers, masks, counts = self._match((begin, min(begin + size, n_lists)), marked)
            return MergedHits(begin, np.cumsum(counts), numbers, masks.astype(dtype))

        starts = range(0, n_lists, size)
        return map_jobs(find, starts, n_jobs=self.n_jobs, what="finding subtrees", unit="parts")

    def _match_all(self, patterns: Patterns) -> tuple[IntArray, Keys, Integers]:
        """Return the features found in each list, the trees that contain them, and the ends of lists."""
        spans = [(at, min(at + LISTS_AT_ONCE, len(self._lists.n_trees))) for at in self._starts()]
        parts = map_jobs(
            lambda span: self._match(span, patterns.marked),
            spans,
            n_jobs=self.n_jobs,
            what="finding subtrees",
            unit="lists",
            count=lambda span: span[1] - span[0],
        )
        nothing = (np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
        numbers, masks, counts = (np.concatenate(each) for each in zip(nothing, *parts, strict=True))
        return numbers, masks, np.cumsum(counts)

    def _starts(self) -> range:
        return range(0, len(self._lists.n_trees), LISTS_AT_ONCE)

    def _match(self, span: tuple[int, int], marked: Marked) -> tuple[IntArray, Keys, Integers]:
        """Return the matches in a range of lists, and the number of matches in each list."""
        ends = np.zeros(len(self._lists.n_trees), dtype=np.int64)
        signs = np.empty((len(self.forest.owners), N_SIGNS), dtype=np.uint64)
        begin, room = span[0], ROOM
        found: list[tuple[IntArray, Keys]] = []
        counts = []
        while begin < span[1]:
            walk, met = _make_walk(room, signs), _make_met(room)
            hits = Hits(np.empty(4 * room, dtype=np.int32), np.empty(4 * room, dtype=np.uint64), ends)
            where = (self.forest, self._lists.n_trees, self.features)
            end = match_lists(*where, marked, (begin, span[1]), walk, met, hits)
            if end > begin:
                n = int(ends[end - 1])
                found.append((hits.numbers[:n].copy(), hits.masks[:n].copy()))
                counts.append(np.diff(ends[begin:end], prepend=0))
            else:
                room *= 4
            begin = end
        numbers, masks = (np.concatenate(each) for each in zip(*found, strict=True))
        return numbers, masks, np.concatenate(counts)

    def _as_matrix(self, numbers: IntArray, masks: Keys, ends: Integers, n_features: int) -> csr_matrix:
        indptr = np.zeros(self.n_rows + 1, dtype=np.int64)
        hits = (self._lists.n_trees, self.indptr, numbers, masks, ends)
        spread_hits(*hits, indptr, np.zeros(0, dtype=np.int32))
        np.cumsum(indptr, out=indptr)
        n_bytes = indptr.nbytes + numbers.nbytes + masks.nbytes + MATCH_BYTES * int(indptr[-1])
        self.memory.require(f"{n_features:,} selected subtrees and their occurrences", n_bytes)
        columns = np.empty(indptr[-1], dtype=np.int32)
        if len(columns):
            spread_hits(*hits, indptr[:-1].copy(), columns)
        shape = (self.n_rows, n_features)
        matrix = csr_matrix((np.ones(len(columns), dtype=np.int8), columns, indptr), shape=shape)
        matrix.sort_indices()
        return matrix

    def name(self, feature: Sequence[int]) -> str:
        """Return a sub feature tree as text: an arc, its dependents in brackets, ``+`` between siblings.

        Parameters
        ----------
        feature : sequence of int
            Codes of the arcs, ``basic feature * 8 + depth``, in the order of rightmost extension.
        """
        return name_subtree(feature, self.keys, self.encoder)


def name_subtree(feature: Sequence[int], keys: Keys, encoder: ArcEncoder) -> str:
    """Return a sub feature tree as ``VBD → NN [NN → IN [IN → dawn]] + VBD → RB``."""
    text, depth = "", -1
    for code in feature:
        number, at = divmod(int(code), N_DEPTHS)
        arc = encoder.name(int(keys[number]))
        if at > depth:
            text += f" [{arc}" if text else arc
        else:
            text += "]" * (depth - at) + f" + {arc}"
        depth = at
    return text + "]" * max(0, depth)


def describe_subtree(feature: Sequence[int], keys: Keys, encoder: ArcEncoder) -> str:
    """Return a sub feature tree as a sentence in plain words."""
    codes = [divmod(int(code), N_DEPTHS) for code in feature]
    return say_subtree([(depth, encoder.tell(int(keys[number]))) for number, depth in codes])


class SearchedTrees(NamedTuple):
    """The trees to search: those of each sample with the features of their arcs, as in `Job`."""

    forest: ArcForest
    features: Features
    rights: npt.NDArray[np.integer]
    everywhere: npt.NDArray[np.integer]
    is_any: bool


class SubtreeSearch:
    """A search for sub feature trees: first the basic features, then all others, depth-first.

    Survivors that are not selected are not stored, so memory hardly grows with the order. With a filter, each
    job proceeds order by order.
    """

    share = 1.0

    def __init__(self, space: SubtreeSpace, samples: SearchedTrees, threshold: float, degree: int) -> None:
        self._space = space
        self._threshold = threshold
        self._degree = degree
        self._order = 0
        self._samples, self._pairs, self._features = samples, samples.forest, samples.features
        nodes = np.empty(space.n_words + 1, dtype=np.int8)
        self._distances = np.empty(len(self._pairs.owners), dtype=np.int8)
        fill_distances(self._pairs, samples.everywhere, degree, nodes, self._distances)
        n_samples = len(self._pairs.indptr) - 1
        self._numbers = np.random.default_rng(0).integers(1 << 63, size=n_samples, dtype=np.uint64)
        arrays = (*self._pairs, *self._features, self._distances, self._numbers)
        n_bytes = sum(array.nbytes for array in arrays)
        space.memory.require(f"{n_samples:,} lists that are searched", n_bytes)
        space.memory.hold("search", n_bytes)
        self._store = ArrayStore(FOUND_BYTES if space.memory.is_limited else None)
        self._found: dict[int, list[KeptSubtrees]] = {}
        self._taken = np.zeros(0, dtype=np.uint64)
        self.signatures: list[Keys] = []
        """The signatures of the features of the last order, in parts like those that `grow` yields."""

    def grow(self) -> Iterator[Growth]:
        """Count the features of the next order and yield, in parts, those whose gradient is high enough."""
        self._order += 1
        self.signatures = []
        if self._order == 1:
            yield self._start()
        elif self._order <= self._degree:
            if self._order == 2:
                self._grow()
            for parts in self._group(self._found.pop(self._order)):
                yield self._collect(parts)

    @property
    def n_bytes(self) -> tuple[int, int]:
        """Bytes of features found but not yet requested, in memory and on disk."""
        waiting = [part for order, parts in self._found.items() if order > self._order for part in parts]
        arrays = [each for part in waiting for each in (part.codes, part.counts, part.signatures)]
        on_disk = sum(each.n_bytes for each in arrays if isinstance(each, OnDisk))
        return sum(each.nbytes for each in arrays if not isinstance(each, OnDisk)), on_disk

    def close(self) -> None:
        """Delete the features found."""
        self._found = {}
        self._store.close()
        self._space.memory.hold("search", 0)
        self._space.memory.trim()

    def _job(self, features: Features, n_features: int) -> Job:
        masks = self._samples.rights, self._samples.everywhere
        arcs = (self._pairs, features, self._distances, self._numbers, *masks)
        return Job(*arcs, n_features, self._degree, self._threshold, self._samples.is_any)

    def _start(self) -> Growth:
        """Count basic features, and keep only those that are frequent near differences."""
        n_basic = len(self._space.keys)
        table, signatures = np.zeros((n_basic, N_COLUMNS), dtype=np.int32), np.zeros(n_basic, dtype=np.uint64)
        bits = np.zeros(n_basic, dtype=self._pairs.masks.dtype)
        job = self._job(self._features, n_basic)
        count_basic(job, table, bits, signatures)
        n_instances = int(table[:, SIZE].sum())
        highest = np.maximum(table[:, PLUS], table[:, MINUS])
        self._frequent = np.flatnonzero(highest > self._threshold)
        numbers = np.full(n_basic, -1, dtype=np.int32)
        numbers[self._frequent] = np.arange(len(self._frequent))
        self._features = _renumber(self._features, numbers)
        is_found = np.zeros(n_basic, dtype=np.bool_)
        mark_selected(job, table, is_found)
        enters = np.flatnonzero(is_found)
        enters = enters[self._limit_copies(signatures[enters])]
        self.signatures.append(signatures[enters])
        codes = (enters * N_DEPTHS).astype(np.int32)[:, np.newaxis]
        n_candidates = int((highest > 0).sum())
        return Growth(codes, table[enters][:, [GAIN, LOSS]], n_candidates, n_instances, len(self._frequent))

    def _grow(self) -> None:
        """Count all features of more than one arc."""
        job = self._job(self._features, len(self._frequent))
        roots, ends = self._make_roots(job)
        space = self._space
        scratch = ROW_BYTES * job.n_features * job.degree * space.n_jobs
        space.memory.require(f"counts of {job.n_features:,} basic features", scratch + roots.arcs.nbytes)
        make_room: Callable[[], Room] = partial(Room, job, space.copies)
        if space.filter_memory is not None:
            make_room = partial(FilteredRoom, job, space.copies, space.filter_memory)
        counting = SubtreeCounting(job, roots, ends, make_room)
        self._found = {order: [] for order in range(2, self._degree + 1)}
        for found, tallies in self._spread(counting, _divide(ends - roots.indptr[:-1])):
            for order, parts in self._found.items():
                parts.append(self._keep(found, order, tallies[order - 1]))

    def _spread(
        self, counting: SubtreeCounting, tasks: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[SelectedSubtrees, Integers]]:
        """Yield the features found for each task; if memory is limited, only some are in memory at a time."""
        n_jobs, client = self._space.n_jobs, self._space.client
        if not self._space.memory.is_limited:
            found = map_jobs(
                counting.count, tasks, n_jobs=n_jobs, client=client, what="counting subtrees", unit="parts"
            )
            # What is yielded is released before the next part is copied.
            found.reverse()
            while found:
                yield found.pop()
            return
        starts = range(0, len(tasks), n_jobs)
        for begin in track(starts, "counting subtrees", unit="parts"):
            yield from map_jobs(counting.count, tasks[begin : begin + n_jobs], n_jobs=n_jobs, client=client)

    def _keep(self, found: SelectedSubtrees, order: int, tally: Integers) -> "KeptSubtrees":
        """Save the features of one order in the store."""
        own = found.orders == order
        keep = self._store.keep
        codes = keep(found.codes[own, :order])
        return KeptSubtrees(codes, keep(found.counts[own]), keep(found.signatures[own]), tally)

    def _group(self, parts: Sequence["KeptSubtrees"]) -> Iterator[Sequence["KeptSubtrees"]]:
        """Divide parts into groups; if memory is limited, only one group is loaded at a time."""
        if self._samples.is_any:
            yield from ([part] for part in parts)
            return
        if not self._space.memory.is_limited:
            yield parts
            return
        sizes = np.cumsum([part.n_features for part in parts]) // FEATURES_AT_ONCE
        for group in np.unique(sizes):
            yield [part for part, size in zip(parts, sizes, strict=True) if size == group]

    def _make_roots(self, job: Job) -> tuple[Roots, Integers]:
        """Return the arcs of each frequent feature, and the positions at which they end."""
        table = np.zeros((max(1, job.n_features), N_COLUMNS), dtype=np.int32)
        sizes = np.bincount(self._features.ids, minlength=job.n_features)
        roots = Roots(np.concatenate([[0], np.cumsum(sizes)]), np.empty(sizes.sum(), dtype=np.int32))
        fill_roots(job, table[: job.n_features], roots)
        return roots, table[: job.n_features, PLACE].astype(np.int64)

    def _collect(self, parts: Sequence["KeptSubtrees"]) -> Growth:
        """Return features of one order, with the indices of basic features in the space."""
        order = self._order
        codes = np.concatenate([np.zeros((0, order), dtype=np.int32), *(load(part.codes) for part in parts)])
        counts = np.concatenate([np.zeros((0, 2), dtype=np.int32), *(load(part.counts) for part in parts)])
        signatures = [np.zeros(0, dtype=np.uint64), *(load(part.signatures) for part in parts)]
        joined = np.concatenate(signatures)
        kept = self._limit_copies(joined)
        self.signatures.append(joined[kept])
        numbers, depths = np.divmod(codes[kept], N_DEPTHS)
        features = (self._frequent[numbers] * N_DEPTHS + depths).astype(np.int32)
        tally = sum((part.tally for part in parts), np.zeros(3, dtype=np.int64)).tolist()
        return Growth(features, counts[kept], *tally)

    def _limit_copies(self, signatures: Keys) -> npt.NDArray[np.bool_]:
        """Return which features are among the first `copies` of all orders so far with the same signature."""
        if self._space.copies is None:
            return np.ones(len(signatures), dtype=np.bool_)
        together = np.concatenate([self._taken, signatures])
        kept = are_first(together, self._space.copies)
        self._taken = together[kept]
        chosen: npt.NDArray[np.bool_] = kept[len(together) - len(signatures) :]
        return chosen


class KeptSubtrees(NamedTuple):
    """The stored features of one order that one job found, and the tally of the order."""

    codes: Kept
    counts: Kept
    signatures: Kept
    tally: Integers

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.codes.shape[0])


def _make_walk(size: int, signs: Keys) -> Walk:
    numbers = (
        np.empty(size, dtype=np.int32),
        np.empty(size, dtype=np.int32),
        np.empty(size, dtype=np.uint64),
    )
    return Walk(*numbers, np.empty((size + 1, N_DEPTHS), dtype=np.int32), signs)


def _make_met(room: int) -> Met:
    size = 1 << (2 * room - 1).bit_length()
    free = np.full(size, FREE, dtype=np.int32)
    return Met(free, np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.int32))


def _flatten(trees: Sequence[DepTree], heads: Sequence[npt.NDArray[np.integer]]) -> Lists:
    if len(trees) != len(heads):
        raise InputError(
            f"{len(heads)} lists of heads for {len(trees)} sentences; expected one list per sentence"
        )
    for number, (tree, each) in enumerate(zip(trees, heads, strict=True), start=1):
        if each.ndim != 2 or each.shape[1] != len(tree) or not 1 <= len(each) <= MAX_TREES:
            found = f"sentence {number} of {len(tree)} words has heads of the shape {each.shape}"
            raise InputError(f"{found}; expected (1 to {MAX_TREES} trees, {len(tree)})")
        if each.size and not 0 <= each.min() <= each.max() <= len(tree):
            found = f"sentence {number} has heads from {each.min()} to {each.max()}"
            raise InputError(f"{found}; expected 0 to {len(tree)}")
    n_trees = np.array([len(each) for each in heads], dtype=np.int64)
    n_words = np.array([len(tree) for tree in trees], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(n_trees * n_words)])
    flat = np.concatenate([np.zeros(0, dtype=np.int32), *(each.ravel() for each in heads)])
    return Lists(n_trees, n_words, offsets[:-1], flat.astype(np.int32))


def _make_forest(lists: Lists, root: bool) -> ArcForest:
    longest, size = int(lists.n_words.max(initial=0)) + 2, len(lists.heads)
    largest = int((lists.n_trees * lists.n_words).max(initial=0))
    grids = Grids(
        np.zeros((longest, longest), dtype=np.uint64),
        np.zeros((longest, longest), dtype=np.int64),
        np.zeros(longest, dtype=np.int64),
        np.zeros(largest, dtype=np.int64),
        np.zeros(largest, dtype=np.int64),
        np.zeros(largest, dtype=np.int64),
        np.zeros(largest, dtype=np.uint64),
    )
    forest = _empty_forest(len(lists.n_trees), size, size, np.dtype(np.uint64))
    n_arcs, n_next = build_forest(lists, root, grids, forest)
    return _trim(forest, n_arcs, n_next)


def _empty_forest(n_lists: int, n_arcs: int, n_next: int, masks: np.dtype[np.generic]) -> ArcForest:
    return ArcForest(
        indptr=np.zeros(n_lists + 1, dtype=np.int64),
        owners=np.zeros(n_arcs, dtype=np.int32),
        heads=np.zeros(n_arcs, dtype=np.int32),
        modifiers=np.zeros(n_arcs, dtype=np.int32),
        masks=np.zeros(n_arcs, dtype=masks),
        first_child=np.zeros(n_arcs, dtype=np.int32),
        end_child=np.zeros(n_arcs, dtype=np.int32),
        first_next=np.zeros(n_arcs + 1, dtype=np.int32),
        next_arcs=np.zeros(n_next, dtype=np.int32),
        next_masks=np.zeros(n_next, dtype=masks),
    )


def _trim(forest: ArcForest, n_arcs: int, n_next: int) -> ArcForest:
    """Return a forest without unused space."""
    by_arc = {name: getattr(forest, name)[:n_arcs].copy() for name in forest._fields[1:7]}
    by_pair = {name: getattr(forest, name)[:n_next].copy() for name in forest._fields[8:]}
    return forest._replace(**by_arc, **by_pair, first_next=forest.first_next[: n_arcs + 1].copy())


def _select(space: SubtreeSpace, violations: Violations) -> tuple[ArcForest, Integers]:
    """Return the pairs of trees of violating lists, and the index of each of their arcs in the space."""
    lists = np.searchsorted(space.indptr, violations.rows, side="right") - 1
    is_right = violations.counters[:, 0] == 0
    order = np.argsort(lists[is_right], kind="stable")
    samples = lists[is_right][order]
    rights = violations.rows[is_right][order] - space.indptr[samples]
    order = np.argsort(lists[~is_right], kind="stable")
    wrongs = violations.rows[~is_right][order] - space.indptr[samples]
    forest = space.forest
    n_arcs = int((forest.indptr[samples + 1] - forest.indptr[samples]).sum())
    n_next = int(
        (forest.first_next[forest.indptr[samples + 1]] - forest.first_next[forest.indptr[samples]]).sum()
    )
    pairs = _empty_forest(len(samples), n_arcs, n_next, np.dtype(np.int8))
    origins = np.empty(n_arcs, dtype=np.int64)
    numbers = np.empty(len(forest.owners) + 1, dtype=np.int64)
    n_arcs, n_next = select_pairs(forest, samples, rights, wrongs, numbers, pairs, origins)
    return _trim(pairs, n_arcs, n_next), origins[:n_arcs]


def _take_features(features: Features, arcs: Integers) -> Features:
    """Return the features of some arcs."""
    sizes = features.indptr[arcs + 1] - features.indptr[arcs]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - features.indptr[arcs], sizes)
    return Features(indptr, features.ids[places])


def _renumber(features: Features, numbers: IntArray) -> Features:
    """Return features with new indices, without those whose new index is -1."""
    ids = numbers[features.ids]
    n_before = np.concatenate([[0], np.cumsum(ids >= 0)])
    return Features(n_before[features.indptr], ids[ids >= 0])


def _divide(sizes: Integers) -> list[tuple[int, int]]:
    """Divide roots into ranges with about the same number of occurrences."""
    total = np.concatenate([[0], np.cumsum(sizes)])
    cuts = np.unique(np.searchsorted(total, np.linspace(0, total[-1], N_TASKS + 1)))
    bounds = np.unique(np.concatenate([[0], cuts, [len(sizes)]])).tolist()
    return list(pairwise(bounds))
