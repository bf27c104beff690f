"""`mhaquiz schema`: the JSON Schema of problem files."""

from __future__ import annotations

import click

from grader.cli.common import print_json


@click.command("schema")
def schema() -> None:
    """The JSON Schema of problem files, for editors that complete and check YAML.

    \b
    Example:
      mhaquiz schema > problem.schema.json
    and, as the first line of a problem file,
      # yaml-language-server: $schema=problem.schema.json
    """
    from grader.spec.schema import problem_schema

    print_json(problem_schema())
