import type { DaemonSchema } from '@millrace/contract/daemon';

type Outcome = DaemonSchema<'ThinkOutcome'>;

/** How one candidate fared. */
export type Attempt =
  | { outcome: 'answered'; text: string }
  | {
      outcome: Exclude<Outcome, 'answered'>;
      /** In our words. */
      reason: string;
      /** When the backend says that its limit ends. */
      resetAt?: number | undefined;
    };
