"""The official anthropic SDK in front of /v1/messages."""

import unittest

import anthropic

import world

MESSAGES = [{"role": "user", "content": "Say something."}]
WEATHER = {
    "name": "weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
}


def client(key=world.KEY, **options):
    options.setdefault("max_retries", 0)
    return anthropic.Anthropic(base_url=world.PACER, api_key=key, **options)


class Messages(unittest.TestCase):
    def test_plain(self):
        answer = client().messages.create(model="chat", max_tokens=6, messages=MESSAGES, system="Be brief.")
        self.assertEqual(answer.usage.output_tokens, 6)
        self.assertEqual(answer.stop_reason, "max_tokens")
        self.assertTrue(answer.content[0].text)

    def test_stream(self):
        with client().messages.stream(model="chat", max_tokens=6, messages=MESSAGES) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.usage.output_tokens, 6)

    def test_tools(self):
        with client().messages.stream(model="chat", max_tokens=9, messages=MESSAGES, tools=[WEATHER]) as stream:
            final = stream.get_final_message()
        self.assertEqual(final.stop_reason, "tool_use")
        self.assertEqual(final.content[0].input["days"], 7)

    def test_errors(self):
        for kind, call in {
            anthropic.AuthenticationError: lambda: client(key="wrong").messages.create(model="chat", max_tokens=1, messages=MESSAGES),
            anthropic.NotFoundError: lambda: client().messages.create(model="nobody", max_tokens=1, messages=MESSAGES),
            anthropic.BadRequestError: lambda: client().messages.create(model="chat", max_tokens=1, messages=[]),
        }.items():
            with self.subTest(kind.__name__), self.assertRaises(kind) as caught:
                call()
            with self.subTest(kind.__name__ + " has Anthropic's shape"):
                self.assertEqual(caught.exception.body["type"], "error")
                self.assertTrue(caught.exception.body["error"]["message"])

    def test_cut(self):
        with world.fault("cut", 4, 0), self.assertRaises(anthropic.APIError):
            with client().messages.stream(model="chat", max_tokens=50, messages=MESSAGES) as stream:
                stream.get_final_message()


if __name__ == "__main__":
    unittest.main()
