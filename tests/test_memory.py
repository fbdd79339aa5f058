import json
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path, PosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator import memory
from aggregator.memory import NoMemory, Notebook, joined, open_memory, state_path

DEEP = "[" * 100_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ours" / "state.json"


def written(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_fact_outlives_the_process_that_learned_it(path: Path):
    first = Notebook(path)
    first.put("clients", "opencode", {"relists": True})

    assert first.save()
    assert Notebook(path).get("clients", "opencode") == {"relists": True}


def test_a_fact_is_known_before_it_is_saved_and_in_the_same_shape(path: Path):
    book = Notebook(path)
    book.put("loaded", "key", ("a", "b"))

    assert book.get("loaded", "key") == ["a", "b"]
    assert not path.exists()


def test_what_was_never_learned_is_none(path: Path):
    assert Notebook(path).get("clients", "opencode") is None


def test_none_forgets(path: Path):
    book = Notebook(path)
    book.put("clients", "opencode", 1)
    book.put("clients", "opencode", None)
    book.save()

    assert book.get("clients", "opencode") is None
    assert written(path) == {"clients": {}}


def test_the_file_and_its_directory_are_for_their_owner_alone(path: Path):
    book = Notebook(path)
    book.put("clients", "opencode", 1)
    book.save()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_without_news_nothing_is_written(path: Path):
    book = Notebook(path)
    assert book.save()
    assert not path.exists()

    book.put("clients", "opencode", 1)
    book.save()
    before = path.stat().st_mtime_ns, path.stat().st_ino
    book.put("clients", "opencode", 1)
    assert book.save()
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_two_processes_keep_each_others_facts(path: Path):
    one, other = Notebook(path), Notebook(path)
    one.put("clients", "one", 1)
    other.put("clients", "other", 2)

    assert one.save()
    assert other.save()
    assert written(path) == {"clients": {"one": 1, "other": 2}}
    assert other.get("clients", "one") == 1


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"\xff\xfe", DEEP.encode(), b"1" * 2_000_000]
)
def test_a_corrupt_file_is_moved_aside_and_replaced_by_the_next_save(path: Path, content: bytes):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    book = Notebook(path)
    book.put("clients", "opencode", 1)

    assert path.with_suffix(".corrupt").read_bytes() == content
    assert book.save()
    assert written(path) == {"clients": {"opencode": 1}}


def test_sections_of_an_odd_shape_are_left_out(path: Path):
    path.parent.mkdir(parents=True)
    path.write_text('{"clients": [1], "loaded": {"key": ["a"]}}', encoding="utf-8")

    book = Notebook(path)

    assert book.get("clients", "opencode") is None
    assert book.get("loaded", "key") == ["a"]


def test_a_place_that_cannot_be_written_leaves_a_memory_for_this_run(tmp_path: Path):
    (tmp_path / "file").write_text("not a directory", encoding="utf-8")
    book = Notebook(tmp_path / "file" / "state.json")
    book.put("clients", "opencode", 1)

    assert not book.save()
    assert book.get("clients", "opencode") == 1
    assert (tmp_path / "file").read_text(encoding="utf-8") == "not a directory"


def test_a_path_that_cannot_be_read_is_not_written_over(tmp_path: Path):
    endless = tmp_path / "state.json"
    endless.symlink_to(endless)
    book = Notebook(endless)
    book.put("clients", "opencode", 1)

    assert not book.save()
    assert endless.is_symlink()


def test_a_full_disk_leaves_the_old_file_whole_and_no_litter(path: Path):
    book = Notebook(path)
    book.put("clients", "opencode", 1)
    book.save()
    book.put("clients", "gemini", 2)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        saved = book.save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert not saved
    assert list(path.parent.iterdir()) == [path]
    assert written(path) == {"clients": {"opencode": 1}}
    assert book.save()
    assert written(path) == {"clients": {"opencode": 1, "gemini": 2}}


def test_a_corrupt_file_that_cannot_be_moved_aside_is_left_alone(path: Path):
    path.with_suffix(".corrupt").mkdir(parents=True)
    path.write_text("{", encoding="utf-8")
    book = Notebook(path)
    book.put("clients", "opencode", 1)

    assert not book.save()
    assert book.get("clients", "opencode") == 1
    assert path.read_text(encoding="utf-8") == "{"


class Busy(PosixPath):
    """A path that tells when it is looked at, which is in the middle of a save."""

    on_look: Callable[[], None] = staticmethod(lambda: None)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        self.on_look()
        return super().stat(follow_symlinks=follow_symlinks)


