import errno
import hashlib
import json
import logging
import os
import random
import re
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from treewright.data import remote
from treewright.data.conllu import read_conllu
from treewright.data.languages import CODES, REPOSITORIES, TRAIN_PIECES, resolve_name, suggest_names
from treewright.data.remote import ATTEMPTS, TreebankFiles, fetch_treebank
from treewright.errors import FetchError, InputError
from treewright.progress import listening

NAME = "UD_English-EWT"
TRAIN, DEV, TEST = (f"en_ewt-ud-{part}.conllu" for part in ("train", "dev", "test"))


def make_conllu(random_state, n_sentences=40):
    """Write sentences of invented words, each hanging on the first."""
    source = random.Random(random_state)
    lines = []
    for _ in range(n_sentences):
        for index in range(1, source.randint(3, 9)):
            word = "".join(source.choices("aeioubdfgk", k=source.randint(2, 9)))
            head, relation = (0, "root") if index == 1 else (1, "dep")
            lines.append(f"{index}\t{word}\t{word}\tX\t_\t_\t{head}\t{relation}\t_\t_")
        lines.append("")
    return "\n".join([*lines, ""]).encode()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        path, name = self.path, self.path.rpartition("/")[2]
        self.server.requests.append((path, dict(self.headers)))
        if statuses := self.server.statuses[name]:
            self.answer(statuses.pop(0))
        elif path in self.server.redirects:
            self.answer(302, {"Location": self.server.redirects[path]})
        elif path in self.server.files:
            self.send_file(name, self.server.files[path])
        else:
            self.answer(404)

    def send_file(self, name, content):
        tag, begin = self.server.tag(content), 0
        if self.server.ranges and "Range" in self.headers and self.headers["If-Range"] in (tag, None):
            begin = int(re.fullmatch(r"bytes=(\d+)-", self.headers["Range"])[1])
            if begin >= len(content):
                return self.answer(416, {"Content-Range": f"bytes */{len(content)}"})
        headers = {"ETag": tag, "Content-Type": self.server.content_type}
        if begin:
            headers["Content-Range"] = self.server.content_range or self.describe(begin, content)
        body = content[begin:]
        limits = self.server.limits[name]
        return self.answer(206 if begin else 200, headers, body, limits.pop(0) if limits else len(body))

    @staticmethod
    def describe(begin, content):
        return f"bytes {begin}-{len(content) - 1}/{len(content)}"

    def answer(self, status, headers=None, body=b"", limit=0):
        """Promise all of `body`, send `limit` bytes of it and hang up."""
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        if self.server.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(f"{len(body):x}\r\n".encode() if self.server.chunked else b"")
        self.wfile.write(body[:limit])
        self.wfile.write(b"\r\n0\r\n\r\n" if self.server.chunked and limit == len(body) else b"")
        self.server.sent.append(len(body[:limit]))


class Server(ThreadingHTTPServer):
    """Serves `files` by path, notes what it was asked and what it sent, and misbehaves on demand."""

    daemon_threads = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.redirects = {}
        self.requests = []
        self.sent = []
        self.limits = defaultdict(list)
        self.statuses = defaultdict(list)
        self.ranges = True
        self.chunked = False
        self.content_range = None
        self.content_type = "text/plain; charset=utf-8"

    def tag(self, content):
        return f'"{sha256(content)[:16]}"'

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def start(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}).start()

    def stop(self):
        self.shutdown()
        self.server_close()

    def put(self, name, content, release="2.14", repository=NAME):
        self.files[f"/{repository}/r{release}/{name}"] = content

    def requested(self):
        return [path.rpartition("/")[2] for path, _ in self.requests]

    def header(self, index, name):
        return self.requests[index][1].get(name)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(remote, "RETRY_PAUSE", 0)
    monkeypatch.setattr(remote, "LOCK_PAUSE", 0.001)
    running = Server()
    for random_state, name in enumerate((TRAIN, DEV, TEST)):
        running.put(name, make_conllu(random_state))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def fetch(server, tmp_path):
    def fetch_from_server(name=NAME, **options):
        return fetch_treebank(name, **{"base_url": server.base_url, "cache": tmp_path / "cache", **options})

    return fetch_from_server


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "r2.14" / NAME


def content_of(server, name):
    return server.files[f"/{NAME}/r2.14/{name}"]


def message(caught):
    """Return the text of an error, which is one line and drags no other error along."""
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return str(caught.value)


