// Sessions over WebSocket by the official openai SDK, unchanged but for its base URL: with
// the library ws, and with the WebSocket that browsers have.

import assert from "node:assert/strict";
import { suite, test } from "node:test";
import OpenAI, { AzureOpenAI } from "openai";
import { OpenAIRealtimeWebSocket } from "openai/realtime/websocket";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const { PACER_URL: pacer, PACER_KEY: key, PACER_NARROW_KEY: narrowKey } = process.env;
const client = (apiKey = key) => new OpenAI({ baseURL: pacer + "/v1", apiKey, maxRetries: 0 });
const azure = () => new AzureOpenAI({ baseURL: pacer + "/openai", apiKey: key, apiVersion: "2025-04-01-preview", deployment: "voice" });

// converse asks for one answer, and returns the events that came.
function converse(session) {
  return new Promise((resolve, reject) => {
    const came = [];
    session.on("error", reject);
    session.on("event", (event) => {
      came.push(event.type);
      if (event.type === "session.created") {
        session.send({ type: "session.update", session: { type: "realtime", output_modalities: ["text"] } });
        session.send({ type: "response.create" });
      }
      if (event.type === "response.done") {
        assert.equal(event.response.usage.total_tokens, 30);
        session.close();
        resolve(came);
      }
    });
  });
}

const whole = ["session.created", "session.updated", "response.output_text.delta", "response.done"];

suite("sessions", () => {
  test("with ws", async () => {
    assert.deepEqual(await converse(new OpenAIRealtimeWS({ model: "voice" }, client())), whole);
  });

  test("as browsers do", async () => {
    assert.deepEqual(await converse(new OpenAIRealtimeWebSocket({ model: "voice" }, client())), whole);
  });

  test("as Azure's clients do, with ws", async () => {
    assert.deepEqual(await converse(await OpenAIRealtimeWS.azure(azure())), whole);
  });

  test("as Azure's clients do in browsers, whose key is in the query", async () => {
    assert.deepEqual(await converse(await OpenAIRealtimeWebSocket.azure(azure())), whole);
  });

  test("a key that may not", async () => {
    await assert.rejects(converse(new OpenAIRealtimeWS({ model: "voice" }, client(narrowKey))), /404/);
  });
});
