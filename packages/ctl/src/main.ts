import module from 'node:module';
import { takeOverProcess } from './lifecycle.js';
import { version } from './version.js';

/**
 * Runs one command line and leaves its exit code in `process.exitCode`.
 *
 * Everything heavier than this file waits behind a dynamic import, so that `ctl --version` costs
 * little more than Node itself; see `registry.ts` for how commands keep that true.
 */
export async function main(args: readonly string[]): Promise<void> {
  const lifecycle = takeOverProcess(process);
  // What Node says to programmers does not belong among errors as JSON, nor into a log.
  process.noDeprecation = process.env['MILLRACE_DEBUG'] !== '1';
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    process.stdout.write(`${version()}\n`);
    return;
  }
  // Node 22 and later; the types are those of Node 20.
  if ('enableCompileCache' in module && typeof module.enableCompileCache === 'function') {
    module.enableCompileCache();
  }
  const { run } = await import('./run.js');
  process.exitCode = await run(args, process, lifecycle);
}
