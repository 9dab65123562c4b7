"""The command: what a newcomer sees first."""

from click.testing import CliRunner

from looselabels import __version__
from looselabels.cli import main


def test_help_shows_an_example():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "looselabels demo" in result.output


def test_version():
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_the_demo_prints_named_tables_and_ends_above_the_labels():
    result = CliRunner().invoke(main, ["demo"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "(unlabeled)" in result.output
    right = {
        line[10:]: float(line[:8].strip(" %"))
        for line in result.output.splitlines()
        if line[8:9] == " " and "%" in line[:8]
    }
    assert right["p(class | x)"] > right["the label the forest predicts"] + 10
    assert right["p(class | x, label)"] > right["p(class | x)"]


def test_an_unknown_command_exits_with_2():
    assert CliRunner().invoke(main, ["audti"]).exit_code == 2
