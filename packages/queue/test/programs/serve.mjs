// The queue server as a process of its own, with the flags of the command line: what
// `ctl queue serve` does.
import { runQueue } from '@millrace/queue/serve';

const flags = Object.fromEntries(
  process.argv.slice(2).map((arg) => {
    const [name, ...value] = arg.replace(/^--/, '').split('=');
    return [name, value.join('=')];
  }),
);
try {
  process.exitCode = await runQueue({ flags, environment: process.env });
} catch (error) {
  if (error.name !== 'UsageError') throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
