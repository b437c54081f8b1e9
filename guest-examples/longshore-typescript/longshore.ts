// Write a Longshore tool in TypeScript:
//
//     import { task, tool } from "longshore";
//
//     tool({
//       name: "wait",
//       description: "Waits for a second.",
//       taskMode: "always",
//       run() {
//         task.sleep(1000);
//         return "done";
//       },
//     });
//
// What the console prints is kept for the operator; `task.log` reaches the client too. What is thrown is an answer that
// the model can read, and its stack is kept for the operator.

import "./environment";
import * as task from "./task";

export { task };

/** A tool without arguments, which answers with a text. */
export interface Tool {
  /** The name that callers use: 1 to 64 of `A-Za-z0-9_.-`. */
  name: string;
  /** What it does and when to use it. Models choose by this. */
  description: string;
  /** When a call becomes a task; `auto` if not said. */
  taskMode?: "never" | "on-detach" | "auto" | "always";
  /** Runs it to its end. Everything that waits does so by itself, so there is nothing to be awaited. */
  run(): string;
}

/** Makes it a tool of the component. */
export function tool(made: Tool): void {
  registered.set(made.name, made);
}

const registered = new Map<string, Tool>();

/** JSON-RPC 2.0, invalid params: the host only calls tools that were listed, so this is another component's. */
const INVALID_PARAMS = -32602;

/** The component's export. */
export const tools = {
  listTools() {
    return [...registered.values()].map(({ name, description, taskMode = "auto" }) => ({
      name,
      description,
      inputSchema: JSON.stringify({ type: "object", properties: {} }),
      taskMode,
      requires: [],
    }));
  },

  callTool(name: string) {
    const called = registered.get(name);
    if (called === undefined) {
      const error = { code: INVALID_PARAMS, message: `no tool ${name} in this component` };
      throw new Ended({ tag: "protocol", val: error });
    }
    try {
      const answer: unknown = called.run();
      if (typeof answer === "string") return text(answer);
      throw new TypeError(`${name} must return a text when it is done, and it returned ${kind(answer)}`);
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
  if (thrown instanceof task.AskError) return { tag: "failed", val: text(thrown.message) };
  console.error(thrown);
  return { tag: "failed", val: text(String(thrown)) };
}

function kind(value: unknown): string {
  return value instanceof Promise ? "a promise: leave out `async`" : typeof value;
}

function text(val: string) {
  return { content: [{ tag: "text", val }] };
}
