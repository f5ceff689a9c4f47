import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/**
 * Where Millrace keeps its data: `--data`, else MILLRACE_DATA_DIR, else `millrace` under the
 * user's data directory.
 */
export function dataDirectory(
  flag: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const chosen = flag ?? env['MILLRACE_DATA_DIR'];
  if (chosen) return resolve(chosen);
  const base = env['XDG_DATA_HOME'];
  // The XDG rules say that a relative path there is to be ignored.
  if (base && isAbsolute(base)) return join(base, 'millrace');
  return join(env['HOME'] || homedir(), '.local', 'share', 'millrace');
}
