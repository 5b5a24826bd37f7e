// Official SDKs for Node before backends of other dialects, as pairs.py has those
// for Python: the same cases, each as a document and as a stream.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import { HTTPClient, Mistral } from "@mistralai/mistralai";
import { CohereClientV2, CohereError } from "cohere-ai";
import Groq from "groq-sdk";
import OpenAI from "openai";

const { PACER_URL, FAKES_URL } = process.env;

const seen = async () => (await fetch(FAKES_URL + "/seen")).json();

const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;

// get is what stands at path; null where nothing does.
function get(value, path) {
  for (const step of path.split(".")) {
    if (step === "#") return value.length;
    value = value?.[step];
  }
  return value ?? null;
}

// differ is the first of want that value does not hold, in words.
function differ(what, value, want, model) {
  for (let [path, expected] of Object.entries(want ?? {})) {
    let got = get(value, path);
    if (expected !== null && typeof expected === "object" && "JSON" in expected) {
      got = JSON.parse(got);
      expected = expected.JSON;
    }
    if (expected === "MODEL") expected = model;
    if (!isDeepStrictEqual(JSON.parse(JSON.stringify(got)), expected)) {
      return `${what}: ${path} is ${JSON.stringify(got)}, want ${JSON.stringify(expected)}`;
    }
  }
}

// body is what the SDK is called with: extra_body is Python's word for the rest.
const spread = ({ extra_body, ...body }) => ({ ...body, ...extra_body });

const chat = {
  client: "openai (Node)",
  package: "openai",
  targets: ["anthropic", "claude-5", "gemini", "bedrock", "cohere", "mistral"],
  overloaded: /Overloaded/, // how it tells of an error within a stream
  has: () => true, // whether the SDK has all that a body says
  code: (err) => err.status,
  param: (err) => err.param,
  words: (text) => ({ messages: [{ role: "user", content: text }] }),
  api: new OpenAI({ baseURL: PACER_URL + "/v1", apiKey: "x", maxRetries: 0 }),
  error: OpenAI.APIError,
  create: (api, body) => api.chat.completions.create(body).withResponse(),
  async stream(api, body) {
    const stream = api.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
    let thought = ""; // of fields that it does not know, the SDK keeps the last piece alone
    const signed = [];
    stream.on("chunk", (chunk) => {
      thought += chunk.choices[0]?.delta.reasoning_content ?? "";
      signed.push(...(chunk.choices[0]?.delta.thinking_blocks ?? []));
    });
    try {
      const final = await stream.finalChatCompletion();
      if (thought) final.choices[0].message.reasoning_content = thought;
      if (signed.length) final.choices[0].message.thinking_blocks = signed;
      return final;
    } catch (err) {
      // It throws for answers that were cut; what it has gathered stays.
      if (!/LengthFinishReason|ContentFilterFinishReason/.test(err.constructor.name)) throw err;
      return { choices: [{ finish_reason: err.constructor.name.startsWith("Length") ? "length" : "content_filter" }] };
    }
  },
  pieces: (api, body) => api.chat.completions.create({ ...body, stream: true }),
};

const messages = {
  ...chat,
  client: "anthropic (Node)",
  package: "@anthropic-ai/sdk",
  targets: ["engine", "gemini", "bedrock", "cohere", "mistral"],
  param: (err, name) => name, // it has no such thing
  words: (text) => ({ max_tokens: 100, messages: [{ role: "user", content: text }] }),
  api: new Anthropic({ baseURL: PACER_URL, apiKey: "x", maxRetries: 0 }),
  error: Anthropic.APIError,
  create: (api, body) => api.messages.create(body).withResponse(),
  stream: (api, body) => api.messages.stream(body).finalMessage(),
  pieces: (api, body) => api.messages.create({ ...body, stream: true }),
};

const responses = {
  ...chat,
  client: "openai (Node), responses",
  targets: ["engine", "anthropic", "gemini", "bedrock", "cohere", "mistral"],
  words: (text) => ({ input: text }),
  create: (api, body) => api.responses.create(body).withResponse(),
  stream: (api, body) => api.responses.stream(body).finalResponse(),
  pieces: (api, body) => api.responses.create({ ...body, stream: true }),
};

// folded is one answer of generateContent from its chunks: text is joined to that
// before it.
function folded(chunks) {
  const parts = [];
  let out = {};
  for (const { candidates } of chunks) {
    for (const candidate of candidates ?? []) {
      for (const part of candidate.content?.parts ?? []) {
        const last = parts.at(-1);
        if ("text" in part && last && "text" in last && last.thought === part.thought) parts[parts.length - 1] = { ...last, ...part, text: last.text + part.text };
        else if (part.text !== "") parts.push({ ...part });
      }
      out = { ...out, ...candidate };
    }
  }
  return { ...chunks.at(-1), candidates: [{ ...out, content: { role: "model", parts } }] };
}

