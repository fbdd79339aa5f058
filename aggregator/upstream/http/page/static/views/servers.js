// Servers: how each is, why, what it said last, and the command that helps.

import { blank, command, fill, h, loading, pill } from "../dom.js";
import { inOrder, isFailing, toneOf, wordOf } from "../states.js";
import { known, line, on } from "../store.js";
import { ago, counted, number, tokens } from "../words.js";

export function makeServers(panel) {
  const notices = h("div", { class: "notices" });
  const list = h("div", { class: "servers" });
  const rows = new Map();
  panel.append(h("h2", { class: "sr" }, "Servers"), notices, list);
  const update = () => {
    showNotices(notices);
    if (known.servers === null) fill(list, known.notices.failure ? failure() : loading("Asking for the servers"));
    else if (!known.servers.length) fill(list, empty());
    else showServers(list, rows);
  };
  on("servers", update);
  update();
  return {};
}

function failure() {
  return blank("The servers could not be read", known.notices.failure, "It is tried again every few seconds.");
}

function empty() {
  return blank("No servers yet", "Name one, and it appears here by itself:",
    command("aggregator add fetch -- uvx mcp-server-fetch"),
    "Or take over those that your clients have:", command("aggregator import"));
}

function showNotices(place) {
  const { problem, unpinned, unaudited, uncounted } = known.notices;
  fill(place, [
    problem && ["servers.yaml cannot be used as it is now", problem, "What was configured before goes on."],
    unpinned && ["Nothing is compared with servers.lock", unpinned],
    unaudited && ["Calls are not written to the audit file", unaudited],
    uncounted && ["Tokens are not counted", uncounted],
  ].filter(Boolean).map(([title, ...texts]) =>
    h("div", { class: "warning", role: "alert" }, h("strong", {}, title), texts.map((each) => h("p", {}, each)))));
}

function showServers(list, rows) {
  for (const child of [...list.children]) {
    if (!child.matches("details")) child.remove();
  }
  for (const name of [...rows.keys()]) {
    if (!known.servers.some((each) => each.name === name)) {
      rows.get(name).element.remove();
      rows.delete(name);
    }
  }
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  inOrder(known.servers).forEach((server, at) => {
    const row = rows.get(server.name) ?? makeRow(server);
    rows.set(server.name, row);
    if (list.children[at] !== row.element) list.insertBefore(row.element, list.children[at] ?? null);
    row.update(server);
  });
  // What is moved loses the focus.
  if (focused?.isConnected) focused.focus({ preventScroll: true });
}

function makeRow(server) {
  const head = h("summary", {});
  const body = h("div", { class: "body" });
  const element = h("details", { class: "server", "data-server": server.name }, head, body);
  let shown = "";
  const update = (now) => {
    fill(head, headOf(now));
    const { seconds: _, ...rest } = now;
    const told = JSON.stringify([rest, known.config]);
    // Whoever reads or marks something is not disturbed by what has not changed.
    if (told !== shown) fill(body, bodyOf(now));
    shown = told;
    fill(body.querySelector(".state"), stateOf(now));
  };
  return { element, update };
}

function headOf(server) {
  const tone = toneOf(server);
  const drift = server.drift?.length ?? 0;
  const about = server.reason || server.description || server.about || "";
  return [
    h("span", { class: `dot ${tone}`, "aria-hidden": "true" }),
    h("span", { class: "who" }, h("span", { class: "name" }, server.name), 
      h("span", { class: isFailing(server) ? "about why" : "about" }, about), remedy(server)),
    h("span", { class: "tags" },
      pill(wordOf(server), tone),
      drift > 0 && pill(server.new ? "new" : `${drift} changed`, "waiting")),
    h("span", { class: "figures" },
      server.tokens === undefined ? "" : [
        h("span", {}, h("b", {}, number(server.tools)), server.tools === 1 ? " tool" : " tools"),
        h("span", {}, h("b", {}, tokens(server.tokens)), " tokens"),
      ]),
  ];
}

/** The command that helps, for whoever has not opened the card; it is copied from the opened one. */
function remedy(server) {
  const [, typed] = helpFor(server);
  return toneOf(server) !== "good" && typed && h("code", { class: "remedy" }, typed);
}

const stateOf = (server) => `${server.state} for ${ago(server.seconds)}`;

function bodyOf(server) {
  const facts = [
    ["State", h("span", { class: "state" }, stateOf(server))],
    server.reason && ["Reason", server.reason],
    server.description && ["Description", server.description],
    server.about && server.about !== server.description && ["Says of itself", server.about],
    server.version && ["Version", server.version],
    server.protocol && ["Protocol", server.protocol],
    server.perClient && ["Processes", server.processes === undefined ? "one for each client" : `one for each client, ${number(server.processes)} now`],
    server.noise > 0 && ["Noise", `${counted(server.noise, "line")} on stdout that are no messages`],
  ].filter(Boolean);
  return [
    helping(server),
    h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    texts("Last words", server.stderr, "On stderr, the newest last."),
    texts("Refused", server.refused, "What it lists that cannot be offered."),
    texts("Matches nothing", server.unmatched, "What servers.yaml names that it has not."),
    drifts(server),
    server.instructions && h("div", { class: "block" }, h("h3", {}, "Instructions"), h("pre", { class: "wrap" }, server.instructions)),
    server.tools > 0 && h("p", {}, h("a", { href: `#tools/@${encodeURIComponent(server.name)}` }, `Its ${counted(server.tools, "tool")}`)),
  ];
}

/** The command that helps, where one does. */
function helping(server) {
  const [text, typed] = helpFor(server);
  return typed && h("div", { class: "help" }, h("p", {}, text), command(typed));
}

function helpFor(server) {
  if (server.login) return ["Log in, and it is connected by itself:", server.login.command];
  if (server.state === "failed") return ["This starts it alone, and says what is wrong:", line("check", server.name)];
  if (isFailing(server)) return ["It is tried again by itself; this says more of it:", line("inspect", server.name)];
  if (server.new) return ["It is not in the lock yet; see what it offers, then approve it:", line("approve", server.name)];
  if (server.drift?.length) return ["See what has changed, then approve it:", line("approve", server.name)];
  return [];
}

function texts(title, lines, about) {
  return lines?.length > 0 && h("div", { class: "block" }, h("h3", {}, title), h("p", { class: "dim" }, about), h("pre", {}, lines.join("\n")));
}

function drifts(server) {
  return server.drift?.length > 0 && h("div", { class: "block" }, h("h3", {}, server.new ? "Not approved yet" : "Not as approved"),
    h("ul", { class: "drifts" }, server.drift.map((each) => h("li", {},
      h("code", {}, each.name ?? each.tool), " ", pill(each.kind, "waiting"), each.withheld && pill("withheld", "bad"),
      h("ul", {}, each.details.map((detail) => h("li", { class: "dim" }, detail)))))));
}
