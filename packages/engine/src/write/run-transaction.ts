import type { Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';

/** A transaction that can be committed or rolled back. */
interface EndingTransaction {
  readonly id: string;
  commit(): Promise<unknown>;
  rollback(): void | Promise<void>;
}

type Retry = <Result>(attempt: () => Promise<Result>) => Promise<Result>;

interface RunOptions {
  /** Maximum number of calls of `run`. Default: 10. */
  tries?: number | undefined;
  /** Schedules the next attempt. */
  retry: Retry;
}

const defaultTries = 10;
const maxWaitMs = 1_000;

/**
 * Begins a transaction, calls `run` and commits. On a conflict everything is repeated. If `run`
 * throws, the transaction is rolled back and the error is rethrown.
 */
export async function runTransaction<Held extends EndingTransaction, Result>(
  begin: () => Held | Promise<Held>,
  run: (transaction: Held) => Promise<Result>,
  { tries = defaultTries, retry }: RunOptions,
): Promise<Result> {
  const attempt = () => runOnce(begin, run);
  for (let number = 1; ; number++) {
    const outcome = await (number === 1 ? attempt() : retry(attempt));
    if ('result' in outcome) return outcome.result;
    if (number >= tries) throw outcome.error;
  }
}

/** The result, or the error after which a retry may succeed. */
async function runOnce<Held extends EndingTransaction, Result>(
  begin: () => Held | Promise<Held>,
  run: (transaction: Held) => Promise<Result>,
): Promise<{ result: Result } | { error: unknown }> {
  const transaction = await begin();
  let result: Result;
  try {
    result = await run(transaction);
  } catch (error) {
    // The server was restarted, and nothing was committed.
    if (isAbout(error, 'TX_NOT_FOUND', transaction.id)) return { error };
    // Report the error of `run`, not that the transaction may have ended already.
    await Promise.resolve(transaction.rollback()).catch(() => undefined);
    throw error;
  }
  try {
    await transaction.commit();
    return { result };
  } catch (error) {
    if (isAbout(error, 'TX_CONFLICT', transaction.id)) return { error };
    throw error;
  }
}

/**
 * Runs retries one after the other, so that callers who change the same record do not conflict
 * again and again. The wait is limited, because a retry may itself wait for another transaction.
 */
export function retryInTurn(clock: Clock): Retry {
  let last: Promise<unknown> = Promise.resolve();
  return (attempt) => {
    const before = last;
    const turn = new Promise<void>((resolve) => {
      const timer = clock.after(maxWaitMs, resolve);
      void before.finally(() => {
        timer.cancel();
        resolve();
      });
    });
    const attempted = turn.then(attempt);
    last = attempted.catch(() => undefined);
    return attempted;
  };
}

function isAbout(error: unknown, code: string, id: string): boolean {
  if (!(error instanceof Refusal) || error.code !== code) return false;
  const metadata = error.extra.members?.['metadata'] as { tx_id?: string } | undefined;
  return metadata?.tx_id === id;
}
