"""The cases of the pairs of dialects, as JSON: each is a request of a client's SDK.

body is what the SDK is called with. up is what has to stand in the request that a
backend gets, by its API, and down what has to stand in the answer, both by paths:
"#" is a length, a value {"JSON": …} is text that holds it, null is nothing at all.
but are the APIs that a case is not for, "own" being that of the client itself. no names what that API has no place for: the request is refused by that name, and
goes up without it where the backend drops parameters."""

import json
H='Hello "wörld" 😀\n'
PNG="iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
URL="data:image/png;base64,"+PNG
W={"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}
SCHEMA={"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":False}
def u(x): return [{"role":"user","content":x}]
def c(name, body, up=None, down=None, no=None, but=None):
    d={"name":name,"body":body}
    if up: d["up"]=up
    if down: d["down"]=down
    if no: d["no"]=no
    if but: d["but"]=but
    return d
# ---- chat
ct=[{"type":"function","function":{"name":"weather","description":"d","parameters":W}},{"type":"function","function":{"name":"time"}}]
loop=[{"role":"user","content":"x"},{"role":"assistant","content":None,"tool_calls":[{"id":"a.1","type":"function","function":{"name":"weather","arguments":'{"city":"Paris","n":1.50}'}},{"id":"b","type":"function","function":{"name":"time","arguments":""}}]},{"role":"tool","tool_call_id":"a.1","content":"sunny"},{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":'{"hour":12}'}]},{"role":"user","content":"hi"}]
def chats(n):
    m=[{"role":"user","content":"begin"}]
    for i in range(n):
        m+= [{"role":"assistant","content":f"step {i}","tool_calls":[{"id":f"c{i}","type":"function","function":{"name":"weather","arguments":'{"city":"%d"}'%i}}]},{"role":"tool","tool_call_id":f"c{i}","content":f"result {i}"}]
    return m+[{"role":"user","content":"hi"}]
A,G,B,E,A5,C,M="anthropic","gemini","bedrock","engine","claude-5","cohere","mistral"
OWN="own"
chat=[
 c("text",{"messages":u("hi")},{A:{"messages.0.content.0.text":"hi","model":"claude-sonnet-4-5"},A5:{"model":"claude-opus-5"},G:{"contents.0.parts.0.text":"hi","contents.0.role":"user"},B:{"messages.0.content.0.text":"hi"}},{"choices.0.message.content":H,"choices.0.finish_reason":"stop","choices.0.message.role":"assistant"}),
 c("usage",{"messages":u("hi")},None,{"usage.prompt_tokens":25,"usage.completion_tokens":9,"usage.total_tokens":34,"usage.prompt_tokens_details.cached_tokens":5}),
 c("names",{"messages":u("hi")},None,{"model":"MODEL"},but=[OWN]),
 c("big",{"messages":u("big")},None,{"choices.0.message.content":"".join(f"word{i} " for i in range(300))}),
 c("empty",{"messages":u("empty")},None,{"choices.0.finish_reason":"stop"}),
 c("system",{"messages":[{"role":"system","content":"be short"},{"role":"developer","content":"in French"}]+u("hi")},{A:{"system.0.text":"be short","system.1.text":"in French"},G:{"systemInstruction.parts.0.text":"be short\n\nin French"},B:{"system.1.text":"in French"}}),
 c("parts",{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"hi"}]}]},{A:{"messages.0.content.#":2},G:{"contents.0.parts.#":2},B:{"messages.0.content.#":2}}),
 c("turns",{"messages":u("one")+[{"role":"assistant","content":"two"}]+u("three")+u("hi")},{A:{"messages.#":3,"messages.1.role":"assistant"},G:{"contents.1.role":"model","contents.2.parts.1.text":"hi"},B:{"messages.1.content.0.text":"two"}},but=[OWN]),
 c("unicode",{"messages":u("日本語 \u2028 \"q\" \\ 😀 \u0001")+[{"role":"assistant","content":"ok"}]+u("hi")},{A:{"messages.0.content.0.text":"日本語 \u2028 \"q\" \\ 😀 \u0001"},G:{"contents.0.parts.0.text":"日本語 \u2028 \"q\" \\ 😀 \u0001"},B:{"messages.0.content.0.text":"日本語 \u2028 \"q\" \\ 😀 \u0001"}}),
 c("limit",{"max_tokens":77,"messages":u("long")},{A:{"max_tokens":77},G:{"generationConfig.maxOutputTokens":77},B:{"inferenceConfig.maxTokens":77}},{"choices.0.finish_reason":"length"}),
 c("newer limit",{"max_completion_tokens":78,"messages":u("hi")},{A:{"max_tokens":78},G:{"generationConfig.maxOutputTokens":78},B:{"inferenceConfig.maxTokens":78}}),
 c("sampling",{"temperature":0.3,"top_p":0.9,"messages":u("hi")},{A:{"temperature":0.3,"top_p":0.9},A5:{"temperature":None},G:{"generationConfig.temperature":0.3,"generationConfig.topP":0.9},B:{"inferenceConfig.topP":0.9}},None,{A5:"temperature, top_p"}),
 c("sampling as ever",{"temperature":1,"top_p":1,"messages":u("hi")},{A:{"temperature":1},A5:{"temperature":None}}),
 c("hot",{"temperature":1.5,"messages":u("hi")},{G:{"generationConfig.temperature":1.5}},None,{A:"temperature",B:"temperature"}),
 c("seed",{"seed":7,"messages":u("hi")},{G:{"generationConfig.seed":7}},None,{A:"seed",B:"seed"}),
 c("penalties",{"frequency_penalty":0.5,"presence_penalty":0.25,"messages":u("hi")},{G:{"generationConfig.frequencyPenalty":0.5,"generationConfig.presencePenalty":0.25}},None,{A:"frequency_penalty, presence_penalty",B:"frequency_penalty, presence_penalty"}),
 c("logprobs",{"logprobs":True,"top_logprobs":3,"messages":u("hi")},{G:{"generationConfig.responseLogprobs":True,"generationConfig.logprobs":3}},None,{A:"logprobs, top_logprobs",B:"logprobs, top_logprobs",C:"logprobs, top_logprobs"}),
 c("stop",{"stop":"END","messages":u("sequence")},{A:{"stop_sequences":["END"]},G:{"generationConfig.stopSequences":["END"]},B:{"inferenceConfig.stopSequences":["END"]}},{"choices.0.finish_reason":"stop"}),
 c("stops",{"stop":["A","B"],"messages":u("hi")},{A:{"stop_sequences.1":"B"},G:{"generationConfig.stopSequences.1":"B"},B:{"inferenceConfig.stopSequences.1":"B"}}),
 c("refusal",{"messages":u("refuse")},None,{"choices.0.finish_reason":"content_filter"},but=[M]),
 c("user",{"user":"u1","messages":u("hi")},{A:{"metadata.user_id":"u1"}}),
 c("image",{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":URL,"detail":"low"}},{"type":"text","text":"hi"}]}]},{A:{"messages.0.content.0.source":{"type":"base64","media_type":"image/png","data":PNG}},G:{"contents.0.parts.0.inlineData":{"mimeType":"image/png","data":PNG}},B:{"messages.0.content.0.image":{"format":"png","source":{"bytes":PNG}}}}),
 c("image by address",{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},{"type":"text","text":"hi"}]}]},{A:{"messages.0.content.0.source.url":"https://example.com/a.png"},G:{"contents.0.parts.0.fileData.fileUri":"https://example.com/a.png"}},None,{B:"messages[0].content[0]"}),
 c("file",{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a b_c.pdf","file_data":"data:application/pdf;base64,JVBERg=="}},{"type":"text","text":"hi"}]}]},{A:{"messages.0.content.0.type":"document","messages.0.content.0.title":"a b_c.pdf","messages.0.content.0.source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},G:{"contents.0.parts.0.inlineData":{"mimeType":"application/pdf","data":"JVBERg=="}},B:{"messages.0.content.0.document.format":"pdf","messages.0.content.0.document.source":{"bytes":"JVBERg=="}}},None,{C:"messages[0].content[0]"}),
 c("audio",{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"text","text":"hi"}]}]},{G:{"contents.0.parts.0.inlineData.mimeType":"audio/wav"}},None,{A:"messages[0].content[0]",B:"messages[0].content[0]",C:"messages[0].content[0]"}),
 c("a call",{"tools":ct,"messages":u("call")},{A:{"tools.#":2,"tools.0.description":"d","tools.0.input_schema.properties.city.type":"string"},G:{"tools.0.functionDeclarations.#":2,"tools.0.functionDeclarations.0.description":"d"},B:{"toolConfig.tools.0.toolSpec.description":"d","toolConfig.tools.0.toolSpec.inputSchema.json.properties.city.type":"string"}},{"choices.0.message.content":H,"choices.0.message.tool_calls.0.function.name":"weather","choices.0.message.tool_calls.0.function.arguments":{"JSON":{"city":"Paris","n":1.5}},"choices.0.finish_reason":"tool_calls","choices.0.message.tool_calls.#":1}),
 c("parallel calls",{"tools":ct,"messages":u("four calls")},None,{"choices.0.message.tool_calls.#":4,"choices.0.message.tool_calls.3.function.arguments":{"JSON":{"city":"東京"}},"choices.0.message.tool_calls.0.function.arguments":{"JSON":{"city":"Paris"}}}),
 c("two calls",{"tools":ct,"messages":u("calls")},None,{"choices.0.message.tool_calls.1.function.name":"time","choices.0.message.tool_calls.1.function.arguments":{"JSON":{}}}),
 c("deep call",{"tools":ct,"messages":u("deep call")},None,{"choices.0.message.tool_calls.0.function.arguments":{"JSON":{"a":{"b":[1,2.5,None,True,{"c":"\"\\ü"}]},"big":12345678901234567890}}}),
 c("serial calls",{"tools":ct,"parallel_tool_calls":False,"messages":u("call")},{A:{"tool_choice":{"type":"auto","disable_parallel_tool_use":True}}},None,{G:"parallel_tool_calls",B:"parallel_tool_calls",C:"parallel_tool_calls"}),
 c("a named tool",{"tools":ct,"tool_choice":{"type":"function","function":{"name":"time"}},"messages":u("call")},{A:{"tool_choice":{"type":"tool","name":"time"}},G:{"toolConfig.functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["time"]}},B:{"toolConfig.toolChoice":{"tool":{"name":"time"}}}},None,{C:"tool_choice"}),
 c("any tool",{"tools":ct,"tool_choice":"required","messages":u("call")},{A:{"tool_choice.type":"any"},G:{"toolConfig.functionCallingConfig.mode":"ANY"},B:{"toolConfig.toolChoice":{"any":{}}}}),
 c("no tool",{"tools":ct,"tool_choice":"none","messages":u("hi")},{A:{"tool_choice.type":"none"},G:{"toolConfig.functionCallingConfig.mode":"NONE"},B:{"toolConfig":None}}),
 c("results",{"tools":ct,"messages":loop},{A:{"messages.1.content.0.input.city":"Paris","messages.2.content.0.tool_use_id":"a_1","messages.2.content.2.text":"hi"},G:{"contents.2.parts.0.functionResponse.response":{"result":"sunny"},"contents.2.parts.1.functionResponse.response":{"hour":12},"contents.1.parts.0.functionCall.args.n":1.5},B:{"messages.2.content.1.toolResult.toolUseId":"b"}},but=[OWN]),
 c("a result",{"tools":ct,"messages":[u("x")[0],{"role":"assistant","content":"","tool_calls":[{"id":"abcdefgh9","type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"abcdefgh9","content":"sunny"},{"role":"assistant","content":"so"}]+u("hi")},{A:{"messages.2.content.0.tool_use_id":"abcdefgh9"},M:{"messages.#":5,"messages.1.tool_calls.0.id":"abcdefgh9","messages.2":{"role":"tool","tool_call_id":"abcdefgh9","content":"sunny"}}}),
 c("long loop",{"tools":ct,"messages":chats(40)},{A:{"messages.#":81,"messages.79.content.0.text":"step 39"},G:{"contents.#":81},B:{"messages.#":81}},but=[OWN]),
 c("schema",{"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":True,"schema":SCHEMA}},"messages":u("json")},{A:{"output_config.format.schema":SCHEMA},G:{"generationConfig.responseJsonSchema":SCHEMA,"generationConfig.responseMimeType":"application/json"},B:{"outputConfig.textFormat.structure.jsonSchema.schema":{"JSON":SCHEMA}}},{"choices.0.message.content":'{"a":1}'}),
 c("json",{"response_format":{"type":"json_object"},"messages":u("json")},{G:{"generationConfig.responseMimeType":"application/json"}},{"choices.0.message.content":'{"a":1}'},{A:"response_format",B:"response_format"}),
 c("thinking",{"reasoning_effort":"low","messages":u("think")},{A:{"thinking.budget_tokens":1024},A5:{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}},G:{"generationConfig.thinkingConfig.thinkingBudget":1024},B:{"additionalModelRequestFields.thinking.budget_tokens":1024}},{"choices.0.message.content":H,"choices.0.message.reasoning_content":"let me see\n…"}),
 c("thinking, then a call",{"reasoning_effort":"medium","tools":ct,"messages":u("think call")},None,{"choices.0.message.tool_calls.0.function.name":"weather","choices.0.message.reasoning_content":"a tool, then"}),
 c("a signed thought",{"extra_body":{"thinking":{"type":"enabled","budget_tokens":2000}},"messages":u("think")},{A:{"thinking.budget_tokens":2000},A5:{"thinking.type":"adaptive"},B:{"additionalModelRequestFields.thinking.budget_tokens":2000}},{"choices.0.message.thinking_blocks.0.signature":"c2lnbmF0dXJl","choices.0.message.thinking_blocks.0.thinking":"let me see\n…"},None,[G,C,M]),
 c("a thought that Mistral signed",{"reasoning_effort":"high","messages":u("think")},{M:{"reasoning_effort":"high"}},{"choices.0.message.thinking_blocks.0.signature":"mistral:c2lnbmF0dXJl","choices.0.message.thinking_blocks.0.thinking":"let me see\n…","choices.0.message.content":H},None,[A,A5,G,B,C]),
 c("a signed thought goes back",{"extra_body":{"thinking":{"type":"enabled","budget_tokens":2000}},"tools":ct,"messages":[loop[0],{**loop[1],"thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"c2ln"}]}]+loop[2:]},{A:{"messages.1.content.0":{"type":"thinking","thinking":"hm","signature":"c2ln"}},B:{"messages.1.content.0.reasoningContent.reasoningText":{"text":"hm","signature":"c2ln"}}},None,None,[G,C,M]),
 c("a signature of Mistral's goes back",{"messages":[u("x")[0],{"role":"assistant","content":"so","thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"mistral:c2ln"}]}]+u("hi")},{M:{"messages.1.content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"signature":"c2ln"},{"type":"text","text":"so"}]},A:{"messages.1.content":[{"type":"text","text":"so"}]}}),
 c("words to go on with",{"messages":u("hi")+[{"role":"assistant","content":"so"}]},{M:{"messages.1":{"role":"assistant","content":"so","prefix":True}}},None,None,[A,A5,G,B,C,OWN]),
 c("a signature of Google's goes back",{"extra_body":{"top_k":5},"tools":ct,"messages":[loop[0],{**loop[1],"tool_calls":[{**loop[1]["tool_calls"][0],"extra_content":{"google":{"thought_signature":"c2lnMg=="}}},loop[1]["tool_calls"][1]]}]+loop[2:]},{G:{"contents.1.parts.0.thoughtSignature":"c2lnMg==","generationConfig.topK":5}},None,None,[A,A5,B,C,M]),
 c("tokens of thoughts",{"reasoning_effort":"low","messages":u("think")},None,{"usage.completion_tokens":9,"usage.completion_tokens_details.reasoning_tokens":3},None,[A,A5,B,C,M]),
 c("no thinking",{"reasoning_effort":"none","messages":u("hi")},{A:{"thinking":None},A5:{"thinking":{"type":"disabled"}},G:{"generationConfig.thinkingConfig":{"thinkingBudget":0}},B:{"additionalModelRequestFields":None}}),
 c("what is not carried",{"logit_bias":{"1":1},"messages":u("hi")},None,None,{A:"logit_bias",G:"logit_bias",B:"logit_bias",C:"logit_bias",M:"logit_bias"}),
 c("what Mistral has alone",{"extra_body":{"safe_prompt":True},"messages":u("hi")},{M:{"safe_prompt":True}},None,{A:"safe_prompt",G:"safe_prompt",B:"safe_prompt",C:"safe_prompt"}),
 c("what changes nothing",{"metadata":{"a":"b"},"store":False,"service_tier":"auto","prompt_cache_key":"k","n":1,"messages":u("hi")},{A:{"store":None,"n":None}}),
]
# ---- messages
mt=[{"name":"weather","description":"d","input_schema":W},{"name":"time","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]
mloop=[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"so"},{"type":"tool_use","id":"a","name":"weather","input":{"city":"Paris"}},{"type":"tool_use","id":"b","name":"time","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"sunny"},{"type":"tool_result","tool_use_id":"b","is_error":True,"content":[{"type":"text","text":"no"}]},{"type":"text","text":"hi"}]}]
def mchats(n):
    m=[{"role":"user","content":"begin"}]
    for i in range(n):
        m+= [{"role":"assistant","content":[{"type":"text","text":f"step {i}"},{"type":"tool_use","id":f"c{i}","name":"weather","input":{"city":str(i)}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":f"c{i}","content":f"result {i}"}]+([{"type":"text","text":"hi"}] if i==n-1 else [])}]
    return m
messages=[
 c("text",{"messages":u("hi")},{E:{"messages.0.content":"hi","model":"llama","max_tokens":9000},G:{"contents.0.parts.0.text":"hi","generationConfig.maxOutputTokens":9000},B:{"inferenceConfig.maxTokens":9000}},{"content.0.text":H,"stop_reason":"end_turn","type":"message","role":"assistant"}),
 c("usage",{"messages":u("hi")},None,{"usage.input_tokens":20,"usage.cache_read_input_tokens":5,"usage.output_tokens":9}),
 c("names",{"messages":u("hi")},None,{"model":"MODEL"}),
 c("big",{"messages":u("big")},None,{"content.0.text":"".join(f"word{i} " for i in range(300))}),
 c("empty",{"messages":u("empty")},None,{"stop_reason":"end_turn","content.#":0}),
 c("system",{"system":"be short","messages":u("hi")},{E:{"messages.0":{"role":"system","content":"be short"}},G:{"systemInstruction.parts.0.text":"be short"},B:{"system.0.text":"be short"}}),
 c("system of blocks",{"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}],"messages":u("hi")},{E:{"messages.0.content":"a\n\nb"},B:{"system.1.cachePoint":{"type":"default"}}}),
 c("blocks",{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"hi"}]}]},{E:{"messages.0.content":"a\n\nhi"},G:{"contents.0.parts.#":2}}),
 c("turns",{"messages":u("one")+[{"role":"assistant","content":"two"}]+u("hi")},{E:{"messages.1":{"role":"assistant","content":"two"}},G:{"contents.1.role":"model"},B:{"messages.1.content.0.text":"two"}}),
 c("unicode",{"messages":u("日本語 \u2028 \"q\" \\ 😀 \u0001")+[{"role":"assistant","content":"ok"}]+u("hi")},{E:{"messages.0.content":"日本語 \u2028 \"q\" \\ 😀 \u0001"}}),
 c("sampling",{"extra_body":{"temperature":0.3,"top_p":0.9},"messages":u("hi")},{E:{"temperature":0.3,"top_p":0.9},G:{"generationConfig.temperature":0.3},B:{"inferenceConfig.temperature":0.3}}),
 c("top_k",{"extra_body":{"top_k":5},"messages":u("hi")},{E:{"top_k":5},G:{"generationConfig.topK":5},B:{"additionalModelRequestFields.top_k":5}}),
 c("length",{"messages":u("long")},None,{"stop_reason":"max_tokens"}),
 c("refusal",{"messages":u("refuse")},None,{"stop_reason":"refusal"},but=[M]),
 c("stop",{"stop_sequences":["END"],"messages":u("hi")},{E:{"stop":["END"]},G:{"generationConfig.stopSequences":["END"]},B:{"inferenceConfig.stopSequences":["END"]}}),
 c("user",{"metadata":{"user_id":"u1"},"messages":u("hi")},{E:{"user":"u1"}}),
 c("image",{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":PNG}},{"type":"text","text":"hi"}]}]},{E:{"messages.0.content.0.image_url.url":URL},G:{"contents.0.parts.0.inlineData.data":PNG},B:{"messages.0.content.0.image.format":"png"}}),
 c("image by address",{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"text","text":"hi"}]}]},{E:{"messages.0.content.0.image_url.url":"https://example.com/a.png"},G:{"contents.0.parts.0.fileData.fileUri":"https://example.com/a.png"}},None,{B:"messages[0].content[0]"}),
 c("file",{"messages":[{"role":"user","content":[{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},{"type":"text","text":"hi"}]}]},{E:{"messages.0.content.0.file.file_data":"data:application/pdf;base64,JVBERg=="},G:{"contents.0.parts.0.inlineData.mimeType":"application/pdf"},B:{"messages.0.content.0.document.name":"a pdf"}},None,{C:"messages[0].content[0]"}),
 c("plain document",{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"of a file"}},{"type":"text","text":"hi"}]}]},{E:{"messages.0.content":"of a file\n\nhi"}}),
 c("a call",{"tools":mt,"messages":u("call")},{E:{"tools.#":2,"tools.0.function.description":"d","tools.0.function.parameters":W},G:{"tools.0.functionDeclarations.0.parametersJsonSchema":W},B:{"toolConfig.tools.#":2}},{"content.0.text":H,"content.1.name":"weather","content.1.input":{"city":"Paris","n":1.5},"stop_reason":"tool_use"}),
 c("parallel calls",{"tools":mt,"messages":u("four calls")},None,{"content.#":4,"content.3.input":{"city":"東京"}}),
 c("two calls",{"tools":mt,"messages":u("calls")},None,{"content.1.name":"time","content.1.input":{}}),
 c("deep call",{"tools":mt,"messages":u("deep call")},None,{"content.0.input.a":{"b":[1,2.5,None,True,{"c":"\"\\ü"}]}}),
 c("serial calls",{"tools":mt,"tool_choice":{"type":"auto","disable_parallel_tool_use":True},"messages":u("call")},{E:{"parallel_tool_calls":False,"tool_choice":"auto"}},None,{G:"tool_choice.disable_parallel_tool_use",B:"tool_choice.disable_parallel_tool_use",C:"tool_choice.disable_parallel_tool_use"}),
 c("a named tool",{"tools":mt,"tool_choice":{"type":"tool","name":"time"},"messages":u("call")},{E:{"tool_choice":{"type":"function","function":{"name":"time"}}},G:{"toolConfig.functionCallingConfig.allowedFunctionNames":["time"]},B:{"toolConfig.toolChoice.tool.name":"time"}},None,{C:"tool_choice"}),
 c("any tool",{"tools":mt,"tool_choice":{"type":"any"},"messages":u("call")},{E:{"tool_choice":"required"},G:{"toolConfig.functionCallingConfig.mode":"ANY"},B:{"toolConfig.toolChoice":{"any":{}}}}),
 c("no tool",{"tools":mt,"tool_choice":{"type":"none"},"messages":u("hi")},{E:{"tool_choice":"none"},G:{"toolConfig.functionCallingConfig.mode":"NONE"},B:{"toolConfig":None}}),
 c("results",{"tools":mt,"messages":mloop},{E:{"messages.#":5,"messages.1.tool_calls.0.function.arguments":{"JSON":{"city":"Paris"}},"messages.1.reasoning_content":"hm","messages.2.content":"sunny","messages.3.content":"Error: no"},G:{"contents.2.parts.1.functionResponse.response":{"error":"no"}},B:{"messages.2.content.1.toolResult.status":"error"}}),
 c("a result with an image",{"tools":mt,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"weather","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":PNG}}]},{"type":"text","text":"hi"}]}]},{E:{"messages.2.content":"see","messages.3.content.1.image_url.url":URL},B:{"messages.2.content.0.toolResult.content.1.image.format":"png"}}),
 c("a result without text",{"tools":mt,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"time","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"hi"}]}]},{E:{"messages.2.content":""}}),
 c("long loop",{"tools":mt,"messages":mchats(40)},{E:{"messages.#":82},G:{"contents.#":81},B:{"messages.#":81}}),
 c("thinking",{"thinking":{"type":"enabled","budget_tokens":2000},"messages":u("think")},{E:{"reasoning_effort":"low"},G:{"generationConfig.thinkingConfig":{"thinkingBudget":2000,"includeThoughts":True}},B:{"additionalModelRequestFields.thinking.budget_tokens":2000}},{"content.0.type":"thinking","content.0.thinking":"let me see\n…","content.1.text":H}),
 c("a signed thought",{"thinking":{"type":"enabled","budget_tokens":2000},"messages":u("think")},None,{"content.0.signature":"c2lnbmF0dXJl"},None,[E,G,C,M]),
 c("a thought that Mistral signed",{"thinking":{"type":"enabled","budget_tokens":2000},"messages":u("think")},None,{"content.0.signature":"mistral:c2lnbmF0dXJl","content.0.thinking":"let me see\n…"},None,[E,G,B,C]),
 c("adaptive thinking",{"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"messages":u("think")},{E:{"reasoning_effort":"high"}},{"content.0.thinking":"let me see\n…"}),
 c("thinking, then a call",{"thinking":{"type":"enabled","budget_tokens":2000},"tools":mt,"messages":u("think call")},None,{"content.0.thinking":"a tool, then","stop_reason":"tool_use"}),
 c("thoughts go back",{"thinking":{"type":"enabled","budget_tokens":2000},"tools":mt,"messages":mloop},{E:{"messages.1.reasoning_content":"hm"},B:{"messages.1.content.0.reasoningContent.reasoningText.signature":"c2ln"}}),
 c("no thinking",{"thinking":{"type":"disabled"},"messages":u("hi")},{E:{"reasoning_effort":None},G:{"generationConfig.thinkingConfig":{"thinkingBudget":0}}}),
 c("schema",{"output_config":{"format":{"type":"json_schema","schema":SCHEMA}},"messages":u("json")},{E:{"response_format.json_schema.schema":SCHEMA},G:{"generationConfig.responseJsonSchema":SCHEMA},B:{"outputConfig.textFormat.structure.jsonSchema.schema":{"JSON":SCHEMA}}},{"content.0.text":'{"a":1}'}),
 c("a tool that Anthropic runs",{"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":u("hi")},None,None,{E:"tools[0]",G:"tools[0]",B:"tools[0]",C:"tools[0]"}),
 c("what changes nothing",{"service_tier":"auto","metadata":{"user_id":"u"},"messages":u("hi")},{E:{"service_tier":None}}),
]
# ---- responses
rt=[{"type":"function","name":"weather","description":"d","parameters":W,"strict":False},{"type":"function","name":"time","parameters":{"type":"object","properties":{}},"strict":False}]
rloop=[{"role":"user","content":"x"},{"type":"function_call","call_id":"a","name":"weather","arguments":'{"city":"Paris"}'},{"type":"function_call","call_id":"b","name":"time","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"sunny"},{"type":"function_call_output","call_id":"b","output":"noon"},{"role":"user","content":"hi"}]
def rchats(n):
    m=[{"role":"user","content":"begin"}]
    for i in range(n):
        m+=[{"role":"assistant","content":f"step {i}"},{"type":"function_call","call_id":f"c{i}","name":"weather","arguments":'{"city":"%d"}'%i},{"type":"function_call_output","call_id":f"c{i}","output":f"result {i}"}]
    return m+[{"role":"user","content":"hi"}]
responses=[
 c("text",{"input":"hi"},{E:{"messages.0.content":"hi","model":"llama"},A:{"messages.0.content.0.text":"hi"},G:{"contents.0.parts.0.text":"hi"},B:{"messages.0.content.0.text":"hi"}},{"output.0.content.0.text":H,"output.0.type":"message","status":"completed","object":"response"}),
 c("usage",{"input":"hi"},None,{"usage.input_tokens":25,"usage.input_tokens_details.cached_tokens":5,"usage.output_tokens":9,"usage.total_tokens":34}),
 c("names",{"input":"hi"},None,{"model":"MODEL"}),
 c("big",{"input":"big"},None,{"output.0.content.0.text":"".join(f"word{i} " for i in range(300))}),
 c("empty",{"input":"empty"},None,{"status":"completed","output.#":0}),
 c("instructions",{"instructions":"be short","input":u("hi")},{E:{"messages.0":{"role":"system","content":"be short"}},A:{"system.0.text":"be short"},G:{"systemInstruction.parts.0.text":"be short"},B:{"system.0.text":"be short"}}),
 c("developer",{"instructions":"a","input":[{"role":"developer","content":"b"}]+u("hi")},{E:{"messages.0.content":"a\n\nb"},A:{"system.1.text":"b"}}),
 c("parts",{"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"hi"}]}]},{E:{"messages.0.content":"a\n\nhi"},A:{"messages.0.content.#":2}}),
 c("turns",{"input":u("one")+[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"two","annotations":[]}]}]+u("hi")},{E:{"messages.1.content":"two"},A:{"messages.1.content.0.text":"two"}}),
 c("unicode",{"input":u("日本語 \u2028 \"q\" \\ 😀 \u0001")+[{"role":"assistant","content":"ok"}]+u("hi")},{E:{"messages.0.content":"日本語 \u2028 \"q\" \\ 😀 \u0001"}}),
 c("tokens of thoughts",{"reasoning":{"effort":"low"},"input":"think"},None,{"usage.output_tokens":9,"usage.output_tokens_details.reasoning_tokens":3},None,[E,A,B,C,M]),
 c("limit",{"max_output_tokens":77,"input":"long"},{E:{"max_tokens":77},A:{"max_tokens":77},G:{"generationConfig.maxOutputTokens":77},B:{"inferenceConfig.maxTokens":77}},{"status":"incomplete","incomplete_details.reason":"max_output_tokens"}),
 c("sampling",{"temperature":0.3,"top_p":0.9,"input":"hi"},{E:{"temperature":0.3},A:{"top_p":0.9}}),
 c("refusal",{"input":"refuse"},None,{"status":"incomplete","incomplete_details.reason":"content_filter"},but=[M]),
 c("user",{"user":"u1","input":"hi"},{E:{"user":"u1"},A:{"metadata.user_id":"u1"}}),
 c("image",{"input":[{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":URL},{"type":"input_text","text":"hi"}]}]},{E:{"messages.0.content.0.image_url.url":URL},A:{"messages.0.content.0.source.data":PNG},G:{"contents.0.parts.0.inlineData.data":PNG},B:{"messages.0.content.0.image.format":"png"}}),
 c("image by address",{"input":[{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"https://example.com/a.png"},{"type":"input_text","text":"hi"}]}]},{E:{"messages.0.content.0.image_url.url":"https://example.com/a.png"},A:{"messages.0.content.0.source.type":"url"}},None,{B:"input[0].content[0]"}),
 c("file",{"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="},{"type":"input_text","text":"hi"}]}]},{E:{"messages.0.content.0.file.filename":"a.pdf"},A:{"messages.0.content.0.title":"a.pdf"}},None,{C:"input[0].content[0]"}),
 c("a call",{"tools":rt,"input":"call"},{E:{"tools.0.function.description":"d","tools.0.function.parameters":W},A:{"tools.0.input_schema":W}},{"output.0.content.0.text":H,"output.1.type":"function_call","output.1.name":"weather","output.1.arguments":{"JSON":{"city":"Paris","n":1.5}}}),
 c("parallel calls",{"tools":rt,"input":"four calls"},None,{"output.#":4,"output.3.arguments":{"JSON":{"city":"東京"}}}),
 c("two calls",{"tools":rt,"input":"calls"},None,{"output.1.name":"time","output.1.arguments":{"JSON":{}}}),
 c("deep call",{"tools":rt,"input":"deep call"},None,{"output.0.arguments":{"JSON":{"a":{"b":[1,2.5,None,True,{"c":"\"\\ü"}]},"big":12345678901234567890}}}),
 c("serial calls",{"tools":rt,"parallel_tool_calls":False,"input":"call"},{E:{"parallel_tool_calls":False},A:{"tool_choice.disable_parallel_tool_use":True}},None,{G:"parallel_tool_calls",B:"parallel_tool_calls",C:"parallel_tool_calls"}),
 c("a named tool",{"tools":rt,"tool_choice":{"type":"function","name":"time"},"input":"call"},{E:{"tool_choice.function.name":"time"},A:{"tool_choice.name":"time"}},None,{C:"tool_choice"}),
 c("any tool",{"tools":rt,"tool_choice":"required","input":"call"},{E:{"tool_choice":"required"},A:{"tool_choice.type":"any"}}),
 c("no tool",{"tools":rt,"tool_choice":"none","input":"hi"},{E:{"tool_choice":"none"},A:{"tool_choice.type":"none"}}),
 c("results",{"tools":rt,"input":rloop},{E:{"messages.1.tool_calls.#":2,"messages.2.content":"sunny","messages.3.tool_call_id":"b"},A:{"messages.2.content.2.text":"hi"},G:{"contents.2.parts.0.functionResponse.name":"weather"}}),
 c("a result with an image",{"tools":rt,"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"a","name":"time","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":URL}]},{"role":"user","content":"hi"}]},{E:{"messages.2.content":"see"},A:{"messages.2.content.0.content.1.type":"image"}}),
 c("long loop",{"tools":rt,"input":rchats(40)},{E:{"messages.#":82},A:{"messages.#":81},G:{"contents.#":81}}),
 c("schema",{"text":{"format":{"type":"json_schema","name":"n","strict":True,"schema":SCHEMA}},"input":"json"},{E:{"response_format.json_schema.schema":SCHEMA},A:{"output_config.format.schema":SCHEMA}},{"output.0.content.0.text":'{"a":1}'}),
 c("json",{"text":{"format":{"type":"json_object"}},"input":"json"},{E:{"response_format.type":"json_object"},G:{"generationConfig.responseMimeType":"application/json"}},None,{A:"text.format",B:"text.format"}),
 c("thinking",{"reasoning":{"effort":"low","summary":"auto"},"input":"think"},{E:{"reasoning_effort":"low"},A:{"thinking.budget_tokens":1024},G:{"generationConfig.thinkingConfig.thinkingBudget":1024}},{"output.0.type":"reasoning","output.0.summary.0.text":"let me see\n…","output.1.content.0.text":H}),
 c("thinking, then a call",{"reasoning":{"effort":"medium"},"tools":rt,"input":"think call"},None,{"output.0.summary.0.text":"a tool, then","output.1.name":"weather"}),
 c("no thinking",{"reasoning":{"effort":"none"},"input":"hi"},{E:{"reasoning_effort":None},A:{"thinking":None}}),
 c("verbosity",{"text":{"verbosity":"low"},"input":"hi"},None,None,None),
 c("a tool that OpenAI runs",{"tools":[{"type":"web_search"}],"input":"hi"},None,None,{E:"tools[0]",A:"tools[0]",G:"tools[0]",B:"tools[0]",C:"tools[0]"}),
 c("what changes nothing",{"store":False,"metadata":{"a":"b"},"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","input":"hi"},{E:{"store":None}}),
]
# ---- generateContent: as google-genai is called, with the names that its JSON has
def g(x): return [{"role":"user","parts":[{"text":x}]}]
def gp(*parts): return [{"role":"user","parts":list(parts)+[{"text":"hi"}]}]
def data(mime,text,**more): return {"inlineData":{"mimeType":mime,"data":text,**more}}
def cfg(**config): return {"config":config}
gw={"type":"OBJECT","properties":{"city":{"type":"STRING"}},"required":["city"]}
gt=[{"functionDeclarations":[{"name":"weather","description":"d","parameters":gw},{"name":"time"}]}]
gschema={"type":"OBJECT","properties":{"a":{"type":"INTEGER","format":"int32","nullable":True}},"required":["a"],"propertyOrdering":["a"]}
GSCHEMA={"type":"object","properties":{"a":{"type":["integer","null"]}},"required":["a"]}
def gcall(name,args,**more): return {"functionCall":{"name":name,"args":args,**more}}
def gresult(name,response,**more): return {"functionResponse":{"name":name,"response":response,**more}}
def gturns(first,*turns): return [{"role":"user","parts":[{"text":first}]}]+[{"role":("model","user")[i%2],"parts":list(parts)} for i,parts in enumerate(turns)]
gloop=gturns("x",[gcall("weather",{"city":"Paris","n":1.5},id="a"),gcall("time",{},id="b")],[gresult("weather",{"output":"sunny"},id="a"),gresult("time",{"error":"no"},id="b"),{"text":"hi"}])
def gchats(n):
    turns=[]
    for i in range(n):
        turns+=[[{"text":f"step {i}"},gcall("weather",{"city":str(i)},id=f"c{i}")],[gresult("weather",{"output":f"result {i}"},id=f"c{i}")]+([{"text":"hi"}] if i==n-1 else [])]
    return gturns("begin",*turns)
def tools(**more): return cfg(tools=gt,**more)
def calling(mode,*names): return {"functionCallingConfig":{"mode":mode,**({"allowedFunctionNames":list(names)} if names else {})}}
OFF="toolConfig.functionCallingConfig"
P0,PAR="candidates.0.content.parts.0","candidates.0.content.parts"
generate=[
 c("text",{"contents":g("hi")},{E:{"messages.0.content":"hi","model":"llama"},A:{"messages.0.content.0.text":"hi","model":"claude-sonnet-4-5"},A5:{"model":"claude-opus-5"},B:{"messages.0.content.0.text":"hi"},G:{"contents.0.parts.0.text":"hi"}},{P0+".text":H,"candidates.0.content.role":"model","candidates.0.finishReason":"STOP"}),
 c("a string",{"contents":"hi"},{E:{"messages.0":{"role":"user","content":"hi"}}},{P0+".text":H}),
 c("usage",{"contents":g("hi")},None,{"usageMetadata.promptTokenCount":25,"usageMetadata.candidatesTokenCount":9,"usageMetadata.totalTokenCount":34,"usageMetadata.cachedContentTokenCount":5}),
 c("names",{"contents":g("hi")},None,{"modelVersion":"MODEL"},but=[G]),
 c("big",{"contents":g("big")},None,{P0+".text":"".join(f"word{i} " for i in range(300))}),
 c("empty",{"contents":g("empty")},None,{"candidates.0.finishReason":"STOP"}),
 c("system",{"contents":g("hi"),**cfg(systemInstruction="be short")},{E:{"messages.0":{"role":"system","content":"be short"}},A:{"system.0.text":"be short"},B:{"system.0.text":"be short"}}),
 c("system of parts",{"contents":g("hi"),**cfg(systemInstruction={"parts":[{"text":"a"},{"text":"b"}]})},{E:{"messages.0.content":"a\n\nb"},A:{"system.1.text":"b"}}),
 c("parts",{"contents":gp({"text":"a"})},{E:{"messages.0.content":"a\n\nhi"},A:{"messages.0.content.#":2},B:{"messages.0.content.#":2}}),
 c("turns",{"contents":gturns("one",[{"text":"two"}],[{"text":"hi"}])},{E:{"messages.1":{"role":"assistant","content":"two"}},A:{"messages.1.role":"assistant"},B:{"messages.1.content.0.text":"two"}}),
 c("unicode",{"contents":gturns("日本語 \u2028 \"q\" \\ 😀 \u0001",[{"text":"ok"}],[{"text":"hi"}])},{E:{"messages.0.content":"日本語 \u2028 \"q\" \\ 😀 \u0001"},A:{"messages.0.content.0.text":"日本語 \u2028 \"q\" \\ 😀 \u0001"}}),
 c("limit",{"contents":g("long"),**cfg(maxOutputTokens=77)},{E:{"max_tokens":77},A:{"max_tokens":77},B:{"inferenceConfig.maxTokens":77}},{"candidates.0.finishReason":"MAX_TOKENS"}),
 c("sampling",{"contents":g("hi"),**cfg(temperature=0.25,topP=0.875)},{E:{"temperature":0.25,"top_p":0.875},A:{"temperature":0.25,"top_p":0.875},A5:{"temperature":None},B:{"inferenceConfig.temperature":0.25}},None,{A5:"generationConfig.temperature, generationConfig.topP"}),
 c("top k",{"contents":g("hi"),**cfg(topK=5)},{E:{"top_k":5},A:{"top_k":5},A5:{"top_k":None},B:{"additionalModelRequestFields.top_k":5}},None,{A5:"generationConfig.topK"}),
 c("seed",{"contents":g("hi"),**cfg(seed=7)},{E:{"seed":7}},None,{A:"generationConfig.seed",B:"generationConfig.seed"}),
 c("penalties",{"contents":g("hi"),**cfg(frequencyPenalty=0.5,presencePenalty=0.25)},{E:{"frequency_penalty":0.5,"presence_penalty":0.25}},None,{A:"generationConfig.frequencyPenalty, generationConfig.presencePenalty",B:"generationConfig.frequencyPenalty, generationConfig.presencePenalty"}),
 c("logprobs",{"contents":g("hi"),**cfg(responseLogprobs=True,logprobs=3)},{E:{"logprobs":True,"top_logprobs":3}},None,{A:"generationConfig.responseLogprobs, generationConfig.logprobs",B:"generationConfig.responseLogprobs, generationConfig.logprobs",C:"generationConfig.responseLogprobs, generationConfig.logprobs"}),
 c("stops",{"contents":g("sequence"),**cfg(stopSequences=["END","B"])},{E:{"stop":["END","B"]},A:{"stop_sequences.1":"B"},B:{"inferenceConfig.stopSequences.1":"B"}},{"candidates.0.finishReason":"STOP"}),
 c("refusal",{"contents":g("refuse")},None,{"candidates.0.finishReason":"SAFETY"},but=[M]),
 c("image",{"contents":gp(data("image/png",PNG))},{E:{"messages.0.content.0.image_url.url":URL},A:{"messages.0.content.0.source":{"type":"base64","media_type":"image/png","data":PNG}},B:{"messages.0.content.0.image.format":"png"}}),
 c("image by address",{"contents":gp({"fileData":{"mimeType":"image/png","fileUri":"https://example.com/a.png"}})},{E:{"messages.0.content.0.image_url.url":"https://example.com/a.png"},A:{"messages.0.content.0.source.url":"https://example.com/a.png"}},None,{B:"contents[0].parts[0].fileData"}),
 c("a file of Google's",{"contents":gp({"fileData":{"mimeType":"application/pdf","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/a"}})},None,None,{E:"contents[0].parts[0].fileData",A:"contents[0].parts[0].fileData",B:"contents[0].parts[0].fileData",C:"contents[0].parts[0].fileData"}),
 c("file",{"contents":gp(data("application/pdf","JVBERg=="))},{E:{"messages.0.content.0.file.file_data":"data:application/pdf;base64,JVBERg=="},A:{"messages.0.content.0.source.media_type":"application/pdf"},B:{"messages.0.content.0.document.format":"pdf"}},None,{C:"contents[0].parts[0].inlineData"}),
 c("plain document",{"contents":gp(data("text/plain","b2YgYSBmaWxl"))},{E:{"messages.0.content":"of a file\n\nhi"},A:{"messages.0.content.0.text":"of a file"}}),
 c("audio",{"contents":gp(data("audio/mpeg","UklGRg=="))},{E:{"messages.0.content.0.input_audio":{"data":"UklGRg==","format":"mp3"}}},None,{A:"contents[0].parts[0].inlineData",B:"contents[0].parts[0].inlineData",C:"contents[0].parts[0].inlineData"}),
 c("a film",{"contents":gp(data("video/mp4","UklGRg=="))},None,None,{E:"contents[0].parts[0].inlineData",A:"contents[0].parts[0].inlineData",B:"contents[0].parts[0].inlineData",C:"contents[0].parts[0].inlineData"}),
 c("a call",{"contents":g("call"),**tools()},{E:{"tools.#":2,"tools.0.function.parameters":W},A:{"tools.0.input_schema":W,"tools.1.name":"time"},B:{"toolConfig.tools.#":2}},{P0+".text":H,PAR+".1.functionCall.name":"weather",PAR+".1.functionCall.args":{"city":"Paris","n":1.5},"candidates.0.finishReason":"STOP"}),
 c("a schema of JSON",{"contents":g("call"),**cfg(tools=[{"functionDeclarations":[{"name":"weather","parametersJsonSchema":SCHEMA}]}])},{E:{"tools.0.function.parameters":SCHEMA},A:{"tools.0.input_schema":SCHEMA}}),
 c("parallel calls",{"contents":g("four calls"),**tools()},None,{PAR+".#":4,PAR+".3.functionCall.args":{"city":"東京"}}),
 c("two calls",{"contents":g("calls"),**tools()},None,{PAR+".1.functionCall.name":"time"}),
 c("deep call",{"contents":g("deep call"),**tools()},None,{P0+".functionCall.args.a":{"b":[1,2.5,None,True,{"c":"\"\\ü"}]}}),
 c("a named tool",{"contents":g("call"),**tools(toolConfig=calling("ANY","time"))},{E:{"tool_choice":{"type":"function","function":{"name":"time"}}},A:{"tool_choice.name":"time"},B:{"toolConfig.toolChoice.tool.name":"time"}},None,{C:"toolConfig.functionCallingConfig"}),
 c("some tools",{"contents":g("call"),**cfg(tools=[{"functionDeclarations":[{"name":n} for n in ("weather","time","other")]}],toolConfig=calling("ANY","weather","time"))},{E:{"tool_choice":"required","tools.#":2},A:{"tool_choice.type":"any","tools.#":2},B:{"toolConfig.tools.#":2}}),
 c("any tool",{"contents":g("call"),**tools(toolConfig=calling("ANY"))},{E:{"tool_choice":"required"},A:{"tool_choice.type":"any"},B:{"toolConfig.toolChoice":{"any":{}}}}),
 c("auto",{"contents":g("call"),**tools(toolConfig=calling("AUTO"))},{E:{"tool_choice":"auto"},A:{"tool_choice.type":"auto"}}),
 c("no tool",{"contents":g("hi"),**tools(toolConfig=calling("NONE"))},{E:{"tool_choice":"none"},A:{"tool_choice.type":"none"},B:{"toolConfig":None}}),
 c("results",{"contents":gloop,**tools()},{E:{"messages.#":5,"messages.1.tool_calls.0.function.arguments":{"JSON":{"city":"Paris","n":1.5}},"messages.2.content":"sunny","messages.3.content":"Error: no"},A:{"messages.2.content.0.content.0.text":"sunny","messages.2.content.1.is_error":True},B:{"messages.2.content.1.toolResult.status":"error"}}),
 c("results by their names",{"contents":gturns("x",[gcall("weather",{}),gcall("time",{})],[gresult("weather",{"output":"sunny"}),gresult("time",{"hour":12}),{"text":"hi"}]),**tools()},{E:{"messages.2.tool_call_id":"gcall_1","messages.2.content":"sunny","messages.3.content":{"JSON":{"hour":12}}},A:{"messages.2.content.1.tool_use_id":"gcall_2"}}),
 c("a result with an image",{"contents":gturns("x",[gcall("weather",{},id="a")],[gresult("weather",{"output":"see"},id="a",parts=[data("image/png",PNG)]),{"text":"hi"}]),**tools()},{E:{"messages.2.content":"see","messages.3.content.1.image_url.url":URL},A:{"messages.2.content.0.content.1.type":"image"}}),
 c("long loop",{"contents":gchats(40),**tools()},{E:{"messages.#":82},A:{"messages.#":81},B:{"messages.#":81}}),
 c("thinking",{"contents":g("think"),**cfg(thinkingConfig={"thinkingBudget":2000,"includeThoughts":True})},{E:{"reasoning_effort":"low"},A:{"thinking":{"type":"enabled","budget_tokens":2000}},A5:{"thinking.type":"adaptive"},B:{"additionalModelRequestFields.thinking.budget_tokens":2000}},{P0+".text":"let me see\n…",P0+".thought":True,PAR+".1.text":H}),
 c("a level of thinking",{"contents":g("think"),**cfg(thinkingConfig={"thinkingLevel":"HIGH","includeThoughts":True})},{E:{"reasoning_effort":"high"},A:{"thinking.budget_tokens":24576},A5:{"output_config.effort":"high"}},{P0+".thought":True}),
 c("as much thinking as it likes",{"contents":g("think"),**cfg(thinkingConfig={"thinkingBudget":-1})},{E:{"reasoning_effort":None},A:{"thinking.type":"enabled"},A5:{"thinking.type":"adaptive"}}),
 c("thinking, then a call",{"contents":g("think call"),**tools(thinkingConfig={"thinkingBudget":2000,"includeThoughts":True})},None,{P0+".text":"a tool, then",PAR+".1.functionCall.name":"weather"}),
 c("thoughts go back",{"contents":gturns("x",[{"text":"hm","thought":True,"thoughtSignature":"YW50aHJvcGljOmMybG4="},gcall("weather",{},id="a")],[gresult("weather",{"output":"sunny"},id="a"),{"text":"hi"}]),**tools(thinkingConfig={"thinkingBudget":2000})},{E:{"messages.1.reasoning_content":"hm"},A:{"messages.1.content.0":{"type":"thinking","thinking":"hm","signature":"c2ln"}},B:{"messages.1.content.0.reasoningContent.reasoningText.signature":"c2ln"}}),
 c("no thinking",{"contents":g("hi"),**cfg(thinkingConfig={"thinkingBudget":0})},{E:{"reasoning_effort":None},A:{"thinking":None},A5:{"thinking.type":"disabled"}}),
 c("schema",{"contents":g("json"),**cfg(responseMimeType="application/json",responseSchema=gschema)},{E:{"response_format.json_schema.schema":GSCHEMA},A:{"output_config.format.schema":GSCHEMA},B:{"outputConfig.textFormat.structure.jsonSchema.schema":{"JSON":GSCHEMA}}},{P0+".text":'{"a":1}'}),
 c("a schema of JSON for the answer",{"contents":g("json"),**cfg(responseMimeType="application/json",responseJsonSchema=SCHEMA)},{E:{"response_format.json_schema.schema":SCHEMA},A:{"output_config.format.schema":SCHEMA}}),
 c("json",{"contents":g("json"),**cfg(responseMimeType="application/json")},{E:{"response_format.type":"json_object"}},None,{A:"generationConfig.responseMimeType",B:"generationConfig.responseMimeType"}),
 c("several answers",{"contents":g("hi"),**cfg(candidateCount=2)},None,None,{E:"generationConfig.candidateCount",A:"generationConfig.candidateCount",B:"generationConfig.candidateCount",C:"generationConfig.candidateCount"}),
 c("sound as an answer",{"contents":g("hi"),**cfg(responseModalities=["AUDIO"])},None,None,{E:"generationConfig.responseModalities",A:"generationConfig.responseModalities",B:"generationConfig.responseModalities",C:"generationConfig.responseModalities"}),
 c("a tool that Google runs",{"contents":g("hi"),**cfg(tools=[{"googleSearch":{}}])},None,None,{E:"tools[0].googleSearch",A:"tools[0].googleSearch",B:"tools[0].googleSearch",C:"tools[0].googleSearch"}),
 c("what Google keeps",{"contents":g("hi"),**cfg(cachedContent="cachedContents/1")},None,None,{E:"cachedContent",A:"cachedContent",B:"cachedContent",C:"cachedContent"}),
 c("no filter",{"contents":g("hi"),**cfg(safetySettings=[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}])},{E:{"safetySettings":None}}),
 c("a filter",{"contents":g("hi"),**cfg(safetySettings=[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_LOW_AND_ABOVE"}])},None,None,{E:"safetySettings",A:"safetySettings",B:"safetySettings",C:"safetySettings"}),
]
# ---- Cohere's chat: what its SDK has, with its own names
hw=[{"type":"function","function":{"name":"weather","description":"d","parameters":W}},{"type":"function","function":{"name":"time","parameters":{"type":"object","properties":{}}}}]
hloop=[{"role":"user","content":"x"},{"role":"assistant","tool_plan":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"weather","arguments":'{"city":"Paris","n":1.50}'}},{"id":"b","type":"function","function":{"name":"time","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"sunny"},{"role":"tool","tool_call_id":"b","content":[{"type":"document","document":{"id":"1","data":{"hour":"12"}}}]},{"role":"user","content":"hi"}]
def hchats(n):
    m=[{"role":"user","content":"begin"}]
    for i in range(n):
        m+=[{"role":"assistant","tool_plan":f"step {i}","tool_calls":[{"id":f"c{i}","type":"function","function":{"name":"weather","arguments":'{"city":"%d"}'%i}}]},{"role":"tool","tool_call_id":f"c{i}","content":f"result {i}"}]
    return m+[{"role":"user","content":"hi"}]
M0="message.content.0"
cohere=[
 c("text",{"messages":u("hi")},{E:{"messages.0.content":"hi","model":"llama"},A:{"messages.0.content.0.text":"hi"},G:{"contents.0.parts.0.text":"hi"},B:{"messages.0.content.0.text":"hi"},C:{"messages.0.content":"hi","model":"command-a"}},{M0+".type":"text",M0+".text":H,"message.role":"assistant","finish_reason":"COMPLETE"}),
 c("usage",{"messages":u("hi")},None,{"usage.tokens.input_tokens":25,"usage.tokens.output_tokens":9,"usage.cached_tokens":5}),
 c("big",{"messages":u("big")},None,{M0+".text":"".join(f"word{i} " for i in range(300))}),
 c("empty",{"messages":u("empty")},None,{"finish_reason":"COMPLETE"}),
 c("system",{"messages":[{"role":"system","content":"be short"}]+u("hi")},{E:{"messages.0":{"role":"system","content":"be short"}},A:{"system.0.text":"be short"},G:{"systemInstruction.parts.0.text":"be short"},B:{"system.0.text":"be short"},C:{"messages.0.role":"system"}}),
 c("parts",{"messages":u([{"type":"text","text":"a"},{"type":"text","text":"hi"}])},{A:{"messages.0.content.#":2},G:{"contents.0.parts.#":2}}),
 c("turns",{"messages":u("one")+[{"role":"assistant","content":"two"}]+u("hi")},{E:{"messages.1.content":"two"},A:{"messages.1.role":"assistant"},G:{"contents.1.role":"model"},B:{"messages.1.content.0.text":"two"}}),
 c("unicode",{"messages":u("日本語 \u2028 \"q\" \\ 😀 \u0001")+[{"role":"assistant","content":"ok"}]+u("hi")},{E:{"messages.0.content":"日本語 \u2028 \"q\" \\ 😀 \u0001"}}),
 c("limit",{"messages":u("long"),"max_tokens":77},{E:{"max_tokens":77},A:{"max_tokens":77},G:{"generationConfig.maxOutputTokens":77},B:{"inferenceConfig.maxTokens":77},C:{"max_tokens":77}},{"finish_reason":"MAX_TOKENS"}),
 c("sampling",{"messages":u("hi"),"temperature":0.25,"p":0.875},{E:{"temperature":0.25,"top_p":0.875},A:{"temperature":0.25,"top_p":0.875},A5:{"temperature":None},G:{"generationConfig.topP":0.875},B:{"inferenceConfig.topP":0.875},C:{"p":0.875}},None,{A5:"temperature, p"}),
 c("top k",{"messages":u("hi"),"k":5},{E:{"top_k":5},A:{"top_k":5},A5:{"top_k":None},G:{"generationConfig.topK":5},B:{"additionalModelRequestFields.top_k":5}},None,{A5:"k"}),
 c("no top k",{"messages":u("hi"),"k":0},{E:{"top_k":None},A:{"top_k":None}}),
 c("seed",{"messages":u("hi"),"seed":7},{E:{"seed":7},G:{"generationConfig.seed":7}},None,{A:"seed",B:"seed"}),
 c("penalties",{"messages":u("hi"),"frequency_penalty":0.5,"presence_penalty":0.25},{E:{"frequency_penalty":0.5,"presence_penalty":0.25},G:{"generationConfig.frequencyPenalty":0.5}},None,{A:"frequency_penalty, presence_penalty",B:"frequency_penalty, presence_penalty"}),
 c("stops",{"messages":u("sequence"),"stop_sequences":["END","B"]},{E:{"stop":["END","B"]},A:{"stop_sequences":["END","B"]},G:{"generationConfig.stopSequences":["END","B"]}},{},None),
 c("refusal",{"messages":u("refuse")},None,{M0+".text":H}),
 c("image",{"messages":u([{"type":"image_url","image_url":{"url":URL}},{"type":"text","text":"hi"}])},{E:{"messages.0.content.0.image_url.url":URL},A:{"messages.0.content.0.source.media_type":"image/png"},G:{"contents.0.parts.0.inlineData.mimeType":"image/png"},B:{"messages.0.content.0.image.format":"png"}}),
 c("image by address",{"messages":u([{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},{"type":"text","text":"hi"}])},{E:{"messages.0.content.0.image_url.url":"https://example.com/a.png"},A:{"messages.0.content.0.source.url":"https://example.com/a.png"}},None,{B:"messages[0].content[0]"}),
 c("a call",{"messages":u("call"),"tools":hw},{E:{"tools.#":2,"tools.0.function.parameters":W},A:{"tools.0.input_schema":W},G:{"tools.0.functionDeclarations.0.name":"weather"},B:{"toolConfig.tools.#":2}},{"message.tool_calls.0.function.name":"weather","message.tool_calls.0.function.arguments":{"JSON":{"city":"Paris","n":1.5}},"finish_reason":"TOOL_CALL"}),
 c("parallel calls",{"messages":u("four calls"),"tools":hw},None,{"message.tool_calls.#":4,"message.tool_calls.3.function.arguments":{"JSON":{"city":"東京"}}}),
 c("two calls",{"messages":u("calls"),"tools":hw},None,{"message.tool_calls.1.function.name":"time"}),
 c("deep call",{"messages":u("deep call"),"tools":hw},None,{"message.tool_calls.0.function.arguments":{"JSON":{"a":{"b":[1,2.5,None,True,{"c":"\"\\ü"}]},"big":12345678901234567890}}}),
 c("any tool",{"messages":u("call"),"tools":hw,"tool_choice":"REQUIRED"},{E:{"tool_choice":"required"},A:{"tool_choice.type":"any"},G:{"toolConfig.functionCallingConfig.mode":"ANY"},B:{"toolConfig.toolChoice":{"any":{}}}}),
 c("no tool",{"messages":u("hi"),"tools":hw,"tool_choice":"NONE"},{E:{"tool_choice":"none"},A:{"tool_choice.type":"none"},G:{"toolConfig.functionCallingConfig.mode":"NONE"}}),
 c("results",{"messages":hloop,"tools":hw},{E:{"messages.1.content":"I look.","messages.1.tool_calls.0.function.arguments":{"JSON":{"city":"Paris","n":1.5}},"messages.2.content":"sunny","messages.3.content":{"JSON":{"hour":"12"}}},A:{"messages.2.content.0.content.0.text":"sunny"},C:{"messages.1.tool_plan":"I look."}}),
 c("long loop",{"messages":hchats(40),"tools":hw},{E:{"messages.#":82},A:{"messages.#":81},G:{"contents.#":81},B:{"messages.#":81}}),
 c("strict tools",{"messages":u("call"),"tools":hw,"strict_tools":True},{E:{"tools.0.function.strict":True},C:{"strict_tools":True}}),
 c("schema",{"messages":u("json"),"response_format":{"type":"json_object","json_schema":SCHEMA}},{E:{"response_format.json_schema.schema":SCHEMA},A:{"output_config.format.schema":SCHEMA},G:{"generationConfig.responseJsonSchema":SCHEMA},C:{"response_format.json_schema":SCHEMA}},{M0+".text":'{"a":1}'}),
 c("json",{"messages":u("json"),"response_format":{"type":"json_object"}},{E:{"response_format.type":"json_object"},G:{"generationConfig.responseMimeType":"application/json"}},None,{A:"response_format",B:"response_format"}),
 c("thinking",{"messages":u("think"),"thinking":{"type":"enabled","token_budget":2000}},{E:{"reasoning_effort":"low"},A:{"thinking.budget_tokens":2000},A5:{"thinking.type":"adaptive"},G:{"generationConfig.thinkingConfig.thinkingBudget":2000},B:{"additionalModelRequestFields.thinking.budget_tokens":2000}},{M0+".type":"thinking",M0+".thinking":"let me see\n…","message.content.1.text":H}),
 c("thinking, then a call",{"messages":u("think call"),"tools":hw,"thinking":{"type":"enabled"}},None,{M0+".thinking":"a tool, then","message.tool_calls.0.function.name":"weather"}),
 c("no thinking",{"messages":u("hi"),"thinking":{"type":"disabled"}},{E:{"reasoning_effort":None},A:{"thinking":None},A5:{"thinking.type":"disabled"}}),
 c("documents",{"messages":u("hi"),"documents":[{"id":"1","data":{"text":"of the sky"}}]},None,None,{E:"documents",A:"documents",G:"documents",B:"documents"}),
 c("a strict safety mode",{"messages":u("hi"),"safety_mode":"STRICT"},None,None,{E:"safety_mode",A:"safety_mode",G:"safety_mode",B:"safety_mode"}),
 c("logprobs",{"messages":u("hi"),"logprobs":True},{C:{"logprobs":True}},None,{E:"logprobs",A:"logprobs",G:"logprobs",B:"logprobs"}),
 c("what changes nothing",{"messages":u("hi"),"priority":3,"safety_mode":"CONTEXTUAL"},{E:{"priority":None,"safety_mode":None}}),
]
# What Cohere's chat gets of the others' cases.
CT={"tools.#":2,"tools.0.function.description":"d","tools.0.function.parameters":W}
CL={"messages.1.tool_calls.0.function.arguments":{"JSON":{"city":"Paris","n":1.5}},"messages.2":{"role":"tool","tool_call_id":"a.1","content":"sunny"},"messages.3.tool_call_id":"b","messages.4.content":"hi"}
COMMON={"limit":{"max_tokens":77},"sampling":{"temperature":0.3,"p":0.9},"image":{"messages.0.content.0.image_url.url":URL,"messages.0.content.1.text":"hi"},"a call":CT,"any tool":{"tool_choice":"REQUIRED"},"no tool":{"tool_choice":"NONE"},"schema":{"response_format":{"type":"json_object","json_schema":SCHEMA}},"no thinking":{"thinking":{"type":"disabled"}},"long loop":{"messages.#":82}}
TO_COHERE={
 "chat":{**COMMON,"system":{"messages.0":{"role":"system","content":"be short\n\nin French"}},"turns":{"messages.#":3,"messages.1":{"role":"assistant","content":"two"}},"newer limit":{"max_tokens":78},"sampling as ever":{"p":0.99},"hot":{"temperature":1.5},"seed":{"seed":7},"penalties":{"frequency_penalty":0.5,"presence_penalty":0.25},"stop":{"stop_sequences":["END"]},"stops":{"stop_sequences":["A","B"]},"results":CL,"json":{"response_format":{"type":"json_object"}},"thinking":{"thinking":{"type":"enabled","token_budget":1024}}},
 "messages":{**COMMON,"limit":None,"text":{"max_tokens":9000},"system":{"messages.0":{"role":"system","content":"be short"}},"top_k":{"k":5},"stop":{"stop_sequences":["END"]},"results":{"messages.1.content.0":{"type":"thinking","thinking":"hm"},"messages.1.tool_calls.#":2,"messages.3.content":"Error: no"},"thinking":{"thinking":{"type":"enabled","token_budget":2000}}},
 "responses":{**COMMON,"instructions":{"messages.0":{"role":"system","content":"be short"}},"results":{"messages.1.tool_calls.#":2,"messages.2.content":"sunny"}},
 "generate":{**COMMON,"sampling":{"temperature":0.25},"schema":{"response_format":{"type":"json_object","json_schema":GSCHEMA}},"top k":{"k":5},"thinking":{"thinking":{"type":"enabled","token_budget":2000}},"results by their names":{"messages.2.tool_call_id":"gcall_1","messages.3.content":{"JSON":{"hour":12}}}},
}
for table,more in ((chat,"chat"),(messages,"messages"),(responses,"responses"),(generate,"generate")):
    names=[case["name"] for case in table]
    for name,up in TO_COHERE[more].items():
        if up and (name in names or name not in COMMON):
            table[names.index(name)].setdefault("up",{})[C]=up
# What Mistral's chat gets: mostly what an engine does, in its own words.
PDF={"type":"document_url","document_url":"data:application/pdf;base64,JVBERg=="}
FILE={"messages.0.content.0.type":"document_url","messages.0.content.0.document_url":PDF["document_url"]}
BRIDGED={"messages.4.role":"assistant","messages.5.content":"hi"}
IMAGED={"messages.2.content":"see","messages.3.role":"assistant","messages.4.content.1.image_url.url":URL}
BY_MISTRAL={
 "chat":{"text":{"messages.0":{"role":"user","content":"hi"},"model":"magistral"},"system":{"messages.0":{"role":"system","content":"be short\n\nin French"}},"turns":{"messages.#":3},"limit":{"max_tokens":77},"newer limit":{"max_tokens":78},"sampling":{"temperature":0.3,"top_p":0.9},"hot":{"temperature":1.5},"seed":{"random_seed":7,"seed":None},"penalties":{"frequency_penalty":0.5,"presence_penalty":0.25},"logprobs":{"logprobs":True,"top_logprobs":3},"stops":{"stop":["A","B"]},"user":{"user":None},"image":{"messages.0.content.0":{"type":"image_url","image_url":{"url":URL,"detail":"low"}}},"file":{"messages.0.content.0":{**PDF,"document_name":"a b_c.pdf"}},"audio":{"messages.0.content.0":{"type":"input_audio","input_audio":"UklGRg=="}},"a call":{**CT},"serial calls":{"parallel_tool_calls":False},"a named tool":{"tool_choice":{"type":"function","function":{"name":"time"}}},"no tool":{"tool_choice":"none"},"results":{"messages.1.tool_calls.0.function.arguments":{"JSON":{"city":"Paris","n":1.5}},"messages.2.content":"sunny",**BRIDGED},"long loop":{"messages.#":83},"schema":{"response_format.json_schema.schema":SCHEMA},"json":{"response_format":{"type":"json_object"}},"thinking":{"reasoning_effort":"low"},"no thinking":{"reasoning_effort":None}},
 "messages":{"file":{**FILE,"messages.0.content.0.document_name":"a.pdf"},"results":{"messages.1.tool_calls.0.function.arguments":{"JSON":{"city":"Paris"}},"messages.1.content":"so","messages.2.content":"sunny","messages.3.content":"Error: no",**BRIDGED},"a result with an image":IMAGED,"long loop":{"messages.#":83},"thoughts go back":{"messages.1.content":"so"}},
 "responses":{"file":FILE,"results":{"messages.1.tool_calls.#":2,"messages.2.content":"sunny",**BRIDGED},"a result with an image":{"messages.2.content":"see","messages.3.role":"assistant"},"long loop":{"messages.#":83}},
 "generate":{"file":FILE,"audio":{"messages.0.content.0.input_audio":"UklGRg=="},"results":{"messages.2.content":"sunny","messages.3.content":"Error: no",**BRIDGED},"results by their names":{"messages.2.content":"sunny",**BRIDGED},"a result with an image":IMAGED,"long loop":{"messages.#":83},"thoughts go back":{"messages.1.content":None}},
 "cohere":{"results":{"messages.1.content":"I look.","messages.2.content":"sunny","messages.3.content":{"JSON":{"hour":"12"}},**BRIDGED},"long loop":{"messages.#":83}},
}
def by_mistral(up):
    told={"seed":"random_seed"}
    return {told.get(path,path):{"model":"magistral","user":None}.get(path,want) for path,want in up.items()}
for table,name in ((chat,"chat"),(messages,"messages"),(responses,"responses"),(generate,"generate"),(cohere,"cohere")):
    own=dict(BY_MISTRAL[name])
    for case in table:
        up=own.pop(case["name"],None) or by_mistral(case.get("up",{}).get(E,{}))
        if up: case.setdefault("up",{}).setdefault(M,up)
        if E in case.get("no",{}): case["no"].setdefault(M,case["no"][E])
    assert not own, own
out={"cohere":{"body":{},"cases":cohere},"chat":{"body":{},"cases":chat},"messages":{"body":{"max_tokens":9000},"cases":messages},"responses":{"body":{},"cases":responses},"generate":{"body":{},"cases":generate}}
print(json.dumps(out))
