"""Tokenizer trained on a treebank: sentences, tokens and multiword tokens."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from treewright._typing import Booleans, Count, Integers, RandomState
from treewright._validate import check_params
from treewright._version import __version__
from treewright.checkpoint import Checkpoint, fingerprint
from treewright.data.deptree import DepTree, ExtraLine, check_trees
from treewright.errors import InputError
from treewright.model import Array, Model, Record, Submodel, Value, expect, saved, seeded
from treewright.native.tagging.boundaries import (
    FIRST,
    LOWER,
    MAX_WORD,
    N_CHARACTER_ATTRIBUTES,
    N_TOKEN_ATTRIBUTES,
    PADDING,
    SIZE,
    Characters,
    TokenLexicon,
    fill_characters,
    fill_sentence_keys,
    fill_token_keys,
    fill_tokens,
    fill_words,
    find_sentence_ends,
    find_token_ends,
    list_tokens,
)
from treewright.progress import report
from treewright.tagging.boundaries import (
    KIND_NUMBERS,
    N_KINDS,
    BoundaryClassifier,
    encode_characters,
    index_table,
)
from treewright.tagging.multiword import MultiwordSplitter
from treewright.tagging.surface import (
    Surface,
    TreebankText,
    begins_paragraph,
    escape,
    join_sentences,
    surface_tokens,
)

TOKEN_TEMPLATES = """
c.kind c+1.kind
c.point c+1.point
c.folded
c+1.folded
c.folded c+1.folded
c-1.folded c.folded
c+1.folded c+2.folded
c-1.folded c.folded c+1.folded
c.folded c+1.folded c+2.folded
c-1.folded c.folded c+1.folded c+2.folded
c-2.folded c-1.folded c.folded
c+1.folded c+2.folded c+3.folded
c-2.folded c-1.folded c.folded c+1.folded
c.folded c+1.folded c+2.folded c+3.folded
c-2.folded c-1.folded c.folded c+1.folded c+2.folded
c-1.folded c.folded c+1.folded c+2.folded c+3.folded
c-1.kind c.kind c+1.kind c+2.kind
c-2.kind c-1.kind c.kind c+1.kind c+2.kind c+3.kind
c.kind c+1.kind c+2.kind c+3.kind
c-2.kind c-1.kind c.kind c+1.kind
c.begun
c.begun c+1.folded
c.begun c+1.kind
c.begun c+1.rest
c+1.rest
c.begun c+1.folded c+1.next
c.begun_shape c+1.rest_shape
c.begun_shape c+1.rest_shape c+1.next
c.begun_shape c+1.rest
c.begun c+1.rest_shape
c.begun_size c.kind c+1.kind
c.begun_size c.begun_shape c+1.folded
c+1.rest_shape c+1.next c.kind
c-1.folded c+1.folded
c.folded c+2.folded
c.word_end c+1.word_begin c.word_over
c.word_end c.begun_size c.word_over
c.word_over c.folded c+1.folded
c+1.word_begin c.folded
c.word_end c+1.folded
c.word_end c.begun_size c+1.word_begin c+1.kind
"""
"""Feature templates of a character, for token boundaries."""
WORD_TEMPLATES = """
c.word_end c.begun_size c+1.word_begin c.word_over
c.word_end c+1.word_begin c.word_over c-1.word_over c+1.word_over
c.begun_size c.word_over c+1.word_over c+1.word_begin c+1.word_end
c.word_end c+1.word_begin c.word_over c+2.word_begin c+2.word_end
"""
"""Additional templates for token boundaries in languages written without spaces."""
SENTENCE_TEMPLATES = """
t.gap t.since
t.lower
t.form t.gap
t.form t+1.first t.gap
t.form t+1.shape t.gap
t.form t+1.form
t.lower t+1.lower
t.shape t+1.shape t.gap
t.shape t+1.shape t.gap t+2.shape
t-1.shape t.shape t+1.shape t.gap
t-1.shape t.shape t+1.shape t+2.shape
t-1.lower t.lower
t-1.lower t.lower t+1.shape
t-1.shape t.lower t+1.shape
t-1.shape t.lower t+1.lower
t.last t+1.first
t.last t.gap t+1.form
t+1.form t.gap
t+1.lower
t+1.form t+2.shape
t+1.lower t+2.lower
t+1.form t.shape
t+1.form t+2.form t.shape
t+1.suffix t+1.shape
t.suffix t.shape t+1.shape
t+2.form
t+2.lower t+1.shape
t+3.lower
t-1.lower
t-2.lower
t.since t.form
t.since t.shape t+1.shape
t.open t.form
t.open t.shape t+1.shape
t.start t.shape t+1.shape
t.since t.start t.shape
t.size t.form t+1.size
t+1.class t+1.first
t+1.class t+1.first t.gap
t+1.class t+1.shape t.shape t.gap
t+1.class t+1.first t.first t.gap
t+1.class t+1.first t+2.first t.first
t+1.class t+1.first t.lower
t+1.class t+1.first t+2.class t+2.first
t.class t.first t+1.class t+1.first
t-1.class t-1.first t.class t.first t+1.class t+1.first
t.ahead t.shape t+1.shape
t.ahead t.since t.first t+1.first
t.ahead t.first t+1.first t+1.class
t.ahead t.form
t+1.ahead t+1.form
t.previous t.first t+1.first
t.previous t.first t+1.first t+1.class
t.previous t.form
t.previous t.since t.first t+1.first
t.previous t.since
t.suffix t+1.first
t.suffix t+1.class t+1.first
t-1.first t.first t+1.first t+2.first t+3.first
t-2.first t-1.first t.first t+1.first t+2.first t+3.first
t+1.first t+2.first t+3.first t+4.first t.first
t-1.lower t+1.lower
t.lower t+2.lower
t+1.lower t+2.lower t+3.lower
t+1.shape t+2.shape t+3.shape
t.since t+1.form
t.since t.first t+1.class t+1.first
t.open t.since t.first t+1.first
t-1.form t.first t+1.first
t.last t+1.last
t.size t+1.size t.first t+1.first
t.start t.since t+1.shape
"""
"""Feature templates of a token, for sentence boundaries."""
N_PARTS = 10
"""Number of parts of the training text of a language written without spaces. In each part, the known words
are those of the other parts, as in cross-validation."""
MIN_COUNT = 2
PENALTY, SHUFFLED_PENALTY = 3e-3, 1e-4
MIN_SHUFFLED, N_SHUFFLED = 2500, 2
"""Minimum number of training sentences at which sentence boundaries are also learnt from shuffled copies of
the text, and number of these copies. Shuffling creates more pairs of adjacent sentences."""
BLOCK = 1 << 15
"""Number of characters per block."""
MARGIN = 1 << 10
"""Number of characters at the end of a block that are processed again with the next block, as context."""
MIN_CASED, FREQUENT = 3, 20
"""Minimum counts inside sentences for a word to have a case class, and to be classed as frequent."""
CASE_SHARES = [0.02, 0.2, 0.8, 0.98]
"""Thresholds between case classes: fractions of capitalised occurrences inside sentences."""
MIN_UNSPACED_SHARE = 0.2
"""A language counts as unspaced if more than this fraction of adjacent characters is in different tokens."""
MIN_JOINED = 1000
MAX_SPLIT_SHARE = 0.0005
"""Two kinds of characters are always joined if at most this fraction of adjacent pairs is separated."""
BYTE_ORDER_MARK = "\ufeff"
UNWRITABLE = str.maketrans({"\0": "\ufffd", **dict.fromkeys("\t\n\r", " ")})
"""Replacements for characters that CoNLL-U cannot represent in a word."""


class TokenSpans(NamedTuple):
    """Tokens and sentence boundaries of a block of text."""

    begins: Integers
    stops: Integers
    sentence_ends: Booleans
    paragraph_ends: Booleans

    @classmethod
    def single(cls, size: int) -> "TokenSpans":
        """Return one token that covers the first `size` characters."""
        return cls(np.array([0]), np.array([size]), np.array([True]), np.array([False]))

    def before(self, n_tokens: int) -> "TokenSpans":
        """Return the first `n_tokens` tokens."""
        first = slice(n_tokens)
        return TokenSpans(
            self.begins[first], self.stops[first], self.sentence_ends[first], self.paragraph_ends[first]
        )

    def cut(self) -> "TokenSpans":
        """Return the same tokens, with a sentence boundary after the last one."""
        if not len(self.begins):
            return self
        ends = self.sentence_ends.copy()
        ends[-1] = True
        return self._replace(sentence_ends=ends)


class _Buffer:
    """A text that arrives in pieces and is processed block by block."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = iter(pieces)
        self._text = ""
        self._at = 0
        self._is_over = False
        self.offset = 0
        """Position of the block in the text."""

    def look(self) -> str:
        """Return the next block without consuming it."""
        if not self._is_over and len(self._text) - self._at <= BLOCK:
            collected = [self._text[self._at :]]
            size = len(collected[0])
            while size <= BLOCK and not self._is_over:
                piece = next(self._pieces, None)
                self._is_over = piece is None
                collected.append(piece or "")
                size += len(collected[-1])
            self._text, self._at = "".join(collected), 0
        return self._text[self._at : self._at + BLOCK]

    @property
    def is_final(self) -> bool:
        """Whether the text ends with this block."""
        return self._is_over and len(self._text) - self._at <= BLOCK

    def skip(self, n_characters: int) -> None:
        """Consume characters."""
        self._at += n_characters
        self.offset += n_characters


