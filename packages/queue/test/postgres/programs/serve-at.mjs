// The built queue server with a clock that is wrong by $CLOCK_AHEAD_MS: what `ctl queue serve` does
// on a machine like that.
import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { createLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { queueConfig, serveQueue } from '@millrace/queue/serve';

const aheadMs = Number(process.env.CLOCK_AHEAD_MS ?? 0);
const [config] = process.argv.slice(2);
const { values } = loadConfig(queueConfig, { flags: { config }, environment: {} });
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
const log = createLog({ level: 'warn', component: 'queue' });
const server = await serveQueue(values, { clock, random: systemRandom, log });
process.stdout.write(`${server.listeners[0].url}\n`);
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)));
// Whoever started it is gone.
process.stdin.on('end', () => process.exit(1)).resume();
