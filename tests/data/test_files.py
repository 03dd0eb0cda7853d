"""Lines in, whole files out: encodings, gzip, standard streams, damage, atomic writing."""

import gzip
import io
import os
import socket
import stat
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from treewright.data import files
from treewright.data.files import (
    BLANKS,
    CHUNK_SIZE,
    is_same_file,
    iter_chunks,
    numbered_lines,
    open_begun,
    open_target,
    replacing,
    source_name,
)
from treewright.errors import FormatError, InputError

on_posix = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX system")


def lines_of(data):
    return [line for _, line in numbered_lines(io.BytesIO(data))]


def error_of(source):
    with pytest.raises(FormatError) as caught:
        list(numbered_lines(source))
    return str(caught.value)


def write(text, target):
    with open_target(target) as stream:
        stream.write(text)


def fail_in_the_middle(target, error):
    with open_target(target) as stream:
        stream.write("new\n")
        stream.flush()
        raise error


class Trickle(io.RawIOBase):
    """A pipe that gives one byte at a time."""

    def __init__(self, data):
        self.rest = data

    def readable(self):
        return True

    def readinto(self, buffer):
        n_given = min(1, len(buffer), len(self.rest))
        buffer[:n_given], self.rest = self.rest[:n_given], self.rest[n_given:]
        return n_given


def test_a_path_is_named_as_the_caller_wrote_it():
    assert source_name("a/../b.conllu") == "a/../b.conllu"


@pytest.mark.parametrize("dash", ["-", Path("-")])
def test_a_dash_is_named_stdin(dash):
    assert source_name(dash) == "<stdin>"


