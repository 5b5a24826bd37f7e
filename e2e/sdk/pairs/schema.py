"""Says what is wrong with a request, by what its maker publishes: the types of
Anthropic's, OpenAI's, Google's, Cohere's and Mistral's SDKs, and the model of Bedrock's API that AWS
puts into botocore. What none of them holds is wrong."""

import base64
import collections.abc
import re
import types
import typing

import botocore.session
import botocore.validate
import typing_extensions
import cohere
from anthropic.types import message_count_tokens_params, message_create_params
from google.genai import types as gemini
from mistralai.client import models as mistral
from mistralai.client.types import Nullable
from openai.types.chat import completion_create_params
from pydantic import BaseModel, TypeAdapter, ValidationError


WRAPPERS = (typing.Required, typing.NotRequired, typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.Annotated)


def typed(value, hint, path=""):
    """Returns what is wrong with value as a TypedDict of an SDK, or None."""
    origin = typing_extensions.get_origin(hint)
    args = typing_extensions.get_args(hint)
    if origin is Nullable:  # Mistral's, with a type of its own within
        return None if value is None else typed(value, args[0], path)
    if hasattr(hint, "__value__"):  # an alias
        return typed(value, hint.__value__, path)
    if origin in WRAPPERS:
        return typed(value, args[0], path)
    if hint in (object, typing.Any):
        return None
    if origin in (typing.Union, types.UnionType):
        wrong = [typed(value, arg, path) for arg in args]
        return None if None in wrong else max(wrong, key=depth)
    if origin in (typing.Literal, typing_extensions.Literal):
        return None if any(value == arg and type(value) is type(arg) for arg in args) else f"{path}: {value!r} is none of {args}"
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence, typing.List):
        if not isinstance(value, list):
            return f"{path}: {value!r} is no list"
        return first(typed(item, args[0], f"{path}[{i}]") for i, item in enumerate(value))
    if origin in (dict, collections.abc.Mapping, typing.Dict):
        if not isinstance(value, dict):
            return f"{path}: {value!r} is no object"
        return first(typed(item, args[1], f"{path}.{name}") for name, item in value.items())
    if isinstance(hint, type) and issubclass(hint, BaseModel) and hint.__module__.startswith("cohere."):
        return typed_model(value, hint, path)
    if typing_extensions.is_typeddict(hint):
        return typed_dict(value, hint, path)
    if hint is float:
        return None if isinstance(value, (int, float)) and not isinstance(value, bool) else f"{path}: {value!r} is no number"
    if hint is type(None):
        return None if value is None else f"{path}: {value!r} is not null"
    if isinstance(hint, type) and hint in (str, int, bool):
        return None if type(value) is hint else f"{path}: {value!r} is no {hint.__name__}"
    return f"{path}: {hint} is not for JSON"  # a path, a file, a class of the SDK


def typed_dict(value, hint, path):
    if not isinstance(value, dict):
        return f"{path}: {value!r} is no {hint.__name__}"
    hints = typing_extensions.get_type_hints(hint, include_extras=True)
    names = {wire_name(name, h): (name, h) for name, h in hints.items()}
    for name in value:
        if name not in names and not open_ended(hint):
            return f"{path}.{name} is unknown to {hint.__name__}"
    for name in hint.__required_keys__:
        if typing.get_origin(hints[name]) in (typing.NotRequired, typing_extensions.NotRequired):
            continue  # of a class whose hints were text as it was made
        if wire_name(name, hints[name]) not in value:
            return f"{path}.{name} is missing"
    return first(typed(value[wire], h, f"{path}.{wire}") for wire, (_, h) in names.items() if wire in value)


