import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

from treewright.data.consttree import ConstTree
from treewright.data.svmlight import SparseVector
from treewright.errors import FormatError, InputError
from treewright.kernels.compose import VectorKernel
from treewright.kernels.convolution import SubsetTreeKernel
from treewright.kernels.decisions import make_decision_list, make_gradient_list, softmax_rows
from treewright.kernels.derived import (
    EfficientTopRerankingKernel,
    FisherKernel,
    TopKernel,
    TopRerankingKernel,
)
from treewright.model import State, identify, load, load_state, save_state
from treewright.progress import messages_to
from treewright.rerank.any_candidates import CandidateReranker

TRUTH = np.array([1.0, -2.0, 0.5])


def make_vectors(random_state, n_lists=40, noise=0.5):
    """Return lists of vectors, their losses, and base scores that know the losses not quite."""
    rng = np.random.default_rng(random_state)
    lists = [rng.normal(size=(int(rng.integers(1, 7)), 3)) for _ in range(n_lists)]
    losses = [-(rows @ TRUTH) for rows in lists]
    scores = [-each + rng.normal(scale=4 * noise, size=len(each)) for each in losses]
    return lists, losses, scores


def mean_loss(places, losses):
    return float(np.mean([each[place] for place, each in zip(places, losses, strict=True)]))


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        *((kernel, options) for kernel in (None, VectorKernel()) for options in ({}, {"voting": True})),
        (None, {"learner": "svm"}),
        (VectorKernel(), {"epochs": 3}),
    ],
)
def test_reranking_is_better_than_the_scores_it_begins_with(kernel, options):
    training, dev, test = (make_vectors(random_state) for random_state in range(3))
    reranker = CandidateReranker(kernel, **options).fit(*training, dev=dev)
    lists, losses, scores = test
    base = mean_loss([each.argmax() for each in scores], losses)
    reranked = mean_loss(reranker.predict(lists, scores), losses)
    assert reranked < base - 0.2
    assert reranker.score(lists, losses, scores) == pytest.approx(-reranked)
    assert reranker.dev_losses_.best <= reranker.dev_losses_.chosen < reranker.dev_losses_.base


def test_vectors_and_their_linear_kernel_are_reranked_alike():
    training, _, test = (make_vectors(random_state) for random_state in range(3))
    primal, dual = (CandidateReranker(kernel).fit(*training) for kernel in (None, VectorKernel()))
    for a, b in zip(
        primal.decision_function(test[0], test[2]), dual.decision_function(test[0], test[2]), strict=True
    ):
        np.testing.assert_allclose(a, b)


def test_candidates_may_be_rows_matrices_or_mappings():
    lists, losses, scores = make_vectors(4)
    expected = CandidateReranker().fit(lists, losses, scores).predict(lists, scores)
    names = ["red", "green", "blue"]
    forms = [
        [csr_matrix(rows) for rows in lists],
        [rows.tolist() for rows in lists],
        [[SparseVector([1, 2, 3], row) for row in rows] for rows in lists],
        [csr_matrix(rows) if number % 2 else rows for number, rows in enumerate(lists)],
        [[dict(zip(names, row, strict=True)) for row in rows.tolist()] for rows in lists],
    ]
    for form in forms:
        reranker = CandidateReranker().fit(form, losses, scores)
        np.testing.assert_array_equal(reranker.predict(form, scores), expected)
    assert reranker.predict([[{"yellow": 1.0}]]).tolist() == [0]


def test_the_base_weight_is_the_best_on_dev():
    training, dev, _ = (make_vectors(random_state) for random_state in range(3))
    noisy = (*dev[:2], [np.random.default_rng(9).normal(size=len(each)) * 100 for each in dev[1]])
    reranker = CandidateReranker().fit(*training, dev=noisy)
    assert reranker.base_weight_ < 0.1
    final = reranker.decision_function(noisy[0], noisy[2])[0]
    np.testing.assert_allclose(
        final, noisy[0][0] @ reranker.ranker_.coef_ + reranker.base_weight_ * noisy[2][0]
    )
    alone = CandidateReranker().fit(*training)
    assert alone.base_weight_ == 1.0
    assert alone.dev_losses_ is None


