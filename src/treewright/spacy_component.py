"""The spaCy component "treewright" for parsers and taggers, and a spaCy tokenizer.

spaCy finds both by their entry points: ``nlp.add_pipe("treewright", config={"model": "parser.tw"})``, and
``{"nlp": {"tokenizer": {"@tokenizers": "treewright.Tokenizer.v1", "model": "en"}}}`` as the config of
``spacy.blank``.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treewright._optional import require
from treewright._validate import check_choice, check_integer
from treewright.data.consttree import ConstTree
from treewright.data.deptree import DepTree
from treewright.data.interop import list_words, read_tokens
from treewright.errors import TROUBLESHOOTING, InputError, quote
from treewright.model import Model, load
from treewright.tagging.tokenizer import Tokenizer

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token
    from spacy.training import Example

    from treewright.parsing.constituent.parser import Parse
    from treewright.parsing.dependency.parser import Candidate

FACTORY = "treewright"
DEFAULTS = {"model": None, "k": 1, "confidences": False, "tags": "model"}
MODEL_FILE = "model.tw"
"""File name of the model in the component's folder of a saved pipeline."""
ARCS, CONSTITUENTS, TAGS = "dependencies", "constituents", "tags"
COLUMNS = ("upos", "xpos", "feats")
SPACE_TAG, SPACE_RELATION = "_SP", "dep"
"""Annotation of whitespace tokens, as in spaCy's own pipelines."""

ErrorHandler = Callable[[str, "TreewrightComponent", list["Doc"], Exception], None]


class DocSentence(NamedTuple):
    """A sentence of a Doc: its span, its words (no whitespace tokens), and their tree without heads."""

    span: "Span"
    words: list["Token"]
    tree: DepTree


