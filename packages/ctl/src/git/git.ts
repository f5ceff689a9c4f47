import { execFileSync } from 'node:child_process';
import type { Tools } from '../base/tools.js';
import { runShortened } from '../check/shortened.js';
import { gitRules } from './rules.js';

/** Runs a git subcommand with the arguments of the command line and shortens its output. */
export function gitRunner(subcommand: string) {
  return (args: readonly string[], _flags: object, tools: Tools): Promise<void> =>
    runShortened(
      {
        feature: 'git',
        command: ['git', subcommand, ...withDashes(args, tools.args)],
        rules: gitRules,
        env: environmentFor(tools),
        // Git may ask for a password on the same terminal.
        showsProgress: false,
      },
      tools,
    );
}

/** The parser removes `--`, which git needs before paths. */
export function withDashes(args: readonly string[], raw: readonly string[]): string[] {
  const at = raw.indexOf('--');
  if (at === -1) return [...args];
  return args.toSpliced(args.length - (raw.length - at - 1), 0, '--');
}

/** Git's output goes to the log, but an editor that it opens needs the terminal. */
function environmentFor({ terminal }: Tools): NodeJS.ProcessEnv | undefined {
  if (!terminal.in.isScreen) return undefined;
  const editors = ['GIT_EDITOR', 'GIT_SEQUENCE_EDITOR'].flatMap((name) => {
    const editor = editorOf(name);
    if (editor === undefined) return [];
    // Git appends "$@" to the command that it passes to the shell.
    return [[name, `on_screen() { ${editor} "$@" </dev/tty >/dev/tty 2>&1; }; on_screen`]];
  });
  return { ...process.env, ...(Object.fromEntries(editors) as Record<string, string>) };
}

function editorOf(variable: string): string | undefined {
  try {
    return (
      execFileSync('git', ['var', variable], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim() || undefined
    );
  } catch {
    // Without an editor, or without git, git itself reports it.
    return undefined;
  }
}
