// Write a Longshore tool in TypeScript:
//
//     import { task, tool } from "longshore";
//
//     tool<{ ms: number }>({
//       name: "wait",
//       description: "Waits for a while.",
//       input: { ms: { type: "number", description: "How long.", default: 1000 } },
//       taskMode: "always",
//       run({ ms }) {
//         task.sleep(ms);
//         return "done";
//       },
//     });
//
// `http` sends requests. What the console prints is kept for the operator; `task.log` reaches the client too. What is
// thrown is an answer that the model can read, and its stack is kept for the operator; `Failed` is one in the author's
// own words.

import "./environment";
import * as http from "./http";
import * as task from "./task";

export { http, task };

/** A tool that takes these arguments. */
export interface Tool<Arguments> {
  /** The name that callers use: 1 to 64 of `A-Za-z0-9_.-`. */
  name: string;
  /** What it does and when to use it. Models choose by this. */
  description: string;
  /** What callers give: a JSON Schema of each. One with a `default` may be left out. */
  input?: Record<keyof Arguments, object>;
  /** A JSON Schema of its result, if that is data and not a text. */
  output?: object;
  /** When a call becomes a task; `auto` if not said. */
  taskMode?: "never" | "on-detach" | "auto" | "always";
  /** Runs it to its end. Everything that waits does so by itself, so there is nothing to be awaited. */
  run(given: Arguments): string | object;
}

/** Makes it a tool of the component. */
export function tool<Arguments = {}>(made: Tool<Arguments>): void {
  const input: Record<string, { default?: unknown }> = made.input ?? {};
  const defaults = Object.entries(input).flatMap(([name, schema]) =>
    "default" in schema ? [[name, schema.default] as const] : [],
  );
  const all = Object.fromEntries(defaults);
  const required = Object.keys(input).filter((name) => !(name in all));
  registered.set(made.name, {
    made,
    schema: { type: "object", properties: input, required, additionalProperties: false },
    // The host has compared it with the schema.
    run: (given) => made.run({ ...all, ...given } as Arguments),
  });
}

/** The tool did not manage, and the message is all that the model reads about it. */
export class Failed extends Error {
  override name = "Failed";
}

interface Registered {
  made: Omit<Tool<never>, "run">;
  schema: object;
  run(given: object): unknown;
}

const registered = new Map<string, Registered>();

/** JSON-RPC 2.0, invalid params: the host only calls tools that were listed, so this is another component's. */
const INVALID_PARAMS = -32602;

/** The component's export. */
export const tools = {
  listTools() {
    return [...registered.values()].map(({ made, schema }) => ({
      name: made.name,
      description: made.description,
      inputSchema: JSON.stringify(schema),
      outputSchema: made.output && JSON.stringify(made.output),
      taskMode: made.taskMode ?? "auto",
      requires: [],
    }));
  },

  callTool(name: string, given: string) {
    const called = registered.get(name);
    if (called === undefined) {
      const error = { code: INVALID_PARAMS, message: `no tool ${name} in this component` };
      throw new Ended({ tag: "protocol", val: error });
    }
    try {
      const answer: unknown = called.run(JSON.parse(given));
      if (typeof answer === "string") return text(answer);
      if (called.made.output && answer instanceof Object && !(answer instanceof Promise)) {
        const structured = JSON.stringify(answer);
        return { ...text(structured), structured };
      }
      const wanted = called.made.output ? "what its output says" : "a text";
      throw new TypeError(`${name} must return ${wanted} when it is done, and it returned ${kind(answer)}`);
    } catch (thrown) {
      throw new Ended(meaning(thrown));
    }
  },
};

/** How a call ends that does not end well, in the form in which the engine passes it on. */
class Ended {
  constructor(readonly payload: object) {}
}

function meaning(thrown: unknown): object {
  if (thrown instanceof task.Cancelled) return { tag: "cancelled" };
  if (thrown instanceof Failed || thrown instanceof task.AskError || thrown instanceof http.HttpError) {
    return { tag: "failed", val: text(thrown.message) };
  }
  console.error(thrown);
  return { tag: "failed", val: text(String(thrown)) };
}

function kind(value: unknown): string {
  return value instanceof Promise ? "a promise: leave out `async`" : typeof value;
}

function text(val: string) {
  return { content: [{ tag: "text", val }] };
}
