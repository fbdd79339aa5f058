"""What comes back from a server, whoever has asked for it."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol


class Response(Protocol):
    """What comes back, unread: from a wire of ours, or from the HTTP client."""

    @property
    def status_code(self) -> int:
        """What has become of the request."""
        ...

    @property
    def is_success(self) -> bool:
        """Whether the request was taken."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """What is said of the body, and of the connection."""
        ...

    def aiter_raw(self) -> AsyncIterator[bytes]:
        """Give the body in pieces, as they come."""
        ...

    async def aclose(self) -> None:
        """Read no more of it."""
        ...
