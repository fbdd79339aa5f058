"""The answer to a search, in the characters there are for it.

Everything a server wrote stands behind a mark, on the same line, so that it can be told from our
own words.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterator
from itertools import chain

from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject
from aggregator.catalog import Catalog, Changes, Pending, ToolEntry
from aggregator.names import ServerName
from aggregator.search.query import Keywords, Query
from aggregator.search.repair import nearest
from aggregator.toolsearch.arguments import SearchRequest
from aggregator.toolsearch.concern import asked_of, servers_named, unknown_servers, unready
from aggregator.toolsearch.facts import facts
from aggregator.toolsearch.find import Found, Missing, Result
from aggregator.toolsearch.offer import MAX_WAIT
from aggregator.toolsearch.page import lay_out
from aggregator.toolsearch.status import (
    MAX_ADVICE,
    MAX_REASON,
    Unready,
    failed,
    menu,
    overview,
    pending,
    problem,
)
from aggregator.toolsearch.view import View
from aggregator.toolsearch.wording import (
    FRAME,
    counted,
    fitting,
    in_clauses,
    listed,
    one_line,
    quoted,
)

MAX_LIST = 400
"""Characters of a list of names on one line."""
MAX_INSTRUCTIONS = 600
"""Characters of a server's own instructions; `catalog://servers` has them whole."""
MAX_REASONS = 5
"""Servers that are not connected of which it is said why."""
MAX_BRIEFLY = 3
"""The same, of those that only a person can mend, where something else was found."""
MIN_WAIT = 10.0
"""Seconds of `wait` to propose first."""
HEAD_SHARE = 0.3
TAIL_SHARE = 0.3
BESIDE_SHARE = 0.3
"""The parts of an answer that other things than matches may take beside them."""


@frozen
class Answer:
    """A search's answer, for the model and for programs."""

    text: str
    meta: JsonObject
    """For `_meta["aggregator/search"]`."""
    matches: tuple[ToolEntry, ...]
    shown: tuple[ToolEntry, ...]
    """The matches whose definition is in the text."""


