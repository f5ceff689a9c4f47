import { failed, type GrpcCode, type GrpcStatus } from './status.js';

/** Why the work of a call is aborted. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded';

  constructor(
    readonly code: GrpcCode,
    message: string,
  ) {
    super(message);
  }
}

/** What a server says when a call ends that its method did not end. */
export interface CallEndings {
  /** Why the work is aborted when the caller is gone. */
  cancelled(): unknown;
  /** What the caller hears when its deadline passes, and why the work is aborted. */
  expired(): { readonly status: GrpcStatus; readonly reason: unknown };
}

export const plainEndings: CallEndings = {
  cancelled: () => new CallEnded('CANCELLED', 'The caller cancelled the call.'),
  expired: () => {
    const text = 'The deadline of the call passed.';
    return {
      status: failed('DEADLINE_EXCEEDED', text),
      reason: new CallEnded('DEADLINE_EXCEEDED', text),
    };
  },
};
