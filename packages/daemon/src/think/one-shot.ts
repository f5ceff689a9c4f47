/** Non-interactive invocation of an agent CLI. */
export interface OneShot {
  /** `{prompt}` is replaced by the prompt; without it, the prompt goes to stdin. */
  args: readonly string[];
}

export const promptPlace = '{prompt}';

/**
 * By id. The prompt goes to stdin where the program supports it: arguments are visible to every
 * local user and limited in length. No entry lets an agent use tools without approval.
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

/** The invocation of a backend; a configured CLI without arguments reads the prompt from stdin. */
export function oneShotOf(
  id: string,
  extra: readonly { id: string; args?: readonly string[] | undefined }[],
): OneShot {
  const own = extra.find((each) => each.id === id)?.args;
  return { args: own ?? (Object.hasOwn(oneShots, id) ? oneShots[id]! : []) };
}

// Linux limits one argument to 128 KiB including its NUL terminator.
const maxArgumentBytes = 131_071;

export type Invocation = { args: string[]; input: string } | { impossible: string };

/** Arguments and stdin of one run. */
export function invocationOf({ args }: OneShot, prompt: string): Invocation {
  if (!args.some((arg) => arg.includes(promptPlace))) return { args: [...args], input: prompt };
  if (prompt.includes('\0')) return { impossible: 'an argument cannot contain NUL' };
  const filled = args.map((arg) => arg.replaceAll(promptPlace, () => prompt));
  if (filled.some((arg) => Buffer.byteLength(arg) > maxArgumentBytes)) {
    return {
      impossible: 'the prompt is too long for an argument, which is how this program takes it',
    };
  }
  return { args: filled, input: '' };
}
