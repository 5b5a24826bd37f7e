"""Official SDKs for Python before backends of other dialects: each case as a
document and as a stream, then errors and a client that hangs up. Prints a line of
JSON for each pair."""

import base64
import inspect
import json
import os
import sys
import time
import urllib.request
from importlib.metadata import version

import anthropic
import cohere
import groq
import openai
from cohere.core.api_error import ApiError as CohereError
from google import genai
from google.genai import errors as google_errors
from mistralai.client import Mistral
from mistralai.client.errors import MistralError

PACER = os.environ["PACER_URL"]
FAKES = os.environ["FAKES_URL"]
HELLO = 'Hello "wörld" 😀\n'


def seen():
    return json.load(urllib.request.urlopen(FAKES + "/seen", timeout=10))


def get(value, path):
    """What stands at path; None where nothing does."""
    for step in path.split("."):
        if step == "#":
            return len(value)
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def differ(what, value, want, model):
    """The first of want that value does not hold, in words."""
    for path, expected in (want or {}).items():
        got = get(value, path)
        if isinstance(expected, dict) and list(expected) == ["JSON"]:
            got, expected = json.loads(got), expected["JSON"]
        if expected == "MODEL":
            expected = model
        if got != expected:
            return f"{what}: {path} is {got!r}, want {expected!r}"
    return None


class Chat:
    client, package, words = "openai (Python)", "openai", staticmethod(lambda text: {"messages": [{"role": "user", "content": text}]})
    targets = ("anthropic", "claude-5", "gemini", "bedrock", "cohere", "mistral")
    api = staticmethod(lambda: openai.OpenAI(base_url=PACER + "/v1", api_key="x", max_retries=0))
    refusals, status_errors, api_errors = openai.BadRequestError, openai.APIStatusError, openai.APIError

    overloaded = "Overloaded"  # how it tells of an error within a stream

    @staticmethod
    def has(body):
        """Whether the SDK has all that body says."""
        return True

    @staticmethod
    def read(raw):
        return raw.parse().model_dump(), raw.headers.get("x-pacer-dropped")

    @staticmethod
    def param(err):
        return err.body.get("param")

    @staticmethod
    def code(err):
        return err.status_code

    @staticmethod
    def beside(pair):
        """Nothing that the cases do not have."""

    @staticmethod
    def create(api, body):
        return api.chat.completions.with_raw_response.create(**body)

    @staticmethod
    def stream(api, body):
        body = {**body, "stream_options": {"include_usage": True}}
        with api.chat.completions.stream(**body) as stream:
            for _ in stream:
                pass
            return stream.current_completion_snapshot.model_dump()

    @staticmethod
    def pieces(api, body):
        stream = api.chat.completions.create(**body, stream=True)
        return iter(stream), stream.close


class Messages(Chat):
    client, package, targets = "anthropic (Python)", "anthropic", ("engine", "gemini", "bedrock", "cohere", "mistral")
    words = staticmethod(lambda text: {"max_tokens": 100, "messages": [{"role": "user", "content": text}]})
    api = staticmethod(lambda: anthropic.Anthropic(base_url=PACER, api_key="x", max_retries=0))
    refusals, status_errors, api_errors = anthropic.BadRequestError, anthropic.APIStatusError, anthropic.APIError

    @staticmethod
    def param(err):
        return None  # it has no such thing

    @staticmethod
    def create(api, body):
        return api.messages.with_raw_response.create(**body)

    @staticmethod
    def stream(api, body):
        with api.messages.stream(**body) as stream:
            for _ in stream:
                pass
            return stream.get_final_message().model_dump()

    @staticmethod
    def pieces(api, body):
        stream = api.messages.create(**body, stream=True)
        return iter(stream), stream.close


class Responses(Chat):
    client, targets = "openai (Python), responses", ("engine", "anthropic", "gemini", "bedrock", "cohere", "mistral")
    words = staticmethod(lambda text: {"input": text})

    @staticmethod
    def create(api, body):
        return api.responses.with_raw_response.create(**body)

    @staticmethod
    def stream(api, body):
        with api.responses.stream(**body) as stream:
            last = None
            for event in stream:
                last = event
        if last.type not in ("response.completed", "response.incomplete"):
            raise AssertionError(f"the stream ends with {last.type}")
        return last.response.model_dump()

    @staticmethod
    def pieces(api, body):
        stream = api.responses.create(**body, stream=True)
        return iter(stream), stream.close


def with_bytes(value):
    """What google-genai takes as bytes, as such."""
    if isinstance(value, list):
        return [with_bytes(v) for v in value]
    if not isinstance(value, dict):
        return value
    is_bytes = ("thoughtSignature",) if "mimeType" not in value else ("data",)
    return {k: base64.b64decode(v) if k in is_bytes else with_bytes(v) for k, v in value.items()}


