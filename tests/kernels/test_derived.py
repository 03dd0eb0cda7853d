import numpy as np
import pytest
from oracle import derived as oracle

from treewright.errors import InputError
from treewright.kernels.decisions import (
    candidate_logs,
    make_decision_list,
    make_gradient_list,
    merge_prefixes,
    softmax_rows,
)
from treewright.kernels.derived import (
    EfficientTopRerankingKernel,
    FisherKernel,
    TopKernel,
    TopRerankingKernel,
)
from treewright.kernels.examples import kernel_from_state, kernel_state

N_OUTPUTS, N_HIDDEN = 7, 2
KERNELS = [FisherKernel, TopKernel, TopRerankingKernel, EfficientTopRerankingKernel]


def make_model(rng):
    return rng.normal(size=(N_OUTPUTS, N_HIDDEN)), rng.normal(size=N_OUTPUTS)


def decide(candidates, weights, biases, *, merge=True):
    """Return candidates of the oracle as arrays."""
    choices = [choice for candidate in candidates for choice in candidate]
    hidden = np.array([choice[0] for choice in choices])
    logits = []
    for vector, (begin, end), _, allowed, _ in choices:
        scores = weights[begin:end] @ vector + biases[begin:end]
        scores[[each for each in range(end - begin) if begin + each not in allowed]] = -np.inf
        logits.append(scores)
    found = make_decision_list(
        hidden,
        np.arange(len(choices)),
        [choice[2] for choice in choices],
        np.cumsum([0, *map(len, candidates)]),
        n_outputs=N_OUTPUTS,
        distributions=softmax_rows(logits, [choice[1][0] for choice in choices], N_OUTPUTS),
        is_observed=[choice[4] for choice in choices],
    )
    return merge_prefixes(found) if merge else found


def problem(random_state, n_candidates=4):
    rng = np.random.default_rng(random_state)
    candidates = oracle.make_candidates(rng, n_candidates)
    weights, biases = make_model(rng)
    return candidates, weights, biases


def efficient_score(weights, biases, candidates, number, frozen):
    return oracle.reranking_score(weights, biases, candidates, number, frozen)


@pytest.mark.parametrize("random_state", range(8))
def test_candidates_are_as_probable_as_their_choices(random_state):
    candidates, weights, biases = problem(random_state)
    expected = [oracle.candidate_log(weights, biases, candidate) for candidate in candidates]
    np.testing.assert_allclose(candidate_logs(decide(candidates, weights, biases)), expected)