def test_an_open_file_is_named_after_its_path(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("a\n")
    with open(path) as stream:
        assert source_name(stream) == str(path)


def test_a_stream_without_a_name_is_named_stream():
    assert source_name(io.BytesIO()) == "<stream>"


def test_a_file_descriptor_is_not_taken_for_a_name():
    with tempfile.TemporaryFile() as stream:
        assert source_name(stream) in ("<stream>", getattr(stream, "name", None))
        assert not source_name(stream).isdigit()


def test_lines_are_numbered_from_one():
    assert list(numbered_lines(io.BytesIO(b"a\n\nb\n"))) == [(1, "a"), (2, ""), (3, "b")]


def test_an_empty_file_has_no_lines():
    assert lines_of(b"") == []


def test_a_missing_final_line_end_is_accepted():
    assert lines_of(b"a\nb") == ["a", "b"]


def test_crlf_ends_a_line():
    assert lines_of(b"a\r\n\r\nb\r\n") == ["a", "", "b"]


def test_a_byte_order_mark_is_dropped_at_the_beginning():
    assert lines_of(b"\xef\xbb\xbfa\n") == ["a"]


def test_a_byte_order_mark_is_kept_elsewhere():
    assert lines_of(b"a\n\xef\xbb\xbfb\n") == ["a", "\ufeffb"]


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_no_other_character_ends_a_line(character):
    assert lines_of(f"a{character}b\n".encode()) == [f"a{character}b"]


def test_a_line_longer_than_a_chunk_is_whole():
    long = "é" * CHUNK_SIZE
    assert lines_of(f"{long}\nb\n".encode()) == [long, "b"]


def test_numbers_go_on_over_chunks():
    n_lines = CHUNK_SIZE
    numbers = [number for number, _ in numbered_lines(io.BytesIO(b"a\n" * n_lines))]
    assert numbers == list(range(1, n_lines + 1))


def test_chunks_hold_whole_lines():
    data = b"".join(b"%d\r\n" % number for number in range(50_000))
    chunks = list(iter_chunks(io.BytesIO(data)))
    assert len(chunks) > 1
    assert all(lines[0] == str(first - 1) for first, lines in chunks)


def has_text(begin):
    return begin.strip(BLANKS)


@pytest.mark.parametrize("content", [b"\n  \n\t(S\n", b"(S\n", b"\xef\xbb\xbf\n" * 100_000 + b"(S\n"])
def test_the_beginning_is_as_long_as_enough_and_all_of_the_file_is_read(content):
    with open_begun(io.BytesIO(content), has_text) as (begin, stream):
        assert has_text(begin).startswith(b"(")
        assert b"".join(stream.pieces) == content


def test_the_beginning_is_the_whole_file_if_that_is_not_enough():
    with open_begun(io.BytesIO(b"\n \n"), has_text) as (begin, stream):
        assert (begin, b"".join(stream.pieces)) == (b"\n \n", b"\n \n")


def test_a_file_whose_beginning_was_read_keeps_its_name_in_errors(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_bytes(b"a\n\xff\n")
    with open_begun(path, has_text) as (_, stream):
        assert error_of(stream) == f"{path}:2: byte 0xff at byte 1; expected UTF-8"


def test_the_beginning_of_damaged_gzip_is_a_format_error():
    damaged = io.BytesIO(b"\x1f\x8b\x08")
    with pytest.raises(FormatError, match="corrupt or truncated gzip data"), open_begun(damaged, has_text):
        pass


def test_bytes_that_are_not_utf8_are_named_with_their_place():
    assert error_of(io.BytesIO(b"ok\nab\xffc\n")) == "<stream>:2: byte 0xff at byte 3; expected UTF-8"


def test_a_character_cut_off_at_the_end_is_damage():
    assert error_of(io.BytesIO("é".encode()[:1])) == "<stream>:1: byte 0xc3 at byte 1; expected UTF-8"


def test_an_encoded_surrogate_is_damage():
    assert error_of(io.BytesIO(b"\xed\xa0\x80")) == "<stream>:1: byte 0xed at byte 1; expected UTF-8"


def test_utf16_is_damage():
    assert error_of(io.BytesIO("a\n".encode("utf-16"))).startswith("<stream>:1: ")


def test_a_nul_byte_is_named_with_its_line():
    assert (
        error_of(io.BytesIO(b"ok\nok\na\0b\n"))
        == "<stream>:3: a NUL byte, as in binary files and UTF-16; expected UTF-8"
    )


def test_a_lone_carriage_return_is_named_with_its_line():
    message = r"<stream>:2: a carriage return within a line; expected lines that end in \n or \r\n"
    assert error_of(io.BytesIO(b"ok\r\na\rb\r\n")) == message


@pytest.mark.parametrize("data", [b"a\rb\r", b"a\r\r\n", b"a\r"])
def test_a_carriage_return_alone_ends_no_line(data):
    assert error_of(io.BytesIO(data)).startswith("<stream>:1: a carriage return within a line;")


def test_the_first_damage_of_a_chunk_is_reported():
    assert error_of(io.BytesIO(b"\xff\na\0\n")).startswith("<stream>:1: byte 0xff")


def test_damage_in_a_later_chunk_has_the_right_line():
    data = b"abcdefg\n" * CHUNK_SIZE + b"\xff\n"
    assert error_of(io.BytesIO(data)).startswith(f"<stream>:{CHUNK_SIZE + 1}: byte 0xff")


@pytest.mark.parametrize("damaged", [b"\xff\n", b"\0\n", b"a\rb\n"])
def test_lines_before_the_damage_come_first(damaged):
    lines = numbered_lines(io.BytesIO(b"\xef\xbb\xbfa\r\nb\r\n" + damaged))
    assert [next(lines), next(lines)] == [(1, "a"), (2, "b")]
    with pytest.raises(FormatError, match=":3: "):
        next(lines)


def test_a_missing_file_is_an_os_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        list(numbered_lines(tmp_path / "nowhere.txt"))


@pytest.mark.parametrize("name", ["x.gz", "x.txt", "x"])
def test_gzip_is_told_by_its_bytes_whatever_the_name(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a\nb\n"))
    assert list(numbered_lines(path)) == [(1, "a"), (2, "b")]


def test_plain_text_named_gz_is_read_as_plain_text(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(b"a\n")
    assert list(numbered_lines(path)) == [(1, "a")]


def test_several_members_are_one_file():
    assert lines_of(gzip.compress(b"a\nb") + gzip.compress(b"c\n")) == ["a", "bc"]


def test_a_byte_order_mark_inside_gzip_is_dropped():
    assert lines_of(gzip.compress(b"\xef\xbb\xbfa\n")) == ["a"]


def test_empty_gzip_has_no_lines():
    assert lines_of(gzip.compress(b"")) == []


def test_truncated_gzip_yields_its_lines_and_then_fails():
    lines = numbered_lines(io.BytesIO(gzip.compress(b"a\nb\n")[:-8]))
    assert [next(lines), next(lines)] == [(1, "a"), (2, "b")]
    with pytest.raises(
        FormatError, match=r"^<stream>:3: corrupt or truncated gzip data \(.*\); expected a complete file$"
    ):
        next(lines)


def test_gzip_cut_anywhere_is_damage():
    whole = gzip.compress(b"a\nb\n")
    for length in range(2, len(whole)):
        assert "corrupt or truncated gzip data" in error_of(io.BytesIO(whole[:length]))


def test_a_wrong_checksum_is_damage():
    data = bytearray(gzip.compress(b"a\n"))
    data[-8] ^= 1
    assert "corrupt or truncated gzip data" in error_of(io.BytesIO(bytes(data)))


def test_damaged_deflate_data_are_damage():
    data = bytearray(gzip.compress(b"a\n"))
    data[10] = 0xFF
    assert "corrupt or truncated gzip data" in error_of(io.BytesIO(bytes(data)))


def test_rubbish_after_gzip_is_damage():
    assert "corrupt or truncated gzip data" in error_of(io.BytesIO(gzip.compress(b"a\n") + b"rubbish"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_a_dash(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(pack(b"a\n"))))
    assert list(numbered_lines("-")) == [(1, "a")]


def test_standard_input_may_be_replaced_by_text(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\nb\n"))
    assert list(numbered_lines("-")) == [(1, "a"), (2, "b")]


def test_an_error_on_standard_input_says_so(monkeypatch):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(b"\0")))
    assert error_of("-") == "<stdin>:1: a NUL byte, as in binary files and UTF-16; expected UTF-8"


@pytest.mark.parametrize("options", [{"mode": "rb"}, {"mode": "rb", "buffering": 0}, {"encoding": "utf-8"}])
def test_an_open_file_is_read_and_left_open(tmp_path, options):
    path = tmp_path / "x.txt"
    path.write_bytes("é\r\nb\n".encode())
    with open(path, **options) as stream:
        assert list(numbered_lines(stream)) == [(1, "é"), (2, "b")]
        assert not stream.closed


def test_bytes_in_memory_are_left_open():
    stream = io.BytesIO(gzip.compress(b"a\n"))
    list(numbered_lines(stream))
    assert not stream.closed


def test_text_in_memory_is_read():
    assert list(numbered_lines(io.StringIO("a\nb"))) == [(1, "a"), (2, "b")]


def test_a_temporary_text_file_is_read():
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as stream:
        stream.write("a\nb\n")
        stream.seek(0)
        assert list(numbered_lines(stream)) == [(1, "a"), (2, "b")]


def test_a_file_opened_as_text_fails_at_the_right_line(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"abcdefg\n" * 5000 + b"a\xff\n")
    with open(path, encoding="utf-8") as stream:
        assert error_of(stream) == f"{path}:5001: byte 0xff; expected UTF-8"


def test_a_lone_surrogate_in_text_is_damage():
    assert error_of(io.StringIO("a\n\ud800\n")) == "<stream>:2: byte 0xed at byte 1; expected UTF-8"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_may_give_one_byte_at_a_time(pack):
    assert list(numbered_lines(Trickle(pack(b"a\nb\n")))) == [(1, "a"), (2, "b")]


@on_posix
def test_a_pipe_is_read_as_its_text_arrives():
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        lines = numbered_lines(source)
        sink.write(b"first\n")
        assert next(lines) == (1, "first")
        sink.write(b"second\n")
        assert next(lines) == (2, "second")


def test_text_is_utf8_with_line_feeds(tmp_path):
    write("é\nb\n", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_bytes() == "é\nb\n".encode()


def test_a_path_may_be_a_string(tmp_path):
    write("a\n", str(tmp_path / "x.txt"))
    assert (tmp_path / "x.txt").read_bytes() == b"a\n"


def test_an_older_file_is_replaced(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("a much longer text\n")
    write("a\n", path)
    assert path.read_bytes() == b"a\n"


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, name, error):
    path = tmp_path / name
    path.write_text("old\n")
    with pytest.raises(type(error)):
        fail_in_the_middle(path, error)
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == [name]


def test_a_failure_leaves_no_new_file(tmp_path):
    with pytest.raises(RuntimeError):
        fail_in_the_middle(tmp_path / "x.txt", RuntimeError("no"))
    assert os.listdir(tmp_path) == []


def test_nothing_appears_under_the_name_before_the_end(tmp_path):
    with open_target(tmp_path / "x.txt") as stream:
        stream.write("a\n")
        stream.flush()
        assert not (tmp_path / "x.txt").exists()
    assert (tmp_path / "x.txt").exists()


def test_a_file_may_be_rewritten_while_it_is_read(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"ab\n" * CHUNK_SIZE)
    with open_target(path) as stream:
        stream.writelines(f"{line.upper()}\n" for _, line in numbered_lines(path))
    assert path.read_bytes() == b"AB\n" * CHUNK_SIZE


def test_characters_that_utf8_cannot_hold_are_refused(tmp_path):
    (tmp_path / "x.txt").write_text("old\n")
    with pytest.raises(InputError) as caught:
        write("a\ud800", tmp_path / "x.txt")
    assert str(caught.value) == r"the text contains '\ud800'; expected characters that UTF-8 can encode"
    assert (tmp_path / "x.txt").read_text() == "old\n"


def test_a_missing_folder_is_an_os_error_that_names_the_target(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write("a\n", tmp_path / "nowhere" / "x.txt")
    assert caught.value.filename == str(tmp_path / "nowhere" / "x.txt")


def test_a_folder_is_not_overwritten(tmp_path):
    with pytest.raises(OSError, match=tmp_path.name):
        write("a\n", tmp_path)
    assert tmp_path.is_dir()


def test_a_name_as_long_as_the_system_allows_works(tmp_path):
    path = tmp_path / ("x" * 250)
    write("a\n", path)
    assert path.read_bytes() == b"a\n"


@on_posix
def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "before").touch()
    write("a\n", tmp_path / "x.txt")
    (tmp_path / "after").touch()
    modes = [(tmp_path / name).stat().st_mode for name in ("before", "x.txt", "after")]
    assert modes[0] == modes[1] == modes[2]


@on_posix
def test_a_rewritten_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "x.txt"
    path.touch()
    path.chmod(0o640)
    write("a\n", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@on_posix
@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_is_as_private_while_it_is_rewritten(tmp_path, mode):
    path = tmp_path / "x.txt"
    path.touch()
    path.chmod(mode)
    with open_target(path):
        assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {mode, 0o600}
    assert stat.S_IMODE(path.stat().st_mode) == mode


@on_posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old\n")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write("new\n", tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new\n"


@on_posix
@pytest.mark.parametrize("name", ["pipe", "pipe.gz"])
def test_a_pipe_is_written_to_and_stays(tmp_path, name):
    path = tmp_path / name
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(path.read_bytes)
        write("a\n", path)
    assert (gzip.decompress(found.result()) if name.endswith(".gz") else found.result()) == b"a\n"
    assert path.is_fifo()
    assert os.listdir(tmp_path) == [name]


@on_posix
def test_a_link_to_a_pipe_leads_to_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit((tmp_path / "pipe").read_bytes)
        with replacing(tmp_path / "link") as stream:
            stream.write(b"a")
    assert found.result() == b"a"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "pipe").is_fifo()


@on_posix
def test_a_socket_is_refused_and_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(OSError, match="'s'"):
            write("a\n", "s")
    assert Path("s").is_socket()


def test_replacing_keeps_a_link_as_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(Path("folder") / "real")
    with replacing(tmp_path / "link") as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "real").read_bytes() == b"new"


def test_names_of_one_file_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a").touch()
    Path("b").touch()
    Path("link").symlink_to("a")
    assert is_same_file("a", tmp_path / "a")
    assert is_same_file("a", "link")
    assert is_same_file("none", tmp_path / "x" / ".." / "none")
    assert not is_same_file("a", "b")
    assert not is_same_file("a", "none")
    assert not is_same_file("-", "-")
    assert not is_same_file(tmp_path, tmp_path)


@pytest.mark.parametrize("dash", ["-", Path("-")])
def test_standard_output_is_a_dash_and_keeps_the_order(monkeypatch, dash):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", newline="\n"))
    print("before")
    write("é\n", dash)
    print("after", flush=True)
    assert raw.getvalue() == "before\né\nafter\n".encode()


def test_standard_output_may_have_no_bytes_underneath(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    write("a\n", "-")
    assert stream.getvalue() == "a\n"


def test_a_name_in_gz_is_compressed(tmp_path):
    write("a\n", tmp_path / "x.gz")
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()) == b"a\n"


def test_compressed_bytes_depend_on_the_text_alone(tmp_path):
    write("a\n", tmp_path / "x.gz")
    write("a\n", tmp_path / "y.gz")
    first, second = (tmp_path / name for name in ("x.gz", "y.gz"))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[4:8] == bytes(4)  # no time of writing in the header


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 17)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"short\n" + b" " * (1 << 20) + b"\n"))
    lines = numbered_lines(path)
    assert next(lines) == (1, "short")
    with pytest.raises(FormatError) as error:
        list(lines)
    message = f"{path}:2: a line of more than 131,072 bytes; expected shorter lines"
    assert str(error.value) == message


def test_a_long_line_is_read_whole(tmp_path):
    path = tmp_path / "long"
    path.write_bytes(b"a" * 300_000 + b"\nb\n")
    assert [len(line) for _, line in numbered_lines(path)] == [300_000, 1]
