import { connectionsExceeded } from '@millrace/kit/connection-limit';
import {
  errorStatus,
  faultStatus,
  type GrpcCode,
  type GrpcStatus,
  type TransportFault,
} from '../base/status.js';

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
  /** Adds the error details of the service to a status of the transport. */
  explain?(status: GrpcStatus, fault: TransportFault): GrpcStatus;
}

/** A status as it is sent. */
export function explained(status: GrpcStatus, { explain }: CallAbortReasons): GrpcStatus {
  return status.fault && explain ? explain(status, status.fault) : status;
}

export const defaultAbortReasons: CallAbortReasons = {
  cancelled: () => new CallAborted('CANCELLED', 'The caller cancelled the call.'),
  expired: () => {
    const text = 'The deadline of the call passed.';
    return {
      status: faultStatus('DEADLINE_EXCEEDED', text, 'too_late'),
      reason: new CallAborted('DEADLINE_EXCEEDED', text),
    };
  },
  noConnection: () => errorStatus('UNAVAILABLE', connectionsExceeded),
};
