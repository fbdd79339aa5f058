"""One MCP server that stands in front of all the others.

The rooms, from the outside in. Imports point down.

    cli          argv, files, exit status
    app          puts the rooms together: the order of life
    reloading    go over to what servers.yaml says now
    http         clients and servers over HTTP
    upstream     what a client asks, answered from the catalog
    passage      what passes between a client and a server besides tools
    announce     "the list changed", in either era, coalesced
    fleet        all servers at once, and the current catalog
    indexing     tools read into the index a few at a time, then shown
    downstream   one server, one task: connect, list, watch, redial
    inventory    every page of what one server lists
    asking       what a server may ask of the client behind a call
    subscribing  which resources a server is to tell of
    loss         how a connection came to its end, in words
    connect      a link to one server, in the era it speaks
    exchange     requests and answers on one pair of streams
    listening    a modern server's stream of changes
    wire         a transport, and what the server behind it says of itself
    inflight     requests under way on one link, and whom they are for
    watching     tell when a file changes
    stdio        child processes, their pipes, and the watchdog
    semantic     what tools mean: an extra, in a process of its own
    ─────────────────────────────────────────────────────────────
    inspection   the catalog as documents
    exposure     which tools one client sees, on which surface
    session      what one client session has loaded, seen and been told
    toolsearch   the meta-tools: definition, arguments, answer
    search       the index and its ranking
    intake       what of a server's listing is accepted
    clients      what is known of each client
    eras         which servers speak the older era
    supervision  when a server that failed is tried again
    catalog      everything known about all servers now
    config       servers.yaml as a value
    memory       what is remembered between runs
    names        the names clients see, and the way back
    secrecy      what must not be shown or written down
    errors       the tree
    garbage      when Python looks for it

Below the line nothing does I/O, but for reading the file and remembering: values and functions.
"""

__version__ = "0.1.0"
