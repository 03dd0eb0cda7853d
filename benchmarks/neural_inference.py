"""Sentences per second of a network on one core with NumPy, PyTorch and ONNX Runtime.

python benchmarks/neural_inference.py train.conllu test.conllu [rounds]

The network has random weights from PyTorch and the vocabularies of the first file. The libraries run in turn,
with one thread; the CPU time is the best of several rounds. ONNX Runtime is measured if `onnx` and
`onnxruntime` are installed.
"""

import importlib.util
import sys
import time
from collections import Counter

import numpy as np

import treewright as tw
from treewright.parsing.neural.inference import NetworkRunner
from treewright.parsing.neural.inputs import WordInputs
from treewright.scale import one_blas_thread

UNITS, LAYERS, ARC_SIZE, LABEL_SIZE = 256, 3, 400, 128
ROUNDS = 5
PADDED_AT_A_TIME = 32, 64, 128
"""Sentences in a batch of PyTorch or ONNX Runtime."""


def main(train_path, test_path, rounds=ROUNDS):
    """Run all of them on the sentences of a file."""
    train, test = tw.read_conllu(train_path), tw.read_conllu(test_path)
    inputs = WordInputs.from_trees(train, min_count=2)
    n_labels = len(Counter(relation for tree in train for relation in tree.deprels))
    network, weights = make_network(inputs, n_labels)
    runner = NetworkRunner(weights, inputs)
    heads = [tree.heads for tree in test]
    read = runner.read(test)
    ways = {
        "NumPy, arcs": lambda: runner.read(test),
        "NumPy, relations": lambda: runner.label_scores(read, heads),
        "NumPy, sentence by sentence, arcs": lambda: [runner.read([tree]) for tree in test[::10]],
        "NumPy, sentence by sentence, relations": lambda: [
            runner.label_scores(read[at : at + 1], heads[at : at + 1]) for at in range(0, len(test), 10)
        ],
        "NumPy, inputs alone": lambda: prepare_inputs(runner, inputs, test),
    }
    shares = dict.fromkeys(ways, 1.0) | {name: 0.1 for name in ways if "by sentence" in name}
    for size in PADDED_AT_A_TIME:
        ways[f"PyTorch, batches of {size}, arcs"] = lambda size=size: run_torch(network, inputs, test, size)
    if importlib.util.find_spec("onnxruntime"):
        session = make_session(weights)
        for size in PADDED_AT_A_TIME:
            name = f"ONNX Runtime, batches of {size}, arcs"
            ways[name] = lambda size=size: run_session(session, runner, inputs, test, size)
        found = run_session(session, runner, inputs, test, 64)
        print(f"ONNX Runtime differs by {largest_difference(found, [one.arcs for one in read]):.1e}")
    found = run_torch(network, inputs, test, 64)
    print(f"PyTorch differs by {largest_difference(found, [one.arcs for one in read]):.1e}")
    seconds = {name: [] for name in (*ways, "product")}
    for _ in range(int(rounds)):
        for name, way in {**ways, "product": multiply}.items():
            start = time.process_time()
            with one_blas_thread:
                way()
            seconds[name].append(time.process_time() - start)
    print(f"products of matrices: {multiply() / min(seconds.pop('product')):.0f} GFLOP a second")
    for name, each in seconds.items():
        print(f"{name}: {shares.get(name, 1.0) * len(test) / min(each):.0f} sentences a second")
    both = min(seconds["NumPy, arcs"]) + min(seconds["NumPy, relations"])
    print(f"NumPy, arcs and relations: {len(test) / both:.0f} sentences a second")


def make_network(inputs, n_labels):
    """Return a network with random weights, and these."""
    import torch

    from treewright.parsing.neural.network import ParserNetwork, to_arrays
    from treewright.parsing.neural.sizes import BiaffineSettings

    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = BiaffineSettings(UNITS, LAYERS, ARC_SIZE, LABEL_SIZE, 0.33)
    network = ParserNetwork(inputs.sizes(), n_labels, settings).eval()
    for parameter in (network.arc_matrix, network.label_tensor):
        torch.nn.init.normal_(parameter, std=0.1)
    return network, to_arrays(network)


def multiply():
    """Multiply matrices; return how many billions of operations this takes."""
    rows, matrix = np.ones((240, 512), dtype=np.float32), np.ones((512, 1024), dtype=np.float32)
    for _ in range(100):
        rows @ matrix
    return 100 * 2 * rows.size * matrix.shape[1] / 1e9


def prepare_inputs(runner, inputs, trees):
    """Look up the vectors of words, in batches as the runner does."""
    for batch in batches(trees, 256):
        runner._look_up(inputs.distinct([trees[number] for number in batch]))


