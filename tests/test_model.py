"""Parameters of fitted models, and what is saved of them."""

import numpy as np
import pytest

import treewright as tw
from treewright._naming import spelled_by
from treewright.annotation.contract import Annotator, Request
from treewright.errors import InputError
from treewright.kernels.compose import VectorKernel
from treewright.parsing.contract import PartScorer
from treewright.rerank.any_candidates import CandidateReranker


@pytest.fixture(scope="module")
def trees():
    return tw.make_treebank(30, random_state=0).dependencies


@pytest.fixture
def tagger(trees):
    return tw.Tagger(epochs=1).fit(trees)


@pytest.fixture(scope="module")
def labeler():
    bank = tw.make_treebank(30, random_state=0)
    return tw.RoleLabeler().fit(bank.constituents, bank.propositions)


def test_a_fitted_model_is_used_with_parameters_that_it_looks_at(labeler):
    assert labeler.using(n_jobs=2).n_jobs == 2
    assert labeler.n_jobs == 1


def test_parameters_that_only_training_reads_are_refused_in_using(tagger, labeler):
    with pytest.raises(InputError) as caught:
        tagger.using(epochs=9)
    assert str(caught.value) == (
        "epochs has no effect on a Tagger that is fitted; expected none, or with_params and fit"
    )
    with pytest.raises(InputError, match=r"kernel has no effect on a RoleLabeler .*; expected one of n_jobs"):
        labeler.using(kernel="sst")


@pytest.mark.parametrize(
    "kind",
    [
        tw.DependencyParser,
        tw.DependencyReranker,
        tw.ConstituentParser,
        tw.LeftCornerParser,
        tw.ConstituentReranker,
        tw.RoleLabeler,
        tw.ConjunctionMiner,
    ],
)
def test_adjustable_parameters_are_parameters(kind):
    assert set(kind.adjustable) <= set(kind.param_names())


def test_a_model_that_was_changed_after_fitting_is_not_saved(tagger, tmp_path):
    tagger.set_params(epochs=9)
    with pytest.raises(InputError) as caught:
        tagger.save(tmp_path / "m")
    assert str(caught.value) == "epochs was 1 in fit and is 9; call fit again, or set it back, before saving"
    tagger.set_params(epochs=1).save(tmp_path / "m")
    assert tw.load(tmp_path / "m").epochs == 1


def test_a_model_that_was_changed_and_fitted_again_is_saved(tagger, trees, tmp_path):
    tagger.set_params(epochs=2).fit(trees).save(tmp_path / "m")
    loaded = tw.load(tmp_path / "m")
    assert loaded.epochs == 2
    with pytest.raises(InputError, match="epochs was 2 in fit and is 3"):
        loaded.set_params(epochs=3).save(tmp_path / "m")


def test_parameters_of_parameters_count_as_well(tmp_path):
    rows, labels = np.eye(4), [0, 1, 0, 1]
    machine = tw.TreeKernelClassifier(VectorKernel("rbf", gamma=0.5)).fit(rows, labels)
    machine.set_params(kernel__gamma=2.0)
    with pytest.raises(InputError, match=r"kernel was VectorKernel\(.*gamma=0.5.* in fit and is Vector"):
        machine.save(tmp_path / "m")


class TagReader(Annotator):
    """A model with a tagger of its own."""

    finds = "tags"
    can = frozenset({"tags", "language"})
    own_tagger = "a tagger"

    def __init__(self, *, tags="predicted"):
        self.tags = tags


@pytest.mark.parametrize(
    ("spell", "message"),
    [
        (str, "tags='gold' with language, but plain text has no tags; expected tags='predicted'"),
        (
            {"language": "--raw", "tags": "--tags"}.get,
            "--tags gold with --raw, but plain text has no tags; expected --tags predicted",
        ),
    ],
)
def test_plain_text_has_no_gold_tags(spell, message):
    with spelled_by(spell), pytest.raises(InputError) as caught:
        TagReader().prepare_for(Request(tags="gold", language="xx"))
    assert str(caught.value) == message


def test_a_loaded_reranker_of_candidates_has_its_weights_as_they_were_given(tmp_path):
    lists, losses, scores = [[[1.0], [0.0]]], [[0.0, 1.0]], [[-1.0, -2.0]]
    CandidateReranker(base_weights=(1.0, 2.0)).fit(lists, losses, scores, dev=(lists, losses, scores)).save(
        tmp_path / "m"
    )
    loaded = tw.load(tmp_path / "m")
    assert loaded.base_weights == (1.0, 2.0)
    assert repr(loaded) == "CandidateReranker(base_weights=(1.0, 2.0))"


def test_unknown_parameters_are_refused_in_one_form():
    with pytest.raises(InputError) as caught:
        PartScorer().set_params(x=1)
    assert str(caught.value) == "parameter 'x' of PartScorer; expected none, as it has no parameters"
    for model in (tw.Tagger(), tw.ConjunctionMiner(), tw.TreeKernelClassifier(), tw.SubsetTreeKernel()):
        with pytest.raises(InputError, match=rf"^parameter 'x' of {type(model).__name__}; expected one of "):
            model.set_params(x=1)
