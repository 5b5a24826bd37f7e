"""llama.cpp's own HTTP server, as the xllamacpp wheel carries it.

One compute thread: threads spin at a barrier, and more of them are slower on
cores that others use too. The prompt cache is off, so that equal prompts cost
the same.

usage: llama_serve.py FILE.gguf PORT NAME SLOTS CONTEXT_PER_SLOT
"""

import signal
import sys
import threading

import xllamacpp

file, port, name, slots, context = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = file
params.model_alias = {name}
params.hostnames = ["127.0.0.1"]
params.port = int(port)
params.n_parallel = int(slots)
params.n_ctx = int(slots) * int(context)
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.endpoint_metrics = True
params.endpoint_slots = True
params.cache_prompt = False
params.cache_ram_mib = 0
params.fit_params = False
params.ui = False
server = xllamacpp.Server(params)
ended = threading.Event()
for which in (signal.SIGTERM, signal.SIGINT):
    signal.signal(which, lambda *_: ended.set())
while not ended.wait(0.2):
    pass