const google = new GoogleGenAI({ apiKey: "x", httpOptions: { baseUrl: PACER_URL } });
const HELLO = 'Hello "wörld" 😀\n';

const generate = {
  ...chat,
  client: "google-genai (Node)",
  package: "@google/genai",
  targets: ["engine", "anthropic", "claude-5", "bedrock", "cohere", "mistral", "gemini"],
  words: (text) => ({ contents: text }),
  api: google,
  error: ApiError,
  async create(api, body) {
    const data = await api.models.generateContent(body);
    return { data, response: { headers: new Headers(data.sdkHttpResponse.headers) } };
  },
  async stream(api, body) {
    const chunks = [];
    for await (const chunk of await api.models.generateContentStream(body)) chunks.push(chunk);
    return folded(chunks);
  },
  async pieces(api, body) {
    const controller = new AbortController();
    const stream = await api.models.generateContentStream({ ...body, config: { abortSignal: controller.signal } });
    return { controller, [Symbol.asyncIterator]: () => stream };
  },
  param: (err) => JSON.parse(err.message).error.details.find((d) => d.fieldViolations)?.fieldViolations[0].field,
  // beside is what only this API has: counting, and the list of models.
  async beside(pair) {
    const n = (await google.models.countTokens({ model: pair.target, contents: "one two three four" })).totalTokens;
    pair.note("countTokens", (pair.target === "gemini" ? n === 42 : n >= 4 && n <= 30) ? null : `${n} tokens`);
    const names = [];
    for await (const m of await google.models.list()) names.push(m.name);
    pair.note("the models", names.includes(`models/${pair.target}`) ? null : `${names}`);
    const got = (await google.models.get({ model: pair.target })).name;
    pair.note("a model", got === `models/${pair.target}` ? null : got);
    const chat = google.chats.create({ model: pair.target });
    await chat.sendMessage({ message: "one" });
    for await (const _ of await chat.sendMessageStream({ message: "two" }));
    const answer = (await chat.sendMessage({ message: "hi" })).text;
    const { body } = (await seen()).last;
    const roles = (body.contents ?? body.messages).map((m) => m.role);
    const turns = roles.filter((role, i) => role !== roles[i - 1]).length;
    pair.note("a chat of three turns", turns === 5 && answer === HELLO ? null : `${turns} turns, ${answer}`);
  },
};

// foldedChat is one chat completion from its chunks.
async function foldedChat(chunks) {
  const message = { role: "assistant", content: null };
  const calls = [];
  let [out, choice] = [{}, {}];
  for await (const chunk of chunks) {
    out = { ...out, ...chunk };
    for (const c of chunk.choices) {
      choice = { ...choice, ...Object.fromEntries(Object.entries(c).filter(([, v]) => v !== null)) };
      for (const name of ["content", "reasoning_content"]) {
        if (c.delta[name]) message[name] = (message[name] ?? "") + c.delta[name];
      }
      message.thinking_blocks = [...(message.thinking_blocks ?? []), ...(c.delta.thinking_blocks ?? [])];
      for (const call of c.delta.tool_calls ?? []) {
        calls[call.index] ??= { id: call.id, function: { name: call.function.name, arguments: "" } };
        calls[call.index].function.arguments += call.function.arguments ?? "";
      }
    }
  }
  if (calls.length) message.tool_calls = calls;
  return { ...out, choices: [{ ...choice, message }] };
}

// groq is a fork of openai's SDK, without what it has for streams.
const groq = {
  ...chat,
  client: "groq (Node)",
  package: "groq-sdk",
  cases: "chat",
  targets: ["anthropic", "claude-5", "gemini", "bedrock", "cohere", "mistral"],
  api: new Groq({ baseURL: PACER_URL, apiKey: "x", maxRetries: 0 }),
  error: Groq.APIError,
  param: (err) => err.error.error.param,
  async stream(api, body) {
    return foldedChat(await api.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } }));
  },
};

// renamed has the names of fields written anew, but for those within what is free: the
// SDKs of Mistral and Cohere have names of their own language.
function renamed(value, name, free) {
  if (Array.isArray(value)) return value.map((item) => renamed(item, name, free));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [name(key), free.has(key) ? item : renamed(item, name, free)]));
}

const camel = (key) => key.replace(/_(.)/g, (_, c) => c.toUpperCase());
const snake = (key) => key.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase());

// mistralFields are what chat completions have in Mistral's SDK.
const mistralFields = new Set(
  "model temperature top_p max_tokens stream stop random_seed metadata messages response_format tools tool_choice presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode safe_prompt prompt_cache_key service_tier".split(" "),
);

