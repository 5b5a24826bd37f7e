"""Batch jobs and realtime sessions by the official openai SDK, unchanged."""

import io
import json
import time
import unittest

import openai
from openai import AsyncOpenAI, OpenAI

import world


def client(key=world.KEY):
    return OpenAI(base_url=world.PACER + "/v1", api_key=key, max_retries=0)


def lines(n, tokens):
    """A file of n requests."""
    return io.BytesIO(b"".join(json.dumps({
        "custom_id": f"c{i}", "method": "POST", "url": "/v1/chat/completions",
        "body": {"model": "chat", "max_tokens": tokens, "messages": [{"role": "user", "content": "x"}]},
    }).encode() + b"\n" for i in range(n)))


def until(condition):
    """Waits for what is expected, a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come")
        time.sleep(0.1)


class Batches(unittest.TestCase):
    def job(self, c, n, tokens):
        file = c.files.create(file=("in.jsonl", lines(n, tokens)), purpose="batch")
        self.assertEqual((file.object, file.purpose, file.filename), ("file", "batch", "in.jsonl"))
        self.assertEqual(c.files.retrieve(file.id).bytes, file.bytes)
        return c.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"team": "x"}
        )

    def test_a_job_and_its_output(self):
        c = client()
        job = self.job(c, 40, 3)
        self.assertEqual((job.object, job.status, job.metadata), ("batch", "in_progress", {"team": "x"}))
        until(lambda: c.batches.retrieve(job.id).status == "completed")
        job = c.batches.retrieve(job.id)
        self.assertEqual((job.request_counts.total, job.request_counts.completed, job.request_counts.failed), (40, 40, 0))
        self.assertIsNone(job.error_file_id)
        answers = [json.loads(l) for l in c.files.content(job.output_file_id).text.splitlines()]
        self.assertEqual([a["custom_id"] for a in answers], [f"c{i}" for i in range(40)])
        for a in answers:
            self.assertEqual(a["response"]["status_code"], 200)
            self.assertEqual(a["response"]["body"]["usage"]["completion_tokens"], 3)
        self.assertIn(job.id, [j.id for j in c.batches.list(limit=100)])
        self.assertTrue(c.files.delete(job.input_file_id).deleted)
        with self.assertRaises(openai.NotFoundError):
            c.files.retrieve(job.input_file_id)

    def test_cancel(self):
        c = client()
        job = self.job(c, 500, 400)
        self.assertIn(c.batches.cancel(job.id).status, ("cancelling", "cancelled"))
        until(lambda: c.batches.retrieve(job.id).status == "cancelled")
        job = c.batches.retrieve(job.id)
        self.assertLess(job.request_counts.completed, 500)
        errors = [json.loads(l) for l in c.files.content(job.error_file_id).text.splitlines()]
        self.assertEqual({e["error"]["code"] for e in errors}, {"batch_cancelled"})
        self.assertEqual(len(errors) + job.request_counts.completed, 500)

    def test_pages_and_what_is_wrong(self):
        c = client()
        ids = {self.job(c, 1, 1).id for _ in range(3)}
        seen = [j.id for j in c.batches.list(limit=2)]  # the SDK goes through the pages
        self.assertLessEqual(ids, set(seen))
        self.assertEqual(len(seen), len(set(seen)))
        file = c.files.create(file=("in.jsonl", b"{}\n"), purpose="batch")
        job = c.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
        self.assertEqual((job.status, job.errors.data[0].line), ("failed", 1))
        with self.assertRaises(openai.NotFoundError):
            client(world.NARROW_KEY).batches.retrieve(job.id)


class Realtime(unittest.IsolatedAsyncioTestCase):
    async def test_a_session(self):
        c = AsyncOpenAI(base_url=world.PACER + "/v1", api_key=world.KEY, max_retries=0)
        async with c.realtime.connect(model="voice") as connection:
            first = await connection.recv()
            self.assertEqual((first.type, first.session.id), ("session.created", "sess_1"))
            await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            await connection.response.create()
            said = []
            async for event in connection:
                said.append(event.type)
                if event.type == "response.done":
                    self.assertEqual(event.response.usage.total_tokens, 30)
                    break
            self.assertEqual(said, ["session.updated", "response.output_text.delta", "response.done"])
        await c.close()

    def test_a_session_without_coroutines(self):
        with client().realtime.connect(model="voice") as connection:
            self.assertEqual(connection.recv().type, "session.created")
            connection.send({"type": "response.create"})
            self.assertEqual(connection.recv().delta, "hello")

    def test_a_key_that_may_not(self):
        from websockets.exceptions import InvalidStatus

        with self.assertRaises(InvalidStatus) as caught:
            with client(world.NARROW_KEY).realtime.connect(model="voice"):
                pass
        self.assertEqual(caught.exception.response.status_code, 404)