def folded(chunks):
    """One answer of generateContent from its chunks: text is joined to that before it."""
    parts, out = [], {}
    for chunk in chunks:
        for candidate in chunk.get("candidates") or []:
            for part in (candidate.get("content") or {}).get("parts") or []:
                if "text" in part and parts and "text" in parts[-1] and parts[-1].get("thought") == part.get("thought"):
                    parts[-1] = {**parts[-1], **part, "text": parts[-1]["text"] + part["text"]}
                elif part.get("text") != "":
                    parts.append(dict(part))
            out = {**out, **candidate}
    return {**chunks[-1], "candidates": [{**out, "content": {"role": "model", "parts": parts}}]}


class Generate(Chat):
    client, package, targets = "google-genai (Python)", "google-genai", ("engine", "anthropic", "claude-5", "bedrock", "cohere", "mistral", "gemini")
    words = staticmethod(lambda text: {"contents": text})
    api = staticmethod(lambda: genai.Client(api_key="x", http_options={"base_url": PACER}))
    refusals = google_errors.ClientError
    status_errors = google_errors.APIError
    api_errors = google_errors.APIError

    @staticmethod
    def plain(answer):
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"sdk_http_response", "parsed"})

    @staticmethod
    def create(api, body):
        return api.models.generate_content(**with_bytes(body))

    @staticmethod
    def read(answer):
        return Generate.plain(answer), answer.sdk_http_response.headers.get("x-pacer-dropped")

    @staticmethod
    def stream(api, body):
        return folded([Generate.plain(chunk) for chunk in api.models.generate_content_stream(**with_bytes(body))])

    @staticmethod
    def pieces(api, body):
        stream = api.models.generate_content_stream(**body)
        return stream, stream.close

    @staticmethod
    def param(err):
        return next((d["fieldViolations"][0]["field"] for d in err.details["error"]["details"] if "fieldViolations" in d), None)

    @staticmethod
    def code(err):
        return err.code

    @staticmethod
    def beside(pair):
        """What only this API has: counting, and the list of models."""
        n = pair.api.models.count_tokens(model=pair.target, contents="one two three four").total_tokens
        pair.note("count_tokens", None if (n == 42 if pair.target == "gemini" else 4 <= n <= 30) else f"{n} tokens")
        names = [m.name for m in pair.api.models.list()]
        pair.note("the models", None if f"models/{pair.target}" in names else f"{names}")
        got = pair.api.models.get(model=pair.target).name
        pair.note("a model", None if got == f"models/{pair.target}" else got)
        chat = pair.api.chats.create(model=pair.target)
        chat.send_message("one")
        for _ in chat.send_message_stream("two"):
            pass
        answer = chat.send_message("hi").text
        body = seen()["last"]["body"]
        roles = [m["role"] for m in body.get("contents") or body["messages"]]
        turns = sum(role != before for role, before in zip(roles, [""] + roles))
        pair.note("a chat of three turns", None if turns == 5 and answer == HELLO else f"{turns} turns, {answer!r}")


def folded_chat(chunks):
    """One chat completion from its chunks."""
    message, calls, out, choice = {"role": "assistant", "content": None}, {}, {}, {}
    for chunk in chunks:
        out = {**out, **{k: v for k, v in chunk.items() if v is not None}}
        for c in chunk.get("choices") or []:
            choice = {**choice, **{k: v for k, v in c.items() if v is not None}}
            delta = c.get("delta") or {}
            for name in ("content", "reasoning_content"):
                if isinstance(delta.get(name), str) and delta[name]:
                    message[name] = (message.get(name) or "") + delta[name]
            message.setdefault("thinking_blocks", []).extend(delta.get("thinking_blocks") or [])
            for n, call in enumerate(delta.get("tool_calls") or []):
                known = calls.setdefault(call.get("index", n), {"id": call.get("id"), "function": {"name": call["function"].get("name"), "arguments": ""}})
                known["function"]["arguments"] += call["function"].get("arguments") or ""
    if calls:
        message["tool_calls"] = list(calls.values())
    return {**out, "choices": [{**choice, "message": message}]}


