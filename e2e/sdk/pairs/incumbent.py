"""The same requests through LiteLLM's own translation and through Pacer: prints a line
of JSON for each place where the requests that the fakes get differ, or the answers that
come down, with the cases that show it. What a difference is worth is said in
incumbent_test.go."""

import asyncio
import gc
import json
import os
import re
import signal
import sys
import urllib.error
import urllib.request
import warnings

warnings.filterwarnings("ignore")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched
import litellm  # noqa: E402
from litellm.google_genai import agenerate_content, agenerate_content_stream  # noqa: E402

PACER, FAKES = os.environ["PACER_URL"], os.environ["FAKES_URL"]
litellm.telemetry = False
litellm.suppress_debug_info = True
litellm.drop_params = True
gc.disable()

AWS = {"aws_bedrock_runtime_endpoint": FAKES + "/bedrock", "aws_region_name": "us-east-1", "aws_access_key_id": "k", "aws_secret_access_key": "s"}
TARGETS = {
    "anthropic": {"model": "anthropic/claude-sonnet-4-5", "api_base": FAKES + "/anthropic"},
    "claude-5": {"model": "anthropic/claude-opus-5", "api_base": FAKES + "/anthropic"},
    "gemini": {"model": "gemini/gemini-2.5-flash", "api_base": FAKES + "/gemini/v1beta"},
    "bedrock": {"model": "bedrock/converse/us.anthropic.claude-sonnet-4-5-v1:0", **AWS},
    "cohere": {"model": "cohere_chat/command-a", "api_base": FAKES + "/cohere/v2/chat"},
    "mistral": {"model": "mistral/magistral", "api_base": FAKES + "/mistral/v1"},
    "engine": {"model": "hosted_vllm/llama", "api_base": FAKES + "/engine/v1"},
}
CLIENTS = {
    "chat": ("anthropic", "claude-5", "gemini", "bedrock", "cohere", "mistral"),
    "messages": ("engine", "gemini", "mistral"),
    "responses": ("engine", "anthropic", "gemini"),
    "generate": ("engine", "anthropic"),
}
# What LiteLLM fetches takes minutes where there is no way out, and 81 turns take it
# seconds each; they are those of other cases.
SLOW = ("https://example.com", "step 39")


def seen():
    return json.load(urllib.request.urlopen(FAKES + "/seen", timeout=10))


def post(path, body):
    request = urllib.request.Request(PACER + path, json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": "Bearer x"})
    try:
        return urllib.request.urlopen(request, timeout=20).read().decode()
    except urllib.error.HTTPError as err:
        raise RuntimeError(err.read().decode()[:200]) from None


def events(text):
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ") and line != "data: [DONE]"]


def plain(value):
    return value.model_dump() if hasattr(value, "model_dump") else value


def wire(body):
    """A request of google-genai as it is on the wire."""
    config = dict(body.get("config", {}))
    contents = body["contents"]
    out = {"contents": contents if isinstance(contents, list) else [{"role": "user", "parts": [{"text": contents}]}]}
    for name in ("tools", "toolConfig", "safetySettings", "cachedContent", "labels"):
        if name in config:
            out[name] = config.pop(name)
    system = config.pop("systemInstruction", None)
    if system is not None:
        out["systemInstruction"] = {"parts": [{"text": system}]} if isinstance(system, str) else system
    if config:
        out["generationConfig"] = config
    return out


# How each client asks Pacer, and LiteLLM.


def ask(client, target, body, stream):
    model = target + "-lenient"
    if client == "generate":
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return post(f"/v1beta/models/{model}:{verb}", wire(body))
    path = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}[client]
    more = {"stream": True, **({"stream_options": {"include_usage": True}} if client == "chat" else {})} if stream else {}
    return post(path, {**body, **more, "model": model})


def ask_incumbent(client, target, body, stream):
    how = {"api_key": "k", "timeout": 20, "num_retries": 0, **TARGETS[target]}
    if client == "chat":
        more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        answer = litellm.completion(**how, **body, **more)
        return [plain(c) for c in answer] if stream else plain(answer)
    if client == "messages":
        return asyncio.run(of_messages(how, body, stream))
    if client == "responses":
        # Else it asks an engine for responses, which this one lacks.
        answer = litellm.responses(**how, **body, stream=stream, use_chat_completions_api=target == "engine")
        return [plain(e) for e in answer] if stream else plain(answer)
    return asyncio.run(of_generate(how, wire(body), stream))


async def of_generate(how, body, stream):
    """As LiteLLM's own proxy calls it, with the fields of the wire."""
    if not stream:
        return plain(await agenerate_content(**how, **body))
    answer = await agenerate_content_stream(**how, **body)
    return events("".join([c.decode() if isinstance(c, bytes) else str(c) async for c in answer]))


async def of_messages(how, body, stream):
    answer = await litellm.anthropic.messages.acreate(**how, **body, stream=stream)
    if not stream:
        return plain(answer)
    return events("".join([c.decode() if isinstance(c, bytes) else str(c) async for c in answer]))


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