class TreewrightComponent:
    """A spaCy component that annotates Docs with a treewright parser or tagger.

    It uses the sentence boundaries of earlier components; a Doc without any is one sentence.

    Parameters
    ----------
    name : str
        Name of the component in the pipeline.
    model : str, optional
        Model file of a `DependencyParser`, `DependencyReranker`, `ConstituentParser`, `LeftCornerParser`,
        `SpanParser`, `ConstituentReranker` or `Tagger`. It is loaded on first use. You can also set the
        attribute `model` later. A saved pipeline includes its model.
    k : int
        Number of k-best trees per sentence in the extension `candidates`; with 1, a dependency parser sets
        none.
    confidences : bool
        Whether to set the extension `confidence` of tokens.
    tags : {"model", "doc"}
        Whether a model with its own tagger predicts and writes tags, or uses those of earlier components. A
        model without a tagger always uses tags of earlier components.

    See Also
    --------
    SpacyTokenizer : The tokenizer of a pipeline, for spaCy.
    """

    def __init__(
        self,
        name: str = FACTORY,
        *,
        model: str | None = None,
        k: int = 1,
        confidences: bool = False,
        tags: str = "model",
    ) -> None:
        check_integer("k", k, minimum=1)
        check_choice("tags", tags, ("model", "doc"))
        self.name = name
        self.path = model
        self.k = k
        self.confidences = confidences
        self.tags = tags
        self._model: Any = None
        self._handle_error: ErrorHandler = _raise
        _set_extensions()

    @property
    def model(self) -> Any:  # noqa: ANN401
        """The model; None until it is loaded."""
        # spaCy reads this attribute of every component, so it must not load the file.
        return self._model

    @model.setter
    def model(self, model: Any) -> None:  # noqa: ANN401
        kind = getattr(model, "finds", None)
        if kind not in (ARCS, CONSTITUENTS, TAGS):
            expected = "a tagger, a parser or a reranker"
            raise InputError(f"{self.name}: model is a {type(model).__name__}; expected {expected}")
        if kind != ARCS and self.confidences:
            raise InputError(
                f"{self.name}: confidences is True for a model without arcs; expected a dependency parser"
            )
        if kind == TAGS and (self.k > 1 or self.tags == "doc"):
            found = f"k is {self.k} and tags is {self.tags!r}"
            raise InputError(f"{self.name}: {found} for a Tagger; expected k=1 and tags='model'")
        if kind != TAGS:
            own = self.tags == "model" and model.own_tagger is not None
            model = model.using(tags="predicted" if own else "gold")
        self._model = model

    def _ready(self) -> Any:  # noqa: ANN401
        """Return the model; load it if necessary."""
        if self._model is None:
            self.model = self._load()
        return self._model

    def _load(self) -> Any:  # noqa: ANN401
        if self.path is None:
            expected = f"config={{'model': path}}, or nlp.get_pipe({self.name!r}).model = tw.load(path)"
            raise InputError(f"{self.name}: no model was given; expected {expected}")
        try:
            return load(self.path)
        except OSError as error:
            found = f"model is {self.path!r}, which cannot be read ({error.strerror})"
            raise InputError(f"{self.name}: {found}; expected a model file") from error

    def initialize(
        self,
        get_examples: Callable[[], Iterable["Example"]] | None = None,
        *,
        nlp: Any = None,  # noqa: ANN401
        model: str | None = None,
    ) -> None:
        """Load the model, from the file given in ``[initialize.components]`` of the config, if there is one.

        The examples are not used.
        """
        if model is not None:
            self.path = model
            self._model = None
        self._ready()

    def __call__(self, doc: "Doc") -> "Doc":
        """Annotate one Doc."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable["Doc"], *, batch_size: int = 128) -> Iterator["Doc"]:
        """Annotate a stream of Docs in batches."""
        for docs in require("spacy.util", "spacy").minibatch(stream, batch_size):
            try:
                self._annotate(docs)
            except Exception as error:  # the user's error handler decides
                self._handle_error(self.name, self, docs, error)
            else:
                yield from docs

    def set_error_handler(self, error_handler: ErrorHandler) -> None:
        """Set the function that handles errors; by default they are raised."""
        self._handle_error = error_handler

    def score(self, examples: Iterable["Example"]) -> dict[str, Any]:
        """Score annotated Docs against gold Docs, for ``python -m spacy evaluate``."""
        scorer = require("spacy.scorer", "spacy").Scorer
        whole = list(examples)
        if self._ready().finds == ARCS:
            found: dict[str, Any] = scorer.score_deps(
                whole, "dep", ignore_labels=("p", "punct"), getter=_relation_of
            )
        else:
            found = {}
        if self._writes_tags:
            for attribute in ("tag", "pos", "lemma"):
                found |= scorer.score_token_attr(whole, attribute)
        return found

    def to_bytes(self, *, exclude: Sequence[str] = ()) -> bytes:
        """Serialise the model; the options are part of the pipeline's config."""
        return _as_bytes(self._ready())

    def from_bytes(self, data: bytes, *, exclude: Sequence[str] = ()) -> "TreewrightComponent":
        """Load the model from the output of `to_bytes`."""
        self.model = _from_bytes(data)
        return self

    def to_disk(self, path: str | os.PathLike[str], *, exclude: Sequence[str] = ()) -> None:
        """Save the model to a folder."""
        Path(path).mkdir(parents=True, exist_ok=True)
        self._ready().save(Path(path, MODEL_FILE))

    def from_disk(
        self, path: str | os.PathLike[str], *, exclude: Sequence[str] = ()
    ) -> "TreewrightComponent":
        """Load the model from a folder that `to_disk` wrote."""
        self.model = load(Path(path, MODEL_FILE))
        return self

    def __getstate__(self) -> dict[str, Any]:
        data = None if self._model is None else self.to_bytes()
        return {**self.__dict__, "_model": data}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_model": None})
        _set_extensions()
        if state["_model"] is not None:
            self.from_bytes(state["_model"])

    @property
    def _writes_tags(self) -> bool:
        return bool(self.model.finds == TAGS or self.model.uses_own_tagger)

    def _annotate(self, docs: Iterable["Doc"]) -> None:
        """Annotate all sentences of some Docs in one batch."""
        docs = [doc for doc in docs if len(doc)]
        by_doc = [_list_sentences(doc) for doc in docs]
        whole = [sentence for sentences in by_doc for sentence in sentences if sentence.words]
        kind = self._ready().finds
        self._check_tags(whole)
        if kind == TAGS:
            for sentence, tree in zip(whole, self.model.predict([each.tree for each in whole]), strict=True):
                self._write_tags(sentence, tree)
        elif kind == CONSTITUENTS:
            self._write_constituents(whole, docs)
        else:
            self._write_arcs(whole, by_doc)
        if self._writes_tags:
            for sentences in by_doc:
                _tag_spaces(sentences)

    def _check_tags(self, sentences: Sequence[DocSentence]) -> None:
        """Raise `InputError` if the words lack tags that the model needs."""
        kind = self.model.finds
        if kind == TAGS or not self.model.needs_tags:
            return
        columns = {"tag_"} if kind == CONSTITUENTS else {"tag_", "pos_"}
        for sentence in sentences:
            if not any(getattr(word, column) for column in columns for word in sentence.words):
                raise InputError(
                    f"{self.name}: {quote(sentence.span.text)} has no tags; expected a tagger before "
                    "this component, or a model trained with tags='predicted'",
                    help=f"{TROUBLESHOOTING}#tags",
                )

    def _write_arcs(self, whole: Sequence[DocSentence], by_doc: Sequence[Sequence[DocSentence]]) -> None:
        trees = [sentence.tree for sentence in whole]
        lists = self.model.kbest(trees, self.k) if self.k > 1 else []
        best = self.model.predict(trees)
        found = {_key(sentence): tree for sentence, tree in zip(whole, best, strict=True)}
        for sentences in by_doc:
            _write_heads(sentences, [found.get(_key(sentence)) for sentence in sentences])
        for sentence, tree in zip(whole, best, strict=True):
            if self._writes_tags:
                self._write_tags(sentence, tree)
        for sentence, candidates in zip(whole, lists, strict=False):
            kept = [
                [each.tree.heads.tolist(), each.tree.deprels, each.score, each.probability]
                for each in candidates
            ]
            sentence.span._.treewright = {"arcs": kept}
        if self.confidences:
            for sentence, tree, square in zip(whole, best, self.model.marginals(trees), strict=True):
                values = self.model.confidence(tree, square).tolist()
                for word, value in zip(sentence.words, values, strict=True):
                    word._.confidence = value

    def _write_constituents(self, whole: Sequence[DocSentence], docs: Iterable["Doc"]) -> None:
        pairs = [[(_joined(word.text), word.tag_ or None) for word in each.words] for each in whole]
        for doc in docs:
            if not doc.has_annotation("SENT_START"):
                for token in doc:
                    token.is_sent_start = token.i == 0
        best = self.model.annotate(pairs)
        lists = self.model.annotate(pairs, k=self.k) if self.k > 1 else [()] * len(whole)
        for sentence, (predicted, *_), parses in zip(whole, best, lists, strict=True):
            sentence.span._.treewright = {
                "tree": _flatten(predicted.tree),
                "constituents": [
                    [*_flatten(parse.tree), float(parse.score), parse.probability] for parse in parses
                ],
            }
            if self._writes_tags:
                for word, tag in zip(sentence.words, predicted.tree.tags(), strict=True):
                    word.tag_ = tag

    def _write_tags(self, sentence: DocSentence, tree: DepTree) -> None:
        """Write the tags, features and lemmas that the tagger predicts and spaCy can represent."""
        labels = self.model.own_tagger.labels_
        has_upos, has_xpos, has_feats = (
            any(getattr(label, column) != "_" for label in labels) for column in COLUMNS
        )
        universal = require("spacy.parts_of_speech", "spacy").IDS
        words: list[Any] = sentence.words  # spaCy's stubs lack set_morph
        for number, word in enumerate(words):
            if has_upos and tree.upos[number] in universal:
                word.pos_ = tree.upos[number]
            if has_xpos:
                word.tag_ = _blank(tree.xpos[number])
            if has_feats:
                word.set_morph("|".join(each for each in tree.feats[number].split("|") if "=" in each))
            if tree.lemmas[number] != "_":
                word.lemma_ = tree.lemmas[number]


