"""Servers with the APIs of Anthropic, Google, Bedrock, Cohere, Mistral and an
OpenAI-shaped engine, made from what their makers publish: schema.py checks what comes in, and
pairs.py has each maker's own SDK read what goes out. What is answered depends on
the last words of the user.

GET /seen tells of the requests since it was asked last."""

import json
import select
import socket
import struct
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import schema

HELLO = 'Hello "wörld" 😀\n'
BIG = "".join(f"word{i} " for i in range(300))


def scene(words):
    """The blocks of an answer, and why it ends."""
    text = ("text", HELLO)
    weather = ("tool", "weather", '{"city": "Paris", "n": 1.50}')
    return {
        "call": ([text, weather], "tool"),
        "calls": ([("tool", "weather", '{"city":"Paris"}'), ("tool", "time", "{}")], "tool"),
        "four calls": ([("tool", "weather", json.dumps({"city": c})) for c in ("Paris", "Rom", "Zürich", "東京")], "tool"),
        "deep call": ([("tool", "weather", '{"a":{"b":[1,2.50,null,true,{"c":"\\"\\\\ü"}]},"big":12345678901234567890}')], "tool"),
        "think": ([("think", "let me see\n…", "c2lnbmF0dXJl"), text], "stop"),
        "think call": ([("think", "a tool, then", "c2lnMg=="), weather], "tool"),
        "long": ([text], "length"),
        "refuse": ([text], "filter"),
        "sequence": ([text], "sequence"),
        "json": ([("text", '{"a":1}')], "stop"),
        "empty": ([], "stop"),
        "big": ([("text", BIG)], "stop"),
    }.get(words, ([text], "stop"))


def agent(words, body):
    """What a model says that is told, after the word agent, which tool to call: it
    calls it, and then tells its result."""
    _, found, call = words.rpartition("agent {")  # agents put words of their own around it
    if not found:
        return scene(words)
    results = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    if results:
        return [("text", "the tool says: " + results[-1])], "stop"
    call, _ = json.JSONDecoder().raw_decode("{" + call)
    return [("text", "I look."), ("tool", call["name"], json.dumps(call["arguments"]))], "tool"


def pieces(text):
    """A text as a model says it: in pieces of a word."""
    out, start = [], 0
    while start < len(text):
        end = text.find(" ", start) + 1 or len(text)
        out.append(text[start:end])
        start = end
    return out


class Seen:
    def __init__(self):
        self.lock = threading.Lock()
        self.clear()

    def clear(self):
        self.requests, self.wrong, self.gone = [], [], 0

    def take(self, path, headers, body, wrong):
        with self.lock:
            self.requests.append({"path": path, "headers": headers, "body": body})
            if wrong:
                self.wrong.append(wrong)

    def tell(self):
        with self.lock:
            out = {"n": len(self.requests), "last": self.requests[-1] if self.requests else None, "wrong": self.wrong, "gone": self.gone}
            self.clear()
            return out


