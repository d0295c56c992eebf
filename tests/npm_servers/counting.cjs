// Preloaded into node servers that keep no count of what they do: every call that reaches the server, and every
// answer to one of its questions, becomes a line of the file that M3_EFFECTS names. Over either transport a message
// is read with one JSON.parse.
"use strict";
const { appendFileSync } = require("node:fs");

const parse = JSON.parse;
JSON.parse = function (text, ...rest) {
  const message = parse.call(this, text, ...rest);
  const what = kind(message);
  if (what !== null) {
    appendFileSync(process.env.M3_EFFECTS, `${JSON.stringify({ what, id: message.id })}\n`);
  }
  return message;
};

function kind(message) {
  if (message === null || typeof message !== "object" || message.jsonrpc !== "2.0") return null;
  if (message.method === "tools/call") return "call";
  return message.method === undefined && message.result?.action !== undefined ? "answer" : null;
}
