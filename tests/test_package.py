import subprocess
import sys

import pytest

from tests.package import ROOT, check_contents, check_description


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git lists what should be packed")
def test_the_wheel_and_the_sdist_hold_what_git_holds_and_the_description_has_no_dead_link(tmp_path):
    pytest.importorskip("build", reason="`make package` installs it")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    check_contents(wheel, sdist)
    check_description(wheel)
