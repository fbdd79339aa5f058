"""One MCP server that stands in front of all the others.

The rooms, from the outside in. Imports point down, and nothing below the line does I/O, but for
reading the file and remembering: values and functions.

    cli          argv, files, exit status; clients/: other programs' files
    hub          one process for all clients of a person
    app          puts the rooms together: the order of life
    upstream     what faces clients: a request, answered from what is known now
    fleet        all servers at once, and what is known of them now
    downstream   what faces servers: one task each, its link, what it lists
    host         tool search on the request side of a model API: a library
    jsonrpc      messages on a pair of streams: framing, decoding, pipes
    ─────────────────────────────────────────────────────────────
    inspection   the catalog as documents
    records      what is kept of what happens: stats, audit, metrics, spans
    toolsearch   the meta-tools: definition, arguments, answer
    events       what happens, told to whoever listens
    exposure     which tools one client sees, on which surface
    search       the index, its ranking, and what tools mean
    offers       what a search finds beside tools; skills: those on this machine
    catalog      everything known about all servers now
    config       servers.yaml as a value
    lock         what servers were last known to offer, and how they differ from it
    memory       what is remembered between runs
    clients      what is known of each client, in one table
    names        the names clients see, and the way back
    secrecy      what must not be shown or written down
    errors       the tree
    descriptors  how many files may be open, here and in children
    files        files that are replaced whole
    eras         the two eras of the protocol
    json         JSON values as they came
    rate         so many in so long, and no more
    effort       how much work one answer may cost
    signals      tell whoever waits to look again
    turns        long work, with others in between
    garbage      when Python looks for it, and memory is given back
    glyphs       what of a text an eye can see
    entry        what is done before all of these are loaded, for `serve`
"""

__version__ = "0.1.0"
