"""What of our environment servers are given, and why.

A server is somebody else's program, so it gets what programs need to run here and no more. What
looks like a secret is given only by its name in the table, or because a person said so.
"""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from aggregator.config.keychain import PREFIX
from aggregator.secrecy import names_secret, without_secrets

Wish = bool | tuple[str, ...]
"""Everything, the bare necessities, or what the table has and these globs match."""


class Need(NamedTuple):
    """Variables that are passed on for one reason; `X_*` is every name that begins so."""

    reason: str
    names: tuple[str, ...]


NECESSITIES = (
    Need(
        "find programs, and a place for files",
        ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP"),
    ),
    Need(
        "the same on Windows",
        (
            "ALLUSERSPROFILE",
            "APPDATA",
            "COMMONPROGRAMFILES",
            "COMSPEC",
            "HOMEDRIVE",
            "HOMEPATH",
            "LOCALAPPDATA",
            "NUMBER_OF_PROCESSORS",
            "OS",
            "PATHEXT",
            "PROCESSOR_ARCHITECTURE",
            "PROGRAMDATA",
            "PROGRAMFILES",
            "PROGRAMFILES(X86)",
            "PROGRAMW6432",
            "PSMODULEPATH",
            "PUBLIC",
            "SYSTEMDRIVE",
            "SYSTEMROOT",
            "USERDOMAIN",
            "USERNAME",
            "USERPROFILE",
            "WINDIR",
        ),
    ),
)
"""Given to every server."""

TABLE = (
    *NECESSITIES,
    Need("use your language and time zone", ("LANG", "LANGUAGE", "LC_*", "TZ")),
    Need("keep files where you want them, and reach your session", ("XDG_*",)),
    Need(
        "reach the network through a proxy",
        ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY"),
    ),
    Need(
        "trust the certificates of the network",
        (
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "NODE_USE_SYSTEM_CA",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "AWS_CA_BUNDLE",
            "GIT_SSL_CAINFO",
            "GIT_SSL_CAPATH",
            "CARGO_HTTP_CAINFO",
            "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
            "DENO_CERT",
            "DENO_TLS_CA_STORE",
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
            "HTTPLIB2_CA_CERTS",
            "NIX_SSL_CERT_FILE",
        ),
    ),
    Need(
        "open a window, a browser, a dialogue",
        (
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
            "DBUS_SESSION_BUS_ADDRESS",
            "BROWSER",
            "WSL_DISTRO_NAME",
            "WSL_INTEROP",
        ),
    ),
    Need(
        "use the keys of an agent without seeing them",
        ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GIT_SSH_COMMAND", "GNUPGHOME"),
    ),
    Need(
        "find a container engine",
        (
            "DOCKER_HOST",
            "DOCKER_CONFIG",
            "DOCKER_CONTEXT",
            "DOCKER_CERT_PATH",
            "DOCKER_TLS_VERIFY",
            "DOCKER_API_VERSION",
            "CONTAINER_HOST",
        ),
    ),
    Need(
        "fetch packages, and keep them",
        (
            "NPM_CONFIG_*",
            "UV_*",
            "PIP_*",
            "PIPX_*",
            "YARN_*",
            "PNPM_*",
            "BUN_*",
            "COREPACK_*",
            "DENO_DIR",
            "GOPROXY",
            "GOPATH",
            "GOMODCACHE",
            "CARGO_HOME",
            "PLAYWRIGHT_*",
            "PUPPETEER_*",
        ),
    ),
    Need(
        "find the chosen version of a language",
        (
            "NVM_DIR",
            "FNM_DIR",
            "FNM_MULTISHELL_PATH",
            "VOLTA_HOME",
            "PYENV_ROOT",
            "PYENV_VERSION",
            "RBENV_ROOT",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
            "ASDF_*",
            "MISE_*",
            "JAVA_HOME",
            "DOTNET_ROOT",
        ),
    ),
)
"""What is passed on unless the file says otherwise."""

_OURS = ("aggregator_", PREFIX)
"""What our own variables begin with: the token to our door is for clients, not for servers."""


class Environment:
    """The variables around us, and which of them a server is given."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = {
            name: value
            for name, value in variables.items()
            # A function of a shell is no value for a program.
            if not value.startswith("()") and not name.casefold().startswith(_OURS)
        }
        self._usual: dict[str, str] | None = None

    def inherited(self, wish: Wish) -> dict[str, str]:
        """Return the variables that a server gets whose configuration says this."""
        if wish is True:
            return dict(self._variables)
        if wish is False:
            return self._picked(lambda name: name in _NECESSARY)
        globs = tuple(glob.casefold() for glob in wish)
        return self._table() | self._picked(lambda name: _matches(name, globs))

    def _table(self) -> dict[str, str]:
        # Looked through once, as most servers have no wishes.
        if self._usual is None:
            found = self._picked(lambda name: name in _EXACT or name.startswith(_BEGINNINGS))
            self._usual = {
                name: value
                for name, value in found.items()
                if name.casefold() in _EXACT or not _looks_secret(name, value)
            }
        return self._usual

    def _picked(self, wants: Callable[[str], bool]) -> dict[str, str]:
        # Windows does not tell cases apart, npm neither, and proxies are written in both.
        found = self._variables.items()
        return {name: value for name, value in found if wants(name.casefold())}


def _looks_secret(name: str, value: str) -> bool:
    """Whether a variable may be a secret; an address with a password in it is one too."""
    if _SUSPECT.search(name) or names_secret(name) or _IN_QUERY.search(value):
        return True
    return without_secrets(value) != value


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _names(needs: tuple[Need, ...]) -> list[str]:
    return [name.casefold() for need in needs for name in need.names]


_SUSPECT = re.compile(
    "token|secret|passw|pwd|credential|apikey|private|cookie|_otp$", re.IGNORECASE
)
_IN_QUERY = re.compile(
    r"[?&][\w.-]{0,40}(?:token|key|secret|sig|signature|auth|passw)[\w.-]{0,40}=", re.IGNORECASE
)
_NECESSARY = frozenset(_names(NECESSITIES))
_EXACT = frozenset(name for name in _names(TABLE) if not name.endswith("*"))
_BEGINNINGS = tuple(name[:-1] for name in _names(TABLE) if name.endswith("*"))
