import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { scriptFrom } from '../../../test/support/script.js';

const engine = fileURLToPath(new URL('../', import.meta.url));

/**
 * Runs an exported function of a module of the engine in a process of its own, which is meant to
 * end by SIGKILL: nothing is flushed, closed or tidied up. Returns the lines that it wrote before.
 */
export async function runUntilKilled(
  module: string,
  name: string,
  ...args: unknown[]
): Promise<string[]> {
  const input = await scriptFrom(`
    import { ${name} } from ${JSON.stringify(`${engine}${module}`)};
    await ${name}(...${JSON.stringify(args)});
    throw new Error('It was not killed');
  `);
  const child = spawnSync(process.execPath, ['--input-type=module', '-'], {
    input,
    encoding: 'utf8',
    cwd: engine,
    timeout: 60_000,
  });
  if (child.signal !== 'SIGKILL') {
    throw new Error(`The process ended by ${child.signal ?? child.status}: ${child.stderr}`);
  }
  return child.stdout.split('\n').slice(0, -1);
}
