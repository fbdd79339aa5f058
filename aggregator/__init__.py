"""One MCP server that stands in front of all the others.

The rooms, from the outside in. Imports point down.

    cli          argv, files, exit status; clients/: other programs' files
    app          puts the rooms together: the order of life
    upstream     what faces clients: a request, answered from what is known now
    fleet        all servers at once, and what is known of them now
    downstream   what faces servers: one task each, its link, what it lists
    jsonrpc      messages on a pair of streams: framing, decoding, pipes
    ─────────────────────────────────────────────────────────────
    inspection   the catalog as documents
    toolsearch   the meta-tools: definition, arguments, answer
    exposure     which tools one client sees, on which surface
    search       the index, its ranking, and what tools mean
    catalog      everything known about all servers now
    config       servers.yaml as a value
    memory       what is remembered between runs
    clients      what is known of each client, in one table
    names        the names clients see, and the way back
    secrecy      what must not be shown or written down
    errors       the tree
    files        files that are replaced whole
    eras         the two eras of the protocol
    json         JSON values as they came
    rate         so many in so long, and no more
    signals      tell whoever waits to look again
    garbage      when Python looks for it

Below the line nothing does I/O, but for reading the file and remembering: values and functions.
"""

__version__ = "0.1.0"
