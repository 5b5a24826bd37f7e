"""The same requests through LiteLLM's own translation and through Pacer's: prints what
differs in the requests that the fakes get, and in the answers that come down, as
documents and as streams. A line of JSON for each kind of difference: from which dialect
to which API, which way, where, in how many cases, and the first of them."""

import asyncio
import json
import os
import re
import sys
import urllib.request

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched
import litellm  # noqa: E402
from litellm.google_genai import generate_content, generate_content_stream  # noqa: E402

PACER, FAKES = os.environ["PACER_URL"], os.environ["FAKES_URL"]
litellm.telemetry = False
litellm.suppress_debug_info = True
litellm.drop_params = True

TARGETS = {
    "anthropic": {"model": "anthropic/claude-sonnet-4-5", "api_base": FAKES + "/anthropic", "api_key": "k"},
    "claude-5": {"model": "anthropic/claude-opus-5", "api_base": FAKES + "/anthropic", "api_key": "k"},
    "gemini": {"model": "gemini/gemini-2.5-flash", "api_base": FAKES + "/gemini/v1beta", "api_key": "k"},
    "bedrock": {
        "model": "bedrock/converse/us.anthropic.claude-sonnet-4-5-v1:0", "aws_bedrock_runtime_endpoint": FAKES + "/bedrock", "aws_region_name": "us-east-1",
        "aws_access_key_id": "k", "aws_secret_access_key": "s",
    },
    "engine": {"model": "hosted_vllm/llama", "api_base": FAKES + "/engine/v1", "api_key": "k"},
    "cohere": {"model": "cohere_chat/command-a", "api_base": FAKES + "/cohere/v2/chat", "api_key": "k"},
}

# What each dialect of a client is run before.
PAIRS = {
    "chat": ("anthropic", "claude-5", "gemini", "bedrock", "cohere"),
    "messages": ("engine", "gemini", "bedrock"),
    "responses": ("engine", "anthropic", "gemini", "bedrock"),
    "generate": ("engine", "anthropic", "bedrock"),
}
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def seen():
    return json.load(urllib.request.urlopen(FAKES + "/seen", timeout=10))


def plain(value):
    """An answer of LiteLLM's as JSON has it."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True)
    return json.loads(json.dumps(value, default=str))


async def collected(stream):
    return [chunk async for chunk in stream] if hasattr(stream, "__aiter__") else list(stream)


# LiteLLM's side: what a dialect is called with, as a document and as a stream.


def their_chat(how, body, flows):
    more = {"stream": True, "stream_options": {"include_usage": True}} if flows else {}
    answer = litellm.completion(**how, **body, **more, num_retries=0)
    return [plain(chunk) for chunk in answer] if flows else plain(answer)


def their_messages(how, body, flows):
    async def run():
        answer = await litellm.anthropic.messages.acreate(**how, **body, stream=flows)
        return await collected(answer) if flows else plain(answer)

    got = asyncio.run(run())
    return events(b"".join(c if isinstance(c, bytes) else c.encode() for c in got).decode()) if flows else got


def their_responses(how, body, flows):
    answer = litellm.responses(**how, **body, stream=flows)
    return [plain(e) for e in answer] if flows else plain(answer)


def their_generate(how, body, flows):
    contents, config = body["contents"], dict(body.get("config") or {})
    if isinstance(contents, str):
        contents = [{"role": "user", "parts": [{"text": contents}]}]
    more = {name: config.pop(name) for name in ("tools", "systemInstruction") if name in config}
    if not flows:
        return plain(generate_content(**how, contents=contents, config=config, **more))
    got = generate_content_stream(**how, contents=contents, config=config, **more)
    chunks = asyncio.run(collected(got)) if hasattr(got, "__aiter__") else list(got)
    return events(b"".join(c if isinstance(c, bytes) else str(c).encode() for c in chunks).decode())


THEIRS = {"chat": their_chat, "messages": their_messages, "responses": their_responses, "generate": their_generate}


# Our side: what the dialect's own API is sent.


def our(dialect, target, body, flows):
    body = {**body, **body.get("extra_body", {})}
    body.pop("extra_body", None)
    if dialect == "generate":
        path = f"/v1beta/models/{target}-lenient:" + ("streamGenerateContent?alt=sse" if flows else "generateContent")
        body = google(body)
    else:
        path, body = PATHS[dialect], {**body, "model": target + "-lenient", "stream": flows}
        if dialect == "chat" and flows:
            body["stream_options"] = {"include_usage": True}
    request = urllib.request.Request(PACER + path, json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": "Bearer x", "anthropic-version": "2023-06-01"})
    try:
        text = urllib.request.urlopen(request, timeout=30).read().decode()
    except urllib.error.HTTPError as err:
        raise RuntimeError(err.read().decode()) from err
    return events(text) if flows else json.loads(text)


GENERATION = {"tools", "toolConfig", "systemInstruction", "safetySettings", "cachedContent"}  # what stands beside the configuration


def google(body):
    """A call of Google's SDK as it sends it."""
    contents, config = body["contents"], dict(body.get("config") or {})
    out = {"contents": [{"role": "user", "parts": [{"text": contents}]}] if isinstance(contents, str) else contents}
    for name in GENERATION & set(config):
        out[name] = config.pop(name)
    if isinstance(out.get("systemInstruction"), str):
        out["systemInstruction"] = {"parts": [{"text": out["systemInstruction"]}]}
    return {**out, **({"generationConfig": config} if config else {})}


def events(text):
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:") and line[5:].strip() != "[DONE]"]


# What a stream says, in the form of a document.