def test_of_several_base_weights_the_dev_lists_choose():
    training, dev, _ = (make_vectors(random_state) for random_state in range(3))
    lines = []
    weights = (0.01, 1.0, 100.0)
    with messages_to(lines.append):
        reranker = CandidateReranker(base_weights=weights).fit(*training, dev=dev)
    assert len(lines) == 3
    assert all("mean dev loss" in line for line in lines)
    each = [CandidateReranker(base_weights=[weight]).fit(*training, dev=dev) for weight in weights]
    assert reranker.dev_losses_.chosen == min(one.dev_losses_.chosen for one in each)


def make_trees():
    """Return lists of trees, of which those that attach to the verb are wrong."""
    verbs, nouns = ["sees", "knows", "meets"], ["man", "dog", "child"]
    lists = []
    for verb in verbs:
        for noun in nouns:
            high = f"(S (V {verb}) (NP (N {noun})) (PP (P of) (N town)))"
            low = f"(S (V {verb}) (NP (NP (N {noun})) (PP (P of) (N town))))"
            lists.append([ConstTree.parse(high), ConstTree.parse(low)])
    return lists


@pytest.mark.parametrize("voting", [False, True])
def test_trees_are_reranked_by_the_subset_tree_kernel(voting, tmp_path):
    lists = make_trees()
    losses, scores = [[0.2, 0.0]] * len(lists), [[-1.0, -1.2]] * len(lists)
    reranker = CandidateReranker(SubsetTreeKernel(decay=0.4), epochs=5, voting=voting)
    reranker.fit(lists[:6], losses[:6], scores[:6])
    assert reranker.predict(lists, scores).tolist() == [1] * len(lists)
    check_saving(reranker, lists, scores, tmp_path)


