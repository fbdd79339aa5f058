// Pictures of numbers, drawn by hand.

import { h, svg } from "./dom.js";
import { day, tokens } from "./words.js";

/** Two or more numbers as bars below each other: names, values, tones. */
export function compared(rows) {
  const most = Math.max(...rows.map(([, value]) => value), 1);
  return h("div", { class: "compared", role: "img", "aria-label": rows.map(([name, value]) => `${name}: ${tokens(value)} tokens`).join("; ") },
    rows.map(([name, value, tone]) => {
      const share = Math.max(0.4, (100 * value) / most);
      return h("div", { class: "compare" },
        h("div", { class: "line" }, h("span", {}, name), h("b", {}, `${tokens(value)} tokens`)),
        svg("svg", { viewBox: "0 0 100 3", preserveAspectRatio: "none", class: "stripe", "aria-hidden": "true" },
          svg("rect", { x: 0, y: 0, width: 100, height: 3, class: "ground" }),
          svg("rect", { x: 0, y: 0, width: share, height: 3, class: tone })));
    }));
}

const HEIGHT = 200;
const LEFT = 52;
const BOTTOM = 26;
const TOP = 10;

/** Each day as a bar of what was saved, with what was spent in front of it. */
export function daily(days) {
  // Its letters are as large as all others, on a phone, too.
  const width = matchMedia("(max-width: 640px)").matches ? 340 : 720;
  const most = nice(Math.max(...days.map((each) => Math.max(each.tokensSaved, each.searchTokens)), 1));
  const floor = HEIGHT - BOTTOM;
  const y = (value) => floor - (Math.max(0, value) / most) * (floor - TOP);
  const step = (width - LEFT) / Math.max(days.length, 7);
  const wide = Math.min(34, step * 0.68);
  const every = Math.ceil((days.length * 80) / width);
  const middle = (at) => LEFT + step * (at + 0.5);
  const lines = [0, 0.5, 1].map((part) => [
    svg("line", { x1: LEFT, x2: width, y1: y(most * part), y2: y(most * part), class: "grid" }),
    svg("text", { x: LEFT - 8, y: y(most * part) + 4, "text-anchor": "end" }, tokens(most * part)),
  ]);
  const bars = days.map((each, at) => svg("g", {},
    svg("title", {}, `${day(each.date)}: ${tokens(each.tokensSaved)} tokens saved, ${tokens(each.searchTokens)} spent on searches, ${each.calls} calls`),
    svg("rect", { x: middle(at) - step / 2, y: TOP, width: step, height: floor - TOP, class: "hit" }),
    bar(middle(at) - wide / 2, y(each.tokensSaved), wide, floor, "accent"),
    bar(middle(at) - wide / 2, y(each.searchTokens), wide, floor, "cost"),
    at % every === 0 && svg("text", { x: middle(at), y: HEIGHT - 8, "text-anchor": "middle" }, day(each.date))));
  const sum = (key) => days.reduce((all, each) => all + each[key], 0);
  const told = `${days.length} days: ${tokens(sum("tokensSaved"))} tokens saved, ${tokens(sum("searchTokens"))} spent on searches`;
  return h("figure", { class: "daily" },
    svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": told }, lines, bars),
    h("figcaption", {}, h("span", { class: "key accent" }, "saved"), h("span", { class: "key cost" }, "spent on searches")));
}

function bar(x, top, wide, floor, tone) {
  const tall = Math.max(0, floor - top);
  return tall > 0.2 && svg("rect", { x, y: top, width: wide, height: tall, rx: Math.min(3, tall / 2), class: tone });
}

/** The next round number above. */
function nice(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * size).find((each) => each >= value) ?? value;
}
