// A tool of which there is one in each language, alike in all that a client sees: it says how far it is, asks a
// question, heeds a cancel, refuses an argument, and answers with data.

import { task, tool } from "longshore";

tool({
  name: "survey-javascript",
  description: "Looks at a topic in rounds, and asks the person for a mark.",
  taskMode: "always",
  input: {
    topic: { type: "string", description: "What it is about." },
    rounds: { type: "integer", minimum: 1, maximum: 1000, description: "How many looks to take.", default: 3 },
    pause: { type: "integer", minimum: 0, description: "Milliseconds between two looks.", default: 0 },
  },
  output: { type: "object" },
  run({ topic, rounds, pause }) {
    check(topic);
    let seen = "";
    for (let round = 1; round <= rounds; round++) {
      task.status(`round ${round} of ${rounds}`);
      task.progress(round, rounds);
      seen += task.step("look", () => look(topic, round));
      task.sleep(pause);
    }
    return { topic, rounds, seen, ...opinion(topic) };
  },
});

/**
 * A look is done once, even if the server dies.
 *
 * @param {string} topic
 * @param {number} round
 */
function look(topic, round) {
  const letters = [...topic];
  return letters[(round - 1) % letters.length];
}

/** @param {string} topic */
function check(topic) {
  if (topic === "") throw new RangeError("a survey needs a topic");
}

/** @param {string} topic */
function opinion(topic) {
  const fields = { mark: { type: "integer", minimum: 1, maximum: 5, description: "From 1 to 5." } };
  try {
    const given = task.ask("mark", `What do you think of ${topic}?`, fields);
    return given ? { answer: "answered", mark: given.mark } : { answer: "declined", mark: null };
  } catch (thrown) {
    if (thrown instanceof task.Unsupported) return { answer: "unsupported", mark: null };
    throw thrown;
  }
}
