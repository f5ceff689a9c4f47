import module from 'node:module';
import { liveCommand } from './completion/live-kind.js';
import { takeOverProcess } from './base/lifecycle.js';
import { version } from './base/version.js';

/**
 * Runs one command line and sets `process.exitCode`.
 *
 * Everything heavier than this file is imported dynamically, so that `ctl --version` takes little
 * longer than Node itself; see `registry.ts` for how commands keep it so.
 */
export async function main(args: readonly string[]): Promise<void> {
  const lifecycle = takeOverProcess(process);
  // Node's deprecation warnings do not belong into JSON errors or logs.
  process.noDeprecation = process.env['MILLRACE_DEBUG'] !== '1';
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    process.stdout.write(`${version()}\n`);
    return;
  }
  // Node 22 and later; the types are for Node 20.
  if ('enableCompileCache' in module && typeof module.enableCompileCache === 'function') {
    module.enableCompileCache();
  }
  if (args.length === 2 && args[0] === 'usage' && args[1] === 'statusline') {
    const { printStatusline } = await import('./usage/statusline.js');
    return printStatusline(process);
  }
  if (args[0] === liveCommand) {
    const { printLiveValues } = await import('./completion/live-values.js');
    await printLiveValues(args.slice(1), process);
    return;
  }
  const { run } = await import('./run.js');
  process.exitCode = await run(args, process, lifecycle);
}
