"""Requests and responses of the service."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST_TREES = 50
"""Maximum number of k-best trees per sentence."""
PLAIN = r"^[^\u0000-\u0020\u007f-\u009f\u2028\u2029]+$"
"""Pattern of words that all formats allow: no whitespace except no-break spaces, no control characters."""

Layout = Literal["horizontal", "vertical"]
Plain = Annotated[str, Field(min_length=1, max_length=200, pattern=PLAIN)]


class Question(BaseModel):
    """Base class of requests; unknown fields and values of the wrong type are rejected."""

    model_config = ConfigDict(strict=True, extra="forbid")


class GivenWord(Question):
    """A word, with its tag if it is known."""

    word: Plain
    tag: Plain | None = Field(None, description="The universal tag, or the tag for a constituency model.")
    xpos: Plain | None = Field(None, description="The language-specific tag.")


class FixedArc(Question):
    """An arc that all trees must have."""

    word: int = Field(ge=1, le=100_000, description="Number of the word, from 1.")
    head: int = Field(ge=0, le=100_000, description="Number of its head; 0 is the root.")


class ParseRequest(Question):
    """Sentences to parse, as `text` or as `sentences`."""

    text: str = Field(
        default_factory=str,
        min_length=1,
        description="Plain text, CoNLL-U or trees in brackets (detected).",
    )
    raw: bool = Field(False, description="Always read the text as plain text.")
    sentences: list[Annotated[list[GivenWord], Field(min_length=1)]] = Field(
        default_factory=list, min_length=1, description="Sentences as lists of words."
    )
    model: str | None = Field(None, max_length=200, description="Name of the model (by default, the first).")
    fixed: list[list[FixedArc]] | None = Field(
        None, description="Fixed arcs of each sentence (dependency models only)."
    )
    pictures: bool = Field(True, description="Whether to include drawings of the trees.")
    layout: Layout = Field(
        "horizontal", description="Layout of drawings: words from left to right, or from top to bottom."
    )

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["text"]}, {"required": ["sentences"]}]}
    )

    @model_validator(mode="after")
    def _have_one_input(self) -> Self:
        given = self.model_fields_set & {"text", "sentences"}
        if len(given) != 1:
            found = "both text and sentences" if given else "neither text nor sentences"
            raise ValueError(f"{found}; expected one of them")
        return self


class KBestRequest(ParseRequest):
    """Sentences whose `k`-best trees are requested."""

    k: int = Field(5, ge=1, le=MOST_TREES, description="Number of trees per sentence.")


class Answer(BaseModel):
    """Base class of responses."""

    model_config = ConfigDict(extra="forbid")


class UntaggedSentence(Answer):
    """A sentence as it was read, so that tags can be added; lists have one value per word."""

    words: list[str]
    upos: list[str] = Field(description="Universal tags, or tags for a constituency model; _ if missing.")
    xpos: list[str] = Field(description="Language-specific tags; _ if missing.")
    conllu: str | None = Field(description="The sentence in CoNLL-U; null for a constituency model.")


class Failure(Answer):
    """An error."""

    error: str = Field(description="One sentence: place, value found, value expected.")
    sentences: list[UntaggedSentence] | None = Field(
        None, description="All sentences of the request, if the model needs tags that are missing."
    )


class Health(Answer):
    """State of the service and its load."""

    status: Literal["ok"]
    version: str
    models: list[str]
    waiting: int = Field(description="Number of requests that wait for a thread.")
    running: int = Field(description="Number of requests in progress, including those that have timed out.")


Kind = Literal["dependency", "constituent"]


class ModelDescription(Answer):
    """A served model."""

    name: str
    kind: Kind
    class_name: str = Field(alias="class")
    explains: bool = Field(description="Whether /explain supports the model.")
    compares: bool = Field(description="Whether /explain compares the two best trees.")
    needs_tags: bool = Field(description="Whether sentences must have tags.")
    tags_known: list[str] = Field(description="Tags that occur in the training set (at most 200).")
    examples: list[str] = Field(description="Example sentences with words of the training set.")


class Models(Answer):
    """All served models, the default first."""

    models: list[ModelDescription]


class Meaning(Answer):
    """Description of a tag or label."""

    name: str
    text: str = Field(description="A sentence, with examples in asterisks.")


class RelationMeaning(Meaning):
    """Description of a relation."""

    group: str


class Meanings(Answer):
    """Descriptions of relations, tags and labels; for a subtype, look up its universal relation."""

    groups: dict[str, str] = Field(description="Groups of relations.")
    relations: dict[str, RelationMeaning]
    tags: dict[str, Meaning]
    phrases: dict[str, Meaning]


class DependencySentence(Answer):
    """A sentence with its dependency tree; lists have one value per word."""

    words: list[str]
    upos: list[str]
    xpos: list[str]
    lemmas: list[str]
    heads: list[int]
    deprels: list[str]
    confidence: list[float] | None = Field(description="Probability of each word's head.")
    unknown: list[int] | None = Field(
        description="Numbers of the words, from 1, that are not in the training set; null if unknown."
    )
    svg: str | None
    conllu: str
    text: str


class ConstituentSentence(Answer):
    """A sentence with its constituency tree."""

    words: list[str]
    upos: list[str] = Field(description="Tags in the tag set of the model.")
    brackets: str
    svg: str | None
    nodes: int = Field(description="Number of nodes, which are numbered in post-order from 0.")
    text: str


class Ranked(Answer):
    """Score and probability of one of the k-best trees."""

    score: float
    probability: float | None = Field(
        description="Probability among all trees with the fixed arcs (for a left-corner parser, among the "
        "k-best trees); null if the model does not estimate it."
    )
    differs: list[int] = Field(
        description="Words whose arcs differ from the best tree, or nodes that the best tree lacks."
    )


class DependencyCandidate(DependencySentence, Ranked):
    """One of the k-best dependency trees of a sentence."""


class ConstituentCandidate(ConstituentSentence, Ranked):
    """One of the k-best constituency trees of a sentence."""


class DependencyCandidates(Answer):
    """The k-best dependency trees of a sentence, best first."""

    candidates: list[DependencyCandidate]


class ConstituentCandidates(Answer):
    """The k-best constituency trees of a sentence, best first."""

    candidates: list[ConstituentCandidate]


class Alternative(Answer):
    """A possible head of a word and its probability."""

    head: int
    probability: float


class FeatureWeight(Answer):
    """A feature and its weight."""

    text: str = Field(description="The feature in the notation of the model.")
    sentence: str = Field(description="The feature in plain English.")
    weight: float = Field(description="Positive if it favours the tree.")
    arcs: list[int] = Field(description="Numbers of the words, from 1, whose arcs have the feature.")
    rank: int = Field(description="The tree with the feature: 1 is the best, 2 the second best.")


class ExplainedArc(Answer):
    """An arc of a tree, with its features and alternatives."""

    word: int
    head: int
    relation: str
    confidence: float
    alternatives: list[Alternative] = Field(description="The most probable heads, best first.")
    features: list[FeatureWeight] = Field(description="Features that involve the arc, largest weights first.")
    total_for: float = Field(description="Sum of the weights of all features that favour the arc.")
    total_against: float = Field(description="Sum of the weights of all features against the arc.")


class ExplainedSentence(DependencySentence):
    """A sentence with its tree and the explanation."""

    arcs: list[ExplainedArc]
    reasons: list[FeatureWeight] = Field(
        description="Features by which a reranker chose between the two best trees."
    )
    total_for: float = Field(description="Sum of the weights of all features that favour the best tree.")
    total_against: float = Field(
        description="Sum of the weights of all features that favour the second best tree."
    )


class ParseReply(Answer):
    """Parsed sentences."""

    model: str
    kind: Kind
    sentences: list[DependencySentence] | list[ConstituentSentence]


class KBestReply(Answer):
    """The k-best trees of sentences."""

    model: str
    kind: Kind
    sentences: list[DependencyCandidates] | list[ConstituentCandidates]


class ExplainReply(Answer):
    """Parsed sentences with explanations."""

    model: str
    kind: Kind
    sentences: list[ExplainedSentence]
