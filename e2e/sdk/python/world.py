"""What the tests are told of the world that sdk_test.go has built."""

import contextlib
import json
import os
import threading
import urllib.request

PACER = os.environ["PACER_URL"]  # http://127.0.0.1:1234
KEY = os.environ["PACER_KEY"]  # may do everything
NARROW_KEY = os.environ["PACER_NARROW_KEY"]  # route chat only, no floor above 10
LIMITED_KEY = os.environ["PACER_LIMITED_KEY"]  # one request a minute
SIM = os.environ["SIM_URL"]  # the engine behind the routes chat and org/model

# A PNG of one pixel.
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def control(**faults):
    """Sets faults of the engine."""
    body = json.dumps(faults).encode()
    request = urllib.request.Request(SIM + "/sim/set", data=body, method="POST")
    urllib.request.urlopen(request, timeout=10).read()


@contextlib.contextmanager
def fault(name, value, healthy):
    """The engine has a fault for as long as the block runs."""
    control(**{name: value})
    try:
        yield
    finally:
        control(**{name: healthy})


@contextlib.contextmanager
def passing_fault(name, value, healthy, seconds):
    """The engine has a fault that ends by itself."""
    control(**{name: value})
    timer = threading.Timer(seconds, lambda: control(**{name: healthy}))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def truth():
    """What the engine has recorded."""
    return json.load(urllib.request.urlopen(SIM + "/sim/truth", timeout=10))
