"""Deployment settings of a service: environment variables with the service's prefix, read once, frozen, unknown names rejected.

Each service subclasses ServiceSettings in its settings.py; `load` is called by journeyman.lifecycle.run and nowhere else.
"""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from journeyman.errors import ErrorCode, JourneymanError


class ServiceSettings(BaseSettings):
    """Settings that every service has."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    listen: str = "127.0.0.1:0"
    """host:port of the gRPC server; port 0 takes a free one."""
    metrics_listen: str | None = None
    """host:port of the Prometheus endpoint; None serves none."""
    log_file: Path | None = None
    """Where JSON log lines go; None means standard error."""
    bus: str = "sqlite:bus.db"
    """memory: | sqlite:PATH | kafka://HOST:PORT."""
    objects: str = "file:objects"
    """file:PATH | s3://KEY:SECRET@HOST:PORT/BUCKET."""


S = TypeVar("S", bound=ServiceSettings)


def load(settings_class: type[S], environ: Mapping[str, str] | None = None) -> S:
    """Reads the environment. INVALID_INPUT names the variable, its value and what is right."""
    variables = os.environ if environ is None else environ
    prefix = str(settings_class.model_config.get("env_prefix", ""))
    names = {f"{prefix}{field.upper()}": field for field in settings_class.model_fields}
    _reject_unknown(variables, prefix, names)
    values = {field: variables[name] for name, field in names.items() if name in variables}
    try:
        return settings_class.model_validate(values)
    except ValidationError as error:
        raise JourneymanError(ErrorCode.INVALID_INPUT, _one_line(error, prefix)) from error


def _reject_unknown(variables: Mapping[str, str], prefix: str, names: Mapping[str, str]) -> None:
    for name in variables:
        if prefix and name.startswith(prefix) and name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"unknown setting {name}={variables[name]!r}{hint}")


def _one_line(error: ValidationError, prefix: str) -> str:
    first = error.errors()[0]
    field = prefix + "_".join(str(part) for part in first["loc"]).upper()
    return f"setting {field}={first.get('input')!r}: {first['msg']}"
