// Generated from daemon.openapi.yaml. Do not edit.

/** The closed list of machine codes, each with its HTTP status and its title. */
export const daemonCodes = {
  INVALID_REQUEST: { status: 400, title: 'Invalid request' },
  UNAUTHENTICATED: { status: 401, title: 'Token missing or unknown' },
  BAD_SIGNATURE: { status: 401, title: 'Signature does not verify' },
  FORBIDDEN: { status: 403, title: 'Forbidden' },
  SAVINGS_DISABLED: { status: 403, title: 'Savings are switched off' },
  FEATURE_DISABLED: { status: 403, title: 'Feature is switched off' },
  NOT_FOUND: { status: 404, title: 'Not found' },
  BACKEND_NOT_FOUND: { status: 404, title: 'Backend not found' },
  SESSION_NOT_FOUND: { status: 404, title: 'Session not found' },
  PIPELINE_NOT_FOUND: { status: 404, title: 'Pipeline not found' },
  NOTE_NOT_FOUND: { status: 404, title: 'Note not found' },
  QUESTION_NOT_FOUND: { status: 404, title: 'Question not found' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'Method not allowed' },
  NOT_ACCEPTABLE: { status: 406, title: 'Not acceptable' },
  BACKEND_NOT_ELIGIBLE: { status: 409, title: 'Backend not eligible' },
  SESSION_STATE: { status: 409, title: 'Session is in the wrong state' },
  PIPELINE_STATE: { status: 409, title: 'Pipeline is in the wrong state' },
  QUESTION_CLOSED: { status: 409, title: 'Question is not open' },
  IDEMPOTENCY_CONFLICT: { status: 409, title: 'Idempotency key already used' },
  PAYLOAD_TOO_LARGE: { status: 413, title: 'Payload too large' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'Unsupported media type' },
  UNKNOWN_OPTION: { status: 422, title: 'Unknown option' },
  BUDGET_CONFIRMATION_REQUIRED: { status: 428, title: 'Budget confirmation required' },
  BUDGET_EXCEEDED: { status: 429, title: 'Budget exceeded' },
  TOO_MANY_ATTEMPTS: { status: 429, title: 'Too many failed attempts' },
  INTERNAL: { status: 500, title: 'Internal error' },
  UPSTREAM_UNREACHABLE: { status: 502, title: 'Server behind the daemon not reached' },
  UPSTREAM_REFUSED: { status: 502, title: 'Server behind the daemon does not know the daemon' },
} as const;
export type DaemonCode = keyof typeof daemonCodes;
