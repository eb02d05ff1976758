"""The workflow document: its model, its file, and the operations that change it."""

from __future__ import annotations

from engine.document.builder import Builder, NodeHandle
from engine.document.config_path import UNSET, Unset
from engine.document.files import dumps, load, loads, save
from engine.document.fragments import copy_fragment, paste_fragment
from engine.document.history import History
from engine.document.ids import is_node_id, make_id, unique_id
from engine.document.migrate import is_newer
from engine.document.model import FILE_SUFFIX, FORMAT, VERSION, Edge, Node, Workflow
from engine.document.node_operations import (
    AddNode,
    RemoveNode,
    RemoveNodes,
    RenameNode,
    SetConfig,
    SetEnabled,
    SetTitle,
)
from engine.document.operation import Batch, Operation, OperationError, Restore
from engine.document.operations import Connect, Disconnect, SetDescription, SetLayout, SetName, SetSettings
from engine.document.problems import DocumentError, Problem, Severity, has_errors

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
    "History",
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