class Groq(Chat):
    client, package = "groq (Python)", "groq"
    targets = ("anthropic", "claude-5", "gemini", "bedrock", "cohere", "mistral")
    api = staticmethod(lambda: groq.Groq(base_url=PACER, api_key="x", max_retries=0))
    refusals, status_errors, api_errors = groq.BadRequestError, groq.APIStatusError, groq.APIError
    known = frozenset(inspect.signature(groq.resources.chat.Completions.create).parameters)

    @classmethod
    def has(cls, body):
        return set(body) <= cls.known

    @staticmethod
    def param(err):
        return err.body["error"].get("param")

    @staticmethod
    def stream(api, body):
        more = {**body.get("extra_body", {}), "stream_options": {"include_usage": True}}
        return folded_chat([chunk.model_dump() for chunk in api.chat.completions.create(**{**body, "extra_body": more}, stream=True)])


class MistralChat(Chat):
    client, package = "mistralai (Python)", "mistralai"
    targets = ("anthropic", "claude-5", "gemini", "bedrock", "cohere", "mistral")
    api = staticmethod(lambda: Mistral(server_url=PACER, api_key="x"))
    refusals = status_errors = api_errors = MistralError
    known = frozenset(inspect.signature(Mistral(api_key="x").chat.complete).parameters)
    roles = frozenset(("system", "user", "assistant", "tool"))

    @classmethod
    def has(cls, body):
        said = [m.get("content") for m in body["messages"]]
        parts = {p["type"] for content in said if isinstance(content, list) for p in content}
        return set(body) <= cls.known - {"reasoning_effort"} and parts <= {"text", "image_url"} and all(m["role"] in cls.roles and "thinking_blocks" not in m for m in body["messages"])

    overloaded = "validation"  # of an error within a stream it says that it is no chunk

    @staticmethod
    def said(body):
        """What the SDK is called with: it wants parameters of each tool."""
        tools = [{**t, "function": {"parameters": {}, **t["function"]}} for t in body.get("tools", [])]
        return {**body, "tools": tools} if tools else body

    @staticmethod
    def create(api, body):
        return api.chat.complete(**MistralChat.said(body))

    @staticmethod
    def read(answer):
        return answer.model_dump(mode="json"), None

    @staticmethod
    def param(err):
        return json.loads(err.body)["error"].get("param")

    @staticmethod
    def stream(api, body):
        with api.chat.stream(**MistralChat.said(body)) as events:
            return folded_chat([event.data.model_dump(mode="json") for event in events])

    @staticmethod
    def pieces(api, body):
        stream = api.chat.stream(**body)
        return iter(stream), stream.response.close


class CohereChat(Chat):
    client, package, targets = "cohere (Python)", "cohere", ("engine", "anthropic", "claude-5", "gemini", "bedrock", "mistral", "cohere")
    api = staticmethod(lambda: cohere.ClientV2(base_url=PACER, api_key="x"))
    refusals = status_errors = api_errors = CohereError

    @staticmethod
    def create(api, body):
        # It tries again by itself, which would hide what is tested.
        return api.with_raw_response.chat(**body, request_options={"max_retries": 0})

    @staticmethod
    def read(raw):
        return raw.data.model_dump(mode="json"), raw.headers.get("x-pacer-dropped")

    @staticmethod
    def stream(api, body):
        return folded_cohere([e.model_dump(mode="json") for e in api.chat_stream(**body, request_options={"max_retries": 0})])

    @staticmethod
    def pieces(api, body):
        stream = api.chat_stream(**body)
        return told_errors(stream), stream.close

    @staticmethod
    def param(err):
        return err.body["error"].get("param")


def told_errors(events):
    """Of an error within a stream Cohere's SDK makes an event like others."""
    for event in events:
        if event.type == "message-end" and event.delta.error:
            raise CohereError(body=event.delta.error)
        yield event


def folded_cohere(events):
    """One answer of Cohere's chat from its events."""
    message, out, ended = {"role": None, "content": [], "tool_calls": []}, {}, []
    for e in events:
        said = ((e.get("delta") or {}).get("message")) or {}
        match e["type"]:
            case "message-start":
                out["id"], message["role"] = e["id"], said["role"]
            case "content-start":
                if e["index"] != len(message["content"]):
                    raise AssertionError(f"content {e['index']} begins after {len(message['content'])}")
                message["content"].append({k: v for k, v in said["content"].items() if v is not None})
            case "content-delta":
                for name in ("text", "thinking"):
                    if said["content"].get(name):
                        message["content"][e["index"]][name] += said["content"][name]
            case "tool-call-start":
                call = said["tool_calls"]
                if e["index"] != len(message["tool_calls"]) or call["type"] != "function":
                    raise AssertionError(f"call {e['index']} begins after {len(message['tool_calls'])}")
                message["tool_calls"].append({"id": call["id"], "function": dict(call["function"])})
            case "tool-call-delta":
                message["tool_calls"][e["index"]]["function"]["arguments"] += said["tool_calls"]["function"]["arguments"]
            case "content-end" | "tool-call-end":
                ended.append(e["index"])
            case "message-end":
                out.update({k: v for k, v in e["delta"].items() if v is not None})
    if len(ended) != len(message["content"]) + len(message["tool_calls"]):
        raise AssertionError(f"{len(ended)} blocks ended")
    return {**out, "message": message}


