"""Names, arguments and descriptions of the tools."""

from __future__ import annotations

from typing import Any

_STRING = {"type": "string"}
_BOOLEAN = {"type": "boolean", "default": False}
_NUMBERS = {"type": "array", "items": {"type": "number"}}
_APP = {**_STRING, "description": "Name of the application, as windows gives it"}
_APP_OR_SCREEN = {**_STRING, "description": "Name of the application, as windows gives it, or screen for all"}
_REF = {**_STRING, "description": "The element's ref, as tree gives it"}
_ROLE = {**_STRING, "description": "Its role, as tree gives it; verified at the act"}
_NAME = {**_STRING, "description": "Its name, as tree gives it; verified at the act"}
_WINDOW = {**_STRING, "description": "The window's id, as windows gives it"}
_BOUNDS = {**_NUMBERS, "description": "The window's bounds, as windows gives them; verified at the act"}
_POINT = {**_NUMBERS, "description": "[x, y] in pixels of the screen, inside the window"}
_REGION = {**_NUMBERS, "default": [], "description": "[x, y, width, height] in pixels of the screen"}
_TERMINAL = {**_BOOLEAN, "description": "Say true if the application runs commands, such as a terminal"}

_ELEMENT = {"app": _APP, "ref": _REF, "role": _ROLE, "name": _NAME, "terminal": _TERMINAL}
_PLACE = {"app": _APP, "window": _WINDOW, "bounds": _BOUNDS, "point": _POINT, "terminal": _TERMINAL}
_ACTIONS = ["activate", "move", "resize", "minimise", "maximise", "close"]


def _tool(
    name: str, description: str, properties: dict[str, Any], optional: tuple[str, ...] = (), *, reads: bool = False
) -> dict[str, Any]:
    required = [each for each, schema in properties.items() if "default" not in schema and each not in optional]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    annotations = {"readOnlyHint": reads, "destructiveHint": not reads, "openWorldHint": True}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}


DEFINITIONS: tuple[dict[str, Any], ...] = (
    _tool("status", "Say which senses and hands work here, and what the others lack.", {}, reads=True),
    _tool(
        "windows",
        "List windows, the topmost first: id, application, process, title, bounds, focus.",
        {"app": {**_APP, "default": ""}},
        reads=True,
    ),
    _tool(
        "screenshot",
        "Take a picture of an application's window, or of the screen, of at most 1024 pixels. A point of it is at"
        " origin + point / scale on the screen. Passwords are painted over, and what lies above the window is, too.",
        {
            "app": _APP_OR_SCREEN,
            "region": _REGION,
            "marks": {**_BOOLEAN, "description": "Number the elements that can be operated"},
        },
        reads=True,
    ),
    _tool(
        "tree",
        "Read an application's elements: ref, role, name, value, bounds, actions. The best way to see what is there,"
        " dialogs too, and to get what press, set_value and select need. What is in a menu is read by the menu's ref.",
        {
            "app": _APP,
            "ref": {**_STRING, "default": "", "description": "Read from this element on"},
            "depth": {"type": "number", "default": 6, "description": "Levels, at most 30"},
            "max_nodes": {"type": "number", "default": 200, "description": "Most elements, at most 2000"},
        },
        reads=True,
    ),
    _tool(
        "read_text",
        "Read the text in a picture of an application's window, or of the screen, where tree does not have it.",
        {"app": _APP_OR_SCREEN, "region": _REGION},
        reads=True,
    ),
    _tool("press", "Press an element: a button, a box to tick, an entry of a menu, which need not be open.", _ELEMENT),
    _tool("set_value", "Replace all of an element's text, or its number.", {**_ELEMENT, "value": _STRING}),
    _tool("select", "Select an element of a list, or a tab.", _ELEMENT),
    _tool(
        "click",
        "Click at a point of a window. Prefer press.",
        {
            **_PLACE,
            "button": {**_STRING, "enum": ["left", "middle", "right"], "default": "left"},
            "count": {"type": "number", "default": 1},
        },
    ),
    _tool("drag", "Drag from one point of a window to another.", {**_PLACE, "to": _POINT}),
    _tool(
        "scroll",
        "Turn the wheel over a point of a window.",
        {**_PLACE, "right": {"type": "number", "default": 0}, "down": {"type": "number", "default": 0}},
    ),
    _tool(
        "key",
        "Press a combination of keys in a window, such as Ctrl+s or Enter. It is activated first.",
        {"app": _APP, "window": _WINDOW, "keys": _STRING, "terminal": _TERMINAL},
    ),
    _tool(
        "type",
        "Type text in a window, which is activated first. Prefer set_value.",
        {"app": _APP, "window": _WINDOW, "text": _STRING, "terminal": _TERMINAL},
    ),
    _tool(
        "window",
        "Activate, move, resize, minimise, maximise or close a window.",
        {
            "app": _APP,
            "window": _WINDOW,
            "title": {**_STRING, "description": "Its title, as windows gives it; verified at the act"},
            "action": {**_STRING, "enum": _ACTIONS},
            "bounds": {**_NUMBERS, "description": "[x, y, width, height], for move and resize"},
        },
        ("bounds",),
    ),
    _tool("open", "Start an installed application, and wait for its window.", {"app": _APP}),
    _tool(
        "clipboard_read",
        "Read the text of the clipboard, or what is selected (primary).",
        {"selection": {**_STRING, "enum": ["clipboard", "primary"], "default": "clipboard"}},
        reads=True,
    ),
    _tool("clipboard_write", "Put text on the clipboard.", {"text": _STRING}),
    _tool(
        "notify",
        "Show a notification. With actions, wait until one is chosen, and say which.",
        {
            "title": _STRING,
            "body": {**_STRING, "default": ""},
            "actions": {"type": "array", "items": _STRING, "default": []},
            "seconds": {"type": "number", "default": 30},
        },
    ),
    _tool(
        "listen",
        "Record sound, and write down what is said. The sound is thrown away.",
        {
            "source": {**_STRING, "enum": ["microphone", "system", "app"]},
            "app": {**_APP, "default": ""},
            "seconds": {"type": "number", "default": 10, "description": "At most 60"},
        },
        reads=True,
    ),
    _tool("speak", "Say a text aloud.", {"text": _STRING}),
)

SCHEMAS: dict[str, dict[str, Any]] = {definition["name"]: definition["inputSchema"] for definition in DEFINITIONS}
"""Tool name to the schema of its arguments."""
