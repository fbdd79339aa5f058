"""Files of skills on this machine, as resources of ours."""

import base64
import mimetypes
from typing import Any
from urllib.parse import quote

from aggregator.toolsearch.offers.skills import MAIN, Skill

SKILLS_URI = "catalog://skills"
"""What the URIs of their files begin with."""


def shown_skill(skill: Skill) -> dict[str, Any]:
    """Return a skill as it is listed: by its main file."""
    return {
        "uri": f"{SKILLS_URI}/{quote(skill.name)}/{MAIN}",
        "name": skill.name,
        "description": skill.description,
        "mimeType": "text/markdown",
    }


def contents_of(uri: str, content: bytes) -> dict[str, Any]:
    """Return what is in a file, as text if it is one."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        kind = mimetypes.guess_type(uri)[0] or "application/octet-stream"
        return {"uri": uri, "mimeType": kind, "blob": base64.b64encode(content).decode()}
    kind = "text/markdown" if uri.endswith(".md") else mimetypes.guess_type(uri)[0] or "text/plain"
    return {"uri": uri, "mimeType": kind, "text": text}
