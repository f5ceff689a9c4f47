import { Refusal } from '@millrace/kit/errors';

/** A transaction that can be brought to an end. */
export interface EndingTransaction {
  readonly id: string;
  commit(): Promise<unknown>;
  rollback(): void | Promise<void>;
}

export interface RunOptions {
  /** How often `run` is called at most: 10 times unless told. */
  tries?: number | undefined;
  /** Waits before the next try; the first wait has the number 1. */
  pause: (number: number) => Promise<void>;
}

const defaultTries = 10;

/**
 * Begins a transaction, runs `run` in it and commits. When another commit was in the way, all of
 * it happens again. A throw of `run` rolls back and comes out.
 */
export async function runTransaction<Held extends EndingTransaction, Result>(
  begin: () => Held | Promise<Held>,
  run: (transaction: Held) => Promise<Result>,
  { tries = defaultTries, pause }: RunOptions,
): Promise<Result> {
  for (let number = 1; ; number++) {
    const transaction = await begin();
    let result: Result;
    try {
      result = await run(transaction);
    } catch (error) {
      const isLost = isAbout(error, 'TX_NOT_FOUND', transaction.id);
      // What went wrong in `run` matters, not that the transaction may be gone already.
      if (!isLost) await Promise.resolve(transaction.rollback()).catch(() => undefined);
      // Its server was restarted, and nothing of it was committed.
      if (!isLost || number >= tries) throw error;
      await pause(number);
      continue;
    }
    try {
      await transaction.commit();
      return result;
    } catch (error) {
      if (!isAbout(error, 'TX_CONFLICT', transaction.id) || number >= tries) throw error;
      await pause(number);
    }
  }
}

function isAbout(error: unknown, code: string, id: string): boolean {
  if (!(error instanceof Refusal) || error.code !== code) return false;
  const metadata = error.extra.members?.['metadata'] as { tx_id?: string } | undefined;
  return metadata?.tx_id === id;
}
