"""Load on the service: throughput, latency and failed requests, and what happens beyond its limits.

    python benchmarks/web.py [model.tw] [--requests N] [--clients N] [--jobs N] [--queue N]

The service and its clients run as separate programs on this machine. Clients keep their connections open and
send the next request as soon as they receive a response. Without a model, a small parser is trained on a
generated treebank. At full load there are as many clients as the service has threads and places in its queue
(or --clients); then three times as many, some of which must be asked to retry later, without other failures.
"""

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import treewright as tw

QUESTIONS = {
    "parse, no pictures": ("/parse", {"pictures": False}),
    "parse, pictures": ("/parse", {}),
    "kbest, k = 5, pictures": ("/kbest", {"k": 5}),
}


def make_bodies(options, n_sentences=200):
    """Return requests of one tagged sentence each."""
    trees = tw.make_treebank(n_sentences, random_state=1).dependencies
    words = (zip(tree.words, tree.upos, tree.xpos, strict=True) for tree in trees)
    return [
        json.dumps(
            {"sentences": [[{"word": w, "tag": t, "xpos": x} for w, t, x in each]], **options}
        ).encode()
        for each in words
    ]


def ask_again_and_again(address, path, bodies, numbers, outcomes):
    """Be one client: ask until there are no more numbers; note code and seconds of each answer."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
    for number in numbers:
        start = time.perf_counter()
        try:
            body = bodies[number % len(bodies)]
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            code = answer.status
        except (OSError, http.client.HTTPException) as error:
            code = type(error).__name__
            connection.close()
        outcomes.append((code, time.perf_counter() - start))
    connection.close()


def put_load(address, path, bodies, *, n_requests, n_clients):
    """Return codes and seconds of all answers, and the seconds that all took together."""
    numbers, outcomes = iter(range(n_requests)), []
    lock = threading.Lock()

    def deal():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            yield number

    clients = [
        threading.Thread(target=ask_again_and_again, args=(address, path, bodies, deal(), outcomes))
        for _ in range(n_clients)
    ]
    start = time.perf_counter()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return outcomes, time.perf_counter() - start


def describe(name, outcomes, seconds, *, allowed):
    """Print what was measured; return how many requests failed."""
    codes = Counter(code for code, _ in outcomes)
    taken = np.array([took for code, took in outcomes if code == 200]) * 1000
    failed = sum(n for code, n in codes.items() if code not in allowed)
    p50, p95, p99 = np.percentile(taken, [50, 95, 99])
    counts = ", ".join(f"{n} x {code}" for code, n in sorted(codes.items(), key=str))
    print(f"{name}: {len(taken) / seconds:.0f} answers a second, ", end="")
    print(f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms; {counts}; failed {failed}", flush=True)
    return failed


def train(folder):
    """Return the file of a small parser."""
    path = Path(folder, "parser.tw")
    tw.DependencyParser(order=2, epochs=3, runs=1).fit(
        tw.make_treebank(300, random_state=0).dependencies
    ).save(path)
    return path


def main():
    """Serve a model and put load on it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?")
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--queue", type=int, default=14)
    given = parser.parse_args()
    n_clients = given.clients or given.n_jobs + given.queue
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "treewright",
            "serve",
            given.model or str(train(folder)),
            "--port",
            "0",
        ]
        command += ["--jobs", str(given.n_jobs), "--queue", str(given.queue), "--time-limit", "60"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            address = urlsplit(service.stdout.readline().rpartition(" at ")[2].strip())
            failed = 0
            for name, (path, options) in QUESTIONS.items():
                bodies = make_bodies(options)
                put_load(address, path, bodies, n_requests=20, n_clients=2)
                load = {"n_requests": given.requests, "n_clients": n_clients}
                failed += describe(name, *put_load(address, path, bodies, **load), allowed=(200,))
            load = {"n_requests": given.requests, "n_clients": 3 * n_clients}
            beyond = put_load(address, path, bodies, **load)
            failed += describe(f"{name}, {3 * n_clients} clients", *beyond, allowed=(200, 503))
            service.terminate()
        failed += service.returncode != 0
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
