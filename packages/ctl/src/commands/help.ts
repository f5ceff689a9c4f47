import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';

export function build(help: CtlCommand, { groups, terminal }: Tools): void {
  help
    .description(
      'Show what a command does, its options and examples. Without a name, show the overview.',
    )
    .argument('[command...]', 'The command, such as `doctor`')
    .example('ctl help', 'every command in one line each')
    .example('ctl help doctor', 'the same as `ctl doctor --help`')
    .example('ctl help --json', 'all commands and options as data')
    .action(async (names: string[]) => {
      if (terminal.json && names.length === 0) await groups.fillAll();
      else if (names[0] !== undefined) await groups.fill(names[0]);
      find(groups.root, names).outputHelp();
    });
}

function find(root: CtlCommand, names: readonly string[]): CtlCommand {
  let found = root;
  for (const name of names) found = found.subcommand(name) ?? found.complainAbout(name);
  return found;
}
