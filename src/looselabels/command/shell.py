"""Words of a command line: pairs such as FROM=TO, and quoting for a shell."""

import re
from shlex import quote


def join_pair(old: str, new: str) -> str:
    r"""Return FROM=TO as one word; a backslash marks an = that belongs to a name.

    >>> print(join_pair("a=b", "A"))
    a\=b=A
    """
    return "=".join(re.sub(r"([\\=])", r"\\\1", part) for part in (old, new))


def split_pair(word: str) -> tuple[str, str] | None:
    r"""Return the two parts of FROM=TO, or None if the word has no =.

    >>> split_pair(r"a\=b=A"), split_pair("C:\\x=y"), split_pair("merge.json")
    (('a=b', 'A'), ('C:\\x', 'y'), None)
    """
    found = re.fullmatch(r"((?:\\[\\=]|[^=\\]|\\(?![\\=]))*)=(.*)", word, re.DOTALL)
    if found is None:
        return None
    old, new = (re.sub(r"\\([\\=])", r"\1", part) for part in found.groups())
    return old, new


def shell_word(text: str) -> str:
    r"""Return a word that a shell reads as `text`, without characters that cannot be copied.

    Letters are not changed. A text with control characters, line breaks or unusual spaces is
    written as $'…', which bash and zsh read.

    >>> print(shell_word("two words"), shell_word("a\u00a0b"))
    'two words' $'a\u00a0b'
    """
    if text.isprintable():
        return quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def _escaped(character):
    if character.isprintable() and character not in "'\\":
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
