// Elements made of values. Whatever a server says becomes text: there is no way here to markup.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element; properties that begin with `on` are listeners, all others attributes. */
export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same for pictures. */
export function svg(tag, properties, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

/** Put other children in the place of those that an element has. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(4).filter((each) => each != null && each !== false && each !== "")
    .map((each) => (each instanceof Node ? each : document.createTextNode(String(each))));
}

/** A command to be typed, and a button that copies it. */
export function command(text) {
  const button = h("button", { type: "button", class: "quiet copy", "aria-label": `Copy ${text}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return h("div", { class: "command" }, h("code", {}, text), button);
}

/** A word with a colour that says the same. */
export function pill(word, tone = "plain") {
  return h("span", { class: `pill ${tone}` }, word);
}

/** What stands where there is nothing to show: what that means, and what to do. */
export function blank(title, ...more) {
  return h("div", { class: "blank" }, h("h2", {}, title), more.map((each) => (each instanceof Node ? each : h("p", {}, each))));
}

/** What stands there until something is known. */
export function loading(what = "Loading") {
  return h("p", { class: "loading", role: "status" }, what);
}
