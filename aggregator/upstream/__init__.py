"""What a client asks, answered from the catalog, in the wire form of its era."""

from aggregator.upstream.server import Upstream, make_server

__all__ = ["Upstream", "make_server"]
