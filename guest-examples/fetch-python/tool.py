"""A tool that reads a page of the web, from hosts that its operator names."""

from typing import Any

from longshore import http, tool

# What is shown of a page.
SHOWN = 4 * 1024


@tool()
def fetch_python(url: str, shown: int = SHOWN) -> dict[str, Any]:
    """Reads what is at a URL: its status, its type, and the beginning of its text.

    Args:
        url: The URL, such as https://example.org/.
        shown: How many bytes of it.
    """
    page = http.get(url)
    return {
        "status": page.status,
        "content_type": page.headers.get("content-type"),
        "bytes": len(page.content),
        "text": page.content[:shown].decode("utf-8", "replace"),
    }
