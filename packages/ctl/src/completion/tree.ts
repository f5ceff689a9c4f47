import type { CommandShape, OptionShape } from '../shape.js';

/** A command and all below it, parents first. */
export function everyCommand(root: CommandShape): CommandShape[] {
  return [root, ...root.commands.flatMap(everyCommand)];
}

/** Every name a command answers to under its parent. */
export function namesOf(command: CommandShape): string[] {
  return [command.name, ...command.aliases];
}

export function flagsOf(option: OptionShape): string[] {
  return [option.long, option.short ?? ''].filter((flag) => flag !== '');
}

/** `ctl help queue serve`: the words after `help` are completed as if it were not there. */
export function takesCommandNames(command: CommandShape): boolean {
  return command.arguments[0]?.name === 'command';
}

/** What kind of thing a value is, told by its name in the help: `<dir>`, `<file>`. */
export function pathKind(valueName: string | null): 'dir' | 'file' | null {
  if (valueName === 'dir' || valueName === 'file') return valueName;
  return null;
}

/** One word of a shell script, whatever characters it holds. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
