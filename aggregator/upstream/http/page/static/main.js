// The page: its tabs, its keys, its colours, and how it comes by the token.

import { fill, h } from "./dom.js";
import { exchange, useToken } from "./mcp.js";
import { follow, known, on, retry } from "./store.js";
import { askForToken, showShortcuts } from "./dialogs.js";
import { census } from "./states.js";
import { counted, tokens } from "./words.js";
import { makeServers } from "./views/servers.js";
import { makeTools } from "./views/tools.js";
import { makeSearch } from "./views/search.js";
import { makeTry } from "./views/try.js";
import { makeActivity } from "./views/activity.js";
import { makeSaved } from "./views/saved.js";

const STORED = "aggregator-token";
const TABS = [
  ["servers", "Servers", makeServers],
  ["tools", "Tools", makeTools],
  ["search", "Search", makeSearch],
  ["try", "Try", makeTry],
  ["activity", "Activity", makeActivity],
  ["saved", "Saved", makeSaved],
];
const SCHEMES = ["auto", "light", "dark"];

const find = (id) => document.getElementById(id);
const views = new Map();
let current = null;

await takeToken();
setScheme(localStorage.getItem("aggregator-scheme") ?? "auto");
buildTabs();
find("theme").addEventListener("click", nextScheme);
find("help").addEventListener("click", showShortcuts);
document.addEventListener("keydown", pressed);
addEventListener("hashchange", route);
on("link", showLink);
on("servers", showSummary);
route();
follow();

/** Take the token out of the address, where it would stay in the history, or have it for a code. */
async function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("code");
  if (code || given.has("token")) history.replaceState(null, "", "/");
  const token = code ? await exchange(code) : given.get("token");
  if (token) sessionStorage.setItem(STORED, token);
  useToken(sessionStorage.getItem(STORED));
}

function buildTabs() {
  const go = (id) => location.assign(`#${id}`);
  fill(find("view"));
  TABS.forEach(([id, title, make], at) => {
    const tab = h("button", {
      type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`,
      "aria-selected": "false", tabindex: "-1", onclick: () => go(id), title: `${title} (${at + 1})`,
    }, title);
    const panel = h("section", { role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}`, hidden: true });
    find("tabs").append(tab);
    find("view").append(panel);
    views.set(id, { tab, panel, make, view: null });
  });
  find("tabs").addEventListener("keydown", (event) => {
    const ids = [...views.keys()];
    const at = ids.indexOf(current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: ids.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const id = ids[(to + ids.length) % ids.length];
    go(id);
    views.get(id).tab.focus();
  });
}

function route() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("token") || given.has("code")) takeToken().then(retry);
  const [wanted, ...rest] = location.hash.slice(1).split("/");
  const id = views.has(wanted) ? wanted : current ?? "servers";
  const entry = views.get(id);
  entry.view ??= entry.make(entry.panel);
  current = id;
  for (const [name, { tab, panel }] of views) {
    tab.setAttribute("aria-selected", String(name === id));
    tab.tabIndex = name === id ? 0 : -1;
    panel.hidden = name !== id;
  }
  entry.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  document.title = `${entry.tab.textContent} · aggregator`;
  entry.view.show?.(wanted === id ? rest.map(decodeURIComponent).join("/") : "");
}

function showSummary() {
  const servers = known.servers ?? [];
  const sum = (key) => servers.reduce((all, each) => all + (each[key] ?? 0), 0);
  const parts = known.servers === null ? [] : [
    ...census(servers),
    counted(sum("tools"), "tool"),
    `${tokens(sum("tokens"))} tokens`,
  ];
  const told = parts.join(" · ");
  if (find("summary").textContent !== told) fill(find("summary"), told);
}

let countdown = 0;

function showLink() {
  const { state, until } = known.link;
  clearInterval(countdown);
  const words = { opening: "Connecting", here: "Live", away: "Away", locked: "Locked" };
  find("link").className = `link ${state}`;
  fill(find("link"), h("span", { class: "dot", "aria-hidden": "true" }), words[state]);
  find("notice").hidden = state !== "away";
  if (state === "away") {
    const left = h("span", {});
    const tick = () => fill(left, String(Math.max(0, Math.ceil((until - Date.now()) / 1000))));
    tick();
    countdown = setInterval(tick, 250);
    fill(find("notice"),
      h("p", {}, "The aggregator does not answer. Trying again in ", left, " s; what is shown here is from before."),
      h("button", { type: "button", onclick: retry }, "Try now"));
  }
  if (state === "locked") {
    const was = sessionStorage.getItem(STORED);
    askForToken(Boolean(was), (token) => {
      sessionStorage.setItem(STORED, token);
      useToken(token);
      retry();
    });
  }
}

function setScheme(scheme) {
  const marks = { auto: "◐", light: "☀", dark: "☾" };
  document.documentElement.dataset.scheme = scheme;
  localStorage.setItem("aggregator-scheme", scheme);
  fill(find("theme"), marks[scheme]);
  const next = SCHEMES[(SCHEMES.indexOf(scheme) + 1) % SCHEMES.length];
  const told = `Colours: ${scheme === "auto" ? "as the system has them" : scheme}; switch to ${next} (t)`;
  find("theme").setAttribute("aria-label", told);
  find("theme").title = told;
}

function nextScheme() {
  const now = document.documentElement.dataset.scheme;
  setScheme(SCHEMES[(SCHEMES.indexOf(now) + 1) % SCHEMES.length]);
}

function pressed(event) {
  const isTyping = event.target.matches("input, textarea, select, [contenteditable]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const at = Number(event.key) - 1;
  if (TABS[at]) {
    location.assign(`#${TABS[at][0]}`);
    return;
  }
  const actions = { "?": showShortcuts, t: nextScheme, "/": goFind };
  if (actions[event.key]) {
    event.preventDefault();
    actions[event.key]();
  }
}

/** Go to where words are typed: the filter of the tools if they are looked at, else the search. */
function goFind() {
  if (!views.get(current).view?.focus) location.assign("#search");
  // The address is followed only after this.
  setTimeout(() => views.get(current).view?.focus?.());
}
