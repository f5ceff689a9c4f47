import { messageOf } from '@millrace/kit/errors';

/** One check of `ctl doctor`. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<Finding>;
}

export interface Finding {
  /** `warn`: Millrace runs, but a feature does not. `fail`: it does not run. */
  readonly status: 'ok' | 'warn' | 'fail';
  readonly finding: string;
  /** How to fix it; for every status but `ok`. */
  readonly advice?: string;
}

export interface Report extends Finding {
  readonly name: string;
}

/** Runs all checks at once. A check that throws is reported as failed. */
export function examine(checks: readonly Check[]): Promise<Report[]> {
  return Promise.all(
    checks.map(async ({ name, run }) => {
      try {
        return { name, ...(await run()) };
      } catch (error) {
        const finding = `check failed: ${messageOf(error)}`;
        return { name, status: 'fail' as const, finding, advice: 'Report this as a bug in ctl.' };
      }
    }),
  );
}
