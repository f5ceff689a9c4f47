/** Actions on the work of a session, in the order of their buttons. */
export const workActions = ['commit', 'push', 'open-pr', 'rebase', 'merge'] as const;
export type WorkAction = (typeof workActions)[number];

/** What the daemon can do, by the OpenAPI document it serves. */
export interface DaemonFeatures {
  questions: boolean;
  diff: boolean;
  actions: readonly WorkAction[];
}

export const noDaemonFeatures: DaemonFeatures = { questions: false, diff: false, actions: [] };
export const allDaemonFeatures: DaemonFeatures = {
  questions: true,
  diff: true,
  actions: workActions,
};

export function daemonFeaturesOf(operations: ReadonlySet<string>): DaemonFeatures {
  return {
    questions:
      operations.has('GET /api/v1/questions') && operations.has('POST /api/v1/questions/{}:answer'),
    diff: operations.has('GET /api/v1/sessions/{}/diff'),
    actions: workActions.filter((name) => operations.has(`POST /api/v1/sessions/{}:${name}`)),
  };
}