# What is fetched


def test_all_parts_are_fetched(server, fetch, folder):
    files = fetch()
    assert files == TreebankFiles(folder / TRAIN, folder / DEV, folder / TEST)
    for path in files:
        assert path.read_bytes() == content_of(server, path.name)


def test_fetched_file_is_readable(fetch):
    assert len(read_conllu(fetch().train)) == 40


def test_address_follows_from_name_and_release(server, fetch):
    server.put("grc_perseus-ud-test.conllu", b"", release="2.9", repository="UD_Ancient_Greek-Perseus")
    fetch("UD_Ancient_Greek-Perseus", release="2.9")
    assert server.requests[0][0] == "/UD_Ancient_Greek-Perseus/r2.9/grc_perseus-ud-train.conllu"


def test_short_name_is_the_same_treebank(fetch):
    assert fetch("en_ewt") == fetch("UD_English-EWT")


def test_language_code_may_be_given(server, fetch):
    server.put("tlh_kdt-ud-test.conllu", b"", repository="UD_Klingon-KDT")
    assert fetch("UD_Klingon-KDT", code="tlh").test.name == "tlh_kdt-ud-test.conllu"


def test_base_url_may_end_in_a_slash(server, fetch):
    fetch(base_url=f"{server.base_url}/")
    assert server.requests[0][0] == f"/{NAME}/r2.14/{TRAIN}"


def test_releases_do_not_mix(server, fetch):
    server.put(TEST, b"older", release="2.13")
    assert fetch().test.read_bytes() != fetch(release="2.13").test.read_bytes()


def test_user_cache_is_the_default(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TREEWRIGHT_CACHE", str(tmp_path / "chosen"))
    files = fetch_treebank(NAME, base_url=server.base_url)
    assert files.train == tmp_path / "chosen" / "treebanks" / "r2.14" / NAME / TRAIN


def test_only_files_record_and_lock_remain(fetch, folder):
    fetch()
    assert {path.name for path in folder.iterdir()} - {".lock"} == {TRAIN, DEV, TEST, "sums.json"}


def test_pieces_of_a_large_train_part_are_joined(server, fetch):
    repository = "UD_German-HDT"
    pieces = {f"de_hdt-ud-train-{piece}.conllu": make_conllu(piece) for piece in ("a-1", "a-2", "b-1", "b-2")}
    for name, content in pieces.items():
        server.put(name, content, repository=repository)
    train = fetch(repository).train
    assert train.read_bytes() == b"".join(pieces.values())
    assert sorted(train.parent.glob("*.conllu")) == [train]


def test_train_part_with_a_piece_missing_is_absent(server, fetch, caplog):
    repository = "UD_German-HDT"
    server.put("de_hdt-ud-train-a-1.conllu", make_conllu(1), repository=repository)
    server.put("de_hdt-ud-dev.conllu", make_conllu(2), repository=repository)
    files = fetch(repository)
    assert files.train is None
    assert "de_hdt-ud-train.conllu: not found; it may be split into several files" in caplog.text


# What is remembered


def test_second_call_makes_no_request(server, fetch):
    first = fetch()
    server.requests.clear()
    assert fetch() == first
    assert server.requests == []


def test_cached_treebank_needs_no_writing(fetch, folder):
    fetch()
    (folder / ".lock").unlink(missing_ok=True)
    fetch()
    assert not (folder / ".lock").exists()


def test_absent_part_is_none_and_remembered(server, fetch):
    del server.files[f"/{NAME}/r2.14/{DEV}"]
    assert fetch().dev is None
    server.requests.clear()
    assert fetch().dev is None
    assert server.requests == []


def test_part_absent_at_one_address_is_sought_at_another(server, fetch):
    train = server.files.pop(f"/{NAME}/r2.14/{TRAIN}")
    assert fetch().train is None
    server.files[f"/mirror/{NAME}/r2.14/{TRAIN}"] = train
    assert fetch(base_url=f"{server.base_url}/mirror").train.read_bytes() == train


def test_digests_are_recorded(server, fetch, folder):
    fetch()
    record = json.loads((folder / "sums.json").read_bytes())
    assert record["sha256"] == {name: sha256(content_of(server, name)) for name in (TRAIN, DEV, TEST)}


def test_file_put_by_hand_is_used_and_recorded(server, fetch, folder):
    folder.mkdir(parents=True)
    (folder / TRAIN).write_bytes(b"mine")
    assert fetch().train.read_bytes() == b"mine"
    assert server.requested() == [DEV, TEST]
    assert json.loads((folder / "sums.json").read_bytes())["sha256"][TRAIN] == sha256(b"mine")


def test_changed_cached_file_is_detected(server, fetch, folder):
    fetch()
    with open(folder / DEV, "ab") as stream:
        stream.write(b"\n")
    with pytest.raises(FetchError) as caught:
        fetch()
    recorded = sha256(content_of(server, DEV))
    found = sha256(content_of(server, DEV) + b"\n")
    assert message(caught) == (
        f"{folder / DEV}: SHA-256 is {found}; expected the recorded digest {recorded}; "
        "delete the file to download it again"
    )


def test_deleted_file_is_fetched_anew(server, fetch, folder):
    fetch()
    (folder / DEV).unlink()
    server.requests.clear()
    assert fetch().dev.read_bytes() == content_of(server, DEV)
    assert server.requested() == [DEV]


def test_server_file_that_changed_since_it_was_recorded_is_refused(server, fetch, folder):
    fetch()
    (folder / DEV).unlink()
    server.put(DEV, b"changed")
    with pytest.raises(FetchError) as caught:
        fetch()
    assert f"/{DEV}: SHA-256 is {sha256(b'changed')}; expected" in message(caught)
    assert f"delete {folder / 'sums.json'} to accept" in message(caught)
    assert not list(folder.glob(f"{DEV}*.part")) + list(folder.glob(DEV))


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"sha256": 1, "absent": []}', "\udcff"])
def test_damaged_record_is_named(fetch, folder, content):
    fetch()
    (folder / "sums.json").write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(FetchError) as caught:
        fetch()
    remedy = "delete it to record the files again"
    assert message(caught) == f"{folder / 'sums.json'} is not a valid record of digests; {remedy}"


