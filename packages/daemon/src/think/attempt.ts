import type { DaemonSchema } from '@millrace/contract/daemon';

type Outcome = DaemonSchema<'ThinkOutcome'>;

/** Token counts that the model itself reported. */
export interface ModelTokens {
  input: number;
  output: number;
}

/** Result of one candidate. */
export type Attempt =
  | { outcome: 'answered'; text: string; tokens?: ModelTokens | undefined }
  | {
      outcome: Exclude<Outcome, 'answered'>;
      /** Human-readable; never the provider's text. */
      reason: string;
      /** Reset time that the backend reported. */
      resetAt?: number | undefined;
    };