class Pair:
    def __init__(self, side, name, target):
        self.side, self.name, self.target = side, name, target
        self.own = name == target  # it is the client's own API
        self.api, self.ran, self.failed = side.api(), 0, []

    def note(self, case, wrong):
        self.ran += 1
        if wrong:
            self.failed.append(f"{case}: {wrong}")

    def run(self, cases):
        for case in cases["cases"]:
            body = {**cases["body"], **case["body"]}
            but = case.get("but", [])
            if self.target in but or self.own and "own" in but or not self.side.has(body):
                continue
            refused = None if self.own else self.of(case.get("no", {}))
            model = self.target
            if refused:
                self.note(case["name"] + ", refused", self.refused({**body, "model": model}, refused))
                model += "-lenient"
            for how in ("document", "stream"):
                try:
                    wrong = self.case(case, {**body, "model": model}, how, refused)
                except Exception as err:
                    wrong = f"{type(err).__name__}: {err}"
                    seen()
                self.note(f"{case['name']}, {how}", wrong)
        for status in (400, 401, 403, 404, 422, 429, 500, 503, 529):
            self.note(f"status {status}", self.status(status))
        self.side.beside(self)
        seen()
        self.note("an error within a stream", self.overload())
        self.note("a client that hangs up", self.cancel())

    def of(self, by_target):
        """What a case says of the target; a later Claude is like the others, but for what it says."""
        if self.target == "claude-5" and self.target not in by_target:
            return by_target.get("anthropic")
        return by_target.get(self.target)

    def refused(self, body, names):
        try:
            self.side.create(self.api, body)
        except self.side.refusals as err:
            name = names.split(",")[0]
            param = self.side.param(err) or name
            n = seen()["n"]
            return None if param == name and name in str(err) and n == 0 else f"{err}, after {n} requests"
        return "it is not refused"

    def case(self, case, body, how, dropped):
        if how == "document":
            answer, got = self.side.read(self.side.create(self.api, body))
            if self.side is not MistralChat and sorted((got or "").split(", ")) != sorted((dropped or "").split(", ")):
                return f"x-pacer-dropped is {got}, want {dropped}"
        else:
            answer = self.side.stream(self.api, body)
        told = seen()
        if told["wrong"]:
            return "the request is none of this API: " + "; ".join(told["wrong"])
        if told["n"] == 0:
            return "no request came"
        return differ("up", told["last"]["body"], self.of(case.get("up", {})), body["model"]) or differ(
            "down", answer, case.get("down"), body["model"]
        )

    def status(self, status):
        try:
            self.side.create(self.api, {**self.side.words(f"status {status}"), "model": self.target})
        except self.side.status_errors as err:
            # What the backend thinks of the gateway's key is no fault of the client.
            want = {400: (400,), 422: (400, 422), 404: (404, 502), 429: (429,)}.get(status, range(500, 600))
            seen()
            code = self.side.code(err)
            ok = code in want and (f"because of {status}" in str(err) or status in (401, 403, 404))
            return None if ok else f"{code} {err}"
        finally:
            seen()
        return "no error"

    def overload(self):
        try:
            pieces, _ = self.side.pieces(self.api, {**self.side.words("overload"), "model": self.target})
            for piece in pieces:
                if getattr(piece, "type", "") in ("error", "response.failed"):
                    return None if "Overloaded" in str(piece) else str(piece)
        except self.side.api_errors as err:
            return None if self.side.overloaded in str(err) else str(err)
        finally:
            seen()
        return "no error"

    def cancel(self):
        seen()
        pieces, close = self.side.pieces(self.api, {**self.side.words("hang"), "model": self.target})
        next(pieces)
        close()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if seen()["gone"]:
                return None
            time.sleep(0.01)
        return "the backend's request was not cancelled"


def main():
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    for side, name in ((Chat, "chat"), (Messages, "messages"), (Responses, "responses"), (Generate, "generate"), (Groq, "groq"), (MistralChat, "mistral"), (CohereChat, "cohere")):
        if name != sys.argv[2]:
            continue
        for target in side.targets:
            pair = Pair(side, name, target)
            pair.run(cases["chat" if issubclass(side, (Groq, MistralChat)) else name])
            print(json.dumps({"client": side.client, "version": version(side.package), "from": name, "to": target, "cases": pair.ran, "failed": pair.failed}), flush=True)


main()