# What is demanded


def test_demanded_digest_is_accepted_in_any_case(server, fetch):
    assert fetch(sha256={TEST: sha256(content_of(server, TEST)).upper()}).test


def test_download_without_the_demanded_digest_is_not_kept(server, fetch, folder):
    with pytest.raises(FetchError) as caught:
        fetch(sha256={TEST: "0" * 64})
    found = sha256(content_of(server, TEST))
    place = f"{server.base_url}/{NAME}/r2.14/{TEST}"
    assert message(caught) == f"{place}: SHA-256 is {found}; expected the required digest {'0' * 64}"
    assert not (folder / TEST).exists()
    assert not (folder / f"{TEST}.part").exists()


def test_cached_file_without_the_demanded_digest_is_refused(fetch, folder):
    fetch()
    with pytest.raises(
        FetchError, match=f"{re.escape(str(folder / TEST))}: SHA-256 is .* the required digest"
    ):
        fetch(sha256={TEST: "0" * 64})


def test_demanded_file_must_exist(server, fetch):
    del server.files[f"/{NAME}/r2.14/{DEV}"]
    with pytest.raises(FetchError, match=f"{DEV}: not found; expected a file with SHA-256 {'0' * 64}"):
        fetch(sha256={DEV: "0" * 64})


@pytest.mark.parametrize(
    ("demanded", "expected"),
    [
        ({"en_ewt-train.conllu": "0" * 64}, f"expected one of {TRAIN}, {DEV}, {TEST}"),
        ({TRAIN: "0" * 63}, f"sha256 of {TRAIN} is .*; expected 64 hexadecimal digits"),
    ],
)
def test_demand_that_cannot_be_met_is_refused(fetch, server, demanded, expected):
    with pytest.raises(InputError, match=expected):
        fetch(sha256=demanded)
    assert server.requests == []


# What goes wrong on the way


def test_broken_transfer_is_resumed_where_it_broke(server, fetch):
    content = content_of(server, TRAIN)
    half = len(content) // 2
    server.limits[TRAIN] = [half]
    assert fetch().train.read_bytes() == content
    assert server.requested()[:2] == [TRAIN, TRAIN]
    assert server.header(1, "Range") == f"bytes={half}-"
    assert server.header(1, "If-Range") == server.tag(content)
    assert server.sent[:2] == [half, len(content) - half]


def test_broken_transfer_of_unknown_length_is_resumed(server, fetch):
    server.chunked = True
    server.limits[TRAIN] = [500]
    assert fetch().train.read_bytes() == content_of(server, TRAIN)
    assert server.header(1, "Range") == "bytes=500-"


