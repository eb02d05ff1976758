"""An example of a plugin: one of each kind of thing that a plugin can add.

`PLUGIN` is what the entry point in pyproject.toml names. It is loaded only once a person has enabled the plugin.
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
