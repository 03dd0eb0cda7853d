"""Time of generating treebanks.

python benchmarks/synthetic.py 100000
"""

import sys
import time

import treewright as tw


def main(n_sentences="100000"):
    """Print the time of one treebank."""
    start = time.perf_counter()
    bank = tw.make_treebank(int(n_sentences))
    seconds = time.perf_counter() - start
    n_words = sum(map(len, bank.dependencies))
    print(
        f"{n_sentences} sentences, {n_words} words: {seconds:.1f} s, {n_words / seconds:,.0f} words a second"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
