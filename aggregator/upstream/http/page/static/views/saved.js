// Saved: what lists were shorter by, what searches cost, and what nobody uses; as pictures.

import { blank, command, fill, h, loading } from "../dom.js";
import { ask, request } from "../mcp.js";
import { compared, daily } from "../pictures.js";
import { known, on } from "../store.js";
import { counted, duration, estimated, number, tokens } from "../words.js";

const SHOWN = 10;

/** How long calls took, if one came to an end. */
const time = (milliseconds) => milliseconds === null ? "–" : duration(milliseconds);

export function makeSaved(panel) {
  const place = h("div", { class: "saved" }, loading("Summing up"));
  panel.append(h("h2", { class: "sr" }, "Saved"), place);
  const load = async () => {
    if (panel.hidden) return;
    try {
      const [response, listed] = await Promise.all([ask("/stats"), request("tools/list")]);
      fill(place, shown(await response.json(), listed.tools));
    } catch (error) {
      if (place.querySelector(".loading")) fill(place, blank("It could not be summed up", error.message));
    }
  };
  on("tools", load);
  on("back", load);
  return { show: load };
}

function shown(stats, listed) {
  const all = (known.servers ?? []).reduce((sum, each) => sum + (each.tokens ?? 0), 0);
  const list = listed.reduce((sum, each) => sum + estimated(each.name + (each.description ?? "") + JSON.stringify(each.inputSchema ?? {})), 0);
  const count = (known.servers ?? []).reduce((sum, each) => sum + (each.tools ?? 0), 0);
  return [
    h("section", { class: "card" }, h("h3", {}, "What a model reads at each turn"),
      h("p", { class: "dim" }, headline(all, list)),
      all > 0 && compared([[`All ${counted(count, "tool")}`, all, "plain"], [`The list, with ${counted(listed.length, "tool")}`, list, "accent"]])),
    stats.enabled ? history(stats) : off(),
  ];
}

function headline(all, list) {
  if (!all) return "No tools are known yet.";
  const part = Math.round(100 * (1 - list / all));
  return part > 0 ? `${part} % less than with all definitions.` : "With so few tools a list of all of them costs as little; `toolSearch: auto` shows them all then.";
}

function off() {
  return blank("Nothing is counted here", "With `stats: false` or `state: false` in servers.yaml, nothing is written down.");
}

function history(stats) {
  if (stats.first === null) {
    return blank("Nothing has been counted yet", "Counting begins when a client uses the aggregator; what you do on this page is not counted.",
      command("aggregator install"));
  }
  const saved = stats.lists.tokensSaved;
  const cost = stats.searches.tokens;
  const days = stats.days.length ? filledDays(stats.days) : [];
  return [
    h("div", { class: "sums" },
      figure(tokens(saved), `tokens that ${counted(stats.lists.weighed, "list")} ${saved < 0 ? "were longer by" : "were shorter by"}`, "accent"),
      figure(tokens(cost), `tokens that ${counted(stats.searches.queries, "search", "searches")} cost`),
      figure(number(stats.calls), `calls, ${number(stats.errors)} failed`),
      figure(hitRate(stats.searches), "of searches found something")),
    h("section", { class: "card" }, h("h3", {}, "Day by day"),
      h("p", { class: "dim" }, `Tokens that lists were shorter by, and what searches cost, since ${stats.first.slice(0, 10)}.`), daily(days)),
    h("div", { class: "columns" },
      table("Most used", ["Tool", "Calls", "Errors", "p50", "p95"], stats.tools.map((each) =>
        [each.name, number(each.calls), number(each.errors), time(each.milliseconds.p50), time(each.milliseconds.p95)]), "No tool was called yet."),
      table("Found nothing", ["Searched for", "Times"], stats.searches.foundNothing.map((each) => [each.query, number(each.times)]), stats.searches.queries ? "Every search found something." : "Nothing was searched for yet."),
      table("Never used", ["Server", "Tools", "Tokens"], stats.unused.filter((each) => each.whole).map((each) =>
        [each.server, number(each.tools.length), tokens(each.tokens)]), "Every server was used.")),
  ];
}

function hitRate({ queries, hits }) {
  return queries ? `${Math.round((100 * hits) / queries)} %` : "–";
}

function figure(value, about, tone = "") {
  return h("div", { class: `figure ${tone}` }, h("b", {}, value), h("span", {}, about));
}

/** Put the days in between on which nothing happened. */
function filledDays(days) {
  const found = new Map(days.map((each) => [each.date, each]));
  const all = [];
  const at = new Date(`${days[0].date}T12:00:00`);
  const end = days.at(-1).date;
  for (let guard = 0; guard < 40; guard += 1) {
    const date = `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
    all.push(found.get(date) ?? { date, calls: 0, errors: 0, queries: 0, tokensSaved: 0, searchTokens: 0 });
    if (date >= end) break;
    at.setDate(at.getDate() + 1);
  }
  return all;
}

function table(title, head, rows, none) {
  return h("section", { class: "card" }, h("h3", {}, title),
    rows.length ? h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, head.map((each, at) => h("th", { scope: "col", class: at ? "right" : "" }, each)))),
      h("tbody", {}, rows.slice(0, SHOWN).map((row) => h("tr", {}, row.map((each, at) => h("td", { class: at ? "right" : "name" }, each)))))))
      : h("p", { class: "dim" }, none),
    rows.length > SHOWN && h("p", { class: "dim" }, `and ${number(rows.length - SHOWN)} more`));
}
