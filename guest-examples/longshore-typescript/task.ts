// The call that is running, and what it can tell and ask.

import * as host from "longshore:tool/task@0.1.0";

/** The call was cancelled: clean up and let it pass. */
export class Cancelled extends Error {
  override name = "Cancelled";
}

/** There is no answer, and the message says why. */
export class AskError extends Error {
  override name = "AskError";
}

/** Says in a few words what the call is doing now. */
export function status(message: string): void {
  host.setStatus(message);
}

/** Writes to the log of the call: the operator's, and the client's if it asked for this level. */
export function log(message: string, level: host.Level = "info"): void {
  host.log(level, undefined, message);
}

/** Waits without using up CPU, unless a cancel wakes it: then it throws `Cancelled`. */
export function sleep(ms: number): void {
  // Rounded up, so that a wait is never shorter than asked for.
  if (!host.sleep(Math.ceil(ms))) throw new Cancelled("the call was cancelled");
}

/**
 * Shows a form of these fields, each a flat JSON Schema and all of them required, and waits for the answer.
 *
 * Nothing if the person declined or closed it. Throws `Cancelled` if the call was cancelled, `AskError` if there is no
 * answer.
 */
export function ask<T>(key: string, message: string, fields: Record<keyof T, object>): T | undefined {
  const schema = { type: "object", properties: fields, required: Object.keys(fields) };
  let answer: host.Answer;
  try {
    answer = host.ask(key, { tag: "form", val: { message, schema: JSON.stringify(schema) } }, undefined);
  } catch (thrown) {
    const { payload } = thrown as { payload?: host.AskError };
    throw payload ? noAnswer(payload) : thrown;
  }
  return answer.tag === "accepted" ? JSON.parse(answer.val ?? "{}") : undefined;
}

function noAnswer(error: host.AskError): Error {
  switch (error.tag) {
    case "call-cancelled":
      return new Cancelled("the call was cancelled");
    case "timed-out":
      return new AskError("nobody answered the question in time");
    case "unsupported":
      return new AskError(`this client cannot be asked: ${error.val}`);
    case "invalid":
      return new AskError(`the question is malformed: ${error.val}`);
    case "limit":
      return new AskError(`the question is over a limit: ${error.val}`);
  }
}
