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
