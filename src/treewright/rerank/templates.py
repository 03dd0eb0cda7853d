"""Hand-written features of whole trees: modifier sequences, and parts of up to five words.

These are the features of the template reranker in the comparison of Qian & Liu (2015, section 6.1.1).

Each line of `TEMPLATES`, in the language of `treewright.data.templates`, describes the surroundings of a word
of a tree. The word itself is m and its head h; g, gg and ggg are the next heads above. Siblings are on the
same side of h: s is the next sibling of m towards h, t is the next after s, and u is the next after t. The
outermost children of m are c, on the side away from h, and d, on the side towards h. The attributes of a word
are its ``tag`` and ``word``, the tags of all its modifiers to the ``left`` and to the ``right``, their
numbers (``n_left``, ``n_right``), and the binned ``length`` of the arc from its head. The directions of all
arcs between the words of a line are always part of the feature.

A feature fires where all words of its line exist, except the innermost sibling: its absence is part of the
feature.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from treewright._typing import IntArray, Integers
from treewright._validate import check_integer
from treewright.data.arcs import ArcEncoder, describe_length
from treewright.data.deptree import DepTree
from treewright.data.plain_words import as_sentence, say_word
from treewright.data.templates import Template, TemplateLanguage
from treewright.model import Array, Model, Value, saved
from treewright.native.data.arcs import LENGTH_BINS
from treewright.native.hashing import Keys, hash_text, mix_arrays
from treewright.rerank.bitmasks import find_first, join_bits, pack, unpack
from treewright.rerank.candidates import CandidateLists

TEMPLATES = """
    m.tag m.left
    m.word m.left
    m.tag m.right
    m.word m.right
    m.tag m.left m.right
    h.tag m.tag m.left
    h.tag m.tag m.right
    m.tag m.n_left
    m.word m.n_left
    m.tag m.n_right
    m.word m.n_right
    m.tag m.n_left m.n_right
    h.tag m.tag m.n_left m.n_right

    g.tag h.tag t.tag s.tag m.tag
    g.tag h.word t.tag s.tag m.tag
    g.tag h.tag t.tag s.tag m.word
    g.word h.tag s.tag m.tag
    g.tag h.word s.tag m.tag
    g.tag h.tag s.word m.tag
    g.tag h.tag s.tag m.word
    g.tag h.tag s.tag m.tag m.length

    h.tag u.tag t.tag s.tag m.tag
    h.word u.tag t.tag s.tag m.tag
    h.tag t.tag s.tag m.tag m.length

    gg.tag g.tag h.tag m.tag
    gg.tag g.tag h.tag m.tag m.length
    gg.word g.tag h.tag m.tag
    gg.tag g.tag h.tag m.word
    gg.word g.tag h.tag m.word
    ggg.tag gg.tag g.tag h.tag m.tag
    gg.tag g.tag h.tag s.tag m.tag

    h.tag s.tag m.tag c.tag
    h.tag s.tag m.tag d.tag
    h.tag s.tag m.word c.tag
    h.word s.tag m.tag c.tag
    h.tag s.tag m.tag c.tag d.tag
    g.tag h.tag s.tag m.tag c.tag
    g.tag h.tag s.tag m.tag d.tag

    g.word h.tag m.tag
    g.tag h.word m.tag
    g.tag h.tag m.word
    g.word h.tag m.word
    g.tag h.word m.word
    g.tag h.word m.tag m.length
    h.word s.tag m.tag
    h.tag s.word m.tag
    h.tag s.tag m.word
    h.word s.tag m.word
    h.tag s.word m.word
    h.tag s.word m.tag m.length
