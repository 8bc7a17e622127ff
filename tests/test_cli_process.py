"""The command line as a process: terminals and pipes, Ctrl-C, exit codes, and what the small things import."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import hand_built
import numpy as np
import pytest

import spdsl

TESTS = Path(__file__).resolve().parent
# The real entry point, with the slow fake among the back ends.
WITH_FAKES = (
    f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
    "from spdsl.solvers import dispatch\n"
    "dispatch.BACKENDS = {'fakepath': 'hand_built:FakePath', 'slow': 'hand_built:Slow', **dispatch.BACKENDS}\n"
    "from spdsl.cli import main\n"
    "main()\n"
)
SOLVE = ["solve", "m.spl", "--data", "t.csv", "--bind", "y=target"]


@pytest.fixture
def here(tmp_path):
    (tmp_path / "m.spl").write_text(hand_built.SOURCE)
    bound = hand_built.bound()
    rows = np.column_stack([bound.data["X"], bound.data["y"]])
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="one,two,target", comments="", fmt="%.17g")
    return tmp_path


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "TERM": "xterm-256color", **more}


def start(arguments, folder, **options):
    command = [sys.executable, "-c", WITH_FAKES, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment(**options.pop("variables", {})), **options)


def run(arguments, folder, **options):
    process = start(arguments, folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def on_terminal(arguments, folder, keys=(), columns=90, **variables):
    """Run with all three streams on a terminal; `keys` are (text to wait for, signal to send then)."""
    leader, follower = pty.openpty()
    variables = {"COLUMNS": str(columns), **variables}
    process = start(arguments, folder, stdin=follower, stdout=follower, stderr=follower, variables=variables)
    os.close(follower)
    seen, waiting = b"", list(keys)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        ready, _, _ = select.select([leader], [], [], 0.1)
        if ready:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            seen += part
        elif process.poll() is not None:
            break
        if waiting and waiting[0][0].encode() in seen:
            process.send_signal(waiting.pop(0)[1])
    os.close(leader)
    return process.wait(timeout=60), seen.decode()


# --- version, entry points -----------------------------------------------------------------------------------------


def test_the_version_is_told_without_importing_anything_costly():
    code = (
        "import sys; sys.argv = ['spdsl', '--version']; from spdsl.cli import main; main();"
        "heavy = {'click', 'rich', 'numpy', 'sympy', 'numba', 'matplotlib', 'cvxpy', 'scipy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"spdsl {spdsl.__version__}\n", "")


def test_help_imports_no_solver():
    code = (
        "import sys, contextlib; sys.argv = ['spdsl', 'solve', '--help']\nfrom spdsl.cli import main\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "heavy = {'numpy', 'sympy', 'numba', 'matplotlib', 'cvxpy', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--bind" in done.stdout


@pytest.mark.parametrize("command", [[sys.executable, "-m", "spdsl"], [str(Path(sys.executable).parent / "spdsl")]])
def test_the_script_and_the_module_are_the_same(command):
    done = subprocess.run([*command, "solve", "missing.spl"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error[SPL100]")


# --- streams -------------------------------------------------------------------------------------------------------


def test_a_pipe_gets_no_colour_no_bar_and_nothing_on_stderr(here):
    code, out, err = run([*SOLVE, "--out", "p.npz"], here)
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "1 jump" in out


def test_a_terminal_gets_colour_and_no_color_is_heard(here):
    code, seen = on_terminal(SOLVE, here)
    assert code == 0
    assert "\x1b[" in seen
    _, plain = on_terminal(SOLVE, here, NO_COLOR="1")
    assert "\x1b[3" not in plain


def test_an_error_on_a_terminal_is_coloured_and_in_a_pipe_plain(here):
    _, seen = on_terminal(["solve", "missing.spl"], here)
    assert "\x1b[1;31merror[SPL100]" in seen
    _, _, err = run(["solve", "missing.spl"], here)
    assert err.startswith("error[SPL100]: there is no file")


def test_a_narrow_terminal_is_not_overrun(here):
    _, seen = on_terminal(SOLVE, here, columns=40)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip() for line in seen.replace("\r", "").splitlines()]
    assert max(map(len, lines)) <= 40, max(lines, key=len)
    assert "…" not in seen, "columns are left out rather than cut"
    assert "KKT" in seen


def test_whoever_stops_reading_our_output_gets_no_complaint(here):
    for arguments in (["new", "-", "--from", "svm"], SOLVE):
        with start(arguments, here, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.wait(timeout=60) == 0
            assert process.stderr.read() == b""


# --- long work -----------------------------------------------------------------------------------------------------


def test_long_work_on_a_terminal_shows_a_bar_and_ctrl_c_keeps_what_was_reached(here):
    arguments = [*SOLVE, "--backend", "slow", "--out", "p.npz"]
    code, seen = on_terminal(arguments, here, keys=[("step 1", signal.SIGINT)])
    assert code == 3
    assert "━" in seen
    assert "%" in seen
    assert "stopped by the user" in seen
    with pytest.warns(spdsl.SpdslWarning, match="no back end called `slow`"):
        result = spdsl.load_result(here / "p.npz")
    assert result.status is spdsl.Status.INTERRUPTED


def test_ctrl_c_in_a_pipe_keeps_what_was_reached_without_a_bar(here):
    arguments = [*SOLVE, "--backend", "slow", "--out", "p.npz", "--json"]
    process = start(arguments, here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert err == ""
    assert json.loads(out)["status"] == "interrupted"
    assert (here / "p.npz").exists()


def test_ctrl_c_before_there_is_anything_leaves_with_130_and_one_line(here):
    code = WITH_FAKES.replace("main()\n", "").replace("from spdsl.cli import main", "from spdsl.cli.app import app") + (
        "import hand_built, os, signal, time\n"
        "hand_built.Slow.init = lambda *a: (os.kill(os.getpid(), signal.SIGINT), time.sleep(5))\n"
        "app(prog_name='spdsl')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *SOLVE, "--backend", "slow", "--out", "p.npz"],
        cwd=here,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip() == "interrupted before there was anything to keep"
    assert not (here / "p.npz").exists()


def test_a_time_limit_has_exit_code_3(here):
    code, out, _ = run([*SOLVE, "--backend", "slow", "--time-limit", "0.2", "--out", "p.npz"], here)
    assert code == 3
    assert "time limit" in out
    assert (here / "p.npz").exists()
