import type { ArgumentShape, CommandShape, OptionShape } from '../shape.js';
import { everyCommand, flagsOf, namesOf, pathKind, quoted, takesCommandNames } from './tree.js';

/** One function per command, which passes the rest of the line to the function of a subcommand. */
export function zshScript(root: CommandShape): string {
  return `#compdef ctl
# zsh completion for ctl. In ~/.zshrc, after compinit: source <(ctl completion zsh)
${everyCommand(root).map(commandFunction).join('\n')}
# Works both sourced and as a file named _ctl in $fpath.
if [[ $funcstack[1] == _ctl ]]; then
  _ctl "$@"
else
  compdef _ctl ctl
fi
`;
}

function commandFunction(command: CommandShape): string {
  const options = command.options.map(optionSpec);
  if (takesCommandNames(command)) {
    // Words after \`help\` name a command from the root: complete them as the root would.
    return `${functionName(command)}() {
  words=(ctl "\${words[@]:1}")
  _ctl
}
`;
  }
  if (command.commands.length === 0) {
    const specs = [...options, ...command.arguments.map(argumentSpec)];
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

function optionSpec(option: OptionShape): string {
  const { value, choices } = option;
  const flags = flagsOf(option);
  const spelt = flags.map((flag) => {
    if (value === null) return flag;
    // `--data=DIR` or `--data DIR`; `-dDIR` or `-d DIR`.
    return flag.startsWith('--') ? `${flag}=` : `${flag}+`;
  });
  const takes = value === null ? '' : `:${escaped(value)}:${valueAction(value, choices)}`;
  const rest = `[${escaped(option.description)}]${takes}`;
  if (flags.length === 1) return quoted(`${spelt.join('')}${rest}`);
  return `${quoted(`(${flags.join(' ')})`)}{${spelt.join(',')}}${quoted(rest)}`;
}

function argumentSpec(argument: ArgumentShape): string {
  const position = argument.variadic ? '*' : '';
  return quoted(
    `${position}:${escaped(argument.name)}:${valueAction(argument.name, argument.choices)}`,
  );
}

function valueAction(name: string, choices: readonly string[]): string {
  if (choices.length > 0) return `(${choices.join(' ')})`;
  const kind = pathKind(name);
  if (kind === null) return ' ';
  return kind === 'dir' ? '_files -/' : '_files';
}

function escaped(text: string): string {
  return text.replaceAll(/[\\:[\]]/g, String.raw`\$&`);
}