def typed_model(value, model, path):
    """As typed_dict, for a class of pydantic that takes whatever it is given."""
    if not isinstance(value, dict):
        return f"{path}: {value!r} is no {model.__name__}"
    hints = typing_extensions.get_type_hints(model, include_extras=True)
    for name in value:
        if name not in model.model_fields:
            return f"{path}.{name} is unknown to {model.__name__}"
    for name, field in model.model_fields.items():
        if field.is_required() and name not in value:
            return f"{path}.{name} is missing"
    return first(typed(item, hints[name], f"{path}.{name}") for name, item in value.items())


def open_ended(hint):
    """Whether a TypedDict takes more than it names, as that of a JSON schema."""
    extra = getattr(hint, "__extra_items__", None)
    return extra not in (None, typing.Never, typing_extensions.NoExtraItems)


def wire_name(name, hint):
    while typing.get_origin(hint) is not None:
        for extra in getattr(hint, "__metadata__", ()):
            if getattr(extra, "alias", None):
                return extra.alias
        args = typing.get_args(hint)
        if not args:
            break
        hint = args[0]
    return {"schema_definition": "schema"}.get(name, name)  # as Mistral's class of the same name has it


def depth(wrong):
    return wrong.count(".", 0, wrong.find(":") if ":" in wrong else len(wrong))


def first(many):
    return next((wrong for wrong in many if wrong), None)


SAMPLING = ("temperature", "top_p", "top_k")  # of the version of 2023, whose types the SDK has no more

# Models whose thinking is told by an effort, and who take no sampling.
LATEST = ("claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-haiku-5", "claude-fable", "claude-mythos")


def anthropic_wrong(body, count=False, version=""):
    if count:
        return typed(body, message_count_tokens_params.MessageCountTokensParams)
    rest = {name: value for name, value in body.items() if name != "stream"}
    if version == "2023-06-01" and not body["model"].startswith(LATEST):
        rest = {name: value for name, value in rest.items() if name not in SAMPLING}
    if body["model"].startswith(LATEST) and body.get("thinking", {}).get("type") == "enabled":
        return "thinking.type.enabled is not supported for this model"
    return typed(rest, message_create_params.MessageCreateParamsBase) or anthropic_rules(body)


def anthropic_rules(body):
    """What Anthropic says in words."""
    thinking, most = body.get("thinking", {}), body["max_tokens"]
    thinks = thinking.get("type") in ("enabled", "adaptive")
    if most < 1 or thinking.get("type") == "enabled" and not 1024 <= thinking["budget_tokens"] < most:
        return "max_tokens and the budget do not fit"
    if body.get("temperature", 1) > 1 or thinks and (body.get("temperature", 1) != 1 or "top_k" in body or body.get("top_p", 1) < 0.95):
        return "sampling"
    if thinks and body.get("tool_choice", {}).get("type") in ("any", "tool"):
        return "a forced tool while it thinks"
    called, role = [], "assistant"
    for message in body["messages"]:
        if message["role"] == role:
            return "a role follows itself"
        role = message["role"]
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if not blocks:
            return "an empty turn"
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if results and sorted(results) != sorted(called) or called and not results:
            return "calls and results do not match"
        if any(b["type"] != "tool_result" for b in blocks[: len(results)]):
            return "a result behind something else"
        if any(b["type"] == "text" and not b["text"] for b in blocks):
            return "an empty text"
        called = [b["id"] for b in blocks if b["type"] == "tool_use"]
        if called and not all(c.isalnum() or c in "_-" for i in called for c in i):
            return "an id of a call"
    marks = str(body).count("'cache_control': {")
    if marks > 4:
        return "more than four marks for a cache"
    return None


GEMINI = {
    "contents": TypeAdapter(list[gemini.Content]),
    "systemInstruction": TypeAdapter(gemini.Content),
    "tools": TypeAdapter(list[gemini.Tool]),
    "toolConfig": TypeAdapter(gemini.ToolConfig),
    "generationConfig": TypeAdapter(gemini.GenerationConfig),
    "safetySettings": TypeAdapter(list[gemini.SafetySetting]),
    "cachedContent": TypeAdapter(str),
    "labels": TypeAdapter(dict[str, str]),
}


