// Try: a form made from a tool's schema, that calls it.

import { agrees } from "../dialogs.js";
import { blank, fill, h, loading, pill } from "../dom.js";
import { call, mirrored, read } from "../mcp.js";
import { makeForm } from "../schema.js";
import { allTools, on } from "../store.js";
import { duration, number, pretty, tokens } from "../words.js";

const OFFERED = 8;
const PICTURES = /^image\/(png|jpeg|gif|webp)$/;
const MOST_TEXT = 200000;

export function makeTry(panel) {
  let names = [];
  let tool = null;
  let at = -1;
  const input = h("input", {
    type: "search", id: "tool", placeholder: "Which tool?", autocomplete: "off", spellcheck: "false",
    role: "combobox", "aria-expanded": "false", "aria-controls": "offered", "aria-autocomplete": "list",
  });
  const offered = h("ul", { id: "offered", class: "offered", role: "listbox", hidden: true });
  const body = h("div", { class: "trying" });
  panel.append(h("h2", { class: "sr" }, "Try a tool"),
    h("div", { class: "ask combo" }, h("label", { for: "tool", class: "sr" }, "Tool"), input, offered), body);
  fill(body, start());

  const start_ = () => fill(body, start());
  const go = (name) => { close(); location.assign(`#try/${name}`); };
  const close = () => { offered.hidden = true; at = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };

  function offer() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = names.filter((each) => words.every((word) => each.toLowerCase().includes(word))).slice(0, OFFERED);
    at = -1;
    offered.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    fill(offered, found.map((name, index) => h("li", {
      role: "option", id: `offer-${index}`, "aria-selected": "false",
      onmousedown: (event) => { event.preventDefault(); go(name); },
    }, name)));
  }

  function move(step) {
    const options = [...offered.children];
    if (!options.length) return;
    at = (at + step + options.length) % options.length;
    options.forEach((each, index) => each.setAttribute("aria-selected", String(index === at)));
    input.setAttribute("aria-activedescendant", options[at].id);
  }

  input.addEventListener("input", offer);
  input.addEventListener("focus", () => { input.select(); offer(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      const chosen = offered.children[Math.max(0, at)]?.textContent;
      if (chosen) go(chosen);
    } else if (event.key === "Escape") close();
  });

  async function learn() {
    try {
      names = (await allTools()).map((each) => each.name);
      if (!names.length && !tool) fill(body, blank("There is no tool to try yet", "They appear as servers become ready: see Servers."));
    } catch { /* The notice above says that nobody answers. */ }
  }

  async function open(name) {
    input.value = name;
    fill(body, loading("Asking for its definition"));
    try {
      tool = await read(`catalog://tools/${name}`);
    } catch (error) {
      fill(body, blank("There is no such tool now", error.message));
      return;
    }
    fill(body, bench(tool));
  }

  on("tools", () => { if (!panel.hidden) learn(); });
  return {
    focus: () => input.focus(),
    show: (name) => {
      learn();
      if (name && name !== tool?.name) open(name);
      else if (!name && !tool) start_();
    },
  };
}

function start() {
  return blank("Try a tool", "Choose one above. Tools that only read are called at once; all others once you agree.");
}

