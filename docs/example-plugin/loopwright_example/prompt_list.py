"""Importer for lists of prompts: each becomes a model call whose input is the output of the previous one."""

from engine.document.builder import Builder
from engine.importing.spec import ImporterSpec


def recognize(value):
    """Return the object with `prompts`."""
    if isinstance(value, dict) and isinstance(value.get("prompts"), list) and "format" not in value:
        return value
    return None


def convert(root, report, source, name):
    """Build a chain of model calls."""
    builder = Builder(name)
    previous = builder.add("input", name="text")["value"]
    for number, prompt in enumerate(root["prompts"], start=1):
        if not isinstance(prompt, str):
            report.left_out(f"prompt {number}", "It is not a text.")
            continue
        node = builder.add("llm", id=f"prompt_{number}", prompt=f"{prompt}\n\n{{{{input}}}}")
        builder.connect(previous, node["input"])
        previous = node["output"]
        report.carried_over(f"prompt {number}", f"The node {node.id}.")
    builder.connect(previous, builder.add("output", name="result")["value"])
    report.left_out_keys("", [key for key in root if key != "prompts"])
    return builder.build()


PROMPT_LIST = ImporterSpec(
    name="prompt-list",
    label="list of prompts",
    help="JSON with `prompts`, which are applied one after the other.",
    suffixes=(".json",),
    recognize=recognize,
    convert=convert,
    review="Check the order of the prompts.",
    example='{"prompts": ["Write about this.", "Make it shorter."]}\n',
)
