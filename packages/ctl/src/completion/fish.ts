import type { CommandShape, OptionShape } from '../base/shape.js';
import { liveCommand, liveKindOf, type LiveKind } from './live-kind.js';
import { everyCommand, flagsOf, namesOf, pathKind, takesCommandNames } from './tree.js';

/**
 * A helper function decides which command the typed words name; every completion is a line with
 * that condition.
 */
export function fishScript(root: CommandShape): string {
  const commands = everyCommand(root);
  return `# fish completion for ctl. In ~/.config/fish/config.fish: ctl completion fish | source
function __ctl_at --description 'Whether the words so far name this command, with this operand count'
    set -l path ctl
    set -l helping ''
    set -l count 0
    set -l value ''
    for word in (commandline -opc)[2..-1]
        if test -n "$value"
            set value ''
            continue
        end
        switch "$path $word"
${commands.flatMap(steps).join('\n')}
            case '* -*'
            case '*'
                set count (math $count + 1)
        end
    end
    test "$path" = "$argv[1]"; or return 1
    switch "$argv[2]"
        case ''
            test -z "$helping"
        case command
            test $count -eq 0
        case '*+'
            test -z "$helping" -a $count -ge (string trim --right --chars + -- $argv[2])
        case '*'
            test -z "$helping" -a $count -eq $argv[2]
    end
end

function __ctl_live --description 'Values that a server knows'
    set -l words (commandline -opc)
    $words[1] ${liveCommand} $argv[1] (commandline -cp) 2>/dev/null
end

complete -c ctl -f
complete -c millrace -w ctl
${commands.flatMap(lines).join('\n')}
`;
}

function steps(command: CommandShape): string[] {
  const into = command.commands.flatMap((next) => [
    `            case ${namesOf(next)
      .map((name) => quoted(`${command.path} ${name}`))
      .join(' ')}`,
    takesCommandNames(next)
      ? '                set helping yes'
      : `                set path ${quoted(next.path)}; set count 0`,
  ]);
  const valued = command.options
    .filter((option) => option.value !== null)
    .flatMap((option) => [
      `            case ${flagsOf(option)
        .map((flag) => quoted(`${command.path} ${flag}`))
        .join(' ')}`,
      '                set value yes',
    ]);
  return [...into, ...valued];
}

function lines(command: CommandShape): string[] {
  const at = (what: string): string => `-n ${quoted(`__ctl_at ${quoted(command.path)} ${what}`)}`;
  return [
    ...command.commands.flatMap((next) =>
      namesOf(next).map(
        (name) =>
          `complete -c ctl ${at('command')} -a ${name} -d ${quoted(next.summary || next.description)}`,
      ),
    ),
    ...command.options.map((option) =>
      `complete -c ctl ${at('')} ${optionPart(command, option)}`.trim(),
    ),
    ...command.arguments.flatMap((argument, position) => {
      const { name, choices } = argument;
      const words = values(name, choices, liveKindOf(command.path, name));
      const where = argument.variadic ? `${position}+` : String(position);
      return words === '' ? [] : [`complete -c ctl ${at(where)} ${words}`];
    }),
  ];
}

function optionPart({ path }: CommandShape, option: OptionShape): string {
  const live = liveKindOf(path, option.value ?? '', option.long);
  const short = option.short === null ? '' : ` -s ${option.short.slice(1)}`;
  // -r: needs a value; -x: needs one that is not any file.
  const needs = pathKind(option.value) === 'file' ? '-r' : '-x';
  const value =
    option.value === null ? '' : ` ${needs} ${values(option.value, option.choices, live)}`;
  return `-l ${option.long.slice(2)}${short}${value} -d ${quoted(option.description)}`;
}

function values(name: string, choices: readonly string[], live: LiveKind | undefined): string {
  if (choices.length > 0) return `-a ${quoted(choices.join(' '))}`;
  const kind = pathKind(name);
  if (kind === null) return live === undefined ? '' : `-a '(__ctl_live ${live})'`;
  return kind === 'dir' ? `-a '(__fish_complete_directories)'` : '-F';
}

/** fish escapes inside single quotes, where other shells cannot. */
function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
}
