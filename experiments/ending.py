"""How a command that fills a file of results ends: an exit code, and one line where it failed."""

import click

from experiments.results import Locked

OK, USAGE, DATA, IO, INTERRUPTED = 0, 2, 3, 5, 130  # as of the command `looselabels`


def run_command(command, name, arguments=None) -> int:
    """Run a click command and return its exit code; what goes wrong is one line on stderr."""
    try:
        command(arguments, prog_name=name, standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return _say(error.format_message(), USAGE)
    except (KeyboardInterrupt, click.Abort):
        return _say("Interrupted; finished cells are kept. The same command goes on.", INTERRUPTED)
    except ImportError as error:  # an extra is not there
        return _say(str(error), USAGE)
    except Locked as error:
        return _say(str(error), IO)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}; finished cells are kept.", IO)
    except ValueError as error:
        return _say(" ".join(str(error).split()), DATA)
    return OK


def _say(words, code):
    click.echo(words, err=True)
    return code