"""
SIDES = ("left", "right")
ROLES = {
    "ggg": "great-great-grandparent",
    "gg": "great-grandparent",
    "g": "grandparent",
    "h": "head",
    "u": "third sibling",
    "t": "second sibling",
    "s": "sibling",
    "m": "modifier",
    "c": "outer child",
    "d": "inner child",
}
"""Names of the roles in templates."""
ATTRIBUTES = ("tag", "word", *SIDES, "n_left", "n_right", "length")
LANGUAGE = TemplateLanguage(ATTRIBUTES, roles=ROLES)
ARCS = (("h", "m"), ("g", "h"), ("gg", "g"), ("ggg", "gg"))
"""Heads and their modifiers, lowest first."""
SIBLINGS = ("s", "t", "u")
CHILDREN = ("c", "d")
NO_WORD = 0
"""The row that stands for missing words."""
NO_WORD_KEY, ROOT_KEY = 1, 2
BLOCK_ROWS = 1 << 15
"""Approximate number of candidate words per block."""


class TreeTemplate(NamedTuple):
    """A compiled line of `TEMPLATES`: pairs of role and attribute, the required roles, and a key."""

    atoms: tuple[tuple[str, str], ...]
    needed: frozenset[str]
    key: int


def _compile(template: Template) -> TreeTemplate:
    atoms = [(atom.role, atom.attribute) for atom in template.atoms]
    named = {role for role, _ in atoms}
    atoms += [(modifier, "side") for head, modifier in ARCS if head in named]
    innermost = [role for role in SIBLINGS if role in named][-1:]
    return TreeTemplate(tuple(atoms), frozenset(named - {*innermost}), hash_text(str(template)))


PARSED = [_compile(template) for template in LANGUAGE.parse(TEMPLATES)]
ATOMS = sorted({atom for template in PARSED for atom in template.atoms})


class FeatureDescription(NamedTuple):
    """A feature of a tree: its text, its words, the words whose arcs it involves, and an English sentence."""

    text: str
    words: tuple[str, ...]
    arcs: list[int]
    sentence: str


class TemplateFeatures(Model):
    """Extracts the features of `TEMPLATES` from the candidates of lists.

    Features that all candidates of a list share are left out, because they do not affect the ranking; this
    saves most of the memory. The remaining score differs from the full score by a constant per list.

    Parameters
    ----------
    min_count : int
        Minimum number of training lists in which a feature must distinguish candidates.
    column : {"xpos", "upos"}, optional
        Tag column to use (default: the choice of `ArcEncoder`).

    Attributes
    ----------
    keys_ : ndarray of uint64, (n_features,)
        The hashes of the features, in the order of their columns.
    column_ : str
    """

    fields = saved(keys_=Array("u", is_increasing=True), column_=Value(str))
    keys_: Keys
    column_: str

    def __init__(self, *, min_count: int = 3, column: str | None = None) -> None:
        self.min_count = min_count
        self.column = column

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.keys_)

    def fit(self, lists: CandidateLists) -> "TemplateFeatures":
        """Collect the features that distinguish candidates in at least `min_count` lists."""
        check_integer("min_count", self.min_count, minimum=1)
        self.column_ = self.column or ArcEncoder.from_trees(lists.trees).column
        found = [block.find_telling().keys for block in _make_blocks(lists, self.column_)]
        keys, counts = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *found]), return_counts=True)
        self.keys_ = keys[counts >= self.min_count]
        return self

    def transform(self, lists: CandidateLists) -> csr_matrix:
        """Return the features of each candidate, without those that all candidates of its list share.

        Returns
        -------
        csr_matrix of int8, (n_candidates, n_features)
            Binary matrix with sorted columns.
        """
        indices: list[IntArray] = [np.zeros(0, dtype=np.int32)]
        counts: list[Integers] = [np.zeros(1, dtype=np.int64)]
        for block in _make_blocks(lists, self.column_):
            telling = block.find_telling()
            columns, known = self._find_columns(telling.keys)
            candidates, found = block.expand(columns, telling.lists[known], telling.masks[:, known])
            counts.append(np.bincount(candidates, minlength=block.n_candidates))
            indices.append(found.astype(np.int32))
        shape = (lists.n_candidates, self.n_features)
        indptr = np.cumsum(np.concatenate(counts))
        ones = np.ones(indptr[-1], dtype=np.int8)
        return csr_matrix((ones, np.concatenate(indices), indptr), shape=shape)

    def describe(self, tree: DepTree) -> dict[int, str]:
        """Return the features of a tree as text, by column."""
        return {column: found.text for column, found in self.locate(tree).items()}

    def locate(self, tree: DepTree) -> dict[int, FeatureDescription]:
        """Return descriptions of the features of a tree, by column."""
        rows = _Rows([tree], [tree.heads[np.newaxis]], self.column_)
        found: dict[int, FeatureDescription] = {}
        for template in PARSED:
            keys, places = rows.make_keys(template)
            columns, known = self._find_columns(keys)
            for column, place in zip(columns.tolist(), places[known].tolist(), strict=True):
                arcs = {*rows.find_arcs(template, place), *(found[column].arcs if column in found else ())}
                text, words = rows.describe(template, place), rows.find_words(template, place)
                sentence = as_sentence(rows.say(template, place))
                found[column] = FeatureDescription(text, words, sorted(arcs), sentence)
        return found

    def _find_columns(self, keys: Keys) -> tuple[Integers, Integers]:
        """Return the columns of the known keys, and the positions of these keys."""
        if not self.n_features:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        columns = np.searchsorted(self.keys_[:-1], keys)
        known = np.flatnonzero(self.keys_[columns] == keys)
        return columns[known], known


class _Telling(NamedTuple):
    """Features that some but not all candidates of a list have.

    `masks` has one bit for each candidate of the list, in rows of 64.
    """

    keys: Keys
    lists: Integers
    masks: Keys


class _Rows:
    """The words of all candidates of some lists as rows, each candidate preceded by a root row.

    Row 0 stands for missing words. Rows of the same word with equal attributes in all templates are merged
    into groups; a place is the index of a group.
    """

    def __init__(self, trees: Sequence[DepTree], heads: Sequence[IntArray], column: str) -> None:
        self._trees = trees
        self._column = column
        self._n_in_list = np.array([len(each) for each in heads], dtype=np.int64)
        self._begin = np.cumsum(self._n_in_list) - self._n_in_list
        self._list_of = np.repeat(np.arange(len(trees)), self._n_in_list)
        self._candidate, self._token, self._heads = self._lay_out(heads)
        self._siblings, self._outermost, self._ranks = self._order_siblings()
        self._roles = self._find_roles()
        self._attributes = self._find_attributes()
        self._row_of, place_of_row = self._find_places()
        is_candidate = np.arange(self._n_most) < self._n_in_list[:, np.newaxis]
        self._whole = pack(is_candidate)
        self._masks = self._make_masks(place_of_row)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self._list_of)

    @property
    def _n_most(self) -> int:
        """Number of candidates of the longest list."""
        return int(self._n_in_list.max(initial=0))

    def make_keys(self, template: TreeTemplate) -> tuple[Keys, Integers]:
        """Return the keys of the features of one template, and the place of each."""
        there = np.ones(len(self._row_of), dtype=np.bool_)
        for role in template.needed:
            there &= self._roles[role][self._row_of] != NO_WORD
        places = np.flatnonzero(there)
        rows = self._row_of[places]
        keys = np.full(len(rows), template.key, dtype=np.uint64)
        for role, attribute in template.atoms:
            keys = mix_arrays(keys, self._attributes[attribute][self._roles[role][rows]])
        return keys, places

    def find_telling(self) -> _Telling:
        """Return the features that distinguish the candidates of a list, once per list."""
        made = [self.make_keys(template) for template in PARSED]
        keys, places = (np.concatenate(parts) for parts in zip(*made, strict=True))
        lists = self._list_of[self._candidate[self._row_of[places]]]
        codes = mix_arrays(keys, lists.astype(np.uint64))
        order = np.argsort(codes)
        starts = find_first(codes[order])
        masks = np.array([join_bits(bits[places[order]], starts) for bits in self._masks])
        chosen = order[starts]
        telling = (masks != self._whole[:, lists[chosen]]).any(axis=0)
        chosen = chosen[telling]
        return _Telling(keys[chosen], lists[chosen], masks[:, telling])

    def expand(self, columns: Integers, lists: Integers, masks: Keys) -> tuple[Integers, Integers]:
        """Return all pairs of a candidate and one of its columns, in order."""
        number, within = np.nonzero(unpack(masks, self._n_most))
        candidates = self._begin[lists[number]] + within
        n_columns = int(columns.max(initial=0)) + 1
        pairs = np.sort(candidates * n_columns + columns[number])
        return pairs // n_columns, pairs % n_columns

    def describe(self, template: TreeTemplate, place: int) -> str:
        """Return the feature of a template at a place as text."""
        row = self._row_of[place]
        names = ROLES if len(template.needed) > 1 else {"m": "word"}
        return ", ".join(
            self._describe_atom(names[role], attribute, int(self._roles[role][row]))
            for role, attribute in template.atoms
        )

    def say(self, template: TreeTemplate, place: int) -> str:
        """Return the feature of a template at a place as an English phrase."""
        row = self._row_of[place]
        names = ROLES if len(template.needed) > 1 else {"m": "word"}
        return ", ".join(
            self._say_atom(names[role], attribute, int(self._roles[role][row]))
            for role, attribute in template.atoms
        )

    def _say_atom(self, name: str, attribute: str, row: int) -> str:
        if attribute not in ("word", "tag"):
            told = self._describe_atom(name, attribute, row)
            return f"it has {told}" if "modifiers" in told else told
        text = self._string(attribute, row)
        if text == "-":
            return f"there is no {name}"
        return f"the {name} is {say_word({'special': 'the root'} if text == 'ROOT' else {attribute: text})}"

    def find_words(self, template: TreeTemplate, place: int) -> tuple[str, ...]:
        """Return the words in the feature of a template at a place, without duplicates."""
        row = self._row_of[place]
        rows = [int(self._roles[role][row]) for role, attribute in template.atoms if attribute == "word"]
        return tuple(dict.fromkeys(self._string("word", each) for each in rows))

    def find_arcs(self, template: TreeTemplate, place: int) -> list[int]:
        """Return the words (from 1) that the arcs of a feature lead to."""
        row = int(self._row_of[place])
        rows = {row}
        for role, attribute in template.atoms:
            side, at = attribute.removeprefix("n_"), int(self._roles[role][row])
            if side in SIDES:
                rows.update(self._modifiers(side, at))
            elif attribute in ("side", "length") or role in (*SIBLINGS, *CHILDREN):
                rows.add(at)
        return sorted(int(self._token[each]) - 1 for each in rows if each != NO_WORD and self._heads[each])

    def _describe_atom(self, name: str, attribute: str, row: int) -> str:
        if attribute in ("word", "tag"):
            return f"{name} {self._string(attribute, row)}"
        if attribute in SIDES:
            tags = [self._string("tag", each) for each in self._modifiers(attribute, row)]
            return f"modifiers on its {attribute} {' '.join(tags) or '-'}"
        value = int(self._attributes[attribute][row])
        if attribute == "side":
            return f"{name} on the {SIDES[value]}"
        if attribute == "length":
            return f"length {describe_length(value - 1)}"
        return f"{value} modifiers on its {attribute.removeprefix('n_')}"

    def _string(self, attribute: str, row: int) -> str:
        """Return the word or tag of a row of the first list."""
        if row == NO_WORD:
            return "-"
        if self._heads[row] == NO_WORD:
            return "ROOT"
        strings = self._trees[0].words if attribute == "word" else getattr(self._trees[0], self._column)
        return str(strings[self._token[row] - 2])

    def _modifiers(self, side: str, row: int) -> list[int]:
        """Return the modifiers of a row on one side, in sentence order."""
        found = []
        modifier = int(self._outermost[side][row])
        while modifier != NO_WORD:
            found.append(modifier)
            modifier = int(self._siblings[modifier])
        return sorted(found)

    def _lay_out(self, heads: Sequence[IntArray]) -> tuple[Integers, Integers, Integers]:
        """Return for each row its candidate, its token among all sentences, and its head."""
        sizes = np.array([len(tree) + 1 for tree in self._trees], dtype=np.int64)
        n_rows = sizes[self._list_of]
        root = 1 + np.cumsum(n_rows) - n_rows
        candidate = np.concatenate([[0], np.repeat(np.arange(self.n_candidates), n_rows)])
        position = np.arange(len(candidate)) - np.concatenate([[0], np.repeat(root, n_rows)])
        first_token = 1 + np.cumsum(sizes) - sizes
        token = np.concatenate([[0], np.repeat(first_token[self._list_of], n_rows)]) + position
        found = np.zeros(len(position), dtype=np.int64)
        words = np.flatnonzero(position)
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *(each.ravel() for each in heads)])
        found[words] = root[candidate[words]] + flat
        return candidate, token, found

    def _order_siblings(self) -> tuple[Integers, dict[str, Integers], Integers]:
        """Return each row's next sibling towards the head, the outermost modifiers, and ranks by distance."""
        words = np.flatnonzero(self._heads)
        arms = 2 * self._heads[words] + (words > self._heads[words])
        order = np.argsort(arms * len(self._heads) + np.abs(words - self._heads[words]))
        words, arms = words[order], arms[order]
        starts = find_first(arms)
        siblings, ranks = np.zeros_like(self._heads), np.zeros_like(self._heads)
        siblings[words[1:]] = words[:-1]
        siblings[words[starts]] = NO_WORD
        sizes = np.diff(starts, append=len(words))
        ranks[words] = 1 + np.arange(len(words)) - np.repeat(starts, sizes)
        outermost = np.zeros(2 * len(self._heads), dtype=np.int64)
        outermost[arms[starts]] = words[starts + sizes - 1]
        return siblings, dict(zip(SIDES, (outermost[::2], outermost[1::2]), strict=True)), ranks

    def _find_roles(self) -> dict[str, Integers]:
        """Return, for each role, the row that fills it relative to each row."""
        rows = np.arange(len(self._heads))
        roles = {"m": rows}
        for above, below in ARCS:
            roles[above] = self._heads[roles[below]]
        for outer, inner in itertools.pairwise(("m", *SIBLINGS)):
            roles[inner] = self._siblings[roles[outer]]
        left, right = self._outermost["left"], self._outermost["right"]
        is_right = rows > self._heads
        roles["c"] = np.where(is_right, right, left)
        roles["d"] = np.where(is_right, left, right)
        return roles

    def _find_attributes(self) -> dict[str, Keys]:
        """Return the attributes that templates can use, for each row."""
        rows = np.arange(len(self._heads))
        tag, word = self._hash_tokens(self._column), self._hash_tokens("words")
        sequences = self._hash_sequences(tag)
        found = {
            "tag": tag,
            "word": word,
            "side": rows > self._heads,
            "length": np.searchsorted(LENGTH_BINS, np.abs(rows - self._heads), side="right"),
        }
        for side, outermost in self._outermost.items():
            found[side] = sequences[outermost]
            found[f"n_{side}"] = self._ranks[outermost]
        return {name: values.astype(np.uint64) for name, values in found.items()}

    def _hash_tokens(self, column: str) -> Keys:
        """Return a hash of a string attribute of each row."""
        hashes = _Hashes()
        keys = [NO_WORD_KEY]
        for tree in self._trees:
            keys.append(ROOT_KEY)
            keys.extend(hashes[string] for string in getattr(tree, column))
        return np.array(keys, dtype=np.uint64)[self._token]

    def _hash_sequences(self, tag: Keys) -> Keys:
        """Return a hash of the tags of each row and of its siblings towards the head."""
        keys = np.full(len(tag), NO_WORD_KEY, dtype=np.uint64)
        order = np.argsort(self._ranks, kind="stable")
        bounds = np.cumsum(np.bincount(self._ranks))
        for begin, end in itertools.pairwise(bounds.tolist()):
            rows = order[begin:end]
            keys[rows] = mix_arrays(keys[self._siblings[rows]], tag[rows])
        return keys

    def _find_places(self) -> tuple[Integers, Integers]:
        """Return one row of each place, and the place of each row but the first."""
        looks = self._token.astype(np.uint64)
        for role, attribute in ATOMS:
            looks = mix_arrays(looks, self._attributes[attribute][self._roles[role]])
        _, rows, places = np.unique(looks[1:], return_index=True, return_inverse=True)
        return rows + 1, places

    def _make_masks(self, place_of_row: Integers) -> Keys:
        """Return a mask of the candidates that have each place."""
        candidate = self._candidate[1:]
        flags = np.zeros((len(self._row_of), self._n_most), dtype=np.bool_)
        flags[place_of_row, candidate - self._begin[self._list_of[candidate]]] = True
        return pack(flags)


class _Hashes(dict[str, int]):
    """A cache of string hashes."""

    def __missing__(self, text: str) -> int:
        self[text] = hash_text(text)
        return self[text]


def _make_blocks(lists: CandidateLists, column: str) -> Iterator[_Rows]:
    """Yield blocks of lists as rows."""
    begin = n_rows = 0
    for end, heads in enumerate(lists.heads, start=1):
        n_rows += heads.shape[0] * (heads.shape[1] + 1)
        if n_rows >= BLOCK_ROWS or end == len(lists):
            yield _Rows(lists.trees[begin:end], lists.heads[begin:end], column)
            begin, n_rows = end, 0
