// A list of any length, of which only what is seen is drawn.

import { fill, h } from "./dom.js";

const BEYOND = 6; // rows above and below, so that scrolling shows no gap

export class VirtualList {
  /** `draw` makes the inside of a row; `choose` is told which item a person wants. */
  constructor({ label, height, draw, choose }) {
    this.height = height;
    this.draw = draw;
    this.choose = choose;
    this.items = [];
    this.at = -1;
    this.rows = new Map();
    this.canvas = h("div", { class: "canvas", role: "presentation" });
    this.element = h("div", { class: "virtual", role: "listbox", tabindex: "0", "aria-label": label }, this.canvas);
    this.element.addEventListener("scroll", () => this.#plan(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#pressed(event));
    this.element.addEventListener("click", (event) => {
      const row = event.target.closest("[data-at]");
      if (row) this.select(Number(row.dataset.at));
    });
    new ResizeObserver(() => this.#plan()).observe(this.element);
  }

  /** Show other items, with the one of a key still chosen if it is among them. */
  set(items, at = -1) {
    this.items = items;
    this.at = at;
    this.canvas.style.height = `${items.length * this.height}px`;
    fill(this.canvas);
    this.rows.clear();
    this.#paint();
  }

  select(at, { isTold = true } = {}) {
    if (at < 0 || at >= this.items.length) return;
    this.at = at;
    const top = at * this.height;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.element.scrollTop = top + this.height - clientHeight;
    this.#paint();
    if (isTold) this.choose(this.items[at]);
  }

  #pressed(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    let to = null;
    if (event.key in steps) to = Math.min(this.items.length - 1, Math.max(0, this.at + steps[event.key]));
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = this.items.length - 1;
    else if (event.key === "Enter") to = Math.max(0, this.at);
    if (to === null) return;
    event.preventDefault();
    this.select(to);
  }

  #plan() {
    this.planned ??= requestAnimationFrame(() => {
      this.planned = null;
      this.#paint();
    });
  }

  #paint() {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - BEYOND);
    const last = Math.min(this.items.length, Math.ceil((scrollTop + clientHeight) / this.height) + BEYOND);
    for (const [at, row] of this.rows) {
      if (at < first || at >= last) {
        row.remove();
        this.rows.delete(at);
      }
    }
    for (let at = first; at < last; at += 1) {
      if (!this.rows.has(at)) this.rows.set(at, this.#row(at));
    }
    for (const [at, row] of this.rows) row.setAttribute("aria-selected", String(at === this.at));
    const chosen = this.rows.get(this.at);
    if (chosen) this.element.setAttribute("aria-activedescendant", chosen.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #row(at) {
    const row = h("div", {
      class: "row", role: "option", id: `row-${at}`, "data-at": at,
      "aria-posinset": at + 1, "aria-setsize": this.items.length,
    }, this.draw(this.items[at]));
    row.style.transform = `translateY(${at * this.height}px)`;
    row.style.height = `${this.height}px`;
    this.canvas.append(row);
    return row;
  }
}
