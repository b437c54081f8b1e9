// A tool that looks at all that differs from one call to the next: clocks, random numbers, what a person answers. All
// of it is in the result, so that a call which went on in another process, and saw anything else there, cannot hide it.

import { task, tool } from "longshore";

/** How long it waits, by each of the two ways to wait. */
const PAUSE_MS = 20;

tool({
  name: "dice-typescript",
  description: "Rolls dice: asks for a bet and whether to roll twice, and tells all that it saw on the way.",
  taskMode: "always",
  run() {
    console.log("the dice are on the table");
    console.error("nobody has bet yet");
    const start = performance.now();
    const wallBefore = Date.now();
    const random = crypto.getRandomValues(new Uint8Array(8));
    // A map keeps its order here, so chance has to make one.
    const places = new Map([1, 2, 3, 4, 5, 6].map((side) => [side, Math.random()]));
    const sides = [...places.keys()].sort((a, b) => places.get(a)! - places.get(b)!);

    task.status("waiting for a bet");
    const bet = task.ask<{ bet: number }>("bet", "Which side will lie on top?", {
      bet: { type: "integer", minimum: 1, maximum: 6, description: "The side that will lie on top." },
    });
    task.status("rolling");
    task.sleep(PAUSE_MS);
    lookAtTheClockFor(PAUSE_MS);
    const rolls = [sides[random[0]! % 6]];
    console.log("rolled", rolls[0]);
    const steadyBetween = performance.now() - start;

    task.status("waiting to hear whether to go on");
    const again = task.ask<{ again: boolean }>("again", "Once more?", {
      again: { type: "boolean", title: "Roll again" },
    });
    if (again?.again) {
      rolls.push(sides[Math.floor(Math.random() * 6)]);
      console.log("rolled", rolls[1]);
    }
    return JSON.stringify({
      bet: bet?.bet ?? null,
      again: again?.again ?? null,
      rolls,
      sides,
      random: [...random].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
      wallMs: [wallBefore, Date.now()],
      steadyMs: [steadyBetween, performance.now() - start].map(Math.floor),
    });
  },
});

/** The language has no other way to wait without a promise. */
function lookAtTheClockFor(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
