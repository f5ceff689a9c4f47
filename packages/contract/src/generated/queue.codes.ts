// Generated from queue.openapi.yaml. Do not edit.

/** The closed list of machine codes, each with its HTTP status and its title. */
export const queueCodes = {
  UNAUTHENTICATED: { status: 401, title: 'Unauthenticated' },
  FORBIDDEN: { status: 403, title: 'Forbidden' },
  NOT_FOUND: { status: 404, title: 'Not found' },
  QUEUE_NOT_FOUND: { status: 404, title: 'Queue not found' },
  TASK_NOT_FOUND: { status: 404, title: 'Task not found' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'Method not allowed' },
  ID_CONFLICT: { status: 409, title: 'Id conflict' },
  QUEUE_NOT_EMPTY: { status: 409, title: 'Queue not empty' },
  LEASE_LOST: { status: 409, title: 'Lease lost' },
  TASK_FINISHED: { status: 409, title: 'Task finished' },
  TASK_NOT_PENDING: { status: 409, title: 'Task not pending' },
  STALE_CURSOR: { status: 410, title: 'Stale cursor' },
  PRECONDITION_FAILED: { status: 412, title: 'Precondition failed' },
  PAYLOAD_TOO_LARGE: { status: 413, title: 'Payload too large' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'Unsupported media type' },
  INVALID_TASK: { status: 422, title: 'Invalid task' },
  BATCH_TOO_LARGE: { status: 422, title: 'Batch too large' },
  RESULT_TOO_LARGE: { status: 422, title: 'Result too large' },
  INVALID_SELECTOR: { status: 422, title: 'Invalid selector' },
  INVALID_CONFIG: { status: 422, title: 'Invalid config' },
  CALLBACK_URL_NOT_ALLOWED: { status: 422, title: 'Callback URL not allowed' },
  INVALID_QUERY: { status: 422, title: 'Invalid query' },
  RATE_LIMITED: { status: 429, title: 'Rate limited' },
  INTERNAL: { status: 500, title: 'Internal error' },
  STORAGE_UNAVAILABLE: { status: 503, title: 'Storage unavailable' },
} as const;
export type QueueCode = keyof typeof queueCodes;
