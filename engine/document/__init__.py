"""The workflow document: its model, its file, and the operations that change it."""

from __future__ import annotations

from engine.document.builder import Builder, NodeHandle
from engine.document.clipboard import copy_fragment, paste_fragment
from engine.document.files import dumps, load, loads, save
from engine.document.migrate import is_newer
from engine.document.model import FILE_SUFFIX, FORMAT, VERSION, Edge, Node, Workflow, is_node_id, make_id, unique_id
from engine.document.operations import (
    UNSET,
    AddNode,
    Batch,
    Connect,
    Disconnect,
    Operation,
    OperationError,
    RemoveNode,
    RemoveNodes,
    RenameNode,
    Restore,
    SetConfig,
    SetDescription,
    SetEnabled,
    SetLayout,
    SetName,
    SetSettings,
    SetTitle,
    Unset,
)
from engine.document.problems import DocumentError, Problem, Severity, has_errors
from engine.document.undo_stack import UndoStack

__all__ = [
    "FILE_SUFFIX",
    "FORMAT",
    "UNSET",
    "VERSION",
    "AddNode",
    "Batch",
    "Builder",
    "Connect",
    "Disconnect",
    "DocumentError",
    "Edge",
    "Node",
    "NodeHandle",
    "Operation",
    "OperationError",
    "Problem",
    "RemoveNode",
    "RemoveNodes",
    "RenameNode",
    "Restore",
    "SetConfig",
    "SetDescription",
    "SetEnabled",
    "SetLayout",
    "SetName",
    "SetSettings",
    "SetTitle",
    "Severity",
    "UndoStack",
    "Unset",
    "Workflow",
    "copy_fragment",
    "dumps",
    "has_errors",
    "is_newer",
    "is_node_id",
    "load",
    "loads",
    "make_id",
    "paste_fragment",
    "save",
    "unique_id",
]
