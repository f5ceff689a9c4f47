import { execFileSync } from 'node:child_process';
import type { Tools } from '../base/tools.js';
import { runShortened } from '../check/shortened.js';
import { checkRules, noise, type Rules } from '../check/rules.js';

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

const useless = [
  /^(?:remote: )?(?:Enumerating|Counting|Compressing|Writing|Receiving|Unpacking|Resolving|Updating files|Delta compression|Total \d)/,
  /^ (?:create|delete) mode \d+ /,
  /^ (?:rename|copy) .+ \(\d+%\)$/,
  /^ mode change \d+ => \d+ /,
  // One file of a diffstat; the total line is kept.
  /^ .+ \| +(?:\d+ [+-]*|\d+|Bin\b.*)$/,
  /^remote:\s*$/,
];

const telling = [
  /^\[.+ [0-9a-f]{7,}\] /,
  /^ \d+ files? changed\b/,
  /^To \S/,
  / -> /,
  /\bup to date\b/i,
  /^(?:Updating|Fast-forward|Merge made|Successfully rebased)\b/,
];

/** Rules for the output of commit, push and pull, and of hooks, which run builds and tests. */
export const gitRules: Rules = {
  maxOthers: 20,
  worthOf(line) {
    const worth = checkRules.worthOf(line);
    // A file in a diffstat may be called errors.ts.
    if (useless.some((pattern) => pattern.test(line))) return noise;
    if (telling.some((pattern) => pattern.test(line))) return { ...worth, isSummary: true };
    return worth;
  },
};