/** One tool with its form, and what it answered. */
function bench(tool) {
  const schema = tool.definition.inputSchema ?? {};
  const form = makeForm(schema);
  const result = h("section", { class: "result", "aria-live": "polite", "aria-label": "Result" });
  const raw = h("textarea", { class: "code", rows: 8, spellcheck: "false", "aria-label": "Arguments as JSON" });
  const asJson = h("input", { type: "checkbox", id: "as-json" });
  const problem = h("p", { class: "problem", role: "alert" });
  const button = h("button", { class: "main" }, "Call");
  raw.hidden = true;
  asJson.addEventListener("change", () => {
    try {
      problem.textContent = "";
      if (asJson.checked) raw.value = pretty(form.values());
      else form.set(parsed(raw.value));
    } catch (error) {
      if (asJson.checked) raw.value = "{}";
      else { asJson.checked = true; problem.textContent = error.message; return; }
    }
    raw.hidden = !asJson.checked;
    form.element.hidden = asJson.checked;
  });
  const submit = async (event) => {
    event.preventDefault();
    let args;
    problem.textContent = "";
    try {
      args = asJson.checked ? parsed(raw.value) : form.values();
    } catch (error) {
      if (error.field) error.field.focus();
      else problem.textContent = error.message;
      return;
    }
    if (!tool.readOnly && !(await agrees(`Call ${tool.name}?`, "Its server does not say that it only reads: it may change something.", "Call it"))) return;
    await run(tool, args, mirrored(schema, args), button, result);
  };
  return [
    h("header", { class: "title" }, h("h2", {}, tool.name),
      h("div", { class: "tags" }, pill(tool.server), tool.readOnly ? pill("read-only", "good") : pill("may change things"))),
    h("p", { class: "prose clamp" }, tool.definition.description || "It has no description."),
    h("form", { onsubmit: submit, novalidate: true }, form.element, raw, problem,
      h("div", { class: "actions" }, button, h("label", { class: "check", for: "as-json" }, asJson, " Arguments as JSON"),
        h("a", { href: `#tools/${tool.name}` }, "Definition"))),
    result,
  ];
}

function parsed(text) {
  let value;
  try {
    value = JSON.parse(text || "{}");
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("Arguments are a JSON object");
  return value;
}

async function run(tool, args, headers, button, place) {
  const stop = new AbortController();
  const cancel = h("button", { type: "button", onclick: () => stop.abort() }, "Cancel");
  button.disabled = true;
  fill(place, h("div", { class: "heading" }, loading("Calling"), cancel));
  const began = performance.now();
  try {
    const result = await call(tool.name, args, { headers, signal: stop.signal });
    fill(place, outcome(result, performance.now() - began));
  } catch (error) {
    const told = stop.signal.aborted ? "Nobody waits for it any more; it may have been done all the same." : error.message;
    fill(place, h("div", { class: "heading" }, h("h3", {}, "No result"), pill(stop.signal.aborted ? "cancelled" : "error", "bad")), h("pre", { class: "wrap" }, told));
  } finally {
    button.disabled = false;
  }
}

function outcome(result, milliseconds) {
  const text = JSON.stringify(result);
  const asks = result.resultType === "input_required";
  const [word, tone] = asks ? ["asks something", "waiting"] : result.isError ? ["error", "bad"] : ["ok", "good"];
  return [
    h("div", { class: "heading" }, h("h3", {}, "Result"), pill(word, tone),
      h("span", { class: "dim" }, `${duration(milliseconds)}, about ${tokens(text.length / 2.5)} tokens`)),
    asks && h("p", {}, "The server asks a question before it goes on; `aggregator call` can answer it."),
    (result.content ?? []).map(part),
    result.structuredContent !== undefined && h("details", { class: "raw" }, h("summary", {}, "Structured content"), h("pre", {}, cut(pretty(result.structuredContent)))),
    h("details", { class: "raw" }, h("summary", {}, "The whole result"), h("pre", {}, cut(pretty(result)))),
  ];
}

function part(each) {
  if (each?.type === "text") return h("pre", { class: "wrap said" }, cut(String(each.text)));
  if (each?.type === "image" && PICTURES.test(each.mimeType)) {
    return h("img", { class: "picture", alt: "What the tool answered", src: `data:${each.mimeType};base64,${String(each.data).replace(/[^A-Za-z0-9+/=]/g, "")}` });
  }
  return h("pre", {}, cut(pretty(each)));
}

function cut(text) {
  return text.length <= MOST_TEXT ? text : `${text.slice(0, MOST_TEXT)}\n… and ${number(text.length - MOST_TEXT)} characters more`;
}
