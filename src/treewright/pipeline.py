"""Pipeline: a tokenizer, a tagger and a parser in one model.

A pipeline holds a tokenizer, and a dependency parser or reranker with its own tagger. Plain text passes
through all three; sentences that are already tokenized, as in CoNLL-U, start at the tagger.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from treewright._typing import FileName, Jobs
from treewright._validate import check_params
from treewright.annotation.sentences import list_sentences
from treewright.data.conllu import format_tree, read_conllu
from treewright.data.deptree import DepTree
from treewright.data.formats import check_kind
from treewright.data.remote import find_treebank
from treewright.errors import InputError
from treewright.metrics.conll2018 import conll2018
from treewright.model import Submodel, Unfitted, saved
from treewright.parsing.dependency.annotator import ParserWrapper
from treewright.parsing.dependency.constraints import FixedHeads
from treewright.parsing.dependency.parser import DependencyParser
from treewright.progress import prefixed, report
from treewright.rerank.reranker import DependencyReranker
from treewright.scale import Client
from treewright.tagging.surface import begins_paragraph, join_sentences, surface_tokens
from treewright.tagging.tokenizer import Tokenizer

REPORTED = {
    "words": "words",
    "sentences": "sentences",
    "upos": "UPOS",
    "ufeats": "UFeats",
    "lemmas": "lemmas",
    "uas": "UAS",
    "las": "LAS",
}
"""Scores of the CoNLL 2018 shared task that are reported after training."""


class Document(Sequence[DepTree]):
    """A parsed text: a sequence of dependency trees, one per sentence.

    Parameters
    ----------
    text : str
        The text. ``TokenRange`` in the MISC column of the trees holds the character offsets of each token.
    sentences : list of DepTree
        The trees.

    See Also
    --------
    Pipeline : Parses a text to a document.

    Examples
    --------
    >>> doc = tw.load("en")("The gardener saw a heron. It didn't move.")
    >>> [word.lemma for sentence in doc for word in sentence]
    ['the', 'gardener', 'see', 'a', 'heron', '.', 'it', 'do', 'not', 'move', '.']
    """

    def __init__(self, text: str, sentences: Sequence[DepTree]) -> None:
        self.text = text
        self.sentences = list(sentences)

    def __len__(self) -> int:
        return len(self.sentences)

    @overload
    def __getitem__(self, index: int) -> DepTree: ...
    @overload
    def __getitem__(self, index: slice) -> list[DepTree]: ...
    def __getitem__(self, index: int | slice) -> DepTree | list[DepTree]:
        """Return a sentence, or a list of sentences for a slice."""
        return self.sentences[index]

    def __iter__(self) -> Iterator[DepTree]:
        return iter(self.sentences)

    def __repr__(self) -> str:
        n_words = sum(map(len, self.sentences))
        return f"<Document of {len(self)} sentences, {n_words} words>"

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.sentences))

    def to_conllu(self) -> str:
        """Return the sentences in CoNLL-U."""
        return "".join(map(format_tree, self.sentences))


class Pipeline(ParserWrapper):
    """A tokenizer, a tagger and a dependency parser that are trained together and saved in one file.

    Parameters
    ----------
    tokenizer : Tokenizer, optional
        The tokenizer to train; only its parameters are used.
    parser : DependencyParser or DependencyReranker, optional
        The parser to train, with ``tags="predicted"``; only its parameters are used. A reranker is used
        only if its gain on the dev set is significant at its `significance_level`.
    n_jobs : int, optional
        Number of threads (-1: all processors; by default, the `n_jobs` of `parser`). Results do not depend
        on it.

    Attributes
    ----------
    tokenizer_ : Tokenizer
        The fitted tokenizer.
    parser_ : DependencyParser or DependencyReranker
        The fitted parser, with its tagger.

    See Also
    --------
    load : Load a saved pipeline, or the English one in the package.
    DependencyParser : The parser alone.
    Tokenizer : The tokenizer alone.

    Examples
    --------
    >>> nlp = tw.load("en")
    >>> doc = nlp("The dog sees a cat. It sleeps.")
    >>> doc
    <Document of 2 sentences, 9 words>
    >>> doc[0].deprels
    ['det', 'nsubj', 'root', 'det', 'obj', 'punct']

    Train a pipeline of your own, which takes a few minutes with a real treebank:

    >>> nlp = tw.Pipeline().fit(tw.make_treebank(200).dependencies)  # doctest: +SKIP
    """

    fields = saved(
        tokenizer=Unfitted(Tokenizer, optional=True),
        parser=Unfitted(DependencyParser, DependencyReranker, optional=True),
        tokenizer_=Submodel(Tokenizer),
        parser_=Submodel(DependencyParser, DependencyReranker),
    )
    tokenizer_: Tokenizer
    parser_: DependencyParser | DependencyReranker

    def __init__(
        self,
        *,
        tokenizer: Tokenizer | None = None,
        parser: DependencyParser | DependencyReranker | None = None,
        n_jobs: Jobs | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.parser = parser
        self.n_jobs = n_jobs

    @staticmethod
    def read_training(
        train: FileName, dev: FileName | None = None
    ) -> tuple[list[DepTree], list[DepTree] | None]:
        """Read the training data of `fit`.

        Parameters
        ----------
        train : str
            Treebank: a CoNLL-U file, a folder of a UD treebank, or a name such as UD_Hungarian-Szeged
            (downloaded).
        dev : str, optional
            Treebank to evaluate on after each epoch (default: the treebank's dev set, if any).
        """
        found = find_treebank(train)
        if found.train is None:
            raise InputError(f"{train} has no training set; expected a treebank with a training set")
        development = dev or found.dev
        check_kind(found.train, "dependencies")
        if development:
            check_kind(development, "dependencies")
        return read_conllu(found.train), read_conllu(development) if development else None

    def fit(
        self,
        trees: Sequence[DepTree],
        dev: Sequence[DepTree] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Train on a treebank.

        Parameters
        ----------
        trees : sequence of DepTree
            The training set. The tokenizer learns from its ``# text`` comments or ``SpaceAfter=No``.
        dev : sequence of DepTree, optional
            The dev set. It is used to evaluate each epoch, to calibrate probabilities, and to decide whether
            to use the reranker. At the end, its raw text is parsed and the scores are reported.
        checkpoint : path, optional
            Folder for finished steps. If it exists, training resumes from it, and the model is the same as
            without the interruption.
        client : distributed.Client, optional
            Dask cluster that trains the folds. The model does not depend on it.
        """
        check_params(self)
        self._check_parts()
        parser = self.parser or DependencyParser(tags="predicted")
        first = parser.parser if isinstance(parser, DependencyReranker) else parser
        if first is not None and first.tags != "predicted":
            raise InputError(f"tags is {first.tags!r}; expected 'predicted', since plain text has no tags")
        folders = [None if checkpoint is None else Path(checkpoint, name) for name in ("tokenizer", "parser")]
        tokenizer = (self.tokenizer or Tokenizer()).with_params()
        with prefixed("tokenizer: "):
            tokenizer.fit(trees, dev, checkpoint=folders[0])
        jobs: dict[str, Any] = {} if self.n_jobs is None else {"n_jobs": self.n_jobs}
        if jobs and first is not None and first is not parser:
            jobs["parser"] = first.with_params(**jobs)
        fitted = parser.with_params(**jobs).fit(trees, dev, checkpoint=folders[1], client=client)
        if isinstance(fitted, DependencyReranker) and not fitted.is_trusted_:
            report("the gain of the reranker on dev is not significant; the reranker is not used")
            fitted = fitted.parser_
        self.tokenizer_, self.parser_ = tokenizer, fitted
        if dev:
            self._report_scores(dev)
        return self

    def _report_scores(self, dev: Sequence[DepTree]) -> None:
        """Parse the raw text of the dev set and report the scores."""
        trees = [tree for tree in dev if len(tree)]
        text = join_sentences(
            [surface_tokens(tree) for tree in trees], list(map(begins_paragraph, trees))
        ).text
        scores = conll2018(trees, self.predict(text), multiple_roots=True)
        shown = ", ".join(f"{label} {getattr(scores, name).f1:.2f}" for name, label in REPORTED.items())
        report(f"dev, from raw text (F1): {shown}")

    def _check_parts(self) -> None:
        tokenizer: object = self.tokenizer
        parser: object = self.parser
        if not isinstance(tokenizer, Tokenizer | None):
            raise InputError(f"tokenizer is a {type(tokenizer).__name__}; expected a Tokenizer")
        if not isinstance(parser, DependencyParser | DependencyReranker | None):
            found = f"parser is a {type(parser).__name__}"
            raise InputError(f"{found}; expected a DependencyParser or a DependencyReranker")

    def __call__(self, text: str) -> Document:
        """Parse a text."""
        if not isinstance(text, str):
            raise InputError(f"text is a {type(text).__name__}; expected a str")
        return Document(text, self.predict(text))

    def predict(
        self,
        sentences: Any,  # noqa: ANN401
        *,
        fixed: Sequence[FixedHeads] | None = None,
    ) -> list[DepTree]:
        """Parse a text, or tokenized sentences.

        Parameters
        ----------
        sentences : str, or sequence of DepTree or list of str
            A text, or tokenized sentences.
        fixed : sequence of mapping of int to int, optional
            Known heads for each sentence: a mapping from the position of a word to its head, both from 1 (0
            is the root).
        """
        found = self._split(sentences)
        return self._inner.predict(found, fixed=fixed)

    def kbest(
        self,
        sentences: Any,  # noqa: ANN401
        k: int = 10,
        *,
        fixed: Sequence[FixedHeads] | None = None,
    ) -> list[list[Any]]:
        """Return the `k`-best trees of each sentence, best first, with scores and probabilities.

        Parameters
        ----------
        sentences : str, or sequence of DepTree or list of str
            A text, or tokenized sentences.
        k : int
            Maximum number of trees per sentence.
        fixed : sequence of mapping of int to int, optional
            Known heads for each sentence: a mapping from the position of a word to its head, both from 1 (0
            is the root). Only trees with these heads are considered.

        Returns
        -------
        list of list of Candidate
            The trees of each sentence with their scores and probabilities.
        """
        found = self._split(sentences)
        return self._inner.kbest(found, k, fixed=fixed)

    def marginals(
        self,
        sentences: Any,  # noqa: ANN401
        *,
        fixed: Sequence[FixedHeads] | None = None,
    ) -> list[npt.NDArray[np.float64]]:
        """Return the marginal probabilities of all heads of each word.

        Parameters
        ----------
        sentences : str, or sequence of DepTree or list of str
            A text, or tokenized sentences.
        fixed : sequence of mapping of int to int, optional
            Known heads for each sentence: a mapping from the position of a word to its head, both from 1 (0
            is the root). Only trees with these heads are considered.

        Returns
        -------
        list of ndarray of float64, (n, n + 1)
            For each sentence, the probability of each head (column) of each word (row); column 0 is the root.
        """
        found = self._split(sentences)
        return self._inner.marginals(found, fixed=fixed)

    @property
    def _inner(self) -> DependencyParser | DependencyReranker:
        """The parser, with the `n_jobs` of the pipeline."""
        self.check_is_fitted()
        return self.parser_ if self.n_jobs is None else self.parser_.using(n_jobs=self.n_jobs)

    def _split(self, sentences: Any) -> Any:  # noqa: ANN401
        self.check_is_fitted()
        if isinstance(sentences, str):
            return self.tokenizer_.split(sentences)
        if isinstance(sentences, list) and any(isinstance(each, str) and " " in each for each in sentences):
            raise InputError(
                "the sentences are a list of texts; expected one text or lists of words; "
                "call the pipeline on each text"
            )
        return list_sentences(sentences, self)

    def explain(self, trees: Any, *, fixed: Sequence[FixedHeads] | None = None) -> Any:  # noqa: ANN401
        """Return the candidates of each sentence and the features that decided between the first two.

        Parameters
        ----------
        trees : str, or sequence of DepTree or list of str
            A text, or tokenized sentences.
        fixed : sequence of mapping of int to int, optional
            Known heads for each sentence: a mapping from the position of a word to its head, both from 1 (0
            is the root). Only trees with these heads are considered.

        Returns
        -------
        list of Comparison
            The candidates, their scores and the features, for each sentence.
        """
        found = self._split(trees)
        return self._inner.explain(found, fixed=fixed)

    @property
    def explains(self) -> bool:  # type: ignore[override]
        """Whether `explain` is supported."""
        return self.parser_.explains

    @property
    def has_arc_reasons(self) -> bool:
        """Whether `arc_reasons` is supported."""
        return self.parser_.has_arc_reasons

    def arc_reasons(self, trees: Sequence[DepTree], *, n: int = 10) -> list[list[list[Any]]]:
        """Return the `n` features that contribute most to each arc of each tree.

        Parameters
        ----------
        trees : sequence of DepTree
            Trees with tags and heads, such as those from `predict`.
        n : int
            Maximum number of features per arc; those with the largest weights come first.

        Returns
        -------
        list of list of list of WeighedFeature
            The features of the arc to each word, for each tree.
        """
        return self.parser_.arc_reasons(trees, n=n)

    @property
    def own_tokenizer(self) -> Tokenizer:
        """The tokenizer inside the pipeline."""
        self.check_is_fitted()
        return self.tokenizer_

    def check_fitted_state(self) -> None:
        """Check that the parser has a tagger."""
        if self.parser_.own_tagger is None:
            raise InputError("the parser of the pipeline has no tagger; expected tags='predicted'")