class Tokenizer(Model):
    """Tokenizer that splits text into sentences, tokens and syntactic words.

    A blank line always ends a sentence. Any other white space is treated as a space, unless the training data
    has line breaks in SpacesAfter.

    Parameters
    ----------
    epochs : int
        Number of passes over the training text.
    random_state : int, Generator, RandomState or None
        Seed of the random number generator. With None, results differ between calls.

    Attributes
    ----------
    tokens_ : BoundaryClassifier
        Decides after which characters a token ends.
    sentences_ : BoundaryClassifier
        Decides after which tokens a sentence ends.
    multiwords_ : MultiwordSplitter or None
        Splits multiword tokens; None if the training data has none.
    joined_ : ndarray of bool, shape (n_kinds, n_kinds)
        Pairs of character kinds between which a token never ends.
    has_spaces_ : bool
        Whether tokens may contain spaces.
    has_lines_ : bool
        Whether line breaks are distinguished from spaces.
    cased_ : TokenLexicon
        Frequent words in lower case, with classes that describe how often they are capitalised inside
        sentences.
    words_ : ndarray of uint32
        Hashes of words of up to six characters; empty for languages written with spaces.

    See Also
    --------
    Tagger : Tags the words of sentences.
    Pipeline : From text to tagged and parsed sentences.

    Examples
    --------
    >>> import treewright as tw
    >>> tokenizer = tw.Tokenizer(epochs=3).fit(tw.make_treebank(100, random_state=0).dependencies)
    >>> [tree.words for tree in tokenizer.split("The dog sleeps. A cat sees it.")]
    [['The', 'dog', 'sleeps', '.'], ['A', 'cat', 'sees', 'it', '.']]
    """

    fields = saved(
        tokens_=Submodel(BoundaryClassifier),
        sentences_=Submodel(BoundaryClassifier),
        multiwords_=Submodel(MultiwordSplitter, optional=True),
        joined_=Array("b", n_dimensions=2),
        has_spaces_=Value(bool),
        has_lines_=Value(bool),
        cased_=Record(TokenLexicon, keys=Array("u", low=1, is_increasing=True), classes=Array("u", low=1)),
        words_=Array("u", low=1, is_increasing=True),
    )

    def __init__(self, *, epochs: Count = 10, random_state: RandomState = 0) -> None:
        self.epochs = epochs
        self.random_state = random_state

    @seeded
    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on the tokens of sentences and the white space between them.

        Parameters
        ----------
        trees : sequence of DepTree
            Sentences in text order. White space comes from ``# text``, or from SpaceAfter and
            SpacesAfter in the MISC column.
        dev : sequence of DepTree, optional
            Sentences to evaluate on after training; the F1 of tokens and sentences is logged.
        checkpoint : path, optional
            Folder that stores each epoch. If it exists, training resumes from it, with the same result
            as without an interruption.
        """
        check_params(self)
        check_trees(trees)
        if dev is not None:
            check_trees(dev)
        sentences = [surface_tokens(tree) for tree in trees if len(tree)]
        if not sentences:
            raise InputError("there are no training sentences with words; expected at least one")
        gold = join_sentences(sentences, [begins_paragraph(tree) for tree in trees if len(tree)])
        options = [__version__, self.epochs, self.random_state, gold.text, gold.token_ends.nonzero()]
        kept = Checkpoint(checkpoint, fingerprint(options, trees)) if checkpoint else None
        self._learn_ends(sentences, gold, kept)
        self._learn_multiwords(sentences)
        if dev:
            self._report_scores([surface_tokens(tree) for tree in dev if len(tree)])
        return self

    def _report_scores(self, sentences: Sequence[Sequence[Surface]]) -> None:
        """Split the raw text of the sentences, and log the F1 scores of tokens and sentences."""
        text = join_sentences(sentences, [False] * len(sentences)).text
        gold = _list_spans(sentences)
        found = _list_spans([surface_tokens(tree) for tree in self.split(text)])
        tokens, ends = (
            200 * len(right & guess) / max(1, len(right) + len(guess))
            for right, guess in zip(gold, found, strict=True)
        )
        report(f"dev (F1): tokens {tokens:.2f}, sentences {ends:.2f}")

    def _learn_ends(
        self, sentences: Sequence[Sequence[Surface]], gold: TreebankText, kept: Checkpoint | None
    ) -> None:
        tokens = [token for sentence in sentences for token in sentence]
        text = encode_characters(gold.text)
        self.has_spaces_ = any(any(map(str.isspace, token.form)) for token in tokens)
        self.has_lines_ = any("\n" in token.spaces for token in tokens)
        self.joined_ = _find_joined(text, gold.token_ends)
        words = self._learn_words(text, gold)
        templates = TOKEN_TEMPLATES + WORD_TEMPLATES if len(self.words_) else TOKEN_TEMPLATES
        self.tokens_ = BoundaryClassifier(templates, "c")
        self._learn(self.tokens_, *self._token_keys(text, gold, words), "token ends", kept)
        self._learn_sentences(sentences, gold, kept)

    def _token_keys(
        self, text: Characters, gold: TreebankText, words: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.uint64], Booleans]:
        """Return the features of the characters that may end a token, and whether they end one.

        If there are `words` (one key per token), each part of the text has features of the words of the other
        parts, because not all words of a new text are known either.
        """
        begins, _ = _list_tokens(text, gold.token_ends)
        first_tokens = np.flatnonzero(np.concatenate([[True], gold.sentence_ends[:-1]]))
        n_parts = min(N_PARTS, len(first_tokens)) if len(self.words_) else 1
        bounds = [*(part[0] for part in np.array_split(first_tokens, n_parts)), len(begins)]
        keys, ends = [], []
        for first, stop in pairwise(bounds):
            place = slice(begins[first] if first else 0, begins[stop] if stop < len(begins) else None)
            part = Characters(*(each[place] for each in text))
            known = _distinct_words(np.delete(words, slice(first, stop))) if n_parts > 1 else self.words_
            attributes = self._character_attributes(part, _make_word_table(known))
            part_ends = gold.token_ends[place]
            places, part_keys = fill_token_keys(
                part, self.tokens_.rules, self.joined_, self.has_spaces_, part_ends, attributes
            )
            keys.append(part_keys)
            ends.append(part_ends[places])
        return np.concatenate(keys), np.concatenate(ends)

    def _learn_sentences(
        self, sentences: Sequence[Sequence[Surface]], gold: TreebankText, kept: Checkpoint | None
    ) -> None:
        """Train on the text and, for a large treebank, also on shuffled copies of its sentences."""
        self.sentences_ = BoundaryClassifier(SENTENCE_TEMPLATES, "t")
        n_shuffled = N_SHUFFLED if len(sentences) >= MIN_SHUFFLED else 0
        rng = np.random.default_rng(self.random_state)
        orders = [rng.permutation(len(sentences)).tolist() for _ in range(n_shuffled)]
        shuffled = [join_sentences([sentences[at] for at in order], [False] * len(order)) for order in orders]
        keys, ends = zip(*map(self._sentence_keys, [gold, *shuffled]), strict=True)
        self._learn(
            self.sentences_,
            np.concatenate(keys),
            np.concatenate(ends),
            "sentence ends",
            kept,
            min_count=MIN_COUNT + (n_shuffled > 0),
            penalty=SHUFFLED_PENALTY if n_shuffled else PENALTY,
        )

    def _sentence_keys(self, gold: TreebankText) -> tuple[npt.NDArray[np.uint64], Booleans]:
        """Return the features of the tokens that may end a sentence, and whether they end one."""
        text = encode_characters(gold.text)
        begins, stops = _list_tokens(text, gold.token_ends)
        attributes, is_last = self._token_attributes(text, begins, stops)
        keys = fill_sentence_keys(text, stops, self.sentences_.rules, attributes, gold.sentence_ends)
        return keys[~is_last], gold.sentence_ends[~is_last]

    def _learn(
        self,
        classifier: BoundaryClassifier,
        keys: npt.NDArray[np.uint64],
        gold: Booleans,
        what: str,
        kept: Checkpoint | None,
        *,
        min_count: int = MIN_COUNT,
        penalty: float = PENALTY,
    ) -> None:
        def after_epoch(epoch: int, loss: float) -> None:
            report(f"{what}, epoch {epoch + 1}/{self.epochs}: loss {loss:.5f}")

        classifier.learn(
            keys,
            gold,
            epochs=self.epochs,
            random_state=self.random_state,
            min_count=min_count,
            rate=0.2,
            penalty=penalty,
            smallest=0.02,
            what=f"learning {what}",
            after_epoch=after_epoch,
            checkpoint=kept,
        )

    def _learn_multiwords(self, sentences: Sequence[Sequence[Surface]]) -> None:
        counts: dict[str, Counter[tuple[str, ...]]] = {}
        for sentence in sentences:
            for token in sentence:
                counts.setdefault(token.form, Counter())[token.words] += 1
        self.multiwords_: MultiwordSplitter | None = None
        if any(token.is_multiword for sentence in sentences for token in sentence):
            tags = _most_frequent_tags(sentences)
            self.multiwords_ = MultiwordSplitter(random_state=self.random_state).fit(counts, tags)
            report(f"multiword tokens: {len(self.multiwords_.splittings_) - 1} splitting rules")

    def split(self, text: str) -> list[DepTree]:
        """Split a text into sentences.

        Each sentence has its text in a comment, and its multiword tokens in extra lines. The MISC column has
        the white space after each token (SpaceAfter or SpacesAfter) and its position in the text
        (TokenRange).

        Parameters
        ----------
        text : str
            The text to split.

        Returns
        -------
        list of DepTree
            The sentences in text order, without tags and heads.
        """
        if not isinstance(text, str):
            raise InputError(f"text is a {type(text).__name__}; expected a str")
        return list(self.iter_split([text]))

    def iter_split(self, pieces: Iterable[str]) -> Iterator[DepTree]:
        """Yield the sentences of a text that arrives in pieces; the result does not depend on the pieces.

        Memory use does not grow with the text, except for white space before a sentence, which is kept in
        full. Sentences of more than about 30,000 characters are cut, and white space at the end of the text
        is truncated if it is longer than that.

        Parameters
        ----------
        pieces : iterable of str
            Consecutive pieces of the text, of any length, such as the lines of an open file.

        Yields
        ------
        DepTree
            The next sentence, without tags and heads.
        """
        self.check_is_fitted()
        buffer = _Buffer(pieces)
        n_sentences = 0
        waiting = ""  # white space from blocks without tokens
        begins_paragraph = True
        if buffer.look().startswith(BYTE_ORDER_MARK):
            waiting = BYTE_ORDER_MARK
            buffer.skip(1)
        while block := buffer.look():
            found, used = self._find_settled(block, is_final=buffer.is_final)
            if not len(found.begins):
                waiting += block[:used]
            for tree, ends_paragraph in self._make_trees(block, found, used, buffer.offset, waiting):
                waiting = ""
                n_sentences += 1
                tree.comments.insert(0, f"# sent_id = {n_sentences}")
                if begins_paragraph:
                    tree.comments.insert(0, "# newpar")
                begins_paragraph = ends_paragraph
                yield tree
            buffer.skip(used)

    def _find_settled(self, block: str, *, is_final: bool) -> tuple["TokenSpans", int]:
        """Return the sentences of a block that do not depend on later text, and where they end.

        White space after a sentence belongs to it. If no sentence is complete, the text is cut within a
        sentence.
        """
        found = self._find_ends(encode_characters(block))
        if is_final:
            return found, len(block)
        limit = len(block) - MARGIN
        following = found.begins[1:]
        settled = np.flatnonzero(found.sentence_ends[:-1] & (following <= limit))
        if len(settled):
            return found.before(settled[-1] + 1), int(following[settled[-1]])
        n_whole = int(np.searchsorted(found.stops, limit, side="right"))
        n_begun = int(np.searchsorted(found.begins, limit, side="right"))
        if n_begun > n_whole:  # a token extends beyond the limit
            begin = int(found.begins[n_whole])
            if n_whole == 0 and begin == 0:
                return TokenSpans.single(limit), limit
            return found.before(n_whole).cut(), begin
        return found.before(n_whole).cut(), limit

    def _make_trees(
        self, block: str, found: "TokenSpans", used: int, offset: int, waiting: str
    ) -> Iterator[tuple[DepTree, bool]]:
        """Yield sentences, and whether each is the last of its paragraph."""
        begins, stops = found.begins.tolist(), found.stops.tolist()
        if not begins:
            return
        forms = [block[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
        gaps = [block[stop:begin] for stop, begin in zip(stops, [*begins[1:], used], strict=True)]
        is_odd = self.has_spaces_ or "\0" in block
        if is_odd:
            forms = [form.translate(UNWRITABLE) for form in forms]
        marks = {gap: _mark_gap(gap) for gap in set(gaps)}
        starts, ends = (found.begins + offset).tolist(), (found.stops + offset).tolist()
        misc = [
            f"{marks[gap]}TokenRange={start}:{end}"
            for gap, start, end in zip(gaps, starts, ends, strict=True)
        ]
        before = waiting + block[: begins[0]]
        if before:
            misc[0] = f"SpacesBefore={escape(before)}|{misc[0]}"
        known = self.multiwords_.split(forms) if self.multiwords_ else {}
        words = [known[form] for form in forms] if known else []
        first = 0
        lasts = np.flatnonzero(found.sentence_ends).tolist()
        for last, ends_paragraph in zip(lasts, found.paragraph_ends[lasts].tolist(), strict=True):
            own = slice(first, last + 1)
            if is_odd:
                spaced = (" " if gap else "" for gap in gaps[own])
                text = "".join(form + gap for form, gap in zip(forms[own], spaced, strict=True)).rstrip(" ")
            else:
                text = " ".join(block[begins[first] : stops[last]].split())
            comments = [f"# text = {text}"]
            if known and any(words[own]):
                tree = _expand(forms[own], words[own], misc[own], comments)
            else:
                tree = DepTree(forms[own], misc=misc[own], comments=comments)
            yield tree, ends_paragraph
            first = last + 1

    def check_fitted_state(self) -> None:
        """Check the shapes of the fitted arrays."""
        expect(self.joined_.shape == (N_KINDS, N_KINDS), "an entry for each pair of character kinds")
        expect(len(self.cased_.keys) == len(self.cased_.classes), "a class for each word")
        expect(self.tokens_.unit == "c" and self.sentences_.unit == "t", "one classifier for each unit")

    def restore(self) -> None:
        """Build the lookup tables of words."""
        self._cased = _make_lexicon(self.cased_)
        self._words = _make_word_table(self.words_)

    def _learn_words(self, text: Characters, gold: TreebankText) -> npt.NDArray[np.uint32]:
        """Collect the words; return the key of each token, or 0 for words that are not looked up."""
        begins, stops = _list_tokens(text, gold.token_ends)
        self.words_ = np.zeros(0, dtype=np.uint32)
        self.cased_ = TokenLexicon(self.words_, np.zeros(0, dtype=np.uint8))
        self.restore()
        attributes, _ = self._token_attributes(text, begins, stops)
        own = attributes[PADDING : PADDING + len(begins)]
        keys, which = np.unique(own[:, LOWER], return_inverse=True)
        is_inside = ~np.concatenate([[True], gold.sentence_ends[:-1]])
        is_upper = own[:, FIRST] == KIND_NUMBERS["upper"]
        n_inside = np.bincount(which[is_inside], minlength=len(keys))
        n_upper = np.bincount(which[is_inside & is_upper], minlength=len(keys))
        has_class = (n_inside >= MIN_CASED) & (keys > 0)
        share = n_upper / np.maximum(n_inside, 1)
        classes = 1 + 2 * np.searchsorted(CASE_SHARES, share) + (n_inside >= FREQUENT)
        self.cased_ = TokenLexicon(keys[has_class].astype(np.uint32), classes[has_class].astype(np.uint8))
        is_letter = text.kinds >= KIND_NUMBERS["upper"]
        n_inner = np.count_nonzero(is_letter[:-1] & is_letter[1:])
        words = np.where(own[:, SIZE] <= MAX_WORD, own[:, LOWER], 0).astype(np.uint32)
        if np.count_nonzero(gold.token_ends[:-1] & is_letter[1:]) > MIN_UNSPACED_SHARE * n_inner:
            self.words_ = _distinct_words(words)
        self.restore()
        return words

    def _character_attributes(self, text: Characters, words: TokenLexicon) -> npt.NDArray[np.uint32]:
        attributes = _make_attributes(len(text.points), N_CHARACTER_ATTRIBUTES)
        fill_characters(text, attributes)
        if words.classes.any():
            fill_words(text, words, attributes)
        return attributes

    def _find_ends(self, text: Characters) -> TokenSpans:
        """Return the tokens and sentence boundaries of a text."""
        attributes = self._character_attributes(text, self._words)
        token_ends = np.zeros(len(text.points), dtype=np.bool_)
        find_token_ends(text, self.tokens_.model, self.joined_, self.has_spaces_, attributes, token_ends)
        begins, stops = _list_tokens(text, token_ends)
        attributes, is_last = self._token_attributes(text, begins, stops)
        sentence_ends = np.zeros(len(stops), dtype=np.bool_)
        find_sentence_ends(text, stops, self.sentences_.model, attributes, is_last, sentence_ends)
        return TokenSpans(begins, stops, sentence_ends, is_last)

    def _token_attributes(
        self, text: Characters, begins: Integers, stops: Integers
    ) -> tuple[npt.NDArray[np.uint32], Booleans]:
        attributes = _make_attributes(len(stops), N_TOKEN_ATTRIBUTES)
        is_last = np.zeros(len(stops), dtype=np.bool_)
        fill_tokens(text, begins, stops, self._cased, self.has_lines_, attributes, is_last)
        return attributes, is_last


def _make_attributes(n_units: int, n_attributes: int) -> npt.NDArray[np.uint32]:
    return np.zeros((n_units + 2 * PADDING, n_attributes), dtype=np.uint32)


def _make_lexicon(words: TokenLexicon) -> TokenLexicon:
    """Return a hash table of words."""
    table, slots = index_table(words.keys.astype(np.uint32))
    classes = np.zeros(len(table), dtype=np.uint8)
    classes[slots] = words.classes
    return TokenLexicon(table, classes)


def _distinct_words(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the keys other than 0 in increasing order."""
    return np.unique(words[words > 0])


