"""The focus of a question: its question word and the following noun phrase.

"What is the capital of Peru?" and "What capital has Peru?" both ask for a capital. The noun is found by tags
from left to right, which works even if a parser trained on other text misparses the question as a statement.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from treewright.data.deptree import DepTree

QUESTION_WORDS = frozenset(("what", "which", "who", "whom", "whose", "where", "when", "why", "how"))
NOUN_TAGS = frozenset(("NN", "NNS", "NNP", "NNPS", "FW", "GW", "ADD"))
PHRASE_TAGS = NOUN_TAGS | {
    "JJ", "JJR", "JJS", "RBR", "RBS", "CD", "VBN", "VBG", "DT", "PDT", "PRP", "PRP$", "POS", "AFX", "HYPH",
    "``", "''",
}  # fmt: skip
"""Tags of the words of a noun phrase."""
OPENING_TAGS = frozenset(("DT", "PRP$"))
"""Tags that begin a new phrase if the current phrase already has a noun."""
LINKS = frozenset(("of", "for"))
"""Words that link a phrase to the focus, as in "the name of the river"."""
LONGEST_GAP = 4
"""Maximum number of words between the question word and the phrase."""
MOST_PHRASES = 2
SUFFIX_LENGTH = 3
LONGEST = 8
"""The feature for the length of a question counts at most this many words."""
SHAPES = ((r"[A-Z]+", "A"), (r"[a-z]+", "a"), (r"[0-9]+", "0"))


class Phrase(NamedTuple):
    """A noun phrase: the positions of its first word and its head."""

    begin: int
    head: int


class Focus(NamedTuple):
    """The focus of a question."""

    question: str
    """The question word (with the next word, if it is "how"); the first word if there is none."""
    gap: tuple[str, ...]
    """Words between the question word and the first phrase."""
    phrases: tuple[Phrase, ...]


def find_focus(tree: DepTree) -> Focus:
    """Return the focus of a question with Penn tags.

    Examples
    --------
    >>> from treewright import DepTree
    >>> words, tags = "What is the capital of Peru ?".split(), "WP VBZ DT NN IN NNP .".split()
    >>> focus = find_focus(DepTree(words, xpos=tags))
    >>> focus.question, focus.gap, [words[phrase.head] for phrase in focus.phrases]
    ('what', ('is',), ['capital', 'Peru'])
    """
    words = [word.lower() for word in tree.words]
    place = next((at for at, word in enumerate(words) if word in QUESTION_WORDS), 0)
    begin = place + 1
    if words[place] == "how":
        begin += 1
    phrases = tuple(_find_phrases(tree, words, begin))
    end = phrases[0].begin if phrases else begin + 1
    return Focus(" ".join(words[place:begin]), tuple(words[begin:end]), phrases)


def _find_phrases(tree: DepTree, words: list[str], begin: int) -> Iterator[Phrase]:
    """Yield the first noun phrase, and the phrases that are linked to it."""
    at, n_found = begin, 0
    while at < len(words) and n_found < MOST_PHRASES:
        end, head = _read_phrase(tree, at)
        if head is not None:
            yield Phrase(at, head)
            n_found += 1
            if end >= len(words) or words[end] not in LINKS:
                return
            at = end + 1
        elif n_found or at - begin >= LONGEST_GAP:
            return
        else:
            at = max(end, at + 1)


def _read_phrase(tree: DepTree, begin: int) -> tuple[int, int | None]:
    """Return the end of a possible phrase, and the position of its last noun (None: no noun)."""
    head = None
    for at in range(begin, len(tree)):
        tag = tree.xpos[at]
        if tag not in PHRASE_TAGS or (head is not None and tag in OPENING_TAGS):
            return at, head
        if tag in NOUN_TAGS:
            head = at
    return len(tree), head


def list_features(tree: DepTree) -> list[str]:
    """Return features of a parsed question: its focus, question word and root."""
    focus = find_focus(tree)
    question, gap = focus.question, " ".join(focus.gap)
    lemmas = [lemma_of(tree, at) for at in range(len(tree))]
    root = next((lemmas[at] for at, head in enumerate(tree.heads) if head == 0), "")
    last = lemmas[-2] if len(lemmas) > 1 else ""
    length = min(len(tree), LONGEST)
    features = [
        f"question={question}",
        f"gap={gap}",
        f"question+gap={question} {gap}",
        f"root={root}",
        f"question+root={question} {root}",
        f"last={last}",
        f"length={length}",
        f"question+length={question} {length}",
    ]
    for number, phrase in enumerate(focus.phrases):
        features += _phrase_features(tree, phrase, number, question)
    if focus.phrases:
        features += _context_features(tree, focus)
    return features


def _phrase_features(tree: DepTree, phrase: Phrase, number: int, question: str) -> list[str]:
    lemma, word = lemma_of(tree, phrase.head), tree.words[phrase.head].lower()
    return [
        f"noun={lemma}",
        f"noun {number}={lemma}",
        f"question+noun {number}={question} {lemma}",
        f"tag {number}={tree.xpos[phrase.head]}",
        f"suffix {number}={word[-SUFFIX_LENGTH:]}",
        f"question+first {number}={question} {tree.words[phrase.begin].lower()}",
    ]


def _context_features(tree: DepTree, focus: Focus) -> list[str]:
    phrase, question, gap = focus.phrases[0], focus.question, " ".join(focus.gap)
    after = tree.words[phrase.head + 1].lower() if phrase.head + 1 < len(tree) else ""
    shape = tree.words[phrase.head]
    for pattern, sign in SHAPES:
        shape = re.sub(pattern, sign, shape)
    return [
        f"after={after}",
        f"frame={question} {gap} {tree.xpos[phrase.begin]} {after}",
        f"shape={shape}",
        f"question+shape+after={question} {shape} {after}",
    ]


def lemma_of(tree: DepTree, at: int) -> str:
    """Return the lemma of a word in lower case, or the word if it has no lemma."""
    lemma = tree.lemmas[at]
    return (tree.words[at] if lemma == "_" else lemma).lower()
