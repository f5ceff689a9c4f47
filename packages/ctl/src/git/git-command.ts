import type { CtlCommand } from '../command.js';
import type { Tools } from '../registry.js';

interface GitCommand {
  readonly name: string;
  /** The command of git. */
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
    // They are git's, who knows them all.
    .allowUnknownOption()
    .exitCode(0, 'git ended well')
    .exitCode(1, 'what git says, likewise every other code, or failure')
    .exitCode(2, 'what git says, or usage error');
  for (const [line, note] of given.examples) command.example(line, note);
  command.action(async (args: string[]) => {
    const { runGit } = await import('./git.js');
    await runGit([given.runs, ...args], tools);
  });
}
