// What is known of the aggregator now, and who wants to hear when that changes.

import { ask, Away, events, read, Refused } from "./mcp.js";
import { quoted } from "./words.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;
const SILENCE = 45000; // three times what the other side is silent for at the most
const LOOK_AGAIN = 5000;
const GATHER = 120;
const KEPT = 500;

export const known = {
  link: { state: "opening" },
  servers: null,
  notices: {},
  activity: [],
  missed: 0,
  showsArguments: false,
  config: "",
  readAt: 0,
};

const listeners = new Map();

export function on(topic, listener) {
  if (!listeners.has(topic)) listeners.set(topic, new Set());
  listeners.get(topic).add(listener);
}

function tell(topic) {
  for (const each of listeners.get(topic) ?? []) each();
}

/** Return a command as it is typed, wherever that is. */
export function line(...words) {
  return ["aggregator", ...words, ...(known.config ? ["--config", known.config] : [])].map(quoted).join(" ");
}

let tools = null;
let signature = "";

/** Return all tools; they are asked for again when servers have changed. */
export function allTools() {
  if (!tools) {
    tools = read("catalog://tools").then((found) => found.tools);
    tools.catch(() => { tools = null; });
  }
  return tools;
}

let wake = () => {};

/** Try again now, whatever the pause was. */
export function retry() {
  wake();
}

let latest = null;
let running = null;

/** Follow what happens for as long as the page is open. */
export async function follow() {
  let pause = FIRST_PAUSE;
  for (;;) {
    try {
      for await (const event of stream()) {
        pause = FIRST_PAUSE;
        hear(event);
      }
      throw new Away("the connection was closed");
    } catch (error) {
      if (error instanceof Refused) {
        setLink({ state: "locked" });
        await waiting(null);
        continue;
      }
      const jittered = pause * (0.75 + Math.random() / 2);
      setLink({ state: "away", reason: error.message, until: Date.now() + jittered });
      await waiting(jittered);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }
}

async function* stream() {
  running = new AbortController();
  let timer = 0;
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(() => running.abort(), SILENCE);
  };
  try {
    watch();
    const headers = latest ? { "Last-Event-ID": latest } : {};
    const response = await ask("/activity", { headers, signal: running.signal });
    if (!response.ok) throw new Away(`status ${response.status}`);
    setLink({ state: "here" });
    refresh();
    for await (const event of events(response)) {
      watch();
      yield event;
    }
  } finally {
    clearTimeout(timer);
    running.abort();
  }
}

function waiting(milliseconds) {
  return new Promise((resolve) => {
    wake = resolve;
    if (milliseconds !== null) setTimeout(resolve, milliseconds);
  });
}

function setLink(link) {
  const before = known.link.state;
  known.link = link;
  tell("link");
  if (link.state === "here" && before !== "here") {
    tools = null;
    tell("back");
  }
}

function hear(event) {
  if (event.type === "hello") {
    const { showsArguments, config } = JSON.parse(event.data);
    known.showsArguments = showsArguments;
    if (known.config !== config) {
      known.config = config;
      if (known.servers) tell("servers");
    }
  } else if (event.type === "missed") {
    known.missed += Number(event.data);
  } else if (event.data) {
    latest = event.id;
    take(JSON.parse(event.data));
    later("activity", () => tell("activity"));
  }
}

function take(fact) {
  if (fact.kind === "state" || fact.kind === "login") later("servers", refresh);
  if (fact.kind === "ended") {
    const begun = known.activity.findIndex((each) => each.kind === "began" && each.number === fact.number);
    if (begun >= 0) known.activity.splice(begun, 1);
  }
  known.activity.unshift(fact);
  known.activity.length = Math.min(known.activity.length, KEPT);
}

const due = new Map();

function later(what, action) {
  if (due.has(what)) return;
  due.set(what, setTimeout(() => {
    due.delete(what);
    action();
  }, GATHER));
}

/** Read again what there is to know of the servers. */
export async function refresh() {
  let found;
  try {
    found = await read("catalog://servers");
  } catch (error) {
    if (known.servers === null && known.link.state === "here") {
      known.notices = { failure: error.message };
      tell("servers");
    }
    return;
  }
  known.readAt = Date.now();
  const { servers, ...notices } = found;
  known.servers = servers;
  known.notices = notices;
  const now = JSON.stringify(servers.map((each) => [each.name, each.state, each.tools, each.tokens, each.drift]));
  if (now !== signature) {
    signature = now;
    tools = null;
    tell("tools");
  }
  tell("servers");
}

setInterval(() => {
  if (known.link.state === "here" && !document.hidden) refresh();
}, LOOK_AGAIN);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && known.link.state === "away") retry();
  else if (!document.hidden && known.link.state === "here") refresh();
});
