"""What is no tool, used from a terminal."""

import pytest

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell

pytestmark = pytest.mark.slow


@pytest.fixture
def reader(shell: Shell) -> Shell:
    """Somebody who has a skill, and no server."""
    skill = shell.project / "skills" / "pdf"
    skill.mkdir(parents=True)
    about = "---\nname: pdf\ndescription: Work with PDF files.\n---\nUse pdftotext.\n"
    (skill / "SKILL.md").write_text(about, encoding="utf-8")
    (skill / "forms.md").write_text("Fill them in.", encoding="utf-8")
    shell.write_servers("skills: [skills]\nservers: {}\n")
    return shell


def test_a_skill_is_read_by_its_name(reader: Shell) -> None:
    whole = reader.run("call", "skill:pdf")
    part = reader.run("call", "skill:pdf", "file=forms.md")

    assert whole.status is ExitStatus.FINE, whole.err
    assert "Use pdftotext." in whole.out
    assert part.status is ExitStatus.FINE, part.err
    assert "Fill them in." in part.out


def test_a_skill_that_is_not_there_is_told_so(reader: Shell) -> None:
    ran = reader.run("call", "skill:nope")

    assert ran.status is ExitStatus.TOOL_ERROR
    assert "There is no skill `nope`" in ran.out
