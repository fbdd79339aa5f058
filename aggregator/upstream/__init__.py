"""What a client asks, answered from the catalog, in the wire form of its era."""

from aggregator.upstream.recollection import Recollection
from aggregator.upstream.server import Upstream, make_server

__all__ = ["Recollection", "Upstream", "make_server"]
