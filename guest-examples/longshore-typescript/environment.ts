// What programs expect of their environment and the engine or its types lack: a console, chance, a steady clock.

import { getStderr } from "wasi:cli/stderr@0.2.12";
import { getStdout } from "wasi:cli/stdout@0.2.12";
import { getRandomBytes } from "wasi:random/random@0.2.12";
import { utf8 } from "./utf8";

type Bytes = Uint8Array<ArrayBuffer>;

declare global {
  // What is printed is kept for the operator, as standard output and standard error.
  var console: Record<"debug" | "error" | "info" | "log" | "warn", (...values: unknown[]) => void>;
  var performance: { now(): number };
  var crypto: { getRandomValues(bytes: Bytes): Bytes };
}

/** What one write may carry (wasi:io/streams, `blocking-write-and-flush`). */
const MOST_AT_ONCE = 4096;

function print(stream: { blockingWriteAndFlush(bytes: Uint8Array): void }, values: unknown[]): void {
  const bytes = utf8(values.map(shown).join(" ") + "\n");
  for (let at = 0; at < bytes.length; at += MOST_AT_ONCE) {
    stream.blockingWriteAndFlush(bytes.subarray(at, at + MOST_AT_ONCE));
  }
}

/** A value as a person reads it. */
function shown(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value}\n${value.stack ?? ""}`.trimEnd();
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // A value that holds itself, or a whole number beyond those of JSON.
    return String(value);
  }
}

const out = (...values: unknown[]): void => print(getStdout(), values);
const err = (...values: unknown[]): void => print(getStderr(), values);

globalThis.console = { debug: out, error: err, info: out, log: out, warn: err };

globalThis.crypto = {
  getRandomValues(bytes) {
    bytes.set(getRandomBytes(bytes.length));
    return bytes;
  },
};

// The engine's own sequence is the same in every call, since it begins when the component is built.
Math.random = () => {
  const [high = 0, low = 0] = new Uint32Array(globalThis.crypto.getRandomValues(new Uint8Array(8)).buffer);
  // 53 bits, all that a number below 1 can hold.
  return ((high >>> 5) * 2 ** 26 + (low >>> 6)) / 2 ** 53;
};