def gemini_wrong(body):
    for name, value in body.items():
        if name not in GEMINI:
            return f"{name} is unknown"
        try:
            GEMINI[name].validate_python(value)
        except ValidationError as err:
            return f"{name}: {err}"
    config = body.get("generationConfig", {})
    if not 0 <= config.get("temperature", 1) <= 2:
        return "temperature"
    if "logprobs" in config and not config.get("responseLogprobs"):
        return "logprobs without responseLogprobs"
    if "responseJsonSchema" in config and config.get("responseMimeType") != "application/json":
        return "a schema without its type"
    called, role = [], "model"
    for content in body["contents"]:
        if content["role"] == role or content["role"] not in ("user", "model"):
            return "a role follows itself"
        role = content["role"]
        if not content["parts"]:
            return "an empty turn"
        results = [p["functionResponse"]["name"] for p in content["parts"] if "functionResponse" in p]
        if role == "user" and results != called:
            return "as many results as calls have to come, in their order"
        called = [p["functionCall"]["name"] for p in content["parts"] if "functionCall" in p]
    return None


SERVICE = botocore.session.get_session().get_service_model("bedrock-runtime")
PARAMETERS = botocore.validate.ParamValidator()


def python_params(value, shape, path=""):
    """The JSON of a request as boto3's callers write it, and what is wrong so far."""
    if shape.type_name == "structure" and getattr(shape, "is_document_type", False):
        return value, None
    if shape.type_name == "structure" and isinstance(value, dict):
        out = {}
        for name, item in value.items():
            if name not in shape.members:
                return None, f"{path}.{name} is unknown"
            out[name], wrong = python_params(item, shape.members[name], f"{path}.{name}")
            if wrong:
                return None, wrong
        return out, None
    if shape.type_name == "list" and isinstance(value, list):
        out = []
        for i, item in enumerate(value):
            item, wrong = python_params(item, shape.member, f"{path}[{i}]")
            if wrong:
                return None, wrong
            out.append(item)
        return out, None
    if shape.type_name == "blob":
        try:
            return base64.b64decode(value, validate=True), None
        except (ValueError, TypeError):
            return None, f"{path} is no base64"
    if shape.type_name == "string" and shape.enum and value not in shape.enum:
        return None, f"{path}: {value!r} is none of {shape.enum}"
    if shape.type_name in ("float", "double") and isinstance(value, (int, float)):
        return float(value), None
    return value, None


def bedrock_wrong(body, model, stream):
    operation = SERVICE.operation_model("ConverseStream" if stream else "Converse")
    params, wrong = python_params(body, operation.input_shape)
    if wrong:
        return wrong
    report = PARAMETERS.validate({"modelId": model, **params}, operation.input_shape)
    if report.has_errors():
        return report.generate_report()
    called, role = [], "assistant"
    for message in body["messages"]:
        if message["role"] == role:
            return "a role follows itself"
        role = message["role"]
        blocks = message["content"]
        if not blocks:
            return "an empty turn"
        results = [b["toolResult"]["toolUseId"] for b in blocks if "toolResult" in b]
        if sorted(results) != sorted(called):
            return "calls and results do not match"
        called = [b["toolUse"]["toolUseId"] for b in blocks if "toolUse" in b]
        documents = [b for b in blocks if "document" in b]
        if documents and not any("text" in b for b in blocks):
            return "a document without a text"
    if called:
        return "a call without a result"
    if any("toolUse" in b or "toolResult" in b for m in body["messages"] for b in m["content"]) and "toolConfig" not in body:
        return "calls of tools without toolConfig"
    return None


ENGINE_FIELDS = {"top_k", "stream"}  # of vLLM, beside OpenAI's


