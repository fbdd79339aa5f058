// Numbers and times, as a person reads them.

const PLAIN = new Intl.NumberFormat("en");

export const number = (value) => PLAIN.format(value);

/** Return a number with its noun. */
export const counted = (value, noun, more = `${noun}s`) => `${number(value)} ${value === 1 ? noun : more}`;

/** Return a number with the precision that one of tokens deserves. */
export function tokens(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(0)} k`;
  if (size >= 1e3) return `${(value / 1e3).toFixed(1)} k`;
  return number(Math.round(value));
}

export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : ago(seconds);
}

export function ago(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

/** Return when something was, on the clock of whoever looks. */
export function clock(at) {
  return new Date(at * 1000).toLocaleTimeString("en-GB");
}

export function day(date) {
  return new Date(`${date}T12:00:00`).toLocaleDateString("en", { month: "short", day: "numeric" });
}

/** Tokens that a text is estimated at, as everywhere else in the aggregator. */
export const estimated = (text) => Math.ceil([...text].length / 2.5);

/** Return a word as a shell takes it for one. */
export const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`);

export const pretty = (value) => JSON.stringify(value, null, 2);