def tell(found: Found, view: View) -> Answer:
    """Tell what a search found, with each tool called as the view says."""
    matches = found.matches
    wide = any(each.overview for each in found.results)
    offers = [offer.entry for offer in found.offers]
    frame = [FRAME] if matches or offers or (wide and _has_reasons(view)) else []
    head_room = int(view.max_chars * HEAD_SHARE) - len("\n".join(frame))
    head = "\n".join([*fitting(list(_head(found, view)), head_room), *frame])
    tail_room = int(view.max_chars * TAIL_SHARE) if head else view.max_chars
    tail = "\n".join(fitting(list(_tail(found, view)), tail_room))
    others = _others(view)
    room = view.max_chars - len(head) - len(tail) - len(others) - 8
    if found.request.names:
        entries = view.catalog.entries.values() if wide else matches
        named = (*entries, *(view.shown.every_told() if wide else offers))
        lines = "\n".join(fitting(menu(named, room), room))
        text = _joined(part for part in (head, lines, tail) if part)
        return Answer(text[: view.max_chars], facts(found, view), matches, ())
    body = overview(view, room // 2 if matches or offers else room) if wide else ""
    room -= len(body)
    beside = lay_out(offers, view.way, int(room * BESIDE_SHARE) if matches else room)
    room -= sum(len(text) + 2 for text in beside.texts.values())
    page = lay_out(matches, view.way, room, found.leading, found.asked)
    is_whole = len(page.defined) + len(beside.defined) == len(matches) + len(offers)
    told = [page.texts[entry.name] for entry in matches]
    told += [beside.texts[entry.name] for entry in offers]
    parts = (head, body, *told, "" if is_whole else others, tail)
    text = _joined(part for part in parts if part)
    return Answer(text[: view.max_chars], facts(found, view), matches, page.defined)


def _others(view: View) -> str:
    """Say how to use a tool that is told on one line."""
    asking = f'ask {view.search} for "select:<name>".'
    if not view.relaying:
        return f"For the definition of a tool that has none above, {asking}"
    return (
        f"A tool on one line can be called as it is with {view.names.call}; "
        f"for its definition, {asking}"
    )


def _joined(parts: Iterator[str]) -> str:
    """Join parts with an empty line between them, but not between one-line entries."""
    text, last = "", ""
    for part in parts:
        near = part.startswith("- ") and last.startswith("- ")
        text += ("\n" if near else "\n\n") * bool(last) + part
        last = part
    return text


def _head(found: Found, view: View) -> Iterator[str]:
    """Say what was asked and how much was found."""
    for result in found.results:
        if result.overview:
            tools = counted(len(view.catalog.entries), "tool")
            there = [counted(len(view.catalog.servers), "server"), tools, *view.shown.counts()]
            yield f"{', '.join(there)}. {_OVERVIEW_HINT}"
            yield from problem(view)
        elif result.entries:
            yield _found_line(result, found.request)
            yield from _introduction(result, view)
        yield from _beside_line(result, found.request)
    known = [entry.name for entry in found.matches if entry.name in view.visible]
    if known:
        yield f"Already in your tool list: {listed(known, MAX_LIST)}."
    if others := dict.fromkeys(chain.from_iterable(found.copies.values())):
        yield f"The same tools of other servers: {listed(others, MAX_LIST)}."


def _beside_line(result: Result, request: SearchRequest) -> Iterator[str]:
    """Say what was found beside tools, or instead of them."""
    numbers = Counter(offer.kind for offer in result.offers)
    told = " and ".join(counted(number, kind) for kind, number in numbers.items())
    if result.offers and result.entries:
        yield f"Beside them {told}: not tools, but called in the same way."
    elif result.offers:
        more = f' There are more: ask with "offset": {request.offset + max(numbers.values())}.'
        yield f"{told} for {quoted(result.query.text)}." + (more if result.more else "")


def _introduction(result: Result, view: View) -> Iterator[str]:
    """Give the instructions of the one server whose tools were asked for, in its own words."""
    named = servers_named(result.query, view.catalog)
    state = view.catalog.servers[named[0]] if len(named) == 1 else None
    known = state.known if state and "server:" in result.query.text else None
    if known is None or not known.instructions:
        return
    is_drifted = (named[0], "") in view.catalog.drifted
    if known.is_muted:
        yield f"What {named[0]} says of how it is used is withheld until your user approves it."
    else:
        why = "nobody has approved yet" if known.is_new else "has changed since it was approved"
        since = f", which {why}" if is_drifted else ""
        words = one_line(known.told, MAX_INSTRUCTIONS)
        yield f"{named[0]} says how it is used{since}:\n| {words}"


_WAITING = 'To include {them}, ask with "wait": {seconds:g} instead of asking the same again.'
_STARTING = 'Some are not connected yet: ask with "wait": {seconds:g} to wait for them.'
_OVERVIEW_HINT = 'Search by what you need, or list the tools of one with "server:<name>".'


def _found_line(result: Result, request: SearchRequest) -> str:
    names = [entry.name for entry in result.entries]
    several = f": {listed(names, MAX_LIST)}" if len(request.queries) > 1 else ""
    order = ", best first" if result.ranked and len(names) > 1 else ""
    more = f' There are more: ask with "offset": {request.offset + len(names)}.'
    found = f"{counted(len(names), 'tool')} for {quoted(result.query.text)}{order}{several}."
    return found + (more if result.more else "")


def _tail(found: Found, view: View) -> Iterator[str]:
    """Say what was not found, and what else is worth knowing."""
    wide = any(each.overview for each in found.results)
    matter = asked_of(found.request, view.catalog)
    waiting = [] if wide else list(_waiting_line(found, view, matter))
    # Where nothing was found, that not all was searched is the first thing to know.
    yield from () if found.matches else waiting
    if found.fell_short:
        yield "Close names are told only for the first that mean no tool: ask for fewer at a time."
    for result in found.results:
        yield from (_missing_line(each, view) for each in result.missing)
        yield from [result.remark] if result.remark else []
        if not (
            result.entries or result.offers or result.missing or result.overview or result.remark
        ):
            yield from _nothing(result, found.request, view)
    yield from waiting if found.matches else ()
    if not wide:
        yield from _lost_line(found, view, matter)
        yield from _login_lines(found, view, matter)
        yield from _withheld_lines(found, view, matter)
    elif any(each.is_starting for each in pending(view)):
        yield _STARTING.format(seconds=MIN_WAIT)
    if view.changes is not None:
        yield from _change_lines(view.changes, view.catalog)
    yield from found.request.notes
    if not wide:
        yield from _reasons(found, view, matter)


def _missing_line(missing: Missing, view: View) -> str:
    if missing.withheld is not None:
        return f"{view.withheld(missing.withheld)}."
    names = listed(missing.nearest, MAX_LIST)
    if missing.ambiguous:
        return f"{quoted(missing.name)} could be any of {names}."
    server = unready(missing.name, view)
    verb = "is" if len(missing.nearest) == 1 else "are"
    closest = f" The closest {verb} {names}." if names else ""
    if server is not None:
        return f"There is no {quoted(missing.name)} now: {server} is not connected.{closest}"
    return f"There is no tool {quoted(missing.name)}.{closest}"


def _nothing(result: Result, request: SearchRequest, view: View) -> Iterator[str]:
    if request.offset and result.total != 0:
        yield _no_more(result, request.offset)
        return
    if not view.catalog.servers:
        yield "No servers are configured: the user can name some in servers.yaml."
        return
    servers = listed(view.catalog.servers, MAX_LIST)
    for name in unknown_servers(result.query, view.catalog):
        likely = nearest(name, view.catalog.servers, 1)
        meant = f" Did you mean {quoted(f'server:{likely[0]}')}?" if likely else ""
        yield f"There is no server {quoted(name)}.{meant} There are: {servers}."
        return
    named = servers_named(result.query, view.catalog)
    states = [view.catalog.servers[each] for each in named or view.catalog.servers]
    if not any(state.known for state in states):
        may_come = any(isinstance(state, Pending) for state in states)
        yet = " yet" if may_come else ""
        why = "its server is not connected" if named else f"no server is connected{yet}"
        yield f"Nothing was searched for {quoted(result.query.text)}: {why}."
        return
    yield _no_match(result.query, view)
    if result.closest:
        yield f"Closest names: {listed(result.closest, MAX_LIST)}."
    # What is on its way is likelier to help than another wording.
    awaited = (state for state in states if isinstance(state, Pending) and not state.known)
    if not any(state.phase == "starting" for state in awaited):
        # Most tools are described in it.
        era_choice = "" if result.query.text.isascii() else ", also in English"
        instead = f'"server:<name>" for all tools of one of: {servers}'
        yield f"Try other or fewer words{era_choice}, or {instead}."


def _no_more(result: Result, offset: int) -> str:
    """Say that there is nothing after so many matches, or that there are not so many."""
    asked = f"No more tools for {quoted(result.query.text)}"
    if result.total is None or result.total >= offset:
        return f"{asked} after the first {offset:,}."
    verb = "is" if result.total == 1 else "are"
    return f"{asked}: there {verb} only {result.total:,}."


def _no_match(query: Query, view: View) -> str:
    """Say that nothing matches, among how much."""
    kinds = query.kinds if isinstance(query, Keywords) else ()
    if kinds and "tool" not in kinds:
        return f"No {' or '.join(kinds)} matches {quoted(query.text)}."
    total = counted(len(view.catalog.entries), "tool")
    return f"No tool matches {quoted(query.text)} among {total}."


def _waiting_line(found: Found, view: View, matter: Collection[ServerName]) -> Iterator[str]:
    """Name the servers that may be the answer and may still come."""
    absent = [each for each in pending(view) if each.name in matter]
    if waiting := [str(each) for each in absent if each.is_starting]:
        seconds = min(MAX_WAIT, max(MIN_WAIT, found.request.wait * 2))
        them = "it" if len(waiting) == 1 else "them"
        advice = _WAITING.format(them=them, seconds=seconds)
        yield f"Not searched yet: {listed(waiting, MAX_LIST)}. {advice}"
    # A search waits for a start that is under way, and for no other.
    if lost := [str(each) for each in absent if not each.is_starting]:
        yield f"Not searched, and waiting does not help: {listed(lost, MAX_LIST)}."


def _lost_line(found: Found, view: View, matter: Collection[ServerName]) -> Iterator[str]:
    """Name the servers that were given up on, with more where they may be the answer."""
    if lost := [each for each in failed(view) if each.name in matter]:
        names = (each.name if found.matches else str(each) for each in lost)
        yield f"Not connected, not searched: {listed(names, MAX_LIST)}."


def _login_lines(found: Found, view: View, matter: Collection[ServerName]) -> Iterator[str]:
    """Say which servers only need their user, with more where they may be the answer."""
    wanting = [each for each in failed(view) if each.login and each.name in matter]
    if found.matches and len(matter) == len(view.catalog.servers):
        yield from map(_brief_login, wanting[:MAX_BRIEFLY])
        yield from _and_more(len(wanting) - MAX_BRIEFLY, "need their user to log in")
        return
    ours = {each.server: each for each in view.catalog.logins}
    for each in wanting[:MAX_REASONS]:
        asking = f"{_asking(ours[each.name], view)}, or ask" if each.name in ours else "Ask"
        yield (
            f"{each.name} needs its user to log in, so its tools are not here. "
            f"{asking} them to run: {each.login}"
        )
    yield from _and_more(len(wanting) - MAX_REASONS, "need their user to log in")


def _brief_login(server: Unready) -> str:
    """Say that a server only needs its user, with the command unless it is long: none is cut."""
    login = server.login or ""
    command = f": {login}" if len(login) <= MAX_REASON else "."
    return f"{server.name} needs its user to log in{command}"


def _withheld_lines(found: Found, view: View, matter: Collection[ServerName]) -> Iterator[str]:
    """Say which servers have tools that nobody has approved, where they may be the answer."""
    if found.matches and len(matter) == len(view.catalog.servers):
        return
    hidden = Counter(each.server for each in view.catalog.withheld.values())
    told = [name for name in hidden if name in matter]
    for name in told[:MAX_REASONS]:
        number = counted(hidden[name], "tool")
        yield (
            f"{number} of {name} withheld, not being as approved: only your user can allow that, "
            f"with `{view.approving(name)}`."
        )
    yield from _and_more(len(told) - MAX_REASONS, "have tools that are withheld")


def _asking(entry: ToolEntry, view: View) -> str:
    """Say how a model has a person log in."""
    way = view.way(entry)
    if way.through:
        return f"Call {entry.name} with {way.through} to have them do so now"
    found = "" if way.listed else f', once you have searched for "select:{entry.name}",'
    return f"Call {entry.name}{found} to have them do so now"


def _reasons(found: Found, view: View, matter: Collection[ServerName]) -> Iterator[str]:
    """Say why servers are not connected, with more where they may be the answer."""
    lost = [each for each in failed(view) if not each.login and each.name in matter]
    coming = [each for each in pending(view) if each.name in matter]
    # What was found is what was asked for, mostly; and it is said in each answer.
    most, limit = (MAX_BRIEFLY, MAX_REASON) if found.matches else (MAX_REASONS, MAX_ADVICE)
    # Those that are lost come first: a person can mend them, while others are tried again.
    known = [each for each in (*lost, *coming) if each.reason]
    told = [each for each in (*lost[:most], *coming) if each.reason][:MAX_REASONS]
    if told and not found.matches:
        yield FRAME
    for each in told:
        yield f"{each.name} | {in_clauses(each.reason or '', limit)}"
    yield from _and_more(
        len(known) - len(told), "are not connected: your user can run `aggregator check`"
    )


def _and_more(number: int, what: str) -> Iterator[str]:
    """Say that something holds for more servers than were told."""
    if number > 0:
        yield f"And {number:,} more {what}."


def _has_reasons(view: View) -> bool:
    return any(each.reason and not each.login for each in (*pending(view), *failed(view)))


def _change_lines(changes: Changes, catalog: Catalog) -> Iterator[str]:
    """Say what came and went, the servers before the tools."""
    # A server that has come is told by its name, and not by all that it has.
    come = frozenset(changes.servers_added)
    known = catalog.entries
    added = [each for each in changes.tools_added if not _is_of(known.get(each), come)]
    told = {
        "Servers connected": changes.servers_added,
        "Servers lost": changes.servers_removed,
        "New tools": added,
        "Tools gone": changes.tools_removed,
    }
    for what, names in told.items():
        if names:
            yield f"{what} since your last search: {listed(names, MAX_LIST)}."


def _is_of(entry: ToolEntry | None, servers: Container[ServerName]) -> bool:
    return entry is not None and entry.server in servers
