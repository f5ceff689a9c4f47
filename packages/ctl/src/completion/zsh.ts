import type { ArgumentShape, CommandShape, OptionShape } from '../base/shape.js';
import { liveCommand, liveKindOf, type LiveKind } from './live-kind.js';
import { everyCommand, flagsOf, namesOf, pathKind, quoted, takesCommandNames } from './tree.js';

/** One function per command, which passes the rest of the line to the function of a subcommand. */
export function zshScript(root: CommandShape): string {
  return `#compdef ctl millrace
# zsh completion for ctl. In ~/.zshrc, after compinit: source <(ctl completion zsh)
_ctl_live() {
  # _arguments puts options for compadd before the kind.
  local -a values
  values=(\${(f)"$("\${\${(z)LBUFFER}[1]}" ${liveCommand} "\${@[-1]}" "$LBUFFER" 2>/dev/null)"})
  compadd "\${@[1,-2]}" -a values
}
${everyCommand(root).map(commandFunction).join('\n')}
# Works both sourced and as a file named _ctl in $fpath.
if [[ $funcstack[1] == _ctl ]]; then
  _ctl "$@"
else
  compdef _ctl ctl millrace
fi
`;
}

function commandFunction(command: CommandShape): string {
  const options = command.options.map((option) => optionSpec(command, option));
  if (takesCommandNames(command)) {
    // Words after \`help\` name a command from the root: complete them as the root would.
    return `${functionName(command)}() {
  words=(ctl "\${words[@]:1}")
  _ctl
}
`;
  }
  if (command.commands.length === 0) {
    const specs = [
      ...options,
      ...command.arguments.map((argument) => argumentSpec(command, argument)),
    ];
    return `${functionName(command)}() {
  _arguments -s -S ${specs.join(' \\\n    ')}
}
`;
  }
  const names = command.commands.flatMap((next) =>
    namesOf(next).map((name) => quoted(`${name}:${next.summary || next.description}`)),
  );
  const branches = command.commands.map(
    (next) => `        ${namesOf(next).join('|')}) ${functionName(next)} ;;`,
  );
  return `${functionName(command)}() {
  local curcontext="$curcontext" state line
  local -A opt_args
  local -a commands
  _arguments -C -s -S ${[...options, "'1: :->command'", "'*:: :->rest'"].join(' \\\n    ')}
  case $state in
    command)
      commands=(${names.join(' ')})
      _describe -t commands command commands
      ;;
    rest)
      case $line[1] in
${branches.join('\n')}
      esac
      ;;
  esac
}
`;
}

function functionName(command: CommandShape): string {
  return `_${command.path.replaceAll(/[^A-Za-z0-9]+/g, '_')}`;
}

function optionSpec(command: CommandShape, option: OptionShape): string {
  const { value, choices } = option;
  const flags = flagsOf(option);
  const spelt = flags.map((flag) => {
    if (value === null) return flag;
    // `--data=DIR` or `--data DIR`; `-dDIR` or `-d DIR`.
    return flag.startsWith('--') ? `${flag}=` : `${flag}+`;
  });
  const live = liveKindOf(command.path, value ?? '', option.long);
  const takes = value === null ? '' : `:${escaped(value)}:${valueAction(value, choices, live)}`;
  const rest = `[${escaped(option.description)}]${takes}`;
  if (flags.length === 1) return quoted(`${spelt.join('')}${rest}`);
  return `${quoted(`(${flags.join(' ')})`)}{${spelt.join(',')}}${quoted(rest)}`;
}

function argumentSpec({ path }: CommandShape, argument: ArgumentShape): string {
  const { name, choices, variadic } = argument;
  const action = valueAction(name, choices, liveKindOf(path, name));
  return quoted(`${variadic ? '*' : ''}:${escaped(name)}:${action}`);
}

function valueAction(name: string, choices: readonly string[], live: LiveKind | undefined): string {
  if (choices.length > 0) return `(${choices.join(' ')})`;
  const kind = pathKind(name);
  if (kind === null) return live === undefined ? ' ' : `_ctl_live ${live}`;
  return kind === 'dir' ? '_files -/' : '_files';
}

function escaped(text: string): string {
  return text.replaceAll(/[\\:[\]]/g, String.raw`\$&`);
}
