"""What the service is asked and what it answers."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST_TREES = 50
"""Trees of one sentence that can be asked for."""
PLAIN = r"^[^\u0000-\u0020\u007f-\u009f\u2028\u2029]+$"
"""What any format can hold as one word: no white space, no-break spaces aside, and no controls."""

Layout = Literal["horizontal", "vertical"]
Plain = Annotated[str, Field(min_length=1, max_length=200, pattern=PLAIN)]


class Question(BaseModel):
    """Whatever comes from outside: values of the types that are named, and no others."""

    model_config = ConfigDict(strict=True, extra="forbid")


class GivenWord(Question):
    """A word, with its tag where it is known."""

    word: Plain
    tag: Plain | None = Field(None, description="The universal tag, or that of a constituency model.")
    xpos: Plain | None = Field(None, description="The treebank's own tag.")


class FixedArc(Question):
    """An arc that trees must have."""

    word: int = Field(ge=1, le=100_000, description="The word, from 1.")
    head: int = Field(ge=0, le=100_000, description="Its head; 0 is the root.")


class ParseRequest(Question):
    """Sentences to parse, as `text` or as `sentences`."""

    text: str = Field(
        default_factory=str,
        min_length=1,
        description="Plain text, CoNLL-U or trees in brackets, told by content.",
    )
    raw: bool = Field(False, description="Whether text is plain text, whatever it looks like.")
    sentences: list[Annotated[list[GivenWord], Field(min_length=1)]] = Field(
        default_factory=list, min_length=1, description="Sentences as lists of words."
    )
    model: str | None = Field(None, max_length=200, description="Name of the model; the first without it.")
    fixed: list[list[FixedArc]] | None = Field(
        None, description="For each sentence the arcs that its trees must have (dependencies)."
    )
    pictures: bool = Field(True, description="Whether trees come with pictures.")
    layout: Layout = Field(
        "horizontal", description="Whether words stand beside or under one another in pictures."
    )

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["text"]}, {"required": ["sentences"]}]}
    )

    @model_validator(mode="after")
    def _have_one_input(self) -> Self:
        given = self.model_fields_set & {"text", "sentences"}
        if len(given) != 1:
            raise ValueError(f"{' and '.join(sorted(given)) or 'neither'}; expected text or sentences")
        return self


class KBestRequest(ParseRequest):
    """Sentences of which the `k` best trees are wanted."""

    k: int = Field(5, ge=1, le=MOST_TREES, description="Trees a sentence.")


class Answer(BaseModel):
    """Whatever goes out."""

    model_config = ConfigDict(extra="forbid")


class UntaggedSentence(Answer):
    """A sentence as it was read, for tags to be added; lists have a value for each word."""

    words: list[str]
    upos: list[str] = Field(
        description="Tags, those of a constituency model included; _ where there is none."
    )
    xpos: list[str] = Field(description="The treebank's own tags; _ where there is none.")
    conllu: str | None = Field(description="Null if the model is one of constituents.")


class Failure(Answer):
    """Why there is no other answer."""

    error: str = Field(description="One sentence: place, what was found, what was expected.")
    sentences: list[UntaggedSentence] | None = Field(
        None, description="All sentences of the request, where the model needs tags that are missing."
    )


class Health(Answer):
    """Whether the service runs, and how much it has to do."""

    status: Literal["ok"]
    version: str
    models: list[str]
    waiting: int = Field(description="Requests that wait for a thread.")
    running: int = Field(description="Requests that are being worked on, those given up included.")


Kind = Literal["dependency", "constituent"]


class ModelDescription(Answer):
    """A model that is served."""

    name: str
    kind: Kind
    class_name: str = Field(alias="class")
    explains: bool = Field(description="Whether /explain takes it.")
    compares: bool = Field(description="Whether /explain says what decided between the two best trees.")
    needs_tags: bool = Field(description="Whether sentences must bring tags.")
    tags_known: list[str] = Field(description="Tags that it has seen in training, 200 at the most.")
    examples: list[str] = Field(description="Sentences to try, in words that it has seen in training.")


class Models(Answer):
    """All models that are served, the default one first."""

    models: list[ModelDescription]


class Meaning(Answer):
    """What a tag or label stands for."""

    name: str
    text: str = Field(description="A sentence, with examples between asterisks.")


class RelationMeaning(Meaning):
    """What a relation stands for."""

    group: str


class Meanings(Answer):
    """What relations, tags and labels stand for; subtypes of relations stand under their universal part."""

    groups: dict[str, str] = Field(description="Groups of relations, by name.")
    relations: dict[str, RelationMeaning]
    tags: dict[str, Meaning]
    phrases: dict[str, Meaning]


class DependencySentence(Answer):
    """A sentence with its dependency tree; lists have a value for each word."""

    words: list[str]
    upos: list[str]
    xpos: list[str]
    lemmas: list[str]
    heads: list[int]
    deprels: list[str]
    confidence: list[float] | None = Field(description="The probability of each word's head.")
    unknown: list[int] | None = Field(
        description="Words, from 1, that the model has never seen; null if it cannot tell."
    )
    svg: str | None
    conllu: str
    text: str


class ConstituentSentence(Answer):
    """A sentence with its constituency tree."""

    words: list[str]
    upos: list[str] = Field(description="Tags as the model knows them.")
    brackets: str
    svg: str | None
    nodes: int = Field(description="Nodes of the tree, which are numbered in post-order from 0.")
    text: str


class Ranked(Answer):
    """What is said of one of the best trees."""

    score: float
    probability: float | None = Field(
        description="Among all trees that agree with the fixed arcs; of a left-corner parser, among those "
        "listed; null if the model knows none."
    )
    differs: list[int] = Field(
        description="Words whose arcs differ from the best tree's, or nodes that it does not have."
    )


class DependencyCandidate(DependencySentence, Ranked):
    """One of the best dependency trees of a sentence."""


class ConstituentCandidate(ConstituentSentence, Ranked):
    """One of the best constituency trees of a sentence."""


class DependencyCandidates(Answer):
    """The best dependency trees of a sentence, the best first."""

    candidates: list[DependencyCandidate]


class ConstituentCandidates(Answer):
    """The best constituency trees of a sentence, the best first."""

    candidates: list[ConstituentCandidate]


class Alternative(Answer):
    """A head that a word may have, and how probable that is."""

    head: int
    probability: float


class FeatureWeight(Answer):
    """A feature and its weight."""

    text: str = Field(description="The feature as the model has it.")
    sentence: str = Field(description="The feature in plain words.")
    weight: float = Field(description="Positive if it speaks for the tree.")
    arcs: list[int] = Field(description="Words, from 1, whose arcs have it.")
    rank: int = Field(description="The tree that has it: 1 is the best, 2 the second.")


class ExplainedArc(Answer):
    """One arc of a tree, and what speaks for it."""

    word: int
    head: int
    relation: str
    confidence: float
    alternatives: list[Alternative] = Field(description="The most probable heads, the best first.")
    features: list[FeatureWeight] = Field(
        description="Features of the model that involve the arc, the weightiest first."
    )
    total_for: float = Field(description="Sum of the weights of all features that speak for the arc.")
    total_against: float = Field(description="Sum of the weights of all features that speak against it.")


class ExplainedSentence(DependencySentence):
    """A sentence with its tree, and why it is this one."""

    arcs: list[ExplainedArc]
    reasons: list[FeatureWeight] = Field(
        description="What decided between the two best trees, if a reranker did."
    )
    total_for: float = Field(description="Sum of the weights of all reasons for the best tree.")
    total_against: float = Field(description="Sum of the weights of all reasons for the second.")


class ParseReply(Answer):
    """Parsed sentences."""

    model: str
    kind: Kind
    sentences: list[DependencySentence] | list[ConstituentSentence]


class KBestReply(Answer):
    """The best trees of sentences."""

    model: str
    kind: Kind
    sentences: list[DependencyCandidates] | list[ConstituentCandidates]


class ExplainReply(Answer):
    """Parsed sentences with reasons."""

    model: str
    kind: Kind
    sentences: list[ExplainedSentence]
