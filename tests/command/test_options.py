"""The options of the command."""

import click
import pytest
from click.testing import CliRunner

from looselabels.command import options
from looselabels.estimation.sampling import MAX_FIT_ROWS
from looselabels.estimation.transition import METHODS


def parsed(*words, option):
    """Return the value that an option gets, or the message of its error."""

    @click.command()
    @option
    def command(**values):
        click.echo(repr(*values.values()))

    return CliRunner().invoke(command, words).output.strip()


@pytest.mark.parametrize(
    ("words", "value"),
    [((), "None"), (["--delimiter", ";"], "';'"), (["--delimiter", "tab"], r"'\t'")],
)
def test_a_delimiter_is_one_character_or_the_name_of_a_tab(words, value):
    assert parsed(*words, option=options.delimiter) == value


def test_a_delimiter_of_two_characters_is_refused():
    assert "';;' is not a single character" in parsed("--delimiter", ";;", option=options.delimiter)


@pytest.mark.parametrize("rate", ["-0.1", "1", "nan", "much"])
def test_a_noise_rate_is_a_share(rate):
    words = ("--label", "y", "--noise", rate)
    message = parsed(*words, option=options.about_labels)
    assert f"'{rate}' is neither a number from 0 to 1" in message


def test_a_label_rate_is_a_number():
    message = parsed("--label", "y", "--label-rate", "nan", option=options.about_labels)
    assert "'--label-rate': nan is not a rate" in message


@pytest.mark.parametrize("word", ["cat", "cat=2", "=0.5", "cat=", "cat=nan"])
def test_a_class_share_names_a_class_and_a_share(word):
    words = ("--label", "y", "--class-share", word)
    message = parsed(*words, option=options.about_labels)
    assert f"{word!r} is not CLASS=SHARE, with a share from 0 to 1." in message


def test_the_command_learns_from_as_many_rows_as_the_classifier():
    assert options.MAX_FIT_ROWS == MAX_FIT_ROWS


def test_noise_accepts_what_the_classifier_accepts():
    assert set(options.NOISE) == {"estimate", *METHODS}


def test_the_command_is_repeated_without_folders_and_without_options_of_output():
    @click.command()
    @click.argument("data")
    @options.add_options(options.about_labels, options.about_model)
    @click.option("-o", "--out")
    @options.add_options(options.excel_safe, options.seed, options.force, options.quiet)
    def audit(**_):
        click.echo(options.repeatable_command())

    words = ["some/folder/a b.csv", "--label", "kind", "--unlabeled", "?", "--unlabeled", ""]
    words += ["--design", "other/d.json", "--jobs", "2", "-o", "out", "--excel-safe", "--force"]
    words += ["--strip", "--merge", "a b=c", "--merge", "/dev/../etc/passwd", "--source", "s"]
    words += ["--class-share", "cat=0.3", "--label-rate", "0.4", "--noise", "em"]
    assert CliRunner().invoke(audit, words).output == (
        "looselabels audit 'a b.csv' --label kind --unlabeled '?' --unlabeled '' --strip "
        "--merge 'a b=c' --merge passwd --noise em --design d.json --source s "
        "--class-share cat=0.3 --label-rate 0.4 --excel-safe\n"
    )