def test_next_call_resumes_what_the_last_gave_up(server, fetch, folder):
    content = content_of(server, TRAIN)
    server.limits[TRAIN] = [100] * ATTEMPTS
    with pytest.raises(FetchError) as caught:
        fetch()
    assert f"the connection was lost after {100 * ATTEMPTS} of {len(content)} bytes" in message(caught)
    assert "call again to resume" in message(caught)
    assert (folder / f"{TRAIN}.part").read_bytes() == content[: 100 * ATTEMPTS]
    assert not (folder / TRAIN).exists()
    server.requests.clear()
    assert fetch().train.read_bytes() == content
    assert server.header(0, "Range") == f"bytes={100 * ATTEMPTS}-"


def test_interrupt_leaves_a_part_to_resume(server, fetch, folder):
    def interrupt(step):
        if step.done and not step.is_over:
            raise KeyboardInterrupt

    server.limits[TRAIN] = [1000]
    with pytest.raises(KeyboardInterrupt), listening(interrupt, every=0):
        fetch()
    size = (folder / f"{TRAIN}.part").stat().st_size
    assert 0 < size <= 1000
    assert not (folder / TRAIN).exists()
    assert fetch().train.read_bytes() == content_of(server, TRAIN)
    assert server.header(1, "Range") == f"bytes={size}-"


def test_server_without_ranges_sends_the_whole_file_again(server, fetch):
    server.ranges = False
    server.limits[TRAIN] = [500]
    assert fetch().train.read_bytes() == content_of(server, TRAIN)
    assert server.header(1, "Range") == "bytes=500-"
    assert server.sent[1] == len(content_of(server, TRAIN))


def test_file_that_changed_is_not_glued_to_an_old_part(server, fetch):
    server.limits[TRAIN] = [500] * ATTEMPTS
    with pytest.raises(FetchError):
        fetch()
    changed = make_conllu("changed")
    server.put(TRAIN, changed)
    assert fetch().train.read_bytes() == changed


def test_weak_tag_is_not_trusted_to_resume(server, fetch, monkeypatch):
    monkeypatch.setattr(server, "tag", lambda content: 'W/"weak"')
    server.limits[TRAIN] = [500]
    assert fetch().train.read_bytes() == content_of(server, TRAIN)
    assert server.header(1, "Range") is None


def test_part_longer_than_the_file_is_thrown_away(server, fetch, folder):
    content = content_of(server, TRAIN)
    folder.mkdir(parents=True)
    (folder / f"{TRAIN}.part").write_bytes(content + b"more")
    (folder / f"{TRAIN}.part.etag").write_text(server.tag(content))
    assert fetch().train.read_bytes() == content


def test_wrong_range_is_thrown_away(server, fetch):
    server.limits[TRAIN] = [500]
    server.content_range = "bytes 7-9/10"
    assert fetch().train.read_bytes() == content_of(server, TRAIN)


def test_server_failure_is_tried_again(server, fetch):
    server.statuses[TRAIN] = [500, 503]
    assert fetch().train.read_bytes() == content_of(server, TRAIN)


def test_lasting_server_failure_is_an_error(server, fetch, folder):
    server.statuses[TRAIN] = [500] * ATTEMPTS
    with pytest.raises(FetchError) as caught:
        fetch()
    assert message(caught) == (
        f"{server.base_url}/{NAME}/r2.14/{TRAIN}: HTTP 500 Internal Server Error; "
        f"check the connection, or save the file as {folder / TRAIN} yourself"
    )


def test_refusal_is_not_tried_again(server, fetch):
    server.statuses[TRAIN] = [403]
    with pytest.raises(FetchError, match="HTTP 403 Forbidden"):
        fetch()
    assert server.requested() == [TRAIN]


def test_offline_error_gives_address_and_remedy(server, fetch, folder):
    server.stop()
    with pytest.raises(FetchError) as caught:
        fetch()
    text = message(caught)
    assert text.startswith(f"{server.base_url}/{NAME}/r2.14/{TRAIN}: ")
    assert text.endswith(f"; check the connection, or save the file as {folder / TRAIN} yourself")


def test_offline_call_gives_what_is_cached(server, fetch):
    del server.files[f"/{NAME}/r2.14/{DEV}"]
    files = fetch()
    server.stop()
    assert fetch() == files


