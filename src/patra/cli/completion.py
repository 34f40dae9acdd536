"""`patra completion`: the completion script of a shell."""

import click

EPILOG = """\b
Examples:
  eval "$(patra completion bash)"                                       in ~/.bashrc
  eval "$(patra completion zsh)"                                        in ~/.zshrc
  patra completion fish > ~/.config/fish/completions/patra.fish"""


@click.command("completion", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell."""
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    if completion is None:  # pragma: no cover  click has all three
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(completion(ctx.find_root().command, {}, "patra", "_PATRA_COMPLETE").source())
