// Runs code that somebody else wrote, a model mostly. Each call is a sandbox of its own: what the code breaks in here
// is gone with it, and what it takes is bounded by the host.

import { Failed, tool } from "longshore";

tool<{ code: string }>({
  name: "run-js",
  description:
    "Runs JavaScript code. Gives the value of its last expression, and what it printed by `console.log`. " +
    "A value that has no JSON form is given as text. There are no modules, no timers, no files and no network, " +
    "and nothing is kept from one call to the next.",
  input: { code: { type: "string", description: "The code. End it with an expression to see its value." } },
  output: { type: "object" },
  run({ code }) {
    const printed: string[] = [];
    const print = (...values: unknown[]): void => void printed.push(values.map(text).join(" ") + "\n");
    globalThis.console = { debug: print, error: print, info: print, log: print, warn: print };
    try {
      // Not called by its own name, so that the code sees what is global and nothing of this file.
      const value: unknown = (0, eval)(code);
      return { ...shown(value), printed: printed.join("") };
    } catch (thrown) {
      throw new Failed(whatWentWrong(thrown, printed.join("")));
    }
  },
});

function shown(value: unknown): object {
  if (value === undefined) return { value: null };
  if (value instanceof Promise) {
    throw new TypeError("the value is a promise, and nothing goes on here once the code is through: leave out `async`");
  }
  const json = asJson(value);
  return json === undefined ? { repr: text(value) } : { value: JSON.parse(json) };
}

/** A value in JSON, unless something of it would get lost on the way. */
function asJson(value: unknown): string | undefined {
  const isLost = (inner: unknown): boolean =>
    ["bigint", "function", "symbol"].includes(typeof inner) ||
    (typeof inner === "number" && !Number.isFinite(inner)) ||
    inner instanceof Map ||
    inner instanceof Set ||
    inner instanceof Error;
  try {
    let lost = false;
    const json = JSON.stringify(value, (_, inner: unknown) => ((lost ||= isLost(inner)), inner));
    return lost ? undefined : json;
  } catch {
    // A value that holds itself.
    return undefined;
  }
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Map) return `Map(${text([...value])})`;
  if (value instanceof Set) return `Set(${text([...value])})`;
  return asJson(value) ?? String(value);
}

function whatWentWrong(thrown: unknown, printed: string): string {
  const words = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : text(thrown);
  // The engine calls evaluated code so, and the innermost place comes first.
  const line = thrown instanceof Error ? /<input>:(\d+)/.exec(thrown.stack ?? "")?.[1] : undefined;
  return `${line ? `line ${line}: ` : ""}${words}${printed && `\n\nprinted before:\n${printed}`}`;
}
