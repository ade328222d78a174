"""A stand-in for KFP's launcher, run in a step's container with the recorded launcher's arguments.

It fills the inputs into the step's command as the launcher does, runs it, and prints the outputs as the last
line, where KFP's launcher publishes them. It needs Python alone.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

OUTPUTS = "outputs of the step: "
PLACEHOLDER = re.compile(r"\{\{\$\.inputs\.parameters\['([^']*)'\]\}\}")


def main(words: list[str]) -> int:
    at = words.index("--", words.index("--component_spec"))
    launcher, command = words[:at], words[at + 1 :]
    given = json.loads(after(launcher, "--executor_input"))
    component = json.loads(after(launcher, "--component_spec"))
    values = given["inputs"].get("parameterValues", {})
    declared = component.get("inputDefinitions", {}).get("parameters", {})
    defaults = {name: one["defaultValue"] for name, one in declared.items() if "defaultValue" in one}
    given["inputs"]["parameterValues"] = defaults | filled(values, values)
    make_folders(given["outputs"])
    text = json.dumps(given)
    code = subprocess.call([filled(word, values).replace("{{$}}", text) for word in command])
    if code == 0:
        written = Path(given["outputs"]["outputFile"])
        print(OUTPUTS + (written.read_text() if written.exists() else "{}"), flush=True)
    return code


def after(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def filled(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda m: rendered(values[m[1]]) if m[1] in values else m[0], value)
    if isinstance(value, list):
        return [filled(one, values) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, values) for name, one in value.items()}
    return value


def rendered(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def make_folders(outputs: dict[str, Any]) -> None:
    paths = [one["outputFile"] for one in outputs.get("parameters", {}).values()]
    for one in outputs.get("artifacts", {}).values():
        paths += ["/minio/" + each["uri"].removeprefix("minio://") for each in one["artifacts"]]
    for path in (*paths, outputs["outputFile"]):
        Path(path).parent.mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
