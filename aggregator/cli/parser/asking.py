"""How servers are looked at, searched, called and examined."""

import argparse

from aggregator.cli.parser.options import (
    Command,
    add_config,
    add_door,
    add_json,
    add_profile,
    add_wait,
    number,
    passed_over,
    seconds,
)


def _inspect(parser: argparse.ArgumentParser) -> None:
    add_config(parser, example=True)
    parser.add_argument(
        "subject", nargs="?", metavar="SERVER or TOOL", help="show this one in full"
    )
    add_door(parser)
    add_profile(parser)
    parser.add_argument(
        "--live", action="store_true", help="start all servers and ask them what they offer"
    )
    parser.add_argument(
        "--watch", action="store_true", help="keep the output up to date until interrupted"
    )
    add_json(parser)
    add_wait(parser)


def _search(parser: argparse.ArgumentParser) -> None:
    add_config(parser, example=True)
    add_door(parser)
    add_profile(parser)
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what a model would ask for")
    parser.add_argument(
        "--max-results",
        type=number,
        metavar="N",
        help="how many tools to find (default: `maxResults` of the file)",
    )
    parser.add_argument(
        "--offset", type=passed_over, metavar="N", help="how many of the best tools to skip"
    )
    parser.add_argument("--explain", action="store_true", help="say how each tool was found")
    add_json(parser)
    # The answer is what a model would get, who is not asked.
    add_wait(parser, "; any search waits up to 3 s")


def _call(parser: argparse.ArgumentParser) -> None:
    add_config(parser, example=True)
    add_door(parser)
    add_profile(parser)
    parser.add_argument("tool", metavar="TOOL", help="its name, as `inspect` shows it")
    parser.add_argument(
        "arguments",
        nargs="*",
        # Without a default, argparse counts even what may be left out among what is required.
        default=list[str](),
        metavar="key=value",
        help="an argument, converted to the type of the parameter; key:=JSON for a JSON value",
    )
    parser.add_argument("--json", metavar="OBJECT", help="all arguments as JSON; - reads stdin")
    parser.add_argument("--raw", action="store_true", help="print the whole result as JSON")
    add_wait(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    add_config(parser, example=True)
    add_door(parser)
    # Without a default, argparse counts even what may be left out among what is required.
    parser.add_argument(
        "servers", nargs="*", default=list[str](), metavar="SERVER", help="default: all of them"
    )
    parser.add_argument("--strict", action="store_true", help="count warnings as errors")
    parser.add_argument(
        "--searches",
        nargs="?",
        const="",
        metavar="FILE",
        help="try the searches in FILE instead (default: searches.yaml beside the configuration)",
    )
    parser.add_argument(
        "--lock",
        action="store_true",
        help="with --searches: search what is in servers.lock; start no server",
    )
    add_json(parser)
    parser.add_argument(
        "--wait",
        type=seconds,
        metavar="SECONDS",
        help="how long to wait for servers (default: as long as `connectTimeout` gives them)",
    )


def _doctor(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("--client", metavar="NAME", help="show how this client would be served")
    add_json(parser)
    add_wait(parser)


INSPECT = Command(
    "show what is behind the aggregator",
    """
aggregator inspect                        what every server offers, and what a client would see
aggregator inspect --example              the same for the five example servers
aggregator inspect notes                  one server and its tools
aggregator inspect notes__create_note     one tool in full
aggregator inspect --watch                keep it up to date
aggregator inspect --url http://127.0.0.1:8080/mcp
aggregator inspect --json | jq '.servers[] | select(.state != "ready")'
""",
    _inspect,
)

SEARCH = Command(
    "search as a model would, and print the answer it would read",
    """
aggregator search create a note            the best tools, with how to call them
aggregator search +github "open issue"     only tools that have the word github
aggregator search select:notes__search_notes
aggregator search --explain create a note  which words matched, and with what score
""",
    _search,
)

CALL = Command(
    "call a tool and print its result",
    """
aggregator call notes__create_note title=Milk body="Two litres"
aggregator call notes__search_notes query=milk limit=3
aggregator call notes__create_note tags=shopping tags=home title=Milk
aggregator call notes__create_note '{"title": "Milk", "tags": ["home"]}'
aggregator call notes__list_notes --url http://127.0.0.1:8080/mcp
aggregator call skill:pdf file=forms.md   reads a skill; prompt:NAME fills in a prompt

It ends with status 3 if the tool reports that it failed, and with 4 if its server is not ready.
""",
    _call,
)

CHECK = Command(
    "check servers.yaml and start each server once",
    """
aggregator check                          errors, warnings, and how long servers take to start
aggregator check notes files              only these two
aggregator check --strict                 for continuous integration: warnings fail too
aggregator check --searches               does each search still find what it should?
aggregator check --searches --lock        the same, without starting any server
aggregator check --json | jq '.findings[]'
""",
    _check,
)

DOCTOR = Command(
    "show on one page what helps to find a fault: versions, failing servers, clients",
    """
aggregator doctor                         what to look at first, and what to send with a report
aggregator doctor --client claude-code    which surface it would get, and why
aggregator doctor --json
""",
    _doctor,
)
