import type { Command } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';

interface GitCommand {
  readonly name: string;
  /** The git subcommand. */
  readonly runs: string;
  readonly summary: string;
  readonly description: string;
  readonly examples: readonly (readonly [line: string, note: string])[];
}

export function addGitCommand(git: CtlCommand, tools: Tools, given: GitCommand): void {
  const command = git
    .command(given.name)
    .summary(given.summary)
    .description(given.description)
    .argument('[arguments...]', 'arguments and options of git')
    // Options are parsed by git, not by us.
    .allowUnknownOption()
    .exitCode(0, 'git succeeded')
    .exitCode(1, 'exit code of git, or failure')
    .exitCode(2, 'exit code of git, or usage error');
  for (const [line, note] of given.examples) command.example(line, note);
  command.action(async (args: string[]) => {
    const { runGit } = await import('./git.js');
    await runGit([given.runs, ...withDashes(args, rawArguments(command))], tools);
  });
}

/** The parser removes `--`, which git needs before paths. */
export function withDashes(args: readonly string[], raw: readonly string[]): string[] {
  const at = raw.indexOf('--');
  if (at === -1) return [...args];
  return args.toSpliced(args.length - (raw.length - at - 1), 0, '--');
}

function rawArguments(command: CtlCommand): readonly string[] {
  let root: Command = command;
  while (root.parent) root = root.parent;
  // Public at run time, but missing from the types.
  return (root as unknown as { rawArgs: readonly string[] }).rawArgs;
}
