// Requests over HTTP, to hosts that the operator lets this tool send them to:
//
//     const now = http.get("https://weather.example.org/now", { query: { city } }).text();
//
// A request that may change something is sent once at most, also if the server dies meanwhile. What became of it is
// then asked of whoever called, or told as `OutcomeUnknown`. Nothing here sends a request again by itself; an error's
// `mayHaveHappened` says whether a tool may do so.

import { handle } from "wasi:http/outgoing-handler@0.2.12";
import * as host from "wasi:http/types@0.2.12";
import { parts } from "./url";
import { fromUtf8, utf8 } from "./utf8";

/** What one read asks for, and what one write gives. */
const CHUNK = 64 * 1024;

/** Why there is no response. */
export type Kind =
  /** This is no URL, or no request. */
  | "Invalid"
  /** The operator does not let this tool send it. */
  | "Denied"
  /** There is no way there: it was not sent. */
  | "Unreachable"
  /** There was no response in time. */
  | "TimedOut"
  /** The response is larger than allowed. */
  | "TooLarge"
  /** The server died while it was under way: it may have been carried out, and may be yet. */
  | "OutcomeUnknown"
  /** Something else went wrong on the way. */
  | "Broken";

/** There is no response, and the message says why. */
export class HttpError extends Error {
  override name = "HttpError";

  constructor(
    readonly kind: Kind,
    message: string,
  ) {
    super(message);
  }

  /** Whether it may have been carried out: then one that changes something must not simply be sent again. */
  get mayHaveHappened(): boolean {
    return !["Invalid", "Denied", "Unreachable"].includes(this.kind);
  }
}

/** What a request has beside its method and its URL. */
export interface Options {
  /** Stands behind the `?` of the URL, whatever letters are in it. */
  query?: Record<string, string>;
  /** `{secret:NAME}` in one stands for a secret, which is filled in when the request is sent. */
  headers?: Record<string, string>;
  /** The body. */
  body?: Uint8Array | string;
  /** The body, as a value that is sent in JSON. */
  json?: unknown;
  /**
   * The longest to wait, in milliseconds, for the connection and for each part of the response. The operator's limits
   * hold as well.
   */
  timeoutMs?: number;
}

/** A response, all of it. */
export class Response {
  constructor(
    readonly status: number,
    /** Names in lower case; of a field that came more than once, the values with commas between them. */
    readonly headers: Readonly<Record<string, string>>,
    readonly bytes: Uint8Array,
  ) {}

  /** Whether its status says that all went well. */
  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  /** Its body as text. What is no UTF-8 in it becomes `\uFFFD`. */
  text(): string {
    return fromUtf8(this.bytes);
  }

  /** Its body, which is JSON. */
  json<T>(): T {
    return JSON.parse(this.text());
  }
}

/** Reads something. */
export function get(url: string, options: Options = {}): Response {
  return request("GET", url, options);
}

/** Does something. */
export function post(url: string, options: Options = {}): Response {
  return request("POST", url, options);
}

/** Sends a request by any method, and waits until its whole response is there, or throws an `HttpError`. */
export function request(method: string, url: string, options: Options = {}): Response {
  const target = parts(url, options.query);
  if (typeof target === "string") throw new HttpError("Invalid", target);
  const { scheme, name, path } = target;
  const headers = new Map(Object.entries(options.headers ?? {}).map(([key, value]) => [key.toLowerCase(), value]));
  let body = options.body ?? "";
  if (options.json !== undefined) {
    body = JSON.stringify(options.json);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
  }
  const bytes = typeof body === "string" ? utf8(body) : body;
  const made = orElse(
    () => {
      const fields = [...headers].map(([key, value]): [string, Uint8Array] => [key, utf8(value)]);
      const made = new host.OutgoingRequest(host.Fields.fromList(fields));
      const known = METHODS.includes(method);
      made.setMethod(known ? { tag: method.toLowerCase() } : { tag: "other", val: method });
      made.setScheme({ tag: scheme });
      made.setAuthority(name);
      made.setPathWithQuery(path);
      return made;
    },
    () => {
      const text = `there is something wrong with the method, the URL or the headers of a request to ${name}`;
      return new HttpError("Invalid", text);
    },
  );
  const outgoing = bytes.length > 0 ? made.body() : undefined;
  using pending = orElse(
    () => handle(made, waits(options.timeoutMs)),
    (code) => failure(name, code as host.ErrorCode),
  );
  if (outgoing) {
    orElse(
      () => write(outgoing, bytes),
      () => new HttpError("Invalid", `the body is too large for a request to ${name}`),
    );
  }
  let answer;
  while (!(answer = pending.get())) blockOn(pending);
  // Whether it was taken before, and within that whether it came.
  const came = answer.val;
  if (came.tag === "err") throw failure(name, came.val);
  return read(came.val, name);
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];