SEEN = Seen()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.document(SEEN.tell() if self.path == "/seen" else {"object": "list", "data": []})

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(text)
        path = self.path.partition("?")[0]
        for prefix, (wrong, words, answer) in APIS.items():
            if path.startswith(prefix):
                what = wrong(self, path, body)
                SEEN.take(self.path, {k.lower(): v for k, v in self.headers.items()}, body, what and f"{what}: {text.decode()}")
                said = words(body) if "count" not in path and self.has(path) else ""
                if said.startswith("status "):
                    return self.fails(prefix, int(said.split()[1]))
                try:
                    return answer(self, path, body, said)
                except ConnectionError:  # the client left while something was written
                    self.close_connection = True
                    with SEEN.lock:
                        SEEN.gone += 1
                    return
        self.document({"detail": "Not Found"}, 404)

    def has(self, path):
        return not path.startswith(("/engine", "/mistral")) or path.endswith("/v1/chat/completions")

    def document(self, value, status=200, **headers):
        text = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, v in headers.items():
            self.send_header(name.replace("_", "-"), v)
        self.end_headers()
        self.wfile.write(text)

    def fails(self, prefix, status):
        message = f"because of {status}"
        shape = {
            "/anthropic": {"type": "error", "error": {"type": "some_error", "message": message}, "request_id": "req_1"},
            "/gemini": {"error": {"code": status, "message": message, "status": "SOME_STATUS"}},
            "/bedrock": {"message": message},
            "/cohere": {"id": "e1", "message": message},
            "/mistral": {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": "3000", "raw_status_code": status},
            "/engine": {"error": {"message": message, "type": "some_error", "param": None, "code": None}},
        }[prefix]
        if prefix == "/bedrock":
            return self.document(shape, status, x_amzn_ErrorType="SomeException")
        self.document(shape, status)

    def begin(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, data, name=None):
        head = f"event: {name}\n" if name else ""
        text = data if isinstance(data, str) else json.dumps(data)
        self.send(f"{head}data: {text}\n\n".encode())

    def end(self):
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def hang(self):
        """Waits until the client has left, and counts that."""
        readable, _, _ = select.select([self.connection], [], [], 60)
        if readable:
            try:
                left = not self.connection.recv(1, socket.MSG_PEEK)
            except ConnectionError:
                left = True
            with SEEN.lock:
                SEEN.gone += left
        self.close_connection = True


def last_words(messages, parts):
    for m in reversed(messages):
        if m["role"] == "user":
            for p in reversed(parts(m)):
                if isinstance(p, str):
                    return p
                if "text" in p:
                    return p["text"]
    return ""


# Anthropic.


def anthropic(self, path, body, words):
    if path.endswith("/count_tokens"):
        return self.document({"input_tokens": 42})
    blocks, why = scene(words)
    reason = {"tool": "tool_use", "length": "max_tokens", "filter": "refusal", "sequence": "stop_sequence"}.get(why, "end_turn")
    sequence = "END" if why == "sequence" else None

    def usage(out):
        return {"input_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 5, "output_tokens": out, "service_tier": "standard"}

    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
    if not body.get("stream"):
        content = []
        for i, b in enumerate(blocks):
            if b[0] == "text":
                content.append({"type": "text", "text": b[1]})
            elif b[0] == "think":
                content.append({"type": "thinking", "thinking": b[1], "signature": b[2]})
            else:
                content.append({"type": "tool_use", "id": f"toolu_{i}", "name": b[1], "input": Raw(b[2])})
        return self.document(
            dump({**head, "content": content, "stop_reason": reason, "stop_sequence": sequence, "usage": usage(9)}),
            anthropic_ratelimit_requests_limit="50",
        )
    self.begin("text/event-stream; charset=utf-8")
    self.event({"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage(1)}}, "message_start")
    if words == "overload":
        self.event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")
        return self.end()
    for i, b in enumerate(blocks):
        start, kind, key, text = {
            "text": ({"type": "text", "text": ""}, "text_delta", "text", b[1]),
            "think": ({"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", b[1]),
            "tool": ({"type": "tool_use", "id": f"toolu_{i}", "name": b[1], "input": {}}, "input_json_delta", "partial_json", b[-1]),
        }[b[0]]
        self.event({"type": "content_block_start", "index": i, "content_block": start}, "content_block_start")
        self.event({"type": "ping"}, "ping")
        for piece in pieces(text):
            self.event({"type": "content_block_delta", "index": i, "delta": {"type": kind, key: piece}}, "content_block_delta")
        if words == "hang":
            return self.hang()
        if b[0] == "think":
            self.event({"type": "content_block_delta", "index": i, "delta": {"type": "signature_delta", "signature": b[2]}}, "content_block_delta")
        self.event({"type": "content_block_stop", "index": i}, "content_block_stop")
    self.event({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": sequence}, "usage": {"output_tokens": 9}}, "message_delta")
    self.event({"type": "message_stop"}, "message_stop")
    self.end()


class Raw(str):
    """JSON that is written as it is."""


def dump(value):
    """JSON in which each Raw stands as it is."""
    held = []

    def hide(v):
        if isinstance(v, Raw):
            held.append(v)
            return f"\x00{len(held) - 1}\x00"
        if isinstance(v, dict):
            return {k: hide(x) for k, x in v.items()}
        return [hide(x) for x in v] if isinstance(v, list) else v

    text = json.dumps(hide(value))
    for i, raw in enumerate(held):
        text = text.replace(f'"\\u0000{i}\\u0000"', raw)
    return text.encode()


# Google.


def gemini(self, path, body, words):
    if path.endswith(":countTokens"):
        return self.document({"totalTokens": 42})
    blocks, why = scene(words)
    reason = {"length": "MAX_TOKENS", "filter": "SAFETY"}.get(why, "STOP")
    usage = {"promptTokenCount": 25, "cachedContentTokenCount": 5, "candidatesTokenCount": 9, "totalTokenCount": 34}
    if any(b[0] == "think" for b in blocks):
        usage = {**usage, "candidatesTokenCount": 6, "thoughtsTokenCount": 3}

    def parts(b, text):
        if b[0] == "tool":
            part = {"functionCall": {"name": b[1], "args": Raw(b[2])}}
            return {**part, "thoughtSignature": "c2lnMg=="} if words == "think call" else part
        return {"text": text, "thought": True} if b[0] == "think" else {"text": text}

    def answer(content, finish, **more):
        candidate = {"content": {"role": "model", "parts": content}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        return {"candidates": [candidate], "modelVersion": "gemini-x", "responseId": "r1", "usageMetadata": usage, **more}

    if words == "blocked":
        return self.gemini_end(path, [{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 25, "totalTokenCount": 25}, "modelVersion": "gemini-x", "responseId": "r1"}])
    if ":streamGenerateContent" not in path:
        return self.document(dump(answer([parts(b, b[1]) for b in blocks], reason)))
    self.begin("text/event-stream")
    if words == "overload":
        self.event({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
        return self.end()
    for b in blocks:
        for piece in pieces(b[1]) if b[0] != "tool" else [None]:
            self.event(dump(answer([parts(b, piece)], None)).decode())
        if words == "hang":
            return self.hang()
    self.event(answer([{"text": ""}], reason))
    self.end()


def gemini_end(self, path, chunks):
    if ":streamGenerateContent" not in path:
        return self.document(chunks[-1])
    self.begin("text/event-stream")
    for c in chunks:
        self.event(c)
    self.end()


Handler.gemini_end = gemini_end


# Bedrock.


def frame(kind, payload, exception=False):
    """One message of an AWS event stream."""
    names = {":message-type": "exception" if exception else "event", ":exception-type" if exception else ":event-type": kind, ":content-type": "application/json"}
    head = b"".join(struct.pack("!B", len(n)) + n.encode() + struct.pack("!BH", 7, len(v)) + v.encode() for n, v in names.items())
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", len(head) + len(body) + 16, len(head))
    start = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + body
    return start + struct.pack("!I", zlib.crc32(start))


def bedrock(self, path, body, words):
    blocks, why = scene(words)
    reason = {"tool": "tool_use", "length": "max_tokens", "filter": "guardrail_intervened", "sequence": "stop_sequence"}.get(why, "end_turn")
    usage = {"inputTokens": 20, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 0, "outputTokens": 9, "totalTokens": 34}
    if not path.endswith("-stream"):
        content = []
        for i, b in enumerate(blocks):
            if b[0] == "text":
                content.append({"text": b[1]})
            elif b[0] == "think":
                content.append({"reasoningContent": {"reasoningText": {"text": b[1], "signature": b[2]}}})
            else:
                content.append({"toolUse": {"toolUseId": f"tooluse_{i}", "name": b[1], "input": Raw(b[2])}})
        return self.document(dump({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason, "usage": usage, "metrics": {"latencyMs": 1}}))
    self.begin("application/vnd.amazon.eventstream")
    self.send(frame("messageStart", {"role": "assistant", "p": "abcd"}))
    if words == "overload":
        self.send(frame("throttlingException", {"message": "Overloaded"}, exception=True))
        return self.end()
    for i, b in enumerate(blocks):
        if b[0] == "tool":
            self.send(frame("contentBlockStart", {"contentBlockIndex": i, "start": {"toolUse": {"toolUseId": f"tooluse_{i}", "name": b[1]}}}))
        for piece in pieces(b[-1] if b[0] == "tool" else b[1]):
            delta = {"text": {"text": piece}, "think": {"reasoningContent": {"text": piece}}, "tool": {"toolUse": {"input": piece}}}[b[0]]
            self.send(frame("contentBlockDelta", {"contentBlockIndex": i, "delta": delta}))
        if words == "hang":
            return self.hang()
        if b[0] == "think":
            self.send(frame("contentBlockDelta", {"contentBlockIndex": i, "delta": {"reasoningContent": {"signature": b[2]}}}))
        self.send(frame("contentBlockStop", {"contentBlockIndex": i}))
    self.send(frame("messageStop", {"stopReason": reason}))
    self.send(frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    self.end()


# Cohere.


def cohere(self, path, body, words):
    if path != "/cohere/v2/chat":
        return self.document({"message": "not found"}, 404)
    blocks, why = scene(words)
    reason = {"tool": "TOOL_CALL", "length": "MAX_TOKENS", "filter": "ERROR_TOXIC", "sequence": "STOP_SEQUENCE"}.get(why, "COMPLETE")
    usage = {"billed_units": {"input_tokens": 20, "output_tokens": 9}, "tokens": {"input_tokens": 25.0, "output_tokens": 9.0}, "cached_tokens": 5}
    calls = any(b[0] == "tool" for b in blocks)
    if not body.get("stream"):
        message = {"role": "assistant", "content": []}
        for i, b in enumerate(blocks):
            if b[0] == "tool":
                message.setdefault("tool_calls", []).append({"id": f"call_{i}", "type": "function", "function": {"name": b[1], "arguments": b[2]}})
            elif b[0] == "think":
                message["content"].append({"type": "thinking", "thinking": b[1]})
            elif calls:
                message["tool_plan"] = b[1]
            else:
                message["content"].append({"type": "text", "text": b[1]})
        return self.document({"id": "c-1", "finish_reason": reason, "message": message, "usage": usage})

    def event(kind, index=None, **message):
        self.event({"type": kind, **({} if index is None else {"index": index}), **({"delta": {"message": message}} if message else {})}, kind)

    self.begin("text/event-stream; charset=utf-8")
    start = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    self.event({"id": "c-1", "type": "message-start", "delta": {"message": start}}, "message-start")
    if words == "overload":
        self.event({"type": "message-end", "delta": {"error": "Overloaded", "finish_reason": "ERROR"}}, "message-end")
        return self.end()
    said = called = 0
    for i, b in enumerate(blocks):
        if b[0] == "tool":
            event("tool-call-start", called, tool_calls={"id": f"call_{i}", "type": "function", "function": {"name": b[1], "arguments": ""}})
            for piece in pieces(b[2]):
                event("tool-call-delta", called, tool_calls={"function": {"arguments": piece}})
            event("tool-call-end", called)
            called += 1
            continue
        if b[0] == "text" and calls:
            for piece in pieces(b[1]):
                event("tool-plan-delta", tool_plan=piece)
            continue
        key = "text" if b[0] == "text" else "thinking"
        event("content-start", said, content={"type": key, key: ""})
        for piece in pieces(b[1]):
            event("content-delta", said, content={key: piece})
        if words == "hang":
            return self.hang()
        event("content-end", said)
        said += 1
    self.event({"type": "message-end", "delta": {"finish_reason": reason, "usage": usage}}, "message-end")
    self.event("[DONE]")
    self.end()


# Mistral.


def mistral_said(b, text):
    """A piece of a text or of a thought."""
    return text if b[0] == "text" else [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]


def mistral(self, path, body, words):
    if path != "/mistral/v1/chat/completions":
        return self.document({"detail": "Not Found"}, 404)
    blocks, why = scene(words)
    reason = {"tool": "tool_calls", "length": "length"}.get(why, "stop")
    usage = {"prompt_tokens": 25, "total_tokens": 34, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5}}
    head = {"id": "m1", "created": 1, "model": body["model"]}
    token = {"token": "Hello", "logprob": -0.25, "bytes": [72], "token_id": 7}
    chances = {"logprobs": {"content": [{**token, "top_logprobs": [token]}]}} if body.get("logprobs") else {}
    calls = [{"id": f"abcdefg0{i}", "function": {"name": b[1], "arguments": b[2]}, "index": i} for i, b in enumerate(b for b in blocks if b[0] == "tool")]
    said = [b for b in blocks if b[0] != "tool"]
    if not body.get("stream"):
        content = [{"type": "text", "text": b[1]} if b[0] == "text" else {**mistral_said(b, b[1])[0], "signature": b[2]} for b in said]
        if all(b[0] == "text" for b in said):
            content = "".join(b[1] for b in said)
        message = {"role": "assistant", "tool_calls": calls or None, "content": content}
        return self.document({**head, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason, **chances}], "usage": usage})

    def chunk(delta, finish=None, **more):
        self.event({**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})

    self.begin("text/event-stream; charset=utf-8")
    chunk({"role": "assistant", "content": ""})
    if words == "overload":
        self.event({"object": "error", "message": "Overloaded", "type": "service_unavailable", "param": None, "code": "3505"})
        return self.end()
    for b in said:
        for piece in pieces(b[1]):
            chunk({"content": mistral_said(b, piece)})
        if b[0] == "think":
            chunk({"content": [{"type": "thinking", "thinking": [], "signature": b[2]}]})
        if words == "hang":
            return self.hang()
    if chances:
        self.event({**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None, **chances}]})
    chunk({"content": "", **({"tool_calls": calls} if calls else {})}, reason, usage=usage)
    self.event("[DONE]")
    self.end()


# An engine.


def engine(self, path, body, words):
    if path != "/engine/v1/chat/completions":
        return self.document({"detail": "Not Found"}, 404)
    blocks, why = agent(words, body)
    reason = {"tool": "tool_calls", "length": "length", "filter": "content_filter"}.get(why, "stop")
    extra = {"stop_reason": "END"} if why == "sequence" else {}
    usage = {"prompt_tokens": 25, "completion_tokens": 9, "total_tokens": 34, "prompt_tokens_details": {"cached_tokens": 5}}
    head = {"id": "chatcmpl-1", "created": 1, "model": "m"}
    chances = {"content": [{"token": "Hello", "logprob": -0.25, "bytes": [72], "top_logprobs": [{"token": "Hello", "logprob": -0.25, "bytes": [72]}]}]} if body.get("logprobs") else None
    if not body.get("stream"):
        message = {"role": "assistant", "content": None}
        for i, b in enumerate(blocks):
            if b[0] == "tool":
                call = {"id": f"call_{i}", "type": "function", "function": {"name": b[1], "arguments": b[2]}}
                message.setdefault("tool_calls", []).append(call)
            else:
                message["content" if b[0] == "text" else "reasoning_content"] = b[1]
        choice = {"index": 0, "message": message, "logprobs": chances, "finish_reason": reason, **extra}
        return self.document({**head, "object": "chat.completion", "choices": [choice], "usage": usage})

    def chunk(delta, finish=None, **more):
        self.event({**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]})

    self.begin("text/event-stream; charset=utf-8")
    chunk({"role": "assistant", "content": ""})
    if words == "overload":
        self.event({"error": {"message": "Overloaded", "type": "server_error"}})
        return self.end()
    calls = 0
    for i, b in enumerate(blocks):
        if b[0] == "tool":
            chunk({"tool_calls": [{"index": calls, "id": f"call_{i}", "type": "function", "function": {"name": b[1], "arguments": ""}}]})
            for piece in pieces(b[2]):
                chunk({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
            calls += 1
        else:
            for n, piece in enumerate(pieces(b[1])):
                chunk({"content" if b[0] == "text" else "reasoning_content": piece}, **({"logprobs": chances} if chances and n == 0 else {}))
        if words == "hang":
            return self.hang()
    chunk({}, reason, **extra)
    if (body.get("stream_options") or {}).get("include_usage"):
        self.event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    self.event("[DONE]")
    self.end()


def of_content(m):
    return [m["content"]] if isinstance(m["content"], str) else m["content"]


APIS = {
    "/anthropic": (
        lambda self, path, body: schema.anthropic_wrong(body, path.endswith("/count_tokens"), self.headers["anthropic-version"])
        or (None if self.headers["anthropic-version"] else "no version"),
        lambda body: last_words(body["messages"], of_content),
        anthropic,
    ),
    "/gemini": (
        lambda self, path, body: None if path.endswith(":countTokens") else schema.gemini_wrong(body),
        lambda body: last_words(body.get("contents", []), lambda m: m["parts"]),
        gemini,
    ),
    "/bedrock": (
        lambda self, path, body: schema.bedrock_wrong(body, path.split("/")[3], path.endswith("-stream")),
        lambda body: last_words(body["messages"], of_content),
        bedrock,
    ),
    "/cohere": (lambda self, path, body: schema.cohere_wrong(body), lambda body: last_words(body["messages"], of_content), cohere),
    "/mistral": (
        lambda self, path, body: schema.mistral_wrong(body) if path.endswith("/chat/completions") else None,
        lambda body: last_words(body["messages"], of_content) if "messages" in body else "",
        mistral,
    ),
    "/engine": (
        lambda self, path, body: schema.chat_wrong(body) if path.endswith("/chat/completions") else None,
        lambda body: last_words(body["messages"], of_content) if "messages" in body else "",
        engine,
    ),
}

if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}"}), flush=True)
    server.serve_forever()
