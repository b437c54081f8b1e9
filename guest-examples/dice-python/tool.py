"""A tool that looks at all that differs from one call to the next: clocks, random numbers, the order of a set, what a
person answers. All of it is in the result, so that a call which went on in another process, and saw anything else
there, cannot hide it."""

import json
import random
import secrets
import sys
import time

from longshore import task, tool

# How long it waits, by each of the two ways to wait.
PAUSE_S = 0.02


@tool(task_mode="always")
def dice_python() -> str:
    """Rolls dice: asks for a bet and whether to roll twice, and tells all that it saw on the way."""
    print("the dice are on the table")
    print("nobody has bet yet", file=sys.stderr)
    start, wall_before = time.monotonic_ns(), wall_ms()
    number = secrets.randbits(64)
    sides = [int(side) for side in {"1", "2", "3", "4", "5", "6"}]

    task.status("waiting for a bet")
    fields = {"bet": {"type": "integer", "minimum": 1, "maximum": 6, "description": "The side that will lie on top."}}
    bet = task.ask("bet", "Which side will lie on top?", fields)
    task.status("rolling")
    task.sleep(PAUSE_S)
    time.sleep(PAUSE_S)
    rolls = [sides[number % 6]]
    print(f"rolled {rolls[0]}")
    steady_between = millis_since(start)

    task.status("waiting to hear whether to go on")
    again = task.ask("again", "Once more?", {"again": {"type": "boolean", "title": "Roll again"}})
    if again and again["again"]:
        rolls.append(random.choice(sides))
        print(f"rolled {rolls[1]}")
    seen = {
        "bet": bet and int(bet["bet"]),
        "again": again and again["again"],
        "rolls": rolls,
        "sides": sides,
        "random": f"{number:016x}",
        "wallMs": [wall_before, wall_ms()],
        "steadyMs": [steady_between, millis_since(start)],
    }
    return json.dumps(seen)


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def millis_since(start: int) -> int:
    return (time.monotonic_ns() - start) // 1_000_000
