"""The official openai SDK, unchanged but for its base URL."""

import asyncio
import time
import unittest

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

import world

MESSAGES = [{"role": "user", "content": "Say something."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}


def client(key=world.KEY, **options):
    options.setdefault("max_retries", 0)
    return OpenAI(base_url=world.PACER + "/v1", api_key=key, **options)


class Chat(unittest.TestCase):
    def test_plain(self):
        answer = client().chat.completions.create(model="chat", messages=MESSAGES, max_tokens=12)
        self.assertEqual(answer.usage.completion_tokens, 12)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(len(answer.choices[0].message.content.split(" ")), 13)
        self.assertTrue(answer._request_id)

    def test_stream_has_no_usage_that_was_not_asked_for(self):
        stream = client().chat.completions.create(model="chat", messages=MESSAGES, max_tokens=12, stream=True)
        words, finish = [], None
        for chunk in stream:
            self.assertIsNone(chunk.usage)
            self.assertEqual(len(chunk.choices), 1)
            words.append(chunk.choices[0].delta.content or "")
            finish = chunk.choices[0].finish_reason or finish
        self.assertEqual(len("".join(words).split(" ")), 13)
        self.assertEqual(finish, "length")

    def test_stream_with_usage(self):
        stream = client().chat.completions.create(
            model="chat", messages=MESSAGES, max_tokens=12, stream=True, stream_options={"include_usage": True}
        )
        last = list(stream)[-1]
        self.assertEqual(last.choices, [])
        self.assertEqual(last.usage.completion_tokens, 12)

    def test_a_model_with_slashes(self):
        answer = client().chat.completions.create(model="org/model", messages=MESSAGES, max_tokens=3)
        self.assertEqual(answer.usage.completion_tokens, 3)

    def test_n(self):
        answer = client().chat.completions.create(model="chat", messages=MESSAGES, max_tokens=5, n=3)
        self.assertEqual([c.index for c in answer.choices], [0, 1, 2])
        stream = client().chat.completions.create(model="chat", messages=MESSAGES, max_tokens=5, n=2, stream=True)
        self.assertEqual({c.index for chunk in stream for c in chunk.choices}, {0, 1})

    def test_tools(self):
        answer = client().chat.completions.create(model="chat", messages=MESSAGES, tools=[WEATHER], max_tokens=9)
        call = answer.choices[0].message.tool_calls[0]
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
        self.assertEqual(call.function.name, "weather")
        follow = MESSAGES + [
            answer.choices[0].message,
            {"role": "tool", "tool_call_id": call.id, "content": "rain"},
        ]
        answer = client().chat.completions.create(model="chat", messages=follow, tools=[WEATHER], max_tokens=4)
        self.assertTrue(answer.choices[0].message.content)

    def test_streamed_tools(self):
        with client().chat.completions.stream(
            model="chat", messages=MESSAGES, tools=[WEATHER | {"function": WEATHER["function"] | {"strict": True}}], max_tokens=9
        ) as stream:
            events = {event.type for event in stream}
            call = stream.get_final_completion().choices[0].message.tool_calls[0]
        self.assertIn("tool_calls.function.arguments.delta", events)
        self.assertEqual(call.function.parsed_arguments["days"], 7)

    def test_json_mode(self):
        class Forecast(BaseModel):
            city: str
            days: int

        answer = client().chat.completions.parse(model="chat", messages=MESSAGES, response_format=Forecast, max_tokens=20)
        self.assertEqual(answer.choices[0].message.parsed.days, 7)

    def test_images(self):
        content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": world.PIXEL}}]
        answer = client().chat.completions.create(model="chat", messages=[{"role": "user", "content": content}], max_tokens=3)
        self.assertEqual(answer.usage.completion_tokens, 3)

    def test_reasoning(self):
        answer = client().chat.completions.create(model="thinking", messages=MESSAGES, max_tokens=8)
        self.assertTrue(answer.choices[0].message.reasoning_content)
        stream = client().chat.completions.create(model="thinking", messages=MESSAGES, max_tokens=8, stream=True)
        deltas = [chunk.choices[0].delta for chunk in stream]
        self.assertEqual(len([d for d in deltas if getattr(d, "reasoning_content", None)]), 4)
        self.assertEqual(len([d for d in deltas if d.content]), 4)

    def test_unknown_fields_go_up_and_come_down(self):
        answer = client().chat.completions.create(
            model="chat", messages=MESSAGES, max_tokens=2, seed=9007199254740993, extra_body={"chat_template_kwargs": {"a": 1.0}}
        )
        self.assertIn("stop_reason", answer.choices[0].model_extra)

    def test_raw_response(self):
        raw = client().chat.completions.with_raw_response.create(model="chat", messages=MESSAGES, max_tokens=2)
        self.assertTrue(raw.headers["x-request-id"])
        self.assertEqual(raw.parse().usage.completion_tokens, 2)

    def test_abort_reaches_the_engine(self):
        before = world.truth()["cancelled"]
        stream = client().chat.completions.create(model="chat", messages=MESSAGES, max_tokens=100000, stream=True)
        for _, _ in zip(range(5), stream):
            pass
        stream.close()
        deadline = time.monotonic() + 30
        while world.truth()["cancelled"] == before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertGreater(world.truth()["cancelled"], before)

    def test_200_streams_at_once(self):
        async def one(c):
            stream = await c.chat.completions.create(model="chat", messages=MESSAGES, max_tokens=40, stream=True)
            return sum([len(chunk.choices[0].delta.content or "") > 0 async for chunk in stream])

        async def all():
            async with AsyncOpenAI(base_url=world.PACER + "/v1", api_key=world.KEY, max_retries=4, timeout=120) as c:
                return await asyncio.gather(*(one(c) for _ in range(200)))

        self.assertEqual(asyncio.run(all()), [40] * 200)


class Others(unittest.TestCase):
    def test_completions(self):
        answer = client().completions.create(model="chat", prompt="Once", max_tokens=5)
        self.assertEqual(answer.usage.completion_tokens, 5)
        stream = client().completions.create(model="chat", prompt=["a", "b"], max_tokens=5, stream=True)
        self.assertEqual({c.index for chunk in stream for c in chunk.choices}, {0, 1})

    def test_models(self):
        self.assertEqual({m.id for m in client().models.list()}, {"chat", "org/model", "thinking", "dead", "voice"})
        self.assertEqual(client().models.retrieve("org/model").id, "org/model")

    def test_embeddings(self):
        answer = client().embeddings.create(model="chat", input=["one", "three"])  # asks for base64
        self.assertEqual([len(d.embedding) for d in answer.data], [8, 8])

    def test_moderations(self):
        self.assertFalse(client().moderations.create(model="chat", input="hello").results[0].flagged)

    def test_images(self):
        self.assertTrue(client().images.generate(model="chat", prompt="a pixel").data[0].b64_json)

    def test_speech(self):
        speech = client().audio.speech.create(model="chat", voice="alloy", input="hello")
        self.assertEqual(len(speech.content), 4096)
        self.assertEqual(speech.content[:3], bytes([0, 1, 2]))

    def test_transcriptions(self):
        sound = ("a.wav", bytes(3_000_000))
        self.assertEqual(client().audio.transcriptions.create(model="chat", file=sound).text, "heard 3000000 bytes")
        stream = client().audio.transcriptions.create(model="chat", file=sound, stream=True)
        self.assertEqual([e.type for e in stream][-1], "transcript.text.done")

    def test_responses(self):
        first = client().responses.create(model="chat", input="hello", max_output_tokens=6)
        self.assertEqual(first.usage.output_tokens, 6)
        self.assertTrue(first.output_text)
        self.assertEqual(client().responses.retrieve(first.id).id, first.id)
        second = client().responses.create(model="chat", input="more", previous_response_id=first.id, max_output_tokens=2)
        self.assertEqual(second.usage.output_tokens, 2)
        with self.assertRaises(openai.NotFoundError):
            client().responses.retrieve("resp_nobody_knows")

    def test_streamed_responses(self):
        with client().responses.stream(model="chat", input="hello", max_output_tokens=6) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        self.assertEqual(kinds.count("response.output_text.delta"), 6)
        self.assertEqual(final.usage.output_tokens, 6)


class Errors(unittest.TestCase):
    def raises(self, kind, code, call, **expect):
        with self.assertRaises(kind) as caught:
            call()
        error = caught.exception
        self.assertIs(type(error), kind)
        self.assertEqual(error.code, code)
        self.assertTrue(error.request_id)
        for name, value in expect.items():
            self.assertEqual(getattr(error, name), value)
        return error

    def chat(self, c=None, **body):
        body = {"model": "chat", "messages": MESSAGES, "max_tokens": 3} | body
        return (c or client()).chat.completions.create(**body)

    def test_authentication(self):
        self.raises(openai.AuthenticationError, "invalid_api_key", lambda: self.chat(client(key="sk-wrong")))

    def test_permission_denied(self):
        self.raises(
            openai.PermissionDeniedError, "permission_denied",
            lambda: self.chat(client(key=world.NARROW_KEY), extra_headers={"x-pacer-min-tps": "20"}),
        )

    def test_not_found(self):
        self.raises(openai.NotFoundError, "model_not_found", lambda: self.chat(model="nobody"))
        # A route that the key may not use looks like one that is not there.
        self.raises(openai.NotFoundError, "model_not_found", lambda: self.chat(client(key=world.NARROW_KEY), model="thinking"))

    def test_bad_request(self):
        self.raises(openai.BadRequestError, None, lambda: self.chat(model=""))
        with self.assertRaises(openai.BadRequestError) as caught:  # the engine's own, in its own shape
            self.chat(messages=[])
        self.assertEqual(caught.exception.param, "messages")

    def test_rate_limit(self):
        c = client(key=world.LIMITED_KEY)
        self.chat(c)
        error = self.raises(openai.RateLimitError, "rate_limit_exceeded", lambda: self.chat(c))
        self.assertGreater(float(error.response.headers["retry-after"]), 0)

    def test_floor_out_of_reach(self):
        error = self.raises(
            openai.RateLimitError, "floor_unattainable",
            lambda: [self.chat(extra_headers={"x-pacer-min-tps": "100000"}) for _ in range(50)],
        )
        self.assertEqual(error.response.headers["x-should-retry"], "false")

    def test_no_backend(self):
        with self.assertRaises(openai.InternalServerError) as caught:
            self.chat(model="dead")
        self.assertIn(caught.exception.status_code, (502, 503))

    def test_passed_on(self):
        with world.fault("status", 500, 0), self.assertRaises(openai.InternalServerError) as caught:
            self.chat()
        self.assertEqual(caught.exception.status_code, 500)

    def test_retry(self):
        with world.passing_fault("status", 503, 0, 0.3):
            answer = self.chat(client(max_retries=6))
        self.assertEqual(answer.usage.completion_tokens, 3)

    def test_timeout(self):
        with world.fault("stall", True, False), self.assertRaises(openai.APITimeoutError):
            self.chat(client(timeout=0.5))

    def test_cut(self):
        with world.fault("cut", 4, 0), self.assertRaises(openai.APIError) as caught:
            for _ in self.chat(max_tokens=50, stream=True):
                pass
        self.assertEqual(caught.exception.code, "upstream_disconnected")

    def test_cut_response(self):
        with world.fault("cut", 4, 0), self.assertRaises(openai.APIError):
            for _ in client().responses.create(model="chat", input="hello", max_output_tokens=50, stream=True):
                pass

    def test_unreachable(self):
        c = OpenAI(base_url="http://127.0.0.1:1/v1", api_key="k", max_retries=0)
        with self.assertRaises(openai.APIConnectionError):
            self.chat(c)


if __name__ == "__main__":
    unittest.main()
