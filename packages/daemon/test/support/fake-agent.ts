import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';

const source = fileURLToPath(new URL('../../src/fake-agent/', import.meta.url));

/**
 * Puts the fake agent on a search path under the names of command lines. Its sources become plain
 * JavaScript first, so that nothing has to be built.
 */
export async function installFakeAgent(
  directory: string,
  names: readonly string[] = ['claude'],
): Promise<string> {
  const home = join(directory, '.fake-agent');
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'package.json'), '{"type":"module"}\n');
  for (const name of readdirSync(source)) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue;
    const { code } = await transformWithOxc(readFileSync(join(source, name), 'utf8'), name);
    writeFileSync(join(home, name.replace(/\.ts$/, '.js')), code);
  }
  for (const name of names) {
    const file = join(directory, name);
    const program = join(home, 'main.js');
    writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
    chmodSync(file, 0o755);
  }
  return directory;
}