def said_messages(chunks):
    out, blocks = {}, []
    for e in chunks:
        if e["type"] == "content_block_start":
            blocks.append({**e["content_block"]})
        elif e["type"] == "content_block_delta":
            for name, text in e["delta"].items():
                if name != "type":
                    blocks[e["index"]][name] = (blocks[e["index"]].get(name) or "") + text
        elif e["type"] == "message_delta":
            out = {**out, **e["delta"], "usage": e.get("usage")}
    for b in blocks:
        if b["type"] == "tool_use":
            b["input"] = json.loads(b.pop("partial_json", None) or "{}")
    return {**out, "content": blocks}


def said_responses(chunks):
    return next((e["response"] for e in reversed(chunks) if e.get("response")), {})


def said_generate(chunks):
    parts, out = [], {}
    for chunk in chunks:
        for candidate in chunk.get("candidates") or []:
            for part in (candidate.get("content") or {}).get("parts") or []:
                if "text" in part and parts and "text" in parts[-1] and parts[-1].get("thought") == part.get("thought"):
                    parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
                elif part.get("text") != "":
                    parts.append(dict(part))
            out = {**out, **candidate}
    return {"candidates": [{**out, "content": {"role": "model", "parts": parts}}], "usageMetadata": (chunks[-1] if chunks else {}).get("usageMetadata")}


SAID = {"chat": said_chat, "messages": said_messages, "responses": said_responses, "generate": said_generate}

# What each makes up for itself.
OWN = re.compile(r"(^|\.)(id|created|created_at|completed_at|model|modelVersion|responseId|object|service_tier|system_fingerprint|call_id|item_id)$|provider_specific|_hidden|response_cost")


def leaves(value, path, camel):
    if isinstance(value, str) and value[:1] == "{" and path.rpartition(".")[2] in ("arguments", "schema"):
        try:
            value = json.loads(value)  # however it is spaced
        except ValueError:
            pass
    if isinstance(value, dict) and value:
        for name, item in value.items():
            if camel:  # Google takes a field by either name
                name = re.sub("_(.)", lambda m: m[1].upper(), name)
            yield from leaves(item, f"{path}.{name}" if path else name, camel)
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]", camel)
    elif value not in (None, [], {}, ""):  # what says nothing
        yield path, value


def differing(ours, theirs, camel=False):
    a, b = ({p: v for p, v in leaves(x or {}, "", camel) if not OWN.search(p)} for x in (ours, theirs))
    for path in sorted({**a, **b}):
        if a.get(path) != b.get(path):
            yield re.sub(r"\[\d+\]", "[]", path), a.get(path), b.get(path)


FOUND = {}


def brief(value):
    return value[:80] if isinstance(value, str) else value


def short(value):
    return str(value)[:80]


def note(client, target, way, path, case, theirs, ours):
    known = FOUND.setdefault((client, target, way, path), {"client": client, "api": target, "way": way, "path": path, "litellm": brief(theirs), "pacer": brief(ours), "cases": []})
    if case not in known["cases"]:
        known["cases"].append(case)


def late(*_):
    raise TimeoutError("no answer in 15 seconds")


signal.signal(signal.SIGALRM, late)


def attempt(call):
    # A stream that LiteLLM has let go of closes itself when it is collected: within the
    # lock of its own pool that is a deadlock.
    gc.collect()
    seen()
    signal.setitimer(signal.ITIMER_REAL, 15, 5)
    try:
        answer, err = call(), None
    except Exception as e:  # whatever it is: it is told
        answer, err = None, f"{type(e).__name__}: {str(e)[:120]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    told = seen()
    return (told["last"] or {}).get("body"), told["wrong"], err, answer


def compare(client, target, case):
    body = {**case["base"], **case["body"]}
    body.update(body.pop("extra_body", {}))
    text = json.dumps(body)  # LiteLLM writes into what it is called with
    for stream in (False, True):
        way = "stream" if stream else "document"
        up, _, our_err, ours = attempt(lambda: ask(client, target, json.loads(text), stream))
        their_up, wrong, err, theirs = attempt(lambda: ask_incumbent(client, target, json.loads(text), stream))
        if our_err or err:
            note(client, target, way, "error", case["name"], re.sub(r"\d{4,}|req_\w+", "…", err or "none"), our_err or "none")
        if wrong:
            note(client, target, "up", "none of this API", case["name"], wrong[0][:100], "it is")
        if not stream:
            for path, a, b in differing(up, their_up, target == "gemini"):
                note(client, target, "up", path, case["name"], b, a)
        if our_err or err:
            continue
        try:
            a = SAID[client](events(ours)) if stream else json.loads(ours)
            b = SAID[client](theirs) if stream else theirs
        except Exception as e:
            note(client, target, way, "cannot be read", case["name"], f"{type(e).__name__}: {e}", "")
            continue
        for path, x, y in differing(a, b):
            note(client, target, way, path, case["name"], y, x)


def main():
    with open(sys.argv[1]) as file:
        tables = json.load(file)
    only = sys.argv[2:]  # as chat:cohere, or all
    for client, target in ((c, t) for c, targets in CLIENTS.items() for t in targets):
        if only and f"{client}:{target}" not in only:
            continue
        for case in tables[client]["cases"]:
            if not any(slow in json.dumps(case["body"]) for slow in SLOW) and target not in case.get("but", []):
                compare(client, target, {**case, "base": tables[client]["body"]})
        for found in FOUND.values():
            print(json.dumps(found, ensure_ascii=False, default=short), flush=True)
        FOUND.clear()


main()
