"""Reads docker-compose.yml as data, so that a machine without a container engine can check it and start the same commands as processes.

Called by tests only. It knows the part of the Compose format that our file uses: YAML's anchors and merges, `${NAME}`,
`${NAME:-default}` and `${NAME:?message}`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?:(?P<operator>:-|:\?)(?P<operand>[^}]*))?\}")

Condition = Literal["service_started", "service_healthy", "service_completed_successfully"]


class MissingVariable(Exception):
    """A variable without a default is not set; the message is the file's own."""


class Dependency(BaseModel):
    """One entry of depends_on."""

    condition: Condition
    required: bool = True


class Build(BaseModel):
    """How an image is made."""

    context: str
    dockerfile: str
    args: dict[str, str] = Field(default_factory=dict)


class Healthcheck(BaseModel):
    """How the engine asks a container whether it is well."""

    test: list[str]
    interval: str
    timeout: str
    retries: int
    start_period: str


class ComposeService(BaseModel):
    """One service; keys that no test asks about are left out."""

    model_config = ConfigDict(extra="ignore")

    image: str
    build: Build | None = None
    user: str | None = None
    environment: dict[str, str | int] = Field(default_factory=dict)
    command: list[str] = Field(default_factory=list)
    ports: list[str] = Field(default_factory=list)
    networks: list[str] | dict[str, dict[str, list[str]]] = Field(default_factory=list)
    network_mode: str | None = None
    profiles: list[str] = Field(default_factory=list)
    depends_on: dict[str, Dependency] = Field(default_factory=dict)
    healthcheck: Healthcheck | None = None
    security_opt: list[str] = Field(default_factory=list)
    volumes: list[str] = Field(default_factory=list)
    restart: str = "no"


class ComposeFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="ignore")

    name: str
    services: dict[str, ComposeService]
    networks: dict[str, dict[str, str]]
    volumes: dict[str, dict[str, str]]


def interpolate(text: str, variables: Mapping[str, str]) -> str:
    """The text with its variables replaced; raises MissingVariable as the engine would refuse."""

    def replace(match: re.Match[str]) -> str:
        value = variables.get(match["name"], "")
        if value:
            return value
        if match["operator"] == ":?":
            raise MissingVariable(f"{match['name']}: {match['operand']}")
        return match["operand"] or ""

    return _VARIABLE.sub(replace, text)


def read(path: Path, variables: Mapping[str, str]) -> ComposeFile:
    """The file as the engine sees it when the variables are set."""
    return ComposeFile.model_validate(yaml.safe_load(interpolate(path.read_text(), variables)))


def read_raw(path: Path) -> ComposeFile:
    """The file with its variables left as they are written."""
    return ComposeFile.model_validate(yaml.safe_load(path.read_text()))


def start_order(services: Mapping[str, ComposeService]) -> list[str]:
    """Names so that each comes after what it depends on, among those given."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ValueError(f"depends_on goes in a circle: {' -> '.join((*path, name))}")
        if name in order:
            return
        for needed in services[name].depends_on:
            if needed in services:
                visit(needed, (*path, name))
        order.append(name)

    for name in services:
        visit(name, ())
    return order
