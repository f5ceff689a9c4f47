// What must hold for each task at the end of a crash campaign.

/** Throws if the task is lost, never ran, or succeeded other than once. */
export function checkTask(task, starts) {
  const about = `task ${task.id}`;
  if (task.status !== 'SUCCEEDED') throw new Error(`${about} is ${task.status}`);
  if (starts.length === 0) throw new Error(`${about} succeeded but was never started`);
  const ends = task.attempts.filter(({ outcome }) => outcome === 'SUCCEEDED');
  if (ends.length !== 1) throw new Error(`${about} succeeded ${ends.length} times`);
  const winner = starts.find(({ leaseToken }) => leaseToken === task.result?.leaseToken);
  if (!winner) throw new Error(`${about} has a result of an unknown lease`);
  if (winner.attempt !== ends[0].attempt) {
    throw new Error(`${about}: attempt ${winner.attempt} settled attempt ${ends[0].attempt}`);
  }
  const ordered = starts.toSorted((a, b) => a.attempt - b.attempt);
  for (const [i, start] of ordered.entries()) {
    const before = ordered[i - 1];
    if (before && start.startedAt < leaseEnd(task, before)) {
      throw new Error(`${about} was started twice under one lease: ${JSON.stringify(ordered)}`);
    }
  }
}

/** When a lease ended: earlier than it would have if the stream of its worker broke. */
function leaseEnd({ attempts }, { attempt, expiresAt }) {
  const gone = attempts.find(
    (each) => each.attempt === attempt && each.error_type === 'WORKER_GONE',
  );
  return Date.parse(gone?.ended_at ?? expiresAt);
}

/** Tries to settle with every lease; only that of the result may. Returns how many were refused. */
export async function checkFencing(task, starts, settle) {
  let refused = 0;
  for (const { leaseToken } of starts) {
    const status = await settle(task.id, leaseToken);
    // Repeating the call that settled the task is fine.
    const expected = leaseToken === task.result.leaseToken ? 200 : 409;
    if (status !== expected) {
      throw new Error(`task ${task.id}: a lease got ${status} instead of ${expected}`);
    }
    if (status === 409) refused++;
  }
  return refused;
}
