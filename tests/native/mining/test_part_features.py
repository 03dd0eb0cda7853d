import itertools

import numpy as np
import pytest
from oracle.mining import part_features as twin

from treewright.mining.forest import ForestFeatures, PartMatcher, mine_parts
from treewright.native.mining.part_features import RoleParts

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
N_ARCS = (1, 2, 2, 3, 3)
N_BASIC = 7


def random_parts(rng, n_parts, n_arcs=12):
    """Draw parts of all kinds over arcs with basic features; return them as arrays and as lists."""
    basic = [
        sorted(rng.choice(N_BASIC, size=rng.integers(1, 4), replace=False).tolist()) for _ in range(n_arcs)
    ]
    codes = rng.integers(4 * len(N_ARCS), size=n_parts)
    arcs = np.full((n_parts, 3), -1, dtype=np.int32)
    for row, code in enumerate(codes.tolist()):
        arcs[row, : N_ARCS[code // 4]] = rng.integers(n_arcs, size=N_ARCS[code // 4])
    indptr = np.cumsum([0, *map(len, basic)])
    ids = np.array([one for each in basic for one in each], dtype=np.int32)
    listed = [
        (code, [basic[arc] for arc in row if arc >= 0])
        for code, row in zip(codes.tolist(), arcs.tolist(), strict=True)
    ]
    return RoleParts(arcs, codes.astype(np.uint8), indptr, ids), listed


def as_tuples(features):
    return [
        (code, *(one for one in row if one >= 0))
        for code, row in zip(features.codes.tolist(), features.basic.tolist(), strict=True)
    ]


@pytest.mark.slow_cases
@pytest.mark.parametrize("threshold", [0.0, 0.7, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_mined_features_are_all_whose_gradient_exceeds_the_threshold(seed, threshold):
    rng = np.random.default_rng(seed)
    parts, listed = random_parts(rng, 60)
    residues = rng.uniform(0.05, 1, size=60) * rng.choice([-1, 1], size=60)
    mined = mine_parts(parts, residues, N_BASIC, threshold, copies=None)
    found = dict(zip(as_tuples(mined.features), mined.gradients.tolist(), strict=True))
    expected = twin.enter(listed, residues, threshold)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected)
    sums = twin.gradients(listed, residues)
    purity = [abs(sums[name][0] - sums[name][1]) / sum(sums[name]) for name in found]
    np.testing.assert_allclose(mined.purity, purity)
    pure = mine_parts(parts, residues, N_BASIC, threshold, min_purity=0.5, copies=None)
    assert set(as_tuples(pure.features)) == {
        name for name, one in zip(found, purity, strict=True) if one >= 0.5
    }


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", range(3))
def test_of_features_of_the_same_parts_one_enters(seed):
    rng = np.random.default_rng(seed)
    parts, listed = random_parts(rng, 30)
    residues = rng.uniform(0.05, 1, size=30) * rng.choice([-1, 1], size=30)
    features = mine_parts(parts, residues, N_BASIC, 0.1, copies=1).features
    places = twin.places(listed)
    entering = twin.enter(listed, residues, 0.1)
    expected = {(feature[0] // 4, frozenset(places[feature])) for feature in entering}
    found = [(feature[0] // 4, frozenset(places[feature])) for feature in as_tuples(features)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_no_feature_has_more_arcs_than_the_degree():
    rng = np.random.default_rng(1)
    parts, _ = random_parts(rng, 60)
    residues = rng.uniform(-1, 1, size=60)
    features = mine_parts(parts, residues, N_BASIC, 0.1, degree=2, copies=None).features
    assert set((features.basic >= 0).sum(axis=1).tolist()) == {1, 2}


@pytest.mark.parametrize("seed", range(3))
def test_features_are_found_and_weighed_in_the_parts_that_have_them(seed):
    rng = np.random.default_rng(seed)
    parts, listed = random_parts(rng, 80)
    names = sorted(twin.places(listed))
    chosen = [names[at] for at in sorted(rng.choice(len(names), size=len(names) // 3, replace=False))]
    codes = np.array([name[0] for name in chosen], dtype=np.uint8)
    basic = np.array([[*name[1:], -1, -1][:3] for name in chosen], dtype=np.int32)
    indptr, ids = PartMatcher(ForestFeatures(codes, basic), N_BASIC).match(parts)
    found = [{chosen[one] for one in ids[begin:end]} for begin, end in itertools.pairwise(indptr)]
    expected = [set(twin.features_of(code, arcs)) & set(chosen) for code, arcs in listed]
    assert found == expected
    coef = rng.normal(size=len(chosen)).astype(np.float32)
    weighed = PartMatcher(ForestFeatures(codes, basic), N_BASIC).weigh(parts, coef)
    sums = [sum(float(coef[chosen.index(name)]) for name in names) for names in expected]
    np.testing.assert_allclose(weighed, sums, atol=1e-5)
