"""A tool of which there is one in each language, alike in all that a client sees: it says how far it is, asks a
question, heeds a cancel, refuses an argument, and answers with data."""

from typing import Any

from longshore import task, tool


@tool(task_mode="always")
def survey_python(topic: str, rounds: int = 3, pause: int = 0) -> dict[str, Any]:
    """Looks at a topic in rounds, and asks the person for a mark.

    Args:
        topic: What it is about.
        rounds: How many looks to take.
        pause: Milliseconds between two looks.
    """
    check(topic)
    seen = ""
    for number in range(1, rounds + 1):
        task.status(f"round {number} of {rounds}")
        task.progress(number, rounds)
        seen += task.step("look", lambda: look(topic, number))
        task.sleep(pause / 1000)
    fields = {"mark": {"type": "integer", "minimum": 1, "maximum": 5, "description": "From 1 to 5."}}
    mark = None
    try:
        match task.ask("mark", f"What do you think of {topic}?", fields):
            case {"mark": given}:
                answer, mark = "answered", int(given)
            case None:
                answer = "declined"
    except task.Unsupported:
        answer = "unsupported"
    return {"topic": topic, "rounds": rounds, "seen": seen, "answer": answer, "mark": mark}


def look(topic: str, number: int) -> str:
    """A look is done once, even if the server dies."""
    return topic[(number - 1) % len(topic)]


def check(topic: str) -> None:
    if not topic:
        raise ValueError("a survey needs a topic")
