// As much as the helper uses of what a component imports. A variant has its case in `tag` and what belongs to it in
// `val`; an error comes as the `payload` of what is thrown. No argument may be left out: `undefined` stands for none.

declare module "longshore:tool/task@0.1.0" {
  type Level = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";
  type Question = { tag: "form"; val: { message: string; schema: string } };
  type Answer = { tag: "accepted"; val?: string } | { tag: "declined" } | { tag: "dismissed" };
  type AskError =
    | { tag: "unsupported" | "invalid" | "limit"; val: string }
    | { tag: "timed-out" }
    | { tag: "call-cancelled" };

  export function setStatus(message: string): void;
  export function reportProgress(done: number, total: number | undefined, message: string | undefined): void;
  export function isCancelled(): boolean;
  export function stepBegin(name: string): Uint8Array | undefined | null;
  export function stepEnd(name: string, value: Uint8Array): void;
  export function log(level: Level, logger: string | undefined, message: string): void;
  export function sleep(ms: number): boolean;
  export function ask(key: string, question: Question, waitMs: number | undefined): Answer;
}

declare module "wasi:random/random@0.2.12" {
  export function getRandomBytes(length: number): Uint8Array;
}

declare module "wasi:cli/stdout@0.2.12" {
  export function getStdout(): { blockingWriteAndFlush(bytes: Uint8Array): void };
}

declare module "wasi:cli/stderr@0.2.12" {
  export function getStderr(): { blockingWriteAndFlush(bytes: Uint8Array): void };
}

declare module "wasi:http/types@0.2.12" {
  // These go before what they were made of.
  export interface Pollable extends Disposable {
    block(): void;
  }
  export interface InputStream extends Disposable {
    blockingRead(length: number): Uint8Array;
  }
  export interface OutputStream extends Disposable {
    checkWrite(): number;
    write(bytes: Uint8Array): void;
    flush(): void;
    subscribe(): Pollable;
  }
  type Tagged = { tag: string; val?: unknown };
  type Result<T, E> = { tag: "ok"; val: T } | { tag: "err"; val: E };
  export type ErrorCode = Tagged;

  export class Fields {
    static fromList(entries: [string, Uint8Array][]): Fields;
    entries(): [string, Uint8Array][];
    [Symbol.dispose](): void;
  }
  export class OutgoingRequest {
    constructor(headers: Fields);
    body(): OutgoingBody;
    setMethod(method: Tagged): void;
    setScheme(scheme: Tagged): void;
    setAuthority(name: string): void;
    setPathWithQuery(path: string): void;
  }
  export class OutgoingBody {
    write(): OutputStream;
    static finish(body: OutgoingBody, trailers: Fields | undefined): void;
  }
  export class RequestOptions {
    setConnectTimeout(ns: number): void;
    setFirstByteTimeout(ns: number): void;
    setBetweenBytesTimeout(ns: number): void;
  }
  export interface FutureIncomingResponse extends Disposable {
    subscribe(): Pollable;
    // The outer error says that it was taken before.
    get(): { tag: "ok"; val: Result<IncomingResponse, ErrorCode> } | undefined | null;
  }
  export interface IncomingResponse extends Disposable {
    status(): number;
    headers(): Fields;
    consume(): IncomingBody;
  }
  export interface IncomingBody extends Disposable {
    stream(): InputStream;
  }
}

declare module "wasi:http/outgoing-handler@0.2.12" {
  import type { FutureIncomingResponse, OutgoingRequest, RequestOptions } from "wasi:http/types@0.2.12";

  export function handle(request: OutgoingRequest, options: RequestOptions | undefined): FutureIncomingResponse;
}
