"""Example plugin with one of everything that a plugin can add.

The entry point in pyproject.toml refers to `PLUGIN`. It is loaded only after the user has enabled the plugin.
"""

from engine.extensions import ModelFamily, Plugin
from loopwright_example.at_least import AT_LEAST
from loopwright_example.echo_model import make_echo
from loopwright_example.once_more import ONCE_MORE
from loopwright_example.prompt_list import PROMPT_LIST
from loopwright_example.shorten import SHORTEN
from loopwright_example.word_count import WORD_COUNT

PLUGIN = Plugin(
    title="Example",
    help="A node that shortens, a tool that counts words, and one of each other kind.",
    node_types=(SHORTEN,),
    tools=(WORD_COUNT,),
    exit_conditions=(AT_LEAST,),
    models=(ModelFamily("echo", make_echo),),
    turn_strategies=(ONCE_MORE,),
    importers=(PROMPT_LIST,),
)
