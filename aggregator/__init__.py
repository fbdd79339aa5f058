"""One MCP server that stands in front of all the others.

The rooms, from the outside in. Imports point down. Below the line are values and functions that
wait for nobody, but for `entry`, the process that reads what tools mean, and what waiting itself
is made of (signals, turns, the clock); files are touched there by what reads them or remembers.

    cli          argv, files, exit status; clients/: other programs' files
    app          puts the rooms together; hub/: one process for all clients of a person
    upstream     what faces clients: a request, answered from what is known now
    fleet        all servers at once, and what is known of them now
    downstream   what faces servers: one task each, its link, what it lists
    host         tool search on the request side of a model API: a library
    jsonrpc      messages on a pair of streams: framing, decoding, pipes
    records      what happens, and what is kept and shown of it: stats, audit, metrics, spans
    ─────────────────────────────────────────────────────────────
    toolsearch   the meta-tools: definition, arguments, answer; offers/: what is not a tool
    exposure     which tools one client sees, on which surface
    search       the index, its ranking, and what tools mean
    catalog      everything known about all servers now; lock/: what was agreed to
    config       servers.yaml as a value
    clients      what is known of each client, in one table
    errors       what a file or a call can fail for, as one tree
    memory       what is remembered between runs
    names        the names clients see, and the way back
    secrecy      what must not be shown or written down
    basics       one small concept each: JSON, files, eras, signals, effort, rates, glyphs
    entry        what is done before all of these are loaded, for `serve`
"""

__version__ = "0.1.0"
