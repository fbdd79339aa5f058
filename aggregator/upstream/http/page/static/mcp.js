// A client of the aggregator's own `/mcp`, in the era that it serves.

const MODERN = "2026-07-28";
const HANDSHAKE = "2025-11-25";
const UNSUPPORTED = -32022;
const INFO = { name: "aggregator-page", version: "1" };
const CLOSED = new Set([404, 410]);

export class Refused extends Error {}
/** Nobody answers, or not now. */
export class Away extends Error {}
/** An error in the place of an answer. */
export class Answered extends Error {
  constructor(error) {
    super(error.message || "no reason given");
    this.code = error.code;
    this.data = error.data;
  }
}

let token = null;
let session = null;
let isModern = true;
let last = 0;

export function useToken(value) {
  token = value || null;
  session = null;
}

/** Return the token that a code stands for, once; nothing if it is too late for it. */
export async function exchange(code) {
  try {
    const response = await ask("/exchange", { method: "POST", headers: { "Aggregator-Code": code } });
    return response.ok ? (await response.json()).token : null;
  } catch {
    return null;
  }
}

/** Ask for anything of this host that is not the protocol. */
export async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Away("nobody answers");
  }
  if (response.status === 401) throw new Refused("the token is missing, or is not the right one");
  if (response.status >= 500) throw new Away((await response.text()).trim() || `status ${response.status}`);
  return response;
}

/** Send a request and return its result. */
export async function request(method, params = {}, options = {}) {
  if (!isModern) return await inSession(method, params, options);
  try {
    return await send(method, modern(params), { ...naming(method, params), ...options.headers }, MODERN, options.signal);
  } catch (error) {
    if (!(error instanceof Answered && error.code === UNSUPPORTED)) throw error;
    // A list that grows with each search is legal in the other era alone.
    isModern = false;
    return await inSession(method, params, options);
  }
}

export async function call(name, args, { meta, headers, signal } = {}) {
  return await request("tools/call", { name, arguments: args, ...(meta ? { _meta: meta } : {}) }, { headers, signal });
}

/** Read one of the aggregator's own resources. */
export async function read(uri) {
  return JSON.parse((await request("resources/read", { uri })).contents[0].text);
}

function modern(params) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return { ...params, _meta: { ...params._meta, ...meta } };
}

function naming(method, params) {
  const name = params.name ?? params.uri;
  return { "Mcp-Method": method, ...(name === undefined ? {} : { "Mcp-Name": encoded(name) }) };
}

/** Return what headers of 2026-07-28 repeat of a tool's arguments, where its schema asks for it. */
export function mirrored(schema, args) {
  const headers = {};
  for (const [name, each] of Object.entries(schema?.properties ?? {})) {
    const header = each?.["x-mcp-header"];
    const value = args[name];
    if (typeof header === "string" && value !== undefined && value !== null) {
      headers[`Mcp-Param-${header}`] = encoded(String(value));
    }
  }
  return headers;
}

function encoded(text) {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?base64?");
  if (isPlain) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

async function inSession(method, params, options) {
  session ??= open();
  try {
    await session;
  } catch (error) {
    session = null;
    throw error;
  }
  try {
    return await send(method, params, {}, HANDSHAKE, options.signal);
  } catch (error) {
    if (!(error instanceof Away && error.isClosed)) throw error;
    session = open();
    await session;
    return await send(method, params, {}, HANDSHAKE, options.signal);
  }
}

let sessionId = null;

async function open() {
  sessionId = null;
  const hello = { protocolVersion: HANDSHAKE, capabilities: {}, clientInfo: INFO };
  await send("initialize", hello, {}, HANDSHAKE);
  await post({ jsonrpc: "2.0", method: "notifications/initialized" }, {}, HANDSHAKE);
}

async function send(method, params, headers, version, signal) {
  const id = ++last;
  const response = await post({ jsonrpc: "2.0", id, method, params }, headers, version, signal);
  const message = await answer(response, id);
  if (message.error) throw new Answered(message.error);
  return message.result;
}

async function post(message, headers, version, signal) {
  const response = await ask("/mcp", {
    method: "POST",
    signal,
    body: JSON.stringify(message),
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": version,
      ...(sessionId && version === HANDSHAKE ? { "Mcp-Session-Id": sessionId } : {}),
      ...headers,
    },
  });
  sessionId = response.headers.get("mcp-session-id") ?? sessionId;
  if (version === HANDSHAKE && CLOSED.has(response.status)) {
    throw Object.assign(new Away("the session has ended"), { isClosed: true });
  }
  return response;
}

async function answer(response, id) {
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("text/event-stream")) {
    const text = await response.text();
    try {
      return JSON.parse(text);
    } catch {
      throw new Away(`status ${response.status}: ${text.slice(0, 200)}`);
    }
  }
  for await (const event of events(response)) {
    const message = event.data ? JSON.parse(event.data) : {};
    if (message.id === id) return message;
  }
  throw new Away("the answer ended too early");
}

/** Yield the events of a stream as they come. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      let piece;
      try {
        piece = await reader.read();
      } catch {
        throw new Away("the connection was lost");
      }
      if (piece.done) return;
      const blocks = (rest + piece.value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      yield* blocks.map(event);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function event(block) {
  const found = { type: "message", data: "", id: null };
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (name === "data") found.data += (found.data ? "\n" : "") + value;
    else if (name === "event") found.type = value;
    else if (name === "id") found.id = value;
  }
  return found;
}
