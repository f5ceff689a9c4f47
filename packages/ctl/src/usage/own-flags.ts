import type { Command } from 'commander';
import type { CtlCommand } from '../base/command.js';

/**
 * For a group that is also a command: its flags come before the name of a subcommand, which may
 * have flags of the same names, and help does not list them as global.
 */
export function keepFlagsApart(group: CtlCommand): CtlCommand {
  return group.enablePositionalOptions().configureHelp({
    ...group.configureHelp(),
    visibleGlobalOptions: (command: Command) =>
      rootOf(command).options.filter(({ long, hidden }) => long !== '--version' && !hidden),
  });
}

function rootOf(command: Command): Command {
  return command.parent ? rootOf(command.parent) : command;
}
