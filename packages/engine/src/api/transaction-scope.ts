import { AsyncLocalStorage } from 'node:async_hooks';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The database whose `transaction` callback is running. Disabled between callbacks. */
const owners = new AsyncLocalStorage<object>();
const ownFolder = dirname(fileURLToPath(import.meta.url));
const ownFiles = /[/\\](?:collection|embedded-collection|transaction-scope)\.[jt]s:/;
const maxCallSites = 1_000;
const warnedCallSites = new WeakMap<object, Set<string>>();
let running = 0;

/** Runs the callback of a transaction so that `warnOutside` recognises calls made inside it. */
export async function runInScope<Result>(
  owner: object,
  run: () => Promise<Result>,
): Promise<Result> {
  if (process.env['NODE_ENV'] === 'production') return run();
  running++;
  try {
    return await owners.run(owner, run);
  } finally {
    if (--running === 0) owners.disable();
  }
}

/**
 * Warns, once per call site, about a call inside a `transaction` callback that is not part of the
 * transaction.
 */
export function warnOutside(owner: object, collection: string): void {
  if (running === 0 || owners.getStore() !== owner) return;
  const site = callSite();
  const warned = warnedCallSites.get(owner) ?? new Set();
  if (warned.has(site) || warned.size >= maxCallSites) return;
  warnedCallSites.set(owner, warned.add(site));
  process.emitWarning(
    `A call on "${collection}" inside a transaction callback is not part of the transaction. ` +
      `Use tx.collection(...) instead (${site}).`,
    { type: 'MillraceWarning', code: 'OUTSIDE_TRANSACTION' },
  );
}

/** The first stack frame outside the API. */
function callSite(): string {
  const frames = (new Error('call site').stack ?? '').split('\n').slice(1);
  const frame = frames.find((line) => !(line.includes(ownFolder) && ownFiles.test(line)));
  return frame?.trim() ?? 'unknown call site';
}
