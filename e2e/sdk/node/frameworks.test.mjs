// What applications are built with: Vercel's AI SDK, LangChain, and the
// official anthropic SDK.

import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { embed, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import * as world from "./world.mjs";

suite("Vercel AI SDK", () => {
  const provider = createOpenAICompatible({ name: "pacer", baseURL: world.pacer + "/v1", apiKey: world.key, supportsStructuredOutputs: true });
  const model = provider("chat");

  test("plain", async () => {
    const { text, usage } = await generateText({ model, prompt: "hello", maxOutputTokens: 12 });
    assert.equal(text.trim().split(" ").length, 12);
    assert.equal(usage.outputTokens, 12);
  });

  test("stream", async () => {
    const { textStream, finishReason } = streamText({ model, prompt: "hello", maxOutputTokens: 12 });
    let pieces = 0;
    for await (const _ of textStream) pieces++;
    assert.equal(pieces, 12);
    assert.equal(await finishReason, "length");
  });

  test("usage where it is asked for", async () => {
    const asking = createOpenAICompatible({ name: "pacer", baseURL: world.pacer + "/v1", apiKey: world.key, includeUsage: true });
    const answer = streamText({ model: asking("chat"), prompt: "hello", maxOutputTokens: 12 });
    await answer.consumeStream();
    assert.equal((await answer.usage).outputTokens, 12);
  });

  test("tools, in steps", async () => {
    let called;
    const weather = tool({
      inputSchema: z.object({ city: z.string(), days: z.number() }),
      execute: async (input) => { called = input; return "rain"; },
    });
    const { text } = await generateText({ model, prompt: "hello", tools: { weather }, stopWhen: stepCountIs(3), maxOutputTokens: 9 });
    assert.equal(called.days, 7);
    assert.ok(text);
  });

  test("objects", async () => {
    const { object } = await generateObject({ model, prompt: "hello", schema: z.object({ city: z.string(), days: z.number() }), maxOutputTokens: 20 });
    assert.equal(object.days, 7);
  });

  test("reasoning and embeddings", async () => {
    const { reasoningText } = await generateText({ model: provider("thinking"), prompt: "hello", maxOutputTokens: 8 });
    assert.ok(reasoningText);
    assert.equal((await embed({ model: provider.embeddingModel("chat"), value: "hello" })).embedding.length, 8);
  });
});

suite("LangChain", () => {
  const options = { apiKey: world.key, maxRetries: 0, configuration: { baseURL: world.pacer + "/v1" } };
  const model = (more = {}) => new ChatOpenAI({ model: "chat", maxTokens: 12, ...options, ...more });

  test("plain and stream", async () => {
    const answer = await model().invoke("hello");
    assert.equal(answer.usage_metadata.output_tokens, 12);
    let merged;
    for await (const chunk of await model().stream("hello")) merged = merged ? merged.concat(chunk) : chunk;
    assert.equal(merged.content, answer.content);
    assert.equal(merged.usage_metadata.output_tokens, 12); // it asks for usage by itself, and counts it once
  });

  test("tools and objects", async () => {
    const schema = z.object({ city: z.string(), days: z.number() });
    const bound = model().bindTools([{ name: "weather", description: "the weather", schema }]);
    assert.equal((await bound.invoke("hello")).tool_calls[0].args.days, 7);
    assert.equal((await model({ maxTokens: 20 }).withStructuredOutput(schema, { method: "jsonSchema" }).invoke("hello")).days, 7);
  });

  test("embeddings", async () => {
    const e = new OpenAIEmbeddings({ model: "chat", ...options });
    assert.equal((await e.embedDocuments(["one", "two"]))[1].length, 8);
  });
});

suite("anthropic", () => {
  const client = (more = {}) => new Anthropic({ baseURL: world.pacer, apiKey: world.key, maxRetries: 0, ...more });
  const body = { model: "chat", max_tokens: 6, messages: world.messages };

  test("plain and stream", async () => {
    const answer = await client().messages.create(body);
    assert.equal(answer.usage.output_tokens, 6);
    const final = await client().messages.stream(body).finalMessage();
    assert.equal(final.content[0].text, answer.content[0].text);
    assert.equal(final.usage.output_tokens, 6);
  });

  test("errors", async () => {
    await assert.rejects(client({ apiKey: "wrong" }).messages.create(body), Anthropic.AuthenticationError);
    await assert.rejects(client().messages.create({ ...body, model: "nobody" }), Anthropic.NotFoundError);
    await world.withFault("cut", 4, 0, () => assert.rejects(client().messages.stream({ ...body, max_tokens: 50 }).finalMessage(), Anthropic.APIError));
  });
});
