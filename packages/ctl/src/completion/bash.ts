import type { ArgumentShape, CommandShape, OptionShape } from '../shape.js';
import { everyCommand, flagsOf, namesOf, pathKind, quoted, takesCommandNames } from './tree.js';

/**
 * One function that follows the typed words to their command, then offers what that command takes.
 * Uses only bash 3.2 features, because macOS ships that version.
 */
export function bashScript(root: CommandShape): string {
  const commands = everyCommand(root);
  return `# bash completion for ctl. In ~/.bashrc: source <(ctl completion bash)
_ctl() {
  local cur=\${COMP_WORDS[COMP_CWORD]} path=ctl option= count=0 helping= word i
  local commands= flags= values= kind=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # bash splits --data=DIR into three words
    if [[ $word == '=' ]]; then continue; fi
    if [[ -n $option ]]; then option=; continue; fi
    case "$path $word" in
${commands.flatMap(steps).join('\n')}
      *' -'*) ;;
      *) count=$((count + 1)) ;;
    esac
  done
  if [[ $cur == '=' ]]; then cur=; fi

  if [[ -n $option ]]; then
    case "$path $option" in
${commands.flatMap(optionValues).join('\n')}
    esac
  else
    case $path in
${commands.map(offers).join('\n')}
    esac
    if [[ -n $helping ]]; then flags= values= kind=; fi
  fi

  local IFS=$' \\t\\n'
  if [[ $cur == -* && -z $option ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif [[ -n $commands$values ]]; then
    COMPREPLY=($(compgen -W "$commands $values" -- "$cur"))
  elif [[ -n $kind ]]; then
    compopt -o filenames 2>/dev/null
    IFS=$'\\n'
    if [[ $kind == dir ]]; then
      COMPREPLY=($(compgen -d -- "$cur"))
    else
      COMPREPLY=($(compgen -f -- "$cur"))
    fi
  elif [[ -z $option ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  fi
}
complete -F _ctl ctl
`;
}

/** How a typed word leads to a subcommand or starts the value of an option. */
function steps(command: CommandShape): string[] {
  const into = command.commands.map((next) => {
    const words = namesOf(next).map((name) => quoted(`${command.path} ${name}`));
    const effect = takesCommandNames(next)
      ? `path=${quoted(command.path)} helping=yes`
      : `path=${quoted(next.path)} count=0`;
    return `      ${words.join('|')}) ${effect} ;;`;
  });
  const options = command.options.filter(takesValue).map((option) => {
    const words = flagsOf(option).map((flag) => quoted(`${command.path} ${flag}`));
    return `      ${words.join('|')}) option=${quoted(option.long)} ;;`;
  });
  return [...into, ...options];
}

function takesValue(option: OptionShape): boolean {
  return option.value !== null;
}

function optionValues(command: CommandShape): string[] {
  return command.options.filter(takesValue).map((option) => {
    const kind = pathKind(option.value);
    const effect =
      kind === null ? `values=${quoted(option.choices.join(' '))}` : `kind=${quoted(kind)}`;
    return `      ${quoted(`${command.path} ${option.long}`)}) ${effect} ;;`;
  });
}

function offers(command: CommandShape): string {
  const names = command.commands.flatMap(namesOf);
  const flags = command.options.flatMap(flagsOf);
  return [
    `      ${quoted(command.path)})`,
    `        flags=${quoted(flags.join(' '))}`,
    ...(names.length > 0
      ? [`        if ((count == 0)); then commands=${quoted(names.join(' '))}; fi`]
      : []),
    ...command.arguments.map(argumentOffer).filter((line) => line !== ''),
    '        ;;',
  ].join('\n');
}

function argumentOffer(argument: ArgumentShape, position: number): string {
  const kind = pathKind(argument.name);
  if (kind === null && argument.choices.length === 0) return '';
  const test = argument.variadic ? `count >= ${position}` : `count == ${position}`;
  const effect =
    kind === null ? `values=${quoted(argument.choices.join(' '))}` : `kind=${quoted(kind)}`;
  return `        if ((${test})); then ${effect}; fi`;
}
