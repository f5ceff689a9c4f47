import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { isUlid } from '@millrace/kit/ulid';
import type { World } from '@millrace/kit/world';

/** The node id, created once per data directory and stored in it. */
export function nodeIdOf(directory: string, { clock, random }: World): string {
  const file = join(directory, 'NODE');
  if (existsSync(file)) {
    const id = readFileSync(file, 'utf8').trim();
    if (isUlid(id)) return id;
    throw new UsageError(`${file} does not contain a valid node id; delete it to create a new one`);
  }
  const id = random.ulid(clock.now());
  const fresh = `${file}.new`;
  writeFileSync(fresh, `${id}\n`, { mode: 0o600 });
  renameSync(fresh, file);
  return id;
}
