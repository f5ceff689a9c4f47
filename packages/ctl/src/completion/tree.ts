import type { CommandShape, OptionShape } from '../base/shape.js';

/** A command and all its subcommands, parents first. */
export function everyCommand(root: CommandShape): CommandShape[] {
  return [root, ...root.commands.flatMap(everyCommand)];
}

export function namesOf(command: CommandShape): string[] {
  return [command.name, ...command.aliases];
}

export function flagsOf(option: OptionShape): string[] {
  return [option.long, option.short ?? ''].filter((flag) => flag !== '');
}

/** `ctl help queue serve`: words after `help` are completed from the root. */
export function takesCommandNames(command: CommandShape): boolean {
  return command.arguments[0]?.name === 'command';
}

/** The kind of a value, from its name in the help: `<dir>`, `<file>`. */
export function pathKind(valueName: string | null): 'dir' | 'file' | null {
  if (valueName === 'dir' || valueName === 'file') return valueName;
  return null;
}

/** Quotes a text as one word of a shell script. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
