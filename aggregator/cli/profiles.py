"""What of the profiles of a file means nothing that there is."""

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from aggregator.config import Config
from aggregator.config.profile import Profile
from aggregator.config.rules import concerns, rule
from aggregator.names import ServerName, spellings

Named = Mapping[ServerName, Collection[str]]
"""The own names of what each server has, for those of which that is known."""


def unmatched(config: Config, named: Named) -> Iterator[str]:
    """Say, one sentence each, what holds for no server, tool or prompt.

    What may mean something of a server of which nothing is known is left alone.
    """
    for profile in config.settings.profiles.values():
        for key, entry in _unmatched(profile, config, named):
            yield f"`profiles.{profile.name}.{key}`: `{entry}` matches nothing"


def _unmatched(profile: Profile, config: Config, named: Named) -> Iterator[tuple[str, str]]:
    for glob in profile.servers:
        if not any(fnmatchcase(name, glob) for name in config.servers):
            yield "servers", glob
    always = profile.always_load if isinstance(profile.always_load, tuple) else ()
    kinds = (("allow", profile.allow), ("deny", profile.deny), ("alwaysLoad", always))
    for key, globs in kinds:
        for glob in globs:
            if not _means(glob, config, named, is_generous=key == "deny"):
                yield key, glob


def _means(glob: str, config: Config, named: Named, *, is_generous: bool) -> bool:
    """Return whether a glob means something that there is, or may."""
    for name, server in config.enabled.items():
        if name not in named:
            if concerns((glob,), server.whose):
                return True
            continue
        held = rule((glob,), server.whose, is_generous=is_generous)
        own = {each for tool in named[name] for each in (tool, server.renamed(tool))}
        if any(held.means(spellings(each, server.prefix)) for each in own):
            return True
    # Everything is meant of however little there is.
    return not glob.strip("*")