// toMistral is a body in the words of Mistral's SDK, which wants parameters of each tool.
function toMistral(body) {
  const free = new Set(["parameters", "schema", "metadata"]);
  const tools = body.tools?.map((t) => ({ ...t, function: { parameters: {}, ...t.function } }));
  return renamed(tools ? { ...body, tools } : body, (key) => (key === "schema" ? "schemaDefinition" : camel(key)), free);
}

let mistralHeaders = new Headers(); // of its last answer, as the SDK gives none out
const http = new HTTPClient();
http.addHook("response", (response) => (mistralHeaders = response.headers));

const mistral = {
  ...chat,
  client: "mistralai (Node)",
  package: "@mistralai/mistralai",
  cases: "chat",
  targets: ["anthropic", "claude-5", "gemini", "bedrock", "cohere", "mistral"],
  overloaded: /Invalid input/, // it says that this is no chunk
  api: new Mistral({ serverURL: PACER_URL, apiKey: "x", httpClient: http }),
  error: Error,
  code: (err) => err.statusCode,
  param: (err) => JSON.parse(err.body).error.param,
  has(body) {
    const parts = body.messages.flatMap((m) => (Array.isArray(m.content) ? m.content : []));
    return (
      Object.keys(body).every((key) => mistralFields.has(key)) &&
      parts.every((p) => ["text", "image_url"].includes(p.type)) &&
      body.messages.every((m) => ["system", "user", "assistant", "tool"].includes(m.role) && !m.thinking_blocks)
    );
  },
  async create(api, body) {
    const data = renamed(await api.chat.complete(toMistral(body)), snake, new Set());
    return { data, response: { headers: mistralHeaders } };
  },
  async stream(api, body) {
    const chunks = [];
    for await (const event of await api.chat.stream(toMistral(body))) chunks.push(renamed(event.data, snake, new Set()));
    return foldedChat(chunks);
  },
  async pieces(api, body) {
    const controller = new AbortController();
    const stream = await api.chat.stream(toMistral(body), { fetchOptions: { signal: controller.signal } });
    return { controller, [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator]() };
  },
};

// foldedCohere is one answer of Cohere's chat from its events, which have to follow one
// another as its API has them.
function foldedCohere(events) {
  const message = { role: null, content: [], tool_calls: [] };
  let [out, ended] = [{}, 0];
  for (const e of events) {
    const said = e.delta?.message ?? {};
    if (e.type === "message-start") {
      [out.id, message.role] = [e.id, said.role];
    } else if (e.type === "content-start") {
      if (e.index !== message.content.length) throw new Error(`content ${e.index} begins after ${message.content.length}`);
      message.content.push({ ...said.content });
    } else if (e.type === "content-delta") {
      for (const name of ["text", "thinking"]) if (said.content[name]) message.content[e.index][name] += said.content[name];
    } else if (e.type === "tool-call-start") {
      if (e.index !== message.tool_calls.length) throw new Error(`call ${e.index} begins after ${message.tool_calls.length}`);
      message.tool_calls.push({ id: said.tool_calls.id, function: { ...said.tool_calls.function } });
    } else if (e.type === "tool-call-delta") {
      message.tool_calls[e.index].function.arguments += said.tool_calls.function.arguments;
    } else if (e.type === "content-end" || e.type === "tool-call-end") {
      ended++;
    } else if (e.type === "message-end") {
      out = { ...out, ...e.delta };
    }
  }
  if (ended !== message.content.length + message.tool_calls.length) throw new Error(`${ended} blocks ended`);
  return { ...out, message };
}

const toCohere = (body) => renamed(body, camel, new Set(["parameters", "json_schema", "data"]));
const fromCohere = (value) => renamed(value, snake, new Set());
const once = { maxRetries: 0 };

const cohere = {
  ...chat,
  client: "cohere (Node)",
  package: "cohere-ai",
  targets: ["engine", "anthropic", "claude-5", "gemini", "bedrock", "cohere", "mistral"],
  api: new CohereClientV2({ baseUrl: PACER_URL, token: "x" }),
  error: CohereError,
  code: (err) => err.statusCode,
  param: (err) => err.body.error.param,
  async create(api, body) {
    const { data, rawResponse } = await api.chat(toCohere(body), once).withRawResponse();
    return { data: fromCohere(data), response: rawResponse };
  },
  async stream(api, body) {
    const events = [];
    for await (const event of await api.chatStream(toCohere(body), once)) events.push(fromCohere(event));
    return foldedCohere(events);
  },
  async pieces(api, body) {
    const controller = new AbortController();
    const stream = await api.chatStream(toCohere(body), { ...once, abortSignal: controller.signal });
    async function* told() {
      for await (const event of stream) {
        // Of an error within a stream the SDK makes an event like others.
        if (event.type === "message-end" && event.delta.error) throw new CohereError({ message: event.delta.error });
        yield event;
      }
    }
    return { controller, [Symbol.asyncIterator]: told };
  },
};

