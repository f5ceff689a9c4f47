import type { DaemonSchema } from '@millrace/contract/daemon';

type Outcome = DaemonSchema<'ThinkOutcome'>;

/** Result of one candidate. */
export type Attempt =
  | { outcome: 'answered'; text: string }
  | {
      outcome: Exclude<Outcome, 'answered'>;
      /** Human-readable; never the provider's text. */
      reason: string;
      /** Reset time that the backend reported. */
      resetAt?: number | undefined;
    };
