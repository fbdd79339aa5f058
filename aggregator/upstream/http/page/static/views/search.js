// Search: exactly what a model would read, and why each tool was found.

import { blank, fill, h, loading } from "../dom.js";
import { call } from "../mcp.js";
import { on } from "../store.js";
import { counted, estimated, number } from "../words.js";

const TOGETHER = {
  coverage: "how much of the query it has",
  together: "words side by side",
  named: "words of its name",
  hosted: "words of its server's name",
  outdated: "it says that it is deprecated",
};

export function makeSearch(panel) {
  let number_ = 0;
  const input = h("input", { type: "search", id: "query", placeholder: "What should be done?", autocomplete: "off", spellcheck: "false" });
  const button = h("button", { class: "main" }, "Search");
  const answer = h("div", { class: "answer" });
  const form = h("form", { class: "ask", role: "search", onsubmit: (event) => { event.preventDefault(); ask(); } },
    h("label", { for: "query", class: "sr" }, "Search as a model would"), input, button);
  panel.append(h("h2", { class: "sr" }, "Search"), form, answer);
  fill(answer, start());

  function start() {
    return blank("Search as a model would", "The answer is the one that a model reads, word for word, with the reason for each tool beside it.");
  }

  async function ask() {
    const query = input.value.trim();
    if (!query) {
      fill(answer, start());
      return;
    }
    const mine = ++number_;
    fill(answer, loading("Searching"));
    const began = performance.now();
    try {
      const result = await call("ToolSearch", { query }, { meta: { "aggregator/explain": true } });
      if (mine === number_) fill(answer, shown(query, result, performance.now() - began));
    } catch (error) {
      if (mine === number_) fill(answer, blank("The search failed", error.message));
    }
  }

  on("back", () => { if (input.value.trim() && answer.querySelector(".blank")) ask(); });
  // Who comes here by a key goes on by keys: only who asks for the box has it.
  return { focus: () => { input.focus(); input.select(); } };
}

function shown(query, result, milliseconds) {
  const text = result.content?.[0]?.text ?? "";
  const facts = result._meta?.["aggregator/search"] ?? {};
  const about = `${number(estimated(text))} tokens, ${Math.round(milliseconds)} ms`;
  return h("div", { class: "results" },
    h("section", { class: "reads", "aria-label": "What the model reads" },
      h("div", { class: "heading" }, h("h3", {}, "What the model reads"), h("span", { class: "dim" }, about)),
      h("pre", { class: "wrap", tabindex: "0" }, text)),
    h("section", { class: "why", "aria-label": "Why these" },
      h("div", { class: "heading" }, h("h3", {}, "Why these"), h("span", { class: "dim" }, found(facts))),
      reasons(query, facts)));
}

function found(facts) {
  const offers = facts.offers?.length ?? 0;
  return `${counted(facts.matches?.length ?? 0, "tool")}${offers ? ` and ${number(offers)} beside them` : ""}`;
}

function reasons(query, facts) {
  const explained = facts.explained ?? [];
  const looked = new Set(explained.map((each) => each.name));
  const rest = (facts.matches ?? []).filter((name) => !looked.has(name)).map((name) => ({ name, score: null, why: [] }));
  const all = [...explained, ...rest];
  const offers = (facts.offers ?? []).map((each) => h("li", {},
    h("div", { class: "line" }, h("span", { class: "name" }, each.name), h("span", { class: "dim" }, `a ${each.kind}`))));
  if (!all.length && !offers.length) {
    return blank("Nothing was found", "The answer says what is closest, and which servers are not ready.");
  }
  const most = Math.max(...all.map((each) => each.score ?? 0), 0.001);
  return h("ol", { class: "reasons" }, all.map((each) => reason(each, most)), offers);
}

function reason({ name, score, meaning, why }, most) {
  const bar = h("span", { class: "bar-fill" });
  bar.style.width = `${Math.max(2, (100 * (score ?? 0)) / most)}%`;
  const told = score === null ? "looked up by its name" : `score ${score.toFixed(2)}`
    + (meaning === null || meaning === undefined ? "" : `, of which ${meaning.toFixed(2)} by meaning`);
  return h("li", {},
    h("div", { class: "line" }, h("a", { class: "name", href: `#tools/${name}` }, name), h("span", { class: "dim" }, told)),
    score !== null && h("div", { class: "bar", "aria-hidden": "true" }, bar),
    h("ul", {}, words(why).map(([score_, text]) => h("li", {}, h("span", { class: "part" }, score_ ? score_.toFixed(2) : "first"), h("span", {}, text)))));
}

/** Put together what each word brought, in the order it is told in. */
function words(why) {
  const groups = [];
  for (const each of why) {
    const before = groups.at(-1);
    if (before && before.word === each.word && before.term === each.term) before.parts.push(each);
    else groups.push({ word: each.word, term: each.term, parts: [each] });
  }
  return groups.map(({ word, term, parts }) => {
    const score = parts.reduce((sum, each) => sum + each.score, 0);
    const fields = parts.map((each) => TOGETHER[each.field] ?? each.field).join(", ");
    if (parts[0].field === "called") return [0, "the query is its name"];
    if (!word) return [score, `all words together: ${fields}`];
    return [score, `“${word}”${term === word ? "" : ` (indexed as “${term}”)`} in ${fields}`];
  });
}
