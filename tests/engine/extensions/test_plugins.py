"""Plugins: the example of the documentation and faulty ones, each in a separate process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.extensions.installed import EXAMPLE, install_example, loopwright, program, write_plugin
from tests.wording import mentions

OPENED = """
import sys
from engine import load, validate
problems = validate(load(sys.argv[1]))
print("unknown-type" in [problem.code for problem in problems], "loopwright_example" in sys.modules)
"""
GOOD = "from engine.extensions import Plugin\nPLUGIN = Plugin(title='Good', help='Adds nothing.')"
TAKES_A_NAME = """
from dataclasses import replace
from engine.extensions import Plugin
from engine.nodes.llm import SPEC
from engine.tools.file_tools import READ_FILE
fine = replace(READ_FILE, name="fine")
PLUGIN = Plugin(title="Bad", help="Takes a name.", tools=(fine,), node_types=(replace(SPEC, title="Mine"),))
"""

FORGETS_THE_COMMA = f"""
{TAKES_A_NAME}
PLUGIN = Plugin(title="Bad", help="Lists one tool.", tools=(fine))
"""
GIVES_NO_PORT_TYPE = f"""
{TAKES_A_NAME}
PLUGIN = Plugin(title="Bad", help="Gives a string.", tools=(replace(fine, output_type="string"),))
"""
HAS_NO_PREFIX = f"""
{TAKES_A_NAME}
from engine.extensions import ModelFamily
PLUGIN = Plugin(title="Bad", help="Has no prefix.", tools=(fine,), models=(ModelFamily("Mine!", print),))
"""
LISTS_SOMETHING_ELSE = f"""
{TAKES_A_NAME}
PLUGIN = Plugin(title="Bad", help="Lists a tool among node types.", node_types=(fine,))
"""

TAKES_A_FORMAT = """
from dataclasses import replace
from engine.extensions import Plugin
from engine.importing.importers import REACT_FLOW
PLUGIN = Plugin(title="Bad", help="Takes a format.", importers=(replace(REACT_FLOW, label="Mine"),))
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the installed example."""
    return install_example(tmp_path_factory.mktemp("example"))


def test_the_tests_of_the_example_pass(example: Path) -> None:
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", EXAMPLE / "pyproject.toml", EXAMPLE / "tests")
    done = program(*tests, sites=(example,))
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout


def test_opening_a_document_loads_no_plugin(example: Path, tmp_path: Path) -> None:
    document = tmp_path / "sample.loop.json"
    nodes = [{"id": "short", "type": "shorten", "config": {"words": 3}}]
    content = {"format": "loopwright.workflow", "version": 1, "name": "Sample", "nodes": nodes, "edges": []}
    document.write_text(json.dumps(content))
    done = program("-c", OPENED, document, sites=(example,))
    assert done.stdout == "True False\n", done.stderr
    with_it = loopwright("--plugin", "example", "validate", document, sites=(example,))
    assert "unknown" not in with_it.stdout + with_it.stderr


def test_a_plugin_is_listed_and_enabled_for_a_call_or_in_the_file(example: Path, tmp_path: Path) -> None:
    off = loopwright("plugins", "--json", sites=(example,))
    details = {"name": "example", "package": "loopwright-example 1.0.0", "enabled": False, "adds": ""}
    assert json.loads(off.stdout) == {"plugins": [details]}
    for_a_call = loopwright("--plugin", "example", "tools", "word_count", sites=(example,))
    assert "Counts the words of a text." in for_a_call.stdout
    extensions = tmp_path / "extensions.json"
    extensions.write_text('{"plugins": ["example"]}')
    always = loopwright("plugins", sites=(example,), LOOPWRIGHT_EXTENSIONS=str(extensions))
    assert "1 node type, 1 tool, 1 exit condition, 1 family of models, 1 turn strategy, 1 importer" in always.stdout


BROKEN = {
    "raises": ("raise ValueError('no luck')", 'The plugin "raises" cannot be loaded (ValueError: no luck).'),
    "exits": ("import sys; sys.exit(0)", 'The plugin "exits" cannot be loaded (SystemExit: 0).'),
    "imports": ("import no_such_module", "No module named 'no_such_module'"),
    "empty": ("x = 1", 'The plugin "empty" cannot be loaded (AttributeError'),
    "number": ("PLUGIN = 3", '"number_module:PLUGIN" is not a plugin'),
    "comma": (FORGETS_THE_COMMA, '"comma" cannot be enabled: … "tools" is not a tuple … Tool'),
    "string": (
        GIVES_NO_PORT_TYPE,
        '"string" cannot be enabled: … "fine" returns "string"',
    ),
    "prefix": (HAS_NO_PREFIX, '"prefix" cannot be enabled: … "Mine!"'),
    "listed": (LISTS_SOMETHING_ELSE, '"listed" cannot be enabled: … "node_types" … a Tool … NodeSpec'),
    "format": (TAKES_A_FORMAT, '"format" cannot be enabled: … "react-flow" already among importers'),
    "taker": (TAKES_A_NAME, '"taker" cannot be enabled: … "llm" already among node types'),
}
"""Faulty plugins by name: code and what the message mentions."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the faulty plugins and a good one."""
    site = write_plugin(tmp_path_factory.mktemp("broken") / "site", "good", GOOD)
    for name, (code, _) in BROKEN.items():
        write_plugin(site, name, code)
    return site


def test_failing_plugins_are_reported_and_the_rest_is_activated(broken: Path, tmp_path: Path) -> None:
    extensions = tmp_path / "extensions.json"
    extensions.write_text(json.dumps({"plugins": [*BROKEN, "good"]}))
    tools = loopwright("tools", "--json", sites=(broken,), LOOPWRIGHT_EXTENSIONS=str(extensions))
    assert tools.returncode == 0
    assert [
        parts for _, parts in BROKEN.values() if not any(mentions(line, parts) for line in tools.stderr.splitlines())
    ] == []
    assert "Traceback" not in tools.stderr
    assert "fine" not in [tool["name"] for tool in json.loads(tools.stdout)["tools"]]
    listed = loopwright("plugins", sites=(broken,), LOOPWRIGHT_EXTENSIONS=str(extensions)).stdout
    enabled = {line.split()[0]: line.split()[3] for line in listed.splitlines()[1:]}
    assert enabled == {**dict.fromkeys(BROKEN, "no"), "good": "yes"}


@pytest.mark.parametrize("name", ["exits", "taker"])
def test_a_failing_plugin_named_for_the_call_is_an_error(broken: Path, name: str) -> None:
    named = loopwright("--plugin", name, "nodes", sites=(broken,))
    assert (named.returncode, named.stdout) == (2, "")
    assert mentions(named.stderr, BROKEN[name][1])
    assert "Traceback" not in named.stderr


def test_an_unknown_plugin_is_reported_by_name() -> None:
    done = loopwright("--plugin", "absent", "nodes")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'There is no plugin "absent". Install its package.' in done.stderr
