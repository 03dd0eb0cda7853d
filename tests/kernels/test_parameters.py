"""Parameters of tree kernels, and the rows and similarities they are given."""

import numpy as np
import pytest

from treewright import PartialTreeKernel, SmoothedPartialTreeKernel, SubsetTreeKernel
from treewright.errors import InputError
from treewright.kernels import indices

TEXTS = [
    "(S (NP (D a) (N cat)) (VP (V sat)))",
    "(S (NP (D a) (N dog)) (VP (V sat)))",
    "(S (NP (N cat)) (VP (V ran)))",
]


def test_a_fitted_kernel_keeps_the_parameters_it_was_fitted_with():
    kernel = SubsetTreeKernel(decay=0.4, normalize=True)
    before = kernel.fit(TEXTS).transform(TEXTS)
    kernel.set_params(decay=0.1, normalize=False)
    assert np.array_equal(kernel.transform(TEXTS), before)


@pytest.mark.parametrize("max_children", [3, 10**6, 10**30])
def test_a_limit_above_all_children_is_none(max_children):
    limited = PartialTreeKernel(max_children=max_children)
    assert np.array_equal(limited(TEXTS), PartialTreeKernel()(TEXTS))


@pytest.mark.parametrize("rows", [np.ones(3, dtype=bool), [0.7], [[0, 1]], ["a"], 1])
def test_rows_that_are_no_list_of_whole_numbers_are_refused(rows):
    packed = SubsetTreeKernel().pack(TEXTS)
    with pytest.raises(InputError, match="expected one dimension of integers"):
        packed.block(rows, [0])


@pytest.mark.parametrize(
    ("words", "matrix", "found"),
    [
        (["a", "b"], [[1, np.nan], [np.nan, 1]], "has the value nan"),
        (["a", "b"], [[1, np.inf], [np.inf, 1]], "has the value inf"),
        (["a", "a"], [[1, 0], [0, 1]], "word 1 of the similarities is 'a'"),
        (["a", 7], [[1, 0], [0, 1]], "word 1 of the similarities is 7"),
        (["a", "b"], [[1, 0], [0, 2]], "with itself is 2"),
    ],
)
def test_similarities_that_are_none_are_refused(words, matrix, found):
    with pytest.raises(InputError, match=found):
        SmoothedPartialTreeKernel((words, matrix))(TEXTS)


@pytest.mark.parametrize("kernel", [SubsetTreeKernel(), PartialTreeKernel()])
def test_values_do_not_depend_on_the_room_for_lists(kernel, monkeypatch):
    expected = kernel(TEXTS), kernel.pack(TEXTS).pairs([0, 1, 2], [2, 0, 1])
    monkeypatch.setattr(indices, "SHORT_LIST", 1)
    assert np.array_equal(kernel(TEXTS), expected[0])
    assert np.array_equal(kernel.pack(TEXTS).pairs([0, 1, 2], [2, 0, 1]), expected[1])


def test_a_kernel_names_its_columns():
    assert SubsetTreeKernel().fit(TEXTS).get_feature_names_out()[0] == "subsettreekernel0"
