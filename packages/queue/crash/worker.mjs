// A pull worker as a process of its own: prints a line for every task that it starts.
// usage: worker.mjs URL TOKEN NAME LEASE_MS MAX_RUN_MS
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { connectTransport, startRawWorker } from '@millrace/worker';

const [url, token, name, leaseMs, maxRunMs] = process.argv.slice(2);

startRawWorker(
  connectTransport({ url, token }),
  // A server that is down is part of the campaign.
  { queue: 'crash', name, concurrency: 10, leaseMs: Number(leaseMs), onError: () => undefined },
  async ({ claimed }) => {
    const { id, lease_token: leaseToken, lease_expires_at: expiresAt, attempt } = claimed;
    const start = { id, leaseToken, expiresAt, attempt, startedAt: systemClock.now() };
    // A write to a pipe is synchronous, so a killed process has reported what it started.
    process.stdout.write(`${JSON.stringify(start)}\n`);
    await systemClock.sleep(systemRandom.integer(0, Number(maxRunMs)));
    return { leaseToken };
  },
);
