"""Each endpoint asked for by clients that are not Pacer's: OpenAI's, Anthropic's and
Cohere's SDKs, and requests, as the examples of vLLM do.

Prints the URL of a server that answers as the APIs do, reads the URL of a gateway in
front of it, makes every call to both, and prints what the server was sent and what
the clients made of the answers, a call a line.
"""

import base64
import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import cohere
import openai
import requests

from answers import answer

seen = []  # what came since the last look


class API(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, kind, text = answer(self.command, self.path.partition("?")[0], body)
        if self.path != "/v1/models":  # which gateways ask of themselves
            seen.append({
                "method": self.command, "path": self.path, "type": self.headers.get("Content-Type", ""),
                "accept": self.headers.get("Accept", ""), "agent": self.headers.get("User-Agent", ""),
                "key": self.headers.get("Authorization") or self.headers.get("x-api-key") or "",
                "body": base64.b64encode(body).decode(), "status": status, "answer_type": kind, "answer": base64.b64encode(text).decode(),
            })
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = handle_any

    def log_message(self, *_):
        pass


MODEL = "gpt-4o"
HELLO = [{"role": "user", "content": "Say hello."}]
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
WAV = b"RIFF$\0\0\0WAVEfmt " + bytes(range(256)) * 4
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}


def calls(base, key):
    """Every call, as (name, function)."""
    o = openai.OpenAI(base_url=base + "/v1", api_key=key, max_retries=0, timeout=60)
    a = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0, timeout=60)
    c1, c2 = cohere.Client(key, base_url=base, timeout=60), cohere.ClientV2(key, base_url=base, timeout=60)

    def vllm(path, **body):
        r = requests.post(base + path, headers={"Authorization": "Bearer " + key}, json={"model": MODEL, **body}, timeout=60)
        r.raise_for_status()
        return r.json()

    docs = ["The capital of Brazil is Brasilia.", "The capital of France is Paris."]
    return [
        ("openai chat", lambda: o.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=5, seed=2**53 + 1)),
        ("openai chat stream", lambda: list(o.chat.completions.create(model=MODEL, messages=HELLO, **STREAMED))),
        ("openai completion", lambda: o.completions.create(model=MODEL, prompt="Hello", max_tokens=5)),
        ("openai completion stream", lambda: list(o.completions.create(model=MODEL, prompt="Hello", **STREAMED))),
        ("openai embedding", lambda: o.embeddings.create(model=MODEL, input=["é", "x"])),
        ("openai moderation", lambda: o.moderations.create(model="omni-moderation-latest", input="x")),
        ("openai moderation without a model", lambda: o.moderations.create(input="x")),
        ("openai image", lambda: o.images.generate(model="gpt-image-1", prompt="a cat")),
        ("openai image stream", lambda: list(o.images.generate(model="gpt-image-1", prompt="a cat", stream=True, partial_images=1))),
        ("openai image edit", lambda: o.images.edit(model="gpt-image-1", image=("a.png", PNG, "image/png"), prompt="a dog")),
        ("openai image variation", lambda: o.images.create_variation(model="dall-e-2", image=("a.png", PNG, "image/png"), n=1)),
        ("openai speech", lambda: o.audio.speech.create(model="tts-1", voice="alloy", input="hello").content),
        ("openai transcription", lambda: o.audio.transcriptions.create(model="whisper-1", file=("a.wav", WAV, "audio/wav"), language="en")),
        ("openai translation", lambda: o.audio.translations.create(model="whisper-1", file=("a.wav", WAV, "audio/wav"))),
        ("openai response", lambda: o.responses.create(model=MODEL, input="Say hello.", store=True)),
        ("openai response stream", lambda: list(o.responses.create(model=MODEL, input="Say hello.", stream=True))),
        ("openai response tokens", lambda: o.responses.input_tokens.count(model=MODEL, input="Say hello.")),
        ("openai response compact", lambda: o.responses.compact(model=MODEL, input="Say hello.")),
        ("openai response again", lambda: o.responses.retrieve("resp_1")),
        ("openai response cancel", lambda: o.responses.cancel("resp_1")),
        ("openai response items", lambda: o.responses.input_items.list("resp_1", limit=10).data),
        ("openai response delete", lambda: o.responses.delete("resp_1")),
        ("openai file", lambda: o.files.create(file=("notes.txt", b"notes"), purpose="assistants")),
        ("openai file again", lambda: o.files.retrieve("file-abc")),
        ("openai file content", lambda: o.files.content("file-abc").content),
        ("openai file list", lambda: o.files.list(purpose="assistants").data),
        ("openai vector store", lambda: o.vector_stores.create(name="notes")),
        ("openai vector store list", lambda: o.vector_stores.list(limit=5).data),
        ("openai vector store again", lambda: o.vector_stores.retrieve("vs_1")),
        ("openai vector store update", lambda: o.vector_stores.update("vs_1", name="notes")),
        ("openai vector store file", lambda: o.vector_stores.files.create(vector_store_id="vs_1", file_id="file-abc")),
        ("openai vector store files", lambda: o.vector_stores.files.list("vs_1").data),
        ("openai vector store search", lambda: o.vector_stores.search("vs_1", query="x").data),
        ("openai vector store delete", lambda: o.vector_stores.delete("vs_1")),
        ("openai file delete", lambda: o.files.delete("file-abc")),
        ("openai fine tuning", lambda: o.fine_tuning.jobs.create(model="gpt-4o-mini", training_file="file-abc")),
        ("openai fine tuning list", lambda: o.fine_tuning.jobs.list(limit=2).data),
        ("openai fine tuning again", lambda: o.fine_tuning.jobs.retrieve("ftjob-1")),
        ("openai fine tuning events", lambda: o.fine_tuning.jobs.list_events("ftjob-1").data),
        ("openai fine tuning cancel", lambda: o.fine_tuning.jobs.cancel("ftjob-1")),
        ("anthropic message", lambda: a.messages.create(model=MODEL, max_tokens=5, messages=HELLO)),
        ("anthropic message stream", lambda: list(a.messages.create(model=MODEL, max_tokens=5, messages=HELLO, stream=True))),
        ("anthropic tokens", lambda: a.messages.count_tokens(model=MODEL, messages=HELLO)),
        ("cohere rerank v1", lambda: c1.rerank(model=MODEL, query="capital of France", documents=docs)),
        ("cohere rerank", lambda: c2.rerank(model=MODEL, query="capital of France", documents=docs, top_n=2)),
        ("cohere embed", lambda: c2.embed(model=MODEL, input_type="search_query", texts=["x"], embedding_types=["float"])),
        ("vllm tokenize", lambda: vllm("/tokenize", prompt="hello")),
        ("vllm tokenize a chat", lambda: vllm("/tokenize", messages=HELLO, return_token_strs=True)),
        ("vllm detokenize", lambda: vllm("/detokenize", tokens=[1, 2, 3])),
        ("vllm score", lambda: vllm("/score", text_1="What is the capital of France?", text_2=docs)),
        ("vllm classify", lambda: vllm("/classify", input=["x"])),
        ("vllm pooling", lambda: vllm("/pooling", input="x", encoding_format="float")),
        ("vllm rerank", lambda: vllm("/v1/rerank", query="capital of France", documents=docs)),
        ("vllm rerank v2", lambda: vllm("/v2/rerank", query="capital of France", documents=docs)),
    ]


def plain(value):
    """What a client made of an answer, as JSON has it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def made(call):
    del seen[:]
    try:
        result = plain(call())
    except Exception as e:  # it is told, and compared
        result = f"{type(e).__name__}: {e}"
    return {"result": result, "sent": list(seen)}


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), API)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    print(url, flush=True)
    gateway, key = sys.stdin.readline().split()
    for (name, direct), (_, through) in zip(calls(url, key), calls(gateway, key)):
        print(json.dumps({"name": name, "direct": made(direct), "through": made(through)}), flush=True)


main()
