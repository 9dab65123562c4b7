"""Words of a command line."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looselabels.command.shell import join_pair, shell_word, split_pair


@given(st.text(alphabet="a=\\ é"), st.text(alphabet="a=\\ é"))
def test_a_pair_is_split_as_it_was_joined(old, new):
    assert split_pair(join_pair(old, new)) == (old, new)


@pytest.mark.parametrize("word", ["", "a", "data.json", r"a\=b", "\\" * 99])
def test_a_word_without_a_separator_is_no_pair(word):
    assert split_pair(word) is None


TEXTS = ["plain", "", "two words", "it's", "$HOME", "a\u00a0b", "x\ny'\\", "\x1b[31m", "\U000e0001"]


def test_a_shell_reads_the_text_back_from_printable_words():
    words = [shell_word(text) for text in TEXTS]
    assert " ".join(words).isprintable()
    command = ["bash", "-c", f"printf '%s\\0' {' '.join(words)}"]
    environment = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment, timeout=60)
    assert done.stdout.decode().split("\0")[:-1] == TEXTS