def make_component(
    nlp: Any,  # noqa: ANN401
    name: str,
    model: str | None,
    k: int,
    confidences: bool,
    tags: str,
) -> TreewrightComponent:
    """Make the component; spaCy calls this function with the config."""
    return TreewrightComponent(name, model=model, k=k, confidences=confidences, tags=tags)


require("spacy.language", "spacy").Language.factory(
    FACTORY,
    default_config=DEFAULTS,
    assigns=["token.head", "token.dep", "token.tag", "token.pos", "token.morph", "token.lemma", "doc.sents"],
    func=make_component,
)


class SpacyTokenizer:
    """A spaCy tokenizer that applies the tokenizer of a `Pipeline`, and also sets sentence boundaries.

    The words of a multiword token become separate tokens if their concatenation is its text, as with *do* +
    *n't*. Otherwise the multiword token is one token.

    Parameters
    ----------
    vocab : spacy.vocab.Vocab
        Vocabulary of the spaCy pipeline.
    model : str
        File of a `Pipeline` or `Tokenizer`, or the name of a pipeline in the package, such as ``"en"``.

    See Also
    --------
    TreewrightComponent : The parser of a pipeline, for spaCy.
    """

    def __init__(self, vocab: Any, model: str) -> None:  # noqa: ANN401
        self.vocab = vocab
        self._tokenizer = _find_tokenizer(model, load(model))

    def __call__(self, text: str) -> "Doc":
        """Tokenize a text."""
        words: list[str] = []
        starts: list[bool] = []
        for tree in self._tokenizer.split(text):
            found = _surface_words(tree, text)
            words += found
            starts += [True, *[False] * (len(found) - 1)]
        tokens, spaces = require("spacy.util", "spacy").get_words_and_spaces(words, text)
        is_start = iter(starts)
        sent_starts = [not token.isspace() and next(is_start) for token in tokens]
        if sent_starts and not sent_starts[0]:  # leading whitespace belongs to the first sentence
            sent_starts[sent_starts.index(True) if True in sent_starts else 0] = False
            sent_starts[0] = True
        kind = require("spacy.tokens", "spacy").Doc
        doc: Doc = kind(self.vocab, words=tokens, spaces=spaces, sent_starts=sent_starts)
        return doc

    def to_bytes(self, **options: Any) -> bytes:  # noqa: ANN401
        """Serialise the tokenizer."""
        return _as_bytes(self._tokenizer)

    def from_bytes(self, data: bytes, **options: Any) -> "SpacyTokenizer":  # noqa: ANN401
        """Load the tokenizer from the output of `to_bytes`."""
        self._tokenizer = _from_bytes(data)
        return self

    def to_disk(self, path: str | os.PathLike[str], **options: Any) -> None:  # noqa: ANN401
        """Save the tokenizer to a file."""
        self._tokenizer.save(path)

    def from_disk(self, path: str | os.PathLike[str], **options: Any) -> "SpacyTokenizer":  # noqa: ANN401
        """Load the tokenizer from a file that `to_disk` wrote."""
        self._tokenizer = load(path)
        return self