def test_a_fact_learned_while_others_are_saved_is_kept_for_the_next_save(tmp_path: Path):
    busy = Busy(tmp_path / "state.json")
    book = Notebook(busy)
    book.put("clients", "early", 1)
    busy.on_look = lambda: book.put("clients", "late", 2)

    assert not book.save()
    assert written(busy) == {"clients": {"early": 1}}
    assert book.save()
    assert written(busy) == {"clients": {"early": 1, "late": 2}}


def test_a_fact_forgotten_while_others_are_saved_stays_forgotten(tmp_path: Path):
    busy = Busy(tmp_path / "state.json")
    book = Notebook(busy)
    book.put("clients", "unwanted", 1)
    book.save()
    book.put("clients", "early", 1)
    busy.on_look = lambda: book.put("clients", "unwanted", None)

    assert not book.save()
    assert book.get("clients", "unwanted") is None
    assert book.save()
    assert written(busy) == {"clients": {"early": 1}}


def test_a_pipe_in_place_of_the_file_does_not_hang(path: Path):
    path.parent.mkdir(parents=True)
    os.mkfifo(path)

    assert Notebook(path).get("clients", "opencode") is None


def test_the_oldest_facts_of_a_section_leave_first(path: Path):
    book = Notebook(path)
    for number in range(memory.MAX_FACTS):
        book.put("clients", str(number), number)
    book.put("clients", "0", "again")
    book.put("clients", "new", True)

    assert book.get("clients", "0") == "again"
    assert book.get("clients", "1") is None
    assert book.get("clients", "2") == 2


def test_a_fact_out_of_all_proportion_is_let_go(path: Path):
    book = Notebook(path)
    book.put("clients", "x" * memory.MAX_FACT_BYTES, 1)
    book.put("clients", "opencode", "x" * memory.MAX_FACT_BYTES)

    assert book.save()
    assert not path.exists()


def test_the_file_stays_within_its_bound_and_keeps_the_newest(path: Path):
    book = Notebook(path)
    for number in range(60):
        book.put("loaded", str(number), "x" * 30_000)

    assert book.save()
    assert path.stat().st_size <= memory.MAX_FILE_BYTES
    assert Notebook(path).get("loaded", "59") == "x" * 30_000


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.booleans() | st.integers() | st.text(),
            lambda each: st.lists(each) | st.dictionaries(st.text(), each),
            max_leaves=5,
        ),
        max_size=5,
    )
)
def test_whatever_is_saved_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, facts: dict[str, object]
):
    path = tmp_path_factory.mktemp("state") / "state.json"
    book = Notebook(path)
    for key, value in facts.items():
        book.put("section", key, value)

    assert book.save()
    again = Notebook(path)
    assert {key: again.get("section", key) for key in facts} == facts


def test_switched_off_remembers_nothing(tmp_path: Path):
    off = open_memory({"HOME": str(tmp_path)}, enabled=False)
    off.put("clients", "opencode", 1)

    assert isinstance(off, NoMemory)
    assert off.save()
    assert off.get("clients", "opencode") is None
    assert list(tmp_path.iterdir()) == []


def test_without_a_home_facts_last_as_long_as_the_process():
    book = open_memory({}, platform="linux")
    book.put("clients", "opencode", 1)

    assert book.get("clients", "opencode") == 1
    assert not book.save()


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"HOME": "/h"}, "/h/.local/state/mcp-tool-aggregator/state.json"),
        ("linux", {"HOME": "/h", "XDG_STATE_HOME": "/x"}, "/x/mcp-tool-aggregator/state.json"),
        (
            "linux",
            {"HOME": "/h", "XDG_STATE_HOME": "relative"},
            "/h/.local/state/mcp-tool-aggregator/state.json",
        ),
        (
            "darwin",
            {"HOME": "/h", "XDG_STATE_HOME": "/x"},
            "/h/Library/Application Support/mcp-tool-aggregator/state.json",
        ),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/mcp-tool-aggregator/state.json"),
    ],
)
def test_state_lives_where_the_platform_keeps_it(
    platform: str, environment: dict[str, str], expected: str
):
    assert state_path(environment, platform) == Path(expected)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_an_environment_that_says_nothing_gives_no_place(platform: str):
    assert state_path({}, platform) is None


def test_joined_words_stay_apart():
    assert joined("a", "b") != joined("a b")
    assert joined("a", "b, c") != joined("a, b", "c")
