"""Official SDKs for Python before backends of other dialects: each case as a
document and as a stream, then errors and a client that hangs up. Prints a line of
JSON for each pair."""

import json
import os
import sys
import time
import urllib.request
from importlib.metadata import version

import anthropic
import openai

PACER = os.environ["PACER_URL"]
FAKES = os.environ["FAKES_URL"]


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
    targets = ("anthropic", "claude-5", "gemini", "bedrock")
    api = staticmethod(lambda: openai.OpenAI(base_url=PACER + "/v1", api_key="x", max_retries=0))
    errors = openai

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
    client, package, targets = "anthropic (Python)", "anthropic", ("engine", "gemini", "bedrock")
    words = staticmethod(lambda text: {"max_tokens": 100, "messages": [{"role": "user", "content": text}]})
    api = staticmethod(lambda: anthropic.Anthropic(base_url=PACER, api_key="x", max_retries=0))
    errors = anthropic

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
    client, targets = "openai (Python), responses", ("engine", "anthropic", "gemini", "bedrock")
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


class Pair:
    def __init__(self, side, name, target):
        self.side, self.name, self.target = side, name, target
        self.api, self.ran, self.failed = side.api(), 0, []

    def note(self, case, wrong):
        self.ran += 1
        if wrong:
            self.failed.append(f"{case}: {wrong}")

    def run(self, cases):
        for case in cases["cases"]:
            body = {**cases["body"], **case["body"]}
            refused = self.of(case.get("no", {}))
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
        except self.side.errors.BadRequestError as err:
            name = names.split(",")[0]
            param = err.body.get("param", name) if self.side is not Messages else name
            n = seen()["n"]
            return None if param == name and name in str(err) and n == 0 else f"{err}, after {n} requests"
        return "it is not refused"

    def case(self, case, body, how, dropped):
        if how == "document":
            raw = self.side.create(self.api, body)
            answer = raw.parse().model_dump()
            got = raw.headers.get("x-pacer-dropped")
            if sorted((got or "").split(", ")) != sorted((dropped or "").split(", ")):
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
        except self.side.errors.APIStatusError as err:
            # What the backend thinks of the gateway's key is no fault of the client.
            want = {400: (400,), 422: (400, 422), 404: (404, 502), 429: (429,)}.get(status, range(500, 600))
            seen()
            ok = err.status_code in want and (f"because of {status}" in str(err) or status in (401, 403, 404))
            return None if ok else f"{err.status_code} {err}"
        finally:
            seen()
        return "no error"

    def overload(self):
        try:
            pieces, _ = self.side.pieces(self.api, {**self.side.words("overload"), "model": self.target})
            for piece in pieces:
                if getattr(piece, "type", "") in ("error", "response.failed"):
                    return None if "Overloaded" in str(piece) else str(piece)
        except self.side.errors.APIError as err:
            return None if "Overloaded" in str(err) else str(err)
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
    for side, name in ((Chat, "chat"), (Messages, "messages"), (Responses, "responses")):
        for target in side.targets:
            pair = Pair(side, name, target)
            pair.run(cases[name])
            print(json.dumps({"client": side.client, "version": version(side.package), "from": name, "to": target, "cases": pair.ran, "failed": pair.failed}), flush=True)


main()
