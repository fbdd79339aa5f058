// Activity: calls, searches, lists and states, as they happen.

import { blank, command, fill, h, pill } from "../dom.js";
import { TONES } from "../states.js";
import { known, on } from "../store.js";
import { clock, counted, duration, number, pretty } from "../words.js";

const KINDS = [["all", "All"], ["calls", "Calls"], ["searches", "Searches"], ["states", "States"]];
const OF = { began: "calls", ended: "calls", search: "searches", list: "lists", state: "states", login: "states" };
const GOOD = new Set(["ok", "asks", "task"]);
const OURS = { "aggregator-page": "this page", "aggregator-cli": "a command" };

export function makeActivity(panel) {
  let kind = "all";
  let held = null;
  const list = h("ol", { class: "activity", "aria-label": "What happened, the newest first" });
  const about = h("span", { class: "dim" });
  const buttons = KINDS.map(([id, title]) => h("button", {
    type: "button", "aria-pressed": String(id === kind),
    onclick: (event) => {
      kind = id;
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === event.currentTarget));
      show();
    },
  }, title));
  const pause = h("button", {
    type: "button", "aria-pressed": "false",
    onclick: () => {
      held = held ? null : [...known.activity];
      pause.setAttribute("aria-pressed", String(held !== null));
      fill(pause, held ? "Go on" : "Pause");
      show();
    },
  }, "Pause");
  panel.append(h("h2", { class: "sr" }, "Activity"),
    h("div", { class: "activity-bar" }, h("div", { class: "choice", role: "group", "aria-label": "What to show" }, buttons), about, pause), list);

  function show() {
    if (panel.hidden) return;
    const facts = (held ?? known.activity).filter((each) => kind === "all" || OF[each.kind] === kind);
    const missed = known.missed ? `, ${number(known.missed)} were missed` : "";
    const secret = known.showsArguments ? "arguments are shown, results never" : "arguments and results are not shown";
    fill(about, `${facts.length === 1 ? "One event" : `The last ${counted(facts.length, "event")}`}${missed}; ${secret}`);
    if (facts.length) draw(list, facts);
    else fill(list, h("li", { class: "nothing" }, blank("Nothing has happened yet", "Calls, searches and states of servers appear here as they happen.")));
  }

  on("activity", () => { if (!held) show(); });
  return { show };
}

const drawn = new WeakMap();

/** Make rows only for what is new: there may be hundreds, and many in a second. */
function draw(list, facts) {
  list.replaceChildren(...facts.map((fact) => {
    if (!drawn.has(fact)) drawn.set(fact, row(fact));
    return drawn.get(fact);
  }));
}

function row(fact) {
  const [tone, word, ...rest] = told(fact);
  return h("li", { class: fact.kind },
    h("time", {}, clock(fact.at)), pill(word, tone),
    h("div", { class: "what" }, rest),
    h("span", { class: "by", title: by(fact) }, by(fact)));
}

/** Who asked: the program and, where somebody has shown who it is, the person or token. */
function by(fact) {
  if (fact.client === undefined) return "";
  const client = OURS[fact.client] ?? (fact.client || "somebody");
  return fact.identity ? `${fact.identity}, by ${client}` : client;
}

function told(fact) {
  switch (fact.kind) {
    case "began": return ["waiting", "calling", h("span", { class: "name" }, fact.tool)];
    case "ended": return [GOOD.has(fact.outcome) ? "good" : fact.outcome === "cancelled" ? "plain" : "bad", "call",
      h("span", { class: "name" }, fact.tool || "no such tool"),
      h("span", { class: "dim" }, `${fact.outcome === "ok" ? "" : `${fact.outcome}, `}${duration(fact.milliseconds)}${fact.through ? `, through ${fact.through}` : ""}`),
      fact.arguments && h("details", {}, h("summary", {}, "Arguments"), h("pre", {}, pretty(fact.arguments)))];
    case "search": return ["accent", "search",
      fact.answers.length ? fact.answers.map(answer) : h("span", { class: "dim" }, "an overview"),
      h("span", { class: "dim" }, duration(fact.milliseconds))];
    case "list": return ["plain", "list", h("span", { class: "dim" }, `${counted(fact.tools, "tool")} listed`)];
    case "login": return ["login", "login", h("span", { class: "name" }, fact.server), h("span", { class: "dim" }, "wants somebody to log in"), command(fact.command)];
    default: return [TONES[fact.after] ?? "plain", fact.after ?? "removed",
      h("span", { class: "name" }, fact.server),
      h("span", { class: "dim" }, [fact.before ? `was ${fact.before}` : "new", fact.reason].filter(Boolean).join("; "))];
  }
}

function answer({ query, found, number: all }) {
  const names = found.slice(0, 3).join(", ");
  const rest = all > 3 && found.length ? ` and ${number(all - Math.min(3, found.length))} more` : "";
  return h("span", { class: "query" }, h("q", {}, query), h("span", { class: "dim" }, all ? ` ${names}${rest}` : " found nothing"));
}
