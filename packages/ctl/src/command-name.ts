import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** The command as the user types it: in a clone and with npx it is not on the PATH. */
export function commandName(
  script = process.argv[1] ?? '',
  env: Environment = process.env,
  directory = '.',
): string {
  if (existsSync(join(directory, 'bin', 'ctl'))) return 'bin/ctl';
  const name = basename(script).startsWith('millrace') ? 'millrace' : 'ctl';
  return env['npm_command'] === 'exec' ? `npx ${name}` : name;
}

/**
 * Advice with the command as the user types it. Only npx needs it: an installation has `ctl` on
 * the PATH, and the documentation of a clone explains `ctl`.
 */
export function asTyped(
  advice: string,
  script = process.argv[1] ?? '',
  env: Environment = process.env,
): string {
  const isNpx =
    env['npm_command'] === 'exec' && /node_modules.\.bin.(?:millrace|ctl)$/.test(script);
  if (!isNpx) return advice;
  return advice.replace(/(^|[`'(]|: )ctl (?=[a-z-])/gm, `$1npx ${basename(script)} `);
}
