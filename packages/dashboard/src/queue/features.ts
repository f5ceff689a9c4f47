/**
 * What a queue server can do, by the OpenAPI document it serves. An older server behind a newer
 * dashboard has fewer operations, and the pages leave out what it lacks.
 */
export interface Features {
  /** List, count, cancel, run now and change tasks. */
  tasks: boolean;
  schedules: boolean;
  workers: boolean;
  jobs: boolean;
  /** The history behind the charts. */
  metrics: boolean;
}

export const noFeatures: Features = {
  tasks: false,
  schedules: false,
  workers: false,
  jobs: false,
  metrics: false,
};

export function featuresOf(operations: ReadonlySet<string>): Features {
  const has = (...wanted: string[]) => wanted.every((one) => operations.has(one));
  return {
    tasks: has(
      'GET /v1/queues/{}/tasks',
      'GET /v1/queues/{}/tasks:count',
      'POST /v1/queues/{}/tasks:cancel',
      'POST /v1/tasks/{}:cancel',
      'POST /v1/tasks/{}:run-now',
      'PATCH /v1/tasks/{}',
    ),
    schedules: has('GET /v1/queues/{}/schedules', 'PUT /v1/queues/{}/schedules/{}'),
    workers: has('GET /v1/queues/{}/workers'),
    jobs: has('GET /v1/queues/{}/jobs', 'POST /v1/jobs/{}:cancel'),
    metrics: has('GET /v1/queues/{}/metrics'),
  };
}