def test_silent_server_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as silent, pytest.raises(FetchError, match="timed out"):
        fetch_treebank(NAME, base_url=silent.base_url, cache=tmp_path, timeout=0.05)


def test_web_page_is_not_a_treebank(server, fetch, folder):
    server.content_type = "text/html"
    with pytest.raises(FetchError, match=f"{TRAIN}: HTTP 200 with text/html; expected a CoNLL-U file"):
        fetch()
    assert not (folder / f"{TRAIN}.part").exists()


def test_redirect_is_followed(server, fetch):
    server.redirects[f"/old/{NAME}/r2.14/{TRAIN}"] = f"/{NAME}/r2.14/{TRAIN}"
    assert fetch(base_url=f"{server.base_url}/old").train.read_bytes() == content_of(server, TRAIN)


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1/file"])
def test_redirect_to_another_scheme_is_refused(server, fetch, address):
    server.redirects[f"/old/{NAME}/r2.14/{TRAIN}"] = address
    with pytest.raises(FetchError, match=f"HTTP 302 .*{address}"):
        fetch(base_url=f"{server.base_url}/old")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_full_disk_names_the_file(fetch, folder):
    folder.mkdir(parents=True)
    (folder / f"{TRAIN}.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=re.escape(f"{TRAIN}.part")) as caught:
        fetch()
    assert caught.value.errno == errno.ENOSPC


# Several at once


def test_calls_at_the_same_time_fetch_each_file_once(server, fetch):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: fetch(), range(8)))
    assert sorted(server.requested()) == sorted([TRAIN, DEV, TEST])
    assert len(set(results)) == 1
    assert results[0].train.read_bytes() == content_of(server, TRAIN)


def test_waiting_ends_when_the_lock_is_given_back(fetch, folder, caplog):
    caplog.set_level(logging.INFO, "treewright")
    with ThreadPoolExecutor(1) as pool:
        with remote._locked(folder):
            waiting = pool.submit(fetch)
            while "waiting for another process" not in caplog.text:
                assert not waiting.done()
        assert waiting.result(timeout=600).train


def test_lock_is_given_back_after_an_error(server, fetch):
    server.statuses[TRAIN] = [403]
    with pytest.raises(FetchError):
        fetch()
    assert fetch().train


def test_file_system_without_locks_will_do(fetch, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock" if os.name == "posix" else "msvcrt.locking", refuse)
    assert fetch().train
    assert "download it in one process at a time" in caplog.text


# Names


def test_unknown_treebank_is_an_error_with_address_and_suggestion(server, fetch):
    with pytest.raises(FetchError) as caught:
        fetch("UD_English-EWTT")
    assert message(caught).startswith(
        f"neither {server.base_url}/UD_English-EWTT/r2.14/en_ewtt-ud-train.conllu nor the other files were "
        "found; this release has no treebank UD_English-EWTT at this address; did you mean UD_English-EWT or "
    )


def test_unknown_release_is_an_error_that_is_not_remembered(server, fetch):
    with pytest.raises(FetchError, match=r"this release has no treebank UD_English-EWT at this address\n"):
        fetch(release="99.1")
    server.put(TEST, b"now", release="99.1")
    assert fetch(release="99.1").test.read_bytes() == b"now"


@pytest.mark.parametrize(
    "name", ["UD_Englsh-EWT", "UD_English_EWT", "ud_english-ewt", "en_ewtt", "english-ewt"]
)
def test_misspelt_name_gets_suggestions(fetch, server, name):
    with pytest.raises(InputError, match=r"did you mean .*(UD_English-EWT|en_ewt)\b.*\?"):
        fetch(name)
    assert server.requests == []


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("UD_Hungarian-Seged", "did you mean UD_Hungarian-Szeged?"),
        ("hungarian", "did you mean UD_Hungarian-Szeged?"),
        ("Hungrian", "did you mean UD_Hungarian-Szeged?"),
        ("en-ewt", "did you mean en_ewt?"),
        ("English", "did you mean one of the 14 treebanks of English? (treewright fetch --list English)"),
        ("ancient greek", "did you mean UD_Ancient_Greek-Perseus or UD_Ancient_Greek-PROIEL or "),
    ],
)
def test_languages_and_near_names_lead_to_treebanks(name, suggestion):
    assert suggest_names(name).startswith(f"; {suggestion}")


