import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './markdown.js';

/**
 * Commands such as `npm start` install first when the lockfile has changed, as scripts/prepare.mjs
 * does. Below a test that would take away the modules which it is running on.
 */
export function demandInstalled(): void {
  const stamp = join(root, 'node_modules', '.millrace-installed');
  const lock = readFileSync(join(root, 'package-lock.json'));
  const wanted = createHash('sha256').update(lock).digest('hex');
  const has = existsSync(stamp) ? readFileSync(stamp, 'utf8') : '';
  if (!has.startsWith(wanted)) {
    throw new Error('The lockfile has changed since the last install: run `npm run build` first.');
  }
}
