"""Skills on this machine: what is read of them, and what never is."""

import os
from pathlib import Path

import pytest

from aggregator.toolsearch.offers import skills
from aggregator.toolsearch.offers.skills import (
    Skill,
    SkillFileError,
    front_matter,
    read_file,
    read_skills,
)


def write_skill(root: Path, name: str, description: str = "Does it", **files: str) -> Path:
    """Write a skill; `files` are what else it has, with `__` for `/` and a last `_` for a dot."""
    directory = root / name
    directory.mkdir(parents=True)
    matter = f"---\nname: {name}\ndescription: {description}\n---\n"
    (directory / "SKILL.md").write_text(f"{matter}\n# {name}\n\nDo it well.\n")
    for key, content in files.items():
        path = directory / key.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return directory


def test_a_directory_of_skills_and_a_skill_itself_are_read(tmp_path: Path) -> None:
    many = tmp_path / "skills"
    write_skill(many, "pdf", "Fills PDF forms", references__forms_md="Forms")
    write_skill(many, "commits", "Writes commits")
    one = write_skill(tmp_path / "other", "single", "Stands alone")
    (many / "README.md").write_text("Not a skill")

    found = read_skills([many, one])

    assert found.problems == ()
    assert [(each.name, each.description, each.files) for each in found.skills] == [
        ("commits", "Writes commits", ()),
        ("pdf", "Fills PDF forms", ("references/forms.md",)),
        ("single", "Stands alone", ()),
    ]
    assert b"Do it well" in read_file(found.skills[1])
    assert read_file(found.skills[1], "references/forms.md") == b"Forms"


@pytest.mark.parametrize(
    "path",
    ["../secret", "/etc/passwd", "references/../../secret", "link.md", "linked/secret", "", "a\0b"],
)
def test_nothing_outside_of_a_skill_is_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    directory = write_skill(tmp_path / "skills", "pdf", references__forms_md="Forms")
    (directory / "link.md").symlink_to(tmp_path / "secret")
    (directory / "linked").symlink_to(tmp_path)
    (skill,) = read_skills([directory]).skills

    assert skill.files == ("references/forms.md",)
    with pytest.raises(SkillFileError, match=r"has no file .*references/forms\.md"):
        read_file(skill, path)


def test_a_file_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    directory = write_skill(tmp_path, "pdf", inner__a_md="A", b_md="B")
    (skill,) = read_skills([directory]).skills
    (directory / "b.md").unlink()
    (directory / "b.md").symlink_to(tmp_path / "secret")
    (directory / "inner" / "a.md").unlink()
    (directory / "inner").rmdir()
    (directory / "inner").symlink_to(tmp_path)
    (tmp_path / "a.md").write_text("secret")

    for path in ("b.md", "inner/a.md"):
        with pytest.raises(SkillFileError, match="cannot be read"):
            read_file(skill, path)


