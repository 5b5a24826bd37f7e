// The official openai SDK, unchanged but for its base URL.

import assert from "node:assert/strict";
import { suite, test } from "node:test";
import OpenAI, { toFile } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import * as world from "./world.mjs";

const { messages } = world;
const client = (options = {}) =>
  new OpenAI({ baseURL: world.pacer + "/v1", apiKey: world.key, maxRetries: 0, ...options });
const chat = (body = {}, options = {}, c = client()) =>
  c.chat.completions.create({ model: "chat", messages, max_tokens: 3, ...body }, options);
const tools = [{ type: "function", function: { name: "weather", parameters: world.weather, strict: true } }];

suite("chat", () => {
  test("plain", async () => {
    const answer = await chat({ max_tokens: 12 });
    assert.equal(answer.usage.completion_tokens, 12);
    assert.ok(answer._request_id);
  });

  test("a stream has no usage that was not asked for", async () => {
    let text = "";
    for await (const chunk of await chat({ max_tokens: 12, stream: true })) {
      assert.equal(chunk.choices.length, 1);
      assert.equal(chunk.usage ?? null, null);
      text += chunk.choices[0].delta.content ?? "";
    }
    assert.equal(text.split(" ").length, 13);
  });

  test("a stream with usage", async () => {
    const chunks = [];
    for await (const chunk of await chat({ stream: true, stream_options: { include_usage: true } })) chunks.push(chunk);
    assert.deepEqual(chunks.at(-1).choices, []);
    assert.equal(chunks.at(-1).usage.completion_tokens, 3);
  });

  test("tools", async () => {
    const stream = client().chat.completions.stream({ model: "chat", messages, tools, max_tokens: 9 });
    const answer = await stream.finalChatCompletion();
    const call = answer.choices[0].message.tool_calls[0];
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    assert.equal(call.function.parsed_arguments.days, 7);
    const follow = [...messages, answer.choices[0].message, { role: "tool", tool_call_id: call.id, content: "rain" }];
    assert.ok((await chat({ messages: follow, tools })).choices[0].message.content);
  });

  test("a loop that runs tools", async () => {
    let called;
    const runner = client().chat.completions.runTools({
      model: "chat", messages, max_tokens: 9, stream: true,
      tools: [{ type: "function", function: { name: "weather", parameters: world.weather, parse: JSON.parse, function: (a) => { called = a; return "rain"; } } }],
    });
    assert.ok(await runner.finalContent());
    assert.equal(called.days, 7);
  });

  test("JSON mode", async () => {
    const format = zodResponseFormat(z.object({ city: z.string(), days: z.number() }), "forecast");
    const answer = await client().chat.completions.parse({ model: "chat", messages, max_tokens: 20, response_format: format });
    assert.equal(answer.choices[0].message.parsed.days, 7);
  });

  test("images, n, slashes, reasoning", async () => {
    const content = [{ type: "text", text: "What is this?" }, { type: "image_url", image_url: { url: world.pixel } }];
    assert.equal((await chat({ messages: [{ role: "user", content }] })).usage.completion_tokens, 3);
    assert.deepEqual((await chat({ n: 3 })).choices.map((c) => c.index), [0, 1, 2]);
    assert.equal((await chat({ model: "org/model" })).usage.completion_tokens, 3);
    let reasoned = 0;
    for await (const chunk of await chat({ model: "thinking", max_tokens: 8, stream: true })) {
      reasoned += chunk.choices[0].delta.reasoning_content ? 1 : 0;
    }
    assert.equal(reasoned, 4);
  });

  test("an abort reaches the engine", async () => {
    const before = (await world.truth()).cancelled;
    const stream = await chat({ max_tokens: 100000, stream: true });
    for await (const _ of stream) break; // breaking the loop aborts the request
    const deadline = Date.now() + 30_000;
    while ((await world.truth()).cancelled === before && Date.now() < deadline) await new Promise((r) => setTimeout(r, 50));
    assert.ok((await world.truth()).cancelled > before);
  });

  test("200 streams at once", async () => {
    const c = client({ maxRetries: 4, timeout: 120_000 });
    const one = async () => {
      let tokens = 0;
      for await (const chunk of await chat({ max_tokens: 40, stream: true }, {}, c)) tokens += chunk.choices[0].delta.content ? 1 : 0;
      return tokens;
    };
    assert.deepEqual(await Promise.all(Array.from({ length: 200 }, one)), Array(200).fill(40));
  });
});

