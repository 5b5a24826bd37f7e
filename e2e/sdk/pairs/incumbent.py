"""The same chats through LiteLLM's own translation and through Pacer's: prints what
differs in the requests that the fakes get, by API and case."""

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
        call()
        err = None
    except Exception as e:
        err = f"{type(e).__name__}: {str(e)[:160]}"
    told = seen()
    return (told["last"] or {}).get("body"), told["wrong"], err


def main():
    with open(sys.argv[1]) as file:
        cases = json.load(file)["chat"]["cases"]
    client = openai.OpenAI(base_url=PACER + "/v1", api_key="x", max_retries=0)
    for target, how in TARGETS.items():
        NAMES_BOTH_WAYS[0] = target == "gemini"
        for case in cases:
            ours, our_wrong, our_err = attempt(lambda: client.chat.completions.create(model=target + "-lenient", **case["body"]))
            theirs, wrong, err = attempt(lambda: litellm.completion(**how, **case["body"], num_retries=0))
            a, b = dict(leaves(ours or {})), dict(leaves(theirs or {}))
            differ = {path: [a.get(path), b.get(path)] for path in sorted({**a, **b}) if a.get(path) != b.get(path)}
            if differ or wrong or our_wrong or err or our_err:
                print(json.dumps({"api": target, "case": case["name"], "differ": dict(list(differ.items())[:12]), "wrong": [wrong[:1], our_wrong[:1]], "err": [err, our_err]}, ensure_ascii=False))


main()
