"""Messages on a pair of streams: framing, decoding, pipes."""
