import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/**
 * The data directory: `--data`, else MILLRACE_DATA (formerly MILLRACE_DATA_DIR), else `millrace` under
 * the user's data directory.
 */
export function dataDirectory(
  flag: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const chosen = flag ?? (env['MILLRACE_DATA'] || env['MILLRACE_DATA_DIR']);
  if (chosen) return resolve(chosen);
  const base = env['XDG_DATA_HOME'];
  // The XDG specification says to ignore a relative path.
  if (base && isAbsolute(base)) return join(base, 'millrace');
  return join(env['HOME'] || homedir(), '.local', 'share', 'millrace');
}