def _make_word_table(keys: npt.NDArray[np.uint32]) -> TokenLexicon:
    return _make_lexicon(TokenLexicon(keys, np.ones(len(keys), dtype=np.uint8)))


def _list_tokens(text: Characters, ends: Booleans) -> tuple[Integers, Integers]:
    begins = np.empty(len(ends), dtype=np.int64)
    stops = np.empty(len(ends), dtype=np.int64)
    n_tokens = list_tokens(text, ends, begins, stops)
    return begins[:n_tokens], stops[:n_tokens]


def _find_joined(text: Characters, ends: Booleans) -> Booleans:
    """Return the pairs of character kinds that are often adjacent, but almost never in different tokens."""
    pairs = text.kinds[:-1].astype(np.int64) * N_KINDS + text.kinds[1:]
    counts = np.bincount(pairs, minlength=N_KINDS**2)
    splits = np.bincount(pairs[ends[:-1]], minlength=N_KINDS**2)
    is_joined: Booleans = (counts >= MIN_JOINED) & (splits <= MAX_SPLIT_SHARE * counts)
    return is_joined.reshape(N_KINDS, N_KINDS)


def _list_spans(sentences: Sequence[Sequence[Surface]]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the spans of tokens and sentences in characters, not counting white space."""
    tokens, spans = set(), set()
    at = 0
    for sentence in sentences:
        first = at
        for token in sentence:
            begin, at = at, at + len("".join(token.form.split()))
            tokens.add((begin, at))
        spans.add((first, at))
    return tokens, spans


def _most_frequent_tags(sentences: Sequence[Sequence[Surface]]) -> dict[str, str]:
    """Return the most frequent part of speech of each lower-cased single-word token."""
    counts: dict[str, Counter[str]] = {}
    for sentence in sentences:
        for token in sentence:
            if not token.is_multiword:
                counts.setdefault(token.form.lower(), Counter())[token.upos] += 1
    return {form: max(count, key=count.__getitem__) for form, count in counts.items()}


def _mark_gap(gap: str) -> str:
    """Return the MISC entry for the white space after a token."""
    if gap == " ":
        return ""
    return f"SpacesAfter={escape(gap)}|" if gap else "SpaceAfter=No|"


def _expand(
    forms: list[str], expansions: list[tuple[str, ...] | None], misc: list[str], comments: list[str]
) -> DepTree:
    """Return a sentence with its multiword tokens split."""
    words: list[str] = []
    columns: list[str] = []
    extra_lines = []
    for form, expansion, last in zip(forms, expansions, misc, strict=True):
        if expansion is None:
            words.append(form)
            columns.append(last)
        else:
            begin, stop = len(words) + 1, len(words) + len(expansion)
            line = "\t".join([f"{begin}-{stop}", form, *["_"] * 7, last])
            extra_lines.append(ExtraLine(len(words), line))
            words += expansion
            columns += ["_"] * len(expansion)
    return DepTree(words, misc=columns, comments=comments, extra_lines=extra_lines)
