import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';

const source = fileURLToPath(new URL('../../src/fake-agent/', import.meta.url));
const acpSource = fileURLToPath(new URL('./fake-acp.ts', import.meta.url));

/** Runs the fake agent of a search path in a shell, over ACP where its first argument says so. */
export function fakeAgentCommand(directory: string): string {
  const program = (name: string) => `'${process.execPath}' '${directory}/.fake-agent/${name}.js'`;
  return `if [ "$1" = --acp ]; then exec ${program('fake-acp')}; fi\nexec ${program('main')} "$@"`;
}

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
  const files = readdirSync(source).filter((name) => /(?<!\.test)\.ts$/.test(name));
  for (const file of [...files.map((name) => join(source, name)), acpSource]) {
    const { code } = await transformWithOxc(readFileSync(file, 'utf8'), file);
    const name = basename(file).replace(/\.ts$/, '.js');
    writeFileSync(join(home, name), code.replaceAll('../../src/fake-agent/', './'));
  }
  for (const name of names) {
    const file = join(directory, name);
    writeFileSync(file, `#!/bin/sh\n${fakeAgentCommand(directory)}\n`);
    chmodSync(file, 0o755);
  }
  return directory;
}