@pytest.mark.parametrize(
    ("kernel", "score"),
    [
        (FisherKernel, oracle.fisher_score),
        (TopKernel, oracle.top_score),
        (TopRerankingKernel, oracle.reranking_score),
    ],
)
@pytest.mark.parametrize("random_state", range(8))
def test_features_are_the_score_and_its_finite_differences(kernel, score, random_state):
    candidates, weights, biases = problem(random_state, 2 + random_state % 4)
    features = kernel().features([decide(candidates, weights, biases)]).toarray()
    for number in range(len(candidates)):
        slopes = oracle.differentiate(
            lambda w, b, number=number: score(w, b, candidates, number), weights, biases
        )
        np.testing.assert_allclose(features[number, 0], score(weights, biases, candidates, number))
        np.testing.assert_allclose(features[number, 1:], slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("random_state", range(8))
def test_features_of_the_efficient_kernel_are_finite_differences_with_frozen_normalisers(random_state):
    candidates, weights, biases = problem(random_state, 2 + random_state % 4)
    frozen = (weights.copy(), biases.copy())
    features = EfficientTopRerankingKernel().features([decide(candidates, weights, biases)]).toarray()
    for number in range(len(candidates)):
        slopes = oracle.differentiate(
            lambda w, b, number=number: oracle.reranking_score(w, b, candidates, number, frozen),
            weights,
            biases,
        )
        expected = oracle.reranking_score(weights, biases, candidates, number)
        np.testing.assert_allclose(features[number], [expected, *slopes], rtol=1e-5, atol=1e-7)


def test_the_efficient_kernel_has_features_of_outputs_that_were_chosen_only():
    candidates, weights, biases = problem(3)
    decisions = decide(candidates, weights, biases)
    efficient = EfficientTopRerankingKernel(biases=False).features([decisions])
    outputs = set(((efficient.indices[efficient.indices > 0] - 1) // N_HIDDEN).tolist())
    assert outputs <= set(decisions.outputs.tolist())
    assert efficient.nnz < TopRerankingKernel(biases=False).features([decisions]).nnz


def test_the_efficient_kernel_needs_no_distributions():
    candidates, weights, biases = problem(4)
    decisions = decide(candidates, weights, biases)
    kernel = EfficientTopRerankingKernel()
    bare = decisions._replace(distributions=None, is_observed=None)
    assert (kernel.features([bare]) != kernel.features([decisions])).nnz == 0
    with pytest.raises(
        InputError, match="no distributions; expected them, since the features of FisherKernel"
    ):
        FisherKernel().features([bare])
    with pytest.raises(InputError, match="no is_observed"):
        TopKernel().features([decisions._replace(is_observed=None)])


@pytest.mark.parametrize("kernel", [FisherKernel, TopRerankingKernel, EfficientTopRerankingKernel])
def test_sharing_steps_changes_nothing_but_the_work(kernel):
    candidates, weights, biases = problem(5)
    shared, apart = (decide(candidates, weights, biases, merge=merge) for merge in (True, False))
    assert len(shared.hidden) < len(apart.hidden)
    found = [kernel().features([each]).toarray() for each in (shared, apart)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


def test_what_all_candidates_share_has_no_features_in_reranking_kernels():
    candidates, weights, biases = problem(6)
    first = candidates[0]
    for kernel in (TopRerankingKernel(), EfficientTopRerankingKernel()):
        features = kernel.features([decide([first, first, first], weights, biases)])
        assert features[:, 1:].nnz == 0
        np.testing.assert_allclose(features[:, 0].toarray().ravel(), -np.log(2))


def test_a_list_of_one_candidate_has_no_odds():
    candidates, weights, biases = problem(7, 1)
    for kernel in (TopRerankingKernel(), EfficientTopRerankingKernel()):
        assert not kernel.features([decide(candidates, weights, biases)]).toarray().any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_are_inner_products_of_features(kernel):
    lists = [decide(*problem(random_state)) for random_state in range(3)]
    kernel = kernel(score_scale=0.5, biases=False)
    features = kernel.features(lists).toarray()
    assert features.shape == (12, 1 + N_OUTPUTS * N_HIDDEN)
    np.testing.assert_allclose(kernel(lists), features @ features.T)
    np.testing.assert_allclose(kernel(lists[:1], lists[1:]), features[:4] @ features[4:].T)
    np.testing.assert_allclose(features[:, 0], 0.5 * kernel.scores(lists))
    np.testing.assert_allclose(kernel.pack(lists).diagonal(), (features**2).sum(axis=1))


def test_very_improbable_candidates_do_not_underflow():
    candidates, weights, biases = problem(8)
    decisions = decide(candidates, weights, biases)
    n_repeats = 400
    longer = [
        np.concatenate([decisions.outputs[begin:end]] * n_repeats)
        for begin, end in zip(decisions.indptr[:-1], decisions.indptr[1:], strict=True)
    ]
    outputs = np.concatenate(longer)
    steps = np.concatenate(
        [
            np.concatenate([decisions.steps[begin:end]] * n_repeats)
            for begin, end in zip(decisions.indptr[:-1], decisions.indptr[1:], strict=True)
        ]
    )
    long = make_decision_list(
        decisions.hidden,
        steps,
        outputs,
        np.cumsum([0, *map(len, longer)]),
        n_outputs=N_OUTPUTS,
        distributions=decisions.distributions,
    )
    assert candidate_logs(long).max() < -1000
    for kernel in (FisherKernel(), TopRerankingKernel(), EfficientTopRerankingKernel()):
        assert np.isfinite(kernel.features([long]).toarray()).all()


@pytest.mark.parametrize("random_state", range(4))
def test_kernels_of_all_weights_combine_gradients_as_those_of_output_weights(random_state):
    candidates, weights, biases = problem(random_state)
    decisions = decide(candidates, weights, biases)
    fisher = FisherKernel().features([decisions]).toarray()
    gradients = make_gradient_list(candidate_logs(decisions), fisher[:, 1:])
    np.testing.assert_allclose(FisherKernel().features([gradients]), fisher)
    np.testing.assert_allclose(
        TopRerankingKernel().features([gradients]),
        TopRerankingKernel().features([decisions]).toarray(),
        atol=1e-12,
    )
    for kernel in (TopKernel(), EfficientTopRerankingKernel()):
        with pytest.raises(InputError, match="cannot use a GradientList; expected a DecisionList"):
            kernel.features([gradients])


def test_hidden_vectors_may_be_of_single_precision():
    decisions = decide(*problem(2))
    single = make_decision_list(
        decisions.hidden.astype(np.float32),
        decisions.steps,
        decisions.outputs,
        decisions.indptr,
        n_outputs=N_OUTPUTS,
        log_probabilities=decisions.log_probabilities,
    )
    assert single.hidden.dtype == np.float32
    kernel = EfficientTopRerankingKernel()
    found = kernel.features([single])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.toarray(), kernel.features([decisions]).toarray(), atol=1e-6)


def test_kernels_can_be_saved():
    kernel = kernel_from_state(kernel_state(TopKernel(score_scale=0.25, biases=False)))
    assert isinstance(kernel, TopKernel)
    assert kernel.get_params() == {"score_scale": 0.25, "biases": False}


def test_the_top_kernel_wants_shared_steps_and_whole_candidates():
    candidates, weights, biases = problem(1)
    with pytest.raises(InputError, match="but not the next step; expected the same step; use merge_prefixes"):
        TopKernel().features([decide(candidates, weights, biases, merge=False)])
    with pytest.raises(InputError, match="candidate 1 is a prefix of another"):
        TopKernel().features([decide([candidates[0], candidates[0][:2]], weights, biases)])
    decisions = decide(candidates, weights, biases)
    everything = decisions._replace(is_observed=np.ones_like(decisions.is_observed))
    with pytest.raises(InputError, match="different observed choices at one step; expected one"):
        TopKernel().features([everything])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": [1.0]}, "hidden has 1 dimensions; expected 2"),
        ({"hidden": [[np.nan]]}, "hidden has the value nan; expected finite numbers"),
        ({"steps": [0, 7]}, "steps has the value 7; expected numbers from 0 to 0"),
        ({"steps": [0.5, 0.5]}, "steps has the dtype float64; expected integers"),
        ({"outputs": [0]}, r"outputs has the shape \(1,\); expected \(2,\)"),
        ({"indptr": [1, 2]}, "indptr is .*; expected 0 followed by the end of each candidate"),
        ({"n_outputs": 0}, "n_outputs is 0; expected an integer of at least 1"),
        ({"distributions": [[0.5, 0.2]]}, "step 0 have the sum 0.7; expected the sum 1"),
        (
            {"distributions": [[1.5, -0.5]]},
            "step 0 have the sum 1; expected the sum 1 and no negative values",
        ),
        ({"distributions": [[1.0]]}, "distributions has the shape"),
        ({"distributions": [[1.0, 0.0]]}, r"choice 1 \(output 1 of step 0\) has the probability 0"),
        ({"distributions": None}, "log_probabilities and distributions are both None"),
        ({"log_probabilities": [0.5, -1.0]}, "log_probabilities has the value 0.5; expected 0 or less"),
        ({"is_observed": [True]}, "is_observed has the shape"),
    ],
)
def test_bad_arrays_are_named(changes, message):
    good = {
        "hidden": [[1.0]],
        "steps": [0, 0],
        "outputs": [0, 1],
        "indptr": [0, 1, 2],
        "n_outputs": 2,
        "distributions": [[0.5, 0.5]],
    }
    make_decision_list(**good)
    with pytest.raises(InputError, match=message):
        make_decision_list(**{**good, **changes})


def test_lists_must_be_of_one_kind():
    decisions = decide(*problem(0))
    gradients = make_gradient_list([-1.0], [[1.0, 2.0]])
    with pytest.raises(InputError, match="list 1 is a GradientList of 2 parameters; expected a DecisionList"):
        FisherKernel().features([decisions, gradients])
    with pytest.raises(InputError, match="lists is of the type DecisionList; expected a sequence"):
        FisherKernel().features(decisions)
    with pytest.raises(InputError, match="a list is of the type str; expected a DecisionList"):
        FisherKernel().features(["(S a)"])
    with pytest.raises(InputError, match="gradients has 1 rows and log_probabilities 2 values"):
        make_gradient_list([-1.0, -2.0], [[1.0, 2.0]])


def test_logits_must_be_numbers():
    with pytest.raises(InputError, match=r"logits of step 1 are .*; expected numbers, not all -inf"):
        softmax_rows([[0.0], [-np.inf]], [0, 0], 1)
    with pytest.raises(InputError, match="the last output of step 0 is 2; expected at most 1"):
        softmax_rows([[0.0, 1.0]], [1], 2)
