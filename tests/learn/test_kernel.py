import numpy as np
import pytest

from treewright.errors import InputError
from treewright.learn.kernel import KernelPerceptron


class LinearKernel:
    """Dot products of rows, with a note of each pair that was asked for."""

    def __init__(self, rows):
        self.rows = rows
        self.asked = []

    def block(self, rows_a, rows_b):
        self.asked += [(int(a), int(b)) for a in rows_a for b in rows_b]
        return self.rows[rows_a] @ self.rows[rows_b].T


def draw(random_state, n_lists=30, n_columns=6):
    """Draw lists of one to four rows of small integers, so that sums are exact and ties happen."""
    rng = np.random.default_rng(random_state)
    sizes = rng.integers(1, 5, size=n_lists)
    first = np.cumsum([0, *sizes])
    right = first[:-1] + rng.integers(sizes)
    return rng.integers(-2, 3, size=(first[-1], n_columns)).astype(float), first, right


def train_primal(rows, first, right, given, epochs, random_state):
    """Return the mean of the weights after each list, and the number of mistakes in each epoch."""
    rng = np.random.default_rng(random_state)
    weights, history, n_updates = np.zeros(rows.shape[1]), [], []
    for _ in range(epochs):
        n_updates.append(0)
        for number in rng.permutation(len(right)):
            wrong = [row for row in range(first[number], first[number + 1]) if row != right[number]]
            scores = rows @ weights + given
            if wrong and max(scores[wrong]) >= scores[right[number]]:
                rival = max(wrong, key=lambda row: scores[row])
                weights = weights + rows[right[number]] - rows[rival]
                n_updates[-1] += 1
            history.append(weights)
    return np.mean(history, axis=0), n_updates


@pytest.mark.parametrize("random_state", range(6))
@pytest.mark.parametrize("memory", [0, 100 << 20])
def test_a_linear_kernel_gives_the_averaged_perceptron(random_state, memory):
    rows, first, right = draw(random_state)
    given = np.random.default_rng(random_state).integers(-3, 4, size=len(rows)).astype(float)
    model = KernelPerceptron(epochs=4, cache_memory=memory, random_state=random_state).fit(
        LinearKernel(rows), first, right, given
    )
    weights, n_updates = train_primal(rows, first, right, given, 4, random_state)
    assert model.n_updates_ == n_updates
    np.testing.assert_allclose(model.coef_ @ rows[model.support_], weights, atol=1e-12)


def test_scores_of_new_rows_are_those_of_the_weights():
    rows, first, right = draw(1)
    model = KernelPerceptron().fit(LinearKernel(rows), first, right)
    new = np.random.default_rng(2).normal(size=(5, rows.shape[1]))
    weights, _ = train_primal(rows, first, right, 0, 5, 0)
    np.testing.assert_allclose(model.score(new @ rows[model.support_].T), new @ weights)


def test_rows_of_the_support_stand_there_once():
    rows, first, right = draw(2)
    model = KernelPerceptron(epochs=6).fit(LinearKernel(rows), first, right)
    assert len(set(model.support_.tolist())) == len(model.support_) == len(model.coef_)
    assert sum(model.n_updates_) > len(model.support_)


def test_no_value_is_computed_twice():
    rows, first, right = draw(3)
    kernel = LinearKernel(rows)
    KernelPerceptron(epochs=6).fit(kernel, first, right)
    assert len(set(kernel.asked)) == len(kernel.asked)


@pytest.mark.parametrize("bytes_kept", [0, 1000, 5000])
def test_values_without_room_change_nothing(bytes_kept):
    rows, first, right = draw(4)
    expected = KernelPerceptron().fit(LinearKernel(rows), first, right)
    kernel = LinearKernel(rows)
    found = KernelPerceptron(cache_memory=bytes_kept).fit(kernel, first, right)
    assert found.coef_.tolist() == expected.coef_.tolist()
    assert len(set(kernel.asked)) < len(kernel.asked)


def test_lists_that_are_ranked_right_from_the_start_need_no_support():
    rows, first, right = draw(5)
    given = np.zeros(len(rows))
    given[right] = 1
    kernel = LinearKernel(rows)
    model = KernelPerceptron().fit(kernel, first, right, given)
    assert (len(model.support_), model.n_updates_, kernel.asked) == (0, [0] * 5, [])
    assert model.score(np.empty((2, 0))).tolist() == [0, 0]


def test_a_tie_is_a_mistake():
    model = KernelPerceptron(epochs=1).fit(LinearKernel(np.eye(2)), [0, 2], [1])
    assert (model.support_.tolist(), model.coef_.tolist()) == ([1, 0], [1, -1])


@pytest.mark.parametrize(
    ("first", "right", "given", "message"),
    [
        (
            [0, 2],
            [0, 1],
            None,
            r"indptr has the shape \(2,\); expected \(3,\), one more than the number of lists",
        ),
        ([0, 2, 4], [0, 1], None, "list 1: the correct row is 1; expected 2 to 3"),
        ([0, 2], [0], [1.0], r"base_scores has the shape \(1,\); expected \(2,\), one score per row"),
    ],
)
def test_bad_lists_are_told(first, right, given, message):
    with pytest.raises(InputError, match=message):
        KernelPerceptron().fit(LinearKernel(np.eye(4)), first, right, given)


def test_bad_blocks_are_told():
    model = KernelPerceptron(epochs=1).fit(LinearKernel(np.eye(2)), [0, 2], [1])
    with pytest.raises(InputError, match=r"block has the shape \(3, 1\); expected \(n_rows, 2\)"):
        model.score(np.zeros((3, 1)))