def test_a_link_to_a_skill_elsewhere_is_told(tmp_path: Path) -> None:
    elsewhere = write_skill(tmp_path / "elsewhere", "pdf")
    root = tmp_path / "skills"
    write_skill(root, "here")
    (root / "pdf").symlink_to(elsewhere)
    (root / "again").symlink_to(root / "here")

    found = read_skills([root])

    assert [each.name for each in found.skills] == ["here"]
    leads, same = sorted(found.problems, key=lambda each: "leads elsewhere" not in each)
    assert "leads elsewhere: name where it leads in `skills`" in leads
    assert "has the name `here` already" in same


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("---\nname: x\n", "no other ends what it begins"),
        ("---\nname: [\n---\n", "line 3: is not valid YAML"),
        ("---\n- a\n---\n", "must be `name:` and `description:`"),
        ("---\nname: x\n---\n", "give it a `description`"),
        ("", "give it a `description`"),
        ("---\na: &a [x, x, x, x, x, x, x, x]\n" + "b: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n"
         "c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n"
         "e: &e [*d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e]\n---\n",
         "holds more than 50,000 values"),
        ("\xff", "is not UTF-8 text"),
        ("x" * (skills.MAX_BYTES + 1), "is larger than 1 MiB"),
    ],
)  # fmt: skip
def test_what_is_no_skill_is_told_and_the_others_are_read(
    tmp_path: Path, text: str, problem: str
) -> None:
    write_skill(tmp_path, "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_bytes(text.encode("latin-1"))

    found = read_skills([tmp_path])

    assert [each.name for each in found.skills] == ["good"]
    (told,) = found.problems
    assert "bad`" in told
    assert problem in told


def test_a_skill_that_says_nothing_in_front_is_known_by_its_opening(tmp_path: Path) -> None:
    (tmp_path / "Plain").mkdir()
    (tmp_path / "Plain" / "SKILL.md").write_text("# Plain\n\nSorts the mail.\nAnd more.\n")

    (skill,) = read_skills([tmp_path]).skills

    assert (skill.name, skill.description) == ("Plain", "Sorts the mail.")


def test_a_skill_that_is_not_for_models_is_left_out(tmp_path: Path) -> None:
    directory = write_skill(tmp_path, "deploy")
    text = (directory / "SKILL.md").read_text()
    (directory / "SKILL.md").write_text(
        text.replace("---\n", "---\ndisable-model-invocation: true\n", 1)
    )

    assert read_skills([tmp_path]) == ((), ())


def test_a_directory_that_is_not_there_and_a_name_that_cannot_be_are_told(tmp_path: Path) -> None:
    (tmp_path / "sk ill").mkdir()
    (tmp_path / "sk ill" / "SKILL.md").write_text("---\ndescription: x\n---\n")

    found = read_skills([tmp_path / "none", tmp_path])

    assert found.skills == ()
    assert "none` cannot be read: no such file" in found.problems[0]
    assert "letters and digits" in found.problems[1]


def test_skills_and_their_files_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_SKILLS", 3)
    monkeypatch.setattr(skills, "MAX_FILES", 3)
    monkeypatch.setattr(skills, "MAX_DEPTH", 1)
    for number in range(5):
        write_skill(tmp_path, f"s{number}", a_md="", b_md="", c_md="", d__e__f_md="")

    found = read_skills([tmp_path])

    assert [each.name for each in found.skills] == ["s0", "s1", "s2"]
    assert found.skills[0].files == ("a.md", "b.md")
    assert "more than 3 skills" in found.problems[0]


def test_so_many_names_are_looked_at_and_so_many_problems_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_LOOKED_AT", 30)
    monkeypatch.setattr(skills, "MAX_ENTRIES", 2)
    for number in range(40):
        (tmp_path / f"{number:02}").mkdir()
        (tmp_path / f"{number:02}" / "SKILL.md").write_text("---\n")

    problems = read_skills([tmp_path]).problems

    assert len(problems) == skills.MAX_PROBLEMS + 1
    assert problems[-1] == "10 more cannot be used"
    directory = write_skill(tmp_path / "deep", "deep", a_md="", b_md="", c_md="", d__e_md="")
    assert len(read_skills([directory]).skills[0].files) <= 1 + 1


def test_a_file_that_is_none_or_too_large_or_gone_is_not_read(tmp_path: Path) -> None:
    directory = write_skill(tmp_path, "pdf", large_md="x" * (skills.MAX_BYTES + 1), gone_md="")
    os.mkfifo(directory / "pipe")
    (directory / "locked").mkdir(mode=0o000)
    (skill,) = read_skills([directory]).skills
    (directory / "gone.md").unlink()

    assert skill.files == ("gone.md", "large.md")
    with pytest.raises(SkillFileError, match="larger than 1 MiB"):
        read_file(skill, "large.md")
    with pytest.raises(SkillFileError, match="cannot be read: no such file"):
        read_file(skill, "gone.md")
    with pytest.raises(SkillFileError, match="it is not a file"):
        read_file(Skill("pdf", "", directory, ("pipe",)), "pipe")
    (directory / "SKILL.md").unlink()
    os.mkfifo(directory / "SKILL.md")
    assert "it is not a file" in read_skills([directory]).problems[0]


def test_what_stands_in_front_can_be_had_alone() -> None:
    assert front_matter("---\nname: a\ndescription: 'b: c'\nmetadata:\n  x: 1\n---\ntext") == {
        "name": "a",
        "description": "b: c",
    }
    assert front_matter("text") == {}
    with pytest.raises(ValueError, match="no other ends"):
        front_matter("---\nname: a")