def said_chat(chunks):
    message, finish, usage = {"content": "", "reasoning_content": "", "tool_calls": []}, None, None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for c in chunk["choices"]:
            finish = c.get("finish_reason") or finish
            for name in ("content", "reasoning_content"):
                message[name] += c["delta"].get(name) or ""
            for call in c["delta"].get("tool_calls") or []:
                while len(message["tool_calls"]) <= call["index"]:
                    message["tool_calls"].append({"function": {"name": "", "arguments": ""}})
                for name in ("name", "arguments"):
                    message["tool_calls"][call["index"]]["function"][name] += call["function"].get(name) or ""
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def said_messages(all_events):
    out, texts = {}, {}
    for e in all_events:
        if e["type"] == "message_start":
            out = {**e["message"], "content": []}
        elif e["type"] == "content_block_start":
            out["content"].append(dict(e["content_block"]))
        elif e["type"] == "content_block_delta":
            block = out["content"][e["index"]]
            for name in ("text", "thinking", "signature"):
                if name in e["delta"]:
                    block[name] = block.get(name, "") + e["delta"][name]
            if "partial_json" in e["delta"]:
                texts[e["index"]] = texts.get(e["index"], "") + e["delta"]["partial_json"]
        elif e["type"] == "message_delta":
            out.update(e["delta"])
            out["usage"] = {**out.get("usage", {}), **(e.get("usage") or {})}
    for i, text in texts.items():
        out["content"][i]["input"] = json.loads(text or "{}")
    return out


def said_responses(all_events):
    return next((e["response"] for e in reversed(all_events) if e["type"] in ("response.completed", "response.incomplete", "response.failed")), None)


def said_generate(chunks):
    parts, out = [], {}
    for chunk in chunks:
        for c in chunk.get("candidates") or []:
            for part in (c.get("content") or {}).get("parts") or []:
                if parts and "text" in part and "text" in parts[-1] and part.get("thought") == parts[-1].get("thought"):
                    parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
                elif part.get("text") != "":
                    parts.append(dict(part))
            out = {**out, **c}
    return {**(chunks[-1] if chunks else {}), "candidates": [{**out, "content": {"role": "model", "parts": parts}}]}


SAID = {"chat": said_chat, "messages": said_messages, "responses": said_responses, "generate": said_generate}


def leaves(value, path=""):
    if isinstance(value, str) and path.endswith("arguments"):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            pass
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    else:
        yield path, value


def camel(value):
    """Google takes a field by either name."""
    if isinstance(value, dict):
        return {re.sub("_(.)", lambda m: m[1].upper(), k): camel(v) for k, v in value.items()}
    return [camel(v) for v in value] if isinstance(value, list) else value


NOTHING = (None, [], {}, "", False)
OWN = re.compile(r"(^|\.)(id|created|created_at|model|object|responseId|modelVersion|system_fingerprint|item_id|call_id)$|provider_specific|^stream(_options)?$")


def differing(ours, theirs):
    """What differs, but for ids, and for fields that say nothing."""
    a, b = ({p: v for p, v in leaves(x or {}) if not OWN.search(p) and v not in NOTHING} for x in (ours, theirs))
    return {path: [a.get(path), b.get(path)] for path in sorted({**a, **b}) if a.get(path) != b.get(path)}


def attempt(call):
    seen()
    try:
        answer, err = call(), None
    except Exception as e:
        answer, err = None, f"{type(e).__name__}: {str(e)[:200]}"
    told = seen()
    return (told["last"] or {}).get("body"), told["wrong"], err, answer


class Differences:
    def __init__(self):
        self.kinds = {}

    def note(self, dialect, target, way, path, case, pair):
        where = re.sub(r"\[\d+\]", "[]", path)
        kind = self.kinds.setdefault((dialect, target, way, where), {"cases": [], "first": pair})
        if case not in kind["cases"]:
            kind["cases"].append(case)

    def tell(self):
        for (dialect, target, way, where), kind in sorted(self.kinds.items()):
            print(json.dumps({"from": dialect, "to": target, "way": way, "at": where, "n": len(kind["cases"]), "case": kind["cases"][0], "pacer": kind["first"][0], "litellm": kind["first"][1]}, ensure_ascii=False))


def compare(dialect, target, case, body, all_of):
    for flows in (False, True):
        ours, our_wrong, our_err, our_answer = attempt(lambda: our(dialect, target, body, flows))
        theirs, wrong, err, answer = attempt(lambda: THEIRS[dialect](TARGETS[target], body, flows))
        way = "stream" if flows else "document"
        for name, a, b in (("refused by the API", our_wrong, wrong), ("fails", our_err, err)):
            if a or b:
                all_of.note(dialect, target, way, name, case, [a and a[:300] if isinstance(a, str) else a[:1] if a else None, b[:300] if isinstance(b, str) else b[:1] if b else None])
        if not flows:
            if target == "gemini":
                ours, theirs = camel(ours), camel(theirs)
            for path, pair in differing(ours, theirs).items():
                all_of.note(dialect, target, "request", path, case, pair)
        if our_err or err:
            continue
        if flows:
            our_answer, answer = SAID[dialect](our_answer), SAID[dialect](answer)
        for path, pair in differing(our_answer, answer).items():
            all_of.note(dialect, target, way, path, case, pair)


def main():
    with open(sys.argv[1]) as file:
        table = json.load(file)
    only = sys.argv[2:]
    all_of = Differences()
    for dialect, targets in PAIRS.items():
        for target in targets:
            if only and f"{dialect}-{target}" not in only and dialect not in only:
                continue
            for case in table[dialect]["cases"]:
                if target not in case.get("but", []):
                    compare(dialect, target, case["name"], {**table[dialect]["body"], **case["body"]}, all_of)
    all_of.tell()


main()