def check_saving(reranker, lists, scores, folder):
    reranker.save(folder / "model")
    again = CandidateReranker.from_state(load_state(folder / "model"))
    for a, b in zip(
        reranker.decision_function(lists, scores), again.decision_function(lists, scores), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert again.dev_losses_ == reranker.dev_losses_
    assert repr(again.ranker_.coef_) == repr(reranker.ranker_.coef_)


@pytest.mark.parametrize("options", [{}, {"voting": True}, {"learner": "svm", "penalty": 0.5}])
def test_rerankers_of_features_are_saved(options, tmp_path):
    lists, losses, scores = make_vectors(5)
    named = [[{"a": x, "b": y, "c": z} for x, y, z in rows.tolist()] for rows in lists]
    for form in (lists, named):
        reranker = CandidateReranker(**options).fit(form, losses, scores, dev=(form, losses, scores))
        check_saving(reranker, form, scores, tmp_path)
    assert clone(reranker).get_params()["base_weights"] == (1.0,)


def without_kernel(state):
    """Have a reranker that compares examples say that it has no kernel."""
    del state.parts["kernel"]
    state.values["kernel"] = None


@pytest.mark.parametrize(
    ("kernel", "change", "message"),
    [
        (None, lambda state: state.values.update(base_weight="x"), "base_weight is 'x'; expected float"),
        (None, lambda state: state.values.update(base_weights=[-1]), "expected a number from 0 to"),
        (
            None,
            lambda state: state.values["params"].update(learner="svm"),
            "a learner that matches the par",
        ),
        (None, lambda state: state.parts.update(view=State("KernelView")), "view|examples"),
        (None, lambda state: state.parts.update(view=State("Tagger")), "view is a Tagger; expected View"),
        (None, lambda state: state.parts.update(ranker=State("Tagger")), "Tagger"),
        (None, lambda state: state.parts.pop("ranker"), "ranker"),
        (None, lambda state: spoil(state, "coef", np.nan), "coef contains NaN or infinity; expected finite"),
        (None, lambda state: spoil(state, "updates.right", 99), "expected updates within the support"),
        (None, lambda state: spoil(state, "updates.lives", -1), "lives of at least 0"),
        (VectorKernel(), without_kernel, "a view that matches the kernel"),
        (VectorKernel(), lambda state: state.parts["view"].parts.clear(), "examples|NoneType"),
        (VectorKernel(), lambda state: spoil(state, "support", -1), "support of at least 0"),
    ],
)
def test_what_is_no_reranker_is_refused(kernel, change, message, tmp_path):
    lists, losses, scores = make_vectors(5)
    state = CandidateReranker(kernel).fit(lists, losses, scores).get_state()
    change(state)
    save_state(state, tmp_path / "model")
    with pytest.raises(FormatError, match=message):
        load(tmp_path / "model")


def spoil(state, name, value):
    """Change the first number of an array of the learner."""
    arrays = state.parts["ranker"].arrays
    arrays[name] = arrays[name].copy()
    arrays[name][0] = value


def test_using_a_reranker_does_not_change_it():
    lists, losses, scores = make_vectors(6)
    reranker = CandidateReranker().fit(lists, losses, scores)
    before = identify(reranker.get_state())
    reranker.predict([np.eye(3), np.eye(3).tolist()], [[0] * 3] * 2)
    assert identify(reranker.get_state()) == before


def make_decisions(random_state, n_lists=30):
    """Return lists of a model that is unsure of its second choice, and which candidates are right."""
    rng = np.random.default_rng(random_state)
    weights = np.array([[0.5, 0.0], [0.0, 0.4], [0.0, 0.0]])
    lists, losses = [], []
    for _ in range(n_lists):
        hidden = rng.normal(size=(2, 2))
        outputs = [[first, second] for first in (0, 1) for second in (1, 2)]
        # What is right depends on the hidden vector; the model knows only a part of it.
        right = 1 if hidden[1] @ [2.0, 1.0] > 0 else 2
        lists.append(
            make_decision_list(
                hidden,
                [0, 1] * 4,
                np.ravel(outputs),
                np.arange(0, 9, 2),
                n_outputs=3,
                distributions=softmax_rows(list(hidden @ weights.T), [0, 0], 3),
                is_observed=np.zeros(8, dtype=bool),
            )
        )
        losses.append([float(second != right) for _, second in outputs])
    return lists, losses


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "kernel", [FisherKernel(), TopRerankingKernel(), EfficientTopRerankingKernel(biases=False)]
)
@pytest.mark.parametrize("options", [{}, {"voting": True}, {"learner": "svm"}])
def test_derived_kernels_rerank_the_candidates_of_a_model(kernel, options, tmp_path):
    training, test = make_decisions(0), make_decisions(1)
    reranker = CandidateReranker(kernel, **options).fit(*training)
    base = [list(np.split(kernel.scores(test[0]), len(test[0]))[number]) for number in range(len(test[0]))]
    before = mean_loss([int(np.argmax(each)) for each in base], test[1])
    assert -reranker.score(*test) < before
    assert reranker.predict(test[0]).shape == (len(test[0]),)
    check_saving(reranker, test[0], None, tmp_path)


def test_an_untrained_derived_reranker_is_the_model_itself():
    training, _ = make_decisions(0), None
    kernel = TopRerankingKernel()
    nothing = [np.zeros(4)] * len(training[0])
    reranker = CandidateReranker(kernel).fit(training[0], nothing)
    assert not reranker.ranker_.coef_.any()
    np.testing.assert_allclose(
        np.concatenate(reranker.decision_function(training[0])), kernel.scores(training[0])
    )


def test_lists_of_a_model_may_be_made_when_they_are_asked_for():
    lists, losses = make_decisions(3)

    class Source:
        def __len__(self):
            return len(lists)

        def __getitem__(self, number):
            return lists[number]

    kernel = EfficientTopRerankingKernel()
    made, kept = (CandidateReranker(kernel).fit(each, losses) for each in (Source(), lists))
    np.testing.assert_array_equal(made.ranker_.coef_, kept.ranker_.coef_)
    np.testing.assert_array_equal(made.predict(Source()), kept.predict(lists))


