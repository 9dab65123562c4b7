"""Exit codes and one-line error messages for commands that write result files."""

import click

from experiments.results import Locked

OK, USAGE, DATA, IO, INTERRUPTED = 0, 2, 3, 5, 130  # same as `looselabels`


def run_command(command, name, arguments=None) -> int:
    """Run a click command and return its exit code; errors are one line on stderr."""
    try:
        command(arguments, prog_name=name, standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return _fail(error.format_message(), USAGE)
    except (KeyboardInterrupt, click.Abort):
        return _fail(
            "Interrupted; finished cells are kept. Run the command again to continue.", INTERRUPTED
        )
    except ImportError as error:  # a missing optional dependency
        return _fail(str(error), USAGE)
    except Locked as error:
        return _fail(str(error), IO)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}; finished cells are kept.", IO)
    except ValueError as error:
        return _fail(" ".join(str(error).split()), DATA)
    return OK


def _fail(message, code):
    click.echo(message, err=True)
    return code