/** What it gives; what a host refuses comes as the `payload` of what is thrown. */
function orElse<T>(run: () => T, error: (payload: unknown) => HttpError): T {
  try {
    return run();
  } catch (thrown) {
    if (!(thrown instanceof Object && "payload" in thrown)) throw thrown;
    throw error(thrown.payload);
  }
}

function blockOn(source: { subscribe(): host.Pollable }): void {
  using ready = source.subscribe();
  ready.block();
}

function waits(ms: number | undefined): host.RequestOptions | undefined {
  if (ms === undefined) return undefined;
  const options = new host.RequestOptions();
  const ns = Math.ceil(ms * 1e6);
  options.setConnectTimeout(ns);
  options.setFirstByteTimeout(ns);
  options.setBetweenBytesTimeout(ns);
  return options;
}

/** Writes all of a body. */
function write(body: host.OutgoingBody, bytes: Uint8Array): void {
  {
    using stream = body.write();
    for (let at = 0; at < bytes.length; ) {
      const room = Math.min(stream.checkWrite(), CHUNK);
      if (room === 0) {
        blockOn(stream);
        continue;
      }
      stream.write(bytes.subarray(at, at + room));
      at += room;
    }
    stream.flush();
  }
  host.OutgoingBody.finish(body, undefined);
}

/** Reads all of a response. */
function read(given: host.IncomingResponse, name: string): Response {
  // Each goes after what was made of it.
  using response = given;
  const headers: Record<string, string> = {};
  using fields = response.headers();
  for (const [key, value] of fields.entries()) {
    const text = String.fromCharCode(...value);
    headers[key] = key in headers ? `${headers[key]}, ${text}` : text;
  }
  using body = response.consume();
  using stream = body.stream();
  const pieces: Uint8Array[] = [];
  for (let piece; (piece = next(stream, name)); ) pieces.push(piece);
  const bytes = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return new Response(response.status(), headers, bytes);
}

/** What comes next; nothing at the end. */
function next(stream: host.InputStream, name: string): Uint8Array | undefined {
  try {
    return stream.blockingRead(CHUNK);
  } catch (thrown) {
    const { payload } = thrown as { payload?: { tag: string } };
    if (payload?.tag === "closed") return undefined;
    if (payload) throw new HttpError("Broken", `what ${name} answered cannot be read`);
    throw thrown;
  }
}

/** What the host says instead of a code, for what none of them means. */
const OUTCOME_UNKNOWN = "outcome-unknown";

const UNREACHABLE: Record<string, string> = {
  "DNS-timeout": "its name was not found in time",
  "DNS-error": "there is no such name",
  "destination-IP-prohibited": "it is at an address that tools are not let to",
  "connection-refused": "it takes no connection",
  "connection-timeout": "it took no connection in time",
  "connection-limit-reached": "too many requests are under way",
  "TLS-certificate-error": "its certificate is not good",
  "TLS-protocol-error": "there is no agreement about how to encrypt",
};

function failure(name: string, code: host.ErrorCode): HttpError {
  // What is not known to come before the request was sent is taken to come after it.
  const why = UNREACHABLE[code.tag];
  if (why) return new HttpError("Unreachable", `${name} cannot be reached: ${why}`);
  const broken = (why: string) => new HttpError("Broken", `the request to ${name} failed: ${why}`);
  switch (code.tag) {
    case "HTTP-request-denied":
      return new HttpError("Denied", `this tool may not send this request to ${name}: its operator can grant it`);
    case "HTTP-request-URI-invalid":
    case "HTTP-request-method-invalid":
      return new HttpError("Invalid", `this is no request to ${name}`);
    case "HTTP-request-body-size":
      return new HttpError("Invalid", `the body is too large for a request to ${name}`);
    case "HTTP-response-timeout":
    case "connection-read-timeout":
    case "connection-write-timeout":
      return new HttpError("TimedOut", `${name} did not answer in time`);
    case "HTTP-response-body-size":
    case "HTTP-response-header-section-size":
    case "HTTP-response-header-size":
      return new HttpError("TooLarge", `what ${name} answered is too large`);
    case "connection-terminated":
      return broken("the connection broke");
    case "HTTP-protocol-error":
      return broken("what it answered is no HTTP");
    case "internal-error":
      if (typeof code.val !== "string") return broken("nobody says why");
      if (!code.val.startsWith(OUTCOME_UNKNOWN)) return broken(code.val);
      return new HttpError(
        "OutcomeUnknown",
        `outcome-unknown: the request to ${name} may have been carried out, and may be yet`,
      );
    default:
      return broken(code.tag);
  }
}
