/** The sample document as openapi-typescript would write it. */
export interface operations {
  submitTask: {
    parameters: { query?: never; header?: never; path: { queue: string }; cookie?: never };
    requestBody: { content: { 'application/json': TaskRequest } };
    responses: {
      202: { headers: Headers; content: { 'application/json': Task } };
      401: Failure;
      503: Failure;
    };
  };
  submitBatch: {
    parameters: { query?: never; header?: never; path: { queue: string }; cookie?: never };
    requestBody: { content: { 'application/json': TaskRequest[] } };
    responses: {
      207: { headers: Headers; content: { 'application/json': Record<string, unknown>[] } };
    };
  };
  listDlq: {
    parameters: {
      query?: {
        limit?: number;
        from?: string;
        newest_first?: boolean;
        ratio?: number;
        status?: ('DEAD' | 'PENDING')[];
        attempts?: number[];
      };
      header?: never;
      path: { queue: string };
      cookie?: never;
    };
    requestBody?: never;
    responses: { 200: Echo; 422: Failure };
  };
  getTask: Simple<{ id: string }>;
  completeTask: {
    parameters: {
      query?: never;
      header: { 'X-Lease-Token': string };
      path: { id: string };
      cookie?: never;
    };
    requestBody?: { content: { 'application/json': { note?: string } } };
    responses: { 200: Echo };
  };
  getQueue: Simple<{ queue: string }>;
  deleteQueue: Empty;
  pauseQueue: Empty;
  resumeQueue: Empty;
  putConfig: {
    parameters: { query?: never; header?: never; path: { queue: string }; cookie?: never };
    requestBody: { content: { 'application/json': Record<string, unknown> } };
    responses: { 200: Echo };
  };
  takeCallback: {
    parameters: { query?: never; header?: never; path?: never; cookie?: never };
    requestBody?: { content: { '*/*': string } };
    responses: { 200: Echo };
  };
  watchEvents: {
    parameters: { query?: never; header?: never; path?: never; cookie?: never };
    requestBody?: never;
    responses: { 200: { headers: Headers; content: { 'text/event-stream': string } } };
  };
  getHealth: {
    parameters: { query?: never; header?: never; path?: never; cookie?: never };
    requestBody?: never;
    responses: { 200: Echo };
  };
}

interface TaskRequest {
  handler_ref: string;
  payload?: string;
  priority?: number;
}

interface Task {
  id: string;
  queue: string;
}

interface Headers {
  [name: string]: unknown;
}

interface Echo {
  headers: Headers;
  content: { 'application/json': Record<string, unknown> };
}

interface Failure {
  headers: Headers;
  content: { 'application/problem+json': { code: string } };
}

interface Simple<Path> {
  parameters: { query?: never; header?: never; path: Path; cookie?: never };
  requestBody?: never;
  responses: { 200: Echo; 404: Failure };
}

interface Empty {
  parameters: { query?: never; header?: never; path: { queue: string }; cookie?: never };
  requestBody?: never;
  responses: { 204: { headers: Headers; content?: never }; 404: Failure };
}
