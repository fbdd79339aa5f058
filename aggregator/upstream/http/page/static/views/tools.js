// Tools: all there are, what each costs, how it is defined, and whether it is as approved.

import { blank, command, fill, h, loading, pill } from "../dom.js";
import { VirtualList } from "../list.js";
import { read } from "../mcp.js";
import { allTools, known, line, on } from "../store.js";
import { counted, number, pretty, tokens } from "../words.js";
import { parameters } from "../schema.js";

const ROW = 58;
const ORDERS = {
  configured: ["as configured", null],
  name: ["by name", (a, b) => (a.name < b.name ? -1 : 1)],
  tokens: ["by tokens", (a, b) => b.tokens - a.tokens],
};

export function makeTools(panel) {
  let all = [];
  let chosen = "";
  let wanted = "";
  const count = h("p", { class: "dim", role: "status" });
  const filter = h("input", { type: "search", placeholder: "Filter, or @server", "aria-label": "Filter tools", oninput: () => show() });
  const order = h("select", { "aria-label": "Order", onchange: () => show() },
    Object.entries(ORDERS).map(([id, [title]]) => h("option", { value: id }, title)));
  const list = new VirtualList({ label: "Tools", height: ROW, draw, choose: (tool) => location.assign(`#tools/${tool.name}`) });
  const detail = h("article", { class: "detail", "aria-live": "polite" });
  const left = h("div", { class: "left" }, h("div", { class: "tools-bar" }, filter, order), count, list.element);
  const split = h("div", { class: "split" }, left, detail);
  panel.append(h("h2", { class: "sr" }, "Tools"), split);
  fill(detail, hint());

  function hint() {
    return blank("Choose a tool", "Its definition, its cost and how it differs from what was approved are shown here.");
  }

  function matching() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const servers = words.filter((each) => each.startsWith("@")).map((each) => each.slice(1));
    const rest = words.filter((each) => !each.startsWith("@"));
    const found = all.filter((tool) => (!servers.length || servers.includes(tool.server.toLowerCase()))
      && rest.every((word) => tool.text.includes(word)));
    const by = ORDERS[order.value][1];
    return by ? found.sort(by) : found;
  }

  function show() {
    const found = matching();
    const cost = found.reduce((sum, each) => sum + each.tokens, 0);
    fill(count, found.length === all.length
      ? `${counted(found.length, "tool")}, ${tokens(cost)} tokens`
      : `${number(found.length)} of ${counted(all.length, "tool")}, ${tokens(cost)} tokens`);
    list.set(found, found.findIndex((each) => each.name === chosen));
  }

  async function load() {
    if (!all.length) fill(count, "Asking for the tools");
    try {
      const found = await allTools();
      all = found.map((each) => ({ ...each, text: `${each.name} ${each.server} ${each.description}`.toLowerCase() }));
      show();
      if (!all.length) fill(detail, blank("No tools yet", "They appear as servers become ready: see Servers."));
      if (wanted) open(wanted);
    } catch (error) {
      fill(count, `The tools could not be read: ${error.message}`);
    }
  }

  async function open(name) {
    chosen = name;
    split.classList.add("chosen");
    const at = list.items.findIndex((each) => each.name === name);
    if (at >= 0 && list.at !== at) list.select(at, { isTold: false });
    const back = h("a", { class: "back", href: "#tools" }, "All tools");
    fill(detail, back, loading("Asking for its definition"));
    let tool;
    try {
      tool = await read(`catalog://tools/${name}`);
    } catch (error) {
      if (chosen === name) fill(detail, back, blank("There is no such tool now", error.message));
      return;
    }
    if (chosen === name) fill(detail, back, definition(tool, all.find((each) => each.name === name)));
  }

  on("tools", () => { if (!panel.hidden) load(); });
  on("back", () => { if (!panel.hidden) load(); });
  return {
    focus: () => filter.focus(),
    show: (name) => {
      wanted = name.startsWith("@") ? "" : name;
      if (name.startsWith("@")) filter.value = name;
      if (!wanted) {
        chosen = "";
        split.classList.remove("chosen");
        fill(detail, hint());
      }
      load();
    },
  };
}

function draw(tool) {
  return [
    h("div", { class: "line" }, h("span", { class: "name" }, tool.name),
      tool.drift && pill(tool.drift, "waiting"), tool.readOnly && pill("read-only", "good"), tool.alwaysLoad && pill("always", "accent")),
    h("div", { class: "line dim" }, h("span", { class: "about" }, tool.description || "No description"), h("span", { class: "cost" }, tokens(tool.tokens))),
  ];
}

function definition(tool, listed) {
  const { name: own, description, inputSchema, ...rest } = tool.definition;
  const drift = known.servers?.find((each) => each.name === tool.server)?.drift?.find((each) => each.name === tool.name);
  return [
    h("header", { class: "title" }, h("h2", {}, tool.name),
      h("div", { class: "tags" }, pill(tool.server), tool.readOnly ? pill("read-only", "good") : pill("may change things"),
        tool.alwaysLoad && pill("always loaded", "accent"), listed?.drift && pill(listed.drift, "waiting"))),
    h("p", { class: "cost" }, h("b", {}, number(tool.tokens)), " tokens wherever it is listed", own !== tool.name && [", called ", h("code", {}, own), " by its server"]),
    drift && h("div", { class: "warning" }, h("strong", {}, drift.withheld ? "Not as approved, and withheld" : "Not as approved"),
      h("ul", {}, drift.details.map((each) => h("li", {}, each))),
      command(line("lock", "--diff", tool.name)), command(line("approve", tool.name))),
    h("p", {}, h("a", { class: "button main", href: `#try/${tool.name}` }, "Try it")),
    h("div", { class: "block" }, h("h3", {}, "Description"), h("p", { class: "prose" }, description || "It has none.")),
    h("div", { class: "block" }, h("h3", {}, "Parameters"), parameters(inputSchema)),
    h("details", { class: "raw" }, h("summary", {}, "The whole definition"), h("pre", {}, pretty({ name: own, description, inputSchema, ...rest }))),
  ];
}
