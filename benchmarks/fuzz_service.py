"""Damaged input to `treewright parse` and to the service, and many valid requests at once."""

import asyncio
import contextlib
import io
import json
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import httpx
import uvicorn
from fuzz_models import SHARED_MEMORY
from mutations import make_garbage, mutate_text, mutate_value

import treewright as tw
from treewright.cli import run
from treewright.web.app import make_app
from treewright.web.failures import FAILURES
from treewright.web.server import address_of, listen

PARSERS = {
    "DependencyParser": "conllu",
    "ConstituentParser": "brackets",
    "Tagger": "conllu",
    "RoleLabeler": "brackets",
}
OPTIONS = (
    [],
    ["--kbest", "2"],
    ["--tags", "predicted"],
    ["--tags", "gold"],
    ["--confidence"],
    ["--fixed-heads"],
)
PATHS = ("/parse", "/kbest", "/explain")
SENTENCES = ("The gardener saw a fox.", "A kite fell (into the river).", "Nobody knows why.")
BODIES = (
    {"text": SENTENCES[0], "pictures": False},
    {"text": "(S (NP (DT the) (NN kite)) (VP (VBD fell)))", "model": "phrases"},
    {"text": "1\tkites\t_\tNOUN\t_\t_\t_\t_\t_\t_\n2\tfall\t_\tVERB\t_\t_\t_\t_\t_\t_\n", "k": 3},
    {"sentences": [[{"word": "kites", "tag": "NNS", "xpos": "NNS"}, {"word": "fall", "tag": "VBP"}]], "k": 2},
    {"sentences": [[{"word": "a"}, {"word": "b"}]], "fixed": [[{"word": 1, "head": 2}]], "model": "arcs"},
)


def judge_parse(paths, texts, rng):
    """Parse a damaged file; return the kind of model and what it came to."""
    kind = rng.choice(list(PARSERS))
    everything = [text for group in texts.values() for text in group]
    chosen = rng.choice(texts[PARSERS[kind]])
    data = make_garbage(rng) if rng.random() < 0.05 else mutate_text(rng, chosen, rng.choice(everything))
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as folder:
        source = Path(folder, "input")
        source.write_bytes(data)
        arguments = [
            "parse",
            str(paths[kind]),
            str(source),
            "--output",
            f"{folder}/out",
            *rng.choice(OPTIONS),
        ]
        return kind, _judge_command(["--quiet", *arguments] if rng.random() < 0.1 else arguments)


def _judge_command(arguments):
    sys.argv = ["treewright", *arguments]
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = run()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    lines = errors.getvalue().splitlines()
    if code == 2 and not (lines and lines[-1].startswith("treewright: ")):
        return f"exit code 2 without a sentence: {lines}"
    return f"exit code {code}"


class Asked:
    """The service, in this process, and requests that are sent to it."""

    def __init__(self, paths):
        models = {"arcs": tw.load(paths["DependencyParser"]), "phrases": tw.load(paths["ConstituentParser"])}
        self._app = make_app(models)
        self._loop = asyncio.new_event_loop()

    def judge(self, rng):
        """Send a damaged request; return its path and what was answered."""
        path = rng.choice(PATHS)
        value = rng.choice(BODIES)
        if rng.random() < 0.6:
            for _ in range(rng.choice((1, 2, 4))):
                value = mutate_value(rng, value)
            body = json.dumps(value).encode()
        else:
            body = mutate_text(rng, json.dumps(value).encode(), json.dumps(rng.choice(BODIES)).encode())
        declared = (
            "application/json" if rng.random() < 0.95 else rng.choice(("text/plain", "", "x/y; charset=q"))
        )
        return path, self._loop.run_until_complete(self._ask(path, body, declared))

    async def _ask(self, path, body, declared):
        transport = httpx.ASGITransport(app=self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            answer = await client.post(path, content=body, headers={"content-type": declared})
        if answer.status_code == 200:
            return "200"
        sentence = answer.json().get("error", "")
        is_documented = answer.status_code in FAILURES and sentence and "\n" not in sentence
        return f"{answer.status_code}" if is_documented else f"{answer.status_code} undocumented: {sentence}"


def is_allowed(outcome):
    """Tell whether a command or a request may come to this."""
    return outcome in ("exit code 0", "exit code 2", "200", *map(str, FAILURES))


def load_service(paths, n_requests, n_clients):
    """Let clients ask a service over the network at once; count answers, and those that are not right."""
    app = make_app({"arcs": tw.load(paths["DependencyParser"])})
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        return asyncio.run(_ask_at_once(address_of(listener), n_requests, n_clients))
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


async def _ask_at_once(address, n_requests, n_clients):
    counts = Counter()
    async with httpx.AsyncClient(base_url=address, timeout=120) as client:
        right = [
            (await client.post("/parse", json=_question(number))).json() for number in range(len(SENTENCES))
        ]

        async def ask(first):
            for number in range(first, n_requests, n_clients):
                which = number % len(SENTENCES)
                answer = await client.post("/parse", json=_question(which))
                while answer.status_code == 503:  # told to come again: nothing is lost
                    counts["told to come again"] += 1
                    await asyncio.sleep(0.05)
                    answer = await client.post("/parse", json=_question(which))
                counts["right" if answer.json() == right[which] else "lost or wrong"] += 1

        await asyncio.gather(*(ask(first) for first in range(n_clients)))
    return counts


def _question(number):
    return {"text": SENTENCES[number], "pictures": False}