@pytest.mark.parametrize("name", ["UD_English-EWT", "en_ewt", "", "zzz"])
def test_there_is_no_suggestion_for_what_is_known_or_like_nothing(name):
    assert suggest_names(name) == ""


def test_a_near_name_is_suggested_when_the_server_cannot_be_reached(tmp_path):
    with pytest.raises(FetchError, match=r"did you mean UD_Hungarian-Szeged\?\n"):
        fetch_treebank("UD_Hungarian-Seged", base_url="http://127.0.0.1:9", cache=tmp_path / "cache")


def test_unknown_language_asks_for_a_code(fetch):
    with pytest.raises(
        InputError, match=r"language 'Quenya' is unknown; use code to give the code in its file names"
    ):
        fetch("UD_Quenya-ABC")


@pytest.mark.parametrize(
    "name",
    [
        "UD_../..",
        "UD_English-..",
        "UD_English-EWT/..",
        "UD_English-EWT\n",
        "/etc",
        "",
        "UD_English-E%2fT",
        "UD_English-É",
    ],
)
def test_name_that_could_leave_the_folder_is_refused(fetch, server, tmp_path, name):
    with pytest.raises(InputError, match="expected a name such as 'UD_English-EWT' or 'en_ewt'"):
        fetch(name)
    assert server.requests == []
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("release", ["r2.14", "2", "../2.14", "2.14/..", "", "２.1", 2.14])
def test_release_that_is_no_number_is_refused(fetch, release):
    with pytest.raises(InputError, match=r"release is .*; expected a number as text, such as '2\.14'"):
        fetch(release=release)


@pytest.mark.parametrize("code", ["", "EN", "../en", "engl"])
def test_code_that_is_none_is_refused(fetch, code):
    with pytest.raises(InputError, match="expected two or three lower-case letters"):
        fetch(code=code)


@pytest.mark.parametrize(
    "base_url", ["file:///tmp", "ftp://host/x", "host/x", "http://", "http://a b", "http://h/?q"]
)
def test_base_url_that_is_not_http_is_refused(fetch, base_url):
    with pytest.raises(InputError, match="expected a URL that starts with http:// or https://"):
        fetch(base_url=base_url)


def test_every_short_name_resolves_to_its_own_files():
    for short, repository in REPOSITORIES.items():
        assert resolve_name(short, None) == resolve_name(repository, None) == (repository, f"{short}-ud")


def test_table_has_well_formed_codes_and_pieces():
    assert all(re.fullmatch(r"[a-z]{2,3}", code) for code in CODES.values())
    assert TRAIN_PIECES.keys() <= set(REPOSITORIES.values())


# Progress


def test_progress_reports_every_file_to_its_end(server, fetch):
    reports = defaultdict(list)
    with listening(lambda step: reports[step.what].append((step.done, step.total)), every=0):
        fetch()
    for name in (TRAIN, DEV, TEST):
        size, seen = len(content_of(server, name)), reports[f"fetching {name}"]
        assert seen[0] == (0, size)
        assert seen[-1] == (size, size)
        assert seen == sorted(seen)


def test_progress_of_a_resumed_file_begins_where_it_was(server, fetch):
    server.limits[TRAIN] = [100] * ATTEMPTS
    with pytest.raises(FetchError):
        fetch()
    steps = []
    with listening(steps.append, every=0):
        fetch()
    first = next(step for step in steps if step.what == f"fetching {TRAIN}")
    assert (first.done, first.total) == (100 * ATTEMPTS, len(content_of(server, TRAIN)))


def test_nothing_is_printed(fetch, capfd):
    fetch()
    assert capfd.readouterr() == ("", "")


def test_fetching_is_logged(server, fetch, caplog):
    caplog.set_level(logging.INFO, "treewright")
    fetch()
    assert f"fetching {server.base_url}/{NAME}/r2.14/{TRAIN}" in caplog.text


def test_a_listener_hears_how_many_bytes_of_each_file_have_come(server, fetch):
    steps = []
    with listening(steps.append, every=0):
        fetch()
    ends = {step.what: (step.done, step.total, step.unit) for step in steps if step.is_over}
    for name in (TRAIN, DEV, TEST):
        size = len(content_of(server, name))
        assert ends[f"fetching {name}"] == (size, size, "bytes")


def test_a_cache_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="which is a file; expected a folder"):
        fetch_treebank("UD_English-EWT", cache=tmp_path / "file")