suite("other endpoints", () => {
  test("completions, models, embeddings, moderations, images, speech", async () => {
    const c = client();
    assert.equal((await c.completions.create({ model: "chat", prompt: "Once", max_tokens: 5 })).usage.completion_tokens, 5);
    assert.deepEqual((await c.models.list()).data.map((m) => m.id).sort(), ["chat", "dead", "org/model", "thinking", "voice"]);
    assert.equal((await c.models.retrieve("org/model")).id, "org/model");
    assert.equal((await c.embeddings.create({ model: "chat", input: ["one", "three"] })).data[1].embedding.length, 8);
    assert.equal((await c.moderations.create({ model: "chat", input: "hello" })).results[0].flagged, false);
    assert.ok((await c.images.generate({ model: "chat", prompt: "a pixel" })).data[0].b64_json);
    const speech = await c.audio.speech.create({ model: "chat", voice: "alloy", input: "hello" });
    assert.equal((await speech.arrayBuffer()).byteLength, 4096);
  });

  test("transcriptions", async () => {
    const file = await toFile(new Uint8Array(3_000_000), "a.wav");
    assert.equal((await client().audio.transcriptions.create({ model: "chat", file })).text, "heard 3000000 bytes");
  });

  test("responses", async () => {
    const first = await client().responses.create({ model: "chat", input: "hello", max_output_tokens: 6 });
    assert.equal(first.usage.output_tokens, 6);
    const kinds = [];
    const stream = client().responses.stream({ model: "chat", input: "more", previous_response_id: first.id, max_output_tokens: 6 });
    for await (const event of stream) kinds.push(event.type);
    assert.equal(kinds.filter((k) => k === "response.output_text.delta").length, 6);
    assert.equal((await stream.finalResponse()).usage.output_tokens, 6);
    await assert.rejects(client().responses.retrieve("resp_nobody_knows"), OpenAI.NotFoundError);
  });
});

suite("errors", () => {
  const rejects = (promise, type, code) =>
    assert.rejects(promise, (error) => {
      assert.equal(error.constructor, type);
      assert.equal(error.code, code);
      assert.ok(error.requestID);
      return true;
    });

  test("each class", async () => {
    await rejects(chat({}, {}, client({ apiKey: "sk-wrong" })), OpenAI.AuthenticationError, "invalid_api_key");
    await rejects(chat({}, { headers: { "x-pacer-min-tps": "20" } }, client({ apiKey: world.narrowKey })), OpenAI.PermissionDeniedError, "permission_denied");
    await rejects(chat({ model: "nobody" }), OpenAI.NotFoundError, "model_not_found");
    await assert.rejects(chat({ messages: [] }), OpenAI.BadRequestError);
    await assert.rejects(chat({ model: "dead" }), OpenAI.InternalServerError);
    await world.withFault("status", 500, 0, () => assert.rejects(chat(), OpenAI.InternalServerError));
    await world.withFault("stall", true, false, () => assert.rejects(chat({}, {}, client({ timeout: 500 })), OpenAI.APIConnectionTimeoutError));
    await assert.rejects(chat({}, {}, client({ baseURL: "http://127.0.0.1:1/v1" })), OpenAI.APIConnectionError);
  });

  test("rate limit", async () => {
    const c = client({ apiKey: world.limitedKey });
    await chat({}, {}, c).catch(() => {}); // another suite may have had the one of this minute
    await rejects(chat({}, {}, c), OpenAI.RateLimitError, "rate_limit_exceeded");
  });

  test("retry", async () => {
    const answer = await world.withPassingFault("status", 503, 0, 300, () => chat({}, {}, client({ maxRetries: 6 })));
    assert.equal(answer.usage.completion_tokens, 3);
  });

  test("cut", async () => {
    await world.withFault("cut", 4, 0, () =>
      assert.rejects(
        async () => {
          for await (const _ of await chat({ max_tokens: 50, stream: true }));
        },
        (error) => error instanceof OpenAI.APIError && error.code === "upstream_disconnected",
      ),
    );
  });
});
