import { connectionsExceeded } from '@millrace/kit/connection-limit';
import { errorStatus, type GrpcCode, type GrpcStatus } from './status.js';

/** Why the work of a call is aborted. */
export class CallAborted extends Error {
  override readonly name = 'CallEnded';

  constructor(
    readonly code: GrpcCode,
    message: string,
  ) {
    super(message);
  }
}

/** Reasons for ending a call that its method did not end. */
export interface CallAbortReasons {
  /** Abort reason when the client cancels or disconnects. */
  cancelled(): unknown;
  /** Status sent when the deadline passes, and the abort reason. */
  expired(): { readonly status: GrpcStatus; readonly reason: unknown };
  /** Status of a call for whose connection there is no room. */
  noConnection(): GrpcStatus;
}

export const defaultAbortReasons: CallAbortReasons = {
  cancelled: () => new CallAborted('CANCELLED', 'The caller cancelled the call.'),
  expired: () => {
    const text = 'The deadline of the call passed.';
    return {
      status: errorStatus('DEADLINE_EXCEEDED', text),
      reason: new CallAborted('DEADLINE_EXCEEDED', text),
    };
  },
  noConnection: () => errorStatus('UNAVAILABLE', connectionsExceeded),
};
