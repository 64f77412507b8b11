#!/usr/bin/env python3
"""Stands for pkexec where there is no polkit: put into PATH under that name, it asks a file and then runs the command.

Beside this file lie `answer` (yes, no or stranger) and `root`, the path of a folder. The command must be an isolated
Python that runs Colibri's helper; the same Python runs that helper's main, as root, with the folder in place of "/".
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(sys.argv[0]).parent
AS_ROOT_BELOW = """
import importlib.util, os, pathlib, sys
helper, root, *arguments = sys.argv[1:]
spec = importlib.util.spec_from_file_location("system_helper", helper)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.apply.__defaults__ = (pathlib.Path(root), "")
os.geteuid = lambda: 0
raise SystemExit(module.main(arguments))
"""


def main() -> int:
    python, isolated, helper, *arguments = sys.argv[1:]
    with (HERE / "asked").open("a", encoding="utf-8") as log:
        log.write(" ".join(arguments) + "\n")
    answer = (HERE / "answer").read_text(encoding="utf-8").strip()
    if answer == "no":
        sys.stderr.write("Error executing command as another user: Request dismissed\n")
        return 126
    if answer == "stranger":
        sys.stderr.write("Error executing command as another user: Not authorized\n")
        return 127
    if isolated != "-I" or not Path(python).is_absolute() or not Path(helper).is_absolute():
        sys.stderr.write("expected an isolated Python and the helper, both by their full paths\n")
        return 1
    root = (HERE / "root").read_text(encoding="utf-8").strip()
    environment = {"PATH": "/usr/bin:/bin", "PKEXEC_UID": str(os.getuid())}
    command = [python, "-I", "-c", AS_ROOT_BELOW, helper, root, *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
