// A tool that reads a page of the web, from hosts that its operator names.

import { http, tool } from "longshore";

/** How many letters of a text are shown. */
const SHOWN = 4 * 1024;

tool<{ url: string }>({
  name: "fetch-typescript",
  description: "Reads what is at a URL: its status, its type, and the beginning of its text.",
  input: { url: { type: "string", description: "The URL, such as https://example.org/." } },
  output: {
    type: "object",
    properties: {
      status: { type: "integer" },
      content_type: { type: ["string", "null"] },
      bytes: { type: "integer" },
      text: { type: "string" },
    },
    required: ["status", "content_type", "bytes", "text"],
  },
  run({ url }) {
    const response = http.get(url);
    return {
      status: response.status,
      content_type: response.headers["content-type"] ?? null,
      bytes: response.bytes.length,
      text: response.text().slice(0, SHOWN),
    };
  },
});
