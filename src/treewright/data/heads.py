"""Head rules, which convert constituents to dependencies.

For each constituent label, a table gives the labels to search for, preceded by the side from which to search,
``l`` or ``r``. Labels are tried in order, so a child with an earlier label wins whatever its position; among
labels joined by ``|``, the outermost child with any of them wins. If no label matches, the outermost child on
the first side is the head. Punctuation is a head only if there are no other children.

One table is from Yamada & Matsumoto (2003), with the rules of the converter Penn2Malt for noun and verb
phrases; the other is from Collins (1999, appendix A).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from treewright._validate import check_choice
from treewright.data.consttree import ConstTree, cut_functions
from treewright.data.deptree import DepTree
from treewright.errors import InputError

PUNCTUATION = frozenset([",", ".", ":", "``", "''", "-LRB-", "-RRB-"])

YAMADA_MATSUMOTO = """
ADJP    r NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB
ADVP    l RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN
CONJP   l CC RB IN
FRAG    l
INTJ    r
LST     l LS :
NAC     r NN|NNS|NNP|NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW
NP      r POS|NN|NNP|NNPS|NNS NX JJR CD JJ JJS RB QP NP
NX      r POS|NN|NNP|NNPS|NNS NX JJR CD JJ JJS RB QP NP
PP      l IN TO VBG VBN RP FW
PRN     r
PRT     l RP
QP      r $ IN NNS NN JJ RB DT CD NCD QP JJR JJS
RRC     l VP NP ADVP ADJP PP
S       r TO IN VP S SBAR ADJP UCP NP
SBAR    r WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG
SBARQ   r SQ S SINV SBARQ FRAG
SINV    r VBZ VBD VBP VB MD VP S SINV ADJP NP
SQ      r VBZ VBD VBP VB MD VP SQ
UCP     l
VP      l VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP TO
WHADJP  r CC WRB JJ ADJP
WHADVP  l CC WRB
WHNP    r WDT WP WP$ WHADJP WHPP WHNP
WHPP    l IN TO FW
"""

COLLINS = """
ADJP    l NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB
ADVP    r RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN
CONJP   r CC RB IN
FRAG    r
INTJ    l
LST     r LS :
NAC     l NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW
NP      r NN|NNP|NNPS|NNS|NX|POS|JJR l NP r $|ADJP|PRN CD JJ|JJS|RB|QP
NX      r NN|NNP|NNPS|NNS|NX|POS|JJR l NP r $|ADJP|PRN CD JJ|JJS|RB|QP
PP      r IN TO VBG VBN RP FW
PRN     l
PRT     r RP
QP      l $ IN NNS NN JJ RB DT CD NCD QP JJR JJS
RRC     r VP NP ADVP ADJP PP
S       l TO IN VP S SBAR ADJP UCP NP
SBAR    l WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG
SBARQ   l SQ S SINV SBARQ FRAG
SINV    l VBZ VBD VBP VB MD VP S SINV ADJP NP
SQ      l VBZ VBD VBP VB MD VP SQ
UCP     r
VP      l TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP
WHADJP  l CC WRB JJ ADJP
WHADVP  r CC WRB
WHNP    l WDT WP WP$ WHADJP WHPP WHNP
WHPP    r IN TO FW
"""


@dataclass(frozen=True)
class HeadRules:
    """A parsed table of head rules.

    Attributes
    ----------
    searches : dict
        For each label, pairs of a side and the labels to search for from that side, in order; the first pair
        may have no labels and only give the side.
    first_conjunct : bool
        If the head follows a conjunction, choose the child before the conjunction instead.
    """

    searches: dict[str, tuple[tuple[str, frozenset[str]], ...]]
    first_conjunct: bool

    @classmethod
    def from_table(cls, table: str, *, first_conjunct: bool = False) -> "HeadRules":
        """Read a table in the notation of this module."""
        searches = {}
        for line in table.strip().splitlines():
            label, side, *rest = line.split()
            steps = [(side, frozenset[str]())]
            for word in rest:
                if word in ("l", "r"):
                    side = word
                else:
                    steps.append((side, frozenset(word.split("|"))))
            searches[label] = tuple(steps)
        return cls(searches, first_conjunct)

    def head_child(self, label: str, children: Sequence[str]) -> int:
        """Return the position of the head among `children`, the labels under a node with `label`."""
        eligible = [at for at, child in enumerate(children) if child not in PUNCTUATION]
        eligible = eligible or list(range(len(children)))
        head = self._search(label, children, eligible)
        place = eligible.index(head)
        if self.first_conjunct and place >= 2 and children[eligible[place - 1]] == "CC":
            return eligible[place - 2]
        return head

    def _search(self, label: str, children: Sequence[str], eligible: list[int]) -> int:
        steps = self.searches.get(label, (("r", frozenset()),))
        for side, wanted in steps:
            for at in eligible if side == "l" else reversed(eligible):
                if children[at] in wanted:
                    return at
        return eligible[0] if steps[0][0] == "l" else eligible[-1]


RuleName: TypeAlias = Literal["yamada-matsumoto", "collins"]
RULES = {
    "yamada-matsumoto": HeadRules.from_table(YAMADA_MATSUMOTO),
    "collins": HeadRules.from_table(COLLINS, first_conjunct=True),
}


def to_dependencies(tree: ConstTree, *, rules: str = "yamada-matsumoto") -> DepTree:
    """Convert a constituency tree to a dependency tree with head rules.

    Traces are removed and function tags ignored. Tags go to `DepTree.xpos`. The only relations are ``root``
    and ``dep``, since head rules determine no others.

    Parameters
    ----------
    tree : ConstTree
        The constituency tree.
    rules : {"yamada-matsumoto", "collins"}
        The table of head rules.

    Returns
    -------
    DepTree
        The dependency tree.

    See Also
    --------
    to_constituents : Converts a dependency tree to an ordered labelled tree.

    Examples
    --------
    >>> tree = tw.ConstTree.parse("(S (NP (DT The) (NN dog)) (VP (VBZ barks)))")
    >>> print(tw.to_dependencies(tree).heads)
    [2 3 0]
    """
    if not isinstance(tree, ConstTree):
        raise InputError(f"the tree is of type {type(tree).__name__}; expected a ConstTree")
    words = tree.without_traces()
    if words is None or words.is_leaf:
        raise InputError(f"tree {str(tree)[:40]!r} has no tagged word; expected at least one")
    governors = head_words(words, rules=rules)
    heads = [0] * len(words.words())
    for node, parent in enumerate(words.parents().tolist()):
        if parent >= 0 and governors[node] != governors[parent]:
            heads[governors[node]] = governors[parent] + 1
    relations = ["dep" if head else "root" for head in heads]
    return DepTree(words.words(), heads, relations, xpos=words.tags())


def head_words(tree: ConstTree, *, rules: str = "yamada-matsumoto") -> list[int]:
    """Return, for each node in post-order, the position of its head word, from 0."""
    check_choice("rules", rules, tuple(RULES))
    table = RULES[rules]
    labels = [cut_functions(label) for label in tree.labels]
    governors: list[int] = []
    n_words = 0
    for node, children in enumerate(tree.child_positions()):
        if children:
            head = table.head_child(labels[node], [labels[child] for child in children])
            governors.append(governors[children[head]])
        else:
            governors.append(n_words)
            n_words += 1
    return governors
