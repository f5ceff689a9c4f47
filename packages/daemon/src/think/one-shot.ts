/** How a command line is asked one question without a person at the keyboard. */
export interface OneShot {
  /** In which `{prompt}` stands for the prompt; where none does, the prompt goes to stdin. */
  args: readonly string[];
}

export const promptPlace = '{prompt}';

/**
 * By id. The prompt goes to stdin wherever the program reads it there: an argument is seen by
 * every user of the machine and has a limit. No entry lets an agent act without asking: a thought
 * needs no hands.
 */
const oneShots: Readonly<Record<string, readonly string[]>> = {
  claude: ['--print', '--output-format', 'text'],
  codex: ['exec', '--skip-git-repo-check', '--sandbox', 'read-only', '--color', 'never', '-'],
  gemini: [],
  agy: ['--print', promptPlace],
  'cursor-agent': ['--print', '--output-format', 'text', promptPlace],
  opencode: ['run'],
  qwen: [],
  copilot: ['--prompt', promptPlace],
  amp: ['--execute'],
  droid: ['exec', promptPlace],
  aider: [
    '--no-git',
    '--no-pretty',
    '--no-stream',
    '--no-check-update',
    '--dry-run',
    '--message',
    promptPlace,
  ],
  goose: ['run', '--no-session', '--quiet', '--instructions', '-'],
  crush: ['run', '--quiet'],
  kimi: ['--quiet', '--prompt', promptPlace],
  auggie: ['--print', '--quiet', promptPlace],
  'kiro-cli': ['chat', '--no-interactive', promptPlace],
};

/** The command line of a question; one of the config without arguments reads it from stdin. */
export function oneShotOf(
  id: string,
  extra: readonly { id: string; args?: readonly string[] | undefined }[],
): OneShot {
  const own = extra.find((each) => each.id === id)?.args;
  return { args: own ?? (Object.hasOwn(oneShots, id) ? oneShots[id]! : []) };
}

// Linux takes no argument longer than 128 KiB, its end mark included.
const maxArgumentBytes = 131_071;

export type Invocation = { args: string[]; input: string } | { impossible: string };

/** The arguments and the input of one run. */
export function invocationOf({ args }: OneShot, prompt: string): Invocation {
  if (!args.some((arg) => arg.includes(promptPlace))) return { args: [...args], input: prompt };
  if (prompt.includes('\0')) return { impossible: 'the prompt holds a NUL, which no argument can' };
  const filled = args.map((arg) => arg.replaceAll(promptPlace, () => prompt));
  if (filled.some((arg) => Buffer.byteLength(arg) > maxArgumentBytes)) {
    return {
      impossible: 'the prompt is too long for an argument, which is how this program takes it',
    };
  }
  return { args: filled, input: '' };
}
