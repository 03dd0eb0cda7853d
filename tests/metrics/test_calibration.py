import numpy as np
import pytest

import treewright as tw
from treewright.errors import InputError
from treewright.metrics import calibration
from treewright.metrics.calibration import reliability


def test_honest_confidence_has_no_calibration_error():
    confidence = np.repeat([0.25, 0.75], 400)
    is_right = np.concatenate([np.arange(400) % 4 == 0, np.arange(400) % 4 != 0])
    found = reliability(confidence, is_right)
    assert found.error == pytest.approx(0)
    assert (found.counts[2], found.counts[7], sum(found.counts)) == (400, 400, 800)


def test_overconfidence_is_measured():
    found = reliability(np.full(100, 0.95), np.arange(100) < 70)
    assert found.error == pytest.approx(0.25)
    assert (found.confidence[9], found.accuracy[9]) == pytest.approx((0.95, 0.7))


def test_full_confidence_falls_into_the_last_bin():
    assert reliability(np.ones(3), np.ones(3, dtype=bool)).counts[-1] == 3


GOLD = [tw.DepTree(["a", "b"], [0, 1]), tw.DepTree(["c"], [0])]


def test_heads_are_compared_with_the_confidence_in_misc():
    predicted = [
        tw.DepTree(["a", "b"], [2, 0], misc=["SpaceAfter=No|Confidence=0.65", "Confidence=0.6"]),
        tw.DepTree(["c"], [0], misc=["Confidence=1.0"]),
    ]
    found = calibration(GOLD, predicted)
    assert found.counts == (0, 0, 0, 0, 0, 0, 2, 0, 0, 1)
    assert found.accuracy[6] == 0
    assert found.error == pytest.approx(1.25 / 3)


@pytest.mark.parametrize("field", ["_", "Confidence=", "Confidence=1.2", "Confidence=x|A=1"])
def test_a_word_without_a_probability_is_an_error(field):
    with pytest.raises(InputError, match=r"sentence 2 has MISC .*; expected Confidence= followed by"):
        calibration(GOLD, [GOLD[0].with_misc(["Confidence=1"] * 2), GOLD[1].with_misc([field])])


def test_sentences_of_different_length_are_an_error():
    with pytest.raises(InputError, match="sentence 1 has 1 words; expected 2"):
        calibration(GOLD, GOLD[::-1])
