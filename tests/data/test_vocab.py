from treewright.data.vocab import Vocabulary


def test_strings_are_numbered_by_frequency_and_then_by_name():
    vocabulary = Vocabulary.from_counts({"b": 2, "a": 2, "c": 5})
    assert vocabulary.strings == ["c", "a", "b"]
    assert vocabulary.ids(["a", "b", "c", "d"]).tolist() == [2, 3, 1, 0]


def test_rare_strings_are_unknown():
    vocabulary = Vocabulary.from_counts({"a": 1, "b": 2}, min_count=2)
    assert (vocabulary.id("a"), vocabulary.id("b"), len(vocabulary)) == (0, 1, 2)
    assert "a" not in vocabulary


def test_ids_lead_back_to_strings():
    vocabulary = Vocabulary(["x", "y"])
    assert [vocabulary[vocabulary.id(one)] for one in ("x", "y")] == ["x", "y"]
