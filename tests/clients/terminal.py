"""Runs a program on a terminal, and types when it has said what is waited for.

The first argument is a JSON list of pairs: what is waited for, and what is typed then. The others are the
program and its arguments. Prints one JSON object with the exit code and all that was on the terminal.
"""

import json
import os
import pty
import sys


def main():
    script, command = json.loads(sys.argv[1]), sys.argv[2:]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(command[0], command)
    said, seen = "", 0
    steps = iter(script)
    step = next(steps, None)
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            # Linux says so when the last program on a terminal has gone.
            part = b""
        if not part:
            break
        said += part.decode(errors="replace")
        while step and step[0] in said[seen:]:
            seen += said[seen:].index(step[0]) + len(step[0])
            os.write(terminal, step[1].encode())
            step = next(steps, None)
    _, status = os.waitpid(child, 0)
    json.dump(
        {"code": os.waitstatus_to_exitcode(status), "said": said, "untyped": step}, sys.stdout
    )


main()
