// How servers are: which word and colour say so, and which of them need a person first.

import { counted, number } from "./words.js";

export const TONES = { ready: "good", idle: "good", pending: "waiting", "needs login": "login", failed: "bad" };

/** Whether a server was tried and is not there: given up, or about to be tried again. */
export const isFailing = (server) => server.state === "failed" || (server.state === "pending" && Boolean(server.reason));

export const toneOf = (server) => (isFailing(server) ? "bad" : TONES[server.state] ?? "plain");

export function wordOf(server) {
  if (server.state !== "pending") return server.state;
  return isFailing(server) ? "failing, retrying" : server.phase ?? "pending";
}

/** Those that fail first, then those that want a login, then all others as they are configured. */
export function inOrder(servers) {
  const rank = (each) => (isFailing(each) ? 0 : each.state === "needs login" ? 1 : 2);
  return [...servers].sort((a, b) => rank(a) - rank(b));
}

/** Say how many servers are how, in the order of how well they are. */
export function census(servers) {
  const groups = new Map([["ready", 0], ["idle", 0], ["starting", 0], ["needs login", 0], ["failing", 0]]);
  for (const each of servers) {
    const group = isFailing(each) ? "failing" : each.state === "pending" ? "starting" : each.state;
    groups.set(group, (groups.get(group) ?? 0) + 1);
  }
  if (groups.get("ready") === servers.length) return [`${counted(servers.length, "server")} ready`];
  return [...groups].filter(([, count]) => count > 0).map(([group, count]) => `${number(count)} ${group}`);
}