def _as_bytes(model: Model) -> bytes:
    """Serialise a model."""
    with TemporaryDirectory() as folder:
        model.save(Path(folder, MODEL_FILE))
        return Path(folder, MODEL_FILE).read_bytes()


def _from_bytes(data: bytes) -> Any:  # noqa: ANN401
    """Deserialise a model."""
    with TemporaryDirectory() as folder:
        Path(folder, MODEL_FILE).write_bytes(data)
        return load(Path(folder, MODEL_FILE))


def make_tokenizer(model: str) -> Callable[[Any], SpacyTokenizer]:
    """Return a factory of the tokenizer; spaCy calls this function with the config."""
    return lambda nlp: SpacyTokenizer(nlp.vocab, model)


def _find_tokenizer(path: str, model: Any) -> Tokenizer:  # noqa: ANN401
    """Return `model` if it is a tokenizer, or else its tokenizer."""
    found = model if isinstance(model, Tokenizer) else getattr(model, "own_tokenizer", None)
    if found is None:
        raise InputError(f"{path} is a {type(model).__name__}; expected a Pipeline or a Tokenizer")
    return found


def _surface_words(tree: DepTree, text: str) -> list[str]:
    """Return the tokens of a sentence as they appear in the text."""
    words: list[str] = []
    begun = {token.start: token for token in tree.multiword_tokens()}
    at = 0
    while at < len(tree):
        token = begun.get(at)
        end = token.end if token else at + 1
        surface = text[_token_range(token.misc if token else tree.misc[at])]
        own = tree.words[at:end]
        words += own if "".join(own) == surface else [surface]
        at = end
    return words


def _token_range(misc: str) -> slice:
    """Return the character range of a token."""
    found = next(each for each in misc.split("|") if each.startswith("TokenRange="))
    begin, end = found.removeprefix("TokenRange=").split(":")
    return slice(int(begin), int(end))


def _raise(name: str, component: TreewrightComponent, docs: list["Doc"], error: Exception) -> None:
    raise error


def _list_sentences(doc: "Doc") -> list[DocSentence]:
    """Return the sentences of a Doc; without sentence boundaries, the Doc is one sentence."""
    spans = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
    by_words = [(span, list_words(span)) for span in spans]
    return [DocSentence(span, words, read_tokens(words)) for span, words in by_words]


def _key(sentence: DocSentence) -> tuple[int, int]:
    return id(sentence.span.doc), sentence.span.start