class Pair {
  ran = 0;
  failed = [];

  constructor(side, target, own) {
    this.side = side;
    this.own = own; // it is the client's own API
    this.target = target;
  }

  note(name, wrong) {
    this.ran++;
    if (wrong) this.failed.push(`${name}: ${wrong}`);
  }

  of(byTarget) {
    if (this.target === "claude-5" && !(this.target in (byTarget ?? {}))) return byTarget?.anthropic;
    return byTarget?.[this.target];
  }

  async run(cases) {
    for (const one of cases.cases) {
      const body = spread({ ...cases.body, ...one.body });
      if (one.but?.includes(this.target) || (this.own && one.but?.includes("own")) || !this.side.has(body)) continue;
      const refused = this.own ? null : this.of(one.no);
      let model = this.target;
      if (refused) {
        this.note(one.name + ", refused", await this.refused({ ...body, model }, refused));
        model += "-lenient";
      }
      for (const how of ["document", "stream"]) {
        let wrong;
        try {
          wrong = await this.case(one, { ...body, model }, how, refused);
        } catch (err) {
          wrong = `${err.constructor.name}: ${err.message}`;
          await seen();
        }
        this.note(`${one.name}, ${how}`, wrong);
      }
    }
    for (const status of [400, 401, 403, 404, 422, 429, 500, 503, 529]) this.note(`status ${status}`, await this.status(status));
    await this.side.beside?.(this);
    await seen();
    this.note("an error within a stream", await this.overload());
    this.note("a client that hangs up", await this.cancel());
  }

  async refused(body, names) {
    try {
      await this.side.create(this.side.api, body);
    } catch (err) {
      const name = names.split(",")[0];
      const { n } = await seen();
      const code = this.side.code(err);
      return code === 400 && this.side.param(err, name) === name && err.message.includes(name) && n === 0 ? null : `${code} ${err.message}, after ${n} requests`;
    }
    return "it is not refused";
  }

  async case(one, body, how, dropped) {
    let answer;
    if (how === "document") {
      const { data, response } = await this.side.create(this.side.api, body);
      answer = data;
      const got = response.headers.get("x-pacer-dropped") ?? "";
      if (!isDeepStrictEqual(got.split(", ").sort(), (dropped ?? "").split(", ").sort())) return `x-pacer-dropped is ${got}, want ${dropped}`;
    } else {
      answer = await this.side.stream(this.side.api, body);
    }
    const told = await seen();
    if (told.wrong.length) return "the request is none of this API: " + told.wrong.join("; ");
    if (!told.n) return "no request came";
    return differ("up", told.last.body, this.of(one.up), body.model) ?? differ("down", answer, one.down, body.model);
  }

  async status(status) {
    try {
      await this.side.create(this.side.api, { ...this.side.words(`status ${status}`), model: this.target });
    } catch (err) {
      const want = { 400: [400], 422: [400, 422], 404: [404, 502], 429: [429] }[status];
      const code = this.side.code(err);
      const ok = want ? want.includes(code) : code >= 500;
      return ok && ([401, 403, 404].includes(status) || err.message.includes(`because of ${status}`)) ? null : `${code} ${err.message}`;
    } finally {
      await seen();
    }
    return "no error";
  }

  async overload() {
    try {
      for await (const piece of await this.side.pieces(this.side.api, { ...this.side.words("overload"), model: this.target })) {
        if (["error", "response.failed"].includes(piece.type)) return JSON.stringify(piece).includes("Overloaded") ? null : JSON.stringify(piece);
      }
    } catch (err) {
      return err instanceof this.side.error && this.side.overloaded.test(JSON.stringify([err.message, err.error])) ? null : `${err}`;
    } finally {
      await seen();
    }
    return "no error";
  }

  async cancel() {
    await seen();
    const stream = await this.side.pieces(this.side.api, { ...this.side.words("hang"), model: this.target });
    for await (const _ of stream) break;
    stream.controller.abort();
    for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((go) => setTimeout(go, 10))) {
      if ((await seen()).gone) return null;
    }
    return "the backend's request was not cancelled";
  }
}

const cases = JSON.parse(readFileSync(process.argv[2]));
for (const [name, side] of Object.entries({ chat, messages, responses, generate, groq, mistral, cohere })) {
  if (name !== process.argv[3]) continue;
  for (const target of side.targets) {
    const pair = new Pair(side, target, name === target);
    await pair.run(cases[side.cases ?? name]);
    console.log(JSON.stringify({ client: side.client, version: version(side.package), from: name, to: target, cases: pair.ran, failed: pair.failed }));
  }
}
