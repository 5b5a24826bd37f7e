"""What OpenAI's, Cohere's and vLLM's published APIs answer, by method and path."""

import json


def document(value, kind="application/json"):
    return 200, kind, json.dumps(value).encode() if not isinstance(value, bytes) else value


def events(*all_of_them):
    text = ""
    for e in all_of_them:
        text += (f"event: {e['type']}\n" if isinstance(e, dict) and "type" in e else "") + f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n"
    return 200, "text/event-stream; charset=utf-8", text.encode()


USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


def chunk(choices, **more):
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": choices, **more}


CHAT_STREAM = events(
    chunk([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]),
    chunk([{"index": 0, "delta": {"content": "Hello"}, "finish_reason": None}]),
    chunk([{"index": 0, "delta": {"content": " there"}, "finish_reason": None}]),
    chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]),
    chunk([], usage=USAGE),
    "[DONE]",
)
CHAT = document({
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello there", "refusal": None}, "logprobs": None, "finish_reason": "stop"}],
    "usage": USAGE,
})
RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-4o", "error": None, "incomplete_details": None,
    "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
    "output": [{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Hello there", "annotations": []}]}],
    "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
              "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 11},
}
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "gpt-4o", "content": [{"type": "text", "text": "Hello there"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 2},
}
IMAGES = document({"created": 1, "data": [{"b64_json": "iVBORw0KGgo="}]})
FILE = {"id": "file-abc", "object": "file", "bytes": 5, "created_at": 1, "filename": "notes.txt", "purpose": "assistants", "status": "processed"}
STORE = {
    "id": "vs_1", "object": "vector_store", "created_at": 1, "name": "notes", "usage_bytes": 0, "status": "completed", "last_active_at": 1, "metadata": {},
    "file_counts": {"in_progress": 0, "completed": 1, "failed": 0, "cancelled": 0, "total": 1},
}
STORE_FILE = {"id": "file-abc", "object": "vector_store.file", "usage_bytes": 5, "created_at": 1, "vector_store_id": "vs_1", "status": "completed", "last_error": None}
TUNING = {
    "id": "ftjob-1", "object": "fine_tuning.job", "created_at": 1, "model": "gpt-4o-mini", "fine_tuned_model": None, "finished_at": None, "error": None,
    "hyperparameters": {"n_epochs": "auto"}, "organization_id": "org-1", "result_files": [], "seed": 1, "status": "queued", "trained_tokens": None,
    "training_file": "file-abc", "validation_file": None,
}


def page(*data):
    return document({"object": "list", "data": list(data), "first_id": data[0]["id"], "last_id": data[-1]["id"], "has_more": False})


RANKED = [{"index": 1, "relevance_score": 0.98}, {"index": 0, "relevance_score": 0.02}]
COHERE_RERANK = document({"id": "r-1", "results": RANKED, "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}})

ANSWERS = {
    "POST /v1/chat/completions": CHAT,
    "POST /v1/completions": document({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "gpt-4o",
                                      "choices": [{"index": 0, "text": " there", "logprobs": None, "finish_reason": "stop"}], "usage": USAGE}),
    "POST /v1/embeddings": document({"object": "list", "model": "gpt-4o", "data": [{"object": "embedding", "index": 0, "embedding": "AACAPwAAAEA="}],
                                     "usage": {"prompt_tokens": 2, "total_tokens": 2}}),
    "POST /v1/moderations": document({"id": "modr-1", "model": "omni-moderation-latest", "results": [{
        "flagged": False, "categories": {"harassment": False}, "category_scores": {"harassment": 0.0}, "category_applied_input_types": {"harassment": ["text"]}}]}),
    "POST /v1/images/generations": IMAGES,
    "POST /v1/images/edits": IMAGES,
    "POST /v1/images/variations": IMAGES,
    "POST /v1/audio/speech": document(bytes(range(256)) * 8, "audio/mpeg"),
    "POST /v1/audio/transcriptions": document({"text": "hello", "usage": {"type": "duration", "seconds": 1}}),
    "POST /v1/audio/translations": document({"text": "hello"}),
    "POST /v1/responses": document(RESPONSE),
    "POST /v1/responses/input_tokens": document({"object": "response.input_tokens", "input_tokens": 9}),
    "POST /v1/responses/compact": document({"id": "resp_2", "object": "response.compaction", "created_at": 1, "output": [],
                                            "usage": RESPONSE["usage"]}),
    "GET /v1/responses/resp_1": document(RESPONSE),
    "POST /v1/responses/resp_1/cancel": document(RESPONSE),
    "GET /v1/responses/resp_1/input_items": page({"id": "msg_0", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say hello."}]}),
    "DELETE /v1/responses/resp_1": document({"id": "resp_1", "object": "response", "deleted": True}),
    "POST /v1/messages": document(MESSAGE),
    "POST /v1/messages/count_tokens": document({"input_tokens": 9}),
    "POST /v1/files": document(FILE),
    "GET /v1/files/file-abc": document(FILE),
    "GET /v1/files/file-abc/content": document(b"notes", "application/octet-stream"),
    "GET /v1/files": page(FILE),
    "DELETE /v1/files/file-abc": document({"id": "file-abc", "object": "file", "deleted": True}),
    "POST /v1/vector_stores": document(STORE),
    "GET /v1/vector_stores": page(STORE),
    "GET /v1/vector_stores/vs_1": document(STORE),
    "POST /v1/vector_stores/vs_1": document(STORE),
    "POST /v1/vector_stores/vs_1/files": document(STORE_FILE),
    "GET /v1/vector_stores/vs_1/files": page(STORE_FILE),
    "POST /v1/vector_stores/vs_1/search": document({"object": "vector_store.search_results.page", "search_query": ["x"], "has_more": False, "next_page": None,
                                                    "data": [{"file_id": "file-abc", "filename": "notes.txt", "score": 0.9, "attributes": {}, "content": [{"type": "text", "text": "x"}]}]}),
    "DELETE /v1/vector_stores/vs_1": document({"id": "vs_1", "object": "vector_store.deleted", "deleted": True}),
    "POST /v1/fine_tuning/jobs": document(TUNING),
    "GET /v1/fine_tuning/jobs": page(TUNING),
    "GET /v1/fine_tuning/jobs/ftjob-1": document(TUNING),
    "POST /v1/fine_tuning/jobs/ftjob-1/cancel": document(TUNING),
    "GET /v1/fine_tuning/jobs/ftjob-1/events": page({"id": "ftevent-1", "object": "fine_tuning.job.event", "created_at": 1, "level": "info", "message": "x"}),
    "POST /v1/rerank": COHERE_RERANK,
    "POST /rerank": document({"id": "rerank-1", "model": "gpt-4o", "usage": {"total_tokens": 20}, "results": [{"index": 0, "document": {"text": "x"}, "relevance_score": 0.9}]}),
    "POST /v2/rerank": COHERE_RERANK,
    "POST /v2/embed": document({"id": "e-1", "texts": ["x"], "embeddings": {"float": [[0.1, 0.2]]}, "meta": {"api_version": {"version": "2"}}, "response_type": "embeddings_by_type"}),
    "POST /tokenize": document({"count": 3, "max_model_len": 4096, "tokens": [1, 2, 3], "token_strs": None}),
    "POST /v1/tokenize": document({"tokens": [1, 2, 3], "token_strings": ["a", "b", "c"], "meta": {"api_version": {"version": "1"}}}),
    "POST /detokenize": document({"prompt": "hello"}),
    "POST /v1/detokenize": document({"text": "hello", "meta": {"api_version": {"version": "1"}}}),
    "POST /score": document({"id": "score-1", "object": "list", "created": 1, "model": "gpt-4o", "data": [{"index": 0, "object": "score", "score": 1.0}], "usage": USAGE}),
    "POST /classify": document({"id": "classify-1", "object": "list", "created": 1, "model": "gpt-4o",
                                "data": [{"index": 0, "label": "Default", "probs": [0.9, 0.1], "num_classes": 2}], "usage": USAGE}),
    "POST /pooling": document({"id": "pool-1", "object": "list", "created": 1, "model": "gpt-4o", "data": [{"index": 0, "object": "pooling", "data": [[0.1]]}], "usage": USAGE}),
}


def answer(method, path, body):
    """What the API answers: (status, content type, bytes)."""
    if b'"stream":true' in body.replace(b": ", b":"):
        if path == "/v1/chat/completions":
            return CHAT_STREAM
        if path == "/v1/responses":
            return events({"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress", "output": []}},
                          {"type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "Hello there", "logprobs": []},
                          {"type": "response.completed", "sequence_number": 2, "response": RESPONSE})
        if path == "/v1/messages":
            return events({"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
                          {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                          {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello there"}},
                          {"type": "content_block_stop", "index": 0},
                          {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 2}},
                          {"type": "message_stop"})
        if path == "/v1/completions":
            return events({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "gpt-4o", "choices": [{"index": 0, "text": " there", "logprobs": None, "finish_reason": None}]},
                          {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "gpt-4o", "choices": [{"index": 0, "text": "", "logprobs": None, "finish_reason": "stop"}]},
                          {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "gpt-4o", "choices": [], "usage": USAGE}, "[DONE]")
        if path == "/v1/images/generations":
            return events({"type": "image_generation.partial_image", "b64_json": "AAAA", "partial_image_index": 0, "created_at": 1, "size": "1024x1024", "quality": "high", "background": "opaque", "output_format": "png"},
                          {"type": "image_generation.completed", "b64_json": "AAAA", "created_at": 1, "size": "1024x1024", "quality": "high", "background": "opaque", "output_format": "png",
                           "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"text_tokens": 1, "image_tokens": 0}}})
    return ANSWERS.get(f"{method} {path}", (404, "application/json", b'{"error":{"message":"not of this API"}}'))