def test_features_that_are_kept_and_those_made_again_are_the_same():
    training = make_decisions(4)
    kept, made = (
        CandidateReranker(FisherKernel(), epochs=3, cache_memory=memory).fit(*training)
        for memory in (1 << 20, 0)
    )
    np.testing.assert_array_equal(made.ranker_.coef_, kept.ranker_.coef_)


def test_gradients_of_any_model_are_reranked():
    rng = np.random.default_rng(0)
    lists = [make_gradient_list(-rng.random(3), rng.normal(size=(3, 4))) for _ in range(30)]
    losses = [1 - each.gradients[:, 0] for each in lists]
    reranker = CandidateReranker(FisherKernel(), epochs=3).fit(lists, losses)
    base = mean_loss([each.log_probabilities.argmax() for each in lists], losses)
    assert -reranker.score(lists, losses) < base - 0.3


def test_the_top_kernel_can_be_used_too():
    lists, losses = make_decisions(0)
    # Drop a candidate, so that there are choices that were not computed.
    lists = [
        each._replace(
            steps=each.steps[:6],
            outputs=each.outputs[:6],
            log_probabilities=each.log_probabilities[:6],
            indptr=each.indptr[:4],
            is_observed=each.is_observed[:6],
        )
        for each in lists
    ]
    losses = [each[:3] for each in losses]
    reranker = CandidateReranker(TopKernel(), epochs=2).fit(lists, losses)
    assert np.isfinite(reranker.score(lists, losses))


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"learner": "tree"}, {}, "learner is 'tree'; expected one of perceptron, svm"),
        ({"base_weights": ()}, {}, r"base_weights is \(\); expected a sequence of at least one number"),
        (
            {"base_weights": (1, 2)},
            {},
            "base_weights has 2 values; expected one, or dev to choose among them",
        ),
        ({"base_weights": (-1,)}, {}, r"base_weights\[0\] is -1; expected a number from 0"),
        ({"kernel": "sst"}, {}, "kernel is 'sst'; expected a kernel"),
        (
            {"kernel": VectorKernel(), "learner": "svm"},
            {},
            "learner is 'svm' and kernel is VectorKernel; expected",
        ),
        ({"kernel": FisherKernel()}, {}, "list 0: a list is of type ndarray; expected a DecisionList"),
        ({}, {"lists": []}, "lists is list; expected a sequence of at least one list"),
        ({}, {"lists": [np.eye(2), np.zeros((0, 2))]}, "list 1 is empty; expected at least one candidate"),
        ({}, {"lists": [np.eye(2), np.eye(3)[:2]]}, "list 1: vectors have 3 columns; expected 2"),
        ({}, {"lists": [np.eye(2), 3]}, "list 1: the examples are of the type int; expected a list"),
        (
            {},
            {"lists": [[{"a": 1}, {2: 1}], [{}, {}]]},
            "candidate 1 is dict; expected a mapping from feature names",
        ),
        ({}, {"losses": [[0, 1]]}, "losses has 1 lists; expected 2, one per candidate list"),
        ({}, {"losses": [[0, 1], [1]]}, r"list 1: losses have the shape \(1,\); expected \(2,\)"),
        ({}, {"losses": [[0, 1], [0, np.nan]]}, "list 1: losses contain nan; expected finite"),
        ({}, {"scores": [["a", "b"], [0, 1]]}, "list 0: scores are .*; expected numbers"),
        ({}, {"dev": 3}, r"dev is int; expected \(lists, losses\) or \(lists, losses, scores\)"),
    ],
)
def test_bad_input_is_named(options, arguments, message):
    good = {"lists": [np.eye(2), np.eye(2)], "losses": [[0, 1], [1, 0]]}
    with pytest.raises(InputError, match=message):
        CandidateReranker(**options).fit(**{**good, **arguments})
