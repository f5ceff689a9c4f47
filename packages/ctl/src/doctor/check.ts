import { messageOf } from '@millrace/kit/errors';

/** One thing that `ctl doctor` looks at. */
export interface Check {
  readonly name: string;
  readonly look: () => Promise<Finding>;
}

export interface Finding {
  /** `warn`: Millrace runs, but something it offers does not. `fail`: it does not run. */
  readonly status: 'ok' | 'warn' | 'fail';
  readonly finding: string;
  /** What to do about it; with every status but `ok`. */
  readonly advice?: string;
}

export interface Report extends Finding {
  readonly name: string;
}

/** Looks at everything at once. A check that itself breaks is a failed check, not a lost one. */
export function examine(checks: readonly Check[]): Promise<Report[]> {
  return Promise.all(
    checks.map(async ({ name, look }) => {
      try {
        return { name, ...(await look()) };
      } catch (error) {
        const finding = `could not look: ${messageOf(error)}`;
        return { name, status: 'fail' as const, finding, advice: 'Report this as a bug in ctl.' };
      }
    }),
  );
}
