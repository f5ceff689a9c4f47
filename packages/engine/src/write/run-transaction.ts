import type { Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';

/** A transaction that can be brought to an end. */
export interface EndingTransaction {
  readonly id: string;
  commit(): Promise<unknown>;
  rollback(): void | Promise<void>;
}

type Retry = <Result>(attempt: () => Promise<Result>) => Promise<Result>;

export interface RunOptions {
  /** How often `run` is called at most: 10 times unless told. */
  tries?: number | undefined;
  /** Makes the next attempt when it is time. */
  retry: Retry;
}

const defaultTries = 10;
const maxWaitMs = 1_000;

/**
 * Begins a transaction, runs `run` in it and commits. When another commit was in the way, all of
 * it happens again. A throw of `run` rolls back and comes out.
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

/** The result, or the error after which the same may succeed. */
async function runOnce<Held extends EndingTransaction, Result>(
  begin: () => Held | Promise<Held>,
  run: (transaction: Held) => Promise<Result>,
): Promise<{ result: Result } | { error: unknown }> {
  const transaction = await begin();
  let result: Result;
  try {
    result = await run(transaction);
  } catch (error) {
    // Its server was restarted, and nothing of it was committed.
    if (isAbout(error, 'TX_NOT_FOUND', transaction.id)) return { error };
    // What went wrong in `run` matters, not that the transaction may be gone already.
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
 * Makes retries one after the other, so that callers who change the same record do not get into
 * each other's way again and again. The wait is limited, because a retry may itself wait for
 * another transaction.
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
