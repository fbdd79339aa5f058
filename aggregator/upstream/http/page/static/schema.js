// What a JSON Schema says of a tool's parameters: as a table, and as a form.

import { h, pill } from "./dom.js";

const MOST = 200; // parameters that are shown: nobody fills in more
const DEEP = 8;

/** Return a parameter's own schema: behind a reference, or what may be there if not null. */
export function resolved(schema, root, depth = 0) {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return {};
  if (depth > DEEP) return {};
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#/")) {
    const found = schema.$ref.slice(2).split("/").reduce((at, key) => {
      const name = decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~");
      return at !== null && typeof at === "object" && Object.hasOwn(at, name) ? at[name] : undefined;
    }, root);
    const { $ref: _, ...rest } = schema;
    return { ...resolved(found, root, depth + 1), ...rest };
  }
  const choices = Array.isArray(schema.anyOf) ? schema.anyOf : Array.isArray(schema.oneOf) ? schema.oneOf : [];
  const others = choices.filter((each) => each?.type !== "null");
  if (choices.length && others.length === 1) {
    const { anyOf: _a, oneOf: _o, ...rest } = schema;
    return { ...resolved(others[0], root, depth + 1), ...rest };
  }
  return schema;
}

/** Return the one kind that a value is of, or `json` where it may be of several. */
export function kindOf(schema) {
  if (Array.isArray(schema.enum) && schema.enum.length) return "enum";
  if ("const" in schema) return "enum";
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((each) => each !== "null");
  return types.length === 1 && ["string", "number", "integer", "boolean"].includes(types[0]) ? types[0] : "json";
}

/** Return each parameter: its name, its schema, and whether it has to be given. */
export function parametersOf(schema) {
  const properties = typeof schema?.properties === "object" && schema.properties !== null ? schema.properties : {};
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  return Object.entries(properties).slice(0, MOST)
    .map(([name, each]) => ({ name, schema: resolved(each, schema), isRequired: required.has(name) }));
}

/** Return the parameters as a table. */
export function parameters(schema) {
  const found = parametersOf(schema);
  if (!found.length) return h("p", { class: "dim" }, "It takes none.");
  return h("div", { class: "scroll" }, h("table", { class: "parameters" },
    h("thead", {}, h("tr", {}, ["Name", "Type", "Description"].map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, found.map(({ name, schema: each, isRequired }) => h("tr", {},
      h("td", {}, h("code", {}, name), isRequired && pill("required", "accent")),
      h("td", {}, typeOf(each)),
      h("td", {}, typeof each.description === "string" ? each.description : ""))))));
}

function typeOf(schema) {
  if (kindOf(schema) === "enum") return (schema.enum ?? [schema.const]).map((each) => JSON.stringify(each)).join(" | ");
  const type = Array.isArray(schema.type) ? schema.type.join(" | ") : schema.type ?? "any";
  if (type === "array" && typeof schema.items?.type === "string") return `array of ${schema.items.type}`;
  return schema.format ? `${type} (${schema.format})` : String(type);
}

/** A form for the arguments of a tool: its elements, and what was filled in. */
export function makeForm(schema) {
  const fields = parametersOf(schema).map(makeField);
  const element = h("div", { class: "fields" },
    fields.length ? fields.map((each) => each.element) : h("p", { class: "dim" }, "It takes no arguments."));
  const values = () => {
    const found = {};
    for (const each of fields) each.put(found);
    return found;
  };
  return { element, values, set: (given) => fields.forEach((each) => each.set(given)) };
}

function makeField({ name, schema, isRequired }, at) {
  const id = `argument-${at}`;
  const about = typeof schema.description === "string" ? schema.description : "";
  const input = makeInput(id, schema, isRequired);
  const problem = h("p", { class: "problem", id: `${id}-problem`, role: "alert" });
  input.setAttribute("aria-describedby", `${id}-about ${id}-problem`);
  const element = h("div", { class: "field" },
    h("label", { for: id }, name, isRequired ? h("span", { class: "must" }, " required") : "", h("span", { class: "dim" }, ` ${typeOf(schema)}`)),
    input, about && h("p", { class: "dim", id: `${id}-about` }, about), problem);
  const put = (found) => {
    problem.textContent = "";
    input.removeAttribute("aria-invalid");
    const text = input.value;
    if (text === "" && !(isRequired && kindOf(schema) === "string")) {
      if (isRequired) fail("It has to be given");
      return;
    }
    try {
      // Not an assignment: a server may call a parameter `__proto__`.
      Object.defineProperty(found, name, { value: valueOf(text, schema), enumerable: true, configurable: true, writable: true });
    } catch {
      fail(kindOf(schema) === "json" ? "This is not JSON" : "This is no number");
    }
  };
  const fail = (text) => {
    problem.textContent = text;
    input.setAttribute("aria-invalid", "true");
    throw Object.assign(new Error(`${name}: ${text}`), { field: input });
  };
  const set = (given) => {
    if (!Object.hasOwn(given, name)) input.value = "";
    else if (kindOf(schema) === "string") input.value = String(given[name]);
    else input.value = JSON.stringify(given[name], null, kindOf(schema) === "json" ? 2 : 0);
  };
  return { element, put, set };
}

function makeInput(id, schema, isRequired) {
  const initial = "default" in schema ? `default: ${JSON.stringify(schema.default)}` : "";
  const kind = kindOf(schema);
  if (kind === "enum" || kind === "boolean") {
    const values = kind === "boolean" ? [true, false] : schema.enum ?? [schema.const];
    return h("select", { id }, h("option", { value: "" }, isRequired ? "choose" : initial || "not given"),
      values.map((each) => h("option", { value: JSON.stringify(each) }, typeof each === "string" ? each : JSON.stringify(each))));
  }
  if (kind === "number" || kind === "integer") {
    return h("input", { id, inputmode: "decimal", autocomplete: "off", placeholder: initial, type: "text" });
  }
  const rows = kind === "json" ? 3 : 1;
  const placeholder = initial || (kind === "json" ? (schema.type === "array" ? "[…]" : schema.type === "object" ? "{…}" : "JSON") : "");
  return h("textarea", { id, rows, spellcheck: "false", autocomplete: "off", placeholder, class: kind === "json" ? "code" : "short" });
}

function valueOf(text, schema) {
  const kind = kindOf(schema);
  if (kind === "string") return text;
  const value = JSON.parse(text);
  if ((kind === "number" || kind === "integer") && typeof value !== "number") throw new Error("no number");
  return value;
}