def chat_wrong(body):
    rest = {name: value for name, value in body.items() if name not in ENGINE_FIELDS}
    rest["messages"] = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in body["messages"]]
    wrong = typed(rest, completion_create_params.CompletionCreateParamsBase)
    if wrong:
        return wrong
    open_calls = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "a result of no call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return "a call without a result"
        if message["role"] == "assistant":
            open_calls = [c["id"] for c in message.get("tool_calls") or []]
    if "top_logprobs" in body and not body.get("logprobs"):
        return "top_logprobs without logprobs"
    return None


COHERE = typing.get_type_hints(cohere.ClientV2.chat)
COHERE_RANGES = {"p": (0.01, 0.99), "k": (0, 500), "frequency_penalty": (0, 1), "presence_penalty": (0, 1), "seed": (0, 2**64 - 1)}


def cohere_wrong(body):
    for name, value in body.items():
        if name == "stream" and type(value) is bool:
            continue
        if name not in COHERE or name in ("return", "request_options"):
            return f"{name} is unknown"
        wrong = typed(value, COHERE[name], name)
        if wrong:
            return wrong
        least, most = COHERE_RANGES.get(name, (None, None))
        if most and not least <= value <= most:
            return f"{name} is {value}, and has to be from {least} to {most}"
    open_calls = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "a result of no call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return "a call without a result"
        if message["role"] == "assistant":
            open_calls = [c["id"] for c in message.get("tool_calls") or []]
    if body.get("response_format", {}).get("type") == "text" and "json_schema" in body["response_format"]:
        return "a schema of text"
    if "tool_choice" in body and not body.get("tools"):
        return "a choice of no tools"
    if body.get("thinking", {}).get("token_budget", 1) < 1:
        return "token_budget"
    return None


MISTRAL_ID = re.compile("[a-zA-Z0-9]{9}")
MISTRAL_NAME = re.compile("[a-zA-Z0-9_-]{1,64}")
# Who may follow whom. That a user may follow a tool is of the latest models alone.
MISTRAL_ORDER = {
    "system": ("user", "assistant", "system"),
    "user": ("assistant", "system", "user"),
    "assistant": ("assistant", "user", "tool"),
    "tool": ("assistant", "tool"),
}


def mistral_wrong(body):
    """The types of Mistral's SDK, and what its package mistral_common and its API's
    errors say in words: of what all models take."""
    wrong = typed(body, mistral.ChatCompletionStreamRequestTypedDict if body.get("stream") else mistral.ChatCompletionRequestTypedDict)
    if wrong:
        return wrong
    calls, before = [], None
    for i, message in enumerate(body["messages"]):
        role, last = message["role"], i == len(body["messages"]) - 1
        if before and role not in MISTRAL_ORDER[before]:
            return f"Unexpected role '{role}' after role '{before}'"
        before = role
        if role == "tool":
            if message.get("tool_call_id") not in calls:
                return "a result of no call"
            calls.remove(message["tool_call_id"])
        elif calls:
            return "Not the same number of function calls and responses"
        if role != "assistant":
            continue
        calls = [c.get("id") for c in message.get("tool_calls") or []]
        if not message.get("content") and not calls:
            return "Assistant message must have either content or tool_calls"
        if len(set(calls)) != len(calls):
            return "an id of two calls"
        if not all(MISTRAL_ID.fullmatch(c or "") for c in calls):
            return f"Tool call id was {calls} but must be a-z, A-Z, 0-9, with a length of 9."
        if not all(MISTRAL_NAME.fullmatch(c["function"]["name"]) for c in message.get("tool_calls") or []):
            return "a name of a function"
        if message.get("prefix", False) != (last and not calls):
            return "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
    if calls:
        return "a call without a result"
    if not all(MISTRAL_NAME.fullmatch(t["function"]["name"]) for t in body.get("tools") or []):
        return "a name of a function"
    if body.get("response_format", {}).get("type") == "json_schema" and not body["response_format"].get("json_schema"):
        return "a schema is missing"
    return None