def _write_heads(sentences: Sequence[DocSentence], trees: Sequence[DepTree | None]) -> None:
    """Write the heads and relations of trees to a Doc; the tree of a sentence without words is None."""
    doc: Any = sentences[0].span.doc  # spaCy's stubs do not accept NumPy arrays
    heads = np.arange(len(doc), dtype=np.int64)
    relations = ["ROOT"] * len(doc)
    for sentence, tree in zip(sentences, trees, strict=True):
        if tree is not None:
            _place_words([word.i for word in sentence.words], tree, heads, relations)
        _place_spaces(sentence, heads, relations)
    columns = np.empty((len(doc), 2), dtype=np.uint64)
    columns[:, 0] = (heads - np.arange(len(doc))).view(np.uint64)
    columns[:, 1] = [doc.vocab.strings.add(relation) for relation in relations]
    doc.from_array(["HEAD", "DEP"], columns)


def _place_words(
    places: Sequence[int], tree: DepTree, heads: npt.NDArray[np.int64], relations: list[str]
) -> None:
    """Write the arcs of a tree at the token positions of its words.

    A spaCy sentence has one root: further roots are attached to the first, and keep their relation.
    """
    root = places[tree.heads.tolist().index(0)]
    for place, head, relation in zip(places, tree.heads.tolist(), tree.deprels, strict=True):
        heads[place] = places[head - 1] if head else root
        relations[place] = "ROOT" if place == root and relation == "root" else relation


def _place_spaces(sentence: DocSentence, heads: npt.NDArray[np.int64], relations: list[str]) -> None:
    """Attach whitespace to the preceding word, or to the first word; without words, to the first token."""
    before = sentence.words[0].i if sentence.words else sentence.span.start
    words = {word.i for word in sentence.words}
    for place in range(sentence.span.start, sentence.span.end):
        if place in words:
            before = place
        elif place != before:
            heads[place], relations[place] = before, SPACE_RELATION


def _tag_spaces(sentences: Sequence[DocSentence]) -> None:
    """Tag whitespace as spaCy's own pipelines do."""
    for sentence in sentences:
        for token in sentence.span:
            if token.text.isspace():
                token.tag_, token.pos_ = SPACE_TAG, "SPACE"


def _flatten(tree: ConstTree) -> tuple[list[str], list[int]]:
    """Return a tree as plain values, which can be saved with the Doc."""
    return list(tree.labels), [len(children) for children in tree.child_positions()]


def _joined(word: str) -> str:
    """Return a word with whitespace replaced, so that it can be a leaf of a tree."""
    return "_".join(word.split())


def _blank(tag: str) -> str:
    return "" if tag == "_" else tag


def _relation_of(token: "Token", attribute: str) -> str:
    """Return a relation in lower case, as spaCy's scorer compares it."""
    return str(token.dep_).lower()


def list_candidates(span: "Span") -> "list[Candidate] | list[Parse]":
    """Return the k-best trees of a sentence, best first; an empty list if the component has set none."""
    from treewright.parsing.constituent.parser import Parse
    from treewright.parsing.dependency.parser import Candidate

    kept = span._.treewright or {}
    if "constituents" in kept:
        return [
            Parse(ConstTree.from_child_counts(labels, counts), score, probability)
            for labels, counts, score, probability in kept["constituents"]
        ]
    tree = read_tokens(list_words(span))
    return [
        Candidate(tree.with_heads(heads, relations), score, probability)
        for heads, relations, score, probability in kept.get("arcs", ())
    ]


def list_all_candidates(doc: "Doc") -> "list[list[Candidate] | list[Parse]]":
    """Return the k-best trees of each sentence of a Doc."""
    return [list_candidates(span) for span in doc.sents] if doc.has_annotation("SENT_START") else []


def best_constituents(span: "Span") -> ConstTree | None:
    """Return the predicted constituency tree of a sentence; None if there is none."""
    kept = (span._.treewright or {}).get("tree")
    return ConstTree.from_child_counts(*kept) if kept else None


def _set_extensions() -> None:
    """Register the extension attributes once; raise `InputError` if another package uses the names."""
    tokens = require("spacy.tokens", "spacy")
    wanted = [
        (tokens.Token, "confidence", None),
        (tokens.Span, "treewright", None),
        (tokens.Span, "candidates", list_candidates),
        (tokens.Span, "constituents", best_constituents),
        (tokens.Doc, "candidates", list_all_candidates),
    ]
    for owner, name, getter in wanted:
        if not owner.has_extension(name):
            owner.set_extension(name, **({"getter": getter} if getter else {"default": None}))
        elif owner.get_extension(name)[2] is not getter:
            found = f"{owner.__name__}._.{name} is already used by another package"
            raise InputError(f"{found}; expected an unused name; remove that extension first")
