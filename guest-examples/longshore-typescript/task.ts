// The call that is running, and what it can tell and ask.

import * as host from "longshore:tool/task@0.1.0";
import { fromUtf8, utf8 } from "./utf8";

/** The call was cancelled: clean up and let it pass. */
export class Cancelled extends Error {
  override name = "Cancelled";
}

/** There is no answer, and the message says why. */
export class AskError extends Error {
  override name: string = "AskError";
}

/** The client of this call cannot be asked this. */
export class Unsupported extends AskError {
  override name = "Unsupported";
}

/** Says in a few words what the call is doing now. */
export function status(message: string): void {
  host.setStatus(message);
}

/** Says how far the call is, in any unit. It is not a status: set one if people are to read it. */
export function progress(done: number, total?: number, message?: string): void {
  host.reportProgress(done, total, message);
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

/** Whether the call was cancelled. Whoever looks now and then has a moment to clean up when it is. */
export function isCancelled(): boolean {
  return host.isCancelled();
}

/** Throws `Cancelled` if the call was cancelled. */
export function checkCancelled(): void {
  if (host.isCancelled()) throw new Cancelled("the call was cancelled");
}

/**
 * Does a piece of work that is not done again once it is done, even if the process dies, and gives what it gave.
 *
 * That must have a JSON form and be all that the work leaves behind: within it no question is asked, no request left
 * open, and no file written. Steps do not nest; one whose work throws is done again when the call is.
 */
export function step<T>(name: string, work: () => T): T {
  const recorded = host.stepBegin(name);
  if (recorded) return JSON.parse(fromUtf8(recorded));
  const value = JSON.stringify(work());
  if (value === undefined) throw new TypeError(`the step ${name} must give what has a JSON form`);
  host.stepEnd(name, utf8(value));
  // As it comes back the next time, so that nothing depends on whether it was done before.
  return JSON.parse(value);
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
      return new Unsupported(`this client cannot be asked: ${error.val}`);
    case "invalid":
      return new AskError(`the question is malformed: ${error.val}`);
    case "limit":
      return new AskError(`the question is over a limit: ${error.val}`);
  }
}
