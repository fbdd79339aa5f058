// What the page asks of a person, and what it tells of its keys.

import { command, h } from "./dom.js";

let asking = null;

/** Ask for the token, until one is given. */
export function askForToken(wasRefused, use) {
  if (asking) asking.remove();
  const field = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  const told = wasRefused
    ? "The token that this page has is not the right one; the aggregator may have been started anew."
    : "Whoever looks here has to show the token of this aggregator.";
  const form = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      asking.close();
      use(field.value.trim());
    },
  },
  h("h2", { id: "token-title" }, "Token needed"),
  h("p", {}, told),
  h("label", { for: "token" }, "Token"), field,
  h("p", { class: "dim" }, "This command opens the page with it:"), command("aggregator open"),
  h("div", { class: "actions" }, h("button", { class: "main" }, "Open")));
  asking = h("dialog", { "aria-labelledby": "token-title", oncancel: (event) => event.preventDefault() }, form);
  document.body.append(asking);
  asking.showModal();
}

/** Ask whether to do what may change something; resolve to whether a person agrees. */
export function agrees(title, text, action) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "question-title", class: "question" },
      h("form", { method: "dialog" },
        h("h2", { id: "question-title" }, title),
        h("p", {}, text),
        h("div", { class: "actions" },
          h("button", { value: "no", autofocus: true }, "Cancel"),
          h("button", { value: "yes", class: "main" }, action))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const KEYS = [
  ["1 … 6", "go to a tab"],
  ["← →", "the tab before or after, while a tab has the focus"],
  ["/", "go to the search field"],
  ["↑ ↓ Enter", "move in a list, and open an entry"],
  ["t", "light, dark, or as your system is set"],
  ["?", "show these keys"],
  ["Esc", "close what is open"],
];

export function showShortcuts() {
  const dialog = h("dialog", { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keyboard"),
    h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("form", { method: "dialog", class: "actions" }, h("button", { class: "main" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
