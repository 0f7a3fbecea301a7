"""What a shell is answered when Tab is pressed: click's shell_complete, on the commands with the values they know.

The scripts are click's own but for what these do not hold: names with spaces are quoted for bash, ``--option=value`` is
completed in every shell, and what goes wrong leaves the line as it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
    split_arg_string,
)

from envsolve.cli.known_values import type_of_known
from envsolve.cli.main import COMPLETE_VARIABLE, LazyGroup, cli

_SCRIPT_BASH = r"""%(complete_func)s() {
    local current="${COMP_WORDS[COMP_CWORD]}" program="$1" type value
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case "$type" in
            dir) _envsolve_paths dirnames -d; return 0 ;;
            file) _envsolve_paths default -f; return 0 ;;
            plain)
                case "$current" in
                    \"*|\'*) ;;
                    *) printf -v value '%%q' "$value" ;;
                esac
                COMPREPLY+=("$value") ;;
        esac
    done < <(COMP_WORDS="$(IFS=$'\n'; printf '%%s' "${COMP_WORDS[*]:0:COMP_CWORD+1}")" COMP_CWORD=$COMP_CWORD \
        %(complete_var)s=bash_complete "$program" 2>/dev/null)
    return 0
}

_envsolve_paths() {
    if type compopt >/dev/null 2>&1; then
        compopt -o "$1"
    else
        local IFS=$'\n'
        COMPREPLY=($(compgen "$2" -- "$current"))
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null || complete -F %(complete_func)s %(prog_name)s
"""

_SCRIPT_ZSH = r"""#compdef %(prog_name)s

%(complete_func)s() {
    local -a described plain response
    local type value description
    (( $+commands[${words[1]}] )) || [[ -x ${~words[1]} ]] || return 1
    response=("${(@f)$(COMP_WORDS="${(j: :)words[1,CURRENT]}" COMP_CWORD=$((CURRENT - 1)) \
        %(complete_var)s=zsh_complete ${~words[1]} 2>/dev/null)}")
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    for type value description in ${response}; do
        case $type in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain)
                if [[ $description == _ ]]; then
                    plain+=("$value")
                else
                    described+=("${value}:${description}")
                fi ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described
    (( $#plain )) && compadd -M 'm:{a-zA-Z}={A-Za-z}' -V unsorted -a plain
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_SCRIPT_FISH = r"""function %(complete_func)s
    set -l option (string match -r -- '^--[^=]*=' (commandline -ct); or echo '')
    set -l response (COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -ct | string collect) \
        %(complete_var)s=fish_complete %(prog_name)s 2>/dev/null)
    for line in $response
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case dir
                printf '%%s\n' $option(__fish_complete_directories $parts[2])
            case file
                printf '%%s\n' $option(__fish_complete_path $parts[2])
            case plain
                printf '%%s\n' "$option$parts[2]"
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class _Meaning(ShellComplete):
    """A line that begins with ``--option=`` is for ``solve``, as the whole of it will be."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What the word may become."""
        is_option_with_value = incomplete.startswith("-") and "=" in incomplete
        return super().get_completions(args or (["solve"] if is_option_with_value else []), incomplete)


class _Bash(_Meaning, BashComplete):
    """Bash takes a line apart at every ``=`` too, which are put together again."""

    source_template = _SCRIPT_BASH

    def source(self) -> str:
        """The script, which says itself what an older bash does without."""
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and that one as far as it goes."""
        number = int(os.environ["COMP_CWORD"])
        words = split_arg_string(os.environ["COMP_WORDS"])[: number + 1]
        words += [""] * (number + 1 - len(words))
        *before, last = _joined_at_equals_signs(words)
        return before[1:], last


class _Zsh(_Meaning, ZshComplete):
    source_template = _SCRIPT_ZSH


class _Fish(_Meaning, FishComplete):
    source_template = _SCRIPT_FISH

    def get_completion_args(self) -> tuple[list[str], str]:
        """As in click, which takes a word that is a lone quotation mark for a finished one."""
        words = split_arg_string(os.environ["COMP_WORDS"])[1:]
        if not os.environ["COMP_CWORD"]:
            return words, ""
        return words[:-1], "".join(words[-1:])


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script(shell: str) -> str:
    """The script that has ``shell`` complete envsolve."""
    return completion_for(shell).source()


def completion_for(shell: str) -> ShellComplete:
    """Click's completion for ``shell``, one of SHELLS."""
    return SHELLS[shell](_commands_for(shell), {}, "envsolve", COMPLETE_VARIABLE)


def complete(instruction: str) -> int:
    """Carry out what a script asks: ``bash_complete``, or ``bash_source`` as click has it; the exit code.

    Raises nothing but with ENVSOLVE_DEBUG: a message would stand in the middle of what is being typed.
    """
    for shell, kind in SHELLS.items():
        add_completion_class(kind, shell)
    commands = _commands_for(instruction.partition("_")[0])
    try:
        return shell_complete(commands, {}, "envsolve", COMPLETE_VARIABLE, instruction)
    except Exception:
        if os.environ.get("ENVSOLVE_DEBUG"):
            raise
        return 1


def _commands_for(shell: str) -> LazyGroup:
    """The commands; bash shows no help texts, and without them none is imported for its name alone."""
    return _Completed(with_help=shell != "bash")


class _Completed(LazyGroup):
    """The commands of envsolve, each with the values that its parameters are known to take."""

    def __init__(self, *, with_help: bool) -> None:
        super().__init__(cli.name, params=cli.params, context_settings=cli.context_settings, no_args_is_help=True)
        self._with_help = with_help

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        command = super().get_command(ctx, cmd_name)
        return None if command is None else _with_known_values(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands; or where an option begins, those of envsolve and those of ``solve``, which may be meant."""
        if not incomplete.startswith("-"):
            names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
            return [CompletionItem(name, help=self._help(ctx, name)) for name in names]
        solve = self.get_command(ctx, "solve")
        assert solve is not None
        with solve.make_context("solve", [], parent=ctx, resilient_parsing=True) as context:
            items = [*click.Command.shell_complete(self, ctx, incomplete), *solve.shell_complete(context, incomplete)]
        return list({item.value: item for item in reversed(items)}.values())[::-1]

    def _help(self, ctx: click.Context, name: str) -> str | None:
        command = self.get_command(ctx, name) if self._with_help else None
        return None if command is None else command.get_short_help_str()


def _with_known_values(command: click.Command) -> click.Command:
    """A copy of ``command``: what completes a line is not what carries it out."""
    completed = copy(command)
    completed.params = [_with_known_type(parameter, command) for parameter in command.params]
    if isinstance(completed, click.Group):
        completed.commands = {name: _with_known_values(it) for name, it in completed.commands.items()}
    return completed


def _with_known_type(parameter: click.Parameter, command: click.Command) -> click.Parameter:
    known: click.ParamType[Any] | None = type_of_known(parameter, str(command.name))
    if known is None:
        return parameter
    completed = copy(parameter)
    completed.type = known
    return completed


def _joined_at_equals_signs(words: Sequence[str]) -> list[str]:
    """``--framework``, ``=``, ``py`` as ``--framework=py``."""
    joined: list[str] = []
    open_ended = False
    for word in words:
        is_sign = word != "" and set(word) == {"="}
        if joined and (is_sign or open_ended):
            joined[-1] += word
        else:
            joined.append(word)
        open_ended = is_sign
    return joined
