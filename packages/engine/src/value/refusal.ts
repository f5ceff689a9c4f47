import type { DbReason } from '@millrace/contract/db-reasons';
import { Refusal, type RefusalExtra } from '@millrace/kit/errors';

/** An error of the database: `throw refuse('KEY_NOT_FOUND', '...')`. */
export function refuse(
  reason: DbReason,
  detail: string,
  /** For `ErrorInfo.metadata`, such as the current rev of a REV_MISMATCH. */
  metadata?: Readonly<Record<string, string>>,
  extra: RefusalExtra = {},
): Refusal<DbReason> {
  return new Refusal(reason, detail, metadata ? { ...extra, members: { metadata } } : extra);
}