def batches(trees, size):
    """Return the numbers of sentences, of similar length in each batch."""
    order = np.argsort([-len(tree) for tree in trees], kind="stable").tolist()
    return [order[start : start + size] for start in range(0, len(order), size)]


def run_torch(network, inputs, trees, size):
    """Return the scores of arcs, heads in rows."""
    import torch

    found = {}
    with torch.no_grad():
        for numbers in batches(trees, size):
            states = network.encode(inputs.pad([trees[number] for number in numbers]))
            arcs = network.score_arcs(states).numpy()
            for number, square in zip(numbers, arcs, strict=True):
                n = len(trees[number]) + 1
                found[number] = square[:n, :n].T
    return [found[number] for number in range(len(trees))]


def run_session(session, runner, inputs, trees, size):
    """Return the scores of arcs, heads in rows; words are looked up as the runner does."""
    found = {}
    for numbers in batches(trees, size):
        some = [trees[number] for number in numbers]
        words = inputs.distinct(some)
        vectors = runner._look_up(words)
        lengths = np.array([len(tree) + 1 for tree in some], dtype=np.int32)
        places = np.zeros((len(some), lengths.max()), dtype=np.int32)
        places[np.arange(lengths.max()) < lengths[:, np.newaxis]] = words.places
        arcs, _ = session.run(None, {"vectors": vectors[places.T], "lengths": lengths})
        for number, square, n in zip(numbers, arcs, lengths.tolist(), strict=True):
            found[number] = square[:n, :n]
    return [found[number] for number in range(len(trees))]


def make_session(weights):
    """Return the network, from the vectors of words to the scores of arcs, in ONNX Runtime."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    constants, nodes = [], []

    def constant(name, array):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(kind, names, output, **attributes):
        nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    enter, forget, candidate, output = np.split(np.arange(4 * UNITS), 4)
    order = np.concatenate([enter, output, forget, candidate])
    states = "vectors"
    width = constant("width", np.array([0, 0, 2 * UNITS], dtype=np.int64))
    for layer in range(LAYERS):
        names = [f"lstms.{layer}.{{}}_l0{suffix}" for suffix in ("", "_reverse")]
        into, back = (
            constant(f"{kind}{layer}", np.stack([weights[name.format(kind)][order] for name in names]))
            for kind in ("weight_ih", "weight_hh")
        )
        biases = [
            np.concatenate([weights[name.format(kind)][order] for kind in ("bias_ih", "bias_hh")])
            for name in names
        ]
        bias = constant(f"bias{layer}", np.stack(biases))
        found = node(
            "LSTM",
            [states, into, back, bias, "lengths"],
            f"lstm{layer}",
            direction="bidirectional",
            hidden_size=UNITS,
        )
        found = node("Transpose", [found], f"turned{layer}", perm=[0, 2, 1, 3])
        states = node("Reshape", [found, width], f"states{layer}")
    states = node("Transpose", [states], "states", perm=[1, 0, 2])
    tops = {}
    for name in ("arc_head", "arc_modifier", "label_head", "label_modifier"):
        matrix = constant(f"{name}.weight", weights[f"{name}.0.weight"].T)
        linear = node("MatMul", [states, matrix], f"{name}.product")
        linear = node("Add", [linear, constant(f"{name}.bias", weights[f"{name}.0.bias"])], f"{name}.sum")
        tops[name] = node("LeakyRelu", [linear], name, alpha=0.1)
    modifiers = node("MatMul", ["arc_modifier", constant("matrix", weights["arc_matrix"])], "modifiers")
    modifiers = node("Add", [modifiers, constant("arc_bias", weights["arc_bias"])], "biased")
    turned = node("Transpose", [modifiers], "turned", perm=[0, 2, 1])
    node("MatMul", ["arc_head", turned], "arcs")
    # What relations are scored by is part of the work, though it is not compared.
    nodes.append(helper.make_node("Concat", ["label_head", "label_modifier"], ["for_labels"], axis=2))
    size = weights["lstms.0.weight_ih_l0"].shape[1]
    graph = helper.make_graph(
        nodes,
        "parser",
        [
            helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["steps", "sentences", size]),
            helper.make_tensor_value_info("lengths", TensorProto.INT32, ["sentences"]),
        ],
        [
            helper.make_tensor_value_info("arcs", TensorProto.FLOAT, ["sentences", None, None]),
            helper.make_tensor_value_info("for_labels", TensorProto.FLOAT, ["sentences", None, None]),
        ],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def largest_difference(found, expected):
    """Return the largest difference of two lists of arrays."""
    return max(float(np.abs(one - other).max()) for one, other in zip(found, expected, strict=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
