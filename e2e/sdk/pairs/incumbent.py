"""The same chats through LiteLLM's own translation and through Pacer's: prints what
differs in the requests that the fakes get, and in the answers that come down, by API
and case."""

import json
import os
import re
import sys
import urllib.request

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched
import litellm  # noqa: E402
import openai  # noqa: E402

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
}


NAMES_BOTH_WAYS = [False]  # Google takes a field by either name


def seen():
    return json.load(urllib.request.urlopen(FAKES + "/seen", timeout=10))


def leaves(value, path=""):
    if isinstance(value, dict) and value:
        for name, item in value.items():
            if NAMES_BOTH_WAYS[0]:
                name = re.sub("_(.)", lambda m: m[1].upper(), name)
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    else:
        yield path, value


def attempt(call):
    seen()
    try:
        answer, err = call(), None
    except Exception as e:
        answer, err = None, f"{type(e).__name__}: {str(e)[:160]}"
    told = seen()
    return (told["last"] or {}).get("body"), told["wrong"], err, answer


def said(chunks):
    """What a stream says, in the form of a document."""
    message, finish, usage = {"content": "", "reasoning_content": "", "tool_calls": []}, None, None
    for chunk in chunks:
        chunk = chunk.model_dump()
        usage = chunk.get("usage") or usage
        for c in chunk["choices"]:
            finish = c["finish_reason"] or finish
            for name in ("content", "reasoning_content"):
                message[name] += c["delta"].get(name) or ""
            for call in c["delta"].get("tool_calls") or []:
                while len(message["tool_calls"]) <= call["index"]:
                    message["tool_calls"].append({"function": {"name": "", "arguments": ""}})
                for name in ("name", "arguments"):
                    message["tool_calls"][call["index"]]["function"][name] += call["function"].get(name) or ""
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


OWN = re.compile(r"^(id|created|model|object|service_tier|system_fingerprint)$|tool_calls.*\.id$|provider_specific")


def differing(ours, theirs):
    """What differs, but for ids, and for fields that say nothing."""
    a, b = ({p: v for p, v in leaves(x or {}) if not OWN.search(p) and v not in (None, [], {}, "")} for x in (ours, theirs))
    return {path: [a.get(path), b.get(path)] for path in sorted({**a, **b}) if a.get(path) != b.get(path)}


def main():
    with open(sys.argv[1]) as file:
        cases = json.load(file)["chat"]["cases"]
    client = openai.OpenAI(base_url=PACER + "/v1", api_key="x", max_retries=0)
    for target, how in TARGETS.items():
        NAMES_BOTH_WAYS[0] = target == "gemini"
        for case in cases:
            ours, our_wrong, our_err, our_answer = attempt(lambda: client.chat.completions.create(model=target + "-lenient", **case["body"]))
            theirs, wrong, err, answer = attempt(lambda: litellm.completion(**how, **case["body"], num_retries=0))
            more = {"stream": True, "stream_options": {"include_usage": True}}
            _, _, _, our_stream = attempt(lambda: said(client.chat.completions.create(model=target + "-lenient", **case["body"], **more)))
            _, _, stream_err, stream = attempt(lambda: said(litellm.completion(**how, **case["body"], **more, num_retries=0)))
            for way, x, y in (("document", our_answer and our_answer.model_dump(), answer and answer.model_dump()), ("stream", our_stream, stream)):
                down = differing(x, y)
                if down:
                    print(json.dumps({"api": target, "case": case["name"], "down": way, "differ": down, "err": stream_err}, ensure_ascii=False))
            a, b = dict(leaves(ours or {})), dict(leaves(theirs or {}))
            differ = {path: [a.get(path), b.get(path)] for path in sorted({**a, **b}) if a.get(path) != b.get(path)}
            if differ or wrong or our_wrong or err or our_err:
                print(json.dumps({"api": target, "case": case["name"], "differ": dict(list(differ.items())[:12]), "wrong": [wrong[:1], our_wrong[:1]], "err": [err, our_err]}, ensure_ascii=False))


main()
