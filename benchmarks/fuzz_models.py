"""Damaged and hostile models: each is loaded unchanged or rejected, and none crashes the interpreter."""

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
from mutations import mutate_bytes, mutate_state
from small_models import train_models, use

import treewright as tw
from treewright.errors import FormatError, TreewrightError
from treewright.model import State, identify, load_state, save_state

SHARED_MEMORY = Path("/dev/shm")
HEADER = 8


class Models:
    """The small models of a folder, as bytes and as states."""

    def __init__(self, folder):
        self.paths = train_models(folder)
        self.names = list(self.paths)
        self.bytes = {name: path.read_bytes() for name, path in self.paths.items()}
        self.states = {name: load_state(path) for name, path in self.paths.items()}
        self.identities = {name: identify(state) for name, state in self.states.items()}

    def warm_up(self):
        """Compile all that models use, so that processes that are forked have it."""
        for path in self.paths.values():
            use(tw.load(path))

    def draw_damaged(self, rng):
        """Return the name of a model and its bytes with damage."""
        name, other = rng.choice(self.names), rng.choice(self.names)
        data = self.bytes[name]
        if rng.random() < 0.5:  # headers are small beside arrays, and more can be wrong with them
            end = HEADER + int.from_bytes(data[:HEADER], "little")
            if rng.random() < 0.3:
                return name, _with_other_length(rng, data)
            return name, mutate_bytes(rng, data[:end], self.bytes[other][:4096]) + data[end:]
        return name, mutate_bytes(rng, data, self.bytes[other])

    def draw_hostile(self, rng):
        """Return the name of a model and a state that is not the one that was learnt."""
        name = rng.choice(self.names)
        state = _copy(self.states[name])
        mutate_state(rng, state, self.states[rng.choice(self.names)])
        return name, state


def _with_other_length(rng, data):
    length = int.from_bytes(data[:HEADER], "little") + rng.choice(
        (-100, -8, -1, 1, 8, 1 << 20, 1 << 40, 1 << 62)
    )
    return max(length, 0).to_bytes(HEADER, "little") + data[HEADER:]


def _copy(state):
    """Copy what mutations change in its place."""
    parts = {name: _copy(part) for name, part in state.parts.items()}
    return State(state.kind, state.values, dict(state.arrays), parts)


def count_damage(sound, damaged):
    """Count the bytes of a file that are not, at their place, those of the sound one, or that are gone."""
    one, other = (np.frombuffer(data, dtype=np.uint8) for data in (sound, damaged))
    n_shared = min(len(one), len(other))
    n_changed = np.count_nonzero(one[:n_shared] != other[:n_shared])
    return int(n_changed) + max(len(one), len(other)) - n_shared


def judge_damaged(models, rng):
    """Load a damaged model; return its name, what it came to, and how many bytes were damaged."""
    name, data = models.draw_damaged(rng)
    return name, _judge_loading(data, models.identities[name]), count_damage(models.bytes[name], data)


def _judge_loading(data, identity):
    with tempfile.NamedTemporaryFile(dir=SHARED_MEMORY) as file:
        file.write(data)
        file.flush()
        try:
            state = load_state(file.name)
        except FormatError as error:
            return "refused" if "\n" not in str(error) else "an error of several lines"
        except Exception as error:
            return f"{type(error).__name__} while it was loaded: {error}"
    return "as saved" if identify(state) == identity else "another model was loaded"


def judge_hostile(models, rng):
    """Load a model that somebody has changed, with a checksum that is right, and use it.

    Returns its name, what it came to, and how many bytes are others than in the sound file.
    """
    name, state = models.draw_hostile(rng)
    place, path = tempfile.mkstemp(dir=SHARED_MEMORY)
    os.close(place)
    try:
        save_state(state, path)
        n_bytes = count_damage(models.bytes[name], Path(path).read_bytes())
        return name, _judge_changed(path), n_bytes
    finally:
        os.unlink(path)


def _judge_changed(path):
    try:
        model = tw.load(path)
    except FormatError as error:
        return "refused" if "\n" not in str(error) else "an error of several lines"
    except Exception as error:
        return f"{type(error).__name__} while it was loaded: {error}"
    return _judge_use(model)


def _judge_use(model):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(model)
    except TreewrightError:
        return "refused in use"
    except Exception as error:
        if str(error) == "index is out of bounds":  # what compiled code says where bounds are checked
            return "compiled code out of bounds"
        return f"an error in use: {type(error).__name__} {error}"
    return "used"


def is_allowed(outcome):
    """Tell whether a model may come to this."""
    return outcome in ("refused", "as saved", "used", "refused in use") or outcome.startswith(
        "an error in use"
    )
