"""Tool search on the request side of a model API, for those who write their own agent.

    box           the tools behind an aggregator: a child, one that runs, an address
    conversation  the next request, and the answer to a response, awaited or not
    connection    asks an aggregator
    ─────────────────────────────────────────────────────────────
    talk          one conversation without any waiting
    messages      the Anthropic Messages API
    responses     the OpenAI Responses API
    staging       what the requests of one conversation have in common
    weighing      whether deferring is worth it
    announcing    what a model is told of the tools it could search for
    options       what an author may choose
    gates         what a model and the way to it can do
    deferral      which tools are deferred
    mine          a search over the author's own tools
    seen_tools    what is defined from the beginning of a conversation
    results       what a search or a call gave
    definitions   definitions as the APIs accept them
    uses          what a model asks for
    speech        what a model is told of found tools in words
    plain         messages as plain JSON
    pool          every tool there is

Below the line everything is a function of values, and needs nothing but Python.
"""

from aggregator.host.conversation import AsyncConversation, Conversation
from aggregator.host.gates import Carry, carry_for_messages, carry_for_responses
from aggregator.host.messages.staging import MessagesRequest
from aggregator.host.options import Choices
from aggregator.host.responses.staging import ResponsesRequest
from aggregator.host.toolbox import AsyncToolbox, Toolbox

__all__ = [
    "AsyncConversation",
    "AsyncToolbox",
    "Carry",
    "Choices",
    "Conversation",
    "MessagesRequest",
    "ResponsesRequest",
    "Toolbox",
    "carry_for_messages",
    "carry_for_responses",
]
