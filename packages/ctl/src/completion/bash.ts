import type { ArgumentShape, CommandShape, OptionShape } from '../base/shape.js';
import { liveCommand, liveKindOf } from './live-kind.js';
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
  local commands= flags= values= kind= live=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # bash splits --data=DIR into three words
    if [[ $word == '=' ]]; then continue; fi
    if [[ -n $option ]]; then option=; continue; fi
    case "$path $word" in
${commands.flatMap(steps).join('\n')}
${shared(commands.flatMap(optionSteps)).join('\n')}
      *' -'*) ;;
      *) count=$((count + 1)) ;;
    esac
  done
  if [[ $cur == '=' ]]; then cur=; fi

  if [[ -n $option ]]; then
    case "$path $option" in
${shared(commands.flatMap(optionValues)).join('\n')}
    esac
  else
    case $path in
${commands.map(offers).join('\n')}
    esac
    if [[ -n $helping ]]; then flags= values= kind= live=; fi
  fi

  local IFS=$' \\t\\n'
  if [[ -n $live && ( $cur != -* || -n $option ) ]]; then
    values="$values $("\${COMP_WORDS[0]}" ${liveCommand} "$live" "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)"
  fi
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
complete -F _ctl ctl millrace
`;
}

/** How a typed word leads to a subcommand. */
function steps(command: CommandShape): string[] {
  return command.commands.map((next) => {
    const words = namesOf(next).map((name) => quoted(`${command.path} ${name}`));
    const effect = takesCommandNames(next)
      ? `path=${quoted(command.path)} helping=yes`
      : `path=${quoted(next.path)} count=0`;
    return `      ${words.join('|')}) ${effect} ;;`;
  });
}

/** What a flag does after a command; an empty effect is that of a flag without a value. */
interface FlagCase {
  path: string;
  flag: string;
  effect: string;
}

/** How a typed flag starts the value of an option. */
function optionSteps({ path, options }: CommandShape): FlagCase[] {
  return options.flatMap((option) => {
    const effect = takesValue(option) ? `option=${quoted(option.long)}` : '';
    return flagsOf(option).map((flag) => ({ path, flag, effect }));
  });
}

function takesValue(option: OptionShape): boolean {
  return option.value !== null;
}

function optionValues({ path, options }: CommandShape): FlagCase[] {
  return options.filter(takesValue).map(({ value, choices, long }) => {
    const effect = offered(value, choices, liveKindOf(path, value ?? '', long));
    return { path, flag: long, effect };
  });
}

/** One line for a flag that does the same in every command that has it: the script stays short. */
function shared(cases: readonly FlagCase[]): string[] {
  const effects = new Map<string, Set<string>>();
  for (const { flag, effect } of cases) {
    effects.set(flag, (effects.get(flag) ?? new Set()).add(effect));
  }
  const lines = cases.map(({ path, flag, effect }) => {
    const isSame = effects.get(flag)!.size === 1;
    const pattern = isSame ? `*${quoted(` ${flag}`)}` : quoted(`${path} ${flag}`);
    return effect === '' ? '' : `      ${pattern}) ${effect} ;;`;
  });
  return [...new Set(lines)].filter((line) => line !== '');
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
    ...command.arguments
      .map((argument, at) => argumentOffer(command, argument, at))
      .filter((line) => line !== ''),
    '        ;;',
  ].join('\n');
}

function argumentOffer(
  { path }: CommandShape,
  { name, choices, variadic }: ArgumentShape,
  position: number,
): string {
  const live = liveKindOf(path, name);
  if (pathKind(name) === null && choices.length === 0 && live === undefined) return '';
  const test = variadic ? `count >= ${position}` : `count == ${position}`;
  return `        if ((${test})); then ${offered(name, choices, live)}; fi`;
}

/** The variable that says where the values come from. */
function offered(
  name: string | null,
  choices: readonly string[],
  live: string | undefined,
): string {
  const kind = pathKind(name);
  if (kind !== null) return `kind=${quoted(kind)}`;
  return live === undefined ? `values=${quoted(choices.join(' '))}` : `live=${quoted(live)}`;
}
