package sdk

import "strings"

// besideLiteLLM is what pairs/incumbent.py found, and what each difference is worth. A
// "~" stands for the mark of code.
var besideLiteLLM = strings.ReplaceAll(`
## Beside LiteLLM

The cases of the table through LiteLLM 1.106.2 and through Pacer, what each sends up, and what comes down of the same answer (~e2e/sdk/pairs/incumbent.py~). Both drop what cannot be carried. What is not here is the same. Every row was seen in a run; whether the makers' servers refuse what their published types lack was not tried.

### Chats to Claude, Gemini and Bedrock

| API | what | LiteLLM | Pacer | verdict |
|---|---|---|---|---|
| messages | no limit was said | the model's most, 64000 or 128000 | 32000 | ours: a limit that large takes its part of the rate limit |
| messages | ~temperature~ above 1 | sent as it is, and refused | dropped | ours |
| messages | ~temperature: 1~ at Claude 5 | sent | left out: it asks for nothing | ours: the types of 2026-10-21 have no such field |
| messages | schema | ~output_format~ of the beta | ~output_config.format~ | ours: the types of 2026-10-21 have that alone |
| messages | no thinking at Claude 5 | nothing | ~thinking: disabled~ | ours |
| messages | name of a file, type of a tool, a result of a tool | no title; ~custom~; a string | its title; no type; a list of blocks | the same to the API |
| messages | the model's words are empty, beside a call | ~[System: Empty message content sanitised …]~ as its words | left out | ours: the model never said so |
| messages, converse | a thought that another maker signed | sent | left out | ours: Anthropic believes its own alone |
| messages, converse | a field of another maker, as ~safe_prompt~ | sent | dropped, and named | ours |
| messages | thoughts of Claude 5 that are to be shown | no ~display~ | ~display: summarized~ | ours: else there are none to show |
| all | medium effort | 2048 tokens | 8192 | ours: it is what Google maps medium to |
| all | limit beside a budget | the budget and 4096 | 32000 | ours: an answer of 4096 tokens is cut too often |
| generateContent | system | several parts | one part | the same to the API |
| generateContent | results of tools, then words | two turns of the user in a row | one turn | the API takes both |
| generateContent | a call without arguments | ~args: {type: object}~ | ~args: {}~ | ours: the model never said so |
| generateContent | schema of a tool | ~parameters~ | ~parametersJsonSchema~ | ours: it takes any JSON schema |
| generateContent | ~top_logprobs~ | left out | ~logprobs~ | ours |
| generateContent | signature of a call that comes back | left out | goes back | ours: Gemini 3 refuses a call without its own |
| generateContent | ~n: 1~, no thinking | ~candidateCount: 1~, ~includeThoughts: false~ | left out | the same to the API |
| generateContent | ~detail: low~ of an image | ~mediaResolution~ for the whole request | left out | theirs is closer for one image, and wrong for several |
| generateContent | ~service_tier: auto~ | ~priority~ | left out | ours: auto asks for nothing, and priority costs more |
| generateContent, converse | image by its address | fetched by the gateway | passed on, or refused by its name | ours: a gateway that fetches what clients name reaches what they cannot |
| converse | schema | a tool that is forced | ~outputConfig.textFormat~ | ours: the model of the API has it, and streams stay text |
| converse | no tool | tools are sent all the same | no tools | ours: with no way to forbid, the model may call one |
| converse | name of a file | a hash of its content | its name, as far as the API takes it | ours: the model reads it |
| converse | a tool without a description | its name as one | none | the same to the API |
| converse | tokens of thoughts | asked for by ~additionalModelResponseFieldPaths~ | not asked for | theirs is closer, where AWS tells |
| converse | ~service_tier: auto~ | ~serviceTier: default~ | left out | the same to the API |
| converse | id of a call with a dot | as it is | ~_~ for it | ours: the pattern of the API has no dot |

What comes down, of the same answer, as a document and as a stream.

| API | what | LiteLLM | Pacer | verdict |
|---|---|---|---|---|
| messages | numbers in the arguments of a call, document | written anew: 1.50 is 1.5 | as the model wrote them | ours |
| all | ~index~ of a call, document | the block's, so 1 for the first call behind a text | none: it is of streams | ours: it is none of OpenAI's document |
| generateContent | an answer that ends for safety, document | its text is left out, and what came from a cache | as Google wrote it | ours: the finish reason says what it is |
| generateContent | signature of a call, document | none | ~extra_content.google.thought_signature~, as Google's own layer has it | ours: it has to go back |
| converse | usage of a stream with a schema | without what came from a cache | whole | ours |
| messages, converse | reasoning tokens that nobody counted | 5, by a tokenizer of its own | 0 | ours: nothing is made up |
| generateContent | thoughts without a signature, document | ~thinking_blocks~, too | ~reasoning_content~ alone | ours: what has no signature need not go back |
| generateContent | why it ended, in Google's word | ~native_finish_reason~ | none | the same to OpenAI's SDKs |
| all | usage beside OpenAI's | ~cache_read_input_tokens~, ~text_tokens~, ~cost~ | ~cached_tokens~; the cost in a header | the same figures |

### Chats to Cohere and Mistral

| API | what | LiteLLM | Pacer | verdict |
|---|---|---|---|---|
| Cohere | every stream | breaks off at its first line: it reads bare lines of JSON | comes down | ours: Cohere publishes server-sent events |
| Cohere | ~response_format~, ~tool_choice~, ~reasoning_effort~ | left out | ~response_format~, ~tool_choice~, ~thinking~ | ours |
| Cohere | ~top_p: 1~, one word in ~stop~, ~n: 1~ | ~p: 1~, a string, ~num_generations~ | ~p: 0.99~, a list, nothing | ours: Cohere's types hold none of those |
| Cohere | a file, audio, ~thinking_blocks~, ~safe_prompt~ | sent as they are | dropped, and named; a thought is a part | ours: Cohere's types hold none of those |
| Cohere | why a document ended | ~stop~, whatever it was | ~length~, ~tool_calls~, ~content_filter~ | ours |
| Cohere | words beside a call, document | left out | ~content~ | ours |
| Cohere | thoughts, document | left out | ~reasoning_content~ | ours |
| Cohere, generateContent's client | tokens from a cache | left out | told | ours |
| Cohere, Mistral | a tool without parameters | none | ~{type: object}~ | ours: their types want some |
| Cohere, Mistral | several system messages; text in parts | several; parts | one; a string | the same to the API |
| Mistral | penalties, ~logprobs~, the name of a tool to call | left out | sent | ours |
| Mistral | ~reasoning_effort~ | a prompt of its own, which tells the model to think | ~reasoning_effort~ | ours: Mistral's types have it |
| Mistral | a file | OpenAI's part, which Mistral's types refuse | ~document_url~ | ours |
| Mistral | audio | left out, and not named | ~input_audio~ | ours |
| Mistral | ids of calls | as they are, and refused | nine letters and digits | ours |
| Mistral | a user behind the result of a tool | as it is | the model says one sentence between | ours: some models there refuse it |
| Mistral | the model's words at the end | as they are | with ~prefix: true~ | ours: Mistral refuses them without |
| Mistral | a signed thought, down and back up | left out | its part, with its signature | ours |
| Cohere, Mistral | reasoning tokens that nobody counted | none | 0 | the same to OpenAI's SDKs |
| Mistral | any tool; one word in ~stop~ | ~any~; a string | ~required~; a list | the same to the API |

### Messages

Anthropic's client before the engine, Gemini and Mistral. Rows above that hold here too are not written again.

| API | what | LiteLLM | Pacer | verdict |
|---|---|---|---|---|
| engine | ~metadata.user_id~ | left out | ~user~ | ours |
| engine, Mistral | one call at a time | left out | ~parallel_tool_calls: false~ | ours |
| engine, Mistral | a PDF | an image | a file, or a document | ours |
| engine | ~thinking: disabled~ | ~reasoning_effort: none~ | nothing | theirs is closer where an engine knows ~none~; many refuse it |
| engine, Mistral | schema | ~strict: true~ | not strict | theirs is closer where every field is required; OpenAI refuses strict with a field that is not |
| engine, Mistral | name of a schema | ~structured_output~ | ~answer~ | the same to the API |
| engine | text in blocks; the image of a result | parts; a turn of its own | one string; the user's next turn | the same to the API |
| Gemini, Mistral | system of several blocks | run together: ~ab~ | an empty line between | ours |
| Gemini | a document of plain text | left out, and not named | text | ours |
| Gemini | a budget of 2000 tokens | 1024 | 2000 | ours |
| Gemini | a result that is an error | a result like others | ~error~ | ours |
| Gemini | a result; no thoughts | ~content~; ~includeThoughts: false~ | ~result~; left out | the same to the API |
| Gemini | image of a result | within ~functionResponse~ | a part behind it | theirs is closer at Gemini 3; ours is for 2.5, which has no such parts |
| Gemini | a thought that Anthropic signed | sent as Gemini's own | left out | ours |
| Gemini | signature of a call, down | ~provider_specific_fields~ of the call | a thinking block's signature | ours: Anthropic's clients send blocks back, and no fields of others |
| Mistral | two calls in a stream | one block with the arguments of both, which is no JSON | two blocks | ours |
| Mistral | thoughts in a stream | the first piece of them, and ~mistral~ for each other as the signature | whole, with Mistral's signature | ours |
| all | a refusal, document | ~stop_details~ with nothing but its type | none | the same: it tells no more than ~stop_reason~ |
| all | tokens that made a cache; an answer of nothing, stream | left out; an empty block of text | 0; no block | the same to Anthropic's SDKs |

### Responses

OpenAI's client before the engine, Claude 4.5 and Gemini. The engine lacks responses: LiteLLM's ~use_chat_completions_api~ has it translate.

| API | what | LiteLLM | Pacer | verdict |
|---|---|---|---|---|
| all | what the answer repeats of the request: tools, limits, ~instructions~, ~metadata~ and the like | repeated | none; ~tool_choice: auto~ | theirs is closer to OpenAI's own; a client that needs it back is not known |
| all | ~parallel_tool_calls~, ~store~ in the answer | ~false~, nothing | ~true~, ~false~ | ours: it is what happens |
| all | thoughts | ~output_text~ of a ~reasoning~ item | ~summary_text~ | ours: OpenAI's types have no such text there |
| all | status of the last item, where the limit or a filter cut it | ~incomplete~ | ~incomplete~ | theirs was right, and ours is the same since |
| all | an answer of nothing, stream | an empty message | no item | the same to OpenAI's SDKs |
| messages | signed thoughts | blocks in JSON as ~encrypted_content~ | the signature | the same: each takes its own back |
| messages | ~web_search~ | Anthropic's own search | dropped, and named | theirs carries more, where a search is wanted; Anthropic bills it apart |
| engine | ~user~ | left out | sent | ours |
| engine | a call that comes back | with ~index~ | without | ours: it is none of the chat's types |
| engine | ~web_search~ | sent, and refused | dropped, and named | ours |
| engine | ~reasoning.effort: none~ | ~reasoning_effort: none~ | nothing | theirs is closer where an engine knows ~none~; many refuse it |
| engine | ~prompt_cache_key~ | sent | left out | theirs is closer at OpenAI; many engines refuse it |
| engine | reasoning tokens that nobody counted | none | 0 | the same to OpenAI's SDKs |
| engine | ~stream: false~; several system messages | sent; several | left out; one | the same to the API |

### generateContent

Google's client before the engine and Claude 4.5, called as LiteLLM's own proxy calls it. Before Gemini both pass it through.

| API | what | LiteLLM | Pacer | verdict |
|---|---|---|---|---|
| both | a system of several parts | the first alone | all | ours |
| both | images, files, audio | left out, and not named | carried | ours |
| both | results of tools | behind the user's words, which both refuse | ahead of them | ours |
| both | a result that is an error; an image within one | JSON as text; left out | told as one; carried | ours |
| both | ~topK~, thoughts asked for | left out | ~top_k~; the effort or the budget | ours |
| engine | ~seed~, penalties, logprobs, JSON without a schema | left out | carried, both ways | ours |
| both | one tool by its name; some of the tools | any of all tools | that one; those alone | ours |
| both | schema | Google's own words within, as ~nullable~; of a tool's, ~additionalProperties~ is left out | JSON schema, whole | ours |
| both | thoughts in the answer, and back up | left out | ~thought: true~, with the signature | ours |
| both | tokens in a stream | 0 | counted | ours |
| engine | a tool without parameters; name of a schema | none; ~response~ | ~{type: object}~; ~answer~ | the same to the API |

Not compared: images by their address, which LiteLLM fetches, and loops of forty calls. Nor is a pair that no heading names, as messages before Bedrock or Cohere, or responses before Mistral. The clients of Cohere and Mistral are not either: LiteLLM serves chats in neither dialect.
`, "~", "`")
