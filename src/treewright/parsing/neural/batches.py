"""Random batches of sentences of similar length."""

import numpy as np
import numpy.typing as npt


def make_batches(
    sizes: npt.NDArray[np.int64], batch_size: int, rng: np.random.Generator, *, spread: int = 20
) -> list[list[int]]:
    """Divide sentences into batches of about `batch_size` words and of similar lengths, in random order.

    Parameters
    ----------
    sizes : array of int, (n_sentences,)
        Sizes of the sentences, for example their numbers of words.
    batch_size : int
        Target size of a batch.
    rng : Generator
        Random number generator.
    spread : int
        Number of batches whose sentences are sorted by length together.
    """
    order = rng.permutation(len(sizes))
    chunks = np.cumsum(sizes[order]) // max(1, batch_size * spread)
    batches: list[list[int]] = []
    for chunk in np.split(order, np.flatnonzero(np.diff(chunks)) + 1):
        batch: list[int] = []
        n_words = 0
        for number in chunk[np.argsort(sizes[chunk], kind="stable")].tolist():
            if batch and n_words + sizes[number] > batch_size:
                batches.append(batch)
                batch, n_words = [], 0
            batch.append(number)
            n_words += int(sizes[number])
        if batch:
            batches.append(batch)
    return [batches[at] for at in rng.permutation(len(batches)).tolist()]
